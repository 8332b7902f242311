//! One UpdateFeatures request: to whom it goes, what is checked before it leaves, and what its answer means.

use kafka_protocol::messages::update_features_request::FeatureUpdateKey;
use kafka_protocol::messages::{UpdateFeaturesRequest, UpdateFeaturesResponse};
use kafka_protocol::protocol::StrBytes;

use super::connection::{Api, Connection};
use super::error::{Error, What};
use super::observe::active_controller;
use super::{Client, Kind};
use crate::features::observed::ClusterId;
use crate::features::plan::{Direction, Request};

const UPGRADE: i8 = 1;
const SAFE_DOWNGRADE: i8 = 2;
const NOT_CONTROLLER: i16 = 41;
const REQUEST_TIMED_OUT: i16 = 7;
const UNKNOWN_SERVER_ERROR: i16 = -1;
/// How often the active controller is looked for again when it has moved.
const REDIRECTS: usize = 3;
const NEEDS: &str = "needs ALTER on CLUSTER";

pub(super) async fn update(
    client: &Client,
    expected: &ClusterId,
    request: &Request,
    validate_only: bool,
) -> Result<(), Error> {
    let peer = || client.endpoints.brokers.first().or(client.endpoints.controllers.first());
    let never = |why| Error::new(peer().map(ToString::to_string).unwrap_or_default(), What::NeverSent(why));
    if request.steps.is_empty() {
        return Err(never("it changes nothing"));
    }
    if request.steps.len() > 1 && request.steps.iter().any(|step| step.feature.is_kraft_version()) {
        return Err(never("Kafka applies kraft.version even when it refuses the request, so it goes alone"));
    }
    let message = message(client, request, validate_only);
    let mut redirects = 0;
    loop {
        let mut connection = connect(client, expected).await?;
        let result = send(&mut connection, &message, validate_only).await;
        match result {
            Err(error)
                if error.api_error().is_some_and(|e| e.code == NOT_CONTROLLER) && redirects < REDIRECTS =>
            {
                redirects += 1;
            }
            other => return other,
        }
    }
}

/// A connection to a broker, or to the active controller, that answers for the expected cluster.
async fn connect(client: &Client, expected: &ClusterId) -> Result<Connection, Error> {
    let failure = match client.enter(Kind::Broker).await {
        Some(Ok(entry)) => {
            check_cluster(&entry.connection, expected, &entry.cluster.cluster_id)?;
            return Ok(entry.connection);
        }
        Some(Err(error)) => Some(error),
        None => None,
    };
    let entry = match (client.enter(Kind::Controller).await, failure) {
        (Some(Ok(entry)), _) => entry,
        (Some(Err(error)), None) | (_, Some(error)) => return Err(error),
        (None, None) => {
            return Err(Error::new("no address", What::NeverSent("there is nobody to send it to")));
        }
    };
    check_cluster(&entry.connection, expected, &entry.cluster.cluster_id)?;
    let mut connection = active_controller(client, &entry).await?;
    let cluster = connection.describe_cluster().await?;
    check_cluster(&connection, expected, &cluster.cluster_id)?;
    Ok(connection)
}

fn check_cluster(connection: &Connection, expected: &ClusterId, found: &ClusterId) -> Result<(), Error> {
    if expected == found {
        return Ok(());
    }
    let what = What::OtherCluster { expected: expected.clone(), found: found.clone() };
    Err(Error::new(&connection.peer, what))
}

fn message(client: &Client, request: &Request, validate_only: bool) -> UpdateFeaturesRequest {
    let update = |step: &crate::features::plan::Step| {
        FeatureUpdateKey::default()
            .with_feature(StrBytes::from_string(step.feature.to_string()))
            .with_max_version_level(step.to.0)
            .with_upgrade_type(match step.direction {
                Direction::Up => UPGRADE,
                Direction::Down => SAFE_DOWNGRADE,
            })
    };
    // the server gives up before we do, so that its answer is heard
    let server_timeout = client.timeouts.request.mul_f32(0.8).as_millis();
    UpdateFeaturesRequest::default()
        .with_timeout_ms(i32::try_from(server_timeout).unwrap_or(i32::MAX))
        .with_feature_updates(request.steps.iter().map(update).collect())
        .with_validate_only(validate_only)
}

async fn send(
    connection: &mut Connection,
    message: &UpdateFeaturesRequest,
    validate_only: bool,
) -> Result<(), Error> {
    let result = match connection.call(message).await {
        Ok(response) => read(connection, &response),
        Err(error) => {
            Err(if matches!(error.what(), What::Unsupported { .. }) { error } else { unclear(error) })
        }
    };
    result.map_err(|error| if validate_only { error.without_unknown_outcome() } else { error })
}

fn unclear(error: Error) -> Error {
    error.with_unknown_outcome()
}

/// Reads the answer: version 2 has one error for all, version 1 one a feature besides.
fn read(connection: &Connection, response: &UpdateFeaturesResponse) -> Result<(), Error> {
    let each = response.results.iter().map(|result| (result.error_code, result.error_message.as_deref()));
    let whole = (response.error_code, response.error_message.as_deref());
    let Some((code, message)) = std::iter::once(whole).chain(each).find(|(code, _)| *code != 0) else {
        return Ok(());
    };
    let error = Error::of_code(&connection.peer, UpdateFeaturesRequest::NAME, NEEDS, code, message);
    // the request may have gone on to a controller that never said what became of it
    Err(if matches!(code, REQUEST_TIMED_OUT | UNKNOWN_SERVER_ERROR) { unclear(error) } else { error })
}
