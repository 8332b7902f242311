//! One pass over a cluster and its patience: until when it lasts, how long one request may take in it, and what
//! is tried a second time.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
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

    /// Does something that changes nothing, and again after a short random wait where it failed in passing.
    pub(super) async fn retry<T>(&self, mut read: impl AsyncFnMut() -> Result<T, Error>) -> Result<T, Error> {
        let waits = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(100))
            .with_max_times(2)
            .with_jitter();
        for wait in waits.build() {
            match read().await {
                Err(error) if error.is_momentary() && Instant::now() + wait < self.end => {
                    tracing::debug!(%error, "trying again");
                    tokio::time::sleep(wait).await;
                }
                done => return done,
            }
        }
        read().await
    }
}
