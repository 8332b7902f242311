//! What nodes of each version say, and that each moves levels.

use std::collections::BTreeMap;

use kafka_features_operator::features::Level;
use kafka_features_operator::features::catalog::Catalog;
use kafka_features_operator::features::observed::{Known, NodeId, QuorumPlace};
use kafka_protocol::messages::{ApiVersionsRequest, ApiVersionsResponse};
use kafka_protocol::protocol::StrBytes;

use crate::cluster::*;
use crate::raw_request;
use crate::testbed::{Kafka, NodeSpec, Quorum};

/// A node's answer in a version that our client would not ask for.
fn raw_versions(address: &str, version: i16) -> ApiVersionsResponse {
    let request = ApiVersionsRequest::default()
        .with_client_software_name(StrBytes::from_static_str("test"))
        .with_client_software_version(StrBytes::from_static_str("1"));
    raw_request::ask(address, version, &request)
}

#[tokio::test]
async fn every_release_advertises_what_the_catalog_has_and_moves_by_both_kinds_of_endpoints() {
    for (version, lower) in [
        ("3.7.2", 18),
        ("3.8.1", 19),
        ("3.9.2", 20),
        ("4.0.2", 24),
        ("4.1.2", 26),
        ("4.2.2", 28),
        ("4.3.1", 29),
        ("4.4.0", 32),
    ] {
        let software = Catalog::kafka().software().iter().find(|known| version.starts_with(&known.release));
        let expected = &software.unwrap().supported;
        let top = expected.get(MV).unwrap().max;
        let kafka = Kafka::single(version, &[]);
        let (brokers, controllers) = (client(&kafka.brokers(), &[]), client(&[], &kafka.controllers()));
        let mut finalized = BTreeMap::new();
        for way in [&brokers, &controllers, &client(&kafka.brokers(), &kafka.controllers())] {
            let observed = way.observe().await.unwrap();
            assert_eq!(observed.cluster_id.0, kafka.cluster_id, "{version}");
            assert_eq!(node(&observed, 1).supported, Known::Yes(expected.clone()), "{version}");
            assert_eq!(observed.quorum.value().unwrap().leader, Known::Yes(NodeId(1)), "{version}");
            assert_eq!(observed.finalized.get(MV), top, "{version}");
            finalized.insert(format!("{:?}", observed.finalized), observed.finalized);
        }
        assert_eq!(finalized.len(), 1, "{version}: the same from everywhere: {finalized:?}");
        // the versions before 4.4 have levels above which nothing is lost, except where the last one changed metadata
        let lossless = Catalog::kafka().lowest_lossless(top).unwrap().level <= Level(lower);
        let down = step(MV, top.0, lower);
        if lossless {
            take(&brokers, &kafka, &down).await;
            take(&controllers, &kafka, &step(MV, lower, top.0)).await;
        } else {
            let error = refused(&brokers, &kafka, &down).await;
            assert!(error.to_string().contains("it might delete metadata information"), "{version}: {error}");
            assert_eq!(refused(&controllers, &kafka, &down).await.reason(), error.reason(), "{version}");
        }
    }
}

#[tokio::test]
async fn kafka_before_3_9_lists_no_feature_from_level_0_and_tells_brokers_no_controllers_address() {
    for (version, top) in [("3.7.2", "1-19"), ("3.8.1", "1-20")] {
        let nodes = [NodeSpec::controller(1, version), NodeSpec::broker(2, version)];
        let kafka = Kafka::start(&nodes, Quorum::Static, &[], &[]);
        let versions = raw_versions(&kafka.broker(2), 3);
        assert_eq!(versions.supported_features.len(), 1, "{version} at version 3: {versions:?}");

        let observed = client(&kafka.brokers(), &[]).observe().await.unwrap();
        assert_eq!(range(&observed, 2, MV).as_deref(), Some(top), "{version}");
        assert_eq!(range(&observed, 2, KRAFT), None, "{version}: not listed is not known");
        assert!(!observed.fenced_brokers_listed && !node(&observed, 2).lists_all_features, "{version}");
        assert!(why_unknown(&observed, 1).contains("bootstrapControllers"), "{}", why_unknown(&observed, 1));
        assert_eq!(node(&observed, 1).quorum, QuorumPlace::Voter);
        assert!(matches!(observed.min_insync_overrides, Known::No(_)));

        let observed = client(&kafka.brokers(), &kafka.controllers()).observe().await.unwrap();
        assert_eq!(range(&observed, 1, MV).as_deref(), Some(top), "{version}");
        assert_eq!(node(&observed, 1).registered, Known::Yes(true), "{version}");
    }
}

#[tokio::test]
async fn version_3_lists_metadata_version_alone_and_4_lists_all_while_finalized_levels_are_complete() {
    let kafka = Kafka::single("4.4.0", &[]);
    let ask = |version| raw_versions(&kafka.broker(1), version);
    let names = |version| -> Vec<String> {
        ask(version).supported_features.iter().map(|feature| feature.name.to_string()).collect()
    };
    assert_eq!(names(3), [MV]);
    assert_eq!(names(4).len(), 7);
    assert_eq!(ask(3).finalized_features.len(), ask(4).finalized_features.len());

    let observed = client(&kafka.brokers(), &[]).observe().await.unwrap();
    assert_eq!(range(&observed, 1, GROUP).as_deref(), Some("0-1"), "asked in version 4");
    assert!(node(&observed, 1).lists_all_features);
    // a static quorum: kraft.version is 0, and then not among the finalized ones
    assert!(ask(4).finalized_features.iter().all(|feature| feature.name.as_str() != KRAFT));
    assert_eq!(observed.finalized.get(KRAFT), Level(0));
    let listed = kafka.finalized();
    for (feature, level) in observed.finalized.iter().filter(|(feature, _)| feature.as_str() != MV) {
        assert_eq!(listed.get(feature.as_str()), Some(&level.to_string()), "{feature}");
    }
}
