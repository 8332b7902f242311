//! What other resources claim of a cluster, from the watched resources of all namespaces. Which cluster a resource is
//! about is what its status says: the id that was observed, never an address.

use std::sync::Arc;

use kube::core::DeserializeGuard;

use super::resource::{full_name, seniority};
use crate::api::KafkaFeatures;
use crate::features::decide::Claim;
use crate::features::observed::ClusterId;

/// The claims of all resources but one on a cluster. Resources that are about to go claim nothing any more.
pub(super) fn of_others(
    resources: &[Arc<DeserializeGuard<KafkaFeatures>>],
    own_uid: Option<&str>,
    cluster: &ClusterId,
) -> Vec<Claim> {
    resources
        .iter()
        .filter_map(|guarded| guarded.0.as_ref().ok())
        .filter(|other| other.metadata.uid.as_deref() != own_uid)
        .filter(|other| other.metadata.deletion_timestamp.is_none())
        .filter(|other| {
            let status = other.status.as_ref();
            status.and_then(|status| status.cluster_id.as_deref()) == Some(cluster.0.as_str())
        })
        .filter_map(|other| {
            let spec = other.spec.declared().ok()?;
            Claim::of(&spec, full_name(other), seniority(&other.metadata))
        })
        .collect()
}
