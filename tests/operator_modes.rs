//! What else a resource says besides its target: only to plan, to pause, which cluster it is about, and how long to wait
//! before levels are raised.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "operator/stage.rs"]
mod stage;
mod testbed;

use serde_json::{Value, json};
use stage::Stage;
use stage::kstatus::Kstatus;
use testbed::{Kafka, NodeSpec, Quorum};

const OLD: &str = "4.3.1";
const NEW: &str = "4.4.0";

fn one_node() -> Kafka {
    Kafka::start(&[NodeSpec::combined(1, NEW)], Quorum::Dynamic, &["--release-version", "4.3"], &[])
}

fn spec(kafka: &Kafka, more: Value) -> Value {
    let mut spec = json!({ "cluster": { "bootstrapServers": kafka.brokers() } });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    spec
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_shown_and_neither_carried_out_nor_in_anybodys_way() {
    let kafka = one_node();
    let stage = Stage::set().await;
    let target = json!({ "releaseVersion": "4.4", "mode": "Plan" });
    stage.apply("plan", spec(&kafka, target.clone())).await;
    let status = stage.wait_for("plan", "Ready", "PlanOnly").await;
    assert_eq!(
        (status.is("Ready"), status.is("Reconciling"), status.is("Stalled")),
        ("True", "False", "False")
    );
    assert_eq!(stage.kstatus("plan").await, Kstatus::Current);
    let planned: Vec<(&str, i64, i64)> = status.0["plan"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| (s["feature"].as_str().unwrap(), s["from"].as_i64().unwrap(), s["to"].as_i64().unwrap()))
        .collect();
    assert_eq!(planned.len(), 2, "{planned:?}");
    assert!(planned.contains(&("metadata.version", 30, 33)) && planned.contains(&("share.version", 1, 2)));
    stage.let_pass(4).await;
    assert_eq!(kafka.finalized()["metadata.version"], "4.3-IV0");
    assert_eq!(stage.get("plan").await.data["status"]["history"], Value::Null);

    // the older plan owns nothing
    stage.apply("apply", spec(&kafka, json!({ "releaseVersion": "4.4" }))).await;
    stage.wait_for("apply", "Ready", "Reached").await;
    assert_eq!(kafka.finalized()["metadata.version"], "4.4-IV2");
    stage.wait_for("plan", "Ready", "Reached").await;
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_paused_the_cluster_is_watched_and_nothing_is_changed() {
    let kafka = one_node();
    let stage = Stage::set().await;
    stage.apply("kafka", spec(&kafka, json!({ "features": { "share.version": 2 }, "paused": true }))).await;
    let status = stage.wait_for("kafka", "Paused", "True").await;
    assert_eq!(
        (status.is("Ready"), status.is("Reconciling"), status.is("Stalled")),
        ("Unknown", "False", "False")
    );
    assert_eq!(status.0["plan"][0]["feature"], "share.version", "{status:?}");
    stage.let_pass(3).await;
    assert_eq!(kafka.finalized()["share.version"], "1");

    stage.apply("kafka", spec(&kafka, json!({ "features": { "share.version": 2 } }))).await;
    let status = stage.wait_for("kafka", "Ready", "Reached").await;
    assert_eq!(status.is("Paused"), "absent");
    assert_eq!(kafka.finalized()["share.version"], "2");

    stage.apply("kafka", spec(&kafka, json!({ "features": { "share.version": 2 }, "paused": true }))).await;
    let status = stage.wait_for("kafka", "Paused", "True").await;
    assert_eq!(status.is("Ready"), "True", "as it was seen last");
    let another = json!({ "features": { "metadata.version": "4.4-IV2" }, "paused": true });
    stage.apply("kafka", spec(&kafka, another)).await;
    let status = stage.wait_for("kafka", "Ready", "False").await;
    assert!(status.message("Paused").contains("Steps to the target that are pending: 1"), "{status:?}");
    stage.let_pass(3).await;
    assert_eq!(kafka.finalized()["metadata.version"], "4.3-IV0");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_sent_to_another_cluster_than_the_pinned_one() {
    let kafka = one_node();
    let stage = Stage::set().await;
    let pinned = |id: &str| spec(&kafka, json!({ "clusterId": id, "features": { "share.version": 2 } }));
    stage.apply("wrong", pinned("AAAAAAAAAAAAAAAAAAAAAQ")).await;
    let status = stage.wait_for("wrong", "Stalled", "ClusterIdMismatch").await;
    let message = status.message("Stalled");
    assert!(message.contains("AAAAAAAAAAAAAAAAAAAAAQ") && message.contains(&kafka.cluster_id), "{message}");
    assert_eq!(stage.kstatus("wrong").await, Kstatus::Failed);
    stage.let_pass(3).await;
    assert_eq!(kafka.finalized()["share.version"], "1");
    stage.apply("right", pinned(&kafka.cluster_id)).await;
    let status = stage.wait_for("right", "Ready", "Reached").await;
    assert_eq!(status.0["clusterId"].as_str(), Some(kafka.cluster_id.as_str()));
    assert_eq!(kafka.finalized()["share.version"], "2");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn levels_are_raised_only_after_the_soak_which_no_restart_of_the_operator_begins_anew() {
    let nodes = [NodeSpec::controller(1, NEW), NodeSpec::broker(2, OLD), NodeSpec::broker(3, NEW)];
    let mut kafka = Kafka::start(&nodes, Quorum::Static, &["--release-version", "4.3"], &[]);
    let mut stage = Stage::set().await;
    let soak = json!({ "features": { "metadata.version": "4.4-IV2" }, "soak": "12s" });
    stage.apply("kafka", spec(&kafka, soak)).await;
    let status = stage.wait_for("kafka", "Ready", "WaitingForNodes").await;
    assert_eq!((status.0["blocking"].as_str(), &status.0["soak"]), (Some("2"), &Value::Null));
    let columns = stage.server().kubectl().args(["get", "kfeat", "-o", "wide"]).output().unwrap();
    let columns = String::from_utf8(columns.stdout).unwrap();
    assert!(columns.contains("WaitingForNodes   2 "), "{columns}");

    tokio::task::block_in_place(|| kafka.restart(2, Some(NEW)));
    // while it was away nobody could say what it supports: what is soaked without it begins anew with it
    let begun = stage
        .wait_until("kafka", |status| {
            status.reason("Ready") == "Soaking" && status.0["soak"]["nodes"] == json!([1, 2, 3])
        })
        .await;
    assert_eq!((begun.is("Ready"), begun.is("Reconciling")), ("False", "True"));
    assert_eq!(begun.0["soak"]["target"], json!({ "metadata.version": 33 }));

    stage.restart_operator().await;
    // away for a moment, and back
    tokio::task::block_in_place(|| kafka.restart(3, None));
    stage.let_pass(2).await;
    let later = stage.wait_until("kafka", |_| true).await;
    assert_eq!((later.0["soak"].clone(), later.reason("Ready")), (begun.0["soak"].clone(), "Soaking"));
    assert_eq!(kafka.finalized()["metadata.version"], "4.3-IV0");

    let status = stage.wait_for("kafka", "Ready", "Reached").await;
    assert_eq!(kafka.finalized()["metadata.version"], "4.4-IV2");
    let time = |value: &Value| value.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let waited = time(&status.0["history"][0]["time"]).duration_since(time(&begun.0["soak"]["since"]));
    assert!(waited.as_secs() >= 12, "{waited}");
    assert_eq!(status.0["soak"]["since"], begun.0["soak"]["since"], "and it stays known");
    stage.end().await;
}
