//! The main job on real parts: resources on a real API server move real Kafka clusters, and say what they wait for.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "operator/stage.rs"]
mod stage;
mod testbed;

use serde_json::{Value, json};
use stage::Stage;
use testbed::{Kafka, NodeSpec, Quorum};

#[tokio::test(flavor = "multi_thread")]
async fn a_release_raises_every_level_but_kraft_version_and_then_nothing_is_written_or_sent() {
    let kafka = Kafka::single("4.4.0", &["--release-version", "3.9"]);
    let stage = Stage::set().await;
    stage.apply("kafka", json!({ "cluster": stage.brokers(&kafka), "releaseVersion": "4.4" })).await;

    let status = stage.wait_for("kafka", "Ready", "True").await;
    let levels = kafka.finalized();
    assert_eq!(levels["metadata.version"], "4.4-IV2");
    for (feature, level) in [
        ("kraft.version", "0"),
        ("transaction.version", "2"),
        ("group.version", "1"),
        ("eligible.leader.replicas.version", "1"),
        ("share.version", "2"),
        ("streams.version", "1"),
    ] {
        assert_eq!(levels[feature], level, "{feature}");
    }
    assert_eq!(status.reason("Ready"), "ReachedButHeld");
    assert_eq!((status.is("Reconciling"), status.is("Stalled")), ("False", "False"));
    assert!(status.message("ConsentRequired").contains("allowOneWay: [kraft.version]"), "{status:?}");
    assert_eq!(status.0["clusterId"], json!(kafka.cluster_id));
    assert_eq!(status.0["observedGeneration"], 1);
    assert_eq!(status.feature("kraft.version")["state"], "Held");
    let metadata = status.feature("metadata.version");
    assert_eq!((&metadata["finalized"], &metadata["target"]), (&json!(33), &json!(33)));
    assert_eq!((&metadata["supportedMin"], &metadata["supportedMax"]), (&json!(7), &json!(33)));
    let moved: Vec<&Value> = status.0["history"].as_array().unwrap().iter().map(|c| &c["feature"]).collect();
    assert_eq!(moved.len(), 6, "{moved:?}");

    // at rest: passes go on, and neither the API server nor the cluster sees anything of them but reads
    let before = stage.version_of("kafka").await;
    let writes = stage.writes();
    let epoch = kafka.finalized();
    stage.let_pass(10).await;
    assert_eq!(stage.version_of("kafka").await, before);
    assert_eq!(stage.writes(), writes);
    assert_eq!(kafka.finalized(), epoch);
    stage.end().await;
}
