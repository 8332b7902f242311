//! What a decision is made from besides the cluster itself: the declaration, checked for form, and what an
//! earlier pass left behind.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use crate::features::observed::{ClusterId, NodeId};
use crate::features::plan::DowngradePolicy;
use crate::features::target::TargetSpec;
use crate::features::{FeatureName, Level};

/// Whether a plan is carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// It is.
    #[default]
    Apply,
    /// It is worked out and shown, and nothing is changed.
    Plan,
}

/// What is declared for one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The only cluster that this may change; `None`: the first one that is seen.
    pub cluster_id: Option<ClusterId>,
    /// The levels that are wanted.
    pub target: TargetSpec,
    /// Whether levels may be lowered.
    pub downgrade: DowngradePolicy,
    /// The features whose one-way or far-reaching steps are consented to.
    pub allow_one_way: BTreeSet<FeatureName>,
    /// Whether the plan is carried out.
    pub mode: Mode,
    /// Whether nothing may be touched for now.
    pub paused: bool,
    /// How long every node must have supported the target before it is raised.
    pub soak: Duration,
}

/// Since when every node that could be asked has supported a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SoakState {
    /// The target that this is about.
    pub target: BTreeMap<FeatureName, Level>,
    /// When the last node was first seen to support it.
    pub since: Timestamp,
    /// The nodes that were seen to support it. A node that is away stays among them, so that a restart doesn't
    /// begin the soak anew; a node that is not among them does.
    pub nodes: BTreeSet<NodeId>,
}

/// One change of a level that the cluster accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The feature.
    pub feature: FeatureName,
    /// Its level before.
    pub from: Level,
    /// Its level after.
    pub to: Level,
    /// When it was accepted.
    pub at: Timestamp,
}

/// What earlier passes left behind, so that a restart of the operator forgets nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remembered {
    /// The cluster that was seen first.
    pub cluster_id: Option<ClusterId>,
    /// The last changes that the cluster accepted.
    pub accepted: Vec<Accepted>,
    /// A soak that has begun.
    pub soak: Option<SoakState>,
}
