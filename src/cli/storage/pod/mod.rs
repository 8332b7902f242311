//! `kafka-storage pod`: what the operator's init containers run. The first one looks at the node's directories and ends;
//! the second ends at once where they are formatted, and else waits until the operator grants this very pod a format.
//! Neither talks to an API server, and each ends with a report as its termination message, whatever comes of it.

mod format;
mod node;
mod refusal;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::Path;

use super::Answer;
use super::arguments::{InPod, Pod};
use crate::api::pods::{Report, Verdict};
use crate::cli::{Failure, Status};
use node::Node;
use refusal::Refusal;

/// A termination message has room for 4 KiB; what is longer is cut off, and no report any more.
const LONGEST_REPORT: usize = 4096;
/// A reason is cut to this many bytes, and to fewer where the report is long besides.
const LONGEST_MESSAGE: usize = 2048;

pub(super) fn run(command: &Pod) -> Result<Answer, Failure> {
    let (files, result) = match command {
        Pod::Look(files) => (files, look(files)),
        Pod::Format(files) => (files, format::run(files)),
    };
    let (report, failure) = match result {
        Ok(report) => (report, None),
        Err(refused) => {
            let Refused { report, refusal } = *refused;
            let report = Report {
                verdict: Verdict::Failed,
                reason: Some(refusal.reason.clone()),
                message: Some(cut(&refusal.message)),
                denied: refusal.denied,
                ..report
            };
            (report, Some(Failure::new(refusal.status, refusal.message)))
        }
    };
    write(&files.report, &report)?;
    match failure {
        None => Ok(Answer::done(told(&report))),
        Some(failure) => Err(failure),
    }
}

/// Why a container could not do its work, and what it knew by then.
#[derive(Debug)]
struct Refused {
    report: Report,
    refusal: Refusal,
}

impl Refused {
    fn new(report: Report, refusal: Refusal) -> Box<Self> {
        Box::new(Self { report, refusal })
    }
}

fn look(files: &InPod) -> Result<Report, Box<Refused>> {
    let node = Node::find(files)?;
    node.survey()
}

/// A report that is not about anything yet.
fn empty_report() -> Report {
    Report { pod: std::env::var(crate::api::pods::POD_UID_ENV).unwrap_or_default(), ..Report::default() }
}

fn write(path: &Path, report: &Report) -> Result<(), Failure> {
    let failed = |error: String| {
        Failure::new(Status::Disk, format!("the report could not be written to {}: {error}", path.display()))
    };
    let mut report = report.clone();
    let mut text = serde_json::to_string(&report).map_err(|error| failed(error.to_string()))?;
    while let (true, Some(message)) = (text.len() > LONGEST_REPORT, report.message.take()) {
        let shorter = message.len().saturating_sub((text.len() - LONGEST_REPORT).max(64));
        report.message = Some(crate::api::conditions::cut(&message, shorter)).filter(|text| !text.is_empty());
        text = serde_json::to_string(&report).map_err(|error| failed(error.to_string()))?;
    }
    fs::write(path, text).map_err(|error| failed(error.to_string()))
}

/// A report in a line, for those who read the container's log.
fn told(report: &Report) -> String {
    let node = report.node_id.unwrap_or_default();
    let cluster = report.cluster_id.as_deref().unwrap_or("none yet");
    match report.verdict {
        Verdict::Formatted => format!("node {node} of cluster {cluster}: formatted already\n"),
        Verdict::FormattedNow => format!("node {node} of cluster {cluster}: formatted\n"),
        Verdict::Unformatted => format!("node {node} is not formatted yet\n"),
        Verdict::Failed => String::new(),
    }
}

fn cut(message: &str) -> String {
    crate::api::conditions::cut(message, LONGEST_MESSAGE)
}
