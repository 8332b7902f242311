//! The way in: an address that answers, and what it says about its cluster. All are tried at once, since a silent one
//! must not use up the pass, and those that answer must agree about which cluster it is.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::time::{Instant, timeout_at};

use super::address::Address;
use super::cluster::{self, ClusterView};
use super::connection::Connection;
use super::error::{Cause, EndpointKind, Error};
use super::pass::Pass;
use crate::features::observed::ClusterId;

/// A node that answered.
pub(super) struct Entry {
    pub(super) connection: Connection,
    pub(super) view: ClusterView,
}

impl Entry {
    /// Opens one address and asks what cluster this is, again where that fails in passing.
    async fn open_patiently(endpoint: &Address, kind: EndpointKind, pass: &Pass) -> Result<Self, Error> {
        let mut tries = pass.tries();
        loop {
            let result = Self::open(endpoint, kind, pass).await;
            if !tries.again(&result).await {
                return result;
            }
        }
    }

    /// Opens one address and asks what cluster this is.
    pub(super) async fn open(endpoint: &Address, kind: EndpointKind, pass: &Pass) -> Result<Self, Error> {
        let mut connection = Connection::open(endpoint, pass).await?;
        let found = connection.kind();
        if found != kind {
            return Err(connection.failed(Cause::WrongKind { configured: kind, found }));
        }
        let view = cluster::describe(&mut connection, pass).await?;
        Ok(Self { connection, view })
    }

    /// Whether the node belongs to this cluster.
    pub(super) fn belongs_to(&self, expected: &ClusterId) -> Result<(), Error> {
        if self.view.cluster_id == *expected {
            return Ok(());
        }
        let found = self.view.cluster_id.clone();
        Err(self.connection.failed(Cause::OtherCluster { expected: expected.clone(), found }))
    }
}

/// How long other addresses may take to answer once one has, so that they can be compared.
const OTHERS: Duration = Duration::from_secs(1);

async fn open_numbered(
    position: usize,
    endpoint: &Address,
    kind: EndpointKind,
    pass: &Pass,
) -> (usize, Result<Entry, Error>) {
    (position, Entry::open_patiently(endpoint, kind, pass).await)
}

/// Tries all addresses of one kind and takes one that answers. Two that answer for different clusters are an error,
/// whichever was faster. If none answers, the error is that of the address which came furthest; the first in the list
/// of several, so that the same trouble is told in the same words.
pub(super) async fn enter<'a>(
    endpoints: impl IntoIterator<Item = &'a Address>,
    kind: EndpointKind,
    pass: &Pass,
) -> Option<Result<Entry, Error>> {
    let tries = endpoints.into_iter().enumerate();
    let tries = tries.map(|(position, endpoint)| open_numbered(position, endpoint, kind, pass));
    let mut tries: FuturesUnordered<_> = tries.collect();
    let mut entered: Option<(usize, Entry)> = None;
    let mut furthest: Option<(usize, Error)> = None;
    let mut others_until = None;
    loop {
        let next = match others_until {
            Some(end) => timeout_at(end, tries.next()).await.unwrap_or(None),
            None => tries.next().await,
        };
        match next {
            Some((position, Ok(entry))) => {
                others_until.get_or_insert(Instant::now() + OTHERS);
                entered = match entered {
                    None => Some((position, entry)),
                    Some(before) => match first_of(before, (position, entry)) {
                        Ok(first) => Some(first),
                        Err(error) => return Some(Err(error)),
                    },
                };
            }
            Some((position, Err(error))) => {
                let further = |(at, other): &(usize, Error)| {
                    (error.phase(), std::cmp::Reverse(position)) > (other.phase(), std::cmp::Reverse(*at))
                };
                if furthest.as_ref().is_none_or(further) {
                    furthest = Some((position, error));
                }
            }
            None => break,
        }
    }
    entered.map(|(_, entry)| Ok(entry)).or(furthest.map(|(_, error)| Err(error)))
}

/// Of two addresses that answered the one that stands first in the list; an error if they answer for two clusters.
fn first_of(a: (usize, Entry), b: (usize, Entry)) -> Result<(usize, Entry), Error> {
    let (first, second) = if a.0 < b.0 { (a, b) } else { (b, a) };
    second.1.belongs_to(&first.1.view.cluster_id)?;
    Ok(first)
}
