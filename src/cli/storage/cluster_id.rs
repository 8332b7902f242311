//! The cluster's id where it was not given: taken from the running cluster (KIP-1262). A controller that the cluster begins
//! with has none to ask.

use crate::cli::{Failure, Status};
use crate::kafka::{Address, Client, Endpoints, Timeouts};
use crate::storage::format::FormatRequest;

/// Asks the cluster behind the addresses, if there are any, for its id, and gives it to the request; or sees that it is the
/// one that was given.
pub(super) fn find(
    request: &mut FormatRequest,
    brokers: &[String],
    controllers: &[String],
) -> Result<(), Failure> {
    let needs_none = brokers.is_empty() && controllers.is_empty();
    let has_none_to_ask = request.cluster_id.is_none() && request.begins_cluster();
    if needs_none || has_none_to_ask {
        return Ok(());
    }
    let endpoints = Endpoints { brokers: addresses(brokers)?, controllers: addresses(controllers)? };
    let found = ask(endpoints)?;
    match &request.cluster_id {
        Some(given) if *given != found => {
            let message = format!(
                "the addresses lead to cluster {found:?}, and --cluster-id is {given:?}: correct one of the two"
            );
            Err(Failure::new(Status::Identity, message))
        }
        _ => {
            request.cluster_id = Some(found);
            Ok(())
        }
    }
}

fn addresses(texts: &[String]) -> Result<Vec<Address>, Failure> {
    let read = |text: &String| text.trim().parse::<Address>();
    texts
        .iter()
        .map(read)
        .collect::<Result<_, _>>()
        .map_err(|error| Failure::new(Status::Usage, error.to_string()))
}

fn ask(endpoints: Endpoints) -> Result<String, Failure> {
    let unreachable = |error: String| {
        let message = format!("the cluster's id could not be taken from the running cluster: {error}");
        Failure::new(Status::Unreachable, message)
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| unreachable(error.to_string()))?;
    let client = Client::new(endpoints, Timeouts::default());
    let observed = runtime.block_on(client.observe()).map_err(|error| unreachable(error.to_string()))?;
    Ok(observed.cluster_id.0)
}
