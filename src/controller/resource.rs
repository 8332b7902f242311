//! A resource as the API server has it now, read part by part: a spec that can't be read does not hide the status, and
//! the other way round.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::{DynamicObject, ObjectMeta};
use kube::core::ApiResource;
use kube::{Resource as _, ResourceExt as _};

use crate::api::{self, KafkaFeatures, KafkaFeaturesSpec, KafkaFeaturesStatus, conditions};
use crate::features::decide::{Accepted, Remembered, Seniority, SoakState};
use crate::features::observed::{ClusterId, NodeId};
use crate::features::{FeatureName, Level};

/// One resource.
#[derive(Clone, Debug)]
pub(super) struct Resource {
    pub(super) metadata: ObjectMeta,
    /// The spec, or why it can't be read.
    pub(super) spec: Result<KafkaFeaturesSpec, String>,
    pub(super) status: KafkaFeaturesStatus,
    pub(super) reference: ObjectReference,
}

impl Resource {
    /// Reads a resource.
    pub(super) fn read(object: &DynamicObject) -> Self {
        let part = |name: &str| object.data.get(name).cloned().unwrap_or_default();
        Self {
            spec: serde_json::from_value(part("spec")).map_err(|error| error.to_string()),
            status: own(serde_json::from_value(part("status")).unwrap_or_default()),
            reference: object.object_ref(&ApiResource::erase::<KafkaFeatures>(&())),
            metadata: object.metadata.clone(),
        }
    }

    pub(super) fn remembered(&self) -> Remembered {
        let level = |level: i32| i16::try_from(level).ok().map(Level);
        let accepted = self.status.history.iter().filter_map(|change| {
            Some(Accepted {
                feature: FeatureName::new(change.feature.clone()).ok()?,
                from: level(change.from)?,
                to: level(change.to)?,
                at: change.time.0,
            })
        });
        Remembered {
            cluster_id: self.status.cluster_id.clone().map(ClusterId),
            accepted: accepted.collect(),
            soak: self.status.soak.as_ref().and_then(soak),
        }
    }
}

/// A soak as it was written; `None` if it wasn't written by us, which begins it anew.
fn soak(soak: &api::Soak) -> Option<SoakState> {
    let level = |(feature, level): (&String, &i32)| {
        Some((FeatureName::new(feature.clone()).ok()?, Level(i16::try_from(*level).ok()?)))
    };
    Some(SoakState {
        target: soak.target.iter().map(level).collect::<Option<_>>()?,
        since: soak.since.0,
        nodes: soak.nodes.iter().copied().map(NodeId).collect(),
    })
}

/// The part of a status that is ours to write: what others keep beside it must not look like a difference.
fn own(mut status: KafkaFeaturesStatus) -> KafkaFeaturesStatus {
    let place = |type_: &str| conditions::TYPES.iter().position(|own| *own == type_);
    status.conditions.retain(|condition| place(&condition.type_).is_some());
    // lists that are merged by key may come back in another order
    status.conditions.sort_by_key(|condition| place(&condition.type_));
    status.features.sort_by(|a, b| a.name.cmp(&b.name));
    status.pods.sort_by(|a, b| a.name.cmp(&b.name));
    status
}

/// An object's place among others. An object without a creation time, which no API server gives, is the youngest.
pub(super) fn seniority(metadata: &ObjectMeta) -> Seniority {
    let created = metadata.creation_timestamp.as_ref().map_or(jiff::Timestamp::MAX, |time| time.0);
    Seniority { created, uid: metadata.uid.clone().unwrap_or_default() }
}

/// An object's name for people.
pub(super) fn full_name<K: kube::Resource>(object: &K) -> String {
    match object.namespace() {
        Some(namespace) => format!("{namespace}/{}", object.name_any()),
        None => object.name_any(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_others_keep_in_a_status_is_not_ours_and_order_is_no_difference() {
        let condition = |type_: &str| {
            json!({
                "type": type_,
                "status": "True",
                "reason": "R",
                "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            })
        };
        let feature = |name: &str| json!({ "name": name, "finalized": 1, "state": "AtTarget" });
        let object = serde_json::from_value(json!({
            "apiVersion": "kafkafeatures.dev/v1alpha1",
            "kind": "KafkaFeatures",
            "metadata": { "name": "kafka" },
            "spec": 5,
            "status": {
                "conditions": [condition("Stalled"), condition("Foreign"), condition("Ready")],
                "features": [feature("b"), feature("a")],
                "clusterId": "cluster-a",
                "history": [
                    { "time": "2026-01-01T00:00:00Z", "feature": "group.version", "from": 0, "to": 1 },
                    { "time": "2026-01-01T00:00:00Z", "feature": "group.version", "from": 0, "to": 100_000 },
                ],
            },
        }))
        .unwrap();
        let resource = Resource::read(&object);
        assert!(resource.spec.is_err(), "and a spec that can't be read hides no status");
        let types: Vec<&str> = resource.status.conditions.iter().map(|c| c.type_.as_str()).collect();
        assert_eq!(types, ["Ready", "Stalled"]);
        assert_eq!(resource.status.features[0].name, "a");
        let remembered = resource.remembered();
        assert_eq!(remembered.cluster_id, Some(ClusterId("cluster-a".into())));
        let [accepted] = &remembered.accepted[..] else { panic!("{remembered:?}") };
        assert_eq!((accepted.from, accepted.to), (Level(0), Level(1)));
    }
}
