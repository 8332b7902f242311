//! Pods as the API server has them, read into what formatting depends on.

use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateTerminated, ContainerStatus, EnvVar, Pod,
};
use kube::ResourceExt as _;

use crate::api::Format;
use crate::api::pods::{
    Answer, CONTAINER, FORMAT_CONTAINER, GRANT, IDENTITY_CLUSTER_ID, KAFKA_VERSION, LOOK_CONTAINER, Report,
    Verdict, identity_name,
};
use crate::grants::{self, GivenId};
use crate::storage::software::Software;

/// Reads a pod.
pub(super) fn read(pod: &Pod, format: &Format, resource: &str) -> grants::Pod {
    let spec = pod.spec.as_ref();
    let containers = spec.map(|spec| spec.containers.as_slice()).unwrap_or_default();
    let inits = spec.and_then(|spec| spec.init_containers.as_deref()).unwrap_or_default();
    let named = pod.annotations().get(CONTAINER);
    let kafka = match named {
        Some(name) => containers.iter().find(|container| container.name == *name),
        None => containers.first(),
    };
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let over = ["Failed", "Succeeded"].map(Some).contains(&phase);
    let mut look = report(pod, LOOK_CONTAINER);
    let formatted = report(pod, FORMAT_CONTAINER);
    if let (None, None, Some(trouble)) = (&look, &formatted, trouble(pod)) {
        look = Some(failed("NotStarted", &trouble));
    }
    let answer = pod.annotations().get(GRANT).and_then(|text| serde_json::from_str::<Answer>(text).ok());
    let (grant, denied) = match answer {
        Some(Answer::Granted(grant)) => (Some(*grant), None),
        Some(Answer::Denied(denial)) => (None, Some(denial)),
        None => (None, None),
    };
    grants::Pod {
        name: pod.name_any(),
        uid: pod.uid().unwrap_or_default(),
        going: pod.metadata.deletion_timestamp.is_some() || over,
        injected: inits.iter().any(|container| container.name == FORMAT_CONTAINER),
        kafka_version: version(pod, kafka),
        given_id: given_id(format, kafka, resource),
        look,
        format: formatted,
        grant,
        denied,
    }
}

/// What a container reported when it ended last.
fn report(pod: &Pod, container: &str) -> Option<Report> {
    let ended = ended(init_status(pod, container)?)?;
    let text = ended.message.as_deref().unwrap_or_default();
    match serde_json::from_str(text) {
        Ok(report) => Some(report),
        Err(_) => {
            let why = ended.reason.as_deref().unwrap_or("no reason is given");
            let message =
                format!("{container} ended with exit status {} and no report: {why}", ended.exit_code);
            Some(failed("NoReport", &message))
        }
    }
}

fn init_status<'a>(pod: &'a Pod, container: &str) -> Option<&'a ContainerStatus> {
    let statuses = pod.status.as_ref()?.init_container_statuses.as_ref()?;
    statuses.iter().find(|status| status.name == container)
}

fn ended(status: &ContainerStatus) -> Option<&ContainerStateTerminated> {
    fn of(state: Option<&ContainerState>) -> Option<&ContainerStateTerminated> {
        state?.terminated.as_ref()
    }
    of(status.state.as_ref()).or_else(|| of(status.last_state.as_ref()))
}

/// Why the first container can't start, where the kubelet says so.
fn trouble(pod: &Pod) -> Option<String> {
    let waiting = init_status(pod, LOOK_CONTAINER)?.state.as_ref()?.waiting.as_ref()?;
    let reason = waiting.reason.as_deref()?;
    if ["PodInitializing", "ContainerCreating"].contains(&reason) {
        return None;
    }
    let message = waiting.message.as_deref().unwrap_or_default();
    Some(format!("{LOOK_CONTAINER} does not start: {reason}: {message}"))
}

fn failed(reason: &str, message: &str) -> Report {
    Report {
        verdict: Verdict::Failed,
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        ..Report::default()
    }
}

/// The version of Kafka that a pod says it has: by its annotation, or by its image's tag.
fn version(pod: &Pod, kafka: Option<&Container>) -> Option<Result<String, String>> {
    let annotated = pod.annotations().get(KAFKA_VERSION).map(|text| text.trim().to_owned());
    let annotated = annotated.filter(|text| !text.is_empty());
    let tag = kafka.and_then(|container| container.image.as_deref()).and_then(tag);
    let tagged = tag.and_then(|tag| Some((tag, Software::of(tag).ok()?)));
    match (annotated, tagged) {
        (Some(text), Some((tag, software))) => match Software::of(&text) {
            Ok(said) if said != software => Some(Err(format!(
                "annotation {KAFKA_VERSION} is {text:?}, and its image is tagged {tag:?}: correct the annotation, or leave \
                 it out"
            ))),
            _ => Some(Ok(text)),
        },
        (Some(text), None) => Some(Ok(text)),
        (None, Some((tag, _))) => Some(Ok(tag.to_owned())),
        (None, None) => None,
    }
}

/// The tag of an image's name.
fn tag(image: &str) -> Option<&str> {
    let name = image.split('@').next()?;
    let (_, tag) = name.rsplit_once(':')?;
    (!tag.contains('/')).then_some(tag)
}

/// What Kafka's image will be given in the variable that it takes the cluster's id from.
fn given_id(format: &Format, kafka: Option<&Container>, resource: &str) -> GivenId {
    let Some(variable) = &format.cluster_id_env else { return GivenId::NotAsked };
    let variables = kafka.and_then(|container| container.env.as_deref()).unwrap_or_default();
    // the last of one name counts
    let Some(given) = variables.iter().rev().find(|env| env.name == *variable) else {
        return GivenId::Missing;
    };
    match given {
        EnvVar { value: Some(value), .. } if !value.is_empty() => GivenId::Value(value.clone()),
        EnvVar { value_from: Some(from), .. } => {
            let key = from.config_map_key_ref.as_ref();
            let ours =
                key.is_some_and(|key| key.name == identity_name(resource) && key.key == IDENTITY_CLUSTER_ID);
            if ours { GivenId::FromRecord } else { GivenId::Missing }
        }
        _ => GivenId::Missing,
    }
}
