//! What holds in every situation, whatever the cluster, the spec and the answers are.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::collection::{btree_map, btree_set};
use proptest::prelude::*;

use super::super::*;
use super::fixtures::*;
use crate::features::observed::{Known, Node, NodeId, QuorumPlace, Roles};
use crate::features::plan::DowngradePolicy;
use crate::features::target::{DeclaredLevel, TargetSpec};
use crate::features::{FeatureName, Level, LevelRange};

const NAMES: [&str; 8] = [
    "metadata.version",
    "kraft.version",
    "transaction.version",
    "group.version",
    "eligible.leader.replicas.version",
    "share.version",
    "streams.version",
    "future.version",
];

fn name() -> impl Strategy<Value = FeatureName> {
    prop::sample::select(&NAMES[..]).prop_map(feature)
}

fn level(name: &FeatureName) -> std::ops::Range<i16> {
    if name.is_metadata_version() { 7..36 } else { 0..4 }
}

fn levels() -> impl Strategy<Value = Vec<(FeatureName, Level)>> {
    prop::collection::vec(name(), 0..6).prop_flat_map(|names| {
        names
            .into_iter()
            .map(|name| (level(&name), Just(name)).prop_map(|(l, n)| (n, Level(l))))
            .collect::<Vec<_>>()
    })
}

fn a_node() -> impl Strategy<Value = Node> {
    let registered = prop_oneof![
        8 => Just(Known::Yes(true)),
        1 => Just(Known::Yes(false)),
        1 => Just(Known::No("not told".to_owned())),
    ];
    let quorum = prop_oneof![
        5 => Just(QuorumPlace::Voter),
        2 => Just(QuorumPlace::Observer),
        1 => Just(QuorumPlace::Neither),
        1 => Just(QuorumPlace::Unknown),
    ];
    let supported = prop_oneof![
        6 => Just(Known::Yes(software("4.4"))),
        1 => Just(Known::Yes(software("4.0"))),
        1 => btree_map(name(), (0i16..20, 0i16..36), 0..4).prop_map(|ranges| {
            let range = |(min, max)| LevelRange { min: Level(min), max: Level(max) };
            Known::Yes(ranges.into_iter().map(|(name, ends)| (name, range(ends))).collect())
        }),
        1 => Just(Known::No("not asked".to_owned())),
    ];
    (1i32..9, any::<(bool, bool, bool)>(), registered, quorum, supported).prop_map(
        |(id, (broker, controller, lists_all_features), registered, quorum, supported)| Node {
            id: NodeId(id),
            roles: Roles { broker, controller },
            registered,
            fenced: broker.then_some(false),
            quorum,
            supported,
            lists_all_features,
        },
    )
}

fn target() -> impl Strategy<Value = TargetSpec> {
    prop_oneof![
        Just(TargetSpec::Nothing),
        prop::sample::select(&["3.9", "4.0", "4.3", "4.4", "4.5-IV0", "latest"][..])
            .prop_map(|release| TargetSpec::Release(release.to_owned())),
        levels().prop_map(|levels| {
            TargetSpec::Levels(levels.into_iter().map(|(n, l)| (n, DeclaredLevel::Number(l))).collect())
        }),
    ]
}

fn cluster_id() -> impl Strategy<Value = Option<ClusterId>> {
    prop_oneof![
        2 => Just(None),
        4 => Just(Some(ClusterId("cluster-a".into()))),
        1 => Just(Some(ClusterId("cluster-b".into()))),
    ]
}

fn a_spec() -> impl Strategy<Value = Spec> {
    let mode = prop_oneof![5 => Just(Mode::Apply), 1 => Just(Mode::Plan)];
    (target(), cluster_id(), any::<bool>(), btree_set(name(), 0..4), mode, prop::bool::weighted(0.1), 0u64..3)
        .prop_map(|(target, cluster_id, safe, allow_one_way, mode, paused, soak)| Spec {
            cluster_id,
            target,
            downgrade: if safe { DowngradePolicy::Safe } else { DowngradePolicy::Never },
            allow_one_way,
            mode,
            paused,
            soak: Duration::from_secs(soak),
        })
}

fn a_scene() -> impl Strategy<Value = Scene> {
    let overrides = prop_oneof![
        Just(Known::Yes(BTreeSet::new())),
        Just(Known::Yes(BTreeSet::from([NodeId(1)]))),
        Just(Known::No("not told".to_owned())),
    ];
    let cluster = (
        prop::collection::vec(a_node(), 0..6),
        7i16..35,
        levels(),
        overrides,
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.1),
    );
    (a_spec(), cluster_id(), cluster, any::<bool>()).prop_map(
        |(spec, remembered, (nodes, metadata, levels, overrides, leaderless, unreachable), rival)| {
            let mut scene = Scene { spec, ..scene() };
            scene.remembered.cluster_id = remembered;
            let observed = scene.observed();
            for node in nodes {
                observed.nodes.insert(node.id, node);
            }
            observed.finalized = levels.into_iter().collect();
            observed.finalized.set(FeatureName::metadata_version(), Level(metadata));
            observed.min_insync_overrides = overrides;
            if let (true, Known::Yes(quorum)) = (leaderless, &mut observed.quorum) {
                quorum.leader = Known::No("nobody leads".into());
            }
            if rival {
                let seniority = Seniority { created: time(50), uid: "older".into() };
                let features = Claimed::Only([feature("group.version")].into());
                scene.claims.push(Claim { owner: "ns/older".into(), seniority, features });
            }
            if unreachable {
                scene.observed = Err(Unreachable { failure: Failure::NoAnswer, message: "gone".into() });
            }
            scene
        },
    )
}

fn answer() -> impl Strategy<Value = (RefusalKind, String)> {
    let kind =
        prop::sample::select(&[RefusalKind::Levels, RefusalKind::NotAuthorized, RefusalKind::Other][..]);
    let message = prop_oneof![
        Just("no".to_owned()),
        (1i32..9).prop_map(|id| format!("Invalid update version 33 for feature metadata.version. Broker {id} only supports versions 7-30")),
        (1i32..9).prop_map(|id| format!("Invalid update version 33 for feature metadata.version. controller {id} has not registered, and may not support this feature")),
        Just("Invalid upgrade of kraft.version because not all of the voters support it".to_owned()),
    ];
    (kind, message)
}

/// What must hold for a decision to send something.
fn may_send(scene: &Scene, decision: &Decision) -> Result<(), TestCaseError> {
    let Some(request) = &decision.next else {
        prop_assert!(decision.state != State::Acting);
        return Ok(());
    };
    let observed = scene.observed.as_ref().expect("nothing is sent to a cluster that was not seen");
    prop_assert_eq!(decision.state, State::Acting);
    prop_assert!(!scene.spec.paused && scene.spec.mode == Mode::Apply);
    let known = scene.spec.cluster_id.as_ref().or(scene.remembered.cluster_id.as_ref());
    prop_assert_eq!(known, Some(&observed.cluster_id));
    prop_assert_eq!(decision.cluster_id.as_ref(), Some(&observed.cluster_id));
    prop_assert!(observed.quorum.value().is_none_or(|quorum| quorum.leader.value().is_some()));
    let view = decision.view.as_ref().expect("what is acted on is shown");
    prop_assert!(view.blockers.is_empty());
    prop_assert_eq!(view.plan.requests.first(), Some(request));
    prop_assert!(!request.steps.is_empty());
    let kraft = request.steps.iter().any(|step| step.feature.is_kraft_version());
    prop_assert!(!kraft || request.steps.len() == 1);
    for step in &request.steps {
        prop_assert_eq!(step.from, observed.finalized.get(step.feature.as_str()));
        prop_assert!(step.from != step.to);
        let refuses = |node: &Node| {
            node.registered != Known::Yes(false)
                && node.range(&step.feature).is_some_and(|r| !r.contains(step.to))
        };
        prop_assert!(!observed.nodes.values().any(refuses), "{:?}", step);
        let rival = !scene.claims.is_empty() && step.feature.as_str() == "group.version";
        prop_assert!(!rival, "a feature of an older claim is left alone");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_sent_that_may_not_be_and_a_pass_ends(scene in a_scene(), answers in prop::collection::vec(answer(), 3)) {
        let mut scene = scene;
        let mut decision = scene.decide();
        may_send(&scene, &decision)?;
        prop_assert!(!decision.message.is_empty() && !decision.message.contains('\n'), "{}", decision.message);
        // whatever the cluster answers, at most two requests are asked about in a pass
        for (asked, (kind, message)) in answers.into_iter().enumerate() {
            let Some(request) = decision.next.clone() else { break };
            prop_assert!(asked < 2, "a third request");
            scene.refusal = Some(Refusal { request: request.clone(), batching: decision.batching, kind, message });
            decision = scene.decide();
            may_send(&scene, &decision)?;
            prop_assert!(decision.next.as_ref() != Some(&request), "the same request again");
        }
    }

    #[test]
    fn a_cluster_at_rest_stays_at_rest(scene in a_scene()) {
        let decision = scene.decide();
        if matches!(decision.state, State::Reached | State::ReachedButHeld | State::TargetNotSet) {
            prop_assert_eq!(decision.next, None);
            // a node that is away may show, once it is back, that what is held need not be
            let away = scene.observed.as_ref().is_ok_and(has_node_away);
            let soon = decision.state == State::ReachedButHeld && away;
            prop_assert_eq!(decision.recheck, if soon { Recheck::Soon } else { Recheck::Slow });
            // what was adopted in this pass makes no difference to the next
            let mut again = scene.clone();
            again.remembered.cluster_id = decision.cluster_id.clone();
            prop_assert_eq!(again.decide().view, decision.view);
        }
    }

    #[test]
    fn a_pass_after_pass_ends_with_the_target_or_says_why_not(scene in a_scene()) {
        let mut scene = scene;
        scene.spec.soak = Duration::ZERO;
        for _ in 0..12 {
            let decision = scene.decide();
            scene.remembered.cluster_id = decision.cluster_id.clone();
            match (decision.state, decision.next) {
                (State::Acting, Some(request)) => request.apply(&mut scene.observed().finalized),
                (State::AdoptingCluster, None) => {}
                (state, next) => {
                    prop_assert_eq!(next, None);
                    if matches!(state, State::Reached) {
                        for view in decision.view.iter().flat_map(|view| &view.features) {
                            prop_assert!(view.target.is_none_or(|target| target == view.finalized));
                        }
                    }
                    return Ok(());
                }
            }
        }
        prop_assert!(false, "it never came to rest");
    }
}
