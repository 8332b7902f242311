//! The state table, a test a row and more where a row has several ways in.

mod fixtures;
mod nodes;
mod properties;
mod soak;

use fixtures::*;

use super::*;
use crate::features::catalog::{FeatureEntry, LevelEntry};
use crate::features::observed::{Known, Node, QuorumPlace, Roles};
use crate::features::plan::{DowngradePolicy, Step};
use crate::features::target::{DeclaredLevel, TargetSpec};
use crate::features::{Level, LevelRange};

fn stalled(decision: &Decision) -> Option<Stall> {
    assert_eq!(decision.next, None, "{decision:?}");
    match decision.state {
        State::Stalled(why) => Some(why),
        _ => None,
    }
}

fn has_all(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
}

fn sent(decision: &Decision) -> Vec<(String, i16)> {
    let steps = decision.next.iter().flat_map(|request| &request.steps);
    steps.map(|step: &Step| (step.feature.to_string(), step.to.0)).collect()
}

fn state_of(decision: &Decision, name: &str) -> FeatureState {
    let features = &decision.view.as_ref().unwrap().features;
    features.iter().find(|view| view.name.as_str() == name).unwrap().state
}

fn blocking(decision: &Decision) -> Vec<(i32, String, Option<LevelRange>, i16)> {
    let blockers = &decision.view.as_ref().unwrap().blockers;
    blockers.iter().map(|b| (b.node.0, b.feature.to_string(), b.supported, b.needed.0)).collect()
}

const REACHED: [(&str, i16); 6] = [
    ("metadata.version", 33),
    ("transaction.version", 2),
    ("group.version", 1),
    ("eligible.leader.replicas.version", 1),
    ("share.version", 2),
    ("streams.version", 1),
];

#[test]
fn nothing_declared_is_shown_and_never_changed() {
    let mut scene = scene();
    scene.spec.target = TargetSpec::Nothing;
    let decision = scene.decide();
    assert_eq!((decision.state, decision.recheck), (State::TargetNotSet, Recheck::Slow));
    assert_eq!(decision.next, None);
    has_all(&decision.message, &["21 (3.9-IV0)", "33 (4.4-IV2)"]);
    assert_eq!(state_of(&decision, "metadata.version"), FeatureState::NotDeclared);
}

#[test]
fn a_reached_target_rests() {
    let decision = scene().finalized(&REACHED).finalized(&[("kraft.version", 1)]).decide();
    assert_eq!((decision.state, decision.recheck), (State::Reached, Recheck::Slow));
    assert_eq!((decision.next.clone(), decision.consent.clone()), (None, None));
    assert_eq!(state_of(&decision, "kraft.version"), FeatureState::AtTarget);
}

#[test]
fn a_held_step_does_not_keep_the_rest_from_being_reached() {
    let decision = scene().finalized(&REACHED).decide();
    assert_eq!(decision.state, State::ReachedButHeld);
    has_all(
        decision.consent.as_deref().unwrap(),
        &["kraft.version 0 -> 1 is held", "allowOneWay: [kraft.version]"],
    );
    assert_eq!(state_of(&decision, "kraft.version"), FeatureState::Held);
}

#[test]
fn what_is_above_a_releases_default_is_kept_and_said() {
    let mut scene = scene().finalized(&REACHED);
    scene.spec.target = TargetSpec::Release("4.4".into());
    let scene = scene.finalized(&[("kraft.version", 1), ("share.version", 3)]);
    let decision = scene.decide();
    assert_eq!(decision.state, State::ReachedButHeld);
    has_all(
        decision.consent.as_deref().unwrap(),
        &["share.version 3 is above the target 2", "downgrade is Never"],
    );
    assert_eq!(state_of(&decision, "share.version"), FeatureState::AboveTarget);
}

#[test]
fn a_plan_is_shown_and_not_carried_out() {
    let mut scene = scene();
    scene.spec.mode = Mode::Plan;
    let decision = scene.decide();
    assert_eq!((decision.state, decision.next.clone()), (State::PlanOnly, None));
    assert!(!decision.view.unwrap().plan.requests.is_empty());
    let reached = Scene { observed: scene.finalized(&REACHED).observed, ..fixtures::scene() };
    assert_eq!(reached.decide().state, State::ReachedButHeld);
}

#[test]
fn what_is_held_is_looked_at_again_soon_while_a_node_is_away() {
    let mut held = Scene { observed: scene().finalized(&REACHED).observed, ..scene() };
    let decision = held.decide();
    assert_eq!((decision.state, decision.recheck), (State::ReachedButHeld, Recheck::Slow));
    held.node(2).supported = Known::No("connection refused".into());
    assert_eq!(held.decide().recheck, Recheck::Soon);
}

#[test]
fn a_plan_shows_what_would_block_it() {
    let mut scene = scene();
    scene.spec.mode = Mode::Plan;
    scene.node(2).supported = Known::Yes(software("4.3"));
    let decision = scene.decide();
    assert_eq!(decision.state, State::PlanOnly);
    assert!(blocking(&decision).iter().all(|(node, ..)| *node == 2) && !blocking(&decision).is_empty());
}

#[test]
fn paused_comes_before_everything_and_touches_nothing() {
    let mut paused = scene();
    paused.spec.paused = true;
    let decision = paused.decide();
    assert_eq!((decision.state, decision.next.clone()), (State::Paused, None));
    assert!(decision.view.is_some());
    paused.spec.target = TargetSpec::Release("latest".into());
    paused.observed = Err(Unreachable { failure: Failure::NoAnswer, message: "gone".into() });
    assert_eq!(paused.decide().state, State::Paused);
}

#[test]
fn a_cluster_that_can_not_be_reached_keeps_what_was_seen_of_it() {
    let mut scene = scene();
    let message = "kafka:9092: connection refused: nothing listens there";
    scene.observed = Err(Unreachable { failure: Failure::NoAnswer, message: message.into() });
    let decision = scene.decide();
    assert_eq!((decision.state, decision.recheck), (State::ClusterUnreachable, Recheck::Backoff));
    assert_eq!((decision.message.as_str(), decision.view), (message, None));
    assert_eq!(decision.cluster_id, scene.remembered.cluster_id);

    scene.observed = Err(Unreachable { failure: Failure::NotAuthorized, message: message.into() });
    assert_eq!(stalled(&scene.decide()), Some(Stall::NotAuthorized));
}

#[test]
fn nothing_is_sent_while_the_quorum_has_no_leader() {
    let mut scene = scene();
    let Known::Yes(quorum) = &mut scene.observed().quorum else { panic!() };
    quorum.leader = Known::No("the active controller 1 can't be asked".into());
    let decision = scene.decide();
    assert_eq!((decision.state, decision.next), (State::QuorumUnavailable, None));
    assert_eq!(decision.recheck, Recheck::Backoff);
    has_all(&decision.message, &["the active controller 1 can't be asked", "goes on by itself"]);
}

#[test]
fn a_joint_request_that_is_refused_for_one_feature_is_tried_feature_by_feature() {
    let answer = "Invalid update version 2 for feature share.version. Something about share groups.";
    let scene = scene().refused(RefusalKind::Levels, answer);
    assert!(scene.refusal.as_ref().unwrap().request.steps.len() > 1);
    let decision = scene.decide();
    assert_eq!((decision.state, decision.batching), (State::Acting, Batching::Ordered));
    assert_eq!(sent(&decision).len(), 1);
    // and when that is refused too, the cluster's words are all there is to say
    let refusal = Refusal {
        request: decision.next.unwrap(),
        batching: Batching::Ordered,
        kind: RefusalKind::Levels,
        message: answer.into(),
    };
    let decision = Scene { refusal: Some(refusal), ..scene }.decide();
    assert_eq!(stalled(&decision), Some(Stall::RefusedByCluster));
    assert_eq!(decision.recheck, Recheck::Backoff);
    has_all(&decision.message, &["Something about share groups."]);
}

#[test]
fn a_missing_right_stalls_and_is_not_tried_feature_by_feature() {
    let decision = scene().refused(RefusalKind::NotAuthorized, "needs ALTER permission").decide();
    assert_eq!(stalled(&decision), Some(Stall::NotAuthorized));
    has_all(&decision.message, &["ALTER on the cluster"]);
    let decision = scene().refused(RefusalKind::Other, "no such request").decide();
    assert_eq!(stalled(&decision), Some(Stall::RefusedByCluster));
}

#[test]
fn what_is_due_is_sent_as_one_request_of_changes_only() {
    let decision = scene().finalized(&[("group.version", 1)]).decide();
    assert_eq!((decision.state, decision.recheck), (State::Acting, Recheck::Now));
    let mut names: Vec<String> = sent(&decision).into_iter().map(|(name, _)| name).collect();
    names.sort();
    assert_eq!(
        names,
        [
            "eligible.leader.replicas.version",
            "metadata.version",
            "share.version",
            "streams.version",
            "transaction.version"
        ]
    );
}

#[test]
fn what_was_accepted_just_now_is_not_sent_again_before_the_cluster_could_show_it() {
    let mut scene = scene().levels(&[("group.version", 1)]);
    let accepted = |from, to, second| {
        vec![Accepted {
            feature: feature("group.version"),
            from: Level(from),
            to: Level(to),
            at: time(second),
        }]
    };
    scene.remembered.accepted = accepted(0, 1, NOW - 9);
    let decision = scene.decide();
    assert_eq!((decision.state, decision.next, decision.recheck), (State::Settling, None, Recheck::Backoff));
    // a change by others is another step, and in the end nobody knows what became of the first
    for other in [accepted(0, 2, NOW), accepted(1, 0, NOW), accepted(0, 1, NOW - 10)] {
        scene.remembered.accepted = other;
        assert_eq!(scene.decide().state, State::Acting);
    }
    scene.remembered.accepted = accepted(0, 1, NOW);
    assert_eq!(scene.finalized(&[("group.version", 1)]).decide().state, State::Reached);
}

#[test]
fn kraft_version_goes_alone_and_last() {
    let mut scene = scene();
    scene.spec.allow_one_way.insert(feature("kraft.version"));
    assert!(sent(&scene.decide()).iter().all(|(name, _)| name != "kraft.version"));
    let decision = scene.finalized(&REACHED).decide();
    assert_eq!(sent(&decision), [("kraft.version".to_owned(), 1)]);
}

#[test]
fn a_cluster_is_put_on_record_before_anything_is_sent() {
    let mut scene = scene();
    scene.remembered.cluster_id = None;
    let decision = scene.decide();
    assert_eq!((decision.state, decision.next.clone()), (State::AdoptingCluster, None));
    assert_eq!(decision.recheck, Recheck::Now);
    assert_eq!(decision.cluster_id, Some(ClusterId("cluster-a".into())));
    // a pin is on record already
    scene.spec.cluster_id = Some(ClusterId("cluster-a".into()));
    assert_eq!(scene.decide().state, State::Acting);
    // and where nothing is to be sent, the state is what it is
    scene.spec.cluster_id = None;
    let decision = scene.finalized(&REACHED).decide();
    assert_eq!(
        (decision.state, decision.cluster_id),
        (State::ReachedButHeld, Some(ClusterId("cluster-a".into())))
    );
}

#[test]
fn another_cluster_than_the_pinned_or_the_remembered_one_is_never_touched_nor_shown() {
    let a_pin = |scene: &mut Scene| scene.spec.cluster_id = Some(ClusterId("cluster-b".into()));
    let a_memory = |scene: &mut Scene| scene.remembered.cluster_id = Some(ClusterId("cluster-b".into()));
    for (change, field) in
        [(&a_pin as &dyn Fn(&mut Scene), "spec.clusterId"), (&a_memory, "status.clusterId")]
    {
        let mut scene = scene();
        change(&mut scene);
        let decision = scene.decide();
        assert_eq!(stalled(&decision), Some(Stall::ClusterIdMismatch));
        has_all(&decision.message, &["cluster-a", "cluster-b", field]);
        assert_eq!((decision.view, decision.cluster_id), (None, scene.remembered.cluster_id));
    }
}

#[test]
fn an_older_claim_stalls_a_younger_one_and_is_named() {
    let older = Seniority { created: time(50), uid: "x".into() };
    let claim = |seniority: &Seniority, features| Claim {
        owner: "kafka/first".into(),
        seniority: seniority.clone(),
        features,
    };
    let mut scene = scene();
    scene.claims = vec![claim(&older, Claimed::Only([feature("group.version")].into()))];
    let decision = scene.decide();
    assert_eq!(stalled(&decision), Some(Stall::Conflict));
    has_all(&decision.message, &["kafka/first owns group.version"]);
    // other features of the same cluster are free
    assert_eq!(scene.clone().levels(&[("share.version", 1)]).decide().state, State::Acting);
    // a plan claims nothing, so it collides with nothing
    scene.spec.mode = Mode::Plan;
    assert_eq!(scene.decide().state, State::PlanOnly);
    scene.spec.mode = Mode::Apply;
    let younger = Seniority { created: time(150), uid: "a".into() };
    scene.claims = vec![claim(&younger, Claimed::All)];
    assert_eq!(scene.decide().state, State::Acting);
}

#[test]
fn what_is_paused_planned_or_empty_claims_nothing() {
    let claim = |scene: &Scene| {
        Claim::of(&scene.spec, "ns/n".into(), Seniority { created: time(1), uid: "u".into() })
            .map(|claim| claim.features)
    };
    assert_eq!(claim(&scene()), Some(Claimed::All));
    let levels = scene().levels(&[("group.version", 1)]);
    assert_eq!(claim(&levels), Some(Claimed::Only([feature("group.version")].into())));
    let mut idle = [scene(), scene(), scene()];
    idle[0].spec.paused = true;
    idle[1].spec.mode = Mode::Plan;
    idle[2].spec.target = TargetSpec::Nothing;
    assert!(idle.iter().all(|scene| claim(scene).is_none()));
}

#[test]
fn what_can_not_be_planned_stalls_with_the_reason_of_the_plan() {
    let reached = || scene().finalized(&REACHED);
    let safe = |mut scene: Scene| {
        scene.spec.downgrade = DowngradePolicy::Safe;
        scene
    };
    // no released feature can be lowered under another without being lossy first
    let share = LevelEntry {
        level: Level(1),
        default_from: Level(7),
        needs: vec![(feature("group.version"), Level(1))],
    };
    let share = FeatureEntry { name: feature("share.version"), levels: vec![share] };
    let synthetic = Catalog::new(Catalog::kafka().metadata_versions().to_vec(), vec![share]);
    let cases = [
        (reached().levels(&[("group.version", 0)]), Stall::DowngradeForbidden, "downgrade to Safe"),
        (safe(reached().levels(&[("metadata.version", 22)])), Stall::LossyDowngrade, "33 (4.4-IV2)"),
        (
            safe(scene().finalized(&[("kraft.version", 1)]).levels(&[("kraft.version", 0)])),
            Stall::KraftVersionDowngrade,
            "never",
        ),
        (
            scene().levels(&[("eligible.leader.replicas.version", 1)]),
            Stall::DependencyNotOwned,
            "metadata.version 23 (4.0-IV1)",
        ),
        (
            Scene {
                catalog: synthetic,
                ..safe(scene().finalized(&[("share.version", 1), ("group.version", 1)]))
            }
            .levels(&[("group.version", 0)]),
            Stall::DependencyWouldBreak,
            "share.version",
        ),
    ];
    for (scene, why, text) in cases {
        let decision = scene.decide();
        assert_eq!(stalled(&decision), Some(why), "{}", decision.message);
        has_all(&decision.message, &[text]);
        assert_eq!(decision.recheck, Recheck::Slow);
        let view = decision.view.unwrap();
        assert!(view.features.iter().any(|feature| feature.state == FeatureState::Differs));
    }
}

#[test]
fn what_can_not_be_a_target_stalls_before_the_cluster_matters() {
    let release = |text: &str| Scene {
        spec: Spec { target: TargetSpec::Release(text.into()), ..scene().spec },
        ..scene()
    };
    let named = TargetSpec::Levels([(feature("group.version"), DeclaredLevel::Name("1".into()))].into());
    let cases = [
        (release("9.9"), Stall::UnknownRelease, "\"9.9\""),
        (release("4.5-IV0"), Stall::UnstableRelease, "4.5-IV0"),
        (scene().levels(&[("metadata.version", 3)]), Stall::InvalidSpec, "lowest level"),
        (
            Scene { spec: Spec { target: named, ..scene().spec }, ..scene() },
            Stall::InvalidSpec,
            "named levels",
        ),
        (
            scene().levels(&[("eligible.leader.replicas.version", 1), ("metadata.version", 22)]),
            Stall::InvalidSpec,
            "needs metadata.version 23",
        ),
    ];
    for (mut scene, why, text) in cases {
        let decision = scene.decide();
        assert_eq!(stalled(&decision), Some(why), "{}", decision.message);
        has_all(&decision.message, &[text]);
        assert!(decision.view.is_some());
        scene.observed = Err(Unreachable { failure: Failure::NoAnswer, message: "gone".into() });
        assert_eq!(stalled(&scene.decide()), Some(why));
    }
}

#[test]
fn an_unreadable_declaration_stalls_and_keeps_the_cluster() {
    let remembered = scene().remembered;
    let decision = Decision::invalid_spec(&remembered, "spec.cluster is missing".into());
    assert_eq!(stalled(&decision), Some(Stall::InvalidSpec));
    assert_eq!((decision.cluster_id, decision.view), (remembered.cluster_id, None));
}

#[test]
fn supported_ranges_are_those_of_all_nodes_that_could_be_asked() {
    let mut scene = scene();
    scene.node(2).supported = Known::Yes(software("4.0"));
    scene.node(3).supported = Known::No("connection refused".into());
    let view = |scene: &Scene, name: &str| {
        let features = scene.decide().view.unwrap().features;
        features.into_iter().find(|view| view.name.as_str() == name).unwrap().supported
    };
    assert_eq!(view(&scene, "metadata.version"), Some(range(&software("4.0"), "metadata.version")));
    assert_eq!(view(&scene, "streams.version"), Some(LevelRange::ABSENT));
    let disjoint = [(feature("metadata.version"), LevelRange { min: Level(30), max: Level(33) })];
    scene.node(1).supported = Known::Yes(disjoint.into_iter().collect());
    assert_eq!(view(&scene, "metadata.version"), None);
    for id in 1..=3 {
        scene.node(id).supported = Known::No("connection refused".into());
    }
    assert!(scene.decide().view.unwrap().features.iter().all(|view| view.supported.is_none()));
    assert_eq!(
        scene.decide().view.unwrap().features.len(),
        7,
        "the target's features are shown all the same"
    );
}
