//! Several replicas, each the real binary: one acts, and what happens to it.

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::Api;
use rustix::process::Signal;
use serde_json::json;

use crate::brokers;
use crate::replica::{PATIENCE, Replica};
use crate::stage::{ACCOUNT, BASE, Stage};
use crate::testbed::{ApiServer, Kafka};

async fn holder(stage: &Stage) -> Option<String> {
    let leases: Api<Lease> = Api::namespaced(stage.client(), ACCOUNT);
    leases.get(ACCOUNT).await.unwrap().spec.and_then(|spec| spec.holder_identity)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_stood_still_past_its_lease_ends_and_the_other_acts() {
    let kafka = Kafka::single("4.4.0", &["--release-version", "3.9"]);
    let stage = Stage::without_operator().await;
    let mut first = Replica::with_lease(&stage);
    first.wait_for("/readyz", 503, "waiting for the CustomResourceDefinition").await;
    first.wait_for("/livez", 200, "ok").await;
    stage.install().await;
    first.wait_for("/readyz", 200, "looking after resources").await;
    first.wait_for("/metrics", 200, "kafka_features_lease_held 1\n").await;
    let mut second = Replica::with_lease(&stage);
    second.wait_for("/readyz", 200, "standing by").await;
    second.wait_for("/metrics", 200, "kafka_features_lease_held 0\n").await;
    let held_by_first = holder(&stage).await;

    first.process.signal(Signal::STOP);
    second.wait_for("/readyz", 200, "looking after resources").await;
    assert_ne!(holder(&stage).await, held_by_first);
    stage.apply("kafka", json!({ "cluster": brokers(&kafka), "features": { "group.version": 1 } })).await;
    first.process.signal(Signal::CONT);
    let ended = tokio::task::block_in_place(|| first.process.wait(PATIENCE)).expect("it ends by itself");
    assert!(!ended.success());
    assert!(first.process.tail(3).contains("kafka-features-operator/kafka-features-operator"));
    stage.wait_for("kafka", "Ready", "Reached").await;
    assert_eq!(kafka.finalized()["group.version"], "1");
    second
        .wait_for("/metrics", 200, "kafka_features_updates_total{dry_run=\"false\",outcome=\"Accepted\"} 1\n")
        .await;

    // told to end, a replica leaves the lease to whoever comes
    second.process.signal(Signal::TERM);
    assert!(tokio::task::block_in_place(|| second.process.wait(PATIENCE)).expect("it ends").success());
    assert_eq!(holder(&stage).await, None);
}

/// Lets two replicas follow a release, then single levels down and up, and returns for each of these three what Kafka's
/// own log recorded of it.
async fn moved_by_two(stage: &Stage, kafka: &Kafka) -> Vec<Vec<(String, i64)>> {
    let specs = [
        json!({ "cluster": brokers(kafka), "releaseVersion": "4.4" }),
        json!({ "cluster": brokers(kafka), "features": { "group.version": 0, "streams.version": 0 }, "downgrade": "Safe" }),
        json!({ "cluster": brokers(kafka), "features": { "group.version": 1, "streams.version": 1 } }),
    ];
    let mut moved = Vec::new();
    for spec in specs {
        let before = kafka.recorded(1).len();
        stage.apply("kafka", spec).await;
        stage.wait_for("kafka", "Ready", "True").await;
        // a second one that is late would come now
        stage.let_pass(2).await;
        let mut recorded = kafka.recorded(1).split_off(before);
        recorded.sort();
        moved.push(recorded);
    }
    assert_eq!(kafka.finalized(), crate::of_4_4());
    moved
}

/// What has to be recorded then.
fn expected() -> Vec<Vec<(String, i64)>> {
    let of =
        |levels: &[(&str, i64)]| levels.iter().map(|(name, level)| ((*name).to_owned(), *level)).collect();
    vec![
        of(&[
            ("eligible.leader.replicas.version", 1),
            ("group.version", 1),
            ("metadata.version", 33),
            ("share.version", 2),
            ("streams.version", 1),
            ("transaction.version", 2),
        ]),
        of(&[("group.version", 0), ("streams.version", 0)]),
        of(&[("group.version", 1), ("streams.version", 1)]),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_replicas_with_a_lease_one_moves_each_level_once() {
    let kafka = Kafka::single("4.4.0", &["--release-version", "3.9"]);
    let stage = Stage::without_operator().await;
    stage.install().await;
    let replicas = [(); 2].map(|()| Replica::with_lease(&stage));
    for replica in &replicas {
        replica.wait_for("/readyz", 200, "").await;
    }
    assert_eq!(moved_by_two(&stage, &kafka).await, expected());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_replicas_without_a_lease_do_no_harm() {
    let kafka = Kafka::single("4.4.0", &["--release-version", "3.9"]);
    let stage = Stage::without_operator().await;
    stage.install().await;
    let replicas = [(); 2].map(|()| Replica::start(&stage.kubeconfig(), &["--no-lease"]));
    for replica in &replicas {
        replica.wait_until_acting().await;
    }
    // both may send the same at once: Kafka records the level that it has a second time then, and nothing moves
    let mut moved = moved_by_two(&stage, &kafka).await;
    moved.iter_mut().for_each(Vec::dedup);
    assert_eq!(moved, expected());
    assert_eq!(stage.requests(|_, resource| resource == "leases"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_deploy_holds_is_taken_by_an_api_server_as_a_whole() {
    let server = ApiServer::start().await;
    let run = |args: &[&str]| {
        let output = server.kubectl().args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    tokio::task::block_in_place(|| {
        let applied = run(&["apply", "--server-side", "-k", BASE]);
        assert!(applied.contains("deployment.apps/kafka-features-operator"), "{applied}");
        let again = run(&["diff", "--server-side", "-k", BASE]);
        assert_eq!(again, "", "what is stored is what was applied");
    });
}
