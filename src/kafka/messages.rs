//! The exchanges that the client knows: names, versions, and the shapes of their answers. All that Kafka 3.7 and later
//! speak; older versions of an exchange that lack what we need are not spoken at all.

use kafka_protocol::messages::{
    ApiVersionsRequest, DescribeClusterRequest, DescribeConfigsRequest, DescribeQuorumRequest,
    UpdateFeaturesRequest,
};

use super::connection::Api;
use super::shape::{NO_TAGS, Shape};
use Shape::{Array, CompactArray, CompactText, Fixed, Tags};

const INT8: Shape = Fixed(1);
const INT16: Shape = Fixed(2);
const INT32: Shape = Fixed(4);
const INT64: Shape = Fixed(8);
const UUID: Shape = Fixed(16);

/// Pieces that only some versions have.
fn since(has: bool, shapes: Vec<Shape>) -> impl Iterator<Item = Shape> {
    shapes.into_iter().take(if has { usize::MAX } else { 0 })
}

impl Api for ApiVersionsRequest {
    const NAME: &'static str = "ApiVersions";
    const MIN: i16 = 0;
    const MAX: i16 = 4;

    fn shape(version: i16) -> Vec<Shape> {
        if version < 3 {
            let mut shape = vec![INT16, Array(vec![INT16, INT16, INT16])];
            shape.extend(since(version > 0, vec![INT32]));
            return shape;
        }
        let feature = || CompactArray(vec![CompactText, INT16, INT16, NO_TAGS]);
        let tags = Tags(vec![(0, feature()), (1, INT64), (2, feature()), (3, INT8)]);
        vec![INT16, CompactArray(vec![INT16, INT16, INT16, NO_TAGS]), INT32, tags]
    }
}

impl Api for DescribeClusterRequest {
    const NAME: &'static str = "DescribeCluster";
    const MIN: i16 = 0;
    const MAX: i16 = 2;

    fn shape(version: i16) -> Vec<Shape> {
        let mut broker = vec![INT32, CompactText, INT32, CompactText];
        broker.extend(since(version >= 2, vec![INT8]));
        broker.push(NO_TAGS);
        let mut shape = vec![INT32, INT16, CompactText];
        shape.extend(since(version >= 1, vec![INT8]));
        shape.extend([CompactText, INT32, CompactArray(broker), INT32, NO_TAGS]);
        shape
    }
}

impl Api for DescribeQuorumRequest {
    const NAME: &'static str = "DescribeQuorum";
    const MIN: i16 = 0;
    const MAX: i16 = 2;

    fn shape(version: i16) -> Vec<Shape> {
        let replica = || {
            let mut replica = vec![INT32];
            replica.extend(since(version >= 2, vec![UUID]));
            replica.push(INT64);
            replica.extend(since(version >= 1, vec![INT64, INT64]));
            replica.push(NO_TAGS);
            CompactArray(replica)
        };
        let mut partition = vec![INT32, INT16];
        partition.extend(since(version >= 2, vec![CompactText]));
        partition.extend([INT32, INT32, INT64, replica(), replica(), NO_TAGS]);
        let mut shape = vec![INT16];
        shape.extend(since(version >= 2, vec![CompactText]));
        shape.push(CompactArray(vec![CompactText, CompactArray(partition), NO_TAGS]));
        let listeners = CompactArray(vec![CompactText, CompactText, INT16, NO_TAGS]);
        shape.extend(since(version >= 2, vec![CompactArray(vec![INT32, listeners, NO_TAGS])]));
        shape.push(NO_TAGS);
        shape
    }
}

impl Api for DescribeConfigsRequest {
    const NAME: &'static str = "DescribeConfigs";
    const MIN: i16 = 4;
    const MAX: i16 = 4;

    fn shape(_version: i16) -> Vec<Shape> {
        let synonyms = CompactArray(vec![CompactText, CompactText, INT8, NO_TAGS]);
        let config = vec![CompactText, CompactText, INT8, INT8, INT8, synonyms, INT8, CompactText, NO_TAGS];
        let result = vec![INT16, CompactText, INT8, CompactText, CompactArray(config), NO_TAGS];
        vec![INT32, CompactArray(result), NO_TAGS]
    }
}

impl Api for UpdateFeaturesRequest {
    const NAME: &'static str = "UpdateFeatures";
    /// Version 0 has neither validate-only nor a safe downgrade, and Kafka ignores its AllowDowngrade.
    const MIN: i16 = 1;
    const MAX: i16 = 2;

    fn shape(version: i16) -> Vec<Shape> {
        let results = CompactArray(vec![CompactText, INT16, CompactText, NO_TAGS]);
        let mut shape = vec![INT32, INT16, CompactText];
        shape.extend(since(version <= 1, vec![results]));
        shape.push(NO_TAGS);
        shape
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;
    use kafka_protocol::messages::*;
    use kafka_protocol::messages::{
        describe_cluster_response::DescribeClusterBroker, describe_quorum_response as quorum,
        update_features_response::UpdatableFeatureResult,
    };
    use kafka_protocol::protocol::{Encodable, StrBytes};

    fn text(text: &'static str) -> StrBytes {
        StrBytes::from_static_str(text)
    }

    /// The shape of every version fits what the library writes, to the last byte: one byte less is an error.
    fn fits<R: Api>(response: &R::Response) {
        for version in R::MIN..=R::MAX {
            let mut body = BytesMut::new();
            response.encode(&mut body, version).unwrap();
            super::super::shape::check(&body, &R::shape(version))
                .unwrap_or_else(|e| panic!("{} {version}: {e}", R::NAME));
            let short = body.len() - 1;
            let result = super::super::shape::check(&body[..short], &R::shape(version));
            assert!(result.is_err(), "{} {version} takes a body that lacks its end", R::NAME);
        }
    }

    #[test]
    fn shapes_fit_what_the_library_writes() {
        fits::<DescribeClusterRequest>(
            &DescribeClusterResponse::default().with_cluster_id(text("c")).with_brokers(vec![
                DescribeClusterBroker::default().with_host(text("host")).with_port(9092),
                DescribeClusterBroker::default().with_host(text("b")).with_rack(Some(text("r"))),
            ]),
        );
        let replica = quorum::ReplicaState::default();
        let partition = quorum::PartitionData::default()
            .with_current_voters(vec![replica.clone(), replica.clone()])
            .with_observers(vec![replica]);
        let topic = quorum::TopicData::default()
            .with_topic_name(TopicName(text("t")))
            .with_partitions(vec![partition]);
        fits::<DescribeQuorumRequest>(&DescribeQuorumResponse::default().with_topics(vec![topic]));
        fits::<UpdateFeaturesRequest>(
            &UpdateFeaturesResponse::default().with_error_message(Some(text("no"))),
        );
        let result = UpdatableFeatureResult::default().with_feature(text("f"));
        let mut body = BytesMut::new();
        UpdateFeaturesResponse::default().with_results(vec![result]).encode(&mut body, 1).unwrap();
        super::super::shape::check(&body, &UpdateFeaturesRequest::shape(1)).unwrap();
        let config = describe_configs_response::DescribeConfigsResourceResult::default()
            .with_name(text("min.insync.replicas"))
            .with_value(Some(text("2")));
        let result = describe_configs_response::DescribeConfigsResult::default().with_configs(vec![config]);
        fits::<DescribeConfigsRequest>(&DescribeConfigsResponse::default().with_results(vec![result]));
        let api = api_versions_response::ApiVersion::default();
        let feature = api_versions_response::SupportedFeatureKey::default().with_name(text("group.version"));
        fits::<ApiVersionsRequest>(&ApiVersionsResponse::default().with_api_keys(vec![api.clone()]));
        let mut body = BytesMut::new();
        ApiVersionsResponse::default().with_supported_features(vec![feature]).encode(&mut body, 4).unwrap();
        super::super::shape::check(&body, &ApiVersionsRequest::shape(4)).unwrap();
    }
}
