//! One pass over a cluster: who belongs to it, what each node supports, what is finalized, what the quorum looks
//! like. It changes nothing, and what it could not find out it says it does not know.

use std::collections::{BTreeMap, BTreeSet};

use super::Endpoints;
use super::address::Address;
use super::bootstrap::{Entry, enter};
use super::cluster::{ClusterView, Listed};
use super::error::{Cause, EndpointKind, Error};
use super::features::Finalized;
use super::nodes::{self, Addresses, Answer};
use super::pass::Pass;
use super::quorum::{self, QuorumView};
use crate::features::observed::{ClusterId, Known, Node, NodeId, Observed, QuorumPlace, Roles};

/// Observes the cluster behind these addresses.
pub(super) async fn observe(endpoints: &Endpoints, pass: &Pass) -> Result<Observed, Error> {
    let (brokers, controllers) = tokio::join!(
        enter(&endpoints.brokers, EndpointKind::Broker, pass),
        enter(&endpoints.controllers, EndpointKind::Controller, pass),
    );
    let (mut brokers, mut controllers) = settle(brokers, controllers)?;
    let no_address = || Error::at(endpoints.name(), Cause::NoAddress);
    let cluster_id = agree(brokers.as_ref().ok(), controllers.as_ref().ok())?.ok_or_else(no_address)?;

    let quorum = find_quorum(brokers.as_mut(), controllers.as_mut(), pass).await;
    if let (Err(_), Ok(view)) = (&controllers, &quorum) {
        let voters = view.endpoints.values().flatten();
        match enter(voters, EndpointKind::Controller, pass).await {
            Some(Ok(entry)) => {
                entry.belongs_to(&cluster_id)?;
                controllers = Ok(entry);
            }
            Some(Err(error)) => controllers = Err(error.to_string()),
            None => {}
        }
    }

    let mut said = Vec::new();
    for entry in [&brokers, &controllers].into_iter().flatten() {
        said.extend(entry.connection.features().finalized.clone().map(|finalized| (false, finalized)));
    }
    let members = Members {
        brokers: brokers.map(|entry| entry.view),
        controllers: controllers.map(|entry| entry.view),
        quorum,
    };
    let drafts: BTreeMap<_, _> = members.ids().into_iter().map(|id| (id, members.addresses(id))).collect();
    let mut answers = nodes::ask_all(&drafts, &cluster_id, pass).await?;
    identify_by_number(&mut answers, &members, &endpoints.controllers, pass).await;

    let leader = members.quorum.as_ref().ok().and_then(|view| view.quorum.leader.value().copied());
    said.extend(
        answers.iter().filter_map(|(id, answer)| Some((leader == Some(*id), answer.finalized.clone()?))),
    );
    let newest = newest(said).ok_or_else(|| Error::at(endpoints.name(), Cause::NoFinalizedLevels))?;
    let min_insync_overrides = members.min_insync_overrides(&answers);
    let fenced_brokers_listed = members.brokers.as_ref().is_ok_and(|view| view.lists_fenced);
    Ok(Observed {
        cluster_id,
        nodes: answers.into_iter().map(|(id, answer)| (id, members.node(id, answer))).collect(),
        finalized: newest.levels,
        finalized_epoch: Some(newest.epoch),
        fenced_brokers_listed,
        quorum: match members.quorum {
            Ok(view) => Known::Yes(view.quorum),
            Err(why) => Known::No(why),
        },
        min_insync_overrides,
    })
}

/// Below `metadata.version` 15 controllers tell nobody their ids. If as many addresses of controllers were given as there
/// are voters, and all answer, then every voter supports at least what these have in common.
async fn identify_by_number(
    answers: &mut BTreeMap<NodeId, Answer>,
    members: &Members,
    addresses: &[Address],
    pass: &Pass,
) {
    let (Err(_), Ok(view)) = (&members.controllers, &members.quorum) else { return };
    let distinct: BTreeSet<&Address> = addresses.iter().collect();
    let voters = &view.quorum.voters;
    let unknown = |id: &&NodeId| answers.get(id).is_some_and(|answer| answer.supported.value().is_none());
    let unknown: Vec<NodeId> = voters.iter().filter(unknown).copied().collect();
    if unknown.is_empty() || distinct.len() < voters.len() {
        return;
    }
    let Some(common) = nodes::common_features(addresses, pass).await else { return };
    for id in unknown {
        if let Some(answer) = answers.get_mut(&id) {
            answer.supported = Known::Yes(common.supported.clone());
            answer.lists_all_features = common.complete;
        }
    }
}

/// A way in, or why there is none.
type Way = Result<Entry, String>;

/// One way in is enough, unless the other one shows that the addresses are wrong.
fn settle(
    brokers: Option<Result<Entry, Error>>,
    controllers: Option<Result<Entry, Error>>,
) -> Result<(Way, Way), Error> {
    let wrong = |error: &Error| matches!(error.cause(), Cause::WrongKind { .. } | Cause::OtherCluster { .. });
    let text = |way: Option<Result<Entry, Error>>, missing: &str| match way {
        Some(way) => way.map_err(|error| error.to_string()),
        None => Err(missing.to_owned()),
    };
    match (brokers, controllers) {
        (Some(Err(error)), _) | (_, Some(Err(error))) if wrong(&error) => Err(error),
        (Some(Err(error)), None) | (None, Some(Err(error))) => Err(error),
        (Some(Err(broker)), Some(Err(controller))) => {
            Err(if controller.phase() > broker.phase() { controller } else { broker })
        }
        (brokers, controllers) => Ok((
            text(brokers, "no broker address is known; give one in bootstrapServers"),
            text(controllers, "no controller address is known; give one in bootstrapControllers"),
        )),
    }
}

/// The one cluster that the ways in lead to.
fn agree(brokers: Option<&Entry>, controllers: Option<&Entry>) -> Result<Option<ClusterId>, Error> {
    if let (Some(brokers), Some(controllers)) = (brokers, controllers) {
        controllers.belongs_to(&brokers.view.cluster_id)?;
    }
    Ok(brokers.or(controllers).map(|entry| entry.view.cluster_id.clone()))
}

/// Asks the leader for the quorum: straight where a controller names it, else through a broker. Where each way failed in
/// passing, such as by silence or a closed port, a change would fail as well: nobody leads, as far as can be told.
async fn find_quorum(
    brokers: Result<&mut Entry, &mut String>,
    controllers: Result<&mut Entry, &mut String>,
    pass: &Pass,
) -> Result<QuorumView, String> {
    let mut failed = Vec::new();
    if let Ok(controllers) = controllers {
        match ask_leader(controllers, pass).await {
            Ok(view) => return Ok(view),
            Err(unanswered) => failed.push(unanswered),
        }
        if controllers.view.has_no_leader() {
            return Ok(QuorumView::leaderless("the controllers name none".to_owned()));
        }
    }
    if let Ok(brokers) = brokers {
        let mut tries = pass.tries();
        loop {
            let described = quorum::describe(&mut brokers.connection, pass).await;
            if tries.again(&described).await {
                continue;
            }
            match described {
                Ok(view) => return Ok(view),
                Err(error) => failed.push(Unanswered::from(error)),
            }
            break;
        }
    }
    let passing = failed.iter().all(|unanswered| unanswered.passing);
    match failed.into_iter().next() {
        Some(Unanswered { why, .. }) if passing => Ok(QuorumView::leaderless(why)),
        Some(Unanswered { why, .. }) => Err(why),
        None => Err("no node could be asked".to_owned()),
    }
}

/// Why the leader gave no answer.
struct Unanswered {
    why: String,
    /// Whether it may answer later, as things are.
    passing: bool,
}

impl From<Error> for Unanswered {
    fn from(error: Error) -> Self {
        Self { why: error.to_string(), passing: error.is_retryable() }
    }
}

async fn ask_leader(controllers: &mut Entry, pass: &Pass) -> Result<QuorumView, Unanswered> {
    let Some(leader) = controllers.view.active_controller else {
        // It may be the leader itself, and not registered yet.
        return Ok(quorum::describe(&mut controllers.connection, pass).await?);
    };
    let cant = |why: String, passing| Unanswered {
        why: format!("the active controller {leader} can't be asked: {why}"),
        passing,
    };
    let endpoint = match controllers.view.nodes.get(&leader).map(|node| &node.endpoint) {
        Some(Ok(endpoint)) => endpoint,
        Some(Err(why)) => return Err(cant(why.clone(), false)),
        None => return Err(cant("it is not registered with an address".to_owned(), true)),
    };
    let mut tries = pass.tries();
    let asked = loop {
        let asked = ask_leader_at(endpoint, &controllers.view.cluster_id, pass).await;
        if !tries.again(&asked).await {
            break asked;
        }
    };
    asked.map_err(|error| cant(error.to_string(), error.is_retryable()))
}

async fn ask_leader_at(endpoint: &Address, cluster: &ClusterId, pass: &Pass) -> Result<QuorumView, Error> {
    let mut entry = Entry::open(endpoint, EndpointKind::Controller, pass).await?;
    entry.belongs_to(cluster)?;
    quorum::describe(&mut entry.connection, pass).await
}

/// The least stale of all answers: the one with the highest epoch (see [`Finalized::epoch`]); the leader's among
/// equals.
fn newest(said: Vec<(bool, Finalized)>) -> Option<Finalized> {
    said.into_iter().max_by_key(|(leader, finalized)| (finalized.epoch, *leader)).map(|(_, newest)| newest)
}

/// Everyone whom anything named, each list with the reason where it is missing.
struct Members {
    brokers: Result<ClusterView, String>,
    controllers: Result<ClusterView, String>,
    quorum: Result<QuorumView, String>,
}

impl Members {
    fn ids(&self) -> BTreeSet<NodeId> {
        let listed = [&self.brokers, &self.controllers].into_iter().flatten();
        let mut ids: BTreeSet<_> = listed.flat_map(|view| view.nodes.keys().copied()).collect();
        if let Ok(QuorumView { quorum, .. }) = &self.quorum {
            ids.extend(quorum.voters.iter().chain(&quorum.observers));
        }
        ids
    }

    fn broker(&self, id: NodeId) -> Option<&Listed> {
        self.brokers.as_ref().ok()?.nodes.get(&id)
    }

    fn controller(&self, id: NodeId) -> Option<&Listed> {
        self.controllers.as_ref().ok()?.nodes.get(&id)
    }

    /// The node's place in the quorum; without a leader nobody can say.
    fn place(&self, id: NodeId) -> QuorumPlace {
        match &self.quorum {
            Ok(QuorumView { quorum, .. }) if quorum.leader.value().is_some() => {
                if quorum.voters.contains(&id) {
                    QuorumPlace::Voter
                } else if quorum.observers.contains(&id) {
                    QuorumPlace::Observer
                } else {
                    QuorumPlace::Neither
                }
            }
            _ => QuorumPlace::Unknown,
        }
    }

    /// Where the node can be asked: a combined one at either address, since both tell the same.
    fn addresses(&self, id: NodeId) -> Addresses {
        let mut addresses = Vec::new();
        let mut missing = None;
        for (kind, listed) in
            [(EndpointKind::Broker, self.broker(id)), (EndpointKind::Controller, self.controller(id))]
        {
            match listed.map(|listed| &listed.endpoint) {
                Some(Ok(endpoint)) => addresses.push((kind, endpoint.clone())),
                Some(Err(why)) => missing = Some(why.clone()),
                None => {}
            }
        }
        let voters = self.quorum.as_ref().ok().and_then(|view| view.endpoints.get(&id));
        for endpoint in voters.into_iter().flatten() {
            let address = (EndpointKind::Controller, endpoint.clone());
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        if addresses.is_empty() { Err(missing.unwrap_or_else(|| self.no_address(id))) } else { Ok(addresses) }
    }

    fn no_address(&self, id: NodeId) -> String {
        let missing = |list: &Result<ClusterView, String>| match list {
            Ok(_) => "no node tells its address".to_owned(),
            Err(why) => format!("its address is not known: {why}"),
        };
        if self.roles(id).controller { missing(&self.controllers) } else { missing(&self.brokers) }
    }

    fn roles(&self, id: NodeId) -> Roles {
        let broker = self.broker(id).is_some();
        let controller = self.controller(id).is_some() || self.place(id) == QuorumPlace::Voter;
        // Through controllers alone brokers show up as observers only; so does a controller that has just
        // started, until it is registered.
        let observer = self.brokers.is_err() && self.controllers.is_ok();
        Roles { broker: broker || (observer && !controller), controller }
    }

    fn registered(&self, id: NodeId) -> Known<bool> {
        if self.broker(id).is_some() || self.controller(id).is_some() {
            return Known::Yes(true);
        }
        if let Err(why) = &self.controllers {
            return Known::No(why.clone());
        }
        if self.place(id) == QuorumPlace::Voter {
            return Known::Yes(false);
        }
        match &self.brokers {
            Ok(view) if view.lists_fenced => Known::Yes(false),
            Ok(_) => Known::No("Kafka before 4.0 does not list fenced brokers".to_owned()),
            Err(why) => Known::No(why.clone()),
        }
    }

    fn node(&self, id: NodeId, answer: Answer) -> Node {
        Node {
            id,
            roles: self.roles(id),
            registered: self.registered(id),
            fenced: self.broker(id).map(|broker| broker.fenced),
            quorum: self.place(id),
            lists_all_features: answer.lists_all_features,
            supported: answer.supported,
        }
    }

    fn min_insync_overrides(&self, answers: &BTreeMap<NodeId, Answer>) -> Known<BTreeSet<NodeId>> {
        let brokers = match &self.brokers {
            Ok(view) if view.lists_fenced => view.nodes.keys(),
            Ok(_) => return Known::No("Kafka before 4.0 does not list fenced brokers".to_owned()),
            Err(why) => return Known::No(why.clone()),
        };
        let mut with_own = BTreeSet::new();
        for id in brokers {
            match answers.get(id).map(|answer| &answer.own_min_insync) {
                Some(Known::Yes(true)) => {
                    with_own.insert(*id);
                }
                Some(Known::Yes(false)) => {}
                Some(Known::No(why)) => return Known::No(format!("broker {id}: {why}")),
                None => return Known::No(format!("broker {id}: it was not asked")),
            }
        }
        Known::Yes(with_own)
    }
}
