//! Controllers that come back with nothing, grants and records that get lost.

use super::*;

#[test]
fn a_lost_grant_is_given_again_to_the_same_pod_only() {
    let mut scene = Scene::controllers(QuorumKind::InitialControllers);
    scene.pass();
    // the operator died between the record and the pod
    scene.pods[1].grant = None;
    assert_eq!(parts(&scene.pass()), [(1, Part::Voter)]);
    // the pod went with its grant: nobody knows whether it was used
    scene.formatted();
    scene.add(1, true);
    let decision = scene.pass();
    assert_eq!(decision.grants, []);
    assert!(waits_for(&decision, "k-1").contains("must not vote again"), "{decision:?}");
    scene.up(1, &[0, 2]);
    let decision = scene.pass();
    assert_eq!(parts(&decision), [(1, Part::Observer)]);
    assert_eq!(decision.grants[0].grant.directory_id, None, "a new one");
}

#[test]
fn only_a_grant_that_was_never_on_record_before_is_taken_back() {
    let mut scene = Scene::controllers(QuorumKind::InitialControllers);
    let uids: Vec<String> = scene.pods.iter().map(|pod| pod.uid.clone()).collect();
    let first = scene.pass().record.unwrap();
    let mut record = first.clone();
    assert!(
        record.take_back(None, &uids[1..2]),
        "the pod was gone before its first grant could be put on it"
    );
    let state = |record: &Record, id: i32| record.voter(id).unwrap().state.clone();
    assert_eq!(state(&record, 1), VoterState::Ungranted);
    assert_eq!(state(&record, 0), VoterState::Granted(uids[0].clone()));
    // a later pass puts it on anew, and the pod is gone by then: it may have formatted by the grant that it had
    let mut record = first.clone();
    assert!(!record.take_back(Some(&first), &uids[1..2]));
    assert_eq!(record, first);
}

#[test]
fn a_voter_that_comes_back_empty_observes_in_a_dynamic_quorum() {
    let mut scene = formatted(QuorumKind::InitialControllers);
    // right after the first format, before the cluster was seen up
    scene.add(2, true);
    let decision = scene.pass();
    assert!(decision.grants.is_empty() && waits_for(&decision, "k-2").contains("seen up"));
    scene.up(1, &[0, 1]);
    let decision = scene.pass();
    assert_eq!(parts(&decision), [(2, Part::Observer)]);
    let grant = &decision.grants[0].grant;
    assert_eq!((&grant.directory_id, grant.voters.len()), (&None, 0));
    assert!(decision.record.unwrap().seen_up);
}

#[test]
fn a_static_voter_that_comes_back_empty_waits_for_a_healthy_majority() {
    let mut scene = formatted(QuorumKind::Static);
    scene.add(2, true);
    assert!(waits_for(&scene.pass(), "k-2").contains("healthy majority"));
    // a leader, but one of the others is behind
    scene.up(0, &[0]);
    let decision = scene.pass();
    assert!(decision.grants.is_empty() && waits_for(&decision, "k-2").contains("healthy majority"));
    // its own old entry does not count
    scene.up(0, &[0, 2]);
    assert!(scene.pass().grants.is_empty());
    // nor does one that the leader has not missed yet, and that has lost its volume too
    let kept = scene.pods.iter().find(|pod| pod.name == "k-1").cloned().unwrap();
    scene.up(0, &[0, 1]);
    scene.add(1, true);
    let both = scene.pass();
    assert!(both.grants.is_empty() && waits_for(&both, "k-1").contains("healthy majority"), "{both:?}");
    scene.pods.retain(|pod| pod.name != "k-1");
    assert!(scene.pass().grants.is_empty(), "nor one whose pod is gone at this moment");
    scene.pods.push(kept);
    scene.up(0, &[0, 1]);
    assert_eq!(parts(&scene.pass()), [(2, Part::ReturningVoter)]);
    // it has come back, and another one is lost: what the leader says of the first may be from before that
    scene.formatted();
    scene.up(0, &[0, 1, 2]);
    scene.pass();
    scene.add(1, true);
    scene.now += 20;
    assert!(scene.pass().grants.is_empty());
    scene.now += 60;
    assert_eq!(parts(&scene.pass()), [(1, Part::ReturningVoter)]);
}

#[test]
fn after_kraft_version_has_moved_the_dynamic_rule_holds_for_a_static_file() {
    let mut scene = formatted(QuorumKind::Static);
    scene.up(1, &[0, 1, 2]);
    scene.pass();
    assert!(scene.record.as_ref().unwrap().dynamic);
    scene.add(2, true);
    scene.up(1, &[0, 1]);
    let decision = scene.pass();
    assert_eq!(parts(&decision), [(2, Part::Observer)]);
    let voters = &decision.grants[0].grant.voters;
    assert_eq!(
        voters.iter().map(|v| v.node_id).collect::<Vec<_>>(),
        VOTERS,
        "or it would take itself for a voter"
    );
    // while the cluster can't be asked, the record still knows
    scene.observed = None;
    scene.add(2, true);
    assert!(waits_for(&scene.pass(), "k-2").contains("seen up"));
}

#[test]
fn a_lost_majority_is_formatted_by_nobody() {
    for quorum in [QuorumKind::Static, QuorumKind::InitialControllers] {
        let mut scene = formatted(quorum);
        scene.add(1, true);
        scene.add(2, true);
        scene.add(7, false);
        let decision = scene.pass();
        assert_eq!(decision.grants, []);
        let failure = decision.first_failure().unwrap();
        assert_eq!(failure.reason, "VotersLost");
        for word in ["2 of the 3 voters", "(1, 2)", "backup", "kafka-kafka-identity"] {
            assert!(failure.message.contains(word), "{failure:?}");
        }
    }
}

#[test]
fn a_majority_that_is_lost_one_after_the_other_is_told_of_too() {
    for seen in [true, false] {
        let mut scene = formatted(QuorumKind::InitialControllers);
        // 1 loses its volume, and comes back as an observer
        scene.add(1, true);
        scene.up(1, &[0, 2]);
        assert_eq!(parts(&scene.pass()), [(1, Part::Observer)]);
        scene.formatted();
        scene.pass();
        // now 2 does: 0 is left alone, whatever 1 has by now
        scene.add(2, true);
        scene.observed = None;
        if !seen {
            scene.record.as_mut().unwrap().last_seen.clear();
        }
        let decision = scene.pass();
        assert_eq!((reason(&decision).as_deref(), decision.grants.len()), (Some("VotersLost"), 0));
        let message = &decision.first_failure().unwrap().message;
        assert!(message.contains("2 of the 3 voters") && message.contains("(1, 2)"), "{message}");
        // somebody had made 1 a voter again: 0 and 1 are a majority
        let Some(record) = scene.record.as_mut().filter(|_| seen) else { continue };
        let now = scene.pods.iter().find(|pod| pod.name == "k-1").unwrap().format.clone().unwrap();
        record.last_seen.iter_mut().find(|voter| voter.node_id == 1).unwrap().directory_id =
            now.directory_id.unwrap();
        let decision = scene.pass();
        assert_eq!(reason(&decision), None);
        assert!(waits_for(&decision, "k-2").contains("seen up"), "{decision:?}");
    }
}

#[test]
fn the_voters_that_were_seen_last_are_on_record() {
    let mut scene = formatted(QuorumKind::InitialControllers);
    scene.up(1, &[0, 1, 2]);
    scene.pass();
    let seen = |scene: &Scene| {
        let voters = scene.record.as_ref().unwrap().last_seen.iter();
        voters.map(|voter| (voter.node_id, voter.directory_id.clone())).collect::<Vec<_>>()
    };
    assert_eq!(seen(&scene), VOTERS.map(|id| (id, scene.votes_with(id))));
    // controllers that the cluster did not begin with vote by now: it is those that must not be lost
    let Known::Yes(quorum) = &mut scene.observed.as_mut().unwrap().quorum else { panic!() };
    for voter in &mut quorum.details.voters {
        (voter.id, voter.directory_id) = (NodeId(voter.id.0 + 10), format!("later-{}", voter.id.0));
    }
    scene.pass();
    assert_eq!(seen(&scene), VOTERS.map(|id| (id + 10, format!("later-{id}"))));
    scene.observed = None;
    for id in VOTERS {
        scene.add(id, true);
    }
    assert_eq!(reason(&scene.pass()), None, "they observe by now");
    scene.add(10, true);
    assert_eq!(reason(&scene.pass()), None);
    scene.add(11, true);
    assert_eq!(reason(&scene.pass()).as_deref(), Some("VotersLost"));
    // a static quorum has no directories to go by
    let mut scene = formatted(QuorumKind::Static);
    scene.up(0, &[0, 1, 2]);
    scene.pass();
    assert_eq!(seen(&scene), []);
}

#[test]
fn without_its_record_a_cluster_that_may_exist_is_never_begun() {
    // the resource is known from before
    let mut scene = Scene::controllers(QuorumKind::InitialControllers);
    scene.remembered = Some("before".into());
    assert_eq!((reason(&scene.pass()).as_deref(), scene.pass().grants.len()), (Some("VotersLost"), 0));
    // a directory of it is there
    let mut scene = Scene::controllers(QuorumKind::InitialControllers);
    let look = scene.pods[0].look.as_mut().unwrap();
    (look.verdict, look.cluster_id, look.directory_id) =
        (Verdict::Formatted, Some("before".into()), Some("dir".into()));
    let decision = scene.pass();
    assert_eq!((decision.grants.len(), reason(&decision).as_deref()), (0, Some("VotersLost")));
    let record = decision.record.unwrap();
    assert_eq!(
        (record.cluster_id.as_str(), record.voter(0).unwrap().directory_id.as_deref()),
        ("before", Some("dir"))
    );
    // it runs
    let mut scene = Scene::controllers(QuorumKind::InitialControllers);
    scene.up(1, &[0, 1, 2]);
    let decision = scene.pass();
    assert_eq!(parts(&decision), VOTERS.map(|id| (id, Part::Observer)));
    assert_eq!(decision.record.unwrap().cluster_id, "running");
}

#[test]
fn one_that_found_the_others_led_gets_another_part() {
    let led = |scene: &mut Scene| {
        scene.pass();
        scene.formatted();
        let look = scene.pods[2].look.clone().unwrap();
        scene.pods[2].format = Some(Report {
            verdict: Verdict::Failed,
            reason: Some("LeaderFound".into()),
            message: Some("led".into()),
            ..look
        });
    };
    let mut scene = Scene::controllers(QuorumKind::InitialControllers);
    led(&mut scene);
    let own = scene.record.as_ref().unwrap().voter(2).unwrap().directory_id.clone();
    let decision = scene.pass();
    assert_eq!(parts(&decision), [(2, Part::Observer)]);
    assert_eq!(
        decision.grants[0].grant.directory_id, own,
        "nothing was written under it: it is the voter's own"
    );
    let mut scene = Scene::controllers(QuorumKind::Static);
    led(&mut scene);
    assert!(scene.pass().grants.is_empty());
    scene.up(0, &[0, 1]);
    assert_eq!(parts(&scene.pass()), [(2, Part::ReturningVoter)]);
}

#[test]
fn a_voter_that_came_back_as_an_observer_is_told_of_until_it_votes_again() {
    let mut scene = formatted(QuorumKind::InitialControllers);
    scene.add(2, true);
    scene.up(1, &[0, 1]);
    scene.pass();
    scene.formatted();
    let told = waits_for(&scene.pass(), "k-2");
    assert!(told.contains(&scene.votes_with(2)) && told.contains("remove-controller"), "{told}");
    assert_eq!(scene.pass().waiting(), None, "nothing is waited for");
}

#[test]
fn a_disk_that_is_added_or_lost_beside_the_metadata_log_is_formatted_without_a_vote() {
    for (quorum, part) in
        [(QuorumKind::Static, Part::ReturningVoter), (QuorumKind::InitialControllers, Part::Observer)]
    {
        let mut scene = formatted(quorum);
        let id = scene.record.as_ref().unwrap().cluster_id.clone();
        let look = scene.add(2, true).look.as_mut().unwrap();
        (look.cluster_id, look.directory_id) = (Some(id), Some("dir".into()));
        assert_eq!(parts(&scene.pass()), [(2, part)]);
    }
}
