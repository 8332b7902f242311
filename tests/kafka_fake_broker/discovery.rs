//! Finding every node and the quorum, among nodes that are away, lie, or belong elsewhere.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kafka_features_operator::features::observed::{Known, Node, NodeId, Observed, QuorumPlace};
use kafka_features_operator::kafka::Timeouts;
use kafka_protocol::messages::describe_configs_response::{DescribeConfigsResult, DescribeConfigsSynonym};
use kafka_protocol::messages::{ApiKey, BrokerId, DescribeConfigsResponse};
use kafka_protocol::protocol::StrBytes;

use crate::fake_broker::clients::*;
use crate::fake_broker::{Ask, Bound, ClosedPort, FakeBroker, Reply, Script};
use crate::frames::observe_with;

pub(crate) fn node(observed: &Observed, id: i32) -> &Node {
    observed.nodes.get(&NodeId(id)).unwrap_or_else(|| panic!("node {id} in {observed:?}"))
}

fn why_unknown(observed: &Observed, id: i32) -> &str {
    match &node(observed, id).supported {
        Known::No(why) => why,
        Known::Yes(ranges) => panic!("node {id} is known: {ranges:?}"),
    }
}

#[tokio::test]
async fn node_lists_that_are_too_long_or_hold_negative_ids_are_not_believed() {
    let error = observe_with(ApiKey::DescribeCluster, |ask| {
        let nodes = (0..10_001).map(|id| (id, 9092)).collect();
        ask.answer(&Script { nodes, ..Script::broker(1) }.cluster())
    })
    .await;
    assert!(error.to_string().contains("named 10001 nodes"), "{error}");
    let error = observe_with(ApiKey::DescribeCluster, |ask| {
        ask.answer(&Script { nodes: vec![(-7, 9092)], ..Script::broker(1) }.cluster())
    })
    .await;
    assert!(error.to_string().contains("the id -7"), "{error}");
}

#[tokio::test]
async fn a_silent_address_does_not_keep_the_others_from_being_used() {
    let silent = FakeBroker::start(|_| Reply::Silence).await;
    let good = broker(|_, _| None).await;
    let timeouts = Timeouts { request: Duration::from_secs(60), pass: Duration::from_secs(600) };
    let client = patient_client(&[&silent, &good], &[], timeouts);
    let observed = tokio::time::timeout(Duration::from_secs(50), client.observe()).await;
    let observed = observed.expect("not held up").unwrap();
    assert_eq!(observed.cluster_id, cluster());
}

#[tokio::test]
async fn a_node_fails_alone_and_with_its_reason() {
    let (silent, refusing) = (FakeBroker::start(|_| Reply::Silence).await, ClosedPort::new());
    let silent_port = silent.port;
    let bound = Bound::new().await;
    let script = Script {
        nodes: vec![(1, bound.port), (2, silent_port), (3, refusing.port), (4, 0)],
        ..Script::broker(bound.port)
    };
    let good = bound.serve(move |ask| script.reply(ask));
    let observed = patient_client(&[&good], &[], SHORT).observe().await.unwrap();
    assert!(node(&observed, 1).supported.value().is_some());
    assert!(why_unknown(&observed, 2).contains("handshake"), "{}", why_unknown(&observed, 2));
    assert!(why_unknown(&observed, 3).contains("connection refused"), "{}", why_unknown(&observed, 3));
    assert!(why_unknown(&observed, 4).contains("port 0"), "{}", why_unknown(&observed, 4));
    assert!(why_unknown(&observed, 9).contains("bootstrapControllers"), "{}", why_unknown(&observed, 9));
    assert!(matches!(observed.min_insync_overrides, Known::No(_)), "two brokers could not be asked");
}

#[tokio::test]
async fn a_pass_ends_in_time_with_what_it_found_however_many_nodes_are_silent() {
    let silent = FakeBroker::start(|_| Reply::Silence).await;
    let silent_port = silent.port;
    let bound = Bound::new().await;
    let mut nodes = vec![(1, bound.port)];
    nodes.extend((100..200).map(|id| (id, silent_port)));
    let script = Script { nodes, ..Script::broker(bound.port) };
    let good = bound.serve(move |ask| script.reply(ask));
    // a hundred nodes, sixteen at once, at 0.7 s each, is more than the pass has
    let observed = patient_client(&[&good], &[], SHORT).observe().await.unwrap();
    assert!(node(&observed, 1).supported.value().is_some());
    assert!((100..200).all(|id| !why_unknown(&observed, id).is_empty()));
}

#[tokio::test]
async fn a_connection_that_breaks_once_is_made_again() {
    let breaks = AtomicUsize::new(0);
    let flaky = broker(move |_, ask| {
        let first = ask.api == ApiKey::DescribeConfigs && breaks.fetch_add(1, Ordering::Relaxed) == 0;
        let once = ask.api == ApiKey::DescribeCluster && ask.connection == 0;
        (first || once).then_some(Reply::Close)
    })
    .await;
    let observed = client(&[&flaky], &[]).observe().await.unwrap();
    assert!(node(&observed, 1).supported.value().is_some());
}

#[tokio::test]
async fn an_address_at_which_another_broker_answers_tells_nothing_about_this_one() {
    let other = broker(|_, ask| {
        let result = DescribeConfigsResult::default().with_error_code(42).with_error_message(Some(
            StrBytes::from_static_str("Unexpected broker id, expected 5, but received 1"),
        ));
        let answer = DescribeConfigsResponse::default().with_results(vec![result]);
        (ask.api == ApiKey::DescribeConfigs).then(|| ask.answer(&answer))
    })
    .await;
    let observed = client(&[&other], &[]).observe().await.unwrap();
    assert!(why_unknown(&observed, 1).contains("Unexpected broker id"), "{}", why_unknown(&observed, 1));
}

#[tokio::test]
async fn three_ghosts_are_found_at_once() {
    let bound = Bound::new().await;
    let port = bound.port;
    let script = Script {
        // 6 answers, and a leader that was elected just now has only not heard from it yet
        nodes: vec![(9, port), (3, 1), (4, 1), (5, 1), (6, port)],
        observers: vec![1, 3],
        ..Script::controller(port)
    };
    let controllers = bound.serve(move |ask| script.reply(ask));
    let observed = client(&[], &[&controllers]).observe().await.unwrap();
    let ghosts: Vec<_> =
        observed.nodes.values().filter(|node| node.is_ghost()).map(|node| node.id.0).collect();
    assert_eq!(ghosts, [4, 5]);
    assert_eq!(node(&observed, 6).quorum, QuorumPlace::Neither);
    assert_eq!(node(&observed, 3).quorum, QuorumPlace::Observer);
    assert!(node(&observed, 1).roles.broker, "an observer that is no registered controller");
}

#[tokio::test]
async fn a_leader_that_is_not_registered_yet_is_found_all_the_same() {
    let nobody_registered =
        |script: &Script| Script { active: -1, nodes: vec![], ..script.clone() }.cluster();
    let leader = controller(move |script, ask| {
        (ask.api == ApiKey::DescribeCluster).then(|| ask.answer(&nobody_registered(script)))
    })
    .await;
    let observed = client(&[], &[&leader]).observe().await.unwrap();
    assert_eq!(observed.quorum.value().unwrap().leader, Known::Yes(NodeId(9)));
    let asked = client(&[], &[&leader]).update_features(&cluster(), &raise(&["group.version"]), false).await;
    let error = asked.unwrap_err();
    assert!(error.is_retryable() && !error.outcome_unknown(), "{error}");

    let follower = controller(move |script, ask| match ask.api {
        ApiKey::DescribeCluster => Some(ask.answer(&nobody_registered(script))),
        ApiKey::DescribeQuorum => Some(ask.answer(&not_the_leader(script))),
        _ => None,
    })
    .await;
    let through_broker = broker(|_, _| None).await;
    let both = client(&[&through_broker], &[&follower]);
    assert_eq!(both.observe().await.unwrap().quorum.value().unwrap().leader, Known::Yes(NodeId(9)));
    both.update_features(&cluster(), &raise(&["group.version"]), false).await.unwrap();
    assert_eq!(through_broker.seen(ApiKey::UpdateFeatures).len(), 1);
    for node in [&leader, &follower] {
        assert_eq!(node.seen(ApiKey::UpdateFeatures).len(), 0);
    }
}

#[tokio::test]
async fn without_a_leader_nobody_has_a_place_in_the_quorum_and_nobody_is_a_ghost() {
    let no_leader = controller(|script, ask| {
        let cluster = Script { active: -1, nodes: vec![(9, script.nodes[0].1), (4, 1)], ..script.clone() };
        match ask.api {
            ApiKey::DescribeCluster => Some(ask.answer(&cluster.cluster())),
            ApiKey::DescribeQuorum => Some(ask.answer(&not_the_leader(script))),
            _ => None,
        }
    })
    .await;
    let client = client(&[], &[&no_leader]);
    let observed = client.observe().await.unwrap();
    assert_eq!(observed.quorum.value().unwrap().leader.value(), None);
    assert!(observed.nodes.values().all(|node| node.quorum == QuorumPlace::Unknown && !node.is_ghost()));

    let error = client.update_features(&cluster(), &raise(&["group.version"]), false).await.unwrap_err();
    assert!(error.to_string().contains("no leader") && error.is_retryable(), "{error}");
    assert!(!error.outcome_unknown());
    assert_eq!(no_leader.seen(ApiKey::UpdateFeatures).len(), 0);

    let through_broker = broker(|script, ask| {
        let quorum = Script { leader: -1, voters: vec![9], ..script.clone() };
        (ask.api == ApiKey::DescribeQuorum).then(|| ask.answer(&quorum.quorum()))
    })
    .await;
    let observed = self::client(&[&through_broker], &[]).observe().await.unwrap();
    assert_eq!(observed.quorum.value().unwrap().leader.value(), None);
    assert_eq!(node(&observed, 9).quorum, QuorumPlace::Unknown);
}

#[tokio::test]
async fn a_leader_that_is_named_and_gone_is_no_leader_unless_a_broker_knows_another() {
    let closed = ClosedPort::new();
    let (gone, own) = (closed.port, Bound::new().await);
    let port = own.port;
    let script = Script { active: 4, nodes: vec![(9, port), (4, gone)], ..Script::controller(port) };
    let controllers = own.serve(move |ask| script.reply(ask));
    let observed = client(&[], &[&controllers]).observe().await.unwrap();
    let Known::No(why) = &observed.quorum.value().unwrap().leader else { panic!("{observed:?}") };
    assert!(why.starts_with("the active controller 4 can't be asked") && why.contains("refused"), "{why}");

    let lost = broker(|_, ask| (ask.api == ApiKey::DescribeQuorum).then_some(Reply::Close)).await;
    let observed = client(&[&lost], &[&controllers]).observe().await.unwrap();
    assert_eq!(observed.quorum.value().unwrap().leader.value(), None);
    let elected = broker(|_, _| None).await;
    let observed = client(&[&elected], &[&controllers]).observe().await.unwrap();
    assert_eq!(observed.quorum.value().unwrap().leader, Known::Yes(NodeId(9)));
    // one that may not be asked tells nothing about a leader
    let shy = broker(|script, ask| {
        let refused = script.quorum().with_error_code(31);
        (ask.api == ApiKey::DescribeQuorum).then(|| ask.answer(&refused))
    })
    .await;
    let observed = client(&[&shy], &[&controllers]).observe().await.unwrap();
    assert!(observed.quorum.value().is_none(), "{observed:?}");
}

#[tokio::test]
async fn a_controller_that_may_not_say_its_cluster_still_says_what_it_supports() {
    let shy = controller(|script, ask| {
        // the way in is open, the second look is not
        let refused = script.cluster().with_error_code(31);
        (ask.api == ApiKey::DescribeCluster && ask.connection > 1).then(|| ask.answer(&refused))
    })
    .await;
    let observed = client(&[], &[&shy]).observe().await.unwrap();
    assert!(node(&observed, 9).supported.value().is_some(), "{:?}", node(&observed, 9));
}

#[tokio::test]
async fn a_node_of_another_cluster_ends_the_pass_with_both_ids() {
    let stranger = broker(|script, ask| {
        let other = Script { cluster_id: "cluster-b", ..script.clone() };
        (ask.api == ApiKey::DescribeCluster && ask.connection > 0).then(|| ask.answer(&other.cluster()))
    })
    .await;
    let error = client(&[&stranger], &[]).observe().await.unwrap_err();
    let ids = error.other_cluster().expect("the ids");
    assert_eq!((ids.0.0.as_str(), ids.1.0.as_str()), ("cluster-a", "cluster-b"));
    assert!(error.to_string().contains(&stranger.address()) && !error.is_retryable(), "{error}");

    let brokers = broker(|_, _| None).await;
    let controllers = controller(|script, ask| {
        let other = Script { cluster_id: "cluster-b", ..script.clone() };
        (ask.api == ApiKey::DescribeCluster).then(|| ask.answer(&other.cluster()))
    })
    .await;
    let error = client(&[&brokers], &[&controllers]).observe().await.unwrap_err();
    assert!(error.other_cluster().is_some(), "{error}");
}

#[tokio::test]
async fn own_values_of_min_insync_replicas_are_told_from_inherited_ones() {
    // the sources of a value, the one that counts first: 2 for this broker, 3 for all, 4 from the file, 5 the default
    let answer_with = |sources: &'static [i8]| {
        move |script: &Script, ask: &Ask| {
            let mut configs = script.configs();
            let config = &mut configs.results[0].configs[0];
            config.config_source = sources[0];
            let synonym = |source: &i8| DescribeConfigsSynonym::default().with_source(*source);
            config.synonyms = sources.iter().map(synonym).collect();
            (ask.api == ApiKey::DescribeConfigs).then(|| ask.answer(&configs))
        }
    };
    let cases: [(&[i8], bool); 6] = [
        (&[2, 5], true),
        (&[2, 3, 5], true),
        (&[4, 5], true),
        (&[3, 4, 5], false),
        (&[3, 5], false),
        (&[5], false),
    ];
    for (sources, own) in cases {
        let node = broker(answer_with(sources)).await;
        let observed = client(&[&node], &[]).observe().await.unwrap();
        let own: BTreeSet<_> = own.then_some(NodeId(1)).into_iter().collect();
        assert_eq!(observed.min_insync_overrides, Known::Yes(own), "{sources:?}");
    }
    let hidden = broker(|script, ask| {
        let mut configs = script.configs();
        configs.results[0].error_code = 31;
        (ask.api == ApiKey::DescribeConfigs).then(|| ask.answer(&configs))
    })
    .await;
    let observed = client(&[&hidden], &[]).observe().await.unwrap();
    let Known::No(why) = &observed.min_insync_overrides else { panic!("{observed:?}") };
    assert!(why.contains("grant DESCRIBE_CONFIGS on the cluster"), "{why}");
    assert!(node(&observed, 1).supported.value().is_some(), "its range needs no right");
}

#[tokio::test]
async fn a_broker_that_names_a_controller_id_is_not_asked_about_the_active_controller() {
    // brokers put any broker's id there
    let node = broker(|script, ask| {
        let cluster = script.cluster().with_controller_id(BrokerId(1));
        (ask.api == ApiKey::DescribeCluster).then(|| ask.answer(&cluster))
    })
    .await;
    let observed = client(&[&node], &[]).observe().await.unwrap();
    assert_eq!(observed.quorum.value().unwrap().leader, Known::Yes(NodeId(9)));
}
