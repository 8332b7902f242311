//! One pass over a cluster and its patience: until when it lasts, how long one request may take in it, and what
//! is tried a second time.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use tokio::time::Instant;

use super::Timeouts;
use super::error::Error;

/// A pass that is under way.
pub(super) struct Pass {
    request: Duration,
    end: Instant,
}

impl Pass {
    pub(super) fn begin(timeouts: Timeouts) -> Self {
        Self { request: timeouts.request, end: Instant::now() + timeouts.pass }
    }

    /// When the answer to a request that is sent now must be there.
    pub(super) fn next_deadline(&self) -> Instant {
        self.end.min(Instant::now() + self.request)
    }

    /// How long a request that is sent now may take.
    pub(super) fn patience(&self) -> Duration {
        self.next_deadline().saturating_duration_since(Instant::now())
    }

    /// The tries that one thing is worth which changes nothing.
    pub(super) fn tries(&self) -> Tries {
        let waits = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(100))
            .with_max_times(2)
            .with_jitter();
        Tries { waits: waits.build(), end: self.end }
    }
}

/// What is left of the tries.
pub(super) struct Tries {
    waits: ExponentialBackoff,
    end: Instant,
}

impl Tries {
    /// Whether to try again; waits a short random time before it says so. Only where it failed in passing.
    pub(super) async fn again<T>(&mut self, result: &Result<T, Error>) -> bool {
        let Err(error) = result else { return false };
        let Some(wait) = self.waits.next() else { return false };
        if !error.is_momentary() || Instant::now() + wait >= self.end {
            return false;
        }
        tracing::debug!(%error, "trying again");
        tokio::time::sleep(wait).await;
        true
    }
}
