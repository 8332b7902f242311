//! Brokers that are away: how they show, and what they block.

use std::collections::BTreeSet;

use kafka_features_operator::features::observed::{Known, NodeId, Observed};

use crate::cluster::*;
use crate::testbed::{Kafka, NodeSpec, Oracle, Quorum};

#[tokio::test]
async fn a_stopped_broker_is_shown_registered_and_fenced_and_blocks() {
    let nodes =
        [NodeSpec::controller(1, "4.4.0"), NodeSpec::broker(2, "4.4.0"), NodeSpec::broker(3, "4.0.2")];
    let mut kafka = Kafka::start(&nodes, Quorum::Static, &["--release-version", "3.9"], &[]);
    let both = client(&[kafka.broker(2)], &kafka.controllers());

    // levels are the same everywhere; epochs are not, and mean nothing to each other
    let observed = both.observe().await.unwrap();
    let by_controller = client(&[], &kafka.controllers()).observe().await.unwrap();
    assert_eq!(observed.finalized, by_controller.finalized);
    assert!(observed.finalized_epoch > by_controller.finalized_epoch, "{observed:?} {by_controller:?}");
    assert_eq!(range(&observed, 2, MV).as_deref(), Some("7-33"));
    assert_eq!(range(&observed, 3, MV).as_deref(), Some("7-25"), "each node's own range");
    assert_eq!(observed.min_insync_overrides, Known::Yes(BTreeSet::new()));

    let configs = [
        "--entity-type",
        "brokers",
        "--entity-name",
        "2",
        "--alter",
        "--add-config",
        "min.insync.replicas=2",
    ];
    let bootstrap = kafka.broker(2);
    let args: Vec<&str> = ["--bootstrap-server", bootstrap.as_str()].into_iter().chain(configs).collect();
    Oracle::of("4.4.0").run("kafka-configs", &args).ok();
    observe_until(&both, "broker 2's own value", |observed| {
        observed.min_insync_overrides == Known::Yes(ids(&[2]))
    })
    .await;

    kafka.stop(3);
    let observed = observe_until(&both, "broker 3 fenced", |observed| {
        observed.nodes.get(&NodeId(3)).is_some_and(|node| node.fenced == Some(true))
    })
    .await;
    assert!(observed.fenced_brokers_listed);
    assert_eq!(node(&observed, 3).registered, Known::Yes(true));
    assert!(!why_unknown(&observed, 3).is_empty());
    let Known::No(why) = &observed.min_insync_overrides else { panic!("{observed:?}") };
    assert!(why.contains("broker 3"), "{why}");

    let error = refused(&both, &kafka, &step(MV, 21, 26)).await;
    assert_eq!(error.api_error().unwrap().code, 95);
    assert!(error.to_string().contains("Broker 3 only supports versions 7-25"), "{error}");
    assert!(!error.is_retryable(), "nothing changes by itself");
}

#[tokio::test]
async fn kafka_3_9_does_not_list_a_stopped_broker_and_still_counts_it() {
    let nodes = [NodeSpec::combined(1, "3.9.2"), NodeSpec::broker(2, "3.8.1")];
    let mut kafka = Kafka::start(&nodes, Quorum::Static, &["--release-version", "3.8"], &[]);
    let client = client(&[kafka.broker(1)], &kafka.controllers());
    kafka.stop(2);
    let listed = |observed: &Observed| {
        observed.nodes.get(&NodeId(2)).is_some_and(|node| node.roles.broker && node.fenced.is_some())
    };
    let observed = observe_until(&client, "broker 2 gone from the list", |observed| !listed(observed)).await;
    assert!(!observed.fenced_brokers_listed);
    if let Some(gone) = observed.nodes.get(&NodeId(2)) {
        let Known::No(why) = &gone.registered else { panic!("{gone:?}") };
        assert!(why.contains("does not list fenced brokers"), "{why}");
    }
    let error = refused(&client, &kafka, &step(MV, 20, 21)).await;
    assert!(error.to_string().contains("Broker 2 only supports versions 1-20"), "{error}");
}
