//! What is declared, and what pods say: where they fit, where they contradict each other, and whom that stops.

use super::*;

#[test]
fn the_cluster_id_comes_from_the_first_that_knows_one_and_two_are_refused() {
    let id_of = |decision: &Decision| decision.record.as_ref().unwrap().cluster_id.clone();
    let mut scene = Scene::controllers(QuorumKind::InitialControllers);
    assert!(id_of(&scene.pass()).starts_with("fresh-"));
    let mut scene = Scene::controllers(QuorumKind::InitialControllers);
    scene.format.cluster_id_env = Some("CLUSTER_ID".into());
    for pod in &mut scene.pods {
        pod.given_id = GivenId::Value(IMAGE.into());
    }
    assert_eq!(id_of(&scene.pass()), IMAGE);
    scene.pinned = Some("pinned".into());
    let decision = scene.pass();
    let failure = decision.first_failure().unwrap();
    assert_eq!((failure.reason.as_str(), decision.grants.len()), ("ClusterIdMismatch", 0));
    assert!(failure.message.contains("\"pinned\"") && failure.message.contains(IMAGE), "{failure:?}");

    // a pod with the volume of another cluster fails; the others go on
    let mut scene = formatted(QuorumKind::InitialControllers);
    let pod = scene.add(9, false);
    pod.look.as_mut().unwrap().cluster_id = Some("other".into());
    scene.add(8, false);
    let decision = scene.pass();
    assert_eq!(parts(&decision), [(8, Part::Broker)]);
    let failure = decision.first_failure().unwrap();
    assert_eq!(failure.reason, "ClusterIdMismatch");
    assert!(failure.message.starts_with("Pod k-9") && failure.message.contains("\"other\""));
    // an image that formats by itself and is not told the id
    let mut scene = Scene::controllers(QuorumKind::InitialControllers);
    scene.format.cluster_id_env = Some("CLUSTER_ID".into());
    for pod in &mut scene.pods {
        pod.given_id = GivenId::Missing;
    }
    let decision = scene.pass();
    assert_eq!((reason(&decision).as_deref(), decision.grants.len()), (Some("ClusterIdEnvMissing"), 0));
}

#[test]
fn what_contradicts_the_declaration_fails_with_its_reason() {
    let mut scene = scene(QuorumKind::InitialControllers);
    scene.add(0, true).look = Some(report(QuorumKind::Static, 0, true));
    assert_eq!(reason(&scene.pass()).as_deref(), Some("QuorumKindMismatch"));
    let mut scene = Scene::controllers(QuorumKind::Static);
    scene.add(9, false).look = Some(report(QuorumKind::InitialControllers, 9, false));
    assert_eq!(reason(&scene.pass()).as_deref(), Some("QuorumKindMismatch"));
    let mut scene = Scene::controllers(QuorumKind::Static);
    scene.add(9, false).look.as_mut().unwrap().static_voters.pop();
    let decision = scene.pass();
    assert!(decision.first_failure().unwrap().message.contains("same voters"));
    assert_eq!(decision.grants.len(), 3, "the others go on");

    let mut scene = Scene::controllers(QuorumKind::InitialControllers);
    scene.add(1, true).name = "k-one-more".into();
    scene.add(1, true);
    let decision = scene.pass();
    assert_eq!((reason(&decision).as_deref(), decision.grants.len()), (Some("DuplicateNodeId"), 0));

    let mut scene = Scene::controllers(QuorumKind::InitialControllers);
    scene.format.kafka_version = None;
    let decision = scene.pass();
    assert_eq!((reason(&decision).as_deref(), decision.grants.len()), (Some("KafkaVersionUnknown"), 0));
    for pod in &mut scene.pods {
        pod.kafka_version = Some(Ok("4.2.2".into()));
    }
    let decision = scene.pass();
    assert_eq!((reason(&decision).as_deref(), decision.grants.len()), (Some("InvalidLevels"), 0));
    assert!(decision.first_failure().unwrap().message.contains("4.2"));
}

#[test]
fn a_pod_that_is_denied_is_judged_anew_once_what_was_wrong_is_right() {
    let mut scene = scene(QuorumKind::InitialControllers);
    for id in VOTERS {
        scene.add(id, true).look = Some(report(QuorumKind::Static, id, true));
    }
    let decision = scene.pass();
    assert_eq!((decision.denials.len(), reason(&decision).as_deref()), (3, Some("QuorumKindMismatch")));
    // their containers end with the reason, and say it again and again
    let decision = scene.pass();
    assert_eq!((decision.denials.len(), reason(&decision).as_deref()), (0, Some("QuorumKindMismatch")));
    // the configuration was corrected; the container that starts again reads it anew
    for pod in &mut scene.pods {
        let failed = pod.format.clone().unwrap();
        pod.format = Some(Report { static_voters: Vec::new(), ..failed });
    }
    let decision = scene.pass();
    assert_eq!(parts(&decision), VOTERS.map(|id| (id, Part::Voter)));
    assert_eq!(decision.first_failure(), None);
    // what a container finds by itself is not denied on top of that
    let pod = scene.add(9, false);
    let look = pod.look.as_mut().unwrap();
    (look.verdict, look.reason) = (Verdict::Failed, Some("NodeIdMismatch".into()));
    let decision = scene.pass();
    assert_eq!((decision.denials.len(), reason(&decision).as_deref()), (0, Some("NodeIdMismatch")));
}

#[test]
fn a_new_cluster_gets_no_odd_id_and_one_resource_formats_for_it() {
    let mut scene = Scene::controllers(QuorumKind::InitialControllers);
    scene.pinned = Some("my-kafka".into());
    let decision = scene.pass();
    assert_eq!((reason(&decision).as_deref(), decision.grants.len()), (Some("ClusterIdInvalid"), 0));
    // one that exists has what id it has
    scene.observed = None;
    let look = scene.pods[0].look.as_mut().unwrap();
    (look.verdict, look.cluster_id) = (Verdict::Formatted, Some("my-kafka".into()));
    assert_eq!(scene.pass().record.unwrap().cluster_id, "my-kafka");
    let mut scene = Scene::controllers(QuorumKind::InitialControllers);
    scene.owner = Some("ns/older");
    let decision = scene.pass();
    assert_eq!((reason(&decision).as_deref(), decision.grants.len()), (Some("FormatConflict"), 0));
    assert!(decision.first_failure().unwrap().message.contains("ns/older"));
}

#[test]
fn until_something_is_granted_the_record_follows_the_declaration() {
    let mut scene = scene(QuorumKind::InitialControllers);
    scene.add(0, true);
    let first = scene.pass().record.unwrap();
    scene.remembered = Some(first.cluster_id.clone());
    // a broker may be formatted before the controllers are all there
    scene.add(9, false);
    assert_eq!(parts(&scene.pass()), [(9, Part::Broker)]);
    scene.formatted();
    scene.format.initial_controllers[1].host = "elsewhere".into();
    scene.add(1, true);
    scene.add(2, true);
    let decision = scene.pass();
    assert_eq!(parts(&decision), VOTERS.map(|id| (id, Part::Voter)));
    let record = decision.record.unwrap();
    assert_eq!(
        (record.voter(1).unwrap().host.as_str(), &record.cluster_id),
        ("elsewhere", &first.cluster_id)
    );
    for id in VOTERS {
        assert_eq!(record.voter(id).unwrap().directory_id, first.voter(id).unwrap().directory_id);
    }
    // from then on it does not
    scene.format.initial_controllers[1].host = "c-1".into();
    let decision = scene.pass();
    assert_eq!((reason(&decision).as_deref(), decision.grants.len()), (Some("QuorumChanged"), 0));
    assert!(decision.first_failure().unwrap().message.contains("1@elsewhere:9093"));
    // in a static quorum the first that looks may be the one that is wrong
    let mut scene = Scene::controllers(QuorumKind::Static);
    scene.pods.truncate(1);
    scene.pods[0].look.as_mut().unwrap().static_voters.pop();
    assert_eq!(scene.pass().record.unwrap().voters.len(), 2);
    scene.pods[0].look = Some(report(QuorumKind::Static, 0, true));
    scene.add(1, true);
    scene.add(2, true);
    assert_eq!(parts(&scene.pass()), VOTERS.map(|id| (id, Part::Voter)));
}

#[test]
fn what_can_not_be_granted_is_not_on_record_as_granted() {
    let mut scene = Scene::controllers(QuorumKind::InitialControllers);
    scene.format.kafka_version = None;
    for pod in &mut scene.pods[1..] {
        pod.kafka_version = Some(Ok("4.4.0".into()));
    }
    let decision = scene.pass();
    assert_eq!((reason(&decision).as_deref(), decision.grants.len()), (Some("KafkaVersionUnknown"), 0));
    assert!(decision.record.unwrap().voters.iter().all(|voter| voter.state == VoterState::Ungranted));
    scene.add(0, true).kafka_version = Some(Ok("4.4.0".into()));
    assert_eq!(scene.pass().grants.len(), 3);
}

#[test]
fn levels_are_the_declared_ones_over_the_defaults_of_the_software() {
    let mut scene = Scene::controllers(QuorumKind::InitialControllers);
    let feature = |name: &str| FeatureName::new(name).unwrap();
    let level = |level| crate::features::target::DeclaredLevel::Number(Level(level));
    scene.target = TargetSpec::Levels(
        [
            (feature("metadata.version"), level(21)),
            (feature("transaction.version"), level(2)),
            (feature("of.the.future"), level(1)),
        ]
        .into(),
    );
    let levels = scene.pass().grants[0].grant.levels.clone();
    assert_eq!(
        (levels["metadata.version"], levels["transaction.version"], levels["group.version"]),
        (21, 2, 0)
    );
    assert!(!levels.contains_key("of.the.future"));
    let mut scene = Scene::controllers(QuorumKind::InitialControllers);
    scene.target = TargetSpec::Nothing;
    assert_eq!(scene.pass().grants[0].grant.levels["metadata.version"], 33);
}

#[test]
fn while_it_is_held_nothing_is_granted_and_nothing_recorded_as_granted() {
    let mut scene = Scene::controllers(QuorumKind::InitialControllers);
    scene.held = Some("spec.paused to be false");
    let decision = scene.pass();
    assert_eq!(decision.grants, []);
    assert!(decision.record.unwrap().voters.iter().all(|voter| voter.state == VoterState::Ungranted));
    assert!(decision.pods.iter().all(|pod| pod.waits_for.as_deref() == Some("spec.paused to be false")));
}
