//! Addresses of the wrong kind or the wrong cluster, controllers that don't talk yet, missing rights.

use std::time::Duration;

use kafka_features_operator::features::Level;
use kafka_features_operator::features::observed::{ClusterId, Known, Node, NodeId};
use kafka_features_operator::kafka::Phase;
use kafka_protocol::messages::CreateAclsRequest;
use kafka_protocol::messages::create_acls_request::AclCreation;
use kafka_protocol::protocol::StrBytes;

use crate::cluster::*;
use crate::raw_request;
use crate::testbed::{Kafka, NodeSpec, Quorum};

#[tokio::test]
async fn an_address_of_the_wrong_kind_is_told_with_the_list_that_it_belongs_to() {
    let kafka = Kafka::start(
        &[NodeSpec::controller(1, "4.4.0"), NodeSpec::broker(2, "4.4.0")],
        Quorum::Static,
        &["--release-version", "4.3"],
        &[],
    );
    let swapped = client(&kafka.controllers(), &[]).observe().await.unwrap_err();
    assert!(
        swapped.to_string().contains("move it from bootstrapServers to bootstrapControllers"),
        "{swapped}"
    );
    let swapped = client(&[], &kafka.brokers()).observe().await.unwrap_err();
    assert!(
        swapped.to_string().contains("move it from bootstrapControllers to bootstrapServers"),
        "{swapped}"
    );
    let swapped = client(&kafka.brokers(), &kafka.brokers());
    let error = swapped.observe().await.unwrap_err();
    assert!(!error.is_retryable(), "the other list being right does not hide it: {error}");
    let error = swapped.update_features(&id(&kafka), &step(MV, 30, 31), false).await.unwrap_err();
    assert!(error.to_string().contains("move it") && !error.outcome_unknown(), "{error}");

    let wrong = ClusterId("another".to_owned());
    for way in [client(&kafka.brokers(), &[]), client(&[], &kafka.controllers())] {
        let error = way.update_features(&wrong, &step(MV, 30, 31), false).await.unwrap_err();
        assert_eq!(error.other_cluster().map(|(_, found)| found.clone()), Some(id(&kafka)), "{error}");
    }
    assert_eq!(client(&kafka.brokers(), &[]).observe().await.unwrap().finalized.get(MV), Level(30));
}

#[tokio::test]
async fn controllers_below_metadata_version_15_leave_it_to_the_brokers() {
    for version in ["3.7.2", "4.4.0"] {
        let nodes = [NodeSpec::controller(1, version), NodeSpec::broker(2, version)];
        let kafka = Kafka::start(&nodes, Quorum::Static, &["--release-version", "3.6"], &[]);
        let controllers = client(&[], &kafka.controllers());
        let error = controllers.observe().await.unwrap_err();
        assert!(error.to_string().contains("bootstrapServers"), "{version}: {error}");
        let error = controllers.update_features(&id(&kafka), &step(MV, 14, 15), false).await.unwrap_err();
        assert!(error.to_string().contains("bootstrapServers") && !error.outcome_unknown(), "{error}");

        let both = client(&kafka.brokers(), &kafka.controllers());
        assert_eq!(both.observe().await.unwrap().finalized.get(MV), Level(14), "{version}");
        take(&both, &kafka, &step(MV, 14, 15)).await;
        observe_until(&controllers, "controllers that answer", |observed| {
            let registered = |node: &Node| node.registered == Known::Yes(true);
            observed.finalized.get(MV) == Level(15) && observed.nodes.get(&NodeId(1)).is_some_and(registered)
        })
        .await;
    }
}

const CLUSTER: i8 = 4;
const LITERAL: i8 = 3;
const ALLOW: i8 = 3;
const DESCRIBE: i8 = 8;
const CLUSTER_ACTION: i8 = 9;

#[tokio::test]
async fn a_missing_right_is_named_and_what_needs_no_right_is_still_known() {
    let kafka = Kafka::start(
        &[NodeSpec::controller(1, "4.4.0"), NodeSpec::broker(2, "4.4.0")],
        Quorum::Static,
        &["--release-version", "4.3"],
        &[
            "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found=true",
        ],
    );
    // everything is allowed until the first rule names the cluster; then only what it says
    let allow = |operation| {
        AclCreation::default()
            .with_resource_type(CLUSTER)
            .with_resource_name(StrBytes::from_static_str("kafka-cluster"))
            .with_resource_pattern_type(LITERAL)
            .with_principal(StrBytes::from_static_str("User:ANONYMOUS"))
            .with_host(StrBytes::from_static_str("*"))
            .with_operation(operation)
            .with_permission_type(ALLOW)
    };
    let rules = CreateAclsRequest::default().with_creations(vec![allow(CLUSTER_ACTION), allow(DESCRIBE)]);
    let answer = raw_request::ask(&kafka.broker(2), 3, &rules);
    assert!(answer.results.iter().all(|result| result.error_code == 0), "{answer:?}");

    let brokers = client(&kafka.brokers(), &[]);
    let mut error = None;
    for _ in 0..60 {
        // the rules reach the nodes a moment later
        match brokers.update_features(&id(&kafka), &step(MV, 30, 31), true).await {
            Ok(()) => tokio::time::sleep(Duration::from_millis(250)).await,
            Err(refusal) => {
                error = Some(refusal);
                break;
            }
        }
    }
    let error = error.expect("ALTER is not allowed any more");
    assert_eq!(error.phase(), Phase::Authorization, "{error}");
    assert!(error.to_string().contains("grant ALTER on the cluster"), "{error}");
    assert!(!error.to_string().contains("processor") && !error.is_retryable(), "{error}");

    let error = client(&[], &kafka.controllers()).observe().await.unwrap_err();
    assert_eq!(error.phase(), Phase::Authorization, "controllers say nothing without ALTER: {error}");

    let observed = brokers.observe().await.unwrap();
    assert!(node(&observed, 1).supported.value().is_some(), "ranges need no right: {observed:?}");
    assert!(node(&observed, 2).supported.value().is_some());
    let Known::No(why) = &observed.min_insync_overrides else { panic!("{observed:?}") };
    assert!(why.contains("grant DESCRIBE_CONFIGS on the cluster"), "{why}");
}
