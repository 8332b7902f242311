//! The ordered way from the finalized levels to a target: which features move, in which requests, what is held for
//! want of consent, and why there is no way where there is none. It never plans a step that would leave a finalized
//! feature without what it depends on, though Kafka's own controller does not look when `metadata.version` is lowered.

mod error;
mod order;
#[cfg(test)]
mod properties;
mod steps;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;

use super::catalog::Catalog;
use super::observed::{Known, NodeId};
use super::target::Target;
use super::{FeatureName, FinalizedFeatures, Level};

pub use error::PlanError;

/// Whether finalized levels may be lowered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DowngradePolicy {
    /// Never.
    #[default]
    Never,
    /// Where Kafka can do it without loss of metadata.
    Safe,
}

/// Which way a level moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To a higher level.
    Up,
    /// To a lower level.
    Down,
}

/// One feature's move from one level to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The feature.
    pub feature: FeatureName,
    /// Its finalized level before.
    pub from: Level,
    /// Its finalized level after.
    pub to: Level,
    /// Which way it moves.
    pub direction: Direction,
    /// Whether there is no way back to `from` once it is done.
    pub one_way: bool,
    /// What a person should know about it: why there is no way back, what else it changes.
    pub note: Option<String>,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = |level| Catalog::kafka().level_text(&self.feature, level);
        write!(f, "{} {} -> {}", self.feature, level(self.from), level(self.to))
    }
}

/// One UpdateFeatures request. Holds only features whose level changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its steps, dependencies first on the way up and last on the way down.
    pub steps: Vec<Step>,
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.steps.iter().enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            write!(f, "{comma}{step}")?;
        }
        Ok(())
    }
}

/// Why a step of the target is not in the plan's requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeldWhy {
    /// It needs consent in `allowOneWay`; the text says what it does.
    Consent(String),
    /// It depends on a step that is held.
    DependsOnHeld(FeatureName),
}

/// A step that is held back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The step.
    pub step: Step,
    /// Why it is held.
    pub why: HeldWhy,
}

/// A feature of a release target that is finalized above the release's default and is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AboveTarget {
    /// The feature.
    pub feature: FeatureName,
    /// Its finalized level.
    pub finalized: Level,
    /// The release's default.
    pub target: Level,
}

/// The way to a target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The requests, to be sent in this order.
    pub requests: Vec<Request>,
    /// What is held back.
    pub held: Vec<Held>,
    /// What is above the target and kept.
    pub above_target: Vec<AboveTarget>,
}

/// How steps are put together into requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Batching {
    /// In as few requests as Kafka takes them; `kraft.version` is always alone and last.
    #[default]
    Together,
    /// One feature a request, in dependency order; `kraft.version` last.
    Ordered,
}

/// What a plan is made from.
#[derive(Clone, Copy, Debug)]
pub struct PlanInput<'a> {
    /// The catalog.
    pub catalog: &'a Catalog,
    /// The finalized levels.
    pub finalized: &'a FinalizedFeatures,
    /// The target.
    pub target: &'a Target,
    /// Whether levels may be lowered.
    pub downgrade: DowngradePolicy,
    /// Features whose one-way or far-reaching steps are consented to.
    pub allow_one_way: &'a BTreeSet<FeatureName>,
    /// The brokers with a `min.insync.replicas` of their own.
    pub min_insync_overrides: &'a Known<BTreeSet<NodeId>>,
    /// How steps are put together.
    pub batching: Batching,
}

impl Plan {
    /// The levels of a cluster after the plan's requests.
    #[must_use]
    pub fn result(&self, finalized: &FinalizedFeatures) -> FinalizedFeatures {
        let mut after = finalized.clone();
        for request in &self.requests {
            request.apply(&mut after);
        }
        after
    }
}

impl Request {
    /// Sets the levels that the request sets.
    pub fn apply(&self, finalized: &mut FinalizedFeatures) {
        for step in &self.steps {
            finalized.set(step.feature.clone(), step.to);
        }
    }
}

/// Plans the way to the target.
///
/// # Errors
/// If policy forbids a step, Kafka could not do it without loss, or a dependency stands in its way that the target
/// does not own. Then nothing of the target is planned.
pub fn plan(input: &PlanInput<'_>) -> Result<Plan, PlanError> {
    let steps::Steps { moving, held, above_target } = steps::choose(input)?;
    let requests = order::arrange(input.catalog, moving, input.batching);
    Ok(Plan { requests, held, above_target })
}
