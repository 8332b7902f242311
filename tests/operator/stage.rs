//! Where the operator plays: an API server with the definition installed, and the operator beside it, with short rests
//! and with the rights that `deploy/` gives it.

// each test binary uses its own share
#![allow(dead_code, unreachable_pub, missing_docs)]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kafka_features_operator::api::KafkaFeatures;
use kafka_features_operator::controller::{Lost, Pace, Settings, Terms, run};
use kafka_features_operator::telemetry::Telemetry;
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use kube::runtime::wait::{await_condition, conditions};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

#[path = "gate.rs"]
pub mod gate;
#[path = "../kstatus/mod.rs"]
pub mod kstatus;

use crate::testbed::ApiServer;
use gate::Gate;

const PATIENCE: Duration = Duration::from_secs(60);
/// The rest between two passes.
pub const REST: Duration = Duration::from_millis(500);
const PACE: Pace = Pace { soon: REST, slow: REST, first_retry: REST, longest_retry: REST };

/// The operator's ServiceAccount and its namespace in `deploy/`.
pub const ACCOUNT: &str = "kafka-features-operator";

fn definition() -> CustomResourceDefinition {
    serde_saphyr::from_str(include_str!("../../crds/kafkafeatures.dev_kafkafeatures.yaml")).unwrap()
}

pub struct Stage {
    server: ApiServer,
    client: Client,
    token: String,
    shutdown: Option<oneshot::Sender<()>>,
    operator: Option<JoinHandle<Result<(), Lost>>>,
}

/// A resource's status.
#[derive(Clone, Debug)]
pub struct Status(pub Value);

impl Status {
    fn condition(&self, kind: &str) -> &Value {
        let conditions = self.0["conditions"].as_array().unwrap();
        conditions.iter().find(|condition| condition["type"] == kind).unwrap_or(&Value::Null)
    }

    pub fn is(&self, kind: &str) -> &str {
        self.condition(kind)["status"].as_str().unwrap_or("absent")
    }

    pub fn reason(&self, kind: &str) -> &str {
        self.condition(kind)["reason"].as_str().unwrap_or_default()
    }

    pub fn message(&self, kind: &str) -> &str {
        self.condition(kind)["message"].as_str().unwrap_or_default()
    }

    /// The nodes that hold a feature up: id, supported range, needed level.
    pub fn blockers(&self, feature: &str) -> Vec<(i64, &str, i64)> {
        let blockers = self.0["blockers"].as_array().into_iter().flatten();
        let of = blockers.filter(|blocker| blocker["feature"] == feature);
        let told = |blocker: &'_ Value| (blocker["nodeId"].as_i64(), blocker["needed"].as_i64());
        of.map(|blocker| {
            let (node, needed) = told(blocker);
            (node.unwrap(), blocker["supported"].as_str().unwrap_or_default(), needed.unwrap())
        })
        .collect()
    }

    pub fn feature(&self, name: &str) -> &Value {
        let features = self.0["features"].as_array().unwrap();
        features.iter().find(|feature| feature["name"] == name).unwrap_or(&Value::Null)
    }
}

impl Stage {
    pub async fn set() -> Self {
        Self::set_with(PACE).await
    }

    pub async fn set_with(pace: Pace) -> Self {
        let stage = Self::bare_with(pace).await;
        stage.install().await;
        stage
    }

    /// With a definition that takes anything, as one of a later version might.
    pub async fn set_without_rules() -> Self {
        let stage = Self::bare().await;
        let mut definition = definition();
        for version in &mut definition.spec.versions {
            let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
            version.schema = serde_json::from_value(json!({ "openAPIV3Schema": schema })).unwrap();
        }
        stage.install_definition(definition).await;
        stage
    }

    /// Without the definition.
    pub async fn bare() -> Self {
        Self::bare_with(PACE).await
    }

    async fn bare_with(pace: Pace) -> Self {
        let mut stage = Self::without_operator().await;
        stage.begin_operator(pace).await;
        stage
    }

    async fn begin_operator(&mut self, pace: Pace) {
        let (shutdown, ended) = oneshot::channel::<()>();
        let lease = Terms {
            namespace: ACCOUNT.to_owned(),
            name: ACCOUNT.to_owned(),
            holder: "stage".to_owned(),
            duration: Duration::from_secs(15),
        };
        let settings = Settings { pace, lease: Some(lease), ..Settings::default() };
        let client = self.server.client_with(&self.token).await;
        let running = run(client, settings, Arc::<Telemetry>::default(), async move {
            let _ = ended.await;
        });
        self.operator = Some(tokio::spawn(running));
        self.shutdown = Some(shutdown);
    }

    /// Ends the operator as SIGTERM would, and begins another that knows nothing of the first.
    pub async fn restart_operator(&mut self) {
        self.end_operator().await;
        self.begin_operator(PACE).await;
    }

    /// An API server and nothing else.
    pub async fn without_operator() -> Self {
        // what the operator says is shown with a test that fails
        let filter = tracing_subscriber::EnvFilter::new("kafka_features_operator=debug,kube_runtime=info");
        let _ =
            tracing_subscriber::fmt().with_env_filter(filter).with_test_writer().with_ansi(false).try_init();
        let server = ApiServer::start().await;
        let client = server.client().await;
        tokio::task::block_in_place(|| deploy(&server));
        let token = token(&client).await;
        Self { server, client, token, shutdown: None, operator: None }
    }

    pub fn server(&mut self) -> &mut ApiServer {
        &mut self.server
    }

    /// A kubeconfig with the operator's rights.
    pub fn kubeconfig(&self) -> PathBuf {
        let path = self.server.kubeconfig().with_file_name("operator-kubeconfig");
        std::fs::write(&path, self.server.kubeconfig_for(&self.token)).unwrap();
        path
    }

    /// A way to the API server that can be shut, with the operator's rights.
    pub async fn gate(&self) -> Gate {
        let upstream = self.server.client_with(&self.token).await;
        Gate::build(upstream, |server| {
            let path = self.server.kubeconfig().with_file_name("gate-kubeconfig");
            std::fs::write(&path, self.server.kubeconfig_by(server, &self.token)).unwrap();
            path
        })
        .await
    }

    /// A client with all rights.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Installs the definition.
    pub async fn install(&self) {
        self.install_definition(definition()).await;
    }

    async fn install_definition(&self, definition: CustomResourceDefinition) {
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        definitions.create(&PostParams::default(), &definition).await.unwrap();
        let name = "kafkafeatures.kafkafeatures.dev";
        await_condition(definitions, name, conditions::is_crd_established()).await.unwrap();
    }

    /// Ends the operator as SIGTERM would.
    pub async fn end(mut self) {
        self.end_operator().await;
    }

    async fn end_operator(&mut self) {
        self.shutdown.take().unwrap().send(()).unwrap();
        let operator = self.operator.take().unwrap();
        tokio::time::timeout(PATIENCE, operator).await.expect("the operator ends").unwrap().unwrap();
    }

    fn resources(&self) -> Api<DynamicObject> {
        let kind = ApiResource::erase::<KafkaFeatures>(&());
        Api::namespaced_with(self.client.clone(), "default", &kind)
    }

    /// Creates or changes a resource.
    pub async fn apply(&self, name: &str, spec: Value) {
        let object = json!({
            "apiVersion": "kafkafeatures.dev/v1alpha1",
            "kind": "KafkaFeatures",
            "metadata": { "name": name },
            "spec": spec,
        });
        let params = PatchParams::apply("test").force();
        self.resources().patch(name, &params, &Patch::Apply(&object)).await.unwrap();
    }

    /// Adds a condition of another manager to a status.
    pub async fn add_foreign_condition(&self, name: &str) {
        let condition = json!({
            "type": "Foreign",
            "status": "True",
            "reason": "SomeoneElse",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let object = json!({
            "apiVersion": "kafkafeatures.dev/v1alpha1",
            "kind": "KafkaFeatures",
            "metadata": { "name": name },
            "status": { "conditions": [condition] },
        });
        let params = PatchParams::apply("someone-else");
        self.resources().patch_status(name, &params, &Patch::Apply(&object)).await.unwrap();
    }

    /// Has status remember a cluster that was never seen.
    pub async fn remember(&self, name: &str, cluster_id: &str) {
        let status = json!({ "status": { "clusterId": cluster_id } });
        let params = PatchParams::default();
        self.resources().patch_status(name, &params, &Patch::Merge(&status)).await.unwrap();
    }

    pub async fn delete(&self, name: &str) {
        self.resources().delete(name, &kube::api::DeleteParams::default()).await.unwrap();
    }

    pub async fn get(&self, name: &str) -> DynamicObject {
        self.resources().get(name).await.unwrap()
    }

    /// What a tool that waits makes of a resource.
    pub async fn kstatus(&self, name: &str) -> kstatus::Kstatus {
        kstatus::kstatus(&serde_json::to_value(self.get(name).await).unwrap())
    }

    pub async fn version_of(&self, name: &str) -> Option<String> {
        self.get(name).await.metadata.resource_version
    }

    /// Waits until a condition has a status, or a reason, for the newest generation of the spec.
    pub async fn wait_for(&self, name: &str, condition: &str, wanted: &str) -> Status {
        self.wait_until(name, |status| status.is(condition) == wanted || status.reason(condition) == wanted)
            .await
    }

    /// Waits until the status of the newest generation of the spec is as wanted.
    pub async fn wait_until(&self, name: &str, wanted: impl Fn(&Status) -> bool) -> Status {
        let begun = Instant::now();
        loop {
            let object = self.get(name).await;
            // only where the definition has no rules has a fresh resource no status at all
            if !object.data["status"].is_null() {
                kstatus::assert_honest(&serde_json::to_value(&object).unwrap());
            }
            let status = Status(object.data["status"].clone());
            let current = status.0["observedGeneration"] == json!(object.metadata.generation);
            if current && wanted(&status) {
                return status;
            }
            assert!(begun.elapsed() < PATIENCE, "{name} never came to be as wanted: {:#}", status.0);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until something outside is so.
    pub async fn until(&self, so: impl Fn() -> bool) {
        let begun = Instant::now();
        while !tokio::task::block_in_place(&so) {
            assert!(begun.elapsed() < PATIENCE, "it never came to be so");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Lets so many rests go by.
    pub async fn let_pass(&self, rests: u32) {
        tokio::time::sleep(REST * rests).await;
    }

    /// How many requests of the operator the API server has seen that were to change something, but for its lease.
    pub fn writes(&self) -> usize {
        self.requests(|verb, resource| !["get", "list", "watch"].contains(&verb) && resource != "leases")
    }

    /// The same, once what follows a status has been written too: an event comes after it. What never stops writing is not
    /// waited for.
    pub async fn writes_so_far(&self) -> usize {
        let mut writes = self.writes();
        for _ in 0..10 {
            self.let_pass(2).await;
            let before = std::mem::replace(&mut writes, self.writes());
            if before == writes {
                break;
            }
        }
        writes
    }

    /// How often the operator has read resources by name.
    pub fn reads(&self) -> usize {
        self.requests(|verb, resource| verb == "get" && resource == "kafkafeatures")
    }

    /// How many of the operator's requests, by verb and resource, are as wanted.
    pub fn requests(&self, wanted: impl Fn(&str, &str) -> bool) -> usize {
        let user = format!("system:serviceaccount:{ACCOUNT}:{ACCOUNT}");
        let asked = |event: &&Value| {
            let text = |value: &'_ Value| value.as_str().unwrap_or_default().to_owned();
            event["user"]["username"] == user.as_str()
                && wanted(&text(&event["verb"]), &text(&event["objectRef"]["resource"]))
        };
        self.server.audit().iter().filter(asked).count()
    }

    /// The reasons of all events about a resource, oldest first.
    pub async fn events(&self, name: &str) -> Vec<(String, String)> {
        // an event comes after the status that it tells of
        self.writes_so_far().await;
        let events: Api<k8s_openapi::api::events::v1::Event> =
            Api::namespaced(self.client.clone(), "default");
        let mut events = events.list(&kube::api::ListParams::default()).await.unwrap().items;
        events.retain(|event| event.regarding.as_ref().and_then(|of| of.name.as_deref()) == Some(name));
        events.sort_by_key(|event| event.event_time.as_ref().map(|time| time.0));
        let told = |event: &k8s_openapi::api::events::v1::Event| {
            (event.reason.clone().unwrap_or_default(), event.note.clone().unwrap_or_default())
        };
        events.iter().map(told).collect()
    }
}

/// Applies what `deploy/` consists of but for the definition, which tests install when they want it, and the
/// Deployment, which nothing here would run.
fn deploy(server: &ApiServer) {
    let rendered = server.kubectl().args(["kustomize", BASE]).output().unwrap();
    assert!(rendered.status.success(), "{}", String::from_utf8_lossy(&rendered.stderr));
    let rendered = String::from_utf8(rendered.stdout).unwrap();
    let left_out = ["kind: CustomResourceDefinition", "kind: Deployment"];
    let wanted = |part: &&str| !part.lines().any(|line| left_out.contains(&line));
    let parts: Vec<&str> = rendered.split("\n---\n").filter(wanted).collect();
    let path = server.kubeconfig().with_file_name("deploy.yaml");
    std::fs::write(&path, parts.join("\n---\n")).unwrap();
    let applied = server.kubectl().args(["apply", "--validate=false", "-f"]).arg(path).output().unwrap();
    assert!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));
}

/// The kustomize base.
pub const BASE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/base");

async fn token(client: &Client) -> String {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), ACCOUNT);
    let spec = TokenRequestSpec { expiration_seconds: Some(3600), ..TokenRequestSpec::default() };
    let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
    let answer = accounts.create_token_request(ACCOUNT, &PostParams::default(), &request).await.unwrap();
    answer.status.unwrap().token.unwrap()
}
