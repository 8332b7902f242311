//! The ordered way from the finalized levels to a target.

use std::collections::BTreeSet;

use super::catalog::Catalog;
use super::observed::{Known, NodeId};
use super::target::Target;
use super::{FeatureName, FinalizedFeatures, Level};

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

/// One UpdateFeatures request. Holds only features whose level changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its steps, dependencies first on the way up and last on the way down.
    pub steps: Vec<Step>,
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
