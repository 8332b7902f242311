//! `kafka-storage`: formats a node's directories and tells what they hold.

mod arguments;
mod cluster_id;
mod format;
mod info;
mod levels;
mod pod;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser as _;

use super::{Failure, Status};
use crate::storage::Uuid;
use arguments::{Arguments, Command, Output};

/// What a command has to say, and how it ends.
struct Answer {
    status: Status,
    text: String,
    warnings: Vec<String>,
}

impl Answer {
    fn done(text: String) -> Self {
        Self { status: Status::Done, text, warnings: Vec::new() }
    }
}

/// Runs the tool.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match super::arguments::expand(arguments) {
        Ok(arguments) => arguments,
        Err(failure) => return fail(&failure, Output::Text),
    };
    let given: Vec<String> =
        arguments.iter().map(|argument| argument.to_string_lossy().into_owned()).collect();
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) if error.use_stderr() => {
            let _ = write!(io::stderr(), "{}", without_secrets(error.render().to_string(), &given));
            return Status::Usage.into();
        }
        Err(help) => {
            // whether anybody reads it is not ours to judge
            let _ = help.print();
            return Status::Done.into();
        }
    };
    let output = arguments.command.output();
    let answer = match &arguments.command {
        Command::Format(arguments) => format::run(arguments),
        Command::Info(arguments) => info::run(arguments),
        Command::VersionMapping(arguments) => levels::mapping(arguments),
        Command::FeatureDependencies(arguments) => levels::dependencies(arguments),
        Command::Pod(arguments) => pod::run(arguments),
        Command::RandomUuid => Ok(Answer::done(format!("{}\n", Uuid::random()))),
    };
    match answer {
        Ok(answer) => tell(&answer),
        Err(failure) => fail(&failure, output),
    }
}

/// A message about arguments that are out of form, without those that hold a password where none belongs.
fn without_secrets(mut message: String, arguments: &[String]) -> String {
    let secret = arguments.iter().filter(|argument| argument.contains("password"));
    for argument in secret {
        message = message.replace(argument, "(an argument with a password)");
    }
    message
}

fn tell(answer: &Answer) -> ExitCode {
    for warning in &answer.warnings {
        let _ = writeln!(io::stderr(), "warning: {warning}");
    }
    let mut out = io::stdout();
    match out.write_all(answer.text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => answer.status.into(),
        Err(error) => fail(&Failure::new(Status::Disk, format!("standard output: {error}")), Output::Text),
    }
}

/// Tells why nothing was done: a line for each thing that is wrong, on standard error; for machines also on standard
/// output.
fn fail(failure: &Failure, output: Output) -> ExitCode {
    if output == Output::Json {
        let record = serde_json::json!({ "status": failure.status.number(), "errors": failure.messages });
        let _ = writeln!(io::stdout(), "{record}");
    }
    for message in &failure.messages {
        let _ = writeln!(io::stderr(), "kafka-storage: {message}");
    }
    failure.status.into()
}
