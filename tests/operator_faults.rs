//! What befalls the operator in the middle of its work: killed, cut off from the API server, kept from writing. It, or
//! the one that comes after it, goes on by itself, and by Kafka's own log no level moves twice.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "operator/replica.rs"]
mod replica;
#[path = "operator/stage.rs"]
mod stage;
mod testbed;

use std::time::{Duration, Instant};

use replica::{PATIENCE, Replica, SHORT_LEASE};
use rustix::process::Signal;
use serde_json::{Value, json};
use stage::gate::Verdict;
use stage::{Stage, Status};
use testbed::{Kafka, NodeSpec, Quorum};

const OLD: &str = "4.0.2";
const NEW: &str = "4.4.0";
/// Outlasts whatever a test does to the API server.
const LONG_LEASE: [&str; 4] = ["--lease-namespace", stage::ACCOUNT, "--lease-seconds", "300"];

type Levels = Vec<(String, i64)>;

fn levels(levels: &[(&str, i64)]) -> Levels {
    levels.iter().map(|(feature, level)| ((*feature).to_owned(), *level)).collect()
}

/// What one request raises from the levels of 3.9 to those of 4.4. `kraft.version` goes alone, and is no record of a
/// level in Kafka's log.
fn from_3_9_to_4_4() -> Levels {
    levels(&[
        ("eligible.leader.replicas.version", 1),
        ("group.version", 1),
        ("metadata.version", 33),
        ("share.version", 2),
        ("streams.version", 1),
        ("transaction.version", 2),
    ])
}

/// A release with everything that it consists of.
fn release(kafka: &Kafka) -> Value {
    let cluster = json!({ "bootstrapServers": kafka.brokers() });
    json!({ "cluster": cluster, "releaseVersion": "4.4", "allowOneWay": ["kraft.version"] })
}

fn lowered(kafka: &Kafka) -> Value {
    let cluster = json!({ "bootstrapServers": kafka.brokers() });
    json!({ "cluster": cluster, "features": { "group.version": 0 }, "downgrade": "Safe" })
}

/// What Kafka's log recorded of levels after the first so many records.
fn moved_since(kafka: &Kafka, records: usize) -> Levels {
    let mut moved = kafka.recorded(1).split_off(records);
    moved.sort();
    moved
}

/// The changes that status remembers: of what, to which level.
fn history(status: &Value) -> Levels {
    let changes = status["history"].as_array().into_iter().flatten();
    let mut changes: Levels = changes
        .map(|change| (change["feature"].as_str().unwrap().to_owned(), change["to"].as_i64().unwrap()))
        .collect();
    changes.sort();
    changes
}

fn with_kraft_version(mut levels: Levels) -> Levels {
    levels.push(("kraft.version".to_owned(), 1));
    levels.sort();
    levels
}

/// The notes of the events that tell of changes, once there are so many; they are published after status is written.
async fn told(stage: &Stage, count: usize) -> Vec<String> {
    let begun = Instant::now();
    loop {
        let events = stage.events("kafka").await.into_iter();
        let notes: Vec<String> =
            events.filter(|(reason, _)| reason == "LevelsChanged").map(|(_, note)| note).collect();
        if notes.len() >= count {
            assert_eq!(notes.len(), count, "{notes:?}");
            return notes;
        }
        assert!(begun.elapsed() < PATIENCE, "{notes:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn at_target(status: &Status, feature: &str, level: i64) -> bool {
    let feature = status.feature(feature);
    feature["state"] == "AtTarget" && feature["finalized"] == level
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_killed_between_a_change_and_its_status_is_followed_by_one_that_changes_only_the_rest() {
    let kafka = Kafka::single(NEW, &["--release-version", "3.9"]);
    let stage = Stage::without_operator().await;
    stage.install().await;
    let formatted = kafka.recorded(1).len();

    let gate = stage.gate().await;
    gate.decide(|asked| if asked.tells_of_a_change() { Verdict::Hold } else { Verdict::Pass });
    let mut killed = Replica::start(&gate.kubeconfig, &SHORT_LEASE);
    killed.wait_until_acting().await;
    stage.apply("kafka", release(&kafka)).await;
    gate.wait_for_held(0).await;
    // the cluster has the change, and only the operator knows that it made it
    assert_eq!(moved_since(&kafka, formatted), from_3_9_to_4_4());
    let status = stage.get("kafka").await.data["status"].clone();
    assert_eq!((&status["clusterId"], history(&status)), (&json!(kafka.cluster_id), levels(&[])));
    killed.process.kill();
    drop(gate);

    let mut next = Replica::with_lease(&stage);
    let status = stage.wait_for("kafka", "Ready", "Reached").await;
    assert_eq!(moved_since(&kafka, formatted), from_3_9_to_4_4());
    assert_eq!(kafka.finalized()["kraft.version"], "1");
    for (feature, level) in with_kraft_version(from_3_9_to_4_4()) {
        assert!(at_target(&status, &feature, level), "{feature}: {status:?}");
    }
    // history and events tell of what the next one did itself, and of nothing that it only found
    assert_eq!(history(&status.0), levels(&[("kraft.version", 1)]));
    let notes = told(&stage, 1).await;
    assert!(notes[0].contains("kraft.version 0 -> 1"), "{notes:?}");

    // killed a moment later, when the write has come through and the answer has not
    next.process.signal(Signal::TERM);
    tokio::task::block_in_place(|| next.process.wait(PATIENCE)).expect("it ends");
    let gate = stage.gate().await;
    let mut killed = Replica::start(&gate.kubeconfig, &SHORT_LEASE);
    killed.wait_until_acting().await;
    gate.decide(|asked| if asked.tells_of_a_change() { Verdict::HoldAnswer } else { Verdict::Pass });
    let before = kafka.recorded(1).len();
    stage.apply("kafka", lowered(&kafka)).await;
    gate.wait_for_held(0).await;
    killed.process.kill();
    drop(gate);
    let _next = Replica::with_lease(&stage);
    let status = stage.wait_for("kafka", "Ready", "Reached").await;
    assert!(at_target(&status, "group.version", 0), "{status:?}");
    assert_eq!(history(&status.0), levels(&[("group.version", 0), ("kraft.version", 1)]));
    assert_eq!(moved_since(&kafka, before), levels(&[("group.version", 0)]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_whose_status_could_not_be_written_is_told_later_and_once() {
    let kafka = Kafka::single(NEW, &["--release-version", "3.9"]);
    let stage = Stage::without_operator().await;
    stage.install().await;
    let formatted = kafka.recorded(1).len();
    let gate = stage.gate().await;
    // three writes fail in a row: the change's own, and those of the passes that follow
    let fail = |verdict: Verdict, times: usize| {
        let mut left = times;
        gate.decide(move |asked| {
            if left == 0 || !asked.tells_of_a_change() {
                return Verdict::Pass;
            }
            left -= 1;
            verdict
        });
    };
    fail(Verdict::Fail, 3);
    let _replica = Replica::start(&gate.kubeconfig, &LONG_LEASE);
    stage.apply("kafka", release(&kafka)).await;
    let status = stage.wait_for("kafka", "Ready", "Reached").await;
    assert_eq!(moved_since(&kafka, formatted), from_3_9_to_4_4());
    assert_eq!(history(&status.0), with_kraft_version(from_3_9_to_4_4()));
    let times: Vec<&str> =
        status.0["history"].as_array().unwrap().iter().map(|c| c["time"].as_str().unwrap()).collect();
    assert!(times.iter().is_sorted_by(|a, b| a >= b), "{times:?}");
    let notes = told(&stage, 2).await;
    assert!(notes[0].contains("metadata.version") && notes[1].contains("kraft.version"), "{notes:?}");

    // a write that came through, though its answer says otherwise, is not written again
    let before = kafka.recorded(1).len();
    fail(Verdict::FailAnswer, 1);
    stage.apply("kafka", lowered(&kafka)).await;
    let status = stage.wait_for("kafka", "Ready", "Reached").await;
    assert_eq!(moved_since(&kafka, before), levels(&[("group.version", 0)]));
    let lowerings: Levels = history(&status.0).into_iter().filter(|change| change.1 == 0).collect();
    assert_eq!(lowerings, levels(&[("group.version", 0)]));
    let notes = told(&stage, 3).await;
    assert!(notes[2].contains("group.version 1 -> 0"), "{notes:?}");
}

/// A cluster in the middle of a rolling upgrade.
fn half_rolled() -> Kafka {
    let nodes = [NodeSpec::combined(1, NEW), NodeSpec::broker(2, OLD)];
    Kafka::start(&nodes, Quorum::Static, &["--release-version", "3.9"], &[])
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_killed_while_nodes_are_waited_for_and_in_mid_plan_is_waited_for() {
    let mut kafka = half_rolled();
    let mut stage = Stage::without_operator().await;
    stage.install().await;
    let formatted = kafka.recorded(1).len();
    let gate = stage.gate().await;
    let mut replica = Replica::start(&gate.kubeconfig, &LONG_LEASE);
    stage.apply("kafka", release(&kafka)).await;
    let status = stage.wait_for("kafka", "Ready", "WaitingForNodes").await;
    assert_eq!(status.blockers("metadata.version"), [(2, "7-25", 33)]);

    // away while the last node is replaced: nothing is done without knowing what is declared
    stage.server().kill();
    tokio::task::block_in_place(|| kafka.restart(2, Some(NEW)));
    assert_eq!(moved_since(&kafka, formatted), levels(&[]));
    // and again between the two requests of the plan
    gate.decide(|asked| if asked.tells_of_a_change() { Verdict::Hold } else { Verdict::Pass });
    stage.server().launch().await;
    gate.wait_for_held(0).await;
    assert_eq!(moved_since(&kafka, formatted), from_3_9_to_4_4());
    stage.server().kill();
    gate.open();
    stage.server().launch().await;

    let status = stage
        .wait_until("kafka", |status| {
            status.reason("Ready") == "Reached" && at_target(status, "kraft.version", 1)
        })
        .await;
    assert_eq!(moved_since(&kafka, formatted), from_3_9_to_4_4());
    assert_eq!(kafka.finalized()["kraft.version"], "1");
    assert_eq!(history(&status.0), with_kraft_version(from_3_9_to_4_4()));
    assert!(replica.process.runs(), "it went on by itself");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_cut_off_from_the_api_server_ends_with_its_lease_and_the_other_moves_each_level_once() {
    let mut kafka = half_rolled();
    let stage = Stage::without_operator().await;
    stage.install().await;
    let formatted = kafka.recorded(1).len();
    let gate = stage.gate().await;
    let mut first = Replica::start(&gate.kubeconfig, &SHORT_LEASE);
    first.wait_until_acting().await;
    let second = Replica::with_lease(&stage);
    second.wait_for("/readyz", 200, "standing by").await;
    stage.apply("kafka", release(&kafka)).await;
    stage.wait_for("kafka", "Ready", "WaitingForNodes").await;

    gate.decide(|_| Verdict::Hold);
    let ended = tokio::task::block_in_place(|| first.process.wait(PATIENCE)).expect("it ends by itself");
    assert!(!ended.success());
    assert!(first.process.tail(3).contains("ran out before it was renewed"), "{}", first.process.tail(3));
    second.wait_until_acting().await;
    assert_eq!(moved_since(&kafka, formatted), levels(&[]));
    tokio::task::block_in_place(|| kafka.restart(2, Some(NEW)));
    let status = stage.wait_for("kafka", "Ready", "Reached").await;
    assert_eq!(moved_since(&kafka, formatted), from_3_9_to_4_4());
    assert_eq!(history(&status.0), with_kraft_version(from_3_9_to_4_4()));
}
