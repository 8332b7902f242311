//! A resource as the API server has it now, read part by part: a spec that can't be read does not hide the status, and
//! the other way round.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::{DynamicObject, ObjectMeta};
use kube::core::ApiResource;
use kube::{Resource as _, ResourceExt as _};

use crate::api::{KafkaFeatures, KafkaFeaturesSpec, KafkaFeaturesStatus};
use crate::features::decide::{Remembered, Seniority};
use crate::features::observed::ClusterId;

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
            status: serde_json::from_value(part("status")).unwrap_or_default(),
            reference: object.object_ref(&ApiResource::erase::<KafkaFeatures>(&())),
            metadata: object.metadata.clone(),
        }
    }

    pub(super) fn remembered(&self) -> Remembered {
        Remembered { cluster_id: self.status.cluster_id.clone().map(ClusterId), soak: None }
    }
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
