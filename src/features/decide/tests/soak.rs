//! The soak: what begins it, what begins it anew, and what does not.

use std::time::Duration;

use super::*;

const HOUR: Duration = Duration::from_secs(3600);

/// A scene that soaks for an hour, `seconds` after the last pass.
fn later(scene: &Scene, last: &Decision, seconds: i64) -> Scene {
    let mut scene = scene.clone();
    scene.remembered.soak = last.soak.clone();
    scene.now = time(scene.now.as_second() + seconds);
    scene
}

fn soaking() -> Scene {
    let mut scene = scene();
    scene.spec.soak = HOUR;
    scene
}

#[test]
fn an_upgrade_waits_until_every_node_has_supported_it_for_long_enough() {
    let first = soaking();
    let decision = first.decide();
    assert_eq!((decision.state, decision.next.clone()), (State::Soaking, None));
    assert_eq!(decision.recheck, Recheck::At(time(NOW + 3600)));
    has_all(&decision.message, &[&time(NOW + 3600).to_string()]);
    let second = later(&first, &decision, 3599);
    assert_eq!(second.decide().state, State::Soaking);
    let third = later(&second, &second.decide(), 1);
    assert_eq!(third.decide().state, State::Acting);
}

#[test]
fn a_soak_is_kept_in_whole_seconds_and_never_cut_short() {
    let mut first = soaking();
    first.now = Timestamp::from_millisecond(NOW * 1000 + 1).unwrap();
    assert_eq!(first.decide().soak.unwrap().since, time(NOW + 1));
}

#[test]
fn what_was_soaked_is_not_soaked_again_after_drift() {
    let first = soaking();
    let mut reached = later(&first, &first.decide(), 4000);
    reached.observed = reached.clone().finalized(&REACHED).observed;
    let decision = reached.decide();
    assert_eq!((decision.state, &decision.soak), (State::ReachedButHeld, &first.decide().soak));
    let mut drifted = later(&reached, &decision, 10);
    drifted.observed = first.observed.clone();
    assert_eq!(drifted.decide().state, State::Acting);
    // a node that has joined since has not supported it for long
    drifted.add(node(4));
    assert_eq!(drifted.decide().state, State::Soaking);
}

#[test]
fn a_node_that_is_away_changes_nothing() {
    let first = soaking();
    let mut away = later(&first, &first.decide(), 1800);
    away.node(2).supported = Known::No("connection refused".into());
    let decision = away.decide();
    assert_eq!(decision.soak, first.decide().soak);
    away.node(2).supported = Known::Yes(software("4.4"));
    assert_eq!(later(&away, &decision, 1800).decide().state, State::Acting);
}

#[test]
fn another_target_a_node_that_does_not_support_it_or_a_new_node_begins_it_anew() {
    let first = soaking();
    let begun = first.decide();
    let mut other_target = later(&first, &begun, 1800);
    other_target.spec.target = TargetSpec::Release("4.3".into());
    assert_eq!(other_target.decide().soak.unwrap().since, other_target.now);

    let mut new_node = later(&first, &begun, 1800);
    new_node.add(node(4));
    assert_eq!(new_node.decide().soak.unwrap().since, new_node.now);

    let mut old_node = later(&first, &begun, 1800);
    old_node.node(2).supported = Known::Yes(software("4.3"));
    let blocked = old_node.decide();
    assert_eq!((blocked.state, blocked.soak.clone()), (State::WaitingForNodes, None));
    old_node.node(2).supported = Known::Yes(software("4.4"));
    let again = later(&old_node, &blocked, 10);
    assert_eq!(again.decide().soak.unwrap().since, again.now);
}

#[test]
fn a_pause_an_outage_and_a_lost_leader_keep_it() {
    let first = soaking();
    let begun = first.decide();
    let mut scene = later(&first, &begun, 10);
    scene.spec.paused = true;
    assert_eq!(scene.decide().soak, begun.soak);
    scene.spec.paused = false;
    if let Known::Yes(quorum) = &mut scene.observed().quorum {
        quorum.leader = Known::No("nobody leads".into());
    }
    assert_eq!(scene.decide().soak, begun.soak);
    scene.observed = Err(Unreachable { failure: Failure::NoAnswer, message: "gone".into() });
    assert_eq!(scene.decide().soak, begun.soak);
}

#[test]
fn a_downgrade_does_not_wait() {
    let mut scene = soaking().finalized(&[("group.version", 1)]).levels(&[("group.version", 0)]);
    scene.spec.downgrade = DowngradePolicy::Safe;
    let decision = scene.decide();
    assert_eq!((decision.state, decision.soak), (State::Acting, None));
}

#[test]
fn a_soak_longer_than_time_itself_never_ends() {
    let mut scene = soaking();
    scene.spec.soak = Duration::MAX;
    assert_eq!(scene.decide().recheck, Recheck::At(Timestamp::MAX));
}
