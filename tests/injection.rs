//! The forms of injection, on a real API server: each gives the same pod, and none touches a pod without the label.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod testbed;

use std::process::{Command, Stdio};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kafka_features_operator::injection::{Settings, inject, policy_yaml};
use kube::Client;
use kube::api::{Api, ListParams, PostParams};
use serde_json::{Value, json};
use testbed::ApiServer;

fn settings() -> Settings {
    Settings { image: "localhost/operator:1".into(), pull_policy: "Never".into() }
}

fn pod(name: &str, annotations: &Value, spec: Value) -> Pod {
    let labels =
        if name.starts_with("plain") { json!({}) } else { json!({ "kafkafeatures.dev/cluster": "kafka" }) };
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name, "labels": labels, "annotations": annotations },
        "spec": spec,
    });
    serde_json::from_value(pod).unwrap()
}

/// Pods of many shapes.
fn shapes() -> Vec<Pod> {
    let kafka = |more: Value| {
        let mut container = json!({ "name": "kafka", "image": "localhost/kafka:4.4.0" });
        container.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        container
    };
    let side = json!({ "name": "side", "image": "localhost/side:1" });
    let mounts = json!([
        { "name": "data", "mountPath": "/data", "subPath": "kraft" },
        { "name": "config", "mountPath": "/config", "readOnly": true },
    ]);
    let volumes =
        json!([{ "name": "data", "emptyDir": {} }, { "name": "config", "configMap": { "name": "c" } }]);
    let env = json!([
        { "name": "KAFKA_NODE_ID", "valueFrom": { "fieldRef": { "fieldPath": "metadata.labels['pod-index']" } } },
        { "name": "KAFKA_QUOTED", "value": "it's \\ \"so\"" },
        { "name": "KAFKA_SECRET", "valueFrom": { "secretKeyRef": { "name": "s", "key": "k" } } },
    ]);
    vec![
        pod("bare", &json!({}), json!({ "containers": [kafka(json!({}))] })),
        pod(
            "no-token",
            &json!({}),
            json!({ "automountServiceAccountToken": false, "containers": [kafka(json!({}))] }),
        ),
        pod(
            "whole",
            &json!({ "kafkafeatures.dev/properties": "/config/server.properties", "kafkafeatures.dev/node-id": "ordinal" }),
            json!({
                "initContainers": [{ "name": "own", "image": "localhost/own:1" }],
                "containers": [kafka(json!({
                    "env": env,
                    "envFrom": [{ "configMapRef": { "name": "more" } }],
                    "volumeMounts": mounts,
                    "securityContext": { "runAsUser": 1000, "runAsGroup": 2000 },
                }))],
                "volumes": volumes,
            }),
        ),
        pod(
            "second",
            &json!({ "kafkafeatures.dev/container": "kafka", "kafkafeatures.dev/scram-secret": "users" }),
            json!({ "containers": [side, kafka(json!({ "volumeMounts": mounts }))], "volumes": volumes }),
        ),
        pod(
            "told",
            &json!({ "kafkafeatures.dev/cluster-id-env": "CLUSTER_ID" }),
            json!({ "containers": [kafka(json!({}))] }),
        ),
        pod(
            "told-with-others",
            &json!({ "kafkafeatures.dev/cluster-id-env": "CLUSTER_ID" }),
            json!({ "containers": [kafka(json!({ "env": env }))] }),
        ),
        pod(
            "told-already",
            &json!({ "kafkafeatures.dev/cluster-id-env": "CLUSTER_ID" }),
            json!({ "containers": [kafka(json!({ "env": [{ "name": "CLUSTER_ID", "value": "x" }] }))] }),
        ),
        pod(
            "root",
            &json!({}),
            json!({ "securityContext": { "runAsUser": 0 }, "containers": [kafka(json!({}))] }),
        ),
        pod(
            "root-but-not-kafka",
            &json!({}),
            json!({
                "securityContext": { "runAsUser": 0 },
                "containers": [kafka(json!({ "securityContext": { "runAsUser": 7 } }))],
            }),
        ),
        pod(
            "empty-annotations",
            &json!({
                "kafkafeatures.dev/container": "",
                "kafkafeatures.dev/scram-secret": "",
                "kafkafeatures.dev/cluster-id-env": "",
            }),
            json!({ "containers": [kafka(json!({ "env": [], "volumeMounts": [] }))] }),
        ),
        pod("plain", &json!({}), json!({ "containers": [kafka(json!({}))] })),
    ]
}

async fn set() -> (ApiServer, Client) {
    let server = ApiServer::start().await;
    let client = server.client().await;
    let accounts: Api<k8s_openapi::api::core::v1::ServiceAccount> =
        Api::namespaced(client.clone(), "default");
    let account = serde_json::from_value(json!({ "metadata": { "name": "default" } })).unwrap();
    accounts.create(&PostParams::default(), &account).await.unwrap();
    (server, client)
}

fn apply(server: &ApiServer, text: &str) {
    let mut kubectl = server.kubectl();
    kubectl.args(["apply", "--validate=strict", "-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = kubectl.stderr(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let warned = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(warned, "", "the API server warns of nothing");
}

/// What the API server would store; the pod's own mounts of a token, which have random names, are left out.
async fn stored(client: &Client, pod: &Pod) -> Result<Value, String> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    let params = PostParams { dry_run: true, ..PostParams::default() };
    let created = pods.create(&params, pod).await.map_err(|error| error.to_string())?;
    let mut spec = serde_json::to_value(created.spec.unwrap()).unwrap();
    for list in ["containers", "initContainers"] {
        for container in spec[list].as_array_mut().into_iter().flatten() {
            if let Some(mounts) = container["volumeMounts"].as_array_mut() {
                mounts.retain(|mount| mount["mountPath"] != "/var/run/secrets/kubernetes.io/serviceaccount");
            }
        }
    }
    if let Some(volumes) = spec["volumes"].as_array_mut() {
        volumes.retain(|volume| !volume["name"].as_str().unwrap().starts_with("kube-api-access-"));
        volumes.sort_by_key(|volume| volume["name"].as_str().unwrap().to_owned());
    }
    without_empty(&mut spec);
    Ok(spec)
}

/// Lists that are empty are as good as none.
fn without_empty(value: &mut Value) {
    if let Value::Object(fields) = value {
        fields.retain(|_, field| *field != json!([]));
        fields.values_mut().for_each(without_empty);
    }
    if let Value::Array(items) = value {
        items.iter_mut().for_each(without_empty);
    }
}

/// Waits until labelled pods are changed, or refused.
async fn until_active(client: &Client) {
    for _ in 0..200 {
        match stored(client, &shapes()[0]).await {
            Ok(spec) if spec["initContainers"].is_null() => {}
            _ => return,
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the injection never became active");
}

#[tokio::test]
async fn the_policy_gives_the_pod_that_is_written_by_hand() {
    let (server, client) = set().await;
    let mut by_hand = Vec::new();
    for pod in shapes() {
        by_hand.push(stored(&client, &inject(&pod, &settings()).unwrap()).await.unwrap());
    }
    apply(&server, &policy_yaml(&settings()).unwrap());
    until_active(&client).await;
    for (pod, by_hand) in shapes().iter().zip(&by_hand) {
        let name = pod.metadata.name.as_deref().unwrap();
        let injected = stored(&client, pod).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(injected["containers"], by_hand["containers"], "{name}");
        for (at, container) in by_hand["initContainers"].as_array().into_iter().flatten().enumerate() {
            assert_eq!(injected["initContainers"][at], *container, "{name}");
        }
        assert_eq!(&injected, by_hand, "{name}");
        assert_eq!(injected["initContainers"].is_null(), name == "plain");
        // what is written by hand already is left as it is
        let again = stored(&client, &inject(pod, &settings()).unwrap()).await.unwrap();
        assert_eq!(&again, by_hand, "{name}");
    }
    let wrong = pod(
        "wrong",
        &json!({ "kafkafeatures.dev/container": "missing" }),
        json!({ "containers": [{ "name": "kafka", "image": "localhost/kafka:4.4.0" }] }),
    );
    let error = stored(&client, &wrong).await.unwrap_err();
    assert!(
        error.contains("no container \"missing\"") && error.contains("correct the annotation"),
        "{error}"
    );
    let pods: Api<Pod> = Api::namespaced(client, "default");
    assert_eq!(pods.list(&ListParams::default()).await.unwrap().items.len(), 0, "dry runs leave nothing");
}

#[tokio::test]
async fn restricted_namespaces_take_the_pod() {
    let (server, client) = set().await;
    apply(&server, &policy_yaml(&settings()).unwrap());
    until_active(&client).await;
    let label = "pod-security.kubernetes.io/enforce=restricted";
    let labelled = server.kubectl().args(["label", "namespace", "default", label]).output().unwrap();
    assert!(labelled.status.success());
    let own = json!({
        "allowPrivilegeEscalation": false,
        "capabilities": { "drop": ["ALL"] },
        "runAsNonRoot": true,
        "runAsUser": 1000,
        "seccompProfile": { "type": "RuntimeDefault" },
    });
    let kafka = json!({ "name": "kafka", "image": "localhost/kafka:4.4.0", "securityContext": own });
    let compliant = pod("compliant", &json!({}), json!({ "containers": [kafka] }));
    let injected = stored(&client, &compliant).await.unwrap();
    assert_eq!(injected["initContainers"].as_array().unwrap().len(), 2);
    let not = pod(
        "not",
        &json!({}),
        json!({ "containers": [{ "name": "kafka", "image": "localhost/kafka:4.4.0" }] }),
    );
    assert!(stored(&client, &not).await.unwrap_err().contains("restricted"), "it is enforced");
}

#[test]
fn the_command_prints_the_policy() {
    let tool = env!("CARGO_BIN_EXE_kafka-features-operator");
    let arguments = ["policy", "--image", "localhost/operator:1", "--image-pull-policy", "Never"];
    let output = Command::new(tool).args(arguments).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), policy_yaml(&settings()).unwrap());
}
