//! How the operator is doing, for those who run it: whether it is ready, and its metrics. The web server reads nothing
//! but what is kept here, and what is kept here decides nothing.

mod metrics;
mod server;

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use metrics::{Metrics, PassUnderWay, Update};
pub use server::serve;

/// Where a replica stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It can't begin before something is there.
    WaitingFor(String),
    /// Another replica holds the lease.
    StandingBy(String),
    /// It looks after resources.
    Acting,
}

impl Phase {
    /// A standby is as ready as it will be: a roll-out must not wait for it to become the one that acts.
    fn is_ready(&self) -> bool {
        !matches!(self, Self::WaitingFor(_))
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WaitingFor(what) => write!(f, "not ready: waiting for {what}"),
            Self::StandingBy(why) => write!(f, "ready: standing by, {why}"),
            Self::Acting => f.write_str("ready: looking after resources"),
        }
    }
}

/// What is known of this replica.
#[derive(Debug)]
pub struct Telemetry {
    phase: Mutex<Phase>,
    /// What is counted and measured.
    pub metrics: Metrics,
}

impl Default for Telemetry {
    fn default() -> Self {
        let phase = Mutex::new(Phase::WaitingFor("the API server".to_owned()));
        Self { phase, metrics: Metrics::default() }
    }
}

impl Telemetry {
    /// Keeps where the replica stands now, and says whether that is new.
    pub fn enter(&self, phase: Phase) -> bool {
        let mut current = locked(&self.phase);
        let new = *current != phase;
        *current = phase;
        new
    }

    /// Where the replica stands.
    #[must_use]
    pub fn phase(&self) -> Phase {
        locked(&self.phase).clone()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
