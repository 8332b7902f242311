//! Clusters that change under the operator's hands: rolled node by node, with nodes stopped, with their controllers
//! killed. Whatever happens, status names what is waited for, and every level moves once.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "operator/stage.rs"]
mod stage;
mod testbed;

use std::time::Duration;

use serde_json::{Value, json};
use stage::{Stage, Status};
use testbed::{Kafka, NodeSpec, Oracle, Quorum};

const OLD: &str = "4.0.2";
const NEW: &str = "4.4.0";
/// The features that a release raises together, from the levels of 3.9; `kraft.version` goes alone.
const TOGETHER: [&str; 6] = [
    "eligible.leader.replicas.version",
    "group.version",
    "metadata.version",
    "share.version",
    "streams.version",
    "transaction.version",
];

fn release(cluster: Value, allowed: &[&str]) -> Value {
    json!({ "cluster": cluster, "releaseVersion": "4.4", "allowOneWay": allowed })
}

/// The changes that status remembers, oldest first: when, and of what.
fn history(status: &Status) -> Vec<(&str, &str)> {
    let changes = status.0["history"].as_array().into_iter().flatten().rev();
    changes.map(|c| (c["time"].as_str().unwrap(), c["feature"].as_str().unwrap())).collect()
}

fn sorted<'a>(features: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut features: Vec<&str> = features.into_iter().collect();
    features.sort_unstable();
    features
}

/// The active controller, by Kafka's own tool.
fn leader(kafka: &Kafka) -> i32 {
    let brokers = kafka.brokers().join(",");
    let args = ["--bootstrap-server", &brokers, "describe", "--status"];
    let described = Oracle::of(NEW).run("kafka-metadata-quorum", &args).ok();
    let id = described.lines().find_map(|line| line.strip_prefix("LeaderId:")).expect("a leader");
    id.trim().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rolling_upgrade_of_brokers_and_controllers_is_followed_node_by_node() {
    let nodes = [
        NodeSpec::controller(1, OLD),
        NodeSpec::controller(2, OLD),
        NodeSpec::controller(3, NEW),
        NodeSpec::broker(4, OLD),
        NodeSpec::broker(5, NEW),
    ];
    let mut kafka = Kafka::start(&nodes, Quorum::Static, &["--release-version", "4.0"], &[]);
    let stage = Stage::set().await;
    stage.apply("kafka", release(json!({ "bootstrapServers": kafka.brokers() }), &[])).await;
    let mut old = vec![1, 2, 4];
    while let Some(next) = old.first().copied() {
        let held: Vec<(i64, &str, i64)> = old.iter().map(|id| (i64::from(*id), "7-25", 33)).collect();
        let status = stage
            .wait_until("kafka", |status| {
                status.reason("Ready") == "WaitingForNodes" && status.blockers("metadata.version") == held
            })
            .await;
        assert_eq!((status.is("Reconciling"), status.is("Stalled")), ("True", "False"), "{status:?}");
        for id in &old {
            let role = if *id == 4 { "broker" } else { "controller" };
            let named = format!("{role} {id} supports metadata.version 7-25");
            assert!(status.message("Ready").contains(&named), "{named}: {status:?}");
        }
        assert_eq!(kafka.finalized()["metadata.version"], "4.0-IV3");
        tokio::task::block_in_place(|| kafka.restart(next, Some(NEW)));
        old.remove(0);
    }
    // eligible leader replicas are held for as long as a broker can't say whether it has overrides that would go
    let status = stage
        .wait_until("kafka", |status| {
            let replicas = &status.feature("eligible.leader.replicas.version")["state"];
            status.reason("Ready") == "ReachedButHeld" && replicas == "AtTarget"
        })
        .await;
    assert_eq!(kafka.finalized()["metadata.version"], "4.4-IV2");
    assert_eq!(status.0["blockers"], Value::Null);
    let moved = sorted(history(&status).into_iter().map(|(_, feature)| feature));
    let raised = ["metadata.version", "eligible.leader.replicas.version", "share.version", "streams.version"];
    assert_eq!(moved, sorted(raised));
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_broker_blocks_by_its_version_until_it_is_unregistered() {
    let nodes = [
        NodeSpec::controller(1, NEW),
        NodeSpec::broker(2, NEW),
        NodeSpec::broker(3, OLD),
        NodeSpec::broker(4, NEW),
    ];
    let mut kafka = Kafka::start(&nodes, Quorum::Static, &["--release-version", "3.9"], &[]);
    for stopped in [3, 4] {
        kafka.stop(stopped);
    }
    let stage = Stage::set().await;
    stage.apply("kafka", release(json!({ "bootstrapServers": [kafka.broker(2)] }), &[])).await;
    let status = stage
        .wait_until("kafka", |status| {
            let blockers = status.0["blockers"].as_array();
            status.reason("Ready") == "WaitingForNodes" && blockers.is_some_and(|b| b[0]["fenced"] == true)
        })
        .await;
    let blockers = status.0["blockers"].as_array().unwrap();
    assert!(blockers.iter().all(|b| b["nodeId"] == 3 && b["registered"] == true), "{blockers:?}");
    assert!(status.message("Ready").contains("fenced broker 3 supports"), "{status:?}");
    stage.let_pass(4).await;
    assert_eq!(kafka.finalized()["metadata.version"], "3.9-IV0");

    // the other one is still stopped and registered, and what it last said of itself is enough for Kafka
    kafka.unregister(3);
    let status = stage.wait_for("kafka", "Ready", "ReachedButHeld").await;
    assert_eq!(kafka.finalized()["metadata.version"], "4.4-IV2");
    assert_eq!(status.feature("metadata.version")["state"], "AtTarget");
    assert_eq!(status.0["blockers"], Value::Null);
    let held = status.feature("eligible.leader.replicas.version");
    assert_eq!(held["state"], "Held", "broker 4 can't say whether it has overrides that would go");
    assert!(status.message("ConsentRequired").contains("broker 4"), "{status:?}");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn static_voters_keep_kraft_version_until_consent_and_it_moves_alone() {
    let nodes = [
        NodeSpec::controller(1, NEW),
        NodeSpec::controller(2, NEW),
        NodeSpec::controller(3, NEW),
        NodeSpec::broker(4, NEW),
    ];
    let kafka = Kafka::start(&nodes, Quorum::Static, &["--release-version", "3.9"], &[]);
    let stage = Stage::set().await;
    let cluster = json!({ "bootstrapControllers": kafka.controllers() });
    let both = json!({ "bootstrapControllers": kafka.controllers(), "bootstrapServers": kafka.brokers() });
    stage.apply("kafka", release(both.clone(), &[])).await;
    let status = stage.wait_for("kafka", "Ready", "ReachedButHeld").await;
    assert_eq!(sorted(history(&status).into_iter().map(|(_, feature)| feature)), TOGETHER);
    assert_eq!(status.feature("kraft.version")["state"], "Held");
    assert!(status.message("ConsentRequired").contains("kraft.version 0 -> 1 is held"), "{status:?}");
    assert_eq!(kafka.finalized()["kraft.version"], "0");

    stage.apply("kafka", release(cluster, &["kraft.version"])).await;
    let status = stage.wait_for("kafka", "Ready", "Reached").await;
    let history = history(&status);
    let (together, alone) = history.split_at(TOGETHER.len());
    assert_eq!(alone.iter().map(|(_, feature)| *feature).collect::<Vec<_>>(), ["kraft.version"]);
    assert!(together.iter().all(|(time, _)| *time == together[0].0 && *time <= alone[0].0), "{history:?}");
    assert_eq!(kafka.finalized()["kraft.version"], "1");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_killed_in_mid_change_makes_no_level_move_twice() {
    let nodes = [
        NodeSpec::controller(1, NEW),
        NodeSpec::controller(2, NEW),
        NodeSpec::controller(3, NEW),
        NodeSpec::broker(4, NEW),
    ];
    let mut kafka = Kafka::start(&nodes, Quorum::Static, &["--release-version", "3.9"], &[]);
    let formatted = kafka.recorded(4).len();
    let stage = Stage::set().await;
    let active = leader(&kafka);
    let cluster = json!({ "bootstrapControllers": kafka.controllers(), "bootstrapServers": kafka.brokers() });
    stage.apply("kafka", release(cluster.clone(), &["kraft.version"])).await;
    // the id is put on record, and what follows at once is the first request
    stage.wait_until("kafka", |status| status.0["clusterId"].is_string()).await;
    kafka.kill(active);
    // the rest goes on; kraft.version waits for a voter that can't be asked whether it moves it
    let gone = [(i64::from(active), "", 1)];
    stage
        .wait_until("kafka", |status| {
            status.reason("Ready") == "WaitingForNodes" && status.blockers("kraft.version") == gone
        })
        .await;
    let expected = ["4.4-IV2".to_owned(), "0".to_owned()];
    stage
        .until(|| ["metadata.version", "kraft.version"].map(|f| kafka.finalized()[f].clone()) == expected)
        .await;
    kafka.restart(active, None);
    let status = stage.wait_for("kafka", "Ready", "Reached").await;
    assert_eq!(kafka.finalized()["kraft.version"], "1");
    let told = sorted(history(&status).into_iter().map(|(_, feature)| feature));
    assert!(told.windows(2).all(|pair| pair[0] != pair[1]), "{told:?}");
    let moved = kafka.recorded(4).split_off(formatted);
    assert_eq!(sorted(moved.iter().map(|(feature, _)| &feature[..])), TOGETHER);

    // down, up and down again, the controller killed at moments spread over the time that a change takes
    for (round, delay) in [10, 40, 80].into_iter().enumerate() {
        let before = kafka.recorded(4).len();
        let level = i64::from(round % 2 == 1);
        let features = json!({ "group.version": level, "streams.version": level });
        stage.until(|| kafka.finalized().len() == 7).await;
        let active = leader(&kafka);
        let spec = json!({ "cluster": cluster, "features": features, "downgrade": "Safe" });
        stage.apply("kafka", spec).await;
        tokio::time::sleep(Duration::from_millis(delay)).await;
        kafka.kill(active);
        stage.wait_for("kafka", "Ready", "Reached").await;
        let moved = kafka.recorded(4).split_off(before);
        let wanted = ["group.version", "streams.version"].map(|feature| (feature.to_owned(), level));
        assert!(moved.len() == 2 && wanted.iter().all(|one| moved.contains(one)), "{moved:?}");
        kafka.restart(active, None);
    }
    stage.end().await;
}
