//! The command-line tools: drop-in replacements for Kafka's own, without a JVM. They read arguments, ask the rooms below,
//! and print; an exit status says which kind of thing went wrong, so that scripts need not read texts.

mod arguments;
pub mod storage;

use std::process::ExitCode;

/// How a tool ends. Kafka's tools know only 0 and 1; whatever is not 0 there is not 0 here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It did what was asked.
    Done,
    /// It looked, and what it found is not as it should be.
    Problems,
    /// The arguments are out of form.
    Usage,
    /// Configuration or arguments ask for what can't be.
    Configuration,
    /// A directory is formatted already.
    AlreadyFormatted,
    /// A directory belongs to another cluster or node.
    Identity,
    /// A file or a disk refuses something.
    Disk,
    /// A cluster could not be reached.
    Unreachable,
}

impl Status {
    /// The number that a shell sees.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Problems => 1,
            Self::Usage => 2,
            Self::Configuration => 3,
            Self::AlreadyFormatted => 4,
            Self::Identity => 5,
            Self::Disk => 6,
            Self::Unreachable => 7,
        }
    }
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        Self::from(status.number())
    }
}

/// Why a tool could not do what was asked: the status, and a line for each thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    status: Status,
    messages: Vec<String>,
}

impl Failure {
    fn new(status: Status, message: impl Into<String>) -> Self {
        Self { status, messages: vec![message.into()] }
    }
}
