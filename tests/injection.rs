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
use testbed::ports::Port;
use testbed::process::Process;

fn settings() -> Settings {
    Settings { image: "localhost/operator:1".into(), pull_policy: "Never".into() }
}

fn pod(name: &str, annotations: &Value, spec: Value) -> Pod {
    let labels = match name {
        "plain" => json!({}),
        "plain-label" => json!({ "kafkafeatures.dev/cluster": "" }),
        _ => json!({ "kafkafeatures.dev/cluster": "kafka" }),
    };
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
        pod("plain-label", &json!({}), json!({ "containers": [kafka(json!({}))] })),
        pod("plain", &json!({}), json!({ "containers": [kafka(json!({}))] })),
    ]
}

/// A pod that names a container that it does not have.
fn wrong() -> Pod {
    let kafka = json!({ "containers": [{ "name": "kafka", "image": "localhost/kafka:4.4.0" }] });
    pod("wrong", &json!({ "kafkafeatures.dev/container": "missing" }), kafka)
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
        assert_eq!(injected["initContainers"].is_null(), name.starts_with("plain"));
        // what is written by hand already is left as it is
        let again = stored(&client, &inject(pod, &settings()).unwrap()).await.unwrap();
        assert_eq!(&again, by_hand, "{name}");
    }
    let error = stored(&client, &wrong()).await.unwrap_err();
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

const OPERATOR: &str = env!("CARGO_BIN_EXE_kafka-features-operator");

/// The operator with its webhook, outside of the cluster.
struct Webhook {
    process: Process,
    port: Port,
}

impl Webhook {
    fn start(server: &ApiServer, name: &str, more: &[&str]) -> Self {
        let port = Port::lease();
        let log = server.kubeconfig().with_file_name(format!("{name}.log"));
        let process = Process::start(name, OPERATOR, log, |command| {
            command.env("KUBECONFIG", server.kubeconfig());
            command.args(["run", "--listen", "127.0.0.1:0", "--no-lease", "--webhook"]).arg(port.address());
            command.args(["--webhook-image", "localhost/operator:1", "--webhook-image-pull-policy", "Never"]);
            command.args(more);
        });
        Self { process, port }
    }

    fn url(&self) -> String {
        format!("https://localhost:{}/inject", self.port.number)
    }

    /// The configuration that leads to this webhook.
    fn configuration(&self) -> String {
        let output = Command::new(OPERATOR).arg("webhook-configuration").output().unwrap();
        let yaml = String::from_utf8(output.stdout).unwrap();
        let mut configuration: Value = serde_saphyr::from_str(&yaml).unwrap();
        configuration["webhooks"][0]["clientConfig"] = json!({ "url": self.url() });
        configuration.to_string()
    }
}

fn kubectl(server: &ApiServer, args: &[&str]) -> String {
    let output = server.kubectl().args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn the_webhook_gives_the_pod_that_is_written_by_hand() {
    let (server, client) = set().await;
    let mut by_hand = Vec::new();
    for pod in shapes() {
        by_hand.push(stored(&client, &inject(&pod, &settings()).unwrap()).await.unwrap());
    }
    let mut webhook = Webhook::start(&server, "one", &[]);
    apply(&server, &webhook.configuration());
    until_injected(&client).await;
    for (pod, by_hand) in shapes().iter().zip(&by_hand) {
        let name = pod.metadata.name.as_deref().unwrap();
        let injected = stored(&client, pod).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(&injected, by_hand, "{name}");
        let again = stored(&client, &inject(pod, &settings()).unwrap()).await.unwrap();
        assert_eq!(&again, by_hand, "{name}");
    }
    let error = stored(&client, &wrong()).await.unwrap_err();
    assert!(
        error.contains("no container \"missing\"") && error.contains("correct the annotation"),
        "{error}"
    );

    // with the policy beside it, the policy comes first and the webhook finds everything done
    let of_policy = Settings { image: "localhost/operator:2".into(), ..settings() };
    apply(&server, &policy_yaml(&of_policy).unwrap());
    for _ in 0..200 {
        let spec = stored(&client, &shapes()[0]).await.unwrap();
        if spec["initContainers"][0]["image"] == "localhost/operator:2" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    for pod in shapes() {
        let by_hand = stored(&client, &inject(&pod, &of_policy).unwrap()).await.unwrap();
        assert_eq!(stored(&client, &pod).await.unwrap(), by_hand, "{:?}", pod.metadata.name);
    }
    let objects = ["mutatingadmissionpolicybindings", "mutatingadmissionpolicies"];
    for kind in objects {
        kubectl(&server, &["delete", kind, "--all"]);
    }

    // a second replica takes the same certificate
    let secret = || kubectl(&server, &["get", "secret", "kafka-features-operator-webhook", "-o", "yaml"]);
    let before = secret();
    let second = Webhook::start(&server, "two", &[]);
    apply(&server, &second.configuration());
    until_injected(&client).await;
    assert_eq!(secret(), before);
    assert!(!second.process.tail(100).contains("PRIVATE"));
    assert!(second.process.tail(100).contains("was taken up"));

    // what is no review is refused, and what is too large; the others are answered as before
    let ask = |body: Vec<u8>| {
        let mut curl = Command::new("curl");
        curl.args([
            "--insecure",
            "--silent",
            "--max-time",
            "10",
            "--output",
            "/dev/null",
            "--write-out",
            "%{http_code}",
        ]);
        curl.args(["--data-binary", "@-", &second.url()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = curl.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let writing = std::thread::spawn(move || _ = std::io::Write::write_all(&mut input, &body));
        let output = child.wait_with_output().unwrap();
        writing.join().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(ask(b"garbage".to_vec()), "400");
    assert_eq!(ask(vec![b'x'; 4 << 20]), "413");
    assert!(stored(&client, &shapes()[0]).await.is_ok());

    // it fails closed for labelled pods, and for no others
    drop(second);
    webhook.process.stop();
    let labelled = stored(&client, &shapes()[0]).await.unwrap_err();
    assert!(labelled.contains("pods.kafkafeatures.dev"), "{labelled}");
    assert!(stored(&client, shapes().last().unwrap()).await.is_ok(), "the pod without the label");
}

async fn until_injected(client: &Client) {
    for _ in 0..300 {
        if stored(client, &shapes()[0]).await.is_ok_and(|spec| !spec["initContainers"].is_null()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("pods are not injected: {:?}", stored(client, &shapes()[0]).await);
}

/// Certificates that live for seconds are renewed again and again, and the authority too, without one failed request.
#[tokio::test]
async fn certificates_are_renewed_in_mid_run() {
    let (server, client) = set().await;
    let webhook = Webhook::start(&server, "one", &["--webhook-lifetime-seconds", "3"]);
    apply(&server, &webhook.configuration());
    until_injected(&client).await;
    let secret = || -> Value {
        let text = kubectl(&server, &["get", "secret", "kafka-features-operator-webhook", "-o", "json"]);
        serde_json::from_str::<Value>(&text).unwrap()["data"].clone()
    };
    let mut serving = std::collections::BTreeSet::new();
    let mut authorities = std::collections::BTreeSet::new();
    let begun = std::time::Instant::now();
    while begun.elapsed() < Duration::from_secs(32) {
        for _ in 0..4 {
            // a connection of its own each time: one that stays shows no new certificate
            let said = Command::new("curl")
                .args([
                    "--insecure",
                    "--silent",
                    "--max-time",
                    "5",
                    &webhook.url().replace("/inject", "/healthz"),
                ])
                .output()
                .unwrap();
            assert_eq!(String::from_utf8_lossy(&said.stdout), "ok\n");
            stored(&client, &shapes()[0]).await.unwrap();
        }
        let now = secret();
        serving.insert(now["tls.crt"].to_string());
        authorities.insert(now["ca.crt"].to_string());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert!(serving.len() > 5, "{} serving certificates", serving.len());
    assert!(authorities.len() > 1, "{} authorities", authorities.len());
}

/// Certificates that others make, in a folder, are taken up when they change.
#[tokio::test]
async fn certificates_of_a_folder_are_followed() {
    let (server, client) = set().await;
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let webhook =
        Webhook::start(&server, "one", &["--webhook-certificates", folder.path().to_str().unwrap()]);
    let trusting = |authority: &Authority| {
        let mut configuration: Value = serde_json::from_str(&webhook.configuration()).unwrap();
        let bundle =
            base64::Engine::encode(&base64::engine::general_purpose::STANDARD, &authority.certificate);
        configuration["webhooks"][0]["clientConfig"]["caBundle"] = json!(bundle);
        configuration.to_string()
    };
    // nothing is there yet, then something that can't be used: labelled pods are refused
    apply(&server, &trusting(&authority));
    std::fs::write(folder.path().join("tls.crt"), "x").unwrap();
    std::fs::write(folder.path().join("tls.key"), "x").unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(stored(&client, &shapes()[0]).await.is_err());
    authority.sign(folder.path());
    until_injected(&client).await;
    let other = Authority::new();
    other.sign(folder.path());
    apply(&server, &trusting(&other));
    until_injected(&client).await;
    assert!(!webhook.process.tail(100).contains("PRIVATE"));
}

struct Authority {
    certificate: String,
    issuer: rcgen::Issuer<'static, rcgen::KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap().pem();
        Self { certificate, issuer: rcgen::Issuer::new(params, key) }
    }

    fn sign(&self, folder: &std::path::Path) {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(folder.join("tls.crt"), certificate.pem()).unwrap();
        std::fs::write(folder.join("tls.key"), key.serialize_pem()).unwrap();
    }
}
