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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::api::QuorumKind;

    fn format(cluster_id_env: Option<&str>) -> Format {
        Format {
            quorum: QuorumKind::Static,
            initial_controllers: Vec::new(),
            kafka_version: None,
            cluster_id_env: cluster_id_env.map(str::to_owned),
        }
    }

    fn with(image: &str, annotations: &Value, statuses: &Value) -> grants::Pod {
        let pod = json!({
            "metadata": { "name": "k-0", "uid": "one", "annotations": annotations },
            "spec": {
                "initContainers": [{ "name": LOOK_CONTAINER }, { "name": FORMAT_CONTAINER }],
                "containers": [{ "name": "kafka", "image": image }, { "name": "other", "image": "other:3.9.0" }],
            },
            "status": { "initContainerStatuses": statuses },
        });
        read(&serde_json::from_value(pod).unwrap(), &format(None), "kafka")
    }

    #[test]
    fn the_version_is_the_annotation_or_the_tag_and_never_two() {
        let version = |image: &str, annotations: Value| with(image, &annotations, &json!([])).kafka_version;
        let none = || json!({});
        let digest = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
        for (image, expected) in [
            ("kafka:4.4.0", Some("4.4.0")),
            ("registry.example:5000/kafka:4.3.1", Some("4.3.1")),
            ("registry.example:5000/kafka", None),
            ("kafka", None),
            ("kafka:latest", None),
            (&format!("kafka:4.4.0{digest}"), Some("4.4.0")),
            (&format!("kafka{digest}"), None),
            ("kafka:", None),
            ("", None),
        ] {
            assert_eq!(version(image, none()), expected.map(|text| Ok(text.to_owned())), "{image}");
        }
        let says = |text: &str| json!({ KAFKA_VERSION: text });
        assert_eq!(version("kafka:latest", says(" 4.3.1 ")), Some(Ok("4.3.1".into())));
        assert_eq!(version("kafka:4.4.0", says("")), Some(Ok("4.4.0".into())));
        assert_eq!(version("kafka:4.4.0", says("4.4.0")), Some(Ok("4.4.0".into())));
        let message = version("kafka:4.4.0", says("4.3.1")).unwrap().unwrap_err();
        assert!(message.contains("\"4.3.1\"") && message.contains("\"4.4.0\""), "{message}");
        // what is no version is told as that, whatever the tag is
        assert_eq!(version("kafka:4.4.0", says("four")), Some(Ok("four".into())));
        // another container than the first one is Kafka's
        assert_eq!(version("kafka:4.4.0", json!({ CONTAINER: "other" })), Some(Ok("3.9.0".into())));
        assert_eq!(version("kafka:4.4.0", json!({ CONTAINER: "none" })), None);
    }

    #[test]
    fn what_the_kubelet_says_of_a_container_is_a_report() {
        let status = |name: &str, state: Value, last: Value| {
            json!({
                "name": name, "image": "i", "imageID": "i", "ready": false, "restartCount": 0, "state": state,
                "lastState": last,
            })
        };
        let look = |state: Value, last: Value| {
            with("kafka:4.4.0", &json!({}), &json!([status(LOOK_CONTAINER, state, last)])).look
        };
        let ended = |message: &str| json!({ "terminated": { "exitCode": 137, "reason": "OOMKilled", "message": message } });
        let report = look(ended(r#"{"verdict":"Unformatted","nodeId":3}"#), json!({})).unwrap();
        assert_eq!((report.verdict, report.node_id), (Verdict::Unformatted, Some(3)));
        // it runs again: what it said the last time counts until it says something else
        let again = look(json!({ "running": {} }), ended(r#"{"verdict":"Failed","reason":"X"}"#)).unwrap();
        assert_eq!(again.reason.as_deref(), Some("X"));
        for message in ["", "killed", "{}"] {
            let silent = look(ended(message), json!({})).unwrap();
            assert_eq!((silent.verdict, silent.reason.as_deref()), (Verdict::Failed, Some("NoReport")));
            let said = silent.message.unwrap();
            assert!(said.contains("exit status 137") && said.contains("OOMKilled"), "{said}");
        }
        let waits =
            |reason: &str| json!({ "waiting": { "reason": reason, "message": "it can't be pulled" } });
        let trouble = look(waits("ImagePullBackOff"), json!({})).unwrap();
        assert_eq!(trouble.reason.as_deref(), Some("NotStarted"));
        let said = trouble.message.unwrap();
        assert!(said.contains("ImagePullBackOff") && said.contains("it can't be pulled"), "{said}");
        assert_eq!(look(waits("PodInitializing"), json!({})), None);
        assert_eq!(look(json!({ "running": {} }), json!({})), None);
    }

    #[test]
    fn the_id_that_an_image_is_given_is_known_from_its_manifest() {
        let given = |env: Value| {
            let container: Container =
                serde_json::from_value(json!({ "name": "kafka", "env": env })).unwrap();
            given_id(&format(Some("CLUSTER_ID")), Some(&container), "kafka")
        };
        let from = |map: &str| json!({ "configMapKeyRef": { "name": map, "key": IDENTITY_CLUSTER_ID, "optional": true } });
        let record = from("kafka-kafka-identity");
        assert_eq!(given(json!([{ "name": "CLUSTER_ID", "valueFrom": record }])), GivenId::FromRecord);
        assert_eq!(given(json!([{ "name": "CLUSTER_ID", "value": "x" }])), GivenId::Value("x".into()));
        // of one name twice the last counts, as kubelets have it
        let twice = json!([{ "name": "CLUSTER_ID", "value": "x" }, { "name": "CLUSTER_ID", "value": "y" }]);
        assert_eq!(given(twice), GivenId::Value("y".into()));
        for env in [
            json!([]),
            json!([{ "name": "OTHER", "value": "x" }]),
            json!([{ "name": "CLUSTER_ID" }]),
            json!([{ "name": "CLUSTER_ID", "value": "" }]),
            json!([{ "name": "CLUSTER_ID", "valueFrom": from("another-kafka-identity") }]),
            json!([{ "name": "CLUSTER_ID", "valueFrom": { "fieldRef": { "fieldPath": "metadata.uid" } } }]),
        ] {
            assert_eq!(given(env.clone()), GivenId::Missing, "{env}");
        }
        assert_eq!(given_id(&format(None), None, "kafka"), GivenId::NotAsked);
        assert_eq!(given_id(&format(Some("CLUSTER_ID")), None, "kafka"), GivenId::Missing);
    }
}
