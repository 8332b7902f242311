//! Which nodes keep a plan from being carried out, all of them at once, where Kafka's own refusal names one at a
//! time. A node whose range is unknown is never held against a plan by itself: Kafka's dry run decides that.

use std::collections::BTreeSet;
use std::fmt;

use super::refusal::NodeRefusal;
use crate::features::catalog::Catalog;
use crate::features::observed::{Known, Node, NodeId, Observed, QuorumPlace, Roles};
use crate::features::plan::Plan;
use crate::features::{FeatureName, Level, LevelRange};

/// Why a node blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BlockerWhy {
    /// It does not support the level.
    Unsupported,
    /// It is a voter that the active controller holds no registration of.
    NotRegistered,
    /// It is a controller that claims to support a `kraft.version` and does not move it.
    KraftVersionNotMoved,
    /// It is a ghost: a registered controller that is neither voter nor observer.
    Ghost,
}

/// One node that keeps one feature from one level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocker {
    /// The node.
    pub node: NodeId,
    /// What it does in the cluster.
    pub roles: Roles,
    /// Whether it is registered, where that is known.
    pub registered: Option<bool>,
    /// Whether it is a fenced broker, where that is known.
    pub fenced: Option<bool>,
    /// Whether it votes, where that is known.
    pub voter: Option<bool>,
    /// The feature.
    pub feature: FeatureName,
    /// The range it supports, where that is known.
    pub supported: Option<LevelRange>,
    /// The level it would have to support.
    pub needed: Level,
    /// Why it blocks.
    pub why: BlockerWhy,
}

impl Blocker {
    fn of(node: &Node, feature: &FeatureName, supported: Option<LevelRange>, needed: Level) -> Self {
        Self {
            node: node.id,
            roles: node.roles,
            registered: node.registered.value().copied(),
            fenced: node.fenced,
            voter: match node.quorum {
                QuorumPlace::Voter => Some(true),
                QuorumPlace::Observer | QuorumPlace::Neither => Some(false),
                QuorumPlace::Unknown => None,
            },
            feature: feature.clone(),
            supported,
            needed,
            why: if node.is_ghost() { BlockerWhy::Ghost } else { BlockerWhy::Unsupported },
        }
    }
}

/// Every node that is known not to support a level of the plan, downgrades included: Kafka asks the same of them.
///
/// A node that is known not to be registered is left out, since Kafka does not ask it either. A controller that only
/// pretends to move `kraft.version` blocks that step once its turn has come, and not the steps before it.
///
/// Kafka asks no controller below `metadata.version` 15, nor whether one really moves `kraft.version`: there a controller
/// whose range is unknown blocks too.
pub(super) fn against(catalog: &Catalog, plan: &Plan, observed: &Observed) -> Vec<Blocker> {
    let mut blockers = Vec::new();
    let mut first = plan.requests.first().into_iter().flat_map(|request| &request.steps);
    if let Some(step) = first.find(|step| step.feature.is_kraft_version()) {
        for node in observed.nodes.values().filter(|node| node.roles.controller) {
            if !node.supported.value().is_some_and(|supported| catalog.moves_kraft_version(supported)) {
                let range = node.range(&step.feature);
                let why = BlockerWhy::KraftVersionNotMoved;
                blockers.push(Blocker { why, ..Blocker::of(node, &step.feature, range, step.to) });
            }
        }
        if !blockers.is_empty() {
            return blockers;
        }
    }
    let finalized = observed.finalized.get(FeatureName::METADATA_VERSION);
    let kafka_checks_controllers = catalog.kafka_checks_controllers(finalized);
    for node in observed.nodes.values() {
        let ours_to_check = node.roles.controller && !kafka_checks_controllers;
        if node.registered == Known::Yes(false) && !ours_to_check {
            continue;
        }
        for step in plan.requests.iter().flat_map(|request| &request.steps) {
            match node.range(&step.feature) {
                Some(range) if range.contains(step.to) => {}
                Some(range) => blockers.push(Blocker::of(node, &step.feature, Some(range), step.to)),
                None if ours_to_check => blockers.push(Blocker::of(node, &step.feature, None, step.to)),
                None => {}
            }
        }
    }
    blockers
}

/// The nodes that a refusal stands for: the one it names, and those that are known to be in the same case, so
/// that nobody meets them one by one.
pub(super) fn named(refusal: &NodeRefusal, observed: &Observed) -> Vec<Blocker> {
    match refusal {
        NodeRefusal::Unsupported { node, broker, feature, supported, needed } => {
            let mut blockers = vec![named_node(*node, *broker, feature, *supported, *needed, observed)];
            if observed.nodes.get(node).is_some_and(Node::is_ghost) {
                let others = ghosts(observed).filter(|ghost| ghost.id != *node);
                blockers
                    .extend(others.map(|ghost| Blocker::of(ghost, feature, ghost.range(feature), *needed)));
            }
            blockers
        }
        NodeRefusal::NotRegistered { node, feature, needed } => {
            let unregistered = observed
                .nodes
                .values()
                .filter(|other| other.quorum == QuorumPlace::Voter && other.registered == Known::Yes(false))
                .filter(|other| other.id != *node)
                .map(|other| Blocker::of(other, feature, other.range(feature), *needed));
            let mut blockers = vec![named_node(*node, false, feature, None, *needed, observed)];
            blockers.extend(unregistered);
            for blocker in &mut blockers {
                blocker.why = BlockerWhy::NotRegistered;
            }
            blockers
        }
        NodeRefusal::SomeVoter => Vec::new(),
    }
}

/// A blocker for a node that a refusal names; a node that the pass did not see has the role it is named with.
fn named_node(
    id: NodeId,
    broker: bool,
    feature: &FeatureName,
    supported: Option<LevelRange>,
    needed: Level,
    observed: &Observed,
) -> Blocker {
    match observed.nodes.get(&id) {
        Some(node) => Blocker::of(node, feature, supported.or_else(|| node.range(feature)), needed),
        None => Blocker {
            node: id,
            roles: Roles { broker, controller: !broker },
            registered: None,
            fenced: None,
            voter: None,
            feature: feature.clone(),
            supported,
            needed,
            why: BlockerWhy::Unsupported,
        },
    }
}

/// Every ghost of the cluster.
fn ghosts(observed: &Observed) -> impl Iterator<Item = &Node> {
    observed.nodes.values().filter(|node| node.is_ghost())
}

/// The nodes that could not be asked and are not known to be unregistered, which Kafka may hold against a plan.
pub(super) fn unasked(observed: &Observed) -> Vec<NodeId> {
    let unasked = |node: &&Node| node.supported.value().is_none() && node.registered != Known::Yes(false);
    observed.nodes.values().filter(unasked).map(|node| node.id).collect()
}

/// The features that neither the catalog nor any node that could be asked knows: names that are probably misspelt.
pub(super) fn known_to_nobody<'a>(
    catalog: &Catalog,
    blockers: &'a [Blocker],
    observed: &Observed,
) -> BTreeSet<&'a FeatureName> {
    let unknown = |blocker: &&Blocker| {
        let mut ranges = observed.nodes.values().filter_map(|node| node.range(&blocker.feature));
        !catalog.knows(&blocker.feature) && ranges.all(|range| range == LevelRange::ABSENT)
    };
    blockers.iter().filter(unknown).map(|blocker| &blocker.feature).collect()
}

/// Blockers in words, node by node.
pub(super) struct InWords<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) blockers: &'a [Blocker],
}

/// A message names this many nodes in full; status has them all.
const NAMED: usize = 8;

impl fmt::Display for InWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by_node: Vec<&[Blocker]> = self.blockers.chunk_by(|a, b| a.node == b.node).collect();
        for (at, blockers) in by_node.iter().take(NAMED).enumerate() {
            let Some(first) = blockers.first() else { continue };
            let fenced = if first.fenced == Some(true) { "fenced " } else { "" };
            let separator = if at == 0 { "" } else { "; " };
            write!(f, "{separator}{fenced}{} {} ", first.roles, first.node)?;
            for (at, blocker) in blockers.iter().enumerate() {
                f.write_str(if at == 0 { "" } else { ", " })?;
                self.reason(blocker, f)?;
            }
        }
        match by_node.len().saturating_sub(NAMED) {
            0 => Ok(()),
            more => write!(f, "; and {more} more, see status.blockers"),
        }
    }
}

impl InWords<'_> {
    fn reason(&self, blocker: &Blocker, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let feature = &blocker.feature;
        let needed = self.catalog.level_text(feature, blocker.needed);
        match (blocker.why, blocker.supported) {
            (BlockerWhy::KraftVersionNotMoved, None) => f.write_str(
                "could not be asked whether it moves kraft.version, which Kafka before 4.1 does not",
            ),
            (BlockerWhy::KraftVersionNotMoved, _) => {
                f.write_str("says that it supports kraft.version 1, but Kafka before 4.1 does not move it")
            }
            (BlockerWhy::NotRegistered, _) => write!(f, "has not registered ({feature} {needed} is needed)"),
            (_, Some(range)) if range == LevelRange::ABSENT => {
                write!(f, "does not know {feature}, of which {needed} is needed")
            }
            (_, Some(range)) => write!(f, "supports {feature} {range}, of which {needed} is needed"),
            (_, None) => write!(f, "could not be asked about {feature}, of which {needed} is needed"),
        }
    }
}
