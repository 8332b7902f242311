//! The admin client: what a Kafka cluster says about its features, and requests to change them. It never assumes what
//! an answer did not say, and never sends a change to a cluster other than the one that it was told to change.

mod address;
mod connection;
mod error;
mod messages;
mod node;
mod observe;
mod shape;
mod update;

use std::time::Duration;

use rand::RngExt;
use tokio::time::{Instant, sleep, timeout_at};

use crate::features::observed::{ClusterId, Observed};
use crate::features::plan::Request;

pub use address::{Address, InvalidAddress};
pub use error::{ApiError, Error, Phase};

use connection::{Connection, Versions};
use error::What;
use node::ClusterReport;

/// How a cluster is reached: brokers, controllers, or both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoints {
    /// Addresses of brokers.
    pub brokers: Vec<Address>,
    /// Addresses of controllers.
    pub controllers: Vec<Address>,
}

/// How long the client waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For one exchange, and for one connection with its handshake.
    pub request: Duration,
    /// For a whole observation, or a whole update with all that goes before it.
    pub pass: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { request: Duration::from_secs(10), pass: Duration::from_secs(40) }
    }
}

/// A client of one cluster. It holds no connection between calls, so each call sees the cluster as it is.
#[derive(Clone, Debug)]
pub struct Client {
    endpoints: Endpoints,
    timeouts: Timeouts,
}

/// Which of the two lists of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Broker,
    Controller,
}

/// A connection with what its node said first.
struct Entry {
    connection: Connection,
    versions: Versions,
    cluster: ClusterReport,
}

impl Client {
    /// A client; nothing is connected yet.
    #[must_use]
    pub fn new(endpoints: Endpoints, timeouts: Timeouts) -> Self {
        Self { endpoints, timeouts }
    }

    /// Sees the cluster: every node with its supported ranges, the finalized levels, the quorum.
    ///
    /// # Errors
    /// If no address leads to a cluster, or two lead to different ones. Nodes that can't be asked, and a quorum that
    /// can't be read, are no errors but part of what was observed.
    pub async fn observe(&self) -> Result<Observed, Error> {
        self.in_time(observe::observe(self)).await
    }

    /// Sends one request, or asks whether it would be taken. Kafka answers it as a whole: it is taken or refused,
    /// but for `kraft.version`, which it may set even so; hence that feature never shares a request.
    ///
    /// # Errors
    /// If the cluster is not `expected` (nothing is sent then), can't be reached, or refuses. Whether the change may
    /// have been made all the same is told by [`Error::outcome_unknown`].
    pub async fn update_features(
        &self,
        expected: &ClusterId,
        request: &Request,
        validate_only: bool,
    ) -> Result<(), Error> {
        self.in_time(update::update(self, expected, request, validate_only)).await
    }

    async fn in_time<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let late = || {
            let peer = self.endpoints.brokers.first().or(self.endpoints.controllers.first());
            let peer = peer.map(ToString::to_string).unwrap_or_default();
            Error::new(peer, What::PassTimeout(self.timeouts.pass.as_secs())).with_unknown_outcome()
        };
        timeout_at(Instant::now() + self.timeouts.pass, work).await.unwrap_or_else(|_| Err(late()))
    }

    fn addresses(&self, kind: Kind) -> &[Address] {
        match kind {
            Kind::Broker => &self.endpoints.brokers,
            Kind::Controller => &self.endpoints.controllers,
        }
    }

    /// Connects to the first address of a list that answers as it should; twice round, since a single broken
    /// connection says little. `None` if the list is empty.
    async fn enter(&self, kind: Kind) -> Option<Result<Entry, Error>> {
        let mut first_failure = None;
        for round in 0..2 {
            for address in self.addresses(kind) {
                match self.enter_at(address, kind).await {
                    Ok(entry) => return Some(Ok(entry)),
                    Err(error) => first_failure = Some(first_failure.unwrap_or(error)),
                }
            }
            if !first_failure.as_ref().is_some_and(Error::is_retryable) {
                break;
            }
            if round == 0 {
                let jitter = rand::rng().random_range(50..250);
                sleep(Duration::from_millis(jitter)).await;
            }
        }
        first_failure.map(Err)
    }

    async fn enter_at(&self, address: &Address, kind: Kind) -> Result<Entry, Error> {
        let (mut connection, versions) = Connection::connect(address, self.timeouts.request).await?;
        let wrong = match (kind, connection.is_controller()) {
            (Kind::Broker, true) => Some(What::WrongKind { is: "controller", declared: "bootstrapServers" }),
            (Kind::Controller, false) => {
                Some(What::WrongKind { is: "broker", declared: "bootstrapControllers" })
            }
            _ => None,
        };
        if let Some(what) = wrong {
            return Err(Error::new(address, what));
        }
        let cluster = connection.describe_cluster().await?;
        Ok(Entry { connection, versions, cluster })
    }
}
