//! What is counted and measured. Every label has a fixed set of values, so that no text of a cluster and no name of a
//! resource ever makes a series.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Mutex;
use std::time::Instant;

use jiff::Timestamp;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::locked;

/// How an UpdateFeatures request came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
pub enum Update {
    /// The cluster took it.
    Accepted,
    /// The cluster refused it.
    Refused,
    /// It was not sent, or its answer did not arrive.
    Failed,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct UpdateLabels {
    dry_run: bool,
    outcome: Update,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reason {
    reason: &'static str,
}

/// The passes that are under way, by number, and when each began.
#[derive(Debug, Default)]
struct UnderWay {
    last: u64,
    begun: BTreeMap<u64, i64>,
}

/// The metrics of one replica.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    passes: Family<Outcome, Counter>,
    duration: Histogram,
    updates: Family<UpdateLabels, Counter>,
    resources: Family<Reason, Gauge>,
    reasons: Mutex<HashMap<String, &'static str>>,
    oldest: Gauge,
    under_way: Mutex<UnderWay>,
    lease: Gauge,
}

/// From a cluster that answers at once to one that uses up every time-out.
const DURATIONS: [f64; 9] = [0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0, 30.0, 90.0];

/// The outcome of a pass that came to no decision: the API server failed it, or the operator ended.
const BROKEN_OFF: &str = "BrokenOff";

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("kafka_features");
        let (passes, updates, resources) = (Family::default(), Family::default(), Family::default());
        let duration = Histogram::new(DURATIONS);
        let (oldest, lease) = (Gauge::default(), Gauge::default());
        registry.register("passes", "Passes over resources, by the reason they ended with", passes.clone());
        registry.register("pass_duration_seconds", "How long a pass took", duration.clone());
        registry.register("updates", "UpdateFeatures requests to Kafka", updates.clone());
        registry.register(
            "resources",
            "Resources, by the reason of their Ready condition",
            resources.clone(),
        );
        registry.register(
            "oldest_pass_start_timestamp_seconds",
            "When the oldest pass that is still under way began; 0 if none is",
            oldest.clone(),
        );
        registry.register("lease_held", "Whether this replica holds the lease", lease.clone());
        Self {
            registry,
            passes,
            duration,
            updates,
            resources,
            reasons: Mutex::default(),
            oldest,
            under_way: Mutex::default(),
            lease,
        }
    }
}

impl Metrics {
    /// A pass begins; it ends with the value.
    pub fn begin_pass(&self) -> PassUnderWay<'_> {
        let mut under_way = locked(&self.under_way);
        under_way.last += 1;
        let number = under_way.last;
        under_way.begun.insert(number, Timestamp::now().as_second());
        self.show_oldest(&under_way);
        PassUnderWay { metrics: self, number, begun: Instant::now(), outcome: BROKEN_OFF }
    }

    /// A request was made.
    pub fn count_update(&self, dry_run: bool, outcome: Update) {
        self.updates.get_or_create(&UpdateLabels { dry_run, outcome }).inc();
    }

    /// A resource's Ready condition has a reason.
    pub fn place(&self, uid: &str, reason: &'static str) {
        let before = locked(&self.reasons).insert(uid.to_owned(), reason);
        if let Some(before) = before {
            self.resources.get_or_create(&Reason { reason: before }).dec();
        }
        self.resources.get_or_create(&Reason { reason }).inc();
    }

    /// Forgets resources that are gone.
    pub fn keep(&self, exists: impl Fn(&str) -> bool) {
        locked(&self.reasons).retain(|uid, reason| {
            let kept = exists(uid);
            if !kept {
                self.resources.get_or_create(&Reason { reason }).dec();
            }
            kept
        });
    }

    /// The lease was taken, or is held no more.
    pub fn show_lease(&self, held: bool) {
        self.lease.set(held.into());
    }

    /// All of them, in the OpenMetrics text format.
    ///
    /// # Errors
    /// None that is known: text can always be added to text.
    pub fn write(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        text::encode(&mut text, &self.registry)?;
        Ok(text)
    }

    fn show_oldest(&self, under_way: &UnderWay) {
        self.oldest.set(under_way.begun.values().min().copied().unwrap_or(0));
    }
}

/// A pass that is under way. However it ends, be it cancelled, it is counted.
#[derive(Debug)]
pub struct PassUnderWay<'a> {
    metrics: &'a Metrics,
    number: u64,
    begun: Instant,
    outcome: &'static str,
}

impl PassUnderWay<'_> {
    /// What it came to.
    pub fn end(mut self, outcome: &'static str) {
        self.outcome = outcome;
    }
}

impl Drop for PassUnderWay<'_> {
    fn drop(&mut self) {
        let mut under_way = locked(&self.metrics.under_way);
        under_way.begun.remove(&self.number);
        self.metrics.show_oldest(&under_way);
        self.metrics.duration.observe(self.begun.elapsed().as_secs_f64());
        self.metrics.passes.get_or_create(&Outcome { outcome: self.outcome }).inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(metrics: &Metrics, line: &str) -> bool {
        let text = metrics.write().unwrap();
        text.lines().any(|of| of == line)
    }

    #[test]
    fn a_pass_is_counted_however_it_ends() {
        let metrics = Metrics::default();
        let first = metrics.begin_pass();
        let second = metrics.begin_pass();
        assert!(!has(&metrics, "kafka_features_oldest_pass_start_timestamp_seconds 0"));
        first.end("Reached");
        drop(second);
        assert!(has(&metrics, "kafka_features_passes_total{outcome=\"Reached\"} 1"));
        assert!(has(&metrics, "kafka_features_passes_total{outcome=\"BrokenOff\"} 1"));
        assert!(has(&metrics, "kafka_features_pass_duration_seconds_count 2"));
        assert!(has(&metrics, "kafka_features_oldest_pass_start_timestamp_seconds 0"));
    }

    #[test]
    fn each_resource_is_counted_once_under_its_last_reason_until_it_goes() {
        let metrics = Metrics::default();
        metrics.place("a", "Acting");
        metrics.place("b", "Reached");
        metrics.place("a", "Reached");
        assert!(has(&metrics, "kafka_features_resources{reason=\"Acting\"} 0"));
        assert!(has(&metrics, "kafka_features_resources{reason=\"Reached\"} 2"));
        metrics.keep(|uid| uid == "b");
        assert!(has(&metrics, "kafka_features_resources{reason=\"Reached\"} 1"));
    }

    #[test]
    fn requests_are_counted_by_kind_and_outcome() {
        let metrics = Metrics::default();
        metrics.count_update(true, Update::Accepted);
        metrics.count_update(false, Update::Failed);
        metrics.show_lease(true);
        assert!(has(&metrics, "kafka_features_updates_total{dry_run=\"true\",outcome=\"Accepted\"} 1"));
        assert!(has(&metrics, "kafka_features_updates_total{dry_run=\"false\",outcome=\"Failed\"} 1"));
        assert!(has(&metrics, "kafka_features_lease_held 1"));
    }
}
