//! The Raft quorum of the controllers, as its leader sees it.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kafka_protocol::messages::describe_quorum_request::{PartitionData, TopicData};
use kafka_protocol::messages::describe_quorum_response::{PartitionData as PartitionAnswer, ReplicaState};
use kafka_protocol::messages::{DescribeQuorumRequest, DescribeQuorumResponse, TopicName};
use kafka_protocol::protocol::StrBytes;

use super::address::Address;
use super::connection::Connection;
use super::error::{Cause, Error};
use super::pass::Pass;
use crate::features::observed::{Known, NodeId, Quorum, QuorumDetails, QuorumVoter};

const METADATA_TOPIC: &str = "__cluster_metadata";

/// What the leader says about the quorum.
pub(super) struct QuorumView {
    /// Leader, voters, observers.
    pub(super) quorum: Quorum,
    /// The voters' addresses, where they are said: from Kafka 3.9 (KIP-853).
    pub(super) endpoints: BTreeMap<NodeId, Vec<Address>>,
}

impl QuorumView {
    /// What is left to see of a quorum that nobody leads, `why` being how that showed.
    pub(super) fn leaderless(why: String) -> Self {
        let (voters, observers, details) = Default::default();
        let quorum = Quorum { leader: Known::No(why), voters, observers, details };
        Self { quorum, endpoints: BTreeMap::new() }
    }
}

/// Asks for the quorum. Any broker passes the question on to the leader; of the controllers only the leader
/// answers it.
pub(super) async fn describe(connection: &mut Connection, pass: &Pass) -> Result<QuorumView, Error> {
    let topic = TopicData::default()
        .with_topic_name(TopicName(StrBytes::from_static_str(METADATA_TOPIC)))
        .with_partitions(vec![PartitionData::default().with_partition_index(0)]);
    let answer = connection.ask(&DescribeQuorumRequest::default().with_topics(vec![topic]), pass).await?;
    connection.refuse::<DescribeQuorumRequest>(answer.error_code, answer.error_message.as_deref())?;
    let partition = partition(&answer).ok_or_else(|| {
        connection.failed(Cause::Garbled(format!("DescribeQuorum was answered without {METADATA_TOPIC}")))
    })?;
    connection.refuse::<DescribeQuorumRequest>(partition.error_code, partition.error_message.as_deref())?;
    Ok(read(&answer, partition))
}

fn partition(answer: &DescribeQuorumResponse) -> Option<&PartitionAnswer> {
    let topic = answer.topics.iter().find(|topic| topic.topic_name.0.as_str() == METADATA_TOPIC)?;
    topic.partitions.iter().find(|partition| partition.partition_index == 0)
}

fn read(answer: &DescribeQuorumResponse, partition: &PartitionAnswer) -> QuorumView {
    let node = |id: i32| Some(id).filter(|id| *id >= 0).map(NodeId);
    let ids = |replicas: &[ReplicaState]| -> BTreeSet<NodeId> {
        replicas.iter().filter_map(|replica| node(replica.replica_id.0)).collect()
    };
    let endpoints = answer.nodes.iter().filter_map(|voter| {
        let listeners = voter.listeners.iter();
        let usable = listeners.filter_map(|at| Address::advertised(&at.host, at.port.into()).ok());
        Some((node(voter.node_id.0)?, usable.collect()))
    });
    QuorumView {
        quorum: Quorum {
            leader: node(partition.leader_id.0)
                .map_or_else(|| Known::No("the controllers name none".to_owned()), Known::Yes),
            voters: ids(&partition.current_voters),
            observers: ids(&partition.observers),
            details: details(answer, partition),
        },
        endpoints: endpoints.collect(),
    }
}

/// A voter that has not had everything for longer than this, by the leader's clock, is behind.
const BEHIND_MS: i64 = 10_000;

fn details(answer: &DescribeQuorumResponse, partition: &PartitionAnswer) -> QuorumDetails {
    let voters = &partition.current_voters;
    // the leader's own entry holds its clock; before version 1 there are no times
    let leader = voters.iter().find(|voter| voter.replica_id.0 == partition.leader_id.0);
    let now = leader.map(|leader| leader.last_caught_up_timestamp).filter(|time| *time > 0);
    let caught_up = voters.iter().filter(|voter| {
        now.is_some_and(|now| {
            voter.last_caught_up_timestamp > 0 && now - voter.last_caught_up_timestamp <= BEHIND_MS
        })
    });
    let voter = |replica: &ReplicaState| {
        let node = answer.nodes.iter().find(|node| node.node_id == replica.replica_id)?;
        let listener = node.listeners.first()?;
        Some(QuorumVoter {
            id: NodeId(replica.replica_id.0),
            directory_id: URL_SAFE_NO_PAD.encode(replica.replica_directory_id.as_bytes()),
            host: listener.host.to_string(),
            port: listener.port,
        })
    };
    QuorumDetails {
        caught_up: caught_up.map(|voter| NodeId(voter.replica_id.0)).collect(),
        voters: voters
            .iter()
            .filter(|replica| !replica.replica_directory_id.is_nil())
            .filter_map(voter)
            .collect(),
    }
}
