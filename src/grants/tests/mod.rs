//! Who is granted what: every pod that waits is either safe to format or waits on.

mod declared;
mod lost;

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
    /// What each node was formatted with at first.
    directories: BTreeMap<i32, String>,
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
        directories: BTreeMap::new(),
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
            let directory = own_directory(&grant, &pod.uid);
            self.directories.entry(grant.node_id).or_insert_with(|| directory.clone());
            pod.format = Some(Report {
                verdict: Verdict::FormattedNow,
                cluster_id: Some(grant.cluster_id),
                directory_id: Some(directory),
                ..look
            });
        }
    }

    /// The directory that the quorum lists a voter with: what it was formatted with, whatever came after.
    pub(super) fn votes_with(&self, id: i32) -> String {
        self.directories.get(&id).cloned().unwrap_or_else(|| format!("running-{id}"))
    }

    /// The cluster is up, with these voters caught up.
    pub(super) fn up(&mut self, kraft_version: i16, caught_up: &[i32]) {
        let voter = |id: &i32| QuorumVoter {
            id: NodeId(*id),
            directory_id: self.votes_with(*id),
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

/// The directory id that a pod is formatted with: a voter's is among the voters, another makes itself one.
fn own_directory(grant: &Grant, uid: &str) -> String {
    let own = grant.voters.iter().find(|voter| voter.node_id == grant.node_id && grant.part == Part::Voter);
    let own = own.and_then(|voter| voter.directory_id.clone());
    grant.directory_id.clone().or(own).unwrap_or_else(|| format!("dir-{uid}"))
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
fn pods_without_the_containers_are_shown_and_a_pod_on_its_way_out_is_nobody() {
    let mut scene = scene(QuorumKind::Standalone);
    scene.add(0, true).going = true;
    let pod = scene.add(3, false);
    (pod.injected, pod.look) = (false, None);
    let decision = scene.pass();
    assert_eq!((decision.grants.len(), decision.pods.len()), (0, 1));
    assert_eq!(decision.pods[0].state, PodState::NotInjected);
    assert!(waits_for(&decision, "k-3").contains("no init container"));
    let waiting = decision.waiting().unwrap();
    assert!(waiting.contains("k-3 waits for the init containers, which only a new pod"), "{waiting}");
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
