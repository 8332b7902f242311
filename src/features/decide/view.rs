//! What a pass saw of each feature, beside what is declared for it: the part of a decision that people read.

use std::collections::BTreeSet;

use super::blockers::Blocker;
use crate::features::observed::{Node, Observed};
use crate::features::plan::Plan;
use crate::features::target::Target;
use crate::features::{FeatureName, Level, LevelRange};

/// Where a feature stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeatureState {
    /// Nobody declared it here; it is only shown.
    NotDeclared,
    /// It has the declared level.
    AtTarget,
    /// A step of the plan moves it.
    Pending,
    /// A step of the plan would move it, and a node does not support the level.
    Blocked,
    /// Its step waits for consent.
    Held,
    /// It is above the release's default and is kept there.
    AboveTarget,
    /// It differs from the target and no plan moves it; the conditions say why.
    Differs,
}

/// One feature of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeatureView {
    /// The feature.
    pub name: FeatureName,
    /// Its finalized level.
    pub finalized: Level,
    /// The declared level, if one is declared.
    pub target: Option<Level>,
    /// The levels that every node that could be asked supports; `None` if none could be, or they have none in
    /// common.
    pub supported: Option<LevelRange>,
    /// Where it stands.
    pub state: FeatureState,
}

/// The levels of one feature that every node that could be asked supports.
pub(super) fn supported_by_all(observed: &Observed, feature: &FeatureName) -> Option<LevelRange> {
    observed
        .nodes
        .values()
        .filter_map(|node| node.range(feature))
        .reduce(|all, range| LevelRange { min: all.min.max(range.min), max: all.max.min(range.max) })
        .filter(|all| all.min <= all.max)
}

/// Every feature that the cluster, a node, or the target names.
pub(super) fn features(
    observed: &Observed,
    target: Option<&Target>,
    plan: &Plan,
    blockers: &[Blocker],
) -> Vec<FeatureView> {
    let by_nodes = observed.nodes.values().filter_map(|node: &Node| node.supported.value());
    let names: BTreeSet<&FeatureName> = by_nodes
        .flat_map(|supported| supported.keys())
        .chain(observed.finalized.iter().map(|(feature, _)| feature))
        .chain(target.iter().flat_map(|target| target.levels.keys()))
        .collect();
    names
        .into_iter()
        .map(|name| {
            let finalized = observed.finalized.get(name.as_str());
            let target = target.and_then(|target| target.levels.get(name)).copied();
            FeatureView {
                name: name.clone(),
                finalized,
                target,
                supported: supported_by_all(observed, name),
                state: state(name, finalized, target, plan, blockers),
            }
        })
        .collect()
}

fn state(
    name: &FeatureName,
    finalized: Level,
    target: Option<Level>,
    plan: &Plan,
    blockers: &[Blocker],
) -> FeatureState {
    let Some(target) = target else { return FeatureState::NotDeclared };
    let pending = plan.requests.iter().flat_map(|request| &request.steps).any(|step| step.feature == *name);
    if finalized == target {
        FeatureState::AtTarget
    } else if pending && blockers.iter().any(|blocker| blocker.feature == *name) {
        FeatureState::Blocked
    } else if pending {
        FeatureState::Pending
    } else if plan.held.iter().any(|held| held.step.feature == *name) {
        FeatureState::Held
    } else if plan.above_target.iter().any(|above| above.feature == *name) {
        FeatureState::AboveTarget
    } else {
        FeatureState::Differs
    }
}
