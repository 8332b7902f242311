//! Pods formatted for real: a kubelet runs them, the API server adds the init containers, and the operator, itself a pod,
//! grants what may be formatted.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "pods/stage.rs"]
mod stage;
mod testbed;
#[path = "pods/workload.rs"]
mod workload;

use std::time::Instant;

use serde_json::json;
use stage::Stage;
use workload::{Workload, resource};

/// Controllers that a dynamic quorum begins with, and brokers, as StatefulSets; the resource is there first.
#[tokio::test(flavor = "multi_thread")]
async fn a_dynamic_quorum_is_formatted_and_comes_up_at_the_declared_levels() {
    let stage = Stage::set(&["4.4.0"]).await;
    let namespace = "dynamic";
    stage.namespace(namespace);
    let mut controllers = Workload::new(namespace, "ctl", "controller", 0, "");
    controllers.quorum = controllers.bootstrap_servers(3);
    let brokers = Workload::new(namespace, "brk", "broker", 100, &controllers.quorum);
    let spec = json!({
        "releaseVersion": "4.3",
        "allowOneWay": ["kraft.version"],
        "format": { "quorum": "InitialControllers", "initialControllers": controllers.initial_controllers(3) },
    });
    stage.apply(&[resource(namespace, &[brokers.address(0)], &spec)]);
    controllers.volumes(&stage, 0..3).await;
    brokers.volumes(&stage, 0..3).await;
    let begun = Instant::now();
    stage.apply(&[controllers.objects(&stage), brokers.objects(&stage)].concat());
    let formatted = |status: &stage::Status| {
        let pods = status.pods();
        pods.len() == 6 && pods.iter().all(|(_, state, _)| state == "Formatted")
    };
    stage.until_status(namespace, "all pods are formatted", formatted).await;
    println!("formatted {:.1?} after the workload was applied", begun.elapsed());
    let status = stage.until_status(namespace, "the cluster is as declared", stage::Status::reached).await;
    println!("as declared {:.1?} after the workload was applied", begun.elapsed());
    assert_eq!(status.0["bootstrapped"], true);
    let parts: Vec<String> = status.pods().into_iter().map(|(_, _, part)| part).collect();
    assert_eq!(parts, ["Broker", "Broker", "Broker", "Voter", "Voter", "Voter"]);
    assert_eq!(stage.ready(namespace).len(), 6);
    let features = stage.tool(
        namespace,
        "brk-0",
        "org.apache.kafka.tools.FeatureCommand",
        &["--bootstrap-server", "localhost:9092", "describe"],
    );
    let level = |feature: &str| {
        let line = features.lines().find(|line| line.contains(feature)).unwrap_or_default();
        line.split("FinalizedVersionLevel:")
            .nth(1)
            .unwrap_or_default()
            .split_whitespace()
            .next()
            .map(str::to_owned)
    };
    assert_eq!(level("metadata.version").as_deref(), Some("4.3-IV0"), "{features}");
    assert_eq!(level("kraft.version").as_deref(), Some("1"));
    assert_eq!(level("share.version").as_deref(), Some("1"));
    assert_eq!(status.0["history"], serde_json::Value::Null, "nothing had to be moved");
}
