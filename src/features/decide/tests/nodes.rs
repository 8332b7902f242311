//! Nodes that hold a change up: known beforehand, named by the cluster, or ghosts.

use super::*;

/// A broker that stopped: registered, fenced, not to be asked.
fn stopped(id: i32) -> Node {
    Node {
        roles: Roles { broker: true, controller: false },
        fenced: Some(true),
        quorum: QuorumPlace::Neither,
        supported: Known::No("connection refused".into()),
        ..node(id)
    }
}

fn ghost(id: i32) -> Node {
    Node {
        roles: Roles { broker: false, controller: true },
        fenced: None,
        quorum: QuorumPlace::Neither,
        supported: Known::No("connection refused".into()),
        ..node(id)
    }
}

#[test]
fn a_feature_that_no_node_knows_may_be_misspelt() {
    let mut scene = scene();
    let declared = |name: &str| TargetSpec::Levels([(feature(name), DeclaredLevel::Number(Level(1)))].into());
    scene.spec.target = declared("groups.version");
    let decision = scene.decide();
    assert_eq!(decision.state, State::WaitingForNodes);
    has_all(
        &decision.message,
        &["controller 1 does not know groups.version", "No node knows groups.version"],
    );
    // nodes of an older version don't know it yet, which is another thing
    scene.spec.target = declared("streams.version");
    for id in 1..=3 {
        scene.node(id).supported = Known::Yes(software("4.0"));
    }
    assert!(!scene.decide().message.contains("is that its name"));
}

#[test]
fn every_node_that_does_not_support_the_target_is_named_at_once() {
    let mut scene = scene();
    scene.node(2).supported = Known::Yes(software("4.0"));
    scene.node(3).supported = Known::Yes(software("4.3"));
    let decision = scene.decide();
    assert_eq!((decision.state, decision.next.clone()), (State::WaitingForNodes, None));
    assert_eq!(decision.recheck, Recheck::Soon);
    let of = |id: i32| -> Vec<String> {
        blocking(&decision).into_iter().filter(|b| b.0 == id).map(|b| b.1).collect()
    };
    assert_eq!(of(1), Vec::<String>::new());
    assert_eq!(of(2), ["metadata.version", "share.version", "streams.version"]);
    assert_eq!(of(3), ["metadata.version", "share.version"]);
    let metadata = blocking(&decision).into_iter().find(|b| b.0 == 3 && b.1 == "metadata.version").unwrap();
    assert_eq!((metadata.2, metadata.3), (Some(range(&software("4.3"), "metadata.version")), 33));
    has_all(
        &decision.message,
        &["broker and controller 2", "broker and controller 3", "7-30", "33 (4.4-IV2)"],
    );
    assert_eq!(state_of(&decision, "metadata.version"), FeatureState::Blocked);
    assert_eq!(state_of(&decision, "group.version"), FeatureState::Pending);
}

#[test]
fn a_node_blocks_a_downgrade_as_it_does_an_upgrade() {
    let mut scene = scene().levels(&[("group.version", 0)]).finalized(&[("group.version", 1)]);
    scene.spec.downgrade = DowngradePolicy::Safe;
    assert_eq!(sent(&scene.decide()), [("group.version".to_owned(), 0)]);
    if let Known::Yes(supported) = &mut scene.node(2).supported {
        supported.insert(feature("group.version"), LevelRange { min: Level(1), max: Level(1) });
    }
    assert_eq!(scene.decide().state, State::WaitingForNodes);
}

#[test]
fn a_node_of_unknown_range_does_not_block_by_itself() {
    let mut scene = scene();
    scene.add(stopped(4));
    let decision = scene.decide();
    assert_eq!(decision.state, State::Acting);
    // nor does one that leaves out features whose lowest level is 0
    scene.node(2).lists_all_features = false;
    scene.node(2).supported = Known::Yes(
        [(feature("metadata.version"), LevelRange { min: Level(7), max: Level(33) })].into_iter().collect(),
    );
    assert_eq!(scene.decide().state, State::Acting);
}

#[test]
fn a_fenced_node_whose_range_is_known_blocks() {
    let mut scene = scene();
    scene.add(Node { supported: Known::Yes(software("4.3")), ..stopped(4) });
    let decision = scene.decide();
    assert_eq!(decision.state, State::WaitingForNodes);
    has_all(&decision.message, &["fenced broker 4"]);
}

#[test]
fn a_node_that_is_known_not_to_be_registered_does_not_block() {
    let mut scene = scene();
    scene.add(Node { registered: Known::Yes(false), supported: Known::Yes(software("4.3")), ..node(9) });
    assert_eq!(scene.decide().state, State::Acting);
    scene.node(9).registered = Known::No("it can't be asked".into());
    assert_eq!(scene.decide().state, State::WaitingForNodes);
}

const UNSUPPORTED: &str = "The update failed for all features since the following feature had an error: Invalid \
                           update version 33 for feature metadata.version. Broker 4 only supports versions 7-30";

#[test]
fn the_node_that_the_cluster_names_blocks_and_all_that_could_not_be_asked_are_shown() {
    let mut scene = scene();
    scene.add(stopped(4));
    scene.add(stopped(5));
    let scene = scene.refused(RefusalKind::Levels, UNSUPPORTED);
    let decision = scene.decide();
    assert_eq!((decision.state, decision.next.clone()), (State::WaitingForNodes, None));
    assert_eq!(decision.recheck, Recheck::Backoff);
    let thirty = LevelRange { min: Level(7), max: Level(30) };
    assert_eq!(blocking(&decision), [(4, "metadata.version".to_owned(), Some(thirty), 33)]);
    let blocker = &decision.view.as_ref().unwrap().blockers[0];
    assert_eq!(
        (blocker.registered, blocker.fenced, blocker.why),
        (Some(true), Some(true), BlockerWhy::Unsupported)
    );
    has_all(&decision.message, &["fenced broker 4 supports metadata.version 7-30", "could not be asked: 5"]);
    assert_eq!(state_of(&decision, "metadata.version"), FeatureState::Blocked);
}

#[test]
fn a_node_that_the_pass_did_not_see_is_named_as_the_cluster_names_it() {
    let mut scene = scene();
    scene.observed().fenced_brokers_listed = false;
    let decision = scene.refused(RefusalKind::Levels, UNSUPPORTED).decide();
    assert_eq!(decision.state, State::WaitingForNodes);
    has_all(&decision.message, &["broker 4 supports", "don't list them"]);
}

#[test]
fn voters_that_have_not_registered_block_all_at_once() {
    let mut scene = scene();
    for id in [4, 5] {
        let unregistered =
            Node { registered: Known::Yes(false), supported: Known::No("refused".into()), ..node(id) };
        scene.add(unregistered);
    }
    let text = "Invalid update version 33 for feature metadata.version. controller 5 has not registered, and may \
                not support this feature";
    let decision = scene.refused(RefusalKind::Levels, text).decide();
    assert_eq!(decision.state, State::WaitingForNodes);
    let blockers = &decision.view.as_ref().unwrap().blockers;
    assert_eq!(blockers.iter().map(|b| b.node.0).collect::<Vec<_>>(), [4, 5]);
    assert!(blockers.iter().all(|b| b.why == BlockerWhy::NotRegistered && b.voter == Some(true)));
    has_all(&decision.message, &["4 has not registered", "5 has not registered"]);
}

#[test]
fn voters_that_the_leader_has_not_heard_from_are_waited_for() {
    let mut scene = scene().finalized(&REACHED);
    scene.spec.allow_one_way.insert(feature("kraft.version"));
    let text = "Invalid upgrade of kraft.version to KRAFT_VERSION_1 because not all of the voters support it";
    let decision = scene.refused(RefusalKind::Levels, text).decide();
    assert_eq!(decision.state, State::WaitingForNodes);
    has_all(&decision.message, &[text]);
}

#[test]
fn all_ghosts_are_named_when_one_is_held_against_the_change() {
    let mut scene = scene();
    for id in [5, 6, 7] {
        scene.add(ghost(id));
    }
    assert_eq!(scene.decide().state, State::Acting, "Kafka decides first");
    let text = UNSUPPORTED.replace("Broker 4", "Controller 6");
    let decision = scene.refused(RefusalKind::Levels, &text).decide();
    assert_eq!(stalled(&decision), Some(Stall::GhostController));
    assert_eq!(decision.recheck, Recheck::Backoff);
    let blockers = &decision.view.as_ref().unwrap().blockers;
    assert_eq!(blockers.iter().map(|b| b.node.0).collect::<Vec<_>>(), [5, 6, 7]);
    assert!(blockers.iter().all(|b| b.why == BlockerWhy::Ghost));
    has_all(&decision.message, &["controller 5", "controller 6", "controller 7", "unregister"]);
}

#[test]
fn a_controller_that_answers_is_no_ghost_though_a_new_leader_does_not_list_it_yet() {
    let mut scene = scene();
    scene.add(Node { supported: Known::Yes(software("4.3")), ..ghost(5) });
    let decision = scene.decide();
    assert_eq!(decision.state, State::WaitingForNodes);
    has_all(&decision.message, &["controller 5 supports metadata.version 7-30"]);
    scene.node(5).supported = Known::Yes(software("4.4"));
    let text = UNSUPPORTED.replace("Broker 4", "Controller 5");
    assert_eq!(scene.refused(RefusalKind::Levels, &text).decide().state, State::WaitingForNodes);
}

#[test]
fn controllers_that_only_pretend_to_move_kraft_version_block_that_step_and_nothing_before_it() {
    let mut scene = scene();
    scene.spec.target = TargetSpec::Release("4.0".into());
    scene.spec.allow_one_way.insert(feature("kraft.version"));
    for id in 1..=3 {
        scene.node(id).supported = Known::Yes(software("4.0"));
    }
    let sent_first = sent(&scene.decide());
    assert!(sent_first.contains(&("metadata.version".to_owned(), 25)), "{sent_first:?}");

    let levels = [("metadata.version", 25), ("group.version", 1), ("transaction.version", 2)];
    let mut scene = scene.finalized(&levels);
    let decision = scene.decide();
    assert_eq!((decision.state, decision.next.clone()), (State::WaitingForNodes, None));
    assert_eq!(blocking(&decision).iter().map(|b| b.0).collect::<Vec<_>>(), [1, 2, 3]);
    has_all(&decision.message, &["broker and controller 1", "Kafka before 4.1 does not move it"]);

    for id in 1..=3 {
        scene.node(id).supported = Known::Yes(software("4.1"));
    }
    assert_eq!(sent(&scene.decide()), [("kraft.version".to_owned(), 1)]);
}

#[test]
fn a_controller_that_could_not_be_asked_blocks_what_kafka_does_not_check() {
    // below metadata.version 15 Kafka asks no controller
    let mut scene = scene().levels(&[("metadata.version", 20)]).finalized(&[("metadata.version", 14)]);
    scene.node(2).supported = Known::No("nobody told its address".into());
    let decision = scene.decide();
    assert_eq!((decision.state, decision.next.clone()), (State::WaitingForNodes, None));
    assert_eq!(blocking(&decision).iter().map(|b| b.0).collect::<Vec<_>>(), [2]);
    has_all(&decision.message, &["broker and controller 2", "could not be asked"]);
    let mut scene = scene.finalized(&[("metadata.version", 15)]);
    assert_eq!(sent(&scene.decide()), [("metadata.version".to_owned(), 20)]);
    let observed = scene.observed.as_mut().unwrap();
    observed.quorum = Known::No("no answer".into());
    let mut scene = scene.finalized(&[("metadata.version", 14)]);
    assert_eq!(scene.decide().state, State::QuorumUnavailable);

    // nor does it say whether a controller really moves kraft.version
    scene = super::fixtures::scene().levels(&[("kraft.version", 1)]).finalized(&[("metadata.version", 33)]);
    scene.node(3).supported = Known::No("nobody told its address".into());
    let decision = scene.decide();
    assert_eq!((decision.state, decision.next.clone()), (State::WaitingForNodes, None));
    has_all(&decision.message, &["broker and controller 3", "moves kraft.version"]);
}
