//! The main job on real parts: resources on a real API server move real Kafka clusters, and say what they wait for.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "operator/replica.rs"]
mod replica;
#[path = "operator/replicas.rs"]
mod replicas;
#[path = "operator/stage.rs"]
mod stage;
mod testbed;

use std::collections::BTreeMap;
use std::time::Duration;

use kafka_features_operator::controller::Pace;
use serde_json::{Value, json};
use stage::{REST, Stage};
use testbed::{Kafka, NodeSpec, Quorum};

fn levels(levels: &[(&str, &str)]) -> BTreeMap<String, String> {
    levels.iter().map(|(feature, level)| ((*feature).to_owned(), (*level).to_owned())).collect()
}

/// The levels of 4.4 by default, but for `kraft.version`, which a release raises only with consent.
fn of_4_4() -> BTreeMap<String, String> {
    levels(&[
        ("metadata.version", "4.4-IV2"),
        ("kraft.version", "0"),
        ("transaction.version", "2"),
        ("group.version", "1"),
        ("eligible.leader.replicas.version", "1"),
        ("share.version", "2"),
        ("streams.version", "1"),
    ])
}

fn brokers(kafka: &Kafka) -> Value {
    json!({ "bootstrapServers": kafka.brokers() })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_raises_every_level_but_kraft_version_and_then_nothing_is_written_or_sent() {
    let kafka = Kafka::single_that_logs_requests("4.4.0", &["--release-version", "3.9"]);
    let stage = Stage::set().await;
    stage.apply("kafka", json!({ "cluster": brokers(&kafka), "releaseVersion": "4.4" })).await;

    let status = stage.wait_for("kafka", "Ready", "True").await;
    assert_eq!(kafka.finalized(), of_4_4());
    assert_eq!(status.reason("Ready"), "ReachedButHeld");
    assert_eq!((status.is("Reconciling"), status.is("Stalled")), ("False", "False"));
    assert!(status.message("ConsentRequired").contains("allowOneWay: [kraft.version]"), "{status:?}");
    assert_eq!(
        (&status.0["clusterId"], &status.0["observedGeneration"]),
        (&json!(kafka.cluster_id), &json!(1))
    );
    assert_eq!(status.feature("kraft.version")["state"], "Held");
    let metadata = status.feature("metadata.version");
    assert_eq!((&metadata["finalized"], &metadata["target"]), (&json!(33), &json!(33)));
    assert_eq!((&metadata["supportedMin"], &metadata["supportedMax"]), (&json!(7), &json!(33)));
    let moved: Vec<&Value> = status.0["history"].as_array().unwrap().iter().map(|c| &c["feature"]).collect();
    assert_eq!(moved.len(), 6, "{moved:?}");
    let told: Vec<String> = stage.events("kafka").await.into_iter().map(|(reason, _)| reason).collect();
    assert_eq!(told, ["AdoptingCluster", "LevelsChanged", "ReachedButHeld"]);

    // at rest: passes go on, and the API server sees nothing of them but reads, nor does Kafka; what others keep in
    // status stays
    stage.add_foreign_condition("kafka").await;
    let (writes, version) = (stage.writes_so_far().await, stage.version_of("kafka").await);
    let (reads, changes) = (stage.reads(), kafka.answered(1, "UPDATE_FEATURES"));
    let looks = kafka.answered(1, "DESCRIBE_CLUSTER");
    assert!(changes > 0, "the request log has what was sent before");
    stage.until(|| stage.reads() >= reads + 10).await;
    assert!(kafka.answered(1, "DESCRIBE_CLUSTER") >= looks + 9, "passes went on");
    assert_eq!(kafka.answered(1, "UPDATE_FEATURES"), changes);
    assert_eq!((stage.version_of("kafka").await, stage.writes()), (version, writes));
    assert_eq!(stage.wait_for("kafka", "Foreign", "True").await.reason("Ready"), "ReachedButHeld");

    // consent is all that kraft.version waited for
    let consented = json!({
        "cluster": brokers(&kafka),
        "releaseVersion": "4.4",
        "allowOneWay": ["kraft.version"],
    });
    stage.apply("kafka", consented).await;
    let status = stage.wait_for("kafka", "Ready", "Reached").await;
    assert_eq!((status.is("ConsentRequired"), status.is("Foreign")), ("absent", "True"));
    assert_eq!(kafka.finalized()["kraft.version"], "1");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_declared_features_move_and_drift_is_set_right() {
    let kafka = Kafka::single("4.4.0", &["--release-version", "3.9"]);
    let before = kafka.finalized();
    let stage = Stage::set().await;
    let spec = json!({ "cluster": brokers(&kafka), "features": { "group.version": 1 } });
    stage.apply("kafka", spec).await;
    stage.wait_for("kafka", "Ready", "Reached").await;
    let mut expected = before.clone();
    expected.insert("group.version".into(), "1".into());
    assert_eq!(kafka.finalized(), expected);

    // lowered behind the operator's back, and raised again
    kafka.features(&["downgrade", "--feature", "group.version=0"]).ok();
    stage.until(|| kafka.finalized() == expected).await;

    // a level below the finalized one is a contradiction until downgrades are allowed
    let lower = |downgrade: &str| json!({ "cluster": brokers(&kafka), "features": { "group.version": 0 }, "downgrade": downgrade });
    stage.apply("kafka", lower("Never")).await;
    let status = stage.wait_for("kafka", "Stalled", "True").await;
    assert_eq!(status.reason("Stalled"), "DowngradeForbidden");
    assert!(status.message("Stalled").contains("set downgrade to Safe"), "{status:?}");
    assert_eq!(kafka.finalized(), expected);
    stage.apply("kafka", lower("Safe")).await;
    stage.wait_for("kafka", "Ready", "Reached").await;
    assert_eq!(kafka.finalized(), before);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_target_is_told_with_the_way_out_and_nothing_is_sent() {
    let kafka = Kafka::single("4.4.0", &["--release-version", "4.4"]);
    let before = kafka.finalized();
    let stage = Stage::set().await;
    let cases = [
        (json!({ "releaseVersion": "9.9" }), "UnknownRelease", "by number under features"),
        (json!({ "releaseVersion": "4.5-IV0" }), "UnstableRelease", "4.5-IV0"),
        (
            json!({ "features": { "metadata.version": "4.3" }, "downgrade": "Safe" }),
            "LossyDowngrade",
            "33 (4.4-IV2)",
        ),
        (json!({ "features": { "metadata.version": 30 } }), "DowngradeForbidden", "30 (4.3-IV0)"),
    ];
    for (spec, reason, text) in cases {
        let mut whole = json!({ "cluster": brokers(&kafka) });
        whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        stage.apply("kafka", whole).await;
        let status = stage.wait_for("kafka", "Ready", reason).await;
        assert_eq!((status.is("Ready"), status.is("Stalled")), ("False", "True"), "{status:?}");
        assert!(status.message("Stalled").contains(text), "{status:?}");
        assert!(status.0["features"].as_array().is_some_and(|features| !features.is_empty()));
    }
    // a feature that no node knows is one that nodes may come to know
    stage.apply("kafka", json!({ "cluster": brokers(&kafka), "features": { "future.version": 1 } })).await;
    let status = stage.wait_for("kafka", "Ready", "WaitingForNodes").await;
    assert!(status.message("Ready").contains("1 does not know future.version"), "{status:?}");
    stage.let_pass(4).await;
    assert_eq!(kafka.finalized(), before);
    assert!(stage.get("kafka").await.data["status"]["history"].is_null());
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_half_rolled_cluster_waits_for_every_old_node_by_name_and_goes_on_by_itself() {
    let nodes = [
        NodeSpec::controller(1, "4.4.0"),
        NodeSpec::broker(2, "4.0.2"),
        NodeSpec::broker(3, "4.0.2"),
        NodeSpec::broker(4, "4.4.0"),
    ];
    let mut kafka = Kafka::start(&nodes, Quorum::Static, &["--release-version", "4.0"], &[]);
    let stage = Stage::set().await;
    let cluster = json!({ "bootstrapServers": [kafka.broker(4)] });
    stage.apply("kafka", json!({ "cluster": cluster, "releaseVersion": "4.4" })).await;

    let status = stage.wait_for("kafka", "Ready", "WaitingForNodes").await;
    assert_eq!(
        (status.is("Ready"), status.is("Reconciling"), status.is("Stalled")),
        ("False", "True", "False")
    );
    let metadata: Vec<(i64, &str, i64)> = status.blockers("metadata.version");
    assert_eq!(metadata, [(2, "7-25", 33), (3, "7-25", 33)]);
    assert!(
        status.message("Ready").contains("broker 2 supports") && status.message("Ready").contains("broker 3")
    );

    // an old broker that has only been stopped is still registered, and Kafka holds it against the change
    kafka.restart(3, Some("4.4.0"));
    kafka.stop(2);
    let status = stage.wait_until("kafka", |status| status.blockers("metadata.version").len() == 1).await;
    assert_eq!(status.blockers("metadata.version"), [(2, "7-25", 33)]);
    assert_eq!(status.reason("Ready"), "WaitingForNodes");
    assert_eq!(kafka.finalized()["metadata.version"], "4.0-IV3");

    kafka.restart(2, Some("4.4.0"));
    // eligible leader replicas are held for as long as a broker can't say whether it has overrides that would go
    stage
        .wait_until("kafka", |status| {
            let replicas = &status.feature("eligible.leader.replicas.version")["state"];
            status.is("Ready") == "True" && replicas == "AtTarget"
        })
        .await;
    assert_eq!(kafka.finalized(), of_4_4());
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_resources_share_a_cluster_and_a_younger_claim_waits_for_the_older_to_go() {
    let kafka = Kafka::single("4.4.0", &["--release-version", "3.9"]);
    // only being woken makes anybody look again in time
    let long = Duration::from_secs(3600);
    let pace = Pace { soon: REST, slow: long, first_retry: long, longest_retry: long };
    let stage = Stage::set_with(pace).await;
    let spec = |features: Value| json!({ "cluster": brokers(&kafka), "features": features });
    stage.apply("first", spec(json!({ "group.version": 1 }))).await;
    stage.wait_for("first", "Ready", "Reached").await;
    // creation times have whole seconds
    tokio::time::sleep(Duration::from_millis(1100)).await;
    stage.apply("second", spec(json!({ "streams.version": 1 }))).await;
    stage.wait_for("second", "Ready", "Reached").await;
    stage.apply("third", spec(json!({ "group.version": 0, "share.version": 1 }))).await;
    let status = stage.wait_for("third", "Stalled", "Conflict").await;
    assert!(status.message("Stalled").contains("default/first owns group.version"), "{status:?}");
    assert_eq!(kafka.finalized()["share.version"], "0");

    stage.apply("third", spec(json!({ "group.version": 1, "share.version": 1 }))).await;
    stage.wait_for("third", "Stalled", "Conflict").await;
    stage.delete("first").await;
    stage.wait_for("third", "Ready", "Reached").await;
    let now = kafka.finalized();
    assert_eq!(
        (&now["group.version"][..], &now["streams.version"][..], &now["share.version"][..]),
        ("1", "1", "1")
    );
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_leads_to_another_cluster_changes_nothing_there() {
    let kafka = Kafka::single("4.4.0", &["--release-version", "4.4"]);
    let other = Kafka::single("4.4.0", &["--release-version", "3.9"]);
    let before = other.finalized();
    let stage = Stage::set().await;
    stage.apply("kafka", json!({ "cluster": brokers(&kafka), "releaseVersion": "4.4" })).await;
    stage.wait_for("kafka", "Ready", "True").await;
    stage.apply("kafka", json!({ "cluster": brokers(&other), "releaseVersion": "4.4" })).await;
    let status = stage.wait_for("kafka", "Stalled", "ClusterIdMismatch").await;
    let message = status.message("Stalled");
    assert!(message.contains(&kafka.cluster_id) && message.contains(&other.cluster_id), "{message}");
    assert_eq!(status.0["clusterId"], json!(kafka.cluster_id));
    stage.let_pass(4).await;
    assert_eq!(other.finalized(), before);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resource_in_trouble_is_told_so_and_stops_no_other() {
    let kafka = Kafka::single("4.4.0", &["--release-version", "4.4"]);
    let stage = Stage::set_without_rules().await;
    let nobody = testbed::ports::Port::lease().address();
    stage.apply("broken", json!({ "cluster": 5 })).await;
    stage.apply("odd", json!({ "cluster": { "bootstrapServers": ["kafka"] } })).await;
    stage
        .apply("alone", json!({ "cluster": { "bootstrapServers": [nobody] }, "releaseVersion": "4.4" }))
        .await;
    stage.apply("well", json!({ "cluster": brokers(&kafka), "releaseVersion": "4.4" })).await;

    stage.wait_for("well", "Ready", "True").await;
    let status = stage.wait_for("broken", "Stalled", "InvalidSpec").await;
    assert!(
        status.message("Stalled").contains("cluster") || status.message("Stalled").contains("integer"),
        "{status:?}"
    );
    let status = stage.wait_for("odd", "Stalled", "InvalidSpec").await;
    assert!(status.message("Stalled").contains("\"kafka\" has no port; write host:port"), "{status:?}");
    let status = stage.wait_for("alone", "Ready", "ClusterUnreachable").await;
    assert_eq!((status.is("Ready"), status.is("Reconciling")), ("False", "True"));
    assert!(
        status.message("Ready").contains(&nobody) && status.message("Ready").contains("refused"),
        "{status:?}"
    );

    // and none of them keeps writing
    let writes = stage.writes_so_far().await;
    stage.let_pass(10).await;
    assert_eq!(stage.writes(), writes);
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_definition_is_waited_for() {
    let stage = Stage::bare().await;
    stage.let_pass(3).await;
    stage.install().await;
    let nobody = testbed::ports::Port::lease().address();
    stage.apply("kafka", json!({ "cluster": { "bootstrapServers": [nobody] } })).await;
    stage.wait_for("kafka", "Ready", "ClusterUnreachable").await;
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_binary_runs_until_it_is_told_to_end() {
    let stage = Stage::without_operator().await;
    stage.install().await;
    let mut operator = tokio::process::Command::new(env!("CARGO_BIN_EXE_kafka-features-operator"))
        .args([
            "run",
            "--namespace",
            "default",
            "--lease-namespace",
            stage::ACCOUNT,
            "--listen",
            "127.0.0.1:0",
        ])
        .env("KUBECONFIG", stage.kubeconfig())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let nobody = testbed::ports::Port::lease().address();
    stage.apply("kafka", json!({ "cluster": { "bootstrapServers": [nobody] } })).await;
    stage.wait_for("kafka", "Ready", "ClusterUnreachable").await;
    let pid = rustix::process::Pid::from_raw(operator.id().unwrap().try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let ended =
        tokio::time::timeout(Duration::from_secs(30), operator.wait()).await.expect("it ends").unwrap();
    assert!(ended.success(), "{ended}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_that_kafka_itself_does_not_ask_is_not_left_behind() {
    // below metadata.version 15 controllers don't register: Kafka takes the change, and an older one dies of it
    let nodes = [
        NodeSpec::controller(1, "3.8.1"),
        NodeSpec::controller(2, "3.8.1"),
        NodeSpec::controller(3, "3.7.2"),
        NodeSpec::broker(4, "3.8.1"),
    ];
    let mut kafka = Kafka::start(&nodes, Quorum::Static, &["--release-version", "3.6"], &[]);
    let before = kafka.finalized();
    let stage = Stage::set().await;
    let spec = |cluster: Value| json!({ "cluster": cluster, "features": { "metadata.version": "3.8" } });
    let both = json!({ "bootstrapServers": kafka.brokers(), "bootstrapControllers": kafka.controllers() });

    // with brokers alone nobody can say what the controllers support
    stage.apply("kafka", spec(brokers(&kafka))).await;
    let status = stage.wait_for("kafka", "Ready", "WaitingForNodes").await;
    let blocking: Vec<i64> = status.blockers("metadata.version").iter().map(|blocker| blocker.0).collect();
    assert_eq!(blocking, [1, 2, 3], "{status:?}");

    // with all their addresses it is known what all of them support, if not which one is old
    stage.apply("kafka", spec(both)).await;
    let status = stage.wait_until("kafka", |status| status.message("Ready").contains("19")).await;
    assert_eq!(status.reason("Ready"), "WaitingForNodes");
    stage.let_pass(3).await;
    assert_eq!(kafka.finalized(), before);

    kafka.restart(3, Some("3.8.1"));
    stage.wait_for("kafka", "Ready", "Reached").await;
    assert_eq!(kafka.finalized()["metadata.version"], "3.8-IV0");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn addresses_of_two_clusters_change_neither_and_dead_ones_are_told_in_the_same_words() {
    let (one, other) = (
        Kafka::single("4.4.0", &["--release-version", "3.9"]),
        Kafka::single("4.4.0", &["--release-version", "3.9"]),
    );
    let (of_one, of_other) = (one.finalized(), other.finalized());
    let stage = Stage::set().await;
    let mixed = json!({ "bootstrapServers": [one.broker(1), other.broker(1)] });
    stage.apply("mixed", json!({ "cluster": mixed, "releaseVersion": "4.4" })).await;
    let dead: Vec<testbed::ports::Port> = (0..3).map(|_| testbed::ports::Port::lease()).collect();
    let dead = json!({ "bootstrapServers": dead.iter().map(|port| port.address()).collect::<Vec<_>>() });
    stage.apply("dead", json!({ "cluster": dead, "releaseVersion": "4.4" })).await;

    let status = stage.wait_for("mixed", "Stalled", "ClusterIdMismatch").await;
    let message = status.message("Stalled");
    assert!(message.contains(&one.cluster_id) && message.contains(&other.cluster_id), "{message}");
    stage.wait_for("dead", "Ready", "ClusterUnreachable").await;
    let writes = stage.writes_so_far().await;
    stage.let_pass(10).await;
    assert_eq!(stage.writes(), writes, "the same trouble is written once");
    assert_eq!((one.finalized(), other.finalized()), (of_one, of_other));
    stage.end().await;
}
