//! Which of several replicas may act: the one that holds the Lease. Every take and every renewal carries the
//! resourceVersion that was read, so of two that try, the API server lets one win. No clock is compared with another
//! machine's: a holder counts from before it asked, a standby from after it saw, so the first has given up before the
//! second begins.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease as Object, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, ObjectMeta, PostParams};
use rustix::time::{ClockId, clock_gettime};

use super::{Error, in_time};
use crate::kafka::Permit;
use crate::telemetry::{Phase, Telemetry};

/// Where the lease is, and how long it lasts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The namespace of the Lease object.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// This replica; no other may ever have the same name, not even after a restart.
    pub holder: String,
    /// How long the lease lasts after each renewal, in whole seconds.
    pub duration: Duration,
}

impl Terms {
    /// Two renewals may fail before the lease runs out.
    fn renewal(&self) -> Duration {
        self.duration / 3
    }

    fn retry(&self) -> Duration {
        self.duration / 8
    }

    /// What must be left of the lease when a change is sent, for it to arrive before another may act.
    fn spare(&self) -> Duration {
        self.duration / 5
    }
}

/// Why a replica may act no more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// Another replica has it.
    #[error("the lease {0} was taken by {1}; ending, to be started again as a standby")]
    Taken(String, String),
    /// It could not be renewed in time, or this process stood still.
    #[error("the lease {0} ran out before it was renewed; ending, to be started again as a standby")]
    RanOut(String),
    /// Somebody deleted it.
    #[error("the lease {0} was deleted; ending, to be started again as a standby")]
    Deleted(String),
}

/// How long this replica may act.
#[derive(Debug)]
pub(super) struct Tenure {
    /// The end, in nanoseconds since boot; 0 is never, the greatest number for ever.
    until: AtomicU64,
    spare: Duration,
}

impl Tenure {
    /// For the only replica.
    pub(super) fn unlimited() -> Arc<Self> {
        Arc::new(Self { until: AtomicU64::new(u64::MAX), spare: Duration::ZERO })
    }

    fn none_yet(spare: Duration) -> Arc<Self> {
        Arc::new(Self { until: AtomicU64::new(0), spare })
    }

    fn set_until(&self, end: Duration) {
        self.until.store(u64::try_from(end.as_nanos()).unwrap_or(0), Ordering::SeqCst);
    }

    fn end(&self) {
        self.until.store(0, Ordering::SeqCst);
    }

    /// What is left at a moment.
    fn left(&self, now: Duration) -> Duration {
        Duration::from_nanos(self.until.load(Ordering::SeqCst)).saturating_sub(now)
    }
}

impl Permit for Tenure {
    fn holds(&self) -> bool {
        self.left(now()) > self.spare
    }
}

/// The time since boot. Unlike the usual monotonic clock it goes on while the machine sleeps, in which others don't.
fn now() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    let whole = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(whole, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// What another replica was seen to hold, and since when it has not changed.
struct Seen {
    spec: LeaseSpec,
    since: Duration,
}

impl Seen {
    /// Whether its holder has had the time that it gave itself.
    fn has_run_out(&self, now: Duration) -> bool {
        let lasts = self.spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        now.saturating_sub(self.since) > Duration::from_secs(lasts.unwrap_or(0))
    }
}

/// What came of one try to take the lease.
enum Try {
    Taken,
    /// In words.
    HeldBy(String),
}

/// This replica's part in the lease.
pub(super) struct Lease {
    api: Api<Object>,
    terms: Terms,
    tenure: Arc<Tenure>,
    /// As it was read or written last.
    object: Object,
    seen: Option<Seen>,
}

impl Lease {
    pub(super) fn new(client: kube::Client, terms: Terms) -> Self {
        Self {
            api: Api::namespaced(client, &terms.namespace),
            tenure: Tenure::none_yet(terms.spare()),
            terms,
            object: Object::default(),
            seen: None,
        }
    }

    pub(super) fn tenure(&self) -> Arc<Tenure> {
        Arc::clone(&self.tenure)
    }

    /// Waits until this replica has the lease.
    pub(super) async fn take(&mut self, telemetry: &Telemetry) {
        loop {
            let phase = match self.try_take().await {
                Ok(Try::Taken) => break,
                Ok(Try::HeldBy(who)) => Phase::StandingBy(format!("{who} the lease {}", self.name())),
                Err(error) => {
                    tracing::warn!(%error, lease = self.name(), "the lease can't be taken, trying again");
                    Phase::WaitingFor(format!("the lease {}: {error}", self.name()))
                }
            };
            if telemetry.enter(phase.clone()) {
                tracing::info!("{phase}");
            }
            tokio::time::sleep(self.terms.retry()).await;
        }
        tracing::info!(lease = self.name(), holder = self.terms.holder, "holding the lease");
        telemetry.metrics.show_lease(true);
    }

    async fn try_take(&mut self) -> Result<Try, Error> {
        let found = in_time("read the lease", self.api.get_opt(&self.terms.name)).await?;
        let seen_at = now();
        let before = found.clone().and_then(|object| object.spec).unwrap_or_default();
        let holder = before.holder_identity.clone().filter(|holder| !holder.is_empty());
        if let Some(other) = holder.filter(|holder| *holder != self.terms.holder) {
            match &self.seen {
                Some(seen) if seen.spec == before && seen.has_run_out(seen_at) => {}
                Some(seen) if seen.spec == before => return Ok(Try::HeldBy(format!("{other} holds"))),
                _ => {
                    self.seen = Some(Seen { spec: before, since: seen_at });
                    return Ok(Try::HeldBy(format!("{other} holds")));
                }
            }
        }
        let changes = before.holder_identity.as_ref() != Some(&self.terms.holder);
        let transitions = before.lease_transitions.unwrap_or(0);
        let spec = LeaseSpec {
            acquire_time: Some(MicroTime(Timestamp::now())),
            lease_transitions: Some(transitions.saturating_add(i32::from(found.is_some() && changes))),
            ..before
        };
        let exists = found.is_some();
        let metadata = found.map_or_else(
            || ObjectMeta { name: Some(self.terms.name.clone()), ..ObjectMeta::default() },
            |object| object.metadata,
        );
        self.object = Object { metadata, spec: Some(spec) };
        match self.write(exists).await {
            Ok(()) => Ok(Try::Taken),
            Err(Error::Api { source, .. }) if is(&source, CONFLICT) => {
                Ok(Try::HeldBy("another has just taken".to_owned()))
            }
            Err(error) => Err(error),
        }
    }

    /// Writes the lease as held by this replica from now on, over nothing but what was read.
    async fn write(&mut self, exists: bool) -> Result<(), Error> {
        let asked_at = now();
        let mut object = self.object.clone();
        let spec = object.spec.get_or_insert_default();
        spec.holder_identity = Some(self.terms.holder.clone());
        spec.lease_duration_seconds = Some(i32::try_from(self.terms.duration.as_secs()).unwrap_or(i32::MAX));
        spec.renew_time = Some(MicroTime(Timestamp::now()));
        let params = PostParams::default();
        self.object = if exists {
            in_time("renew the lease", self.api.replace(&self.terms.name, &params, &object)).await?
        } else {
            in_time("create the lease", self.api.create(&params, &object)).await?
        };
        self.tenure.set_until(asked_at + self.terms.duration);
        Ok(())
    }

    /// Renews the lease for as long as it is held, and says how it was lost.
    pub(super) async fn keep(&mut self) -> Lost {
        let lost = loop {
            tokio::time::sleep(self.terms.renewal()).await;
            if let Err(lost) = self.renew().await {
                break lost;
            }
        };
        self.tenure.end();
        lost
    }

    async fn renew(&mut self) -> Result<(), Lost> {
        loop {
            let left = self.tenure.left(now());
            if left.is_zero() {
                return Err(Lost::RanOut(self.name()));
            }
            // an answer that takes too long may mean a renewal all the same: the next try then meets our own
            let patience = left.min(self.terms.renewal());
            match tokio::time::timeout(patience, self.write(true)).await {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(Error::Api { source, .. })) if is(&source, CONFLICT) => {
                    if self.is_still_ours(patience).await? {
                        continue;
                    }
                }
                Ok(Err(Error::Api { source, .. })) if is(&source, NOT_FOUND) => {
                    return Err(Lost::Deleted(self.name()));
                }
                Ok(Err(error)) => tracing::warn!(%error, "the lease could not be renewed, trying again"),
                Err(_) => tracing::warn!(?patience, "no answer to the renewal of the lease, trying again"),
            }
            tokio::time::sleep(self.terms.retry().min(left)).await;
        }
    }

    /// Reads the lease after somebody changed it; false if it can't be read now.
    async fn is_still_ours(&mut self, patience: Duration) -> Result<bool, Lost> {
        match tokio::time::timeout(patience, self.api.get_opt(&self.terms.name)).await {
            Ok(Ok(Some(object))) => {
                let holder = object.spec.as_ref().and_then(|spec| spec.holder_identity.clone());
                if holder.as_ref() != Some(&self.terms.holder) {
                    return Err(Lost::Taken(self.name(), holder.unwrap_or_else(|| "nobody".to_owned())));
                }
                self.object = object;
                Ok(true)
            }
            Ok(Ok(None)) => Err(Lost::Deleted(self.name())),
            Ok(Err(_)) | Err(_) => Ok(false),
        }
    }

    /// Lets go of the lease, so that another need not wait until it runs out.
    pub(super) async fn release(mut self) {
        self.tenure.end();
        let spec = self.object.spec.get_or_insert_default();
        spec.holder_identity = None;
        spec.renew_time = Some(MicroTime(Timestamp::now()));
        let params = PostParams::default();
        let released = self.api.replace(&self.terms.name, &params, &self.object);
        match tokio::time::timeout(self.terms.renewal(), released).await {
            Ok(Ok(_)) => tracing::info!(lease = self.name(), "released the lease"),
            Ok(Err(error)) => tracing::warn!(%error, "the lease could not be released and will run out"),
            Err(_) => tracing::warn!("no answer to the release of the lease; it will run out"),
        }
    }

    fn name(&self) -> String {
        format!("{}/{}", self.terms.namespace, self.terms.name)
    }
}

const CONFLICT: u16 = 409;
const NOT_FOUND: u16 = 404;

fn is(error: &kube::Error, code: u16) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_tenure_holds_until_its_end_less_what_a_change_needs() {
        let tenure = Tenure::none_yet(3 * SECOND);
        assert!(!tenure.holds());
        tenure.set_until(now() + 60 * SECOND);
        assert!(tenure.holds());
        tenure.set_until(now() + 2 * SECOND);
        assert!(!tenure.holds(), "what is left is too short to send anything");
        tenure.set_until(now() + 60 * SECOND);
        tenure.end();
        assert!(!tenure.holds());
        assert!(Tenure::unlimited().holds());
    }

    #[test]
    fn anothers_lease_has_run_out_once_it_was_seen_unchanged_for_its_own_duration() {
        let spec = LeaseSpec { lease_duration_seconds: Some(15), ..LeaseSpec::default() };
        let seen = Seen { spec, since: 100 * SECOND };
        assert!(!seen.has_run_out(100 * SECOND));
        assert!(!seen.has_run_out(115 * SECOND));
        assert!(seen.has_run_out(116 * SECOND));
    }
}
