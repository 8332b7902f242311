//! A rolling upgrade of the image with the resource changed in the same commit, from manifests that have the init containers
//! written by hand.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "pods/stage.rs"]
mod stage;
mod testbed;
#[path = "pods/workload.rs"]
mod workload;

use serde_json::json;
use stage::{Form, Stage, Status};
use workload::{Workload, resource};

#[tokio::test(flavor = "multi_thread")]
async fn the_levels_follow_the_image_and_an_older_broker_gets_its_own_layout_on_the_way() {
    let stage = Stage::set_with(&["4.3.1", "4.4.0"], Form::ByHand).await;
    let namespace = "roll";
    stage.namespace(namespace);
    let mut controllers = Workload::new(namespace, "ctl", "controller", 0, "");
    controllers.quorum = controllers.static_voters(3);
    let mut brokers = Workload::new(namespace, "brk", "broker", 100, &controllers.quorum);
    (controllers.version, brokers.version) = ("4.3.1".into(), "4.3.1".into());
    let folders = controllers.volumes(&stage, 0..3).await;
    brokers.volumes(&stage, 0..3).await;
    let all = ["ctl-0", "ctl-1", "ctl-2", "brk-0", "brk-1", "brk-2"];
    let servers: Vec<String> = (0..3).map(|ordinal| brokers.address(ordinal)).collect();
    let declared = |release: &str| {
        resource(namespace, &servers, &json!({ "releaseVersion": release, "format": { "quorum": "Static" } }))
    };
    stage.apply(&[controllers.objects(&stage), brokers.objects(&stage)].concat());
    stage.apply(&[declared("4.3")]);
    stage.until_status(namespace, "the cluster is as declared", Status::reached).await;
    stage.until_ready(namespace, &all).await;
    assert!(folders[0].join("kraft/bootstrap.checkpoint").exists(), "the layout of 4.3");

    (controllers.version, brokers.version) = ("4.4.0".into(), "4.4.0".into());
    stage.apply(&[controllers.objects(&stage), brokers.objects(&stage), vec![declared("4.4")]].concat());
    let waiting = stage
        .until_status(namespace, "the operator waits for nodes", |status| {
            status.condition("Ready")["reason"] == "WaitingForNodes"
        })
        .await;
    assert!(!waiting.0["blockers"].as_array().unwrap().is_empty());

    // in mid-roll, a broker of the older software with an empty volume
    let mut older = Workload::new(namespace, "old", "broker", 10, &controllers.quorum);
    (older.replicas, older.version) = (1, "4.3.1".into());
    let folder = older.volumes(&stage, 0..1).await.remove(0);
    stage.apply(&older.objects(&stage));
    stage.until_ready(namespace, &["old-0"]).await;
    assert!(folder.join("kraft/bootstrap.checkpoint").exists(), "the layout of its own software");
    let blocked = stage
        .until_status(namespace, "only the older broker is waited for", |status| {
            let blockers = status.0["blockers"].as_array().into_iter().flatten();
            let ids: Vec<i64> = blockers.filter_map(|blocker| blocker["nodeId"].as_i64()).collect();
            !ids.is_empty() && ids.iter().all(|id| *id == 10)
        })
        .await;
    assert_eq!(blocked.condition("Ready")["reason"], "WaitingForNodes");

    older.version = "4.4.0".into();
    stage.apply(&older.objects(&stage));
    let done = stage
        .until_status(namespace, "the levels have followed", |status| {
            status.condition("Ready")["reason"] == "ReachedButHeld"
                || status.condition("Ready")["reason"] == "Reached"
        })
        .await;
    assert!(
        done.0["history"].as_array().unwrap().iter().any(|change| change["feature"] == "metadata.version")
    );
    stage.until_ready(namespace, &[&all[..], &["old-0"]].concat()).await;
    assert_eq!(stage.finalized(namespace, "brk-0", "metadata.version").as_deref(), Some("4.4-IV2"));
    assert_eq!(stage.finalized(namespace, "brk-0", "share.version").as_deref(), Some("2"));
}
