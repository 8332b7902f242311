//! One question of the API server, and its answer: a patch that adds what is missing and touches nothing else.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::{Pod, PodSpec};
use serde::Serialize;
use serde_json::{Value, json};

use crate::injection::{Settings, inject};

/// Answers an `AdmissionReview`.
///
/// # Errors
/// If it is none, or not about a pod.
pub(super) fn answer(review: &[u8], settings: &Settings) -> Result<Value, String> {
    let review: Value =
        serde_json::from_slice(review).map_err(|error| format!("no AdmissionReview: {error}"))?;
    let request = &review["request"];
    let uid = request["uid"].as_str().ok_or("no AdmissionReview: request.uid is missing")?;
    let kind = request["kind"]["kind"].as_str().unwrap_or_default();
    if kind != "Pod" {
        return Err(format!("the review is about a {kind:?}, and only pods are changed here"));
    }
    let pod: Pod = serde_json::from_value(request["object"].clone())
        .map_err(|error| format!("the review's pod can't be read: {error}"))?;
    let response = match inject(&pod, settings) {
        Ok(injected) => {
            let patch = patch(pod.spec.as_ref(), injected.spec.as_ref());
            let mut response = json!({ "uid": uid, "allowed": true });
            if !patch.is_empty() {
                response["patchType"] = json!("JSONPatch");
                response["patch"] = json!(STANDARD.encode(Value::from(patch).to_string()));
            }
            response
        }
        Err(error) => json!({
            "uid": uid,
            "allowed": false,
            "status": { "code": 422, "reason": "Invalid", "message": error.to_string() },
        }),
    };
    Ok(json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response }))
}

/// The patch from one spec to the other. Lists have only grown at their ends.
fn patch(before: Option<&PodSpec>, after: Option<&PodSpec>) -> Vec<Value> {
    let (Some(before), Some(after)) = (before, after) else { return Vec::new() };
    let mut patch = Vec::new();
    added(
        &mut patch,
        "/spec/initContainers",
        before.init_containers.as_deref(),
        after.init_containers.as_deref(),
    );
    added(&mut patch, "/spec/volumes", before.volumes.as_deref(), after.volumes.as_deref());
    for (at, (before, after)) in before.containers.iter().zip(&after.containers).enumerate() {
        let path = format!("/spec/containers/{at}/env");
        added(&mut patch, &path, before.env.as_deref(), after.env.as_deref());
    }
    patch
}

fn added<T: Serialize>(patch: &mut Vec<Value>, path: &str, before: Option<&[T]>, after: Option<&[T]>) {
    let new = after.unwrap_or_default().get(before.map_or(0, <[T]>::len)..).unwrap_or_default();
    if new.is_empty() {
        return;
    }
    if before.is_none_or(<[T]>::is_empty) {
        patch.push(json!({ "op": "add", "path": path, "value": new }));
        return;
    }
    patch.extend(new.iter().map(|item| json!({ "op": "add", "path": format!("{path}/-"), "value": item })));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings { image: "operator:1".into(), pull_policy: "Never".into() }
    }

    fn review(pod: &Value) -> Vec<u8> {
        json!({ "request": { "uid": "u", "kind": { "kind": "Pod" }, "object": pod } })
            .to_string()
            .into_bytes()
    }

    fn pod(label: bool, annotations: &Value) -> Value {
        let labels = if label { json!({ "kafkafeatures.dev/cluster": "kafka" }) } else { json!({}) };
        json!({
            "metadata": { "labels": labels, "annotations": annotations },
            "spec": { "containers": [{ "name": "kafka" }], "volumes": [{ "name": "v", "emptyDir": {} }] },
        })
    }

    fn patch_of(answer: &Value) -> Vec<Value> {
        let text = answer["response"]["patch"].as_str().unwrap_or("W10=");
        serde_json::from_slice(&STANDARD.decode(text).unwrap()).unwrap()
    }

    #[test]
    fn only_what_is_missing_is_added() {
        let answered = answer(&review(&pod(true, &json!({}))), &settings()).unwrap();
        assert_eq!(
            (answered["response"]["uid"].as_str(), &answered["response"]["allowed"]),
            (Some("u"), &json!(true))
        );
        let paths: Vec<String> =
            patch_of(&answered).iter().map(|op| op["path"].as_str().unwrap().to_owned()).collect();
        assert_eq!(paths, ["/spec/initContainers", "/spec/volumes/-"]);
        let answered = answer(&review(&pod(false, &json!({}))), &settings()).unwrap();
        assert_eq!((patch_of(&answered).len(), &answered["response"]["allowed"]), (0, &json!(true)));
    }

    #[test]
    fn what_can_not_be_is_denied_and_what_is_no_review_refused() {
        let wrong = pod(true, &json!({ "kafkafeatures.dev/container": "missing" }));
        let answered = answer(&review(&wrong), &settings()).unwrap();
        assert_eq!(answered["response"]["allowed"], false);
        assert!(answered["response"]["status"]["message"].as_str().unwrap().contains("\"missing\""));
        for garbage in ["", "[]", "{}", "null", r#"{"request": {"uid": "u", "kind": {"kind": "Secret"}}}"#] {
            assert!(answer(garbage.as_bytes(), &settings()).is_err(), "{garbage}");
        }
        let no_pod = json!({ "request": { "uid": "u", "kind": { "kind": "Pod" }, "object": [] } });
        assert!(answer(no_pod.to_string().as_bytes(), &settings()).is_err());
    }
}
