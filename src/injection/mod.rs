//! What is added to a pod that opts in by its label, from one description: by a policy that the API server applies itself, by
//! a webhook, or in a manifest. All three give the same pod.
//!
//! Nothing that is added depends on a cluster's state, nor on whether the resource exists yet.

mod container;
pub mod manifest;
mod policy;
pub mod webhook;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    ConfigMapKeySelector, Container, DownwardAPIVolumeFile, DownwardAPIVolumeSource, EnvVar, EnvVarSource,
    ObjectFieldSelector, Pod, PodSpec, SecretVolumeSource, Volume,
};
use kube::ResourceExt as _;

use crate::api::pods::{
    CLUSTER_ID_ENV, CLUSTER_LABEL, CONTAINER, FORMAT_CONTAINER, GRANT, GRANT_FILE, GRANT_VOLUME,
    IDENTITY_CLUSTER_ID, SCRAM_SECRET, SCRAM_VOLUME, identity_name,
};

pub use policy::policy_yaml;

/// What differs between installations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The operator's image, which has the tool in it.
    pub image: String,
    /// When the kubelet pulls it.
    pub pull_policy: String,
}

/// Why nothing can be added to a pod.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotInjectable {
    /// The annotation names a container that the pod does not have.
    #[error(
        "the pod has no container {name:?}, which its annotation {CONTAINER} names; it has {found}: correct the annotation"
    )]
    NoSuchContainer {
        /// The container that is named.
        name: String,
        /// Those that there are.
        found: String,
    },
    /// The pod has no containers at all.
    #[error("the pod has no containers")]
    NoContainers,
}

/// The pod with what is added; as it is where it has no label, or has everything already.
///
/// # Errors
/// If Kafka's container can't be told.
pub fn inject(pod: &Pod, settings: &Settings) -> Result<Pod, NotInjectable> {
    let mut pod = pod.clone();
    let resource = pod.labels().get(CLUSTER_LABEL).filter(|resource| !resource.is_empty());
    if let (Some(resource), Some(spec)) = (resource, &pod.spec) {
        pod.spec = Some(inject_spec(spec.clone(), pod.annotations(), resource, settings)?);
    }
    Ok(pod)
}

/// The same for what a pod is made from.
///
/// # Errors
/// If Kafka's container can't be told.
pub(crate) fn inject_spec(
    mut spec: PodSpec,
    annotations: &BTreeMap<String, String>,
    resource: &str,
    settings: &Settings,
) -> Result<PodSpec, NotInjectable> {
    let inits = spec.init_containers.get_or_insert_default();
    if inits.iter().any(|container| container.name == FORMAT_CONTAINER) {
        return Ok(spec);
    }
    let annotation = |name: &str| annotations.get(name).filter(|value| !value.is_empty());
    let at = kafka(&spec.containers, annotation(CONTAINER))?;
    let root_pod = spec.security_context.as_ref().and_then(|context| context.run_as_user) == Some(0);
    let scram = annotation(SCRAM_SECRET);
    if let Some(kafka) = spec.containers.get_mut(at) {
        let record = identity_name(resource);
        inits.extend(container::both(kafka, root_pod, scram.is_some(), &record, settings));
        give_cluster_id(kafka, annotation(CLUSTER_ID_ENV), resource);
    }
    let volumes = spec.volumes.get_or_insert_default();
    volumes.push(grant_volume());
    volumes.extend(scram.map(|secret| scram_volume(secret)));
    Ok(spec)
}

/// Kafka's container, by its place.
fn kafka(containers: &[Container], named: Option<&String>) -> Result<usize, NotInjectable> {
    let Some(name) = named else {
        return if containers.is_empty() { Err(NotInjectable::NoContainers) } else { Ok(0) };
    };
    containers.iter().position(|container| container.name == *name).ok_or_else(|| {
        let found: Vec<&str> = containers.iter().map(|container| container.name.as_str()).collect();
        NotInjectable::NoSuchContainer { name: name.clone(), found: found.join(", ") }
    })
}

/// Has Kafka's container told the cluster's id from the identity record, where its manifest does not tell it already.
fn give_cluster_id(kafka: &mut Container, variable: Option<&String>, resource: &str) {
    let Some(variable) = variable else { return };
    let variables = kafka.env.get_or_insert_default();
    if variables.iter().all(|env| env.name != *variable) {
        variables.push(cluster_id_variable(variable, &identity_name(resource)));
    }
}

fn cluster_id_variable(name: &str, record: &str) -> EnvVar {
    let key = ConfigMapKeySelector {
        name: record.to_owned(),
        key: IDENTITY_CLUSTER_ID.to_owned(),
        ..ConfigMapKeySelector::default()
    };
    EnvVar {
        name: name.to_owned(),
        value_from: Some(EnvVarSource { config_map_key_ref: Some(key), ..EnvVarSource::default() }),
        ..EnvVar::default()
    }
}

/// The volume that shows the grant: empty until the operator has put one on the pod.
fn grant_volume() -> Volume {
    let file = DownwardAPIVolumeFile {
        path: GRANT_FILE.to_owned(),
        field_ref: Some(ObjectFieldSelector {
            field_path: format!("metadata.annotations['{GRANT}']"),
            ..ObjectFieldSelector::default()
        }),
        ..DownwardAPIVolumeFile::default()
    };
    Volume {
        name: GRANT_VOLUME.to_owned(),
        downward_api: Some(DownwardAPIVolumeSource {
            items: Some(vec![file]),
            ..DownwardAPIVolumeSource::default()
        }),
        ..Volume::default()
    }
}

fn scram_volume(secret: &str) -> Volume {
    Volume {
        name: SCRAM_VOLUME.to_owned(),
        secret: Some(SecretVolumeSource {
            secret_name: Some(secret.to_owned()),
            ..SecretVolumeSource::default()
        }),
        ..Volume::default()
    }
}
