//! The two init containers, as they are where nothing of Kafka's container is in them yet, and with it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Capabilities, Container, EnvVar, EnvVarSource, ObjectFieldSelector, ResourceRequirements, SeccompProfile,
    SecurityContext, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::{Settings, cluster_id_variable};
use crate::api::pods::{
    CLUSTER_ID_VARIABLE, FORMAT_CONTAINER, GRANT_FOLDER, GRANT_VOLUME, LOOK_CONTAINER, NODE_ID, NODE_ID_ENV,
    POD_NAME_ENV, POD_UID_ENV, PROPERTIES, PROPERTIES_ENV, SCRAM_FOLDER, SCRAM_VOLUME,
};

/// Where a pod's token is mounted, which the containers have no use for.
pub(super) const TOKEN_FOLDER: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The containers with the mounts, the environment and the user of Kafka's, in the order in which they run.
pub(super) fn both(
    kafka: &Container,
    root_pod: bool,
    scram: bool,
    record: &str,
    settings: &Settings,
) -> [Container; 2] {
    let own = kafka.security_context.clone().unwrap_or_default();
    let mounts = kafka.volume_mounts.iter().flatten().filter(|mount| mount.mount_path != TOKEN_FOLDER);
    bare(record, settings).map(|mut container| {
        container.env.get_or_insert_default().extend(kafka.env.iter().flatten().cloned());
        container.env_from.clone_from(&kafka.env_from);
        let all = container.volume_mounts.get_or_insert_default();
        all.extend(mounts.clone().cloned());
        if scram && container.name == FORMAT_CONTAINER {
            all.push(scram_mount());
        }
        if let Some(context) = &mut container.security_context {
            context.run_as_user = own.run_as_user;
            context.run_as_group = own.run_as_group;
            let root = own.run_as_user == Some(0) || (own.run_as_user.is_none() && root_pod);
            context.run_as_non_root = Some(!root);
        }
        container
    })
}

/// The containers without what they take from Kafka's, `record` being the name of the identity record.
pub(super) fn bare(record: &str, settings: &Settings) -> [Container; 2] {
    let grant = VolumeMount {
        name: GRANT_VOLUME.to_owned(),
        mount_path: GRANT_FOLDER.to_owned(),
        read_only: Some(true),
        ..VolumeMount::default()
    };
    [(LOOK_CONTAINER, "look", None), (FORMAT_CONTAINER, "format", Some(grant))].map(|(name, what, mount)| {
        Container {
            name: name.to_owned(),
            image: Some(settings.image.clone()),
            image_pull_policy: Some(settings.pull_policy.clone()),
            command: Some(vec!["/kafka-storage".to_owned()]),
            args: Some(vec!["pod".to_owned(), what.to_owned()]),
            env: Some(variables(record)),
            volume_mounts: mount.map(|mount| vec![mount]),
            security_context: Some(SecurityContext {
                allow_privilege_escalation: Some(false),
                capabilities: Some(Capabilities {
                    drop: Some(vec!["ALL".to_owned()]),
                    ..Capabilities::default()
                }),
                read_only_root_filesystem: Some(true),
                seccomp_profile: Some(SeccompProfile {
                    type_: "RuntimeDefault".to_owned(),
                    ..SeccompProfile::default()
                }),
                ..SecurityContext::default()
            }),
            resources: Some(ResourceRequirements {
                requests: Some(quantities(&[("cpu", "10m"), ("memory", "16Mi")])),
                limits: Some(quantities(&[("memory", "64Mi")])),
                ..ResourceRequirements::default()
            }),
            termination_message_path: Some("/dev/termination-log".to_owned()),
            termination_message_policy: Some("File".to_owned()),
            ..Container::default()
        }
    })
}

pub(super) fn scram_mount() -> VolumeMount {
    VolumeMount {
        name: SCRAM_VOLUME.to_owned(),
        mount_path: SCRAM_FOLDER.to_owned(),
        read_only: Some(true),
        ..VolumeMount::default()
    }
}

fn quantities(of: &[(&str, &str)]) -> BTreeMap<String, Quantity> {
    of.iter().map(|(name, amount)| ((*name).to_owned(), Quantity((*amount).to_owned()))).collect()
}

/// What the containers are told of their pod.
fn variables(record: &str) -> Vec<EnvVar> {
    let annotation = |name: &str| format!("metadata.annotations['{name}']");
    let fields = [
        (POD_NAME_ENV, "metadata.name".to_owned()),
        (POD_UID_ENV, "metadata.uid".to_owned()),
        (PROPERTIES_ENV, annotation(PROPERTIES)),
        (NODE_ID_ENV, annotation(NODE_ID)),
    ];
    let variable = |(name, field_path): (&str, String)| {
        let field = ObjectFieldSelector { field_path, ..ObjectFieldSelector::default() };
        EnvVar {
            name: name.to_owned(),
            value_from: Some(EnvVarSource { field_ref: Some(field), ..EnvVarSource::default() }),
            ..EnvVar::default()
        }
    };
    let mut all: Vec<EnvVar> = fields.map(variable).into();
    let mut cluster_id = cluster_id_variable(CLUSTER_ID_VARIABLE, record);
    if let Some(key) = cluster_id.value_from.as_mut().and_then(|from| from.config_map_key_ref.as_mut()) {
        // a cluster that is new has no record yet
        key.optional = Some(true);
    }
    all.push(cluster_id);
    all
}
