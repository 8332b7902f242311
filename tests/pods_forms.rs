//! Three controllers and three brokers with empty volumes: every kind of quorum of several, resource or workload first, by
//! every form of injection.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "pods/stage.rs"]
mod stage;
mod testbed;
#[path = "pods/workload.rs"]
mod workload;

use std::time::Instant;

use serde_json::json;
use stage::{Form, Stage, Status};
use workload::{Workload, resource};

/// Which of the two is applied first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    Resource,
    Workload,
}

/// Formats a cluster, and sees it come up at the declared levels; afterwards nothing is left of it.
async fn carry(stage: &Stage, quorum: &str, first: First) {
    let namespace = format!("{quorum}-{first:?}-first").to_lowercase();
    stage.namespace(&namespace);
    let mut controllers = Workload::new(&namespace, "ctl", "controller", 0, "");
    let is_static = quorum == "Static";
    controllers.quorum =
        if is_static { controllers.static_voters(3) } else { controllers.bootstrap_servers(3) };
    let brokers = Workload::new(&namespace, "brk", "broker", 100, &controllers.quorum);
    let mut format = json!({ "quorum": quorum });
    if !is_static {
        format["initialControllers"] = controllers.initial_controllers(3);
    }
    let declared = resource(
        &namespace,
        &[brokers.address(0)],
        &json!({ "releaseVersion": "4.3", "allowOneWay": ["kraft.version"], "format": format }),
    );
    controllers.volumes(stage, 0..3).await;
    brokers.volumes(stage, 0..3).await;
    let workload = [controllers.objects(stage), brokers.objects(stage)].concat();
    let begun = match first {
        First::Resource => {
            stage.apply(&[declared]);
            stage
                .until_status(&namespace, "the resource was looked at", |status| {
                    status.condition("Ready")["reason"] == "Bootstrapping"
                })
                .await;
            let begun = Instant::now();
            stage.apply(&workload);
            begun
        }
        First::Workload => {
            stage.apply(&workload);
            for pod in ["ctl-0", "ctl-1", "ctl-2", "brk-0", "brk-1", "brk-2"] {
                stage.until_waiting(&namespace, pod).await;
            }
            let begun = Instant::now();
            stage.apply(&[declared]);
            begun
        }
    };
    let formatted = stage
        .until_status(&namespace, "all pods are formatted", |status| {
            let pods = status.pods();
            pods.len() == 6 && pods.iter().all(|(_, state, _)| state == "Formatted")
        })
        .await;
    println!(
        "{:?}, {quorum}, {first:?} first: formatted {:.1?} after the second was applied",
        stage.form,
        begun.elapsed()
    );
    let parts: Vec<String> = formatted.pods().into_iter().map(|(_, _, part)| part).collect();
    assert_eq!(parts, ["Broker", "Broker", "Broker", "Voter", "Voter", "Voter"]);
    stage.until_ready(&namespace, &["brk-0", "brk-1", "brk-2", "ctl-0", "ctl-1", "ctl-2"]).await;
    let kraft = if is_static { None } else { Some("1") };
    assert_eq!(stage.finalized(&namespace, "brk-0", "metadata.version").as_deref(), Some("4.3-IV0"));
    assert_eq!(
        stage.finalized(&namespace, "brk-0", "kraft.version").as_deref().filter(|level| *level != "0"),
        kraft
    );
    let status = stage.until_status(&namespace, "the cluster is as declared or kept", Status::reached).await;
    let moved: Vec<&str> = status.0["history"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|change| change["feature"].as_str())
        .collect();
    let expected: &[&str] = if is_static { &["kraft.version"] } else { &[] };
    assert_eq!(moved, expected, "nothing else had to be moved");
    stage.node.kubectl_ok(&["delete", "namespace", &namespace, "--timeout=120s"]);
}

/// Every combination, one after the other.
async fn carry_all(stage: &Stage) {
    let all = ["Static", "InitialControllers"]
        .into_iter()
        .flat_map(|quorum| [First::Resource, First::Workload].map(|first| (quorum, first)));
    for (quorum, first) in all {
        carry(stage, quorum, first).await;
    }
}

/// The rest is in the exhaustive run: `pods.rs` and `pods_roll.rs` carry one of them by each form always.
fn is_full() -> bool {
    std::env::var_os("KAFKA_FEATURES_FULL").is_some()
}

/// The sample as people apply it, but for what is of the node here: the image, which has no start script, and the volumes.
fn sample() -> Vec<String> {
    let text = include_str!("../deploy/samples/cluster.yaml");
    let java =
        "java -Xms96m -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp '/opt/kafka/libs/*' kafka.Kafka";
    let changes = [
        ("apache/kafka:", "localhost/kafka:"),
        ("/opt/kafka/bin/kafka-server-start.sh", java),
        ("accessModes: [ReadWriteOnce]", "storageClassName: local\n      accessModes: [ReadWriteOnce]"),
    ];
    let changed = changes.iter().fold(text.to_owned(), |text, (from, to)| {
        assert_eq!(text.matches(from).count(), 2, "{from}");
        text.replace(from, to)
    });
    changed.split("\n---\n").map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_policy_carries_the_sample_and_every_cluster() {
    let stage = Stage::set_with(&["4.4.0"], Form::Policy).await;
    let namespace = "kafka";
    stage.namespace(namespace);
    for name in ["ctl", "brk"] {
        Workload::new(namespace, name, "", 0, "").volumes(&stage, 0..3).await;
    }
    let (resource, workload): (Vec<String>, Vec<String>) =
        sample().into_iter().partition(|document| document.contains("kind: KafkaFeatures"));
    stage.apply_text(&workload.join("\n---\n"));
    let pods = ["brk-0", "brk-1", "brk-2", "ctl-0", "ctl-1", "ctl-2"];
    for pod in pods {
        stage.until_waiting(namespace, pod).await;
    }
    let begun = Instant::now();
    stage.apply_text(&resource.join("\n---\n"));
    stage.until_status(namespace, "the cluster is as declared", Status::reached).await;
    println!("as declared {:.1?} after the resource was applied", begun.elapsed());
    stage.until_ready(namespace, &pods).await;
    assert_eq!(stage.finalized(namespace, "brk-0", "metadata.version").as_deref(), Some("4.3-IV0"));
    assert_eq!(stage.finalized(namespace, "brk-0", "kraft.version").as_deref(), Some("1"));
    let members = stage.quorum(namespace, "brk-0").into_iter();
    let mut roles: Vec<(i32, bool)> = members.map(|member| (member.0, member.2 == "Observer")).collect();
    roles.sort_unstable();
    assert_eq!(roles, [(0, false), (1, false), (2, false), (100, true), (101, true), (102, true)]);
    stage.node.kubectl_ok(&["delete", "namespace", namespace, "--timeout=120s"]);
    if is_full() {
        carry_all(&stage).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_webhook_carries_every_cluster() {
    if is_full() {
        carry_all(&Stage::set_with(&["4.4.0"], Form::Webhook).await).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn manifests_with_the_containers_carry_every_cluster() {
    if is_full() {
        carry_all(&Stage::set_with(&["4.4.0"], Form::ByHand).await).await;
    }
}
