//! Our client on a real cluster, and what most tests do with it.

use std::collections::BTreeSet;
use std::time::Duration;

use kafka_features_operator::features::observed::{ClusterId, Known, Node, NodeId, Observed};
use kafka_features_operator::features::plan::{Direction, Request, Step};
use kafka_features_operator::features::{FeatureName, Level};
use kafka_features_operator::kafka::{Client, Endpoints, Error, Timeouts};
use kafka_protocol::messages::UpdateFeaturesRequest;
use kafka_protocol::messages::update_features_request::FeatureUpdateKey;
use kafka_protocol::protocol::StrBytes;

use crate::testbed::Kafka;

pub(crate) const MV: &str = FeatureName::METADATA_VERSION;
pub(crate) const KRAFT: &str = FeatureName::KRAFT_VERSION;
pub(crate) const GROUP: &str = FeatureName::GROUP_VERSION;

pub(crate) fn client(brokers: &[String], controllers: &[String]) -> Client {
    client_with(brokers, controllers, Timeouts::default())
}

pub(crate) fn client_with(brokers: &[String], controllers: &[String], timeouts: Timeouts) -> Client {
    let addresses = |texts: &[String]| texts.iter().map(|text| text.parse().unwrap()).collect();
    Client::new(Endpoints { brokers: addresses(brokers), controllers: addresses(controllers) }, timeouts)
}

pub(crate) fn name(feature: &str) -> FeatureName {
    FeatureName::new(feature).unwrap()
}

pub(crate) fn step(feature: &str, from: i16, to: i16) -> Request {
    let direction = if to > from { Direction::Up } else { Direction::Down };
    let (from, to) = (Level(from), Level(to));
    Request { steps: vec![Step { feature: name(feature), from, to, direction, one_way: false, note: None }] }
}

pub(crate) fn id(kafka: &Kafka) -> ClusterId {
    ClusterId(kafka.cluster_id.clone())
}

pub(crate) fn node(observed: &Observed, id: i32) -> &Node {
    observed.nodes.get(&NodeId(id)).unwrap_or_else(|| panic!("node {id} in {observed:?}"))
}

pub(crate) fn range(observed: &Observed, id: i32, feature: &str) -> Option<String> {
    node(observed, id).range(&name(feature)).map(|range| range.to_string())
}

pub(crate) fn why_unknown(observed: &Observed, id: i32) -> String {
    match &node(observed, id).supported {
        Known::No(why) => why.clone(),
        Known::Yes(ranges) => panic!("node {id} is known: {ranges:?}"),
    }
}

pub(crate) fn ids(nodes: &[i32]) -> BTreeSet<NodeId> {
    nodes.iter().copied().map(NodeId).collect()
}

/// Observes until it shows what is waited for, as a person would look again; fails with the last observation.
pub(crate) async fn observe_until(
    client: &Client,
    what: &str,
    shows: impl Fn(&Observed) -> bool,
) -> Observed {
    let mut last = None;
    for _ in 0..120 {
        match client.observe().await {
            Ok(observed) if shows(&observed) => return observed,
            other => last = Some(other),
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    panic!("never saw {what}; at last {last:?}");
}

/// A change that the cluster must take: as a dry run, which changes nothing, then for real, which does.
pub(crate) async fn take(client: &Client, kafka: &Kafka, request: &Request) {
    let step = &request.steps[0];
    let feature = step.feature.as_str();
    client.update_features(&id(kafka), request, true).await.unwrap();
    assert_eq!(
        client.observe().await.unwrap().finalized.get(feature),
        step.from,
        "a dry run changes nothing"
    );
    client.update_features(&id(kafka), request, false).await.unwrap();
    observe_until(client, "the new level", |observed| observed.finalized.get(feature) == step.to).await;
}

pub(crate) async fn refused(client: &Client, kafka: &Kafka, request: &Request) -> Error {
    let dry = client.update_features(&id(kafka), request, true).await.unwrap_err();
    let real = client.update_features(&id(kafka), request, false).await.unwrap_err();
    assert_eq!(dry.reason(), real.reason(), "the dry run says what the real one does");
    assert!(!real.outcome_unknown(), "{real}");
    real
}

/// An update of one feature, past our client's own checks.
pub(crate) fn raw_update(
    feature: &'static str,
    level: i16,
    upgrade_type: i8,
    validate_only: bool,
) -> UpdateFeaturesRequest {
    let update = FeatureUpdateKey::default()
        .with_feature(StrBytes::from_static_str(feature))
        .with_max_version_level(level)
        .with_upgrade_type(upgrade_type);
    UpdateFeaturesRequest::default().with_feature_updates(vec![update]).with_validate_only(validate_only)
}
