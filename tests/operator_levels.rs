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
use testbed::{Kafka, NodeSpec, Oracle, Quorum};

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

/// How many requests to move levels a node that is broker and controller was sent: it logs each as both.
fn asked(kafka: &Kafka) -> usize {
    kafka.answered(1, "UPDATE_FEATURES") / 2
}

/// The levels that were recorded since so many records, in order, by whomever.
fn recorded_since(kafka: &Kafka, before: usize) -> Vec<(String, i64)> {
    kafka.recorded(1).split_off(before)
}

/// Waits until the resource is stalled for a reason, and goes on to be.
async fn stalls(stage: &Stage, reason: &str, parts: &[&str]) -> Status {
    let status = stage.wait_for("kafka", "Stalled", reason).await;
    assert_eq!(
        (status.is("Ready"), status.is("Reconciling"), status.is("Stalled")),
        ("False", "False", "True")
    );
    let message = status.message("Stalled");
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in {message:?}");
    }
    stage.let_pass(3).await;
    stage.wait_for("kafka", "Stalled", reason).await
}

/// Declares what stalls, and sees that nothing is sent for it.
async fn is_refused(stage: &Stage, kafka: &Kafka, spec: Value, reason: &str, parts: &[&str]) -> Status {
    let before = kafka.recorded(1).len();
    stage.apply("kafka", spec).await;
    let status = stalls(stage, reason, parts).await;
    assert_eq!(recorded_since(kafka, before), []);
    status
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dependency_moves_only_where_it_is_declared_and_then_in_the_same_request() {
    let kafka = Kafka::single_that_logs_requests(KAFKA, &["--feature", "metadata.version=22"]);
    let stage = Stage::set().await;
    let alone = spec(&kafka, json!({ "features": { ELR: 1 } }));
    let parts = [ELR, "needs metadata.version 23 (4.0-IV1)", "22 (4.0-IV0)", "declare metadata.version too"];
    let status = is_refused(&stage, &kafka, alone, "DependencyNotOwned", &parts).await;
    assert_eq!((history(&status), asked(&kafka)), (vec![], 0));

    // one request for both, asked about first and then sent: Kafka looks at the levels as they will be after it
    let before = kafka.recorded(1).len();
    stage.apply("kafka", spec(&kafka, json!({ "features": { ELR: 1, METADATA: 23 } }))).await;
    let status = stage.wait_for("kafka", "Ready", "Reached").await;
    assert_eq!(
        (&kafka.finalized()[ELR], &kafka.finalized()[METADATA]),
        (&"1".to_owned(), &"4.0-IV1".to_owned())
    );
    let mut moved = history(&status);
    moved.sort_unstable();
    assert_eq!(moved, [(ELR, 0, 1), (METADATA, 22, 23)]);
    assert_eq!((recorded_since(&kafka, before).len(), asked(&kafka)), (2, 2));

    // 23 changed the metadata, so that the dependency itself can never be taken from under the feature: the way ends
    // where it still holds, and Kafka agrees
    let under = json!({ "features": { METADATA: 22 }, "downgrade": "Safe" });
    is_refused(&stage, &kafka, spec(&kafka, under), "LossyDowngrade", &["22 (4.0-IV0)", "23 (4.0-IV1)"])
        .await;
    assert_eq!(asked(&kafka), 2);
    let theirs = kafka.features(&["downgrade", "--feature", "metadata.version=22", "--dry-run"]);
    assert!(theirs.stdout.contains("Refusing to perform the requested downgrade"), "{theirs:?}");

    // and back, from higher up
    stage.apply("kafka", spec(&kafka, json!({ "features": { ELR: 1, METADATA: 25 } }))).await;
    stage.wait_for("kafka", "Ready", "Reached").await;
    let (before, asked_before) = (kafka.recorded(1).len(), asked(&kafka));
    let down = json!({ "features": { ELR: 0, METADATA: 23 }, "downgrade": "Safe" });
    stage.apply("kafka", spec(&kafka, down)).await;
    stage.wait_for("kafka", "Ready", "Reached").await;
    let mut recorded = recorded_since(&kafka, before);
    recorded.sort();
    assert_eq!(recorded, [(ELR.to_owned(), 0), (METADATA.to_owned(), 23)], "each once");
    assert_eq!(asked(&kafka), asked_before + 2);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn levels_go_down_only_where_that_was_asked_for_and_nothing_is_lost() {
    let kafka = Kafka::single(KAFKA, &["--release-version", "4.2"]);
    let stage = Stage::set().await;
    let to = |level: &str, downgrade: &str| {
        spec(&kafka, json!({ "features": { METADATA: level }, "downgrade": downgrade }))
    };
    is_refused(&stage, &kafka, to("4.0-IV1", "Never"), "DowngradeForbidden", &["29 (4.2-IV1)", "downgrade"])
        .await;
    is_refused(&stage, &kafka, to("4.0-IV0", "Safe"), "LossyDowngrade", &["22 (4.0-IV0)", "23 (4.0-IV1)"])
        .await;
    let before = kafka.recorded(1).len();
    stage.apply("kafka", to("4.0-IV1", "Safe")).await;
    stage.wait_for("kafka", "Ready", "Reached").await;
    assert_eq!(recorded_since(&kafka, before), [(METADATA.to_owned(), 23)]);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_goes_down_as_a_whole_but_for_what_needs_consent() {
    let nodes = [NodeSpec::combined(1, KAFKA)];
    let kafka = Kafka::start(&nodes, Quorum::Dynamic, &["--release-version", "4.0"], &[]);
    let stage = Stage::set().await;
    let to = |release: &str, more: Value| {
        let mut whole = json!({ "releaseVersion": release });
        whole.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        spec(&kafka, whole)
    };
    let (never, far) = (to("4.0-IV1", json!({})), to("3.9", json!({ "downgrade": "Safe" })));
    let parts = ["25 (4.0-IV3)", "23 (4.0-IV1)"];
    is_refused(&stage, &kafka, never, "DowngradeForbidden", &parts).await;
    // group.version and transaction.version could go to 0, but the release as such can't be reached
    let parts = ["21 (3.9-IV0)", "23 (4.0-IV1)"];
    let status = is_refused(&stage, &kafka, far, "LossyDowngrade", &parts).await;
    assert_eq!(history(&status), []);

    // what is above a release's default is kept
    kafka.features(&["upgrade", "--feature", "share.version=1"]).ok();
    let before = kafka.recorded(1).len();
    stage.apply("kafka", to("4.0", json!({}))).await;
    let status = stage.wait_for("kafka", "Ready", "ReachedButHeld").await;
    assert_eq!(status.feature("share.version")["state"], "AboveTarget");
    assert!(
        status.message("ConsentRequired").contains("share.version 1 is above the target 0"),
        "{status:?}"
    );
    stage.let_pass(3).await;
    assert_eq!(recorded_since(&kafka, before), []);

    // lowering transaction.version is fatal for live producers, hence waits; nothing else does
    stage.apply("kafka", to("4.0-IV1", json!({ "downgrade": "Safe" }))).await;
    let status = stage.wait_for("kafka", "Ready", "ReachedButHeld").await;
    assert_eq!(status.feature("transaction.version")["state"], "Held");
    let held = status.message("ConsentRequired");
    assert!(held.contains("producers") && held.contains("allowOneWay: [transaction.version]"), "{held}");
    let mut recorded = recorded_since(&kafka, before);
    recorded.sort();
    assert_eq!(recorded, [(METADATA.to_owned(), 23), ("share.version".to_owned(), 0)]);
    let before = kafka.recorded(1).len();
    let consented = json!({ "downgrade": "Safe", "allowOneWay": ["transaction.version"] });
    stage.apply("kafka", to("4.0-IV1", consented)).await;
    stage.wait_for("kafka", "Ready", "Reached").await;
    assert_eq!(recorded_since(&kafka, before), [("transaction.version".to_owned(), 0)]);
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
    let before = kafka.recorded(1).len();
    kafka.features(&["upgrade", "--feature", "group.version=1"]).ok();
    stalls(&stage, "DowngradeForbidden", &["group.version"]).await;
    assert_eq!(recorded_since(&kafka, before), [group_of(1)], "theirs alone");
    let before = before + 1;
    stage.apply("kafka", group(0, "Safe")).await;
    stage.wait_for("kafka", "Ready", "Reached").await;
    stage.let_pass(3).await;
    assert_eq!(recorded_since(&kafka, before), [group_of(0)]);
    stage.end().await;
}

/// Lets everybody do so much with the cluster, and nothing else any more.
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
async fn a_missing_right_is_told_and_nothing_moves() {
    const DESCRIBE: i8 = 8;
    const CLUSTER_ACTION: i8 = 9;
    let nodes = [NodeSpec::controller(1, KAFKA), NodeSpec::broker(2, KAFKA)];
    let authorizer = [
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found=true",
    ];
    let kafka = Kafka::start(&nodes, Quorum::Static, &["--release-version", "4.3"], &authorizer);
    let stage = Stage::set().await;
    tokio::task::block_in_place(|| allow_only(&kafka, &[CLUSTER_ACTION, DESCRIBE]));
    let share = spec(&kafka, json!({ "features": { "share.version": 2 } }));
    let status = is_refused(&stage, &kafka, share, "NotAuthorized", &["ALTER on the cluster"]).await;
    assert_eq!(history(&status), []);
    assert_eq!(kafka.finalized()["share.version"], "1");
    stage.end().await;
}

/// Kafka 3.9 knows level 22 of `metadata.version` from before its release, when it was to change the metadata; in the
/// Kafka that released it, and so in the catalog, it does not.
#[tokio::test(flavor = "multi_thread")]
async fn what_only_the_cluster_can_refuse_is_told_in_its_own_words() {
    const OLDER: &str = "3.9.2";
    let unstable = ["unstable.feature.versions.enable=true"];
    let format = ["--feature", "metadata.version=22", "--feature", "transaction.version=1"];
    let kafka = Kafka::start(&[NodeSpec::combined(1, OLDER)], Quorum::Static, &format, &unstable);
    let before = kafka.recorded(1).len();
    let stage = Stage::set().await;
    // a joint request is refused as a whole; which feature it is about is found out by trying one after the other
    let both = json!({ "features": { METADATA: 21, "transaction.version": 0 }, "downgrade": "Safe" });
    let parts =
        ["The cluster refuses metadata.version 22 (4.0-IV0) -> 21 (3.9-IV0): ", "might delete metadata"];
    for down in [json!({ "features": { METADATA: 21 }, "downgrade": "Safe" }), both] {
        let down = spec(&kafka, down);
        let status = is_refused(&stage, &kafka, down, "RefusedByCluster", &parts).await;
        assert_eq!(history(&status), []);
    }
    // the level that it can do is enough to go on
    let rest = json!({ "features": { METADATA: 22, "transaction.version": 0 }, "downgrade": "Safe" });
    stage.apply("kafka", spec(&kafka, rest)).await;
    stage.wait_for("kafka", "Ready", "Reached").await;
    assert_eq!(recorded_since(&kafka, before), [("transaction.version".to_owned(), 0)]);
    stage.end().await;
}

/// Kafka's own tool, asked to forget a controller.
fn unregister_controller(kafka: &Kafka, id: i32) -> testbed::oracle::Answer {
    let (bootstrap, id) = (kafka.brokers().join(","), id.to_string());
    let args = ["unregister-controller", "--bootstrap-server", &bootstrap, "--id", &id];
    Oracle::of(KAFKA).run("kafka-cluster", &args)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_that_left_the_quorum_and_is_still_registered_is_named_until_it_supports_the_level() {
    let nodes = [NodeSpec::controller(1, KAFKA), NodeSpec::broker(2, KAFKA)];
    let mut kafka = Kafka::start(&nodes, Quorum::Dynamic, &["--release-version", "4.3"], &[]);
    tokio::task::block_in_place(|| {
        // it joins as an observer and registers, and then goes for good
        kafka.add(NodeSpec::controller(3, "4.3.1"));
    });
    let before = kafka.recorded(1).len();
    let stage = Stage::set().await;
    stage.apply("kafka", spec(&kafka, json!({ "features": { METADATA: "4.4-IV2" } }))).await;
    let status = stage.wait_for("kafka", "Ready", "WaitingForNodes").await;
    assert_eq!(status.blockers(METADATA), [(3, "7-30", 33)]);
    // a leader that has never heard from it does not list it, and its registration stays
    tokio::task::block_in_place(|| {
        kafka.kill(3);
        kafka.restart(1, None);
    });
    let status = stalls(&stage, "GhostController", &["controller 3", "neither voters nor observers"]).await;
    assert_eq!(status.0["blockers"][0]["why"], "Ghost", "{status:?}");
    assert_eq!((recorded_since(&kafka, before), history(&status)), (vec![], vec![]));

    // the level that would let Kafka forget it is the one that it holds up; the other way out leads on
    let told = unregister_controller(&kafka, 3).stdout;
    assert!(told.contains("does not support the controller unregistration API"), "{told}");
    tokio::task::block_in_place(|| kafka.restart(3, Some(KAFKA)));
    stage.wait_for("kafka", "Ready", "Reached").await;
    assert_eq!(kafka.finalized()[METADATA], "4.4-IV2");
    kafka.stop(3);
    let told = unregister_controller(&kafka, 3).stdout;
    assert!(told.contains("Controller 3 is no longer registered"), "{told}");
    stage.end().await;
}
