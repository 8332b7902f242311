//! Moving finalized levels: one UpdateFeatures request, sent at most once, to a node that has just said that it
//! belongs to the right cluster. What Kafka would take and should not is refused here.

use std::collections::BTreeSet;

use kafka_protocol::messages::UpdateFeaturesRequest;
use kafka_protocol::messages::update_features_request::FeatureUpdateKey;
use kafka_protocol::protocol::StrBytes;

use super::bootstrap::{Entry, enter};
use super::connection::milliseconds;
use super::error::{Cause, EndpointKind, Error, active_controller_in};
use super::pass::Pass;
use super::{Endpoints, Permit};
use crate::features::catalog::Catalog;
use crate::features::observed::{ClusterId, NodeId};
use crate::features::plan::{Direction, Request};

/// How often one change may be sent on from one controller to another.
const MAX_REDIRECTS: usize = 3;

const UPGRADE: i8 = 1;
const SAFE_DOWNGRADE: i8 = 2;

/// What is to be sent, and under which conditions.
pub(super) struct Change<'a> {
    /// The cluster that it is meant for.
    pub(super) cluster: &'a ClusterId,
    pub(super) request: &'a Request,
    /// Whether the cluster is only asked whether it would take it.
    pub(super) validate_only: bool,
    pub(super) permit: Option<&'a dyn Permit>,
}

/// Sends the request: to the active controller where controllers are known, else through a broker.
pub(super) async fn update(endpoints: &Endpoints, change: &Change<'_>, pass: &Pass) -> Result<(), Error> {
    check(change.request).map_err(|cause| Error::at(endpoints.name(), cause))?;
    let mut failed = None;
    if let Some(entry) = enter(&endpoints.controllers, EndpointKind::Controller, pass).await {
        match entry {
            Ok(entry) => {
                entry.belongs_to(change.cluster)?;
                if let Some(active) = entry.view.active_controller {
                    return to_active_controller(entry, active, change, pass).await;
                }
                let error = entry.connection.failed(Cause::NoActiveController);
                if entry.view.has_no_leader() {
                    return Err(error);
                }
                failed = Some(error);
            }
            Err(error) if matches!(error.cause(), Cause::WrongKind { .. }) => return Err(error),
            Err(error) => failed = Some(error),
        }
    }
    match enter(&endpoints.brokers, EndpointKind::Broker, pass).await {
        Some(Ok(mut entry)) => send(&mut entry, change, pass).await,
        Some(Err(error)) => Err(error),
        None => Err(failed.unwrap_or_else(|| Error::at(endpoints.name(), Cause::NoAddress))),
    }
}

/// Refuses what must never be sent.
fn check(request: &Request) -> Result<(), Cause> {
    if request.steps.is_empty() {
        return Err(Cause::NothingToSend);
    }
    let mut seen = BTreeSet::new();
    for step in &request.steps {
        if !seen.insert(&step.feature) {
            return Err(Cause::FeatureTwice(step.feature.clone()));
        }
    }
    let with_kraft_version = seen.iter().any(|feature| feature.is_kraft_version());
    match seen.into_iter().find(|feature| !feature.is_kraft_version()) {
        Some(other) if with_kraft_version => Err(Cause::KraftVersionNotAlone(other.clone())),
        _ => Ok(()),
    }
}

async fn to_active_controller(
    mut entry: Entry,
    mut active: NodeId,
    change: &Change<'_>,
    pass: &Pass,
) -> Result<(), Error> {
    for _ in 0..=MAX_REDIRECTS {
        entry = open_controller(&entry, active, pass).await?;
        match send(&mut entry, change, pass).await {
            Err(error) => match error.api_error().and_then(|refusal| active_controller_in(refusal.message)) {
                Some(other) => active = other,
                None => return Err(error),
            },
            Ok(()) => return Ok(()),
        }
    }
    Err(entry.connection.failed(Cause::Redirected(MAX_REDIRECTS + 1, active)))
}

async fn open_controller(from: &Entry, id: NodeId, pass: &Pass) -> Result<Entry, Error> {
    let listed = from.view.nodes.get(&id).map(|node| node.endpoint.clone());
    let unknown = || Err("it is not registered with an address".to_owned());
    match listed.unwrap_or_else(unknown) {
        Ok(endpoint) => Entry::open(&endpoint, EndpointKind::Controller, pass).await,
        Err(why) => {
            let cause =
                Cause::Connect(format!("the address of the active controller {id} is not known: {why}"));
            Err(from.connection.failed(cause))
        }
    }
}

async fn send(entry: &mut Entry, change: &Change<'_>, pass: &Pass) -> Result<(), Error> {
    entry.belongs_to(change.cluster)?;
    let connection = &mut entry.connection;
    let moves_kraft_version = || Catalog::kafka().moves_kraft_version(&connection.features().supported);
    if change.request.steps.iter().any(|step| step.feature.is_kraft_version()) && !moves_kraft_version() {
        return Err(connection.failed(Cause::KraftVersionNotHonoured));
    }
    connection.version::<UpdateFeaturesRequest>()?;
    let updates = change.request.steps.iter().map(|step| {
        FeatureUpdateKey::default()
            .with_feature(StrBytes::from_string(step.feature.to_string()))
            .with_max_version_level(step.to.0)
            .with_upgrade_type(match step.direction {
                Direction::Up => UPGRADE,
                Direction::Down => SAFE_DOWNGRADE,
            })
    });
    let update = UpdateFeaturesRequest::default()
        .with_timeout_ms(milliseconds(pass.patience()))
        .with_feature_updates(updates.collect())
        .with_validate_only(change.validate_only);
    // the last thing before it goes out: all that came before it took time, and the process may have stood still
    if change.permit.is_some_and(|permit| !permit.holds()) {
        return Err(connection.failed(Cause::NotPermitted));
    }
    let done = async {
        let answer = connection.ask(&update, pass).await?;
        connection.refuse::<UpdateFeaturesRequest>(answer.error_code, answer.error_message.as_deref())?;
        // Up to version 1 a feature can also fail by itself.
        answer.results.iter().try_for_each(|result| {
            let text = result.error_message.as_deref().unwrap_or_default();
            let text = format!("{}: {text}", result.feature.as_str());
            connection.refuse::<UpdateFeaturesRequest>(result.error_code, Some(&text))
        })
    };
    let done: Result<(), Error> = done.await;
    if change.validate_only { done } else { done.map_err(Error::of_a_change) }
}
