//! What must hold whatever happens, in whatever order: pods that go and come with and without their volumes, reports that nobody
//! read, an operator that dies between record and grant, a leader that has not missed yet what is lost.

use proptest::prelude::*;

use super::tests::{Scene, VOTERS};
use super::*;
use crate::api::QuorumKind;

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A pass of the operator.
    Pass,
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
    /// The cluster is seen up, where it can be; its leader still counts these.
    Up([bool; 3]),
    /// It can't be seen.
    Down,
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
        6 => Just(Event::Pass),
        1 => Just(Event::PassThatDies),
        4 => node.clone().prop_map(Event::Formats),
        1 => node.clone().prop_map(Event::FormatsUnseen),
        1 => node.clone().prop_map(Event::Restarts),
        2 => node.clone().prop_map(Event::LosesItsVolume),
        1 => node.clone().prop_map(Event::Goes),
        1 => node.prop_map(Event::CatchesUp),
        1 => Just(Event::Soon),
        3 => any::<[bool; 3]>().prop_map(Event::Up),
        1 => Just(Event::Down),
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
        let voting: Vec<usize> = (0..3).filter(|at| self.votes(*at)).collect();
        let whole = voting.iter().copied().find(|at| !self.forgot(*at));
        whole.filter(|_| voting.len() * 2 > 3)
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
            Event::Pass => {
                self.scene.pass();
                self.scene.remembered = self.scene.record.as_ref().map(|record| record.cluster_id.clone());
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
            Event::Up(still) => {
                if let Some(leader) = self.leader() {
                    let counts = |at: usize| {
                        let caught_up = self.votes(at) && !self.forgot(at);
                        still[at] && (caught_up || self.scene.now - self.lost_at[at] < 10)
                    };
                    let others: Vec<i32> =
                        (0..3).filter(|at| *at != leader && counts(*at)).map(|at| VOTERS[at]).collect();
                    let counted = [vec![VOTERS[leader]], others].concat();
                    self.scene.up(i16::from(self.kind != QuorumKind::Static), &counted);
                }
            }
            Event::CatchesUp(at) => {
                let led = self.leader().is_some();
                if let Some(held) = self.volumes[at].as_mut().filter(|_| led) {
                    held.forgot = false;
                }
            }
            Event::Soon => self.scene.now += 3,
            Event::Down => self.scene.observed = None,
            Event::Remade => (self.scene.remembered, self.scene.observed) = (None, None),
            Event::Later => self.scene.now += 120,
        }
        // what was seen of the cluster is seen anew in each pass
        if !matches!(event, Event::Up(_)) {
            self.scene.observed = None;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: super::tests::cases(), ..ProptestConfig::default() })]

    #[test]
    fn no_controller_begins_a_cluster_twice_and_none_returns_to_less_than_a_majority(
        is_static in any::<bool>(),
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
        for event in events {
            world.play(event);
        }
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
        world.play(Event::Pass);
        for id in order {
            world.play(Event::Formats(VOTERS.iter().position(|voter| *voter == id).unwrap()));
            world.play(Event::Pass);
        }
        prop_assert!((0..3).all(|at| world.votes(at)));
    }
}
