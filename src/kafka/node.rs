//! What one node says of itself and of the cluster, each by one exchange on one connection.

use std::collections::{BTreeMap, BTreeSet};

use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_quorum_request::{PartitionData, TopicData};
use kafka_protocol::messages::{
    ApiVersionsResponse, DescribeClusterRequest, DescribeConfigsRequest, DescribeQuorumRequest, TopicName,
};
use kafka_protocol::protocol::StrBytes;

use super::address::Address;
use super::connection::{Api, Connection, Versions};
use super::error::{Error, What};
use crate::features::observed::{ClusterId, NodeId, Quorum};
use crate::features::{FeatureName, FinalizedFeatures, Level, LevelRange, SupportedFeatures};

const MIN_INSYNC_REPLICAS: &str = "min.insync.replicas";
const BROKER_RESOURCE: i8 = 4;
const DYNAMIC_BROKER_CONFIG: i8 = 2;

/// The features that a node told in its handshake.
#[derive(Clone, Debug)]
pub(super) struct FeatureReport {
    pub(super) supported: SupportedFeatures,
    /// Whether features whose lowest level is 0 are listed too.
    pub(super) complete: bool,
    pub(super) finalized: FinalizedFeatures,
    /// The epoch of the finalized features; `None` where the node does not know them (yet).
    pub(super) epoch: Option<i64>,
}

impl FeatureReport {
    /// Reads a handshake. What can't be a feature or a range is passed over.
    pub(super) fn of(versions: &Versions) -> Self {
        let ApiVersionsResponse { supported_features, finalized_features, finalized_features_epoch, .. } =
            &versions.response;
        let supported = supported_features.iter().filter_map(|feature| {
            let range = LevelRange { min: Level(feature.min_version), max: Level(feature.max_version) };
            let name = FeatureName::new(feature.name.to_string()).ok()?;
            (range.min <= range.max).then_some((name, range))
        });
        let finalized = finalized_features.iter().filter_map(|feature| {
            Some((FeatureName::new(feature.name.to_string()).ok()?, Level(feature.max_version_level)))
        });
        Self {
            supported: supported.collect(),
            complete: versions.complete,
            finalized: finalized.collect(),
            epoch: Some(*finalized_features_epoch).filter(|epoch| *epoch >= 0),
        }
    }
}

/// A node that another names.
#[derive(Clone, Debug)]
pub(super) struct Named {
    pub(super) address: Option<Address>,
    pub(super) fenced: bool,
}

/// The cluster as one node describes it: by a broker, the brokers; by a controller, the registered controllers.
#[derive(Clone, Debug)]
pub(super) struct ClusterReport {
    pub(super) cluster_id: ClusterId,
    /// The active controller, where a controller was asked.
    pub(super) active_controller: Option<NodeId>,
    pub(super) nodes: BTreeMap<NodeId, Named>,
    /// Whether fenced brokers are among the nodes.
    pub(super) fenced_listed: bool,
}

/// The quorum, and the endpoints of its voters where the server gives them.
#[derive(Clone, Debug)]
pub(super) struct QuorumReport {
    pub(super) quorum: Quorum,
    pub(super) endpoints: BTreeMap<NodeId, Address>,
}

fn address(host: &str, port: i32) -> Option<Address> {
    let port = u16::try_from(port).ok().filter(|port| *port > 0)?;
    (!host.is_empty()).then(|| Address::new(host, port))
}

impl Connection {
    /// DescribeCluster (KIP-700): of brokers, or on a controller of the registered controllers (KIP-919).
    pub(super) async fn describe_cluster(&mut self) -> Result<ClusterReport, Error> {
        let controllers = self.is_controller();
        let version = self.version_of::<DescribeClusterRequest>();
        if controllers && version.is_some_and(|version| version < 1) {
            let way_out = "name brokers under bootstrapServers";
            return Err(Error::new(
                &self.peer,
                What::Unsupported { api: DescribeClusterRequest::NAME, way_out },
            ));
        }
        let fenced_listed = !controllers && version.is_some_and(|version| version >= 2);
        let request = DescribeClusterRequest::default()
            .with_endpoint_type(if controllers { 2 } else { 1 })
            .with_include_fenced_brokers(fenced_listed);
        let response = self.call(&request).await?;
        self.check(DescribeClusterRequest::NAME, response.error_code, response.error_message.as_deref())?;
        let node = |node: &kafka_protocol::messages::describe_cluster_response::DescribeClusterBroker| {
            (
                NodeId(node.broker_id.0),
                Named { address: address(&node.host, node.port), fenced: node.is_fenced },
            )
        };
        Ok(ClusterReport {
            cluster_id: ClusterId(response.cluster_id.to_string()),
            active_controller: Some(NodeId(response.controller_id.0)).filter(|id| controllers && id.0 >= 0),
            nodes: response.brokers.iter().map(node).collect(),
            fenced_listed,
        })
    }

    /// DescribeQuorum (KIP-595, KIP-836, KIP-853). Brokers pass it on to the active controller.
    pub(super) async fn describe_quorum(&mut self) -> Result<QuorumReport, Error> {
        let partition = PartitionData::default().with_partition_index(0);
        let topic = TopicData::default()
            .with_topic_name(TopicName(StrBytes::from_static_str("__cluster_metadata")))
            .with_partitions(vec![partition]);
        let response = self.call(&DescribeQuorumRequest::default().with_topics(vec![topic])).await?;
        let api = DescribeQuorumRequest::NAME;
        self.check(api, response.error_code, response.error_message.as_deref())?;
        let Some(partition) = response.topics.first().and_then(|topic| topic.partitions.first()) else {
            let why = "it holds no partition".to_owned();
            return Err(Error::new(&self.peer, What::Malformed { api, why }));
        };
        self.check(api, partition.error_code, partition.error_message.as_deref())?;
        let ids = |replicas: &[kafka_protocol::messages::describe_quorum_response::ReplicaState]| {
            replicas.iter().map(|replica| NodeId(replica.replica_id.0)).collect::<BTreeSet<_>>()
        };
        let endpoint = |node: &kafka_protocol::messages::describe_quorum_response::Node| {
            let address =
                node.listeners.iter().find_map(|listener| address(&listener.host, listener.port.into()));
            Some((NodeId(node.node_id.0), address?))
        };
        Ok(QuorumReport {
            quorum: Quorum {
                leader: Some(NodeId(partition.leader_id.0)).filter(|id| id.0 >= 0),
                voters: ids(&partition.current_voters),
                observers: ids(&partition.observers),
            },
            endpoints: response.nodes.iter().filter_map(endpoint).collect(),
        })
    }

    /// Whether the broker at the other end has a dynamic `min.insync.replicas` of its own. Only the broker itself
    /// answers that.
    pub(super) async fn has_own_min_insync(&mut self, broker: NodeId) -> Result<bool, Error> {
        let resource = DescribeConfigsResource::default()
            .with_resource_type(BROKER_RESOURCE)
            .with_resource_name(StrBytes::from_string(broker.to_string()))
            .with_configuration_keys(Some(vec![StrBytes::from_static_str(MIN_INSYNC_REPLICAS)]));
        // with synonyms, since a topic-like default of the whole cluster could hide the broker's own value
        let request =
            DescribeConfigsRequest::default().with_resources(vec![resource]).with_include_synonyms(true);
        let response = self.call(&request).await?;
        let mut own = false;
        for result in &response.results {
            self.check(DescribeConfigsRequest::NAME, result.error_code, result.error_message.as_deref())?;
            own |=
                result.configs.iter().filter(|config| &*config.name == MIN_INSYNC_REPLICAS).any(|config| {
                    config.config_source == DYNAMIC_BROKER_CONFIG
                        || config.synonyms.iter().any(|synonym| synonym.source == DYNAMIC_BROKER_CONFIG)
                });
        }
        Ok(own)
    }

    fn check(&self, api: &'static str, code: i16, message: Option<&str>) -> Result<(), Error> {
        let needs = match api {
            DescribeConfigsRequest::NAME => "needs DESCRIBE_CONFIGS on CLUSTER",
            _ => "needs DESCRIBE on CLUSTER",
        };
        if code == 0 { Ok(()) } else { Err(Error::of_code(&self.peer, api, needs, code, message)) }
    }
}
