//! Why an init container could not do its work: a reason in one word, which the resource's status shows as it is, and a
//! line with the way out.

use crate::cli::Status;
use crate::storage::format::{Fault, FaultKind};

/// Why an init container could not do its work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) reason: String,
    pub(super) status: Status,
    pub(super) message: String,
    /// Whether the operator said so.
    pub(super) denied: bool,
}

impl Refusal {
    pub(super) fn new(reason: &str, status: Status, message: impl Into<String>) -> Self {
        Self { reason: reason.to_owned(), status, message: one_line(&message.into()), denied: false }
    }

    /// What the operator has decided, under its own reason.
    pub(super) fn denied(reason: String, message: &str) -> Self {
        Self { reason, status: Status::Configuration, message: one_line(message), denied: true }
    }

    pub(super) fn configuration(message: impl Into<String>) -> Self {
        Self::new("InvalidConfiguration", Status::Configuration, message)
    }

    pub(super) fn node_id(message: impl Into<String>) -> Self {
        Self::new("NodeIdMismatch", Status::Identity, message)
    }

    pub(super) fn cluster_id(message: impl Into<String>) -> Self {
        Self::new("ClusterIdMismatch", Status::Identity, message)
    }

    pub(super) fn disk(message: impl Into<String>) -> Self {
        Self::new("DirectoryNotUsable", Status::Disk, message)
    }

    /// What weighs most among the faults of a format names the reason, and the others are told with it.
    pub(super) fn of_faults(faults: &[Fault]) -> Self {
        let (reason, status) = match faults.iter().min_by_key(|fault| fault.kind()) {
            Some(Fault::OtherNode { .. }) => ("NodeIdMismatch", Status::Identity),
            Some(Fault::OtherCluster { .. }) => ("ClusterIdMismatch", Status::Identity),
            Some(Fault::ReservedId { .. } | Fault::SameId { .. }) => ("DirectoryIdInvalid", Status::Identity),
            Some(Fault::Levels(_)) => ("InvalidLevels", Status::Configuration),
            Some(Fault::Scram { .. } | Fault::ScramTooEarly(_)) => ("InvalidScram", Status::Configuration),
            Some(Fault::StaticAndDynamic(_) | Fault::QuorumUnsaid | Fault::NoDynamicQuorums(_)) => {
                ("QuorumKindMismatch", Status::Configuration)
            }
            Some(fault) => match fault.kind() {
                FaultKind::Disk => ("DirectoryNotUsable", Status::Disk),
                FaultKind::AlreadyFormatted => ("DirectoryNotUsable", Status::AlreadyFormatted),
                FaultKind::Identity | FaultKind::Configuration => {
                    ("InvalidConfiguration", Status::Configuration)
                }
            },
            None => ("InvalidConfiguration", Status::Configuration),
        };
        let messages: Vec<String> = faults.iter().map(ToString::to_string).collect();
        Self::new(reason, status, messages.join("; "))
    }
}

fn one_line(text: &str) -> String {
    text.split(['\n', '\r']).map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}
