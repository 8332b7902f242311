//! What each node says about itself. Nodes are asked side by side, a bounded number at a time, and each fails
//! alone: its range is then unknown, with the reason.

use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt, stream};

use super::address::Address;
use super::bootstrap::Entry;
use super::configs;
use super::connection::Connection;
use super::error::{Cause, EndpointKind, Error};
use super::features::{Finalized, NodeFeatures};
use super::pass::Pass;
use crate::features::SupportedFeatures;
use crate::features::observed::{ClusterId, Known, NodeId};

/// How many nodes are asked at once.
const AT_ONCE: usize = 16;

const INVALID_REQUEST: i16 = 42;
const NO_ADDRESS: &str = "it has no address";

/// What a node said.
pub(super) struct Answer {
    /// The ranges it supports.
    pub(super) supported: Known<SupportedFeatures>,
    /// Whether these are all that it has.
    pub(super) lists_all_features: bool,
    /// The finalized levels it knows.
    pub(super) finalized: Option<Finalized>,
    /// Whether it is a broker with its own `min.insync.replicas`.
    pub(super) own_min_insync: Known<bool>,
}

impl Answer {
    fn unknown(why: &str) -> Self {
        let why = || why.to_owned();
        Self {
            supported: Known::No(why()),
            lists_all_features: false,
            finalized: None,
            own_min_insync: Known::No(why()),
        }
    }
}

/// The addresses of one node, the one to try first in front; or why it has none.
pub(super) type Addresses = Result<Vec<(EndpointKind, Address)>, String>;

/// Asks all nodes.
///
/// # Errors
/// If a node says that it belongs to another cluster.
pub(super) async fn ask_all(
    nodes: &BTreeMap<NodeId, Addresses>,
    cluster: &ClusterId,
    pass: &Pass,
) -> Result<BTreeMap<NodeId, Answer>, Error> {
    // owned ids: a future that borrows them through a closure can't be shown to be Send
    let ids: Vec<NodeId> = nodes.keys().copied().collect();
    let asked = ids.into_iter().map(|id| async move {
        let answer = match nodes.get(&id) {
            Some(Ok(addresses)) => ask(id, addresses, cluster, pass).await?,
            Some(Err(why)) => Answer::unknown(why),
            None => Answer::unknown(NO_ADDRESS),
        };
        Ok((id, answer))
    });
    stream::iter(asked).buffer_unordered(AT_ONCE).try_collect().await
}

async fn ask(
    id: NodeId,
    addresses: &[(EndpointKind, Address)],
    cluster: &ClusterId,
    pass: &Pass,
) -> Result<Answer, Error> {
    let mut answer = Answer::unknown(NO_ADDRESS);
    for (kind, endpoint) in addresses {
        let mut tries = pass.tries();
        let asked = loop {
            let asked = ask_at(id, *kind, endpoint, cluster, pass).await;
            if !tries.again(&asked).await {
                break asked;
            }
        };
        match asked {
            Ok(answer) => return Ok(answer),
            Err(error) if matches!(error.cause(), Cause::OtherCluster { .. }) => return Err(error),
            Err(error) => answer = Answer::unknown(&error.to_string()),
        }
    }
    Ok(answer)
}

async fn ask_at(
    id: NodeId,
    kind: EndpointKind,
    endpoint: &Address,
    cluster: &ClusterId,
    pass: &Pass,
) -> Result<Answer, Error> {
    match kind {
        EndpointKind::Broker => {
            let mut entry = Entry::open(endpoint, kind, pass).await?;
            entry.belongs_to(cluster)?;
            let own_min_insync = match configs::has_own_min_insync(&mut entry.connection, id, pass).await {
                Ok(own) => Known::Yes(own),
                Err(error) if error.api_error().is_some_and(|refusal| refusal.code == INVALID_REQUEST) => {
                    return Err(error);
                }
                Err(error) => Known::No(error.to_string()),
            };
            Ok(answer(entry.connection.features(), own_min_insync))
        }
        EndpointKind::Controller => {
            // A controller says its cluster's id only to those who may alter the cluster, and not below
            // metadata.version 15 (KIP-919); its features it tells to all.
            let connection = match Entry::open(endpoint, kind, pass).await {
                Ok(entry) => {
                    entry.belongs_to(cluster)?;
                    entry.connection
                }
                Err(error)
                    if matches!(error.cause(), Cause::Unauthorized { .. } | Cause::ControllersClosed) =>
                {
                    Connection::open(endpoint, pass).await?
                }
                Err(error) => return Err(error),
            };
            let no_broker = Known::No("it was asked as a controller".to_owned());
            Ok(answer(connection.features(), no_broker))
        }
    }
}

/// What every controller at these addresses supports, where their ids can't be had: `None` unless all of them answer.
/// A handshake needs no right and no id.
pub(super) async fn common_features(addresses: &[Address], pass: &Pass) -> Option<NodeFeatures> {
    let mut common: Option<NodeFeatures> = None;
    for address in addresses {
        let connection = Connection::open(address, pass).await.ok()?;
        if connection.kind() != EndpointKind::Controller {
            return None;
        }
        let told = connection.features();
        common = Some(match common {
            None => told.clone(),
            Some(before) => before.in_common_with(told),
        });
    }
    common
}

fn answer(features: &NodeFeatures, own_min_insync: Known<bool>) -> Answer {
    let NodeFeatures { supported, complete, finalized } = features.clone();
    Answer { supported: Known::Yes(supported), lists_all_features: complete, finalized, own_min_insync }
}
