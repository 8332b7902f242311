//! What can speak against a format. Each fault has a kind, so that scripts need not read its text.

use std::path::PathBuf;

use crate::storage::checkpoint::Unwritable;
use crate::storage::levels::InvalidLevels;
use crate::storage::scram::InvalidScram;
use crate::storage::voters::InvalidVoters;

/// The kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// Configuration and arguments don't fit, or ask for what can't be.
    Configuration,
    /// A directory belongs to another cluster or node.
    Identity,
    /// A directory is formatted already.
    AlreadyFormatted,
    /// The disk refuses something.
    Disk,
}

/// Something that speaks against a format.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The levels can't be had.
    #[error(transparent)]
    Levels(InvalidLevels),
    /// The initial controllers can't be read.
    #[error(transparent)]
    Voters(#[from] InvalidVoters),
    /// A SCRAM user can't be read.
    #[error("--add-scram, number {number}: {error}")]
    Scram {
        /// Which one, from 1.
        number: usize,
        /// Why.
        error: InvalidScram,
    },
    /// SCRAM users below the metadata version that has them.
    #[error(
        "SCRAM users need metadata.version 3.5-IV2 or later, and it would be {0}: ask for a later release, or leave the users out"
    )]
    ScramTooEarly(String),
    /// Both kinds of quorum at once.
    #[error(
        "controller.quorum.voters makes the quorum static, and {0} makes it dynamic: remove the voters and set \
         controller.quorum.bootstrap.servers, or leave {0} out"
    )]
    StaticAndDynamic(&'static str),
    /// A voter that is no controller.
    #[error("--standalone makes this node the only voter, but process.roles does not make it a controller")]
    StandaloneBroker,
    /// No address for the only voter.
    #[error(
        "--standalone needs a listener that controller.listener.names names first, and listeners has none"
    )]
    NoControllerListener,
    /// A controller that nobody told how its quorum begins.
    #[error(
        "without controller.quorum.voters the quorum is dynamic, so a controller needs one of --standalone, \
         --initial-controllers and --no-initial-controllers"
    )]
    QuorumUnsaid,
    /// A dynamic quorum before Kafka 3.9.
    #[error("Kafka {0} has no dynamic quorums: set controller.quorum.voters")]
    NoDynamicQuorums(&'static str),
    /// The cluster's id is missing.
    #[error("--cluster-id is missing{}", if *.bootstraps {
        ": this controller is one that the cluster begins with, so the id can't come from elsewhere"
    } else {
        ": give it, or --bootstrap-server or --bootstrap-controller to take it from the running cluster"
    })]
    NoClusterId {
        /// Whether the cluster begins with this node.
        bootstraps: bool,
    },
    /// A directory of another cluster.
    #[error("{} belongs to cluster {found:?}, not to {wanted:?}: correct the id, or use another directory", .path.display())]
    OtherCluster {
        /// The directory.
        path: PathBuf,
        /// The cluster that it belongs to.
        found: String,
        /// The cluster as asked for.
        wanted: String,
    },
    /// A directory of another node.
    #[error("{} belongs to node {found}, but node.id is {wanted}: correct node.id, or use another directory", .path.display())]
    OtherNode {
        /// The directory.
        path: PathBuf,
        /// The node that it belongs to.
        found: i32,
        /// The node as configured.
        wanted: i32,
    },
    /// A directory with an id that none can have.
    #[error("{} has the directory id {id}, which Kafka keeps for itself", .path.display())]
    ReservedId {
        /// The directory.
        path: PathBuf,
        /// Its id.
        id: String,
    },
    /// Two directories with one id.
    #[error("{} and {} both have the directory id {id}: one is a copy of the other, and only one can be used", .first.display(), .second.display())]
    SameId {
        /// One of them.
        first: PathBuf,
        /// The other.
        second: PathBuf,
        /// Their id.
        id: String,
    },
    /// A directory is formatted, and that was not asked to be fine.
    #[error("{} is already formatted; --ignore-formatted leaves it alone and formats the others", .0.display())]
    AlreadyFormatted(PathBuf),
    /// None of the directories can be read.
    #[error("no directory is left to format; these can't be read: {0}")]
    NoneReadable(String),
    /// A directory can't be written to.
    #[error("{0}")]
    NotWritable(String),
    /// A record can't be put together.
    #[error(transparent)]
    Unwritable(#[from] Unwritable),
    /// Somebody else is formatting.
    #[error("{} is being formatted by another process: wait until it has ended", .0.display())]
    Busy(PathBuf),
    /// Somebody else has formatted in the meantime.
    #[error("{} was formatted by another process in the meantime", .0.display())]
    Overtaken(PathBuf),
    /// The disk refuses something.
    #[error("{} could not be {doing}: {error}", .path.display())]
    Disk {
        /// What was to be done.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
}

impl Fault {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> FaultKind {
        match self {
            Self::OtherCluster { .. }
            | Self::OtherNode { .. }
            | Self::ReservedId { .. }
            | Self::SameId { .. } => FaultKind::Identity,
            Self::AlreadyFormatted(_) | Self::Overtaken(_) => FaultKind::AlreadyFormatted,
            Self::NoneReadable(_) | Self::NotWritable(_) | Self::Busy(_) | Self::Disk { .. } => {
                FaultKind::Disk
            }
            _ => FaultKind::Configuration,
        }
    }
}
