//! `make demo`: the main job on real parts, as a story. In the middle of a rolling upgrade a resource is applied to a
//! real API server; the operator names the node that holds the target back, and moves the levels from 3.9's to 4.4's
//! once that is replaced. Only the cluster itself, asked by Kafka's own tool, says whether it arrived.
//! Nothing that it starts outlives it, whether it succeeds, fails or is interrupted.

mod harness;
mod keep;
mod progress;
mod resource;
#[path = "../testbed/mod.rs"]
mod testbed;
mod verdict;

use std::fmt::Display;
use std::io::Write as _;
use std::path::Path;
use std::process::{ExitCode, Stdio};

use kafka_features_operator::api::KafkaFeatures;

use harness::blocking;
use progress::Progress;
use resource::{follow, is_ready, waits_for};
use testbed::process::Process;
use testbed::{ApiServer, Kafka, NodeSpec, Quorum};

const KAFKA: &str = "4.4.0";
const OLD_KAFKA: &str = "4.0.2";
/// The node that the rolling upgrade has not come to yet.
const OLD_NODE: i32 = 3;
const FORMATTED_AT: &str = "3.9";
const DEFINITIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/crds");
const SAMPLE: &str = include_str!("../../deploy/samples/kafkafeatures.yaml");

#[tokio::main]
async fn main() -> ExitCode {
    harness::run(demo(), keep::guide).await
}

/// What runs; it ends with this value.
struct Parts {
    operator: Process,
    kafka: Kafka,
    server: ApiServer,
}

impl Drop for Parts {
    fn drop(&mut self) {
        self.operator.stop();
    }
}

async fn demo() -> Result<Parts, String> {
    let mut progress = Progress::begin();
    let mut resource: KafkaFeatures = serde_saphyr::from_str(SAMPLE).map_err(|e| told("the sample", e))?;
    let release = resource.spec.release_version.clone().ok_or("the sample declares no releaseVersion")?;
    let name = resource.metadata.name.clone().ok_or("the sample has no name")?;

    progress.say("starting etcd and kube-apiserver");
    let server = ApiServer::start().await;
    progress.say(format!(
        "starting a three-node Kafka with the levels of {FORMATTED_AT}, in the middle of a rolling upgrade:"
    ));
    progress
        .say(format!("  nodes 1 and 2 run Kafka {KAFKA} already, node {OLD_NODE} still runs {OLD_KAFKA}"));
    let mut kafka = blocking(|| {
        let version = |id| if id == OLD_NODE { OLD_KAFKA } else { KAFKA };
        let nodes = [1, 2, 3].map(|id| NodeSpec::combined(id, version(id)));
        Kafka::start(&nodes, Quorum::Static, &["--release-version", FORMATTED_AT], &[])
    })
    .await;
    progress.say(format!("Kafka answers on {}; its levels, by its own tool:", kafka.brokers().join(", ")));
    for (feature, level) in blocking(|| kafka.finalized()).await {
        progress.say(format!("  {feature} {level}"));
    }

    progress.say("$ kubectl apply -f crds/");
    kubectl(&server, &["apply", "-f", DEFINITIONS], "").await?;
    kubectl(&server, &["wait", "--for=condition=Established", "--timeout=60s", "-f", DEFINITIONS], "")
        .await?;
    progress.say("$ kafka-features-operator");
    let mut operator = start_operator(&server, kafka.folder())?;

    resource.spec.cluster.bootstrap_servers = kafka.brokers();
    let applied = serde_json::to_string(&resource).map_err(|e| told("the sample", e))?;
    progress.say("$ kubectl apply -f deploy/samples/kafkafeatures.yaml, with the addresses of this Kafka");
    kubectl(&server, &["apply", "-n", "default", "-f", "-"], &applied).await?;

    let waits = |now: &KafkaFeatures| waits_for(now, OLD_NODE);
    follow(&server, &mut operator, &mut progress, &name, waits).await?;
    progress.say(format!(
        "the operator waits for node {OLD_NODE}, and for it alone; the rolling upgrade goes on:"
    ));
    progress.say(format!("  restarting node {OLD_NODE} as Kafka {KAFKA}; nobody tells the operator"));
    blocking(|| kafka.restart(OLD_NODE, Some(KAFKA))).await;
    let resource = follow(&server, &mut operator, &mut progress, &name, is_ready).await?;

    progress
        .say(format!("the operator says that it is done; asking the cluster, by Kafka {KAFKA}'s own tool"));
    for line in blocking(|| verdict::reached(&kafka, &release, &resource)).await? {
        progress.say(format!("  {line}"));
    }
    progress.say(format!(
        "the cluster is at the levels of {release}; what is held waits for a person to consent"
    ));
    Ok(Parts { operator, kafka, server })
}

/// Starts the operator's binary, which cargo puts beside the folder of this one.
fn start_operator(server: &ApiServer, folder: &Path) -> Result<Process, String> {
    let own = std::env::current_exe().map_err(|e| told("the demo's own path", e))?;
    let built = own.ancestors().nth(2).ok_or("the demo stands in no target folder")?;
    let binary = built.join("kafka-features-operator");
    if !binary.exists() {
        return Err(format!("{} is not there: run `make demo`, which builds it first", binary.display()));
    }
    let log = folder.join("operator.log");
    Ok(Process::start("kafka-features-operator", binary, log, |command| {
        command.env("KUBECONFIG", server.kubeconfig()).args(["run", "--listen", "127.0.0.1:0"]);
    }))
}

async fn kubectl(server: &ApiServer, args: &[&str], input: &str) -> Result<(), String> {
    let mut command = server.kubectl();
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = || {
        let mut child = command.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input.as_bytes())?;
        }
        child.wait_with_output()
    };
    let output = blocking(run).await.map_err(|e| told("kubectl", e))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("kubectl {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
}

fn told(what: &str, error: impl Display) -> String {
    format!("{what}: {error}")
}
