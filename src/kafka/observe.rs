//! One observation: from the addresses that were given to every node of the cluster.
//!
//! Which endpoint tells what: a broker lists the brokers (the fenced ones too from Kafka 4.0) and passes the question
//! for the quorum on to the active controller; a controller lists the registered controllers, and alone knows the
//! levels as they are at this moment, since brokers follow it a little behind.

use std::collections::{BTreeMap, BTreeSet};

use futures::StreamExt;
use futures::stream;

use super::connection::Connection;
use super::error::{Error, What};
use super::node::{ClusterReport, FeatureReport, QuorumReport};
use super::{Address, Client, Entry, Kind};
use crate::features::FinalizedFeatures;
use crate::features::observed::{ClusterId, Known, Node, NodeId, Observed, Quorum, QuorumPlace, Roles};

/// How many nodes are asked at once.
const AT_ONCE: usize = 16;
const ELR: &str = crate::features::FeatureName::ELIGIBLE_LEADER_REPLICAS_VERSION;

/// What could be read of the cluster as a whole.
struct Overview {
    cluster_id: ClusterId,
    brokers: Option<ClusterReport>,
    /// The registered controllers, or why they could not be read.
    controllers: Known<ClusterReport>,
    quorum: Known<QuorumReport>,
    /// Whether the brokers' own `min.insync.replicas` matter: not once eligible leader replicas are finalized.
    ask_min_insync: bool,
}

/// What one node answered.
struct Answer {
    features: FeatureReport,
    own_min_insync: Option<Result<bool, Error>>,
}

pub(super) async fn observe(client: &Client) -> Result<Observed, Error> {
    let overview = survey(client).await?;
    let mut nodes = overview.nodes();
    let answers = ask_all(client, &overview, &nodes).await;
    let (finalized, epoch) = overview.finalized(&answers).ok_or_else(|| {
        let failure = answers.values().find_map(|answer| answer.as_ref().err());
        failure.cloned().unwrap_or_else(|| Error::new(&overview.cluster_id, What::NoFinalizedFeatures))
    })?;
    let min_insync_overrides = overview.min_insync_overrides(&nodes, &answers);
    for (id, node) in &mut nodes {
        match answers.get(id) {
            Some(Ok(answer)) => {
                node.supported = Known::Yes(answer.features.supported.clone());
                node.lists_all_features = answer.features.complete;
            }
            Some(Err(error)) => node.supported = Known::No(error.to_string()),
            None => {}
        }
    }
    Ok(Observed {
        nodes,
        finalized,
        finalized_epoch: epoch,
        fenced_brokers_listed: overview.brokers.as_ref().is_some_and(|brokers| brokers.fenced_listed),
        quorum: match overview.quorum {
            Known::Yes(report) => Known::Yes(report.quorum),
            Known::No(why) => Known::No(why),
        },
        min_insync_overrides,
        cluster_id: overview.cluster_id,
    })
}

/// Reads what single nodes say of the whole cluster.
async fn survey(client: &Client) -> Result<Overview, Error> {
    let (by_broker, by_controller) = tokio::join!(client.enter(Kind::Broker), client.enter(Kind::Controller));
    let (mut broker, mut controller, failure) = sort_entries(by_broker, by_controller)?;
    let entry = broker.as_ref().or(controller.as_ref());
    let Some(entry) = entry else {
        return Err(failure.unwrap_or_else(|| Error::new("no address", What::NoFinalizedFeatures)));
    };
    let cluster_id = entry.cluster.cluster_id.clone();
    let report = FeatureReport::of(&entry.versions);
    let ask_min_insync = report.finalized.get(ELR) == crate::features::Level::ZERO;
    if let (Some(broker), Some(controller)) = (&broker, &controller) {
        same_cluster(
            &broker.cluster.cluster_id,
            &controller.cluster.cluster_id,
            &controller.connection.peer,
        )?;
    }
    let quorum = read_quorum(client, broker.as_mut(), controller.as_mut()).await;
    let controllers = match (&controller, &failure) {
        (Some(controller), _) => Known::Yes(controller.cluster.clone()),
        (None, Some(error)) if !client.endpoints.controllers.is_empty() => Known::No(error.to_string()),
        (None, _) => find_controllers(client, &cluster_id, &quorum).await,
    };
    Ok(Overview {
        cluster_id,
        brokers: broker.map(|entry| entry.cluster),
        controllers,
        quorum,
        ask_min_insync,
    })
}

type Entries = (Option<Entry>, Option<Entry>, Option<Error>);

/// The entries that came about, and the failure of the other; an error where none did, or where an address is of the
/// wrong kind, which no later pass would mend.
fn sort_entries(
    by_broker: Option<Result<Entry, Error>>,
    by_controller: Option<Result<Entry, Error>>,
) -> Result<Entries, Error> {
    let mut failure = None;
    let mut entries = [None, None];
    for (place, result) in entries.iter_mut().zip([by_broker, by_controller]) {
        match result {
            Some(Ok(entry)) => *place = Some(entry),
            Some(Err(error)) if matches!(error.what(), What::WrongKind { .. }) => return Err(error),
            Some(Err(error)) => failure = failure.or(Some(error)),
            None => {}
        }
    }
    let [broker, controller] = entries;
    Ok((broker, controller, failure))
}

fn same_cluster(expected: &ClusterId, found: &ClusterId, peer: &Address) -> Result<(), Error> {
    if expected == found {
        return Ok(());
    }
    Err(Error::new(peer, What::OtherCluster { expected: expected.clone(), found: found.clone() }))
}

/// Asks for the quorum through a broker, or else the active controller, which alone can say.
async fn read_quorum(
    client: &Client,
    broker: Option<&mut Entry>,
    controller: Option<&mut Entry>,
) -> Known<QuorumReport> {
    let result = match (broker, controller) {
        (_, Some(controller)) if controller.cluster.active_controller.is_none() => {
            let quorum = Quorum { leader: None, voters: BTreeSet::new(), observers: BTreeSet::new() };
            return Known::Yes(QuorumReport { quorum, endpoints: BTreeMap::new() });
        }
        (Some(broker), _) => broker.connection.describe_quorum().await,
        (None, Some(controller)) => match active_controller(client, controller).await {
            Ok(mut active) => active.describe_quorum().await,
            Err(error) => Err(error),
        },
        (None, None) => return Known::No("nobody could be asked".to_owned()),
    };
    match result {
        Ok(report) => Known::Yes(report),
        Err(error) => Known::No(error.to_string()),
    }
}

/// A connection to the active controller, as another controller names it.
pub(super) async fn active_controller(client: &Client, controller: &Entry) -> Result<Connection, Error> {
    let peer = &controller.connection.peer;
    let active = controller.cluster.active_controller;
    let address = active.and_then(|id| controller.cluster.nodes.get(&id)?.address.clone());
    let Some(address) = address else {
        let why = "it names no address of an active controller".to_owned();
        return Err(Error::new(peer, What::Malformed { api: "DescribeCluster", why }));
    };
    Ok(Connection::connect(&address, client.timeouts.request).await?.0)
}

/// Asks a voter for the registered controllers, where only brokers were given and the quorum names its endpoints.
async fn find_controllers(
    client: &Client,
    cluster_id: &ClusterId,
    quorum: &Known<QuorumReport>,
) -> Known<ClusterReport> {
    let report = match quorum {
        Known::Yes(report) => report,
        Known::No(why) => return Known::No(why.clone()),
    };
    let mut why =
        "the brokers don't tell the controllers' addresses: name some under bootstrapControllers".to_owned();
    // the leader first: it knows best
    let leader = report.quorum.leader.and_then(|leader| report.endpoints.get(&leader));
    let others = report.endpoints.values().filter(|address| Some(*address) != leader);
    for address in leader.into_iter().chain(others).take(3) {
        match client.enter_at(address, Kind::Controller).await {
            Ok(entry) if entry.cluster.cluster_id == *cluster_id => return Known::Yes(entry.cluster),
            Ok(entry) => why = format!("{address}: it answers for cluster {}", entry.cluster.cluster_id),
            Err(error) => why = error.to_string(),
        }
    }
    Known::No(why)
}

/// The entry of a node, about which nothing is known yet if it is new.
fn node(nodes: &mut BTreeMap<NodeId, Node>, id: NodeId) -> &mut Node {
    nodes.entry(id).or_insert_with(|| Node {
        id,
        roles: Roles::default(),
        registered: Known::No("the registrations could not be read".to_owned()),
        fenced: None,
        quorum: QuorumPlace::Unknown,
        supported: Known::No("nobody told its address".to_owned()),
        lists_all_features: false,
    })
}

impl Overview {
    /// Every node that anything named, not yet asked.
    fn nodes(&self) -> BTreeMap<NodeId, Node> {
        let mut nodes = BTreeMap::new();
        for (id, named) in self.brokers.iter().flat_map(|report| &report.nodes) {
            let broker = node(&mut nodes, *id);
            broker.roles.broker = true;
            broker.registered = Known::Yes(true);
            broker.fenced = Some(named.fenced);
        }
        let quorum =
            self.quorum.value().map(|report| &report.quorum).filter(|quorum| quorum.leader.is_some());
        for id in quorum.iter().flat_map(|quorum| &quorum.voters) {
            let voter = node(&mut nodes, *id);
            voter.roles.controller = true;
            if let (Known::Yes(_), Known::No(_)) = (&self.controllers, &voter.registered) {
                voter.registered = Known::Yes(false);
            }
        }
        for id in self.controllers.value().iter().flat_map(|report| report.nodes.keys()) {
            let controller = node(&mut nodes, *id);
            controller.roles.controller = true;
            controller.registered = Known::Yes(true);
        }
        for id in quorum.iter().flat_map(|quorum| &quorum.observers) {
            // an observer that no list names is a broker that is not registered or fenced, or a controller
            let known_controllers = self.controllers.value().is_some();
            let observer = node(&mut nodes, *id);
            if observer.roles == Roles::default() && known_controllers {
                observer.roles.broker = true;
            }
        }
        for (id, node) in &mut nodes {
            node.quorum = match quorum {
                None => QuorumPlace::Unknown,
                Some(quorum) if quorum.voters.contains(id) => QuorumPlace::Voter,
                Some(quorum) if quorum.observers.contains(id) => QuorumPlace::Observer,
                Some(_) => QuorumPlace::Neither,
            };
        }
        nodes
    }

    /// The addresses at which a node can be asked, the better first.
    fn addresses(&self, id: NodeId) -> Vec<&Address> {
        let named = |report: Option<&'_ ClusterReport>| report.and_then(|r| r.nodes.get(&id)).is_some();
        let brokers = self.brokers.as_ref().filter(|report| named(Some(report)));
        let controllers = self.controllers.value().filter(|report| named(Some(report)));
        let by_list = [brokers, controllers].into_iter().flatten();
        let mut addresses: Vec<_> =
            by_list.filter_map(|report| report.nodes.get(&id)?.address.as_ref()).collect();
        addresses.extend(self.quorum.value().and_then(|report| report.endpoints.get(&id)));
        addresses.dedup();
        addresses
    }

    /// The finalized levels, from the node that knows best: the active controller; else, of the brokers or else the
    /// controllers, the one whose epoch is highest. Epochs of brokers and controllers can't be compared: a broker
    /// counts every record, a controller only changes of levels.
    fn finalized(
        &self,
        answers: &BTreeMap<NodeId, Result<Answer, Error>>,
    ) -> Option<(FinalizedFeatures, Option<i64>)> {
        let reports =
            || answers.iter().filter_map(|(id, answer)| Some((*id, &answer.as_ref().ok()?.features)));
        let told = |(_, report): &(NodeId, &FeatureReport)| report.epoch.is_some();
        let leader = self.quorum.value().and_then(|report| report.quorum.leader);
        let of_leader = reports().filter(told).find(|(id, _)| Some(*id) == leader && !self.is_broker(*id));
        let freshest = |brokers: bool| {
            reports()
                .filter(told)
                .filter(|(id, _)| self.is_broker(*id) == brokers)
                .max_by_key(|(_, r)| r.epoch)
        };
        let (_, report) = of_leader.or_else(|| freshest(true)).or_else(|| freshest(false))?;
        Some((report.finalized.clone(), report.epoch))
    }

    /// Whether a node was asked at its broker's endpoint.
    fn is_broker(&self, id: NodeId) -> bool {
        self.brokers.as_ref().is_some_and(|report| report.nodes.contains_key(&id))
    }

    fn min_insync_overrides(
        &self,
        nodes: &BTreeMap<NodeId, Node>,
        answers: &BTreeMap<NodeId, Result<Answer, Error>>,
    ) -> Known<BTreeSet<NodeId>> {
        if !self.ask_min_insync {
            return Known::No("not asked, since eligible.leader.replicas.version is finalized".to_owned());
        }
        let Some(brokers) = &self.brokers else {
            return Known::No("no broker could be asked".to_owned());
        };
        if !brokers.fenced_listed && nodes.values().any(|node| node.roles == Roles::default()) {
            return Known::No("brokers before Kafka 4.0 don't list the fenced ones".to_owned());
        }
        let mut own = BTreeSet::new();
        for id in brokers.nodes.keys() {
            match answers.get(id) {
                Some(Ok(Answer { own_min_insync: Some(Ok(true)), .. })) => drop(own.insert(*id)),
                Some(Ok(Answer { own_min_insync: Some(Ok(false)), .. })) => {}
                Some(Ok(Answer { own_min_insync: Some(Err(error)), .. }) | Err(error)) => {
                    return Known::No(format!("broker {id}: {error}"));
                }
                Some(Ok(Answer { own_min_insync: None, .. })) | None => {
                    return Known::No(format!("broker {id} could not be asked"));
                }
            }
        }
        Known::Yes(own)
    }
}

/// Asks every node whose address is known, each failing by itself.
async fn ask_all(
    client: &Client,
    overview: &Overview,
    nodes: &BTreeMap<NodeId, Node>,
) -> BTreeMap<NodeId, Result<Answer, Error>> {
    // owned ids: a future that borrows them through a closure can't be shown to be Send
    let asked: Vec<NodeId> = nodes.keys().copied().filter(|id| !overview.addresses(*id).is_empty()).collect();
    let questions = asked.into_iter().map(|id| async move { (id, ask(client, overview, id).await) });
    stream::iter(questions).buffer_unordered(AT_ONCE).collect().await
}

/// Asks one node at the first of its addresses that answers.
async fn ask(client: &Client, overview: &Overview, id: NodeId) -> Result<Answer, Error> {
    let mut failure = Error::new(id, What::NoFinalizedFeatures);
    for address in overview.addresses(id) {
        match ask_at(client, overview, id, address).await {
            Ok(answer) => return Ok(answer),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

async fn ask_at(
    client: &Client,
    overview: &Overview,
    id: NodeId,
    address: &Address,
) -> Result<Answer, Error> {
    let (mut connection, versions) = Connection::connect(address, client.timeouts.request).await?;
    match connection.describe_cluster().await {
        Ok(report) => same_cluster(&overview.cluster_id, &report.cluster_id, address)?,
        // controllers can't say below metadata.version 15, when no controller registers yet
        Err(error) if connection.is_controller() && error.api_error().is_some() => {}
        Err(error) => return Err(error),
    }
    let own_min_insync = if overview.ask_min_insync && !connection.is_controller() {
        Some(connection.has_own_min_insync(id).await)
    } else {
        None
    };
    Ok(Answer { features: FeatureReport::of(&versions), own_min_insync })
}
