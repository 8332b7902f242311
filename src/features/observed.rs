//! What one pass over a cluster found out: every node with its supported ranges, the finalized levels, the
//! quorum. The Kafka client fills these values; nothing here is remembered from an earlier pass.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::{FeatureName, FinalizedFeatures, LevelRange, SupportedFeatures};

/// A Kafka cluster's id, as the cluster itself says it. Any text: Kafka validates none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterId(pub String);

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A node's id, unique over brokers and controllers of one cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub i32);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Something that could be found out, or could not, and then why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known<T> {
    /// It was found out.
    Yes(T),
    /// It could not be found out; the text says why, for people.
    No(String),
}

impl<T> Known<T> {
    /// The value, if it was found out.
    #[must_use]
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Yes(value) => Some(value),
            Self::No(_) => None,
        }
    }
}

/// What a node does in the cluster; a combined node does both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Roles {
    /// It is a broker.
    pub broker: bool,
    /// It is a controller, voter or observer.
    pub controller: bool,
}

impl fmt::Display for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.broker, self.controller) {
            (true, true) => "broker and controller",
            (true, false) => "broker",
            (false, true) => "controller",
            (false, false) => "node",
        })
    }
}

/// A controller's place in the Raft quorum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuorumPlace {
    /// It votes.
    Voter,
    /// It follows without a vote. Brokers are observers too.
    Observer,
    /// The quorum was read in full and does not name the node.
    Neither,
    /// The quorum could not be read.
    Unknown,
}

/// One node as it was seen in one pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its id.
    pub id: NodeId,
    /// What it does.
    pub roles: Roles,
    /// Whether the active controller holds a registration of it, where the servers can say.
    pub registered: Known<bool>,
    /// Whether it is a fenced broker, where the servers can say (brokers from 4.0; `None` for pure controllers).
    pub fenced: Option<bool>,
    /// Its place in the quorum.
    pub quorum: QuorumPlace,
    /// The supported ranges that it gave itself, or why it could not be asked.
    pub supported: Known<SupportedFeatures>,
    /// Whether these ranges are all that it has. Nodes before Kafka 3.9, and whatever stands between that speaks no
    /// ApiVersions 4, leave out every feature whose lowest level is 0.
    pub lists_all_features: bool,
}

impl Node {
    /// The range that the node supports of one feature, as far as it told. A feature that it does not mention counts
    /// as 0 to 0, as in Kafka's own check at broker registration, unless its answer leaves such features out.
    #[must_use]
    pub fn range(&self, feature: &FeatureName) -> Option<LevelRange> {
        let listed = self.supported.value()?.get(feature).copied();
        listed.or(self.lists_all_features.then_some(LevelRange::ABSENT))
    }

    /// Whether this is a *ghost*: a registered controller that is neither voter nor observer of a quorum that
    /// was read in full, and does not answer. Kafka still holds it against every change of levels.
    ///
    /// One that answers lives: a leader lists an observer only once it has heard from it since its election.
    #[must_use]
    pub fn is_ghost(&self) -> bool {
        self.roles.controller
            && self.registered == Known::Yes(true)
            && self.quorum == QuorumPlace::Neither
            && self.supported.value().is_none()
    }
}

/// The Raft quorum, as far as a change of levels depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quorum {
    /// The leader, which is the active controller; or how it showed that there is none to send a change to.
    pub leader: Known<NodeId>,
    /// All voters.
    pub voters: BTreeSet<NodeId>,
    /// All observers, brokers among them.
    pub observers: BTreeSet<NodeId>,
    /// What formatting a controller depends on besides.
    pub details: QuorumDetails,
}

/// What the leader says about the voters, as far as formatting a controller depends on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuorumDetails {
    /// The voters that had everything within the last seconds, by the leader's clock.
    pub caught_up: BTreeSet<NodeId>,
    /// The voters with their directories and addresses; empty in a static quorum.
    pub voters: Vec<QuorumVoter>,
}

/// A voter of a dynamic quorum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuorumVoter {
    /// Its node id.
    pub id: NodeId,
    /// The id of its metadata directory.
    pub directory_id: String,
    /// Its host.
    pub host: String,
    /// Its port.
    pub port: u16,
}

/// A cluster as it was seen in one pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The cluster's id; every answer of the pass agreed on it.
    pub cluster_id: ClusterId,
    /// Every broker and every controller that anything named, by id.
    pub nodes: BTreeMap<NodeId, Node>,
    /// Whether stopped brokers that are still registered are among the nodes; brokers before Kafka 4.0 don't list them.
    pub fenced_brokers_listed: bool,
    /// The finalized levels.
    pub finalized: FinalizedFeatures,
    /// The epoch of the finalized levels, where the server gave one. Changes without meaning on brokers: shown,
    /// never compared.
    pub finalized_epoch: Option<i64>,
    /// The quorum, or why it could not be read.
    pub quorum: Known<Quorum>,
    /// The brokers that hold their own dynamic `min.insync.replicas`, which Kafka wipes when
    /// `eligible.leader.replicas.version` is raised; or why that could not be read.
    pub min_insync_overrides: Known<BTreeSet<NodeId>>,
}
