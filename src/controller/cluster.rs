//! A Kafka cluster as one pass uses it: it can be looked at, and asked to change. What the client's errors mean for a
//! decision is said here and nowhere else.

use std::future::Future;

use crate::features::decide::{Failure, RefusalKind, Unreachable};
use crate::features::observed::{ClusterId, Observed};
use crate::features::plan::Request;
use crate::kafka::{self, Phase};
use crate::telemetry::{Metrics, Update};

/// Why a change did not come about, or is not known to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Setback {
    /// The cluster refuses it.
    Refused {
        /// What kind of answer it is.
        kind: RefusalKind,
        /// The cluster's own words.
        message: String,
    },
    /// Nothing was sent, since another replica may act; of the cluster that says nothing.
    NotPermitted,
    /// It could not be asked, or the answer got lost.
    Unreachable(Unreachable),
}

/// One cluster.
pub(super) trait Cluster: Sync {
    /// Looks at it.
    fn observe(&self) -> impl Future<Output = Result<Observed, Unreachable>> + Send;

    /// Asks it to change, or with `dry_run` whether it would; only if its id is `id`.
    fn change(
        &self,
        id: &ClusterId,
        request: &Request,
        dry_run: bool,
    ) -> impl Future<Output = Result<(), Setback>> + Send;
}

/// A cluster behind the client, with every request to change it counted.
pub(super) struct Counted<'a> {
    pub(super) client: kafka::Client,
    pub(super) metrics: &'a Metrics,
}

impl Cluster for Counted<'_> {
    async fn observe(&self) -> Result<Observed, Unreachable> {
        self.client.observe().await.map_err(|error| unreachable(&error))
    }

    async fn change(&self, id: &ClusterId, request: &Request, dry_run: bool) -> Result<(), Setback> {
        let done = self.client.update_features(id, request, dry_run).await.map_err(|error| setback(&error));
        self.metrics.count_update(
            dry_run,
            match &done {
                Ok(()) => Update::Accepted,
                Err(Setback::Refused { .. }) => Update::Refused,
                Err(Setback::NotPermitted | Setback::Unreachable(_)) => Update::Failed,
            },
        );
        done
    }
}

fn unreachable(error: &kafka::Error) -> Unreachable {
    let failure = match error.phase() {
        _ if error.other_cluster().is_some() => Failure::TwoClusters,
        Phase::Authorization => Failure::NotAuthorized,
        _ => Failure::NoAnswer,
    };
    Unreachable { failure, message: error.to_string() }
}

fn setback(error: &kafka::Error) -> Setback {
    let refused = |kind, message: &str| Setback::Refused { kind, message: message.to_owned() };
    let passing = error.is_retryable() || error.outcome_unknown() || error.other_cluster().is_some();
    match error.api_error() {
        _ if error.not_permitted() => Setback::NotPermitted,
        // without the peer: which broker answered first must not change what is told
        _ if error.phase() == Phase::Authorization => refused(RefusalKind::NotAuthorized, &error.reason()),
        _ if passing => Setback::Unreachable(unreachable(error)),
        Some(answer) => refused(RefusalKind::Levels, answer.message),
        None => refused(RefusalKind::Other, &error.reason()),
    }
}
