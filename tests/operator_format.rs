//! What the operator makes of an API server that does not let it format. No kubelet is needed for that: the test reports in
//! the place of the first init container.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "operator/stage.rs"]
mod stage;
mod testbed;

use std::time::Duration;

use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, ServiceAccount};
use k8s_openapi::api::rbac::v1::ClusterRole;
use kafka_features_operator::api::pods::{
    CLUSTER_LABEL, FORMAT_CONTAINER, GRANT, LOOK_CONTAINER, Report, Verdict,
};
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::json;
use stage::{ACCOUNT, Stage};

fn pods(stage: &Stage) -> Api<Pod> {
    Api::namespaced(stage.client(), "default")
}

/// A pod whose first init container has found a node with empty directories.
async fn add_pod(stage: &Stage, name: &str, report: &Report) {
    let container = |name: &str| json!({ "name": name, "image": "none" });
    let pod = json!({
        "metadata": { "name": name, "labels": { CLUSTER_LABEL: "kafka" } },
        "spec": {
            "automountServiceAccountToken": false,
            "initContainers": [container(LOOK_CONTAINER), container(FORMAT_CONTAINER)],
            "containers": [container("kafka")],
        },
    });
    pods(stage).create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    let ended = json!({ "exitCode": 0, "message": serde_json::to_string(report).unwrap() });
    let look = json!({
        "name": LOOK_CONTAINER, "image": "none", "imageID": "none", "ready": true, "restartCount": 0,
        "state": { "terminated": ended },
    });
    let status = json!({ "status": { "initContainerStatuses": [look] } });
    pods(stage).patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
}

async fn until<T>(what: &str, mut found: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..300 {
        if let Some(found) = found().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{what}: never");
}

async fn grant(stage: &Stage, pod: &str) -> Option<String> {
    pods(stage).get(pod).await.unwrap().metadata.annotations?.remove(GRANT)
}

/// Lets the operator do just this with ConfigMaps, and waits until the API server goes by it.
async fn allow(stage: &Stage, verbs: &[&str]) {
    let roles: Api<ClusterRole> = Api::all(stage.client());
    let mut role = roles.get(ACCOUNT).await.unwrap();
    let rules = role.rules.as_mut().unwrap();
    let of_maps = |rule: &&mut k8s_openapi::api::rbac::v1::PolicyRule| {
        rule.resources.as_ref().is_some_and(|resources| resources.iter().any(|name| name == "configmaps"))
    };
    rules.iter_mut().find(of_maps).unwrap().verbs = verbs.iter().map(|verb| (*verb).to_owned()).collect();
    roles.replace(ACCOUNT, &PostParams::default(), &role).await.unwrap();
    let question = json!({
        "metadata": {},
        "spec": {
            "user": format!("system:serviceaccount:{ACCOUNT}:{ACCOUNT}"),
            "resourceAttributes": { "namespace": "default", "verb": "create", "resource": "configmaps" },
        },
    });
    let question: SubjectAccessReview = serde_json::from_value(question).unwrap();
    let reviews: Api<SubjectAccessReview> = Api::all(stage.client());
    until("the rights are in force", async || {
        let answer = reviews.create(&PostParams::default(), &question).await.unwrap();
        (answer.status?.allowed == verbs.contains(&"create")).then_some(())
    })
    .await;
}

fn policies(stage: &Stage, kind: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", kind);
    let plural = format!("{}s", kind.kind.to_lowercase()).replace("policys", "policies");
    Api::all_with(stage.client(), &ApiResource::from_gvk_with_plural(&kind, &plural))
}

/// Has the API server refuse every change of a pod's metadata, and waits until it does so for this one.
async fn refuse_changes(stage: &Stage, pod: &str) {
    let rules = json!([{ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["pods"] }]);
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": { "name": "still" },
        "spec": {
            "matchConstraints": { "resourceRules": rules },
            "validations": [{ "expression": "false", "message": "pods stay as they are" }],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": { "name": "still" },
        "spec": { "policyName": "still", "validationActions": ["Deny"] },
    });
    for object in [policy, binding] {
        let api = policies(stage, object["kind"].as_str().unwrap());
        api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    }
    let mut count = 0;
    until("the policy is in force", async || {
        count += 1;
        let change = json!({ "metadata": { "annotations": { "count": count.to_string() } } });
        let params = PatchParams::default();
        pods(stage).patch(pod, &params, &Patch::Merge(&change)).await.is_err().then_some(())
    })
    .await;
}

/// The resource of a standalone cluster that can't be reached, and its one controller.
async fn begin(stage: &Stage) -> Report {
    let accounts: Api<ServiceAccount> = Api::namespaced(stage.client(), "default");
    let account = json!({ "metadata": { "name": "default" } });
    accounts.create(&PostParams::default(), &serde_json::from_value(account).unwrap()).await.unwrap();
    stage.apply("kafka", spec()).await;
    Report {
        verdict: Verdict::Unformatted,
        node_id: Some(0),
        broker: true,
        controller: true,
        ..Report::default()
    }
}

fn spec() -> serde_json::Value {
    json!({
        "cluster": { "bootstrapServers": ["127.0.0.1:1"] },
        "releaseVersion": "4.3",
        "format": {
            "quorum": "Standalone",
            "initialControllers": [{ "nodeId": 0, "host": "k-0", "port": 9093 }],
            "kafkaVersion": "4.4.0",
        },
    })
}

/// Whether the resource is stalled for this reason, and says all of these words.
fn failed(status: &stage::Status, reason: &str, words: &[&str]) -> bool {
    let message = status.message("FormatFailed");
    status.reason("FormatFailed") == reason
        && status.is("Stalled") == "True"
        && words.iter().all(|word| message.contains(word))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_api_server_refuses_is_shown_and_done_once_it_is_allowed() {
    let stage = Stage::set().await;
    allow(&stage, &["get"]).await;
    let report = begin(&stage).await;
    add_pod(&stage, "k-0", &report).await;
    let refused = |status: &stage::Status, words: &[&str]| failed(status, "ApiRefused", words);
    let status = stage
        .wait_until("kafka", |status| {
            refused(status, &["create the identity record", "configmaps", "rights", "quotas"])
        })
        .await;
    assert_eq!(status.0["pods"][0]["state"], "Waiting");
    stage.let_pass(3).await;
    assert_eq!(grant(&stage, "k-0").await, None, "nothing is granted that is not on record");
    let version = stage.version_of("kafka").await;
    stage.let_pass(3).await;
    assert_eq!(stage.version_of("kafka").await, version, "what is refused again is not told again");

    allow(&stage, &["get", "create", "update"]).await;
    let status = stage.wait_until("kafka", |status| status.0["pods"][0]["state"] == "Granted").await;
    assert_eq!(status.is("FormatFailed"), "absent");
    let first = until("k-0 has its grant", async || grant(&stage, "k-0").await).await;
    assert!(first.contains("\"part\":\"Voter\""), "{first}");

    // a pod that is there all the same is not taken for one that is gone
    refuse_changes(&stage, "k-0").await;
    add_pod(&stage, "k-1", &Report { node_id: Some(1), controller: false, ..report }).await;
    stage
        .wait_until("kafka", |status| refused(status, &["put an answer on a pod", "pods stay as they are"]))
        .await;
    assert_eq!(grant(&stage, "k-1").await, None);
    policies(&stage, "ValidatingAdmissionPolicyBinding")
        .delete("still", &DeleteParams::default())
        .await
        .unwrap();
    until("k-1 has its grant", async || grant(&stage, "k-1").await).await;
    stage.wait_until("kafka", |status| status.is("FormatFailed") == "absent").await;
    assert_eq!(grant(&stage, "k-0").await.as_deref(), Some(first.as_str()));
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_was_changed_by_hand_is_not_taken_for_another() {
    let stage = Stage::set().await;
    let report = begin(&stage).await;
    add_pod(&stage, "k-0", &report).await;
    let first = until("k-0 has its grant", async || grant(&stage, "k-0").await).await;
    let maps: Api<ConfigMap> = Api::namespaced(stage.client(), "default");
    let name = "kafka-kafka-identity";
    let map = maps.get(name).await.unwrap();
    let kept = map.data.clone().unwrap();
    for (key, text) in [("record.json", "{"), ("record.json", "{}"), ("clusterId", "another")] {
        let patch = Patch::Merge(json!({ "data": { key: text } }));
        maps.patch(name, &PatchParams::default(), &patch).await.unwrap();
        let pod = format!("after-{}", text.len());
        add_pod(&stage, &pod, &Report { node_id: Some(1), controller: false, ..report.clone() }).await;
        stage.wait_until("kafka", |status| failed(status, "IdentityRecordUnreadable", &[name])).await;
        stage.let_pass(2).await;
        assert_eq!(grant(&stage, &pod).await, None, "nothing is granted by {key}: {text}");
        assert_eq!(maps.get(name).await.unwrap().data.unwrap()[key], text, "it is left as it is");
        pods(&stage).delete(&pod, &DeleteParams::default().grace_period(0)).await.unwrap();
        let patch = Patch::Merge(json!({ "data": kept.clone() }));
        maps.patch(name, &PatchParams::default(), &patch).await.unwrap();
        stage.wait_until("kafka", |status| status.is("FormatFailed") == "absent").await;
    }
    assert_eq!(grant(&stage, "k-0").await, Some(first));
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_resources_for_one_cluster_the_older_one_formats() {
    let stage = Stage::set().await;
    stage.apply("older", spec()).await;
    // ages are told apart by the second
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let report = begin(&stage).await;
    add_pod(&stage, "k-0", &report).await;
    until("k-0 has its grant", async || grant(&stage, "k-0").await).await;
    let maps: Api<ConfigMap> = Api::namespaced(stage.client(), "default");
    let id = maps.get("kafka-kafka-identity").await.unwrap().data.unwrap()["clusterId"].clone();
    stage.remember("older", &id).await;
    add_pod(&stage, "k-1", &Report { node_id: Some(1), controller: false, ..report }).await;
    stage.wait_until("kafka", |status| failed(status, "FormatConflict", &["default/older"])).await;
    stage.let_pass(2).await;
    assert_eq!(grant(&stage, "k-1").await, None);
    stage.delete("older").await;
    until("k-1 has its grant", async || grant(&stage, "k-1").await).await;
    stage.end().await;
}
