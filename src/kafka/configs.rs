//! Whether a broker holds a `min.insync.replicas` of its own, which no longer counts once
//! `eligible.leader.replicas.version` is raised (KIP-966): Kafka then removes those that were set for single brokers at run
//! time and, where no cluster-wide value is set, sets one, which comes before what stands in a broker's file. A broker
//! answers for itself only.

use kafka_protocol::messages::DescribeConfigsRequest;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::protocol::StrBytes;

use super::connection::Connection;
use super::error::{Cause, Error};
use super::pass::Pass;
use crate::features::observed::NodeId;

const KEY: &str = "min.insync.replicas";
const BROKER: i8 = 4;
/// The source of a value that was set for one broker at run time.
const DYNAMIC_BROKER_CONFIG: i8 = 2;
/// The source of a value that was set for all brokers at run time.
const DYNAMIC_DEFAULT_BROKER_CONFIG: i8 = 3;
/// The source of a value from a broker's file.
const STATIC_BROKER_CONFIG: i8 = 4;

/// Asks a broker. A node that is not this broker refuses, so that the answer also proves who is at the address.
pub(super) async fn has_own_min_insync(
    connection: &mut Connection,
    broker: NodeId,
    pass: &Pass,
) -> Result<bool, Error> {
    let resource = DescribeConfigsResource::default()
        .with_resource_type(BROKER)
        .with_resource_name(StrBytes::from_string(broker.to_string()))
        .with_configuration_keys(Some(vec![StrBytes::from_static_str(KEY)]));
    let request =
        DescribeConfigsRequest::default().with_resources(vec![resource]).with_include_synonyms(true);
    let answer = connection.ask(&request, pass).await?;
    let result = answer.results.first().ok_or_else(|| {
        connection.failed(Cause::Garbled("DescribeConfigs was answered without a result".to_owned()))
    })?;
    connection.refuse::<DescribeConfigsRequest>(result.error_code, result.error_message.as_deref())?;
    let config = result.configs.iter().find(|config| config.name.as_str() == KEY);
    Ok(config.is_some_and(|config| {
        let synonyms = config.synonyms.iter().map(|synonym| synonym.source);
        let sources: Vec<i8> = synonyms.chain([config.config_source]).collect();
        let has = |source| sources.contains(&source);
        has(DYNAMIC_BROKER_CONFIG) || (has(STATIC_BROKER_CONFIG) && !has(DYNAMIC_DEFAULT_BROKER_CONFIG))
    }))
}
