//! The way in: the first of several addresses that answers, and what it says about its cluster. All are tried at
//! once, since a silent one must not use up the pass.

use futures::StreamExt;
use futures::stream::FuturesUnordered;

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

/// Tries all addresses of one kind and takes the first that answers. If none does, the error is that of the
/// address which came furthest.
pub(super) async fn enter<'a>(
    endpoints: impl IntoIterator<Item = &'a Address>,
    kind: EndpointKind,
    pass: &Pass,
) -> Option<Result<Entry, Error>> {
    let tries = endpoints.into_iter().map(|endpoint| Entry::open_patiently(endpoint, kind, pass));
    let mut tries: FuturesUnordered<_> = tries.collect();
    let mut furthest: Option<Error> = None;
    while let Some(tried) = tries.next().await {
        match tried {
            Ok(entry) => return Some(Ok(entry)),
            Err(error) if furthest.as_ref().is_none_or(|other| other.phase() < error.phase()) => {
                furthest = Some(error);
            }
            Err(_) => {}
        }
    }
    furthest.map(Err)
}
