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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::features::decide::Claimed;

    fn resource(name: &str, cluster: Option<&str>, spec: Value) -> Arc<DeserializeGuard<KafkaFeatures>> {
        let object = json!({
            "apiVersion": "kafkafeatures.dev/v1alpha1",
            "kind": "KafkaFeatures",
            "metadata": {
                "name": name,
                "namespace": "ns",
                "uid": format!("uid-{name}"),
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": spec,
            "status": { "clusterId": cluster },
        });
        Arc::new(serde_json::from_value(object).unwrap())
    }

    #[test]
    fn only_others_that_are_about_the_same_cluster_and_can_be_read_claim_anything() {
        let spec = json!({ "cluster": { "bootstrapServers": ["kafka:9092"] }, "releaseVersion": "4.4" });
        let mut going = resource("going", Some("a"), spec.clone());
        let object = Arc::get_mut(&mut going).unwrap().0.as_mut().unwrap();
        object.metadata.deletion_timestamp = object.metadata.creation_timestamp.clone();
        let resources = [
            resource("own", Some("a"), spec.clone()),
            resource("other", Some("a"), spec.clone()),
            resource("elsewhere", Some("b"), spec.clone()),
            resource("fresh", None, spec),
            resource("broken", Some("a"), json!({ "cluster": 5 })),
            resource("empty", Some("a"), json!({ "cluster": {} })),
            resource("idle", Some("a"), json!({ "cluster": { "bootstrapServers": ["kafka:9092"] } })),
            going,
        ];
        let claims = of_others(&resources, Some("uid-own"), &ClusterId("a".into()));
        let owners: Vec<&str> = claims.iter().map(|claim| claim.owner.as_str()).collect();
        assert_eq!(owners, ["ns/other"]);
        assert_eq!((&claims[0].features, claims[0].seniority.uid.as_str()), (&Claimed::All, "uid-other"));
    }
}
