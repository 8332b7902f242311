//! Where levels may go and where not: dependencies up and down, downgrades without loss, drift, and what only the cluster
//! can refuse. What is refused changes nothing, which Kafka's own metadata log shows.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "raw_request/mod.rs"]
mod raw_request;
#[path = "operator/stage.rs"]
mod stage;
mod testbed;

use kafka_protocol::messages::CreateAclsRequest;
use kafka_protocol::messages::create_acls_request::AclCreation;
use kafka_protocol::protocol::StrBytes;
use serde_json::{Value, json};
use stage::{Stage, Status};
use testbed::{Kafka, NodeSpec, Quorum};

const KAFKA: &str = "4.4.0";
const ELR: &str = "eligible.leader.replicas.version";
const METADATA: &str = "metadata.version";

fn spec(kafka: &Kafka, more: Value) -> Value {
    let mut spec = json!({ "cluster": { "bootstrapServers": kafka.brokers() } });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    spec
}

/// The changes that a status remembers, oldest first.
fn history(status: &Status) -> Vec<(&str, i64, i64)> {
    let changes = status.0["history"].as_array().into_iter().flatten().rev();
    let level = |change: &Value, key: &str| change[key].as_i64().unwrap();
    changes.map(|c| (c["feature"].as_str().unwrap(), level(c, "from"), level(c, "to"))).collect()
}

/// How often each level was recorded since so many records, in order.
fn recorded_since(kafka: &Kafka, before: usize) -> Vec<(String, i64)> {
    kafka.recorded(1).split_off(before)
}

/// Waits until a resource is stalled for a reason, and sees that nothing is sent then.
async fn stalls(stage: &Stage, kafka: &Kafka, name: &str, reason: &str, parts: &[&str]) {
    let before = kafka.recorded(1).len();
    let status = stage.wait_for(name, "Stalled", reason).await;
    assert_eq!(
        (status.is("Ready"), status.is("Reconciling"), status.is("Stalled")),
        ("False", "False", "True")
    );
    let message = status.message("Stalled");
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in {message:?}");
    }
    stage.let_pass(3).await;
    assert_eq!(recorded_since(kafka, before), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dependency_goes_up_first_and_comes_down_last() {
    let kafka = Kafka::single(KAFKA, &["--feature", "metadata.version=22"]);
    let stage = Stage::set().await;
    stage.apply("elr", spec(&kafka, json!({ "features": { ELR: 1 } }))).await;
    let parts = [ELR, "needs metadata.version 23 (4.0-IV1)", "22 (4.0-IV0)"];
    stalls(&stage, &kafka, "elr", "DependencyNotOwned", &parts).await;

    let before = kafka.recorded(1).len();
    stage.apply("elr", spec(&kafka, json!({ "features": { ELR: 1, METADATA: 23 } }))).await;
    let status = stage.wait_for("elr", "Ready", "Reached").await;
    assert_eq!(
        (&kafka.finalized()[ELR], &kafka.finalized()[METADATA]),
        (&"1".to_owned(), &"4.0-IV1".to_owned())
    );
    let mut moved = history(&status);
    moved.sort_unstable();
    assert_eq!(moved, [(ELR, 0, 1), (METADATA, 22, 23)]);
    assert_eq!(recorded_since(&kafka, before).len(), 2, "each once");

    // up to where a way back without loss begins, and back down
    stage.apply("elr", spec(&kafka, json!({ "features": { ELR: 1, METADATA: 25 } }))).await;
    stage.wait_for("elr", "Ready", "Reached").await;
    let before = kafka.recorded(1).len();
    let down = json!({ "features": { ELR: 0, METADATA: 23 }, "downgrade": "Safe" });
    stage.apply("elr", spec(&kafka, down)).await;
    stage.wait_for("elr", "Ready", "Reached").await;
    // below 23 there is no way without loss, so what the other needs is there at either level: one request for both
    let mut recorded = recorded_since(&kafka, before);
    recorded.sort();
    assert_eq!(recorded, [(ELR.to_owned(), 0), (METADATA.to_owned(), 23)], "each once");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_is_not_lowered_under_what_another_feature_needs() {
    // Kafka's own controller does not look: it would take this
    let kafka = Kafka::single(
        KAFKA,
        &["--feature", "metadata.version=23", "--feature", "eligible.leader.replicas.version=1"],
    );
    let stage = Stage::set().await;
    let down = json!({ "features": { METADATA: 22 }, "downgrade": "Safe" });
    stage.apply("down", spec(&kafka, down.clone())).await;
    let stalled = stage.wait_until("down", |status| status.is("Stalled") == "True").await;
    // 23 changed the metadata, so that there is no way below it whatever else is finalized
    assert!(["LossyDowngrade", "DependencyWouldBreak"].contains(&stalled.reason("Stalled")), "{stalled:?}");
    stalls(&stage, &kafka, "down", stalled.reason("Stalled"), &["23"]).await;
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn levels_go_down_only_where_that_was_asked_for_and_nothing_is_lost() {
    let kafka = Kafka::single(KAFKA, &["--release-version", "4.2"]);
    let stage = Stage::set().await;
    let to = |level: &str, downgrade: &str| {
        spec(&kafka, json!({ "features": { METADATA: level }, "downgrade": downgrade }))
    };
    stage.apply("kafka", to("4.0-IV1", "Never")).await;
    stalls(&stage, &kafka, "kafka", "DowngradeForbidden", &["29 (4.2-IV1)", "downgrade"]).await;
    stage.apply("kafka", to("4.0-IV0", "Safe")).await;
    stalls(&stage, &kafka, "kafka", "LossyDowngrade", &["22 (4.0-IV0)", "23 (4.0-IV1)"]).await;
    let before = kafka.recorded(1).len();
    stage.apply("kafka", to("4.0-IV1", "Safe")).await;
    stage.wait_for("kafka", "Ready", "Reached").await;
    assert_eq!(recorded_since(&kafka, before), [(METADATA.to_owned(), 23)]);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn levels_that_others_change_are_set_right_once_within_policy() {
    let kafka = Kafka::single(KAFKA, &["--release-version", "4.3"]);
    let stage = Stage::set().await;
    let group = |level: i32, downgrade: &str| {
        spec(&kafka, json!({ "features": { "group.version": level }, "downgrade": downgrade }))
    };
    stage.apply("kafka", group(1, "Never")).await;
    stage.wait_for("kafka", "Ready", "Reached").await;

    let before = kafka.recorded(1).len();
    kafka.features(&["downgrade", "--feature", "group.version=0"]).ok();
    stage.until(|| kafka.finalized()["group.version"] == "1").await;
    stage.wait_for("kafka", "Ready", "Reached").await;
    stage.let_pass(3).await;
    let group_of = |level| ("group.version".to_owned(), level);
    assert_eq!(recorded_since(&kafka, before), [group_of(0), group_of(1)], "theirs, and ours once");

    // the other way policy has a say
    stage.apply("kafka", group(0, "Safe")).await;
    stage.wait_for("kafka", "Ready", "Reached").await;
    stage.apply("kafka", group(0, "Never")).await;
    stage.wait_for("kafka", "Ready", "Reached").await;
    kafka.features(&["upgrade", "--feature", "group.version=1"]).ok();
    stalls(&stage, &kafka, "kafka", "DowngradeForbidden", &["group.version"]).await;
    let before = kafka.recorded(1).len();
    stage.apply("kafka", group(0, "Safe")).await;
    stage.wait_for("kafka", "Ready", "Reached").await;
    stage.let_pass(3).await;
    assert_eq!(recorded_since(&kafka, before), [group_of(0)]);
    stage.end().await;
}

/// Lets everybody do what an operation says, and nothing else any more.
fn allow_only(kafka: &Kafka, operations: &[i8]) {
    const CLUSTER: i8 = 4;
    const LITERAL: i8 = 3;
    const ALLOW: i8 = 3;
    let rule = |operation: &i8| {
        AclCreation::default()
            .with_resource_type(CLUSTER)
            .with_resource_name(StrBytes::from_static_str("kafka-cluster"))
            .with_resource_pattern_type(LITERAL)
            .with_principal(StrBytes::from_static_str("User:ANONYMOUS"))
            .with_host(StrBytes::from_static_str("*"))
            .with_operation(*operation)
            .with_permission_type(ALLOW)
    };
    let rules = CreateAclsRequest::default().with_creations(operations.iter().map(rule).collect());
    let answer = raw_request::ask(&kafka.broker(2), 3, &rules);
    assert!(answer.results.iter().all(|result| result.error_code == 0), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_the_cluster_can_refuse_becomes_a_condition() {
    const DESCRIBE: i8 = 8;
    const CLUSTER_ACTION: i8 = 9;
    let nodes = [NodeSpec::controller(1, KAFKA), NodeSpec::broker(2, KAFKA)];
    let authorizer = [
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found=true",
    ];
    let kafka = Kafka::start(&nodes, Quorum::Static, &["--release-version", "4.3"], &authorizer);
    let stage = Stage::set().await;
    // a level of which every node says that it supports it, and which the controller then refuses for a reason of its own
    tokio::task::block_in_place(|| allow_only(&kafka, &[CLUSTER_ACTION, DESCRIBE]));
    stage.apply("kafka", spec(&kafka, json!({ "features": { "share.version": 2 } }))).await;
    stalls(&stage, &kafka, "kafka", "NotAuthorized", &["ALTER on the cluster"]).await;
    assert_eq!(kafka.finalized()["share.version"], "1");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_that_left_the_quorum_and_is_still_registered_is_named() {
    let nodes = [NodeSpec::controller(1, KAFKA), NodeSpec::broker(2, KAFKA)];
    let mut kafka = Kafka::start(&nodes, Quorum::Dynamic, &["--release-version", "4.3"], &[]);
    tokio::task::block_in_place(|| {
        // it joins as an observer and registers, and then goes for good
        kafka.add(NodeSpec::controller(3, "4.3.1"));
    });
    let stage = Stage::set().await;
    stage.apply("kafka", spec(&kafka, json!({ "features": { METADATA: "4.4-IV2" } }))).await;
    let status = stage.wait_for("kafka", "Ready", "WaitingForNodes").await;
    assert_eq!(status.blockers(METADATA), [(3, "7-30", 33)]);
    // a leader that has never heard from it does not list it, and its registration stays
    tokio::task::block_in_place(|| {
        kafka.kill(3);
        kafka.restart(1, None);
    });
    stalls(&stage, &kafka, "kafka", "GhostController", &["controller 3", "neither voters nor observers"])
        .await;
    let status = stage.wait_for("kafka", "Stalled", "GhostController").await;
    assert_eq!(status.0["blockers"][0]["why"], "Ghost", "{status:?}");
    assert_eq!(kafka.finalized()[METADATA], "4.3-IV0");
    stage.end().await;
}
