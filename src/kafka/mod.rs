//! The admin client: what a cluster is like now, and the one request that changes it.
//!
//! It speaks Kafka's protocol to brokers and controllers from 3.7 to 4.4, waits for nothing without an end, and
//! believes no size that a peer announces. It decides nothing, and never sends a change twice.

mod address;
mod bootstrap;
mod cluster;
mod configs;
mod connection;
mod error;
mod features;
mod frame;
mod nodes;
mod observe;
mod pass;
mod quorum;
mod rpc;
mod update;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pass::Pass;

pub use address::{Address, InvalidAddress};
pub use error::{ApiError, Error, Phase};
use update::Change;

use crate::features::observed::{ClusterId, NodeId, Observed};
use crate::features::plan::Request;

/// How a cluster is reached: brokers, controllers, or both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoints {
    /// Addresses of brokers.
    pub brokers: Vec<Address>,
    /// Addresses of controllers.
    pub controllers: Vec<Address>,
}

impl Endpoints {
    /// The address that stands for the cluster where no single node is meant.
    fn name(&self) -> String {
        let first = self.brokers.first().or(self.controllers.first());
        first.map_or("the cluster".to_owned(), ToString::to_string)
    }
}

/// How long the client waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For one exchange, and for one connection with its handshake.
    pub request: Duration,
    /// For a whole observation, or a whole update with all that goes before it. What an observation has not found
    /// out by then is unknown.
    pub pass: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { request: Duration::from_secs(10), pass: Duration::from_secs(30) }
    }
}

/// Whoever may forbid changes, such as a lease.
pub trait Permit: fmt::Debug + Send + Sync {
    /// Whether a change may be sent at this moment. Asked when nothing but sending is left to do.
    fn holds(&self) -> bool;
}

/// A client of one cluster. It holds no connection between calls, so each call sees the cluster as it is.
#[derive(Clone, Debug)]
pub struct Client {
    endpoints: Endpoints,
    timeouts: Timeouts,
    permit: Option<Arc<dyn Permit>>,
}

impl Client {
    /// A client; nothing is connected yet.
    #[must_use]
    pub fn new(endpoints: Endpoints, timeouts: Timeouts) -> Self {
        Self { endpoints, timeouts, permit: None }
    }

    /// The same client, which sends no change that it has no permit for; asking whether a change would be taken needs
    /// none.
    #[must_use]
    pub fn under(self, permit: Arc<dyn Permit>) -> Self {
        Self { permit: Some(permit), ..self }
    }

    /// Sees the cluster: every node with its supported ranges, the finalized levels, the quorum.
    ///
    /// # Errors
    /// If no address leads to a cluster, or two lead to different ones. Nodes that can't be asked, and a quorum that
    /// can't be read, are no errors but part of what was observed.
    pub async fn observe(&self) -> Result<Observed, Error> {
        observe::observe(&self.endpoints, &Pass::begin(self.timeouts)).await
    }

    /// Asks each of the controllers' addresses, at once, whether a quorum has a leader: only the leader answers a question
    /// about the quorum. `None` where nobody names one, be it since nobody answers.
    pub async fn find_leader(&self) -> Option<NodeId> {
        let pass = Pass::begin(self.timeouts);
        let pass = &pass;
        let answers = self.endpoints.controllers.iter().map(|address| async move {
            let mut connection = connection::Connection::open(address, pass).await.ok()?;
            quorum::describe(&mut connection, pass).await.ok()?.quorum.leader.value().copied()
        });
        futures::future::join_all(answers).await.into_iter().flatten().next()
    }

    /// Sends one request, or asks whether it would be taken. Kafka answers it as a whole: it is taken or refused,
    /// but for `kraft.version`, which it may set even so; hence that feature never shares a request.
    ///
    /// # Errors
    /// If the node that it would go to does not say, on that very connection, that its cluster is `expected` (nothing
    /// is sent then), can't be reached, or refuses, or if the permit does not hold. Whether the change may have been made all the same is told by
    /// [`Error::outcome_unknown`].
    pub async fn update_features(
        &self,
        expected: &ClusterId,
        request: &Request,
        validate_only: bool,
    ) -> Result<(), Error> {
        let pass = Pass::begin(self.timeouts);
        let permit = self.permit.as_deref().filter(|_| !validate_only);
        let change = Change { cluster: expected, request, validate_only, permit };
        update::update(&self.endpoints, &change, &pass).await
    }
}
