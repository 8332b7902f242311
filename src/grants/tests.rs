//! Who is granted what: every pod that waits is either safe to format or waits on.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::api::pods::GrantedVoter;
use crate::api::{InitialController, QuorumKind};
use crate::features::observed::{ClusterId, Known, NodeId, Observed, Quorum, QuorumDetails, QuorumVoter};
use crate::features::{FeatureName, Level};

/// So many random cases; more in the exhaustive run.
pub(super) fn cases() -> u32 {
    if std::env::var_os("KAFKA_FEATURES_FULL").is_some() { 20_000 } else { 1000 }
}

/// A cluster and its operator's memory, as they change from pass to pass.
pub(super) struct Scene {
    format: Format,
    target: TargetSpec,
    pinned: Option<String>,
    pub(super) remembered: Option<String>,
    pub(super) record: Option<Record>,
    pub(super) observed: Option<Observed>,
    pub(super) pods: Vec<Pod>,
    pub(super) now: i64,
    owner: Option<&'static str>,
    held: Option<&'static str>,
    ids: u32,
}

const IMAGE: &str = "5L6g3nShT-eMCtK--X86sw";
pub(super) const VOTERS: [i32; 3] = [0, 1, 2];

fn scene(quorum: QuorumKind) -> Scene {
    let controllers: &[i32] = match quorum {
        QuorumKind::Static => &[],
        QuorumKind::Standalone => &[0],
        QuorumKind::InitialControllers => &VOTERS,
    };
    let controller = |id: &i32| InitialController { node_id: *id, host: format!("c-{id}"), port: 9093 };
    Scene {
        format: Format {
            quorum,
            initial_controllers: controllers.iter().map(controller).collect(),
            kafka_version: Some("4.4.0".into()),
            cluster_id_env: None,
        },
        target: TargetSpec::Release("4.3".into()),
        pinned: None,
        remembered: None,
        record: None,
        observed: None,
        pods: Vec::new(),
        now: 1000,
        owner: None,
        held: None,
        ids: 0,
    }
}

fn report(quorum: QuorumKind, id: i32, controller: bool) -> Report {
    let statics = if quorum == QuorumKind::Static {
        VOTERS.map(|id| format!("{id}@c-{id}:9093")).to_vec()
    } else {
        Vec::new()
    };
    Report {
        verdict: Verdict::Unformatted,
        node_id: Some(id),
        broker: !controller,
        controller,
        static_voters: statics,
        ..Report::default()
    }
}

impl Scene {
    /// A new pod of a node, with empty volumes, that has looked.
    pub(super) fn add(&mut self, id: i32, controller: bool) -> &mut Pod {
        self.pods.retain(|pod| pod.name != format!("k-{id}"));
        self.ids += 1;
        self.pods.push(Pod {
            name: format!("k-{id}"),
            uid: format!("uid-{}", self.ids),
            injected: true,
            look: Some(report(self.format.quorum, id, controller)),
            ..Pod::default()
        });
        self.pods.last_mut().unwrap()
    }

    pub(super) fn controllers(quorum: QuorumKind) -> Self {
        let mut scene = scene(quorum);
        for id in VOTERS {
            scene.add(id, true);
        }
        scene
    }

    /// One pass; the record is written and the grants are put on their pods.
    pub(super) fn pass(&mut self) -> Decision {
        let mut count = 0;
        let before = self.record.clone();
        let decision = self.decide(&mut || {
            count += 1;
            format!("fresh-{count}")
        });
        if self.held.is_none() {
            self.record.clone_from(&decision.record);
            for granted in &decision.grants {
                let pod = self.pods.iter_mut().find(|pod| pod.name == granted.pod).unwrap();
                assert_eq!(pod.uid, granted.grant.pod);
                (pod.grant, pod.denied) = (Some(granted.grant.clone()), None);
            }
            for denied in &decision.denials {
                let pod = self.pods.iter_mut().find(|pod| pod.name == denied.pod).unwrap();
                assert!(pod.grant.as_ref().is_none_or(|grant| grant.pod != pod.uid), "it may be using it");
                pod.denied = Some(denied.denial.clone());
                let look = pod.look.clone().unwrap();
                let (reason, message) = (denied.denial.reason.clone(), denied.denial.message.clone());
                pod.format = Some(Report {
                    verdict: Verdict::Failed,
                    reason: Some(reason),
                    message: Some(message),
                    denied: true,
                    ..look
                });
            }
        }
        // no controller that may have been formatted is ever one that the cluster begins with
        for granted in decision.grants.iter().filter(|granted| granted.grant.part == Part::Voter) {
            let known = before.as_ref().and_then(|record| record.voter(granted.grant.node_id).cloned());
            let own = VoterState::Granted(granted.grant.pod.clone());
            assert!(
                known.is_none_or(|voter| voter.state == VoterState::Ungranted || voter.state == own),
                "{granted:?}"
            );
        }
        decision
    }

    /// A pass that ends once the record is written.
    pub(super) fn pass_that_dies(&mut self) {
        let mut count = 100;
        let decision = self.decide(&mut || {
            count += 1;
            format!("fresh-{count}")
        });
        self.record = decision.record;
    }

    fn decide(&self, fresh: &mut dyn FnMut() -> String) -> Decision {
        decide(
            &Situation {
                resource: "kafka",
                format: &self.format,
                target: &self.target,
                pinned: self.pinned.as_deref(),
                remembered: self.remembered.as_deref(),
                record: self.record.as_ref(),
                observed: self.observed.as_ref(),
                pods: &self.pods,
                now: Timestamp::from_second(self.now).unwrap(),
                owner: self.owner,
                held: self.held,
            },
            fresh,
        )
    }

    /// The granted pods report that they are formatted.
    fn formatted(&mut self) {
        for pod in &mut self.pods {
            let Some(grant) = pod.grant.clone() else { continue };
            let look = pod.look.clone().unwrap();
            pod.format = Some(Report {
                verdict: Verdict::FormattedNow,
                cluster_id: Some(grant.cluster_id),
                directory_id: Some(format!("dir-{}", pod.uid)),
                ..look
            });
        }
    }

    /// The cluster is up, with these voters caught up.
    pub(super) fn up(&mut self, kraft_version: i16, caught_up: &[i32]) {
        let voter = |id: &i32| QuorumVoter {
            id: NodeId(*id),
            directory_id: format!("running-{id}"),
            host: format!("c-{id}"),
            port: 9093,
        };
        let levels = [
            (FeatureName::metadata_version(), Level(30)),
            (FeatureName::new("kraft.version").unwrap(), Level(kraft_version)),
        ];
        self.observed = Some(Observed {
            cluster_id: ClusterId(self.record.as_ref().map_or("running".into(), |r| r.cluster_id.clone())),
            nodes: BTreeMap::new(),
            fenced_brokers_listed: true,
            finalized: levels.into_iter().collect(),
            finalized_epoch: None,
            quorum: Known::Yes(Quorum {
                leader: Known::Yes(NodeId(caught_up[0])),
                voters: VOTERS.map(NodeId).into(),
                observers: BTreeSet::new(),
                details: QuorumDetails {
                    caught_up: caught_up.iter().copied().map(NodeId).collect(),
                    voters: if kraft_version > 0 { VOTERS.iter().map(voter).collect() } else { Vec::new() },
                },
            }),
            min_insync_overrides: Known::Yes(BTreeSet::new()),
        });
    }
}

/// A cluster that was formatted, with the operator's record of it.
fn formatted(quorum: QuorumKind) -> Scene {
    let mut scene = Scene::controllers(quorum);
    assert_eq!(scene.pass().grants.len(), 3);
    scene.formatted();
    scene.pass();
    scene
}

fn parts(decision: &Decision) -> Vec<(i32, Part)> {
    decision.grants.iter().map(|granted| (granted.grant.node_id, granted.grant.part)).collect()
}

fn reason(decision: &Decision) -> Option<String> {
    decision.first_failure().map(|failure| failure.reason)
}

fn waits_for(decision: &Decision, pod: &str) -> String {
    let view = decision.pods.iter().find(|view| view.name == pod).unwrap();
    view.waits_for.clone().unwrap_or_default()
}

#[test]
fn the_controllers_that_a_cluster_begins_with_are_granted_together() {
    for quorum in [QuorumKind::Static, QuorumKind::InitialControllers] {
        let mut scene = scene(quorum);
        scene.add(0, true);
        scene.add(1, true);
        let decision = scene.pass();
        assert_eq!(decision.grants, []);
        assert!(waits_for(&decision, "k-0").contains("controllers 2"), "{decision:?}");
        assert!(waits_for(&decision, "k-0").contains("Parallel"));
        scene.add(2, true);
        let decision = scene.pass();
        assert_eq!(parts(&decision), VOTERS.map(|id| (id, Part::Voter)));
        let record = decision.record.unwrap();
        for granted in &decision.grants {
            let state = &record.voter(granted.grant.node_id).unwrap().state;
            assert_eq!(
                *state,
                VoterState::Granted(granted.grant.pod.clone()),
                "on record before it is granted"
            );
            assert_eq!(granted.grant.levels["metadata.version"], 30);
            assert_eq!(granted.grant.cluster_id, record.cluster_id);
            let dynamic = quorum != QuorumKind::Static;
            assert_eq!(granted.grant.voters.len(), if dynamic { 3 } else { 0 });
            assert!(!granted.grant.levels.contains_key("kraft.version"));
        }
        assert_eq!(scene.pass().grants, [], "granted once");
    }
}

#[test]
fn standalone_names_one_and_the_others_observe() {
    let mut scene = scene(QuorumKind::Standalone);
    for id in [0, 5] {
        scene.add(id, true);
    }
    scene.add(9, false);
    let decision = scene.pass();
    assert_eq!(parts(&decision), [(0, Part::Voter), (5, Part::Observer), (9, Part::Broker)]);
    let voters: Vec<&GrantedVoter> = decision.grants[0].grant.voters.iter().collect();
    assert_eq!((voters.len(), voters[0].node_id), (1, 0));
    assert!(decision.grants[1].grant.voters.is_empty() && decision.grants[1].grant.directory_id.is_none());
}

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
        for word in ["2 of the 3", "(1, 2)", "backup", "kafka-kafka-identity"] {
            assert!(failure.message.contains(word), "{failure:?}");
        }
    }
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
fn more_nodes_come_to_a_cluster_that_runs_with_the_levels_that_it_has() {
    let mut scene = formatted(QuorumKind::InitialControllers);
    scene.up(1, &VOTERS);
    scene.target = TargetSpec::Release("4.4".into());
    scene.add(3, true);
    scene.add(9, false);
    let decision = scene.pass();
    assert_eq!(parts(&decision), [(3, Part::Observer), (9, Part::Broker)]);
    assert_eq!(decision.grants[1].grant.levels, BTreeMap::from([("metadata.version".into(), 30)]));

    let mut scene = formatted(QuorumKind::Static);
    scene.up(0, &VOTERS);
    scene.add(9, false).kafka_version = Some(Ok("4.2.0".into()));
    let decision = scene.pass();
    assert_eq!(reason(&decision).as_deref(), Some("KafkaVersionTooOld"), "{decision:?}");
    let message = decision.first_failure().unwrap().message;
    assert!(message.contains("4.2.0") && message.contains("4.3-IV0"), "{message}");
    scene.pods.last_mut().unwrap().kafka_version = Some(Ok("4.3.1".into()));
    let decision = scene.pass();
    assert_eq!(decision.grants[0].grant.kafka_version, "4.3.1", "laid out for its own software");
}

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
fn a_voter_that_came_back_as_an_observer_is_told_of_until_it_votes_again() {
    let mut scene = formatted(QuorumKind::InitialControllers);
    scene.add(2, true);
    scene.up(1, &[0, 1]);
    scene.pass();
    scene.formatted();
    let told = waits_for(&scene.pass(), "k-2");
    assert!(told.contains("running-2") && told.contains("remove-controller"), "{told}");
    assert_eq!(scene.pass().waiting(), None, "nothing is waited for");
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

#[test]
fn pods_without_the_containers_are_shown_and_a_pod_on_its_way_out_is_nobody() {
    let mut scene = scene(QuorumKind::Standalone);
    scene.add(0, true).going = true;
    let pod = scene.add(3, false);
    (pod.injected, pod.look) = (false, None);
    let decision = scene.pass();
    assert_eq!((decision.grants.len(), decision.pods.len()), (0, 1));
    assert_eq!(decision.pods[0].state, PodState::NotInjected);
    assert!(waits_for(&decision, "k-3").contains("no init container"));
    assert_eq!(decision.waiting(), None);
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

#[test]
fn what_waits_for_what_is_one_line() {
    let mut scene = scene(QuorumKind::InitialControllers);
    scene.add(0, true);
    scene.add(1, true);
    scene.add(9, false).look = None;
    let text = scene.pass().waiting().unwrap();
    assert!(text.contains("k-0, k-1 wait for the pods of the controllers 2"), "{text}");
    assert!(text.contains("k-9 waits for the init containers"), "{text}");
    let record = scene.record.unwrap();
    let text = serde_json::to_string(&record).unwrap();
    assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), record);
}
