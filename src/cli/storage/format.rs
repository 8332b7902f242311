//! `kafka-storage format`.

use std::fmt::Write as _;

use secrecy::SecretString;

use super::arguments::{self, Configuration, Output};
use super::{Answer, cluster_id};
use crate::cli::arguments as files;
use crate::cli::{Failure, Status};
use crate::storage::config::ServerConfig;
use crate::storage::environment;
use crate::storage::format::{Fault, FaultKind, FormatRecord, FormatRequest, InitialQuorum};
use crate::storage::software::Software;

pub(super) fn run(arguments: &arguments::Format) -> Result<Answer, Failure> {
    let software = Software::of(&arguments.kafka_version)
        .map_err(|error| Failure::new(Status::Configuration, format!("--kafka-version: {error}")))?;
    let config = configuration(&arguments.configuration)?;
    let mut request = FormatRequest {
        config,
        software,
        cluster_id: arguments.cluster_id.clone(),
        release: arguments.release_version.clone(),
        features: arguments.feature.clone(),
        quorum: quorum(&arguments.quorum),
        directory_id: None,
        scram: scram(arguments)?,
        ignore_formatted: arguments.ignore_formatted,
    };
    cluster_id::find(&mut request, &arguments.bootstrap_server, &arguments.bootstrap_controller)?;
    let format = request.prepare().map_err(failure)?;
    format.write().map_err(|fault| failure(vec![fault]))?;
    let record = format.record();
    let text = match arguments.output {
        Output::Text => text(record),
        Output::Json => json(record)?,
    };
    Ok(Answer { status: Status::Done, text, warnings: record.warnings.clone() })
}

/// The node's configuration.
pub(super) fn configuration(from: &Configuration) -> Result<ServerConfig, Failure> {
    let name = from.config.as_ref().map_or("the environment".to_owned(), |path| path.display().to_string());
    let about = |status: Status, error: String| Failure::new(status, format!("{name}: {error}"));
    let file = match &from.config {
        Some(path) => files::read(path).map_err(|error| about(Status::Disk, error))?,
        None => Vec::new(),
    };
    let variables = std::env::vars_os().filter(|_| from.environment);
    let properties = environment::read(&file, variables)
        .map_err(|error| about(Status::Configuration, error.to_string()))?;
    ServerConfig::read(&properties).map_err(|errors| Failure {
        status: Status::Configuration,
        messages: errors.iter().map(ToString::to_string).collect(),
    })
}

fn quorum(quorum: &arguments::Quorum) -> InitialQuorum {
    match quorum {
        arguments::Quorum { standalone: true, .. } => InitialQuorum::Standalone,
        arguments::Quorum { no_initial_controllers: true, .. } => InitialQuorum::NoInitialControllers,
        arguments::Quorum { initial_controllers: Some(voters), .. } => {
            InitialQuorum::InitialControllers(voters.clone())
        }
        _ => InitialQuorum::Unsaid,
    }
}

/// The SCRAM users of arguments and files; lines that are empty or begin with `#` are none.
fn scram(arguments: &arguments::Format) -> Result<Vec<SecretString>, Failure> {
    let mut users = arguments.add_scram.clone();
    for path in &arguments.add_scram_file {
        let about = |error: &str| format!("--add-scram-file {}: {error}", path.display());
        let bytes = files::read(path).map_err(|error| Failure::new(Status::Disk, about(&error)))?;
        for line in files::lines(&bytes) {
            let line = std::str::from_utf8(line)
                .map_err(|_| Failure::new(Status::Configuration, about("it is not UTF-8")))?;
            if !line.trim().is_empty() && !line.trim_start().starts_with('#') {
                users.push(SecretString::from(line));
            }
        }
    }
    Ok(users)
}

/// Everything that is wrong, under the status of what weighs most.
pub(super) fn failure(faults: Vec<Fault>) -> Failure {
    let status = match faults.iter().map(Fault::kind).min() {
        Some(FaultKind::Identity) => Status::Identity,
        Some(FaultKind::AlreadyFormatted) => Status::AlreadyFormatted,
        Some(FaultKind::Disk) => Status::Disk,
        Some(FaultKind::Configuration) | None => Status::Configuration,
    };
    Failure { status, messages: faults.iter().map(ToString::to_string).collect() }
}

/// The lines of Kafka's own tool.
fn text(record: &FormatRecord) -> String {
    let mut text = String::new();
    for path in record.unreadable.keys() {
        let _ = writeln!(text, "I/O error trying to read log directory {path}. Ignoring...");
    }
    if record.formatted.is_empty() {
        text += "All of the log directories are already formatted.\n";
    }
    for directory in &record.formatted {
        let (kind, path, version) = (directory.kind, &directory.path, &record.metadata_version);
        let _ = writeln!(text, "Formatting {kind} {path} with metadata.version {version}.");
    }
    text
}

fn json(record: &FormatRecord) -> Result<String, Failure> {
    let mut value = serde_json::to_value(record)
        .map_err(|error| Failure::new(Status::Problems, format!("the record can't be written: {error}")))?;
    if let Some(object) = value.as_object_mut() {
        object.insert("status".to_owned(), Status::Done.number().into());
    }
    Ok(format!("{value}\n"))
}
