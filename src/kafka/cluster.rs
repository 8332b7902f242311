//! Who belongs to a cluster, as one of its nodes sees it: the cluster's id, the active controller, the brokers
//! or the controllers with their addresses.

use std::collections::BTreeMap;

use kafka_protocol::messages::{DescribeClusterRequest, DescribeClusterResponse};

use super::address::Address;
use super::connection::Connection;
use super::error::{Cause, EndpointKind, Error, tidy};
use super::pass::Pass;
use crate::features::observed::{ClusterId, NodeId};

/// More nodes than this are not believed.
const MAX_NODES: usize = 10_000;

const UNSUPPORTED_VERSION: i16 = 35;

/// What one node says about its cluster.
pub(super) struct ClusterView {
    /// The cluster's id.
    pub(super) cluster_id: ClusterId,
    /// The active controller. Said by controllers, if it is registered; brokers name any broker.
    pub(super) active_controller: Option<NodeId>,
    /// From a broker the brokers, from a controller the registered controllers.
    pub(super) nodes: BTreeMap<NodeId, Listed>,
    /// Whether fenced brokers are among them; Kafka before 4.0 leaves them out (KIP-1073).
    pub(super) lists_fenced: bool,
}

impl ClusterView {
    /// Whether these controllers have no leader. They name none either where the leader is not registered yet, and
    /// then none is, which is so for a moment after `metadata.version` has come to 15 (KIP-919).
    pub(super) fn has_no_leader(&self) -> bool {
        self.active_controller.is_none() && !self.nodes.is_empty()
    }
}

/// One node of the list.
pub(super) struct Listed {
    /// Its address on the listener that was asked, or why there is none.
    pub(super) endpoint: Result<Address, String>,
    /// Whether it is a fenced broker.
    pub(super) fenced: bool,
}

/// Asks a node for its cluster: a broker for the brokers, a controller for the controllers.
pub(super) async fn describe(connection: &mut Connection, pass: &Pass) -> Result<ClusterView, Error> {
    let version = connection.version::<DescribeClusterRequest>()?;
    let request = match connection.kind() {
        EndpointKind::Broker if version >= 2 => {
            DescribeClusterRequest::default().with_endpoint_type(1).with_include_fenced_brokers(true)
        }
        EndpointKind::Broker => DescribeClusterRequest::default().with_endpoint_type(1),
        EndpointKind::Controller => DescribeClusterRequest::default().with_endpoint_type(2),
    };
    let answer = connection.ask(&request, pass).await?;
    if answer.error_code == UNSUPPORTED_VERSION && connection.kind() == EndpointKind::Controller {
        return Err(connection.failed(Cause::ControllersClosed));
    }
    connection.refuse::<DescribeClusterRequest>(answer.error_code, answer.error_message.as_deref())?;
    read(&answer, version >= 2).map_err(|fault| connection.failed(Cause::Garbled(fault)))
}

fn read(answer: &DescribeClusterResponse, lists_fenced: bool) -> Result<ClusterView, String> {
    if answer.brokers.len() > MAX_NODES {
        return Err(format!("DescribeCluster named {} nodes, of at most {MAX_NODES}", answer.brokers.len()));
    }
    let nodes = answer.brokers.iter().map(|node| {
        let id = node.broker_id.0;
        if id < 0 {
            return Err(format!("DescribeCluster named a node with the id {id}"));
        }
        let endpoint = Address::advertised(&node.host, node.port);
        Ok((NodeId(id), Listed { endpoint, fenced: node.is_fenced }))
    });
    Ok(ClusterView {
        // Any text is a cluster id to Kafka; only what would break a line is taken out of it.
        cluster_id: ClusterId(tidy(&answer.cluster_id)),
        active_controller: Some(answer.controller_id.0).filter(|id| *id >= 0).map(NodeId),
        nodes: nodes.collect::<Result<_, _>>()?,
        lists_fenced,
    })
}
