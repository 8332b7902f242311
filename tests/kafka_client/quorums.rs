//! Static and dynamic quorums, their leaders, and those who are no longer in them.

use std::time::Duration;

use kafka_features_operator::features::Level;
use kafka_features_operator::features::observed::{Known, NodeId, Observed, QuorumPlace};
use kafka_features_operator::kafka::Timeouts;
use kafka_protocol::messages::describe_quorum_request::{PartitionData, TopicData};
use kafka_protocol::messages::{DescribeQuorumRequest, TopicName};
use kafka_protocol::protocol::StrBytes;

use crate::cluster::*;
use crate::raw_request;
use crate::testbed::{Kafka, NodeSpec, Quorum};

#[tokio::test]
async fn kraft_version_is_raised_where_kafka_does_it_and_not_asked_for_where_it_only_says_so() {
    for version in ["3.9.2", "4.0.2"] {
        let kafka = Kafka::start(
            &[NodeSpec::controller(1, version), NodeSpec::broker(2, version)],
            Quorum::Static,
            &["--release-version", "3.8"],
            &[],
        );
        for way in [client(&kafka.brokers(), &[]), client(&[], &kafka.controllers())] {
            let error = refused(&way, &kafka, &step(KRAFT, 0, 1)).await;
            assert!(error.to_string().contains("not moved by Kafka before 4.1"), "{version}: {error}");
        }
        // this is what it would have met with
        let answer = raw_request::ask(&kafka.broker(2), 1, &raw_update(KRAFT, 1, 1, false));
        assert_eq!(answer.error_code, 0, "{version}: {answer:?}");
        let quorum = raw_request::ask(&kafka.broker(2), 2, &describe_quorum());
        let voter = &quorum.topics[0].partitions[0].current_voters[0];
        assert!(voter.replica_directory_id.is_nil(), "{version}: still a static quorum: {voter:?}");
    }
    for version in ["4.1.2", "4.4.0"] {
        let kafka = Kafka::single(version, &["--release-version", "3.8"]);
        let brokers = client(&kafka.brokers(), &[]);
        take(&brokers, &kafka, &step(KRAFT, 0, 1)).await;
        assert_eq!(kafka.finalized().get(KRAFT).map(String::as_str), Some("1"), "{version}");
        let error = refused(&brokers, &kafka, &step(KRAFT, 1, 0)).await;
        assert!(
            error.to_string().contains("Can't downgrade the version of this feature"),
            "{version}: {error}"
        );
    }
}

fn describe_quorum() -> DescribeQuorumRequest {
    let partition = PartitionData::default().with_partition_index(0);
    let topic = TopicData::default()
        .with_topic_name(TopicName(StrBytes::from_static_str("__cluster_metadata")))
        .with_partitions(vec![partition]);
    DescribeQuorumRequest::default().with_topics(vec![topic])
}

#[tokio::test]
async fn from_3_9_brokers_alone_lead_to_the_controllers() {
    let nodes = [NodeSpec::controller(1, "3.9.2"), NodeSpec::broker(2, "3.9.2")];
    let kafka = Kafka::start(&nodes, Quorum::Static, &[], &[]);
    let observed = client(&kafka.brokers(), &[]).observe().await.unwrap();
    assert_eq!(range(&observed, 1, KRAFT).as_deref(), Some("0-1"));
    assert_eq!(node(&observed, 1).registered, Known::Yes(true));
    assert!(!observed.fenced_brokers_listed, "4.0 is the first to list them");
}

#[tokio::test]
async fn a_dynamic_quorum_shows_observer_controllers_and_a_ghost_when_one_is_gone_for_good() {
    let nodes = [NodeSpec::controller(1, "4.4.0"), NodeSpec::broker(2, "4.4.0")];
    let mut kafka = Kafka::start(&nodes, Quorum::Dynamic, &[], &[]);
    kafka.add(NodeSpec::controller(3, "4.4.0"));
    let client = client(&kafka.brokers(), &[kafka.controller(1)]);
    let observed = observe_until(&client, "controller 3 registered as an observer", |observed| {
        observed
            .nodes
            .get(&NodeId(3))
            .is_some_and(|node| node.registered == Known::Yes(true) && node.quorum == QuorumPlace::Observer)
    })
    .await;
    assert_eq!(observed.finalized.get(KRAFT), Level(1));
    assert!(node(&observed, 3).roles.controller && !node(&observed, 3).is_ghost());
    assert_eq!(observed.quorum.value().unwrap().voters, ids(&[1]));

    // a leader that has never heard from it does not list it, and its registration stays
    kafka.stop(3);
    kafka.restart(1, None);
    let observed = observe_until(&client, "a leader with the broker as an observer", |observed| {
        observed.quorum.value().is_some_and(|quorum| quorum.observers == ids(&[2]))
    })
    .await;
    assert!(node(&observed, 3).is_ghost(), "{:?}", node(&observed, 3));
    assert!(why_unknown(&observed, 3).contains("connection refused"), "{}", why_unknown(&observed, 3));
    assert_eq!(observed.nodes.values().filter(|node| node.is_ghost()).count(), 1);
}

#[tokio::test]
async fn any_controller_leads_to_the_active_one_and_none_is_found_without_a_majority() {
    let nodes = [1, 2, 3].map(|id| NodeSpec::combined(id, "4.4.0"));
    let mut kafka = Kafka::start(&nodes, Quorum::Static, &["--release-version", "4.3"], &[]);
    let observed = client(&[], &kafka.controllers()).observe().await.unwrap();
    let leader = observed.quorum.value().unwrap().leader.value().unwrap().0;
    let others: Vec<i32> = [1, 2, 3].into_iter().filter(|id| *id != leader).collect();
    assert!(observed.nodes.values().all(|node| node.supported.value().is_some()), "{observed:?}");

    // the others refuse, and name it
    let answer = raw_request::ask(&kafka.controller(others[0]), 2, &raw_update(GROUP, 1, 1, true));
    let text = answer.error_message.unwrap();
    assert_eq!(
        (answer.error_code, text.as_str()),
        (41, &*format!("The active controller appears to be node {leader}."))
    );

    // hence ours goes there by itself, from any of them
    for other in &others {
        let lone = client(&[], &[kafka.controller(*other)]);
        let observed = lone.observe().await.unwrap();
        assert_eq!(observed.quorum.value().unwrap().leader, Known::Yes(NodeId(leader)));
        assert_eq!(observed.quorum.value().unwrap().voters, ids(&[1, 2, 3]));
        lone.update_features(&id(&kafka), &step(MV, 30, 31), true).await.unwrap();
    }
    let lone = client(&[], &[kafka.controller(others[0])]);
    take(&lone, &kafka, &step(MV, 30, 31)).await;

    for gone in [leader, others[0]] {
        kafka.kill(gone);
    }
    let left = others[1];
    let lone = client(&[], &[kafka.controller(left)]);
    // A controller that is voted down to no leader names none, or goes on naming the last one (KIP-996).
    let leaderless = |observed: &Observed| match &observed.quorum.value().unwrap().leader {
        Known::No(why) => Some(why.clone()),
        Known::Yes(_) => None,
    };
    let observed =
        observe_until(&lone, "that the leader is gone", |observed| leaderless(observed).is_some()).await;
    let why = leaderless(&observed).unwrap();
    assert!(why.contains("name none") || why.contains("the active controller"), "{why}");
    assert!(observed.nodes.values().all(|node| node.quorum == QuorumPlace::Unknown && !node.is_ghost()));
    let error = lone.update_features(&id(&kafka), &step(MV, 31, 32), false).await.unwrap_err();
    assert!(error.is_retryable() && !error.outcome_unknown(), "{error}");

    // through a broker the question waits for a leader: the pass ends all the same, with the rest of the picture
    let timeouts = Timeouts { request: Duration::from_secs(3), pass: Duration::from_secs(15) };
    let observed = client_with(&[kafka.broker(left)], &[], timeouts).observe().await.unwrap();
    let why = leaderless(&observed).unwrap();
    assert!(why.contains("DescribeQuorum"), "{why}");
    assert!(node(&observed, left).supported.value().is_some());
}
