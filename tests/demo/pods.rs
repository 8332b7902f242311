//! `make demo-pods`: a Kafka cluster of plain StatefulSets on a real node, from nothing to an upgrade. The workload and the
//! resource are applied; the API server adds the init containers, the operator grants what may be formatted, Kafka comes up
//! at the declared levels without a JVM having formatted anything, and follows the image when that is changed.

#[path = "harness.rs"]
mod harness;
#[path = "progress.rs"]
mod progress;
#[path = "../pods/stage.rs"]
mod stage;
#[path = "../testbed/mod.rs"]
mod testbed;
#[path = "../pods/workload.rs"]
mod workload;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use kafka_features_operator::api::{KafkaFeatures, PodState};
use serde_json::json;

use harness::blocking;
use progress::Progress;
use stage::Stage;
use workload::{Workload, resource};

const NAMESPACE: &str = "kafka";
const OLD: &str = "4.3.1";
const NEW: &str = "4.4.0";
/// How long any step may take.
const PATIENCE: Duration = Duration::from_secs(240);

#[tokio::main]
async fn main() -> ExitCode {
    harness::run(demo(), guide).await
}

fn guide(stage: &Stage) -> String {
    let kubectl = stage.node.kubectl(&[]).get_program().to_string_lossy().into_owned();
    format!(
        "
Everything stays up. In another terminal:
  export KUBECONFIG={}
  alias kubectl={kubectl}
  kubectl -n {NAMESPACE} get pods,kfeat
  kubectl -n {NAMESPACE} describe kfeat kafka
  kubectl -n {NAMESPACE} scale statefulset brk --replicas=4
To stop: Ctrl-C here, or `kill {}`. Nothing is left then, these files included.",
        stage.node.kubeconfig().display(),
        std::process::id(),
    )
}

async fn demo() -> Result<Stage, String> {
    let mut progress = Progress::begin();
    progress.say(
        "building the operator's image; starting a node with etcd, kube-apiserver, kubelet and containerd",
    );
    progress.say("$ kubectl apply -k deploy/policy");
    let stage = Stage::set(&[OLD, NEW]).await;
    blocking(|| stage.namespace(NAMESPACE)).await;
    let mut controllers = Workload::new(NAMESPACE, "ctl", "controller", 0, "");
    controllers.quorum = controllers.bootstrap_servers(3);
    let mut brokers = Workload::new(NAMESPACE, "brk", "broker", 100, &controllers.quorum);
    (controllers.version, brokers.version) = (OLD.to_owned(), OLD.to_owned());
    controllers.volumes(&stage, 0..3).await;
    brokers.volumes(&stage, 0..4).await;
    let format = json!({
        "quorum": "InitialControllers",
        "initialControllers": controllers.initial_controllers(3),
    });
    let address = brokers.address(0);
    let declared = |release: &str| {
        resource(
            NAMESPACE,
            std::slice::from_ref(&address),
            &json!({ "releaseVersion": release, "format": format }),
        )
    };
    progress.say(format!(
        "$ kubectl apply: three controllers and three brokers of Kafka {OLD}, empty volumes, and"
    ));
    progress.say("  a KafkaFeatures with releaseVersion \"4.3\" and format");
    let begun = Instant::now();
    let objects = [controllers.objects(&stage), brokers.objects(&stage), vec![declared("4.3")]].concat();
    blocking(|| stage.apply(&objects)).await;
    let formatted = |now: &KafkaFeatures| {
        let pods = now.status.as_ref().map(|status| status.pods.as_slice()).unwrap_or_default();
        pods.len() == 6 && pods.iter().all(|pod| pod.state == PodState::Formatted)
    };
    follow(&stage, &mut progress, formatted).await?;
    progress.say(format!(
        "all six are formatted {:.1} s after they were applied, and Kafka starts",
        begun.elapsed().as_secs_f64()
    ));
    follow(&stage, &mut progress, is_ready).await?;
    check(&stage, &progress, "4.3-IV0").await?;

    (controllers.version, brokers.version) = (NEW.to_owned(), NEW.to_owned());
    progress.say(format!(
        "$ kubectl apply: the image of Kafka {NEW}, and releaseVersion \"4.4\" in the same commit"
    ));
    let objects = [controllers.objects(&stage), brokers.objects(&stage), vec![declared("4.4")]].concat();
    blocking(|| stage.apply(&objects)).await;
    follow(&stage, &mut progress, is_ready).await?;
    check(&stage, &progress, "4.4-IV2").await?;
    Ok(stage)
}

/// Shows what status says until it is as wanted.
async fn follow(
    stage: &Stage,
    progress: &mut Progress,
    wanted: impl Fn(&KafkaFeatures) -> bool,
) -> Result<(), String> {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        let object = blocking(|| stage.get(NAMESPACE, "kafkafeatures/kafka")).await;
        if let Ok(now) = serde_json::from_value::<KafkaFeatures>(object) {
            progress.show(&now);
            let observed = now.status.as_ref().and_then(|status| status.observed_generation);
            if observed == now.metadata.generation && wanted(&now) {
                return Ok(());
            }
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Err(format!("it took more than {} s", PATIENCE.as_secs()))
}

fn is_ready(now: &KafkaFeatures) -> bool {
    let conditions = now.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Asks the cluster itself, by Kafka's own tool.
async fn check(stage: &Stage, progress: &Progress, level: &str) -> Result<(), String> {
    let features = ["metadata.version", "kraft.version", "transaction.version", "share.version"];
    let read = |feature: &str| stage.finalized(NAMESPACE, "brk-0", feature).unwrap_or_default();
    let levels: Vec<String> = blocking(|| features.iter().map(|feature| read(feature)).collect()).await;
    let shown: Vec<String> = features.iter().zip(&levels).map(|(f, level)| format!("{f} {level}")).collect();
    progress.say(format!("Kafka's own tool, in pod brk-0: {}", shown.join(", ")));
    if levels.first().map(String::as_str) == Some(level) {
        return Ok(());
    }
    Err(format!("Kafka's own tool reads metadata.version {}, not {level}", levels.join(" ")))
}
