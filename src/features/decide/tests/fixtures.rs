//! A cluster of three combined nodes of Kafka 4.4 at the levels of 3.9, and what tests change about it.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;

use super::super::*;
use crate::features::observed::{Known, Node, NodeId, Quorum, QuorumPlace, Roles};
use crate::features::plan::DowngradePolicy;
use crate::features::target::{DeclaredLevel, TargetSpec};
use crate::features::{FeatureName, Level, LevelRange, SupportedFeatures};

pub(super) fn feature(name: &str) -> FeatureName {
    FeatureName::new(name).unwrap()
}

pub(super) fn software(release: &str) -> SupportedFeatures {
    let mut all = Catalog::kafka().software().iter();
    all.find(|software| software.release == release).unwrap().supported.clone()
}

pub(super) fn node(id: i32) -> Node {
    Node {
        id: NodeId(id),
        roles: Roles { broker: true, controller: true },
        registered: Known::Yes(true),
        fenced: Some(false),
        quorum: QuorumPlace::Voter,
        supported: Known::Yes(software("4.4")),
        lists_all_features: true,
    }
}

/// Everything of a situation, owned, so that tests can change it.
#[derive(Clone, Debug)]
pub(super) struct Scene {
    pub(super) catalog: Catalog,
    pub(super) spec: Spec,
    pub(super) remembered: Remembered,
    pub(super) observed: Result<Observed, Unreachable>,
    pub(super) claims: Vec<Claim>,
    pub(super) refusal: Option<Refusal>,
    pub(super) now: Timestamp,
}

pub(super) const NOW: i64 = 1_000_000;

pub(super) fn time(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// The cluster, with `releaseVersion: "4.4"` declared, seen before.
pub(super) fn scene() -> Scene {
    let nodes: Vec<Node> = (1..=3).map(node).collect();
    let observed = Observed {
        cluster_id: ClusterId("cluster-a".into()),
        quorum: Known::Yes(Quorum {
            leader: Known::Yes(NodeId(1)),
            voters: nodes.iter().map(|node| node.id).collect(),
            observers: BTreeSet::new(),
            details: crate::features::observed::QuorumDetails::default(),
        }),
        nodes: nodes.into_iter().map(|node| (node.id, node)).collect(),
        fenced_brokers_listed: true,
        finalized: [(FeatureName::metadata_version(), Level(21))].into_iter().collect(),
        finalized_epoch: None,
        min_insync_overrides: Known::Yes(BTreeSet::new()),
    };
    Scene {
        catalog: Catalog::kafka().clone(),
        spec: Spec {
            cluster_id: None,
            target: TargetSpec::Release("4.4".into()),
            downgrade: DowngradePolicy::Never,
            allow_one_way: BTreeSet::new(),
            mode: Mode::Apply,
            paused: false,
            soak: Duration::ZERO,
        },
        remembered: Remembered {
            cluster_id: Some(observed.cluster_id.clone()),
            accepted: Vec::new(),
            soak: None,
        },
        observed: Ok(observed),
        claims: Vec::new(),
        refusal: None,
        now: time(NOW),
    }
}

impl Scene {
    pub(super) fn decide(&self) -> Decision {
        decide(&Situation {
            catalog: &self.catalog,
            spec: &self.spec,
            seniority: &Seniority { created: time(100), uid: "own".into() },
            claims: &self.claims,
            remembered: &self.remembered,
            observed: self.observed.as_ref(),
            refusal: self.refusal.as_ref(),
            now: self.now,
        })
    }

    pub(super) fn observed(&mut self) -> &mut Observed {
        self.observed.as_mut().unwrap()
    }

    pub(super) fn node(&mut self, id: i32) -> &mut Node {
        self.observed().nodes.get_mut(&NodeId(id)).unwrap()
    }

    pub(super) fn add(&mut self, node: Node) {
        self.observed().nodes.insert(node.id, node);
    }

    /// Declares levels instead of a release.
    pub(super) fn levels(mut self, levels: &[(&str, i16)]) -> Self {
        let levels = levels.iter().map(|(name, level)| (feature(name), DeclaredLevel::Number(Level(*level))));
        self.spec.target = TargetSpec::Levels(levels.collect());
        self
    }

    pub(super) fn finalized(mut self, levels: &[(&str, i16)]) -> Self {
        for (name, level) in levels {
            self.observed().finalized.set(feature(name), Level(*level));
        }
        self
    }

    /// The answer to the request that is due.
    pub(super) fn refused(mut self, kind: RefusalKind, message: &str) -> Self {
        let due = self.decide();
        let request = due.next.expect("something is due");
        self.refusal = Some(Refusal { request, batching: due.batching, kind, message: message.into() });
        self
    }
}

/// A node's range of one feature, where its software is as it is.
pub(super) fn range(supported: &SupportedFeatures, name: &str) -> LevelRange {
    supported.get(name).copied().unwrap_or(LevelRange::ABSENT)
}
