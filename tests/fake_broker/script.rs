//! What a well-behaved node says, for the test to bend.

use kafka_protocol::messages::api_versions_response::{ApiVersion, FinalizedFeatureKey, SupportedFeatureKey};
use kafka_protocol::messages::describe_cluster_response::DescribeClusterBroker;
use kafka_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult,
};
use kafka_protocol::messages::describe_quorum_response::{PartitionData, ReplicaState, TopicData};
use kafka_protocol::messages::{
    ApiKey, ApiVersionsResponse, BrokerId, DescribeClusterResponse, DescribeConfigsResponse,
    DescribeQuorumResponse, TopicName, UpdateFeaturesResponse,
};
use kafka_protocol::protocol::StrBytes;

use super::{Ask, Reply};

/// A node of a small cluster: its own place and what it says of the others.
#[derive(Clone, Debug)]
pub struct Script {
    pub controller: bool,
    pub cluster_id: &'static str,
    /// The nodes that it lists, with their ports.
    pub nodes: Vec<(i32, u16)>,
    /// The active controller that it names.
    pub active: i32,
    pub leader: i32,
    pub voters: Vec<i32>,
    pub observers: Vec<i32>,
    pub supported: Vec<(&'static str, i16, i16)>,
    pub finalized: Vec<(&'static str, i16)>,
    pub epoch: i64,
    /// The highest versions of ApiVersions and UpdateFeatures that it speaks.
    pub api_versions: i16,
    pub update_features: i16,
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

/// An UpdateFeatures answer with one error for all.
pub fn refusal(code: i16, message: &str) -> UpdateFeaturesResponse {
    UpdateFeaturesResponse::default().with_error_code(code).with_error_message(Some(text(message)))
}

impl Script {
    /// A broker that lists itself as node 1 of a cluster with controller 9.
    pub fn broker(port: u16) -> Self {
        Self {
            controller: false,
            cluster_id: "cluster-a",
            nodes: vec![(1, port)],
            active: 1,
            leader: 9,
            voters: vec![9],
            observers: vec![1],
            supported: vec![("metadata.version", 7, 33), ("group.version", 0, 1)],
            finalized: vec![("metadata.version", 25)],
            epoch: 100,
            api_versions: 4,
            update_features: 2,
        }
    }

    /// The active controller, node 9, that lists itself.
    pub fn controller(port: u16) -> Self {
        Self { controller: true, nodes: vec![(9, port)], active: 9, ..Self::broker(port) }
    }

    pub fn reply(&self, ask: &Ask) -> Reply {
        match ask.api {
            ApiKey::ApiVersions if ask.version > self.api_versions => {
                let own = api(ApiKey::ApiVersions, 0, self.api_versions);
                let refused = ApiVersionsResponse::default().with_error_code(35).with_api_keys(vec![own]);
                ask.answer_in(0, &refused)
            }
            ApiKey::ApiVersions => ask.answer(&self.versions()),
            ApiKey::DescribeCluster => ask.answer(&self.cluster()),
            ApiKey::DescribeQuorum => ask.answer(&self.quorum()),
            ApiKey::DescribeConfigs => ask.answer(&self.configs()),
            ApiKey::UpdateFeatures => ask.answer(&UpdateFeaturesResponse::default()),
            other => panic!("nobody was to ask for {other:?}"),
        }
    }

    pub fn versions(&self) -> ApiVersionsResponse {
        let own = if self.controller { ApiKey::BrokerRegistration } else { ApiKey::Metadata };
        let supported = |(name, min, max): &(&str, i16, i16)| {
            SupportedFeatureKey::default().with_name(text(name)).with_min_version(*min).with_max_version(*max)
        };
        let finalized = |(name, level): &(&str, i16)| {
            FinalizedFeatureKey::default()
                .with_name(text(name))
                .with_min_version_level(*level)
                .with_max_version_level(*level)
        };
        ApiVersionsResponse::default()
            .with_api_keys(vec![
                api(ApiKey::ApiVersions, 0, self.api_versions),
                api(ApiKey::DescribeCluster, 0, 2),
                api(ApiKey::DescribeQuorum, 0, 2),
                api(ApiKey::DescribeConfigs, 1, 4),
                api(ApiKey::UpdateFeatures, 0, self.update_features),
                api(own, 0, 0),
            ])
            .with_supported_features(self.supported.iter().map(supported).collect())
            .with_finalized_features(self.finalized.iter().map(finalized).collect())
            .with_finalized_features_epoch(self.epoch)
    }

    pub fn cluster(&self) -> DescribeClusterResponse {
        let node = |(id, port): &(i32, u16)| {
            DescribeClusterBroker::default()
                .with_broker_id(BrokerId(*id))
                .with_host(text("127.0.0.1"))
                .with_port((*port).into())
        };
        DescribeClusterResponse::default()
            .with_cluster_id(text(self.cluster_id))
            .with_controller_id(BrokerId(self.active))
            .with_endpoint_type(if self.controller { 2 } else { 1 })
            .with_brokers(self.nodes.iter().map(node).collect())
    }

    pub fn quorum(&self) -> DescribeQuorumResponse {
        let replicas = |ids: &[i32]| {
            ids.iter().map(|id| ReplicaState::default().with_replica_id(BrokerId(*id))).collect::<Vec<_>>()
        };
        let partition = PartitionData::default()
            .with_leader_id(BrokerId(self.leader))
            .with_current_voters(replicas(&self.voters))
            .with_observers(replicas(&self.observers));
        let topic = TopicData::default()
            .with_topic_name(TopicName(text("__cluster_metadata")))
            .with_partitions(vec![partition]);
        DescribeQuorumResponse::default().with_topics(vec![topic])
    }

    pub fn configs(&self) -> DescribeConfigsResponse {
        let config = DescribeConfigsResourceResult::default()
            .with_name(text("min.insync.replicas"))
            .with_value(Some(text("1")))
            .with_config_source(5);
        let result = DescribeConfigsResult::default().with_configs(vec![config]);
        DescribeConfigsResponse::default().with_results(vec![result])
    }
}

fn api(key: ApiKey, min: i16, max: i16) -> ApiVersion {
    ApiVersion::default().with_api_key(key as i16).with_min_version(min).with_max_version(max)
}
