//! `kafka-storage info`.

use std::fmt::Write as _;

use super::Answer;
use super::arguments::{Info as Arguments, Output};
use super::format::configuration;
use crate::cli::{Failure, Status};
use crate::storage::info::Info;
use crate::storage::software::Software;

pub(super) fn run(arguments: &Arguments) -> Result<Answer, Failure> {
    let software = Software::of(&arguments.kafka_version)
        .map_err(|error| Failure::new(Status::Configuration, format!("--kafka-version: {error}")))?;
    let config = configuration(&arguments.configuration)?;
    let info = Info::of(&config, &software);
    let status = if info.problems.is_empty() { Status::Done } else { Status::Problems };
    let text = match arguments.output {
        Output::Text => text(&info),
        Output::Json => format!(
            "{}\n",
            serde_json::to_string(&info).map_err(|error| Failure::new(
                Status::Problems,
                format!("the record can't be written: {error}")
            ))?
        ),
    };
    Ok(Answer { status, text, warnings: Vec::new() })
}

/// The paragraphs of Kafka's own tool, and those that only ours has.
fn text(info: &Info) -> String {
    let mut text = String::new();
    list(&mut text, "log directory", "log directories", &info.directories);
    // ours stand in the middle: what reads Kafka's output to its end finds Kafka's own paragraphs there
    if let Some(bootstrap) = &info.bootstrap {
        let mut lines = vec![format!("{}: {}", bootstrap.directory, bootstrap.state.describe())];
        lines.extend(bootstrap.levels.iter().map(|(feature, level)| format!("{feature}={level}")));
        if bootstrap.kraft_version > 0 {
            lines.push(format!("kraft.version={}", bootstrap.kraft_version));
        }
        lines.extend(
            bootstrap.voters.iter().map(|(id, directory)| format!("voter {id}, directory {directory}")),
        );
        list(&mut text, "bootstrap state", "bootstrap state", &lines);
    }
    list(&mut text, "note", "notes", &info.notes);
    if !info.metadata.is_empty() {
        let entries: Vec<String> =
            info.metadata.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let _ = writeln!(text, "Found metadata: {{{}}}\n", entries.join(", "));
    }
    list(&mut text, "problem", "problems", &info.problems);
    text
}

fn list(text: &mut String, one: &str, several: &str, items: &[String]) {
    if items.is_empty() {
        return;
    }
    let _ = writeln!(text, "Found {}:", if items.len() == 1 { one } else { several });
    for item in items {
        let _ = writeln!(text, "  {item}");
    }
    text.push('\n');
}
