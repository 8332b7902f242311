//! What must hold whatever happens, in whatever order: pods that go and come with and without their volumes, reports that nobody
//! read, an operator that dies between record and grant, a leader that has not missed yet what is lost.

use proptest::prelude::*;

use super::tests::{Scene, VOTERS};
use super::*;
use crate::api::QuorumKind;

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A pass of the operator, which sees the cluster where it can be seen; its leader still counts these.
    Pass([bool; 3]),
    /// One that can't see the cluster.
    BlindPass,
    /// One that ends between the record and the grants.
    PassThatDies,
    /// A pod does what it is granted.
    Formats(usize),
    /// So does one that goes before anybody has read its report.
    FormatsUnseen(usize),
    /// A pod is replaced, and keeps its volume.
    Restarts(usize),
    /// A pod is replaced, and its volume is lost.
    LosesItsVolume(usize),
    /// A pod goes.
    Goes(usize),
    /// The resource is deleted and made again.
    Remade,
    /// A voter that came back with nothing has learnt everything from the leader.
    CatchesUp(usize),
    /// A moment goes by.
    Soon,
    /// Minutes go by.
    Later,
}

fn event() -> impl Strategy<Value = Event> {
    let node = 0..VOTERS.len();
    prop_oneof![
        8 => any::<[bool; 3]>().prop_map(Event::Pass),
        1 => Just(Event::BlindPass),
        1 => Just(Event::PassThatDies),
        5 => node.clone().prop_map(Event::Formats),
        1 => node.clone().prop_map(Event::FormatsUnseen),
        1 => node.clone().prop_map(Event::Restarts),
        2 => node.clone().prop_map(Event::LosesItsVolume),
        1 => node.clone().prop_map(Event::Goes),
        2 => node.prop_map(Event::CatchesUp),
        2 => Just(Event::Soon),
        1 => Just(Event::Remade),
        1 => Just(Event::Later),
    ]
}

/// The world outside of the operator: what is on the volumes, and what was there before.
struct World {
    scene: Scene,
    kind: QuorumKind,
    /// What the volumes hold.
    volumes: [Option<Held>; 3],
    /// Whether a node was ever formatted so that it may have voted.
    voted: [bool; 3],
    /// When a node last lost its volume: for some seconds, the leader goes on counting it.
    lost_at: [i64; 3],
}

/// What a volume holds.
#[derive(Clone)]
struct Held {
    cluster: String,
    /// Whether its node votes.
    votes: bool,
    /// Whether it has forgotten what it voted for.
    forgot: bool,
}

impl World {
    fn pod(&mut self, at: usize) -> Option<&mut Pod> {
        let name = format!("k-{}", VOTERS[at]);
        self.scene.pods.iter_mut().find(|pod| pod.name == name)
    }

    /// A new pod on what the volume holds.
    fn restart(&mut self, at: usize) {
        let held = self.volumes[at].clone();
        let look = self.scene.add(VOTERS[at], true).look.as_mut().unwrap();
        if let Some(held) = held {
            look.verdict = Verdict::Formatted;
            (look.cluster_id, look.directory_id) = (Some(held.cluster), Some(format!("directory-{at}")));
        }
    }

    fn loses(&mut self, at: usize) {
        self.volumes[at] = None;
        self.lost_at[at] = self.scene.now;
        self.restart(at);
    }

    fn votes(&self, at: usize) -> bool {
        self.volumes[at].as_ref().is_some_and(|held| held.votes)
    }

    fn forgot(&self, at: usize) -> bool {
        self.volumes[at].as_ref().is_some_and(|held| held.votes && held.forgot)
    }

    /// The voter that leads, where a majority of them has anything, and one of those everything.
    fn leader(&self) -> Option<usize> {
        self.leads(|_| false)
    }

    fn leads(&self, counts: impl Fn(usize) -> bool) -> Option<usize> {
        let whole = (0..3).find(|at| self.votes(*at) && !self.forgot(*at));
        let voting = (0..3).filter(|at| self.votes(*at) || counts(*at)).count();
        whole.filter(|_| voting * 2 > 3)
    }

    /// Whether a leader may not have missed yet what a node has lost.
    fn is_not_missed(&self, at: usize) -> bool {
        self.scene.now - self.lost_at[at] < 10
    }

    /// A pod does what it is granted, if anything; whether it did.
    fn format(&mut self, at: usize) -> bool {
        let Some(pod) = self.pod(at) else { return false };
        let Some(grant) = pod.grant.clone().filter(|grant| grant.pod == pod.uid) else { return false };
        if self.volumes[at].is_some() {
            return false;
        }
        let forgetful = (0..3).filter(|other| *other != at && self.forgot(*other)).count();
        match grant.part {
            Part::Voter => {
                assert!(!self.voted[at], "{} begins the cluster a second time", VOTERS[at]);
            }
            // they would be a majority that knows nothing
            Part::ReturningVoter => assert!(forgetful == 0, "{} returns beside {forgetful}", VOTERS[at]),
            Part::Observer => assert!(self.kind != QuorumKind::Static),
            Part::Broker => panic!("it is a controller"),
        }
        let votes = grant.part != Part::Observer;
        self.voted[at] |= votes;
        let forgot = grant.part == Part::ReturningVoter;
        self.volumes[at] = Some(Held { cluster: grant.cluster_id, votes, forgot });
        true
    }

    fn play(&mut self, event: Event) {
        match event {
            Event::Pass(still) => {
                self.look(still);
                self.pass();
            }
            Event::BlindPass => {
                self.scene.observed = None;
                self.pass();
            }
            Event::PassThatDies => self.scene.pass_that_dies(),
            Event::Formats(at) => {
                if self.format(at) {
                    let held = self.volumes[at].clone().unwrap().cluster;
                    let pod = self.pod(at).unwrap();
                    let look = pod.look.clone().unwrap();
                    pod.format = Some(Report {
                        verdict: Verdict::FormattedNow,
                        cluster_id: Some(held),
                        directory_id: Some(format!("directory-{at}")),
                        ..look
                    });
                }
            }
            Event::FormatsUnseen(at) => {
                if self.format(at) {
                    self.loses(at);
                }
            }
            Event::Restarts(at) => self.restart(at),
            Event::LosesItsVolume(at) => self.loses(at),
            Event::Goes(at) => {
                let name = format!("k-{}", VOTERS[at]);
                self.scene.pods.retain(|pod| pod.name != name);
            }
            Event::CatchesUp(at) => {
                let led = self.leader().is_some();
                if let Some(held) = self.volumes[at].as_mut().filter(|_| led) {
                    held.forgot = false;
                }
            }
            Event::Soon => self.scene.now += 3,
            Event::Remade => self.scene.remembered = None,
            Event::Later => self.scene.now += 120,
        }
    }

    fn pass(&mut self) {
        self.scene.pass();
        self.scene.remembered = self.scene.record.as_ref().map(|record| record.cluster_id.clone());
    }

    /// Sees the cluster, where a leader is to be seen.
    fn look(&mut self, still: [bool; 3]) {
        let Some(leader) = self.leads(|at| self.is_not_missed(at)) else {
            self.scene.observed = None;
            return;
        };
        let counts = |at: usize| {
            let caught_up = self.votes(at) && !self.forgot(at);
            still[at] && (caught_up || self.is_not_missed(at))
        };
        let others: Vec<i32> =
            (0..3).filter(|at| *at != leader && counts(*at)).map(|at| VOTERS[at]).collect();
        let counted = [vec![VOTERS[leader]], others].concat();
        self.scene.up(i16::from(self.kind != QuorumKind::Static), &counted);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: super::tests::cases(), ..ProptestConfig::default() })]

    #[test]
    fn no_controller_begins_a_cluster_twice_and_none_returns_to_less_than_a_majority(
        is_static in any::<bool>(),
        begun in any::<bool>(),
        events in prop::collection::vec(event(), 1..60),
    ) {
        let kind = if is_static { QuorumKind::Static } else { QuorumKind::InitialControllers };
        let mut world = World {
            scene: Scene::controllers(kind),
            kind,
            volumes: [None, None, None],
            voted: [false; 3],
            lost_at: [i64::MIN / 2; 3],
        };
        let beginning = [Event::BlindPass, Event::Formats(0), Event::Formats(1), Event::Formats(2)];
        for event in beginning.into_iter().filter(|_| begun).chain(events) {
            world.play(event);
        }
        // where nothing happens, a second pass finds nothing to do
        world.play(Event::Pass([true; 3]));
        let record = world.scene.record.clone();
        let again = world.scene.pass();
        prop_assert!(again.grants.is_empty() && again.denials.is_empty(), "{again:?}");
        prop_assert_eq!(again.record, record);
    }

    #[test]
    fn undisturbed_a_cluster_is_formatted_whole(order in Just(VOTERS.to_vec()).prop_shuffle(), is_static in any::<bool>()) {
        let kind = if is_static { QuorumKind::Static } else { QuorumKind::InitialControllers };
        let mut world = World {
            scene: Scene::controllers(kind),
            kind,
            volumes: [None, None, None],
            voted: [false; 3],
            lost_at: [i64::MIN / 2; 3],
        };
        world.play(Event::BlindPass);
        for id in order {
            world.play(Event::Formats(VOTERS.iter().position(|voter| *voter == id).unwrap()));
            world.play(Event::Pass([true; 3]));
        }
        prop_assert!((0..3).all(|at| world.votes(at)));
    }
}
