//! The admin client against nodes that break the protocol, fall silent, lie, or lose their office at the worst moment.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod fake_broker;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fake_broker::{Ask, Bound, FakeBroker, Reply, Script, refusal};
use kafka_features_operator::features::observed::{ClusterId, Known, NodeId, Observed, QuorumPlace};
use kafka_features_operator::features::plan::{Direction, Request, Step};
use kafka_features_operator::features::{FeatureName, Level, LevelRange};
use kafka_features_operator::kafka::{Client, Endpoints, Error, Phase, Timeouts};
use kafka_protocol::messages::update_features_response::UpdatableFeatureResult;
use kafka_protocol::messages::{ApiKey, BrokerId, UpdateFeaturesRequest, UpdateFeaturesResponse};
use kafka_protocol::protocol::StrBytes;

/// For tests that wait for a time-out: long enough for every answer that does come.
const SHORT: Timeouts = Timeouts { request: Duration::from_millis(700), pass: Duration::from_secs(3) };

fn client(brokers: &[&FakeBroker], controllers: &[&FakeBroker]) -> Client {
    patient_client(brokers, controllers, Timeouts::default())
}

fn patient_client(brokers: &[&FakeBroker], controllers: &[&FakeBroker], timeouts: Timeouts) -> Client {
    let addresses =
        |nodes: &[&FakeBroker]| nodes.iter().map(|node| node.address().parse().unwrap()).collect();
    Client::new(Endpoints { brokers: addresses(brokers), controllers: addresses(controllers) }, timeouts)
}

fn cluster() -> ClusterId {
    ClusterId("cluster-a".to_owned())
}

fn raise(features: &[&str]) -> Request {
    let step = |feature: &&str| Step {
        feature: FeatureName::new(*feature).unwrap(),
        from: Level(0),
        to: Level(1),
        direction: Direction::Up,
        one_way: false,
        note: None,
    };
    Request { steps: features.iter().map(step).collect() }
}

async fn broker(bend: impl Fn(&Script, &Ask) -> Option<Reply> + Send + Sync + 'static) -> FakeBroker {
    let bound = Bound::new().await;
    let script = Script::broker(bound.port);
    bound.serve(move |ask| bend(&script, ask).unwrap_or_else(|| script.reply(ask)))
}

async fn controller(bend: impl Fn(&Script, &Ask) -> Option<Reply> + Send + Sync + 'static) -> FakeBroker {
    let bound = Bound::new().await;
    let script = Script::controller(bound.port);
    bound.serve(move |ask| bend(&script, ask).unwrap_or_else(|| script.reply(ask)))
}

/// What observing comes to when this one API is answered so.
async fn observe_with(api: ApiKey, reply: impl Fn(&Ask) -> Reply + Send + Sync + 'static) -> Error {
    let node = broker(move |_, ask| (ask.api == api).then(|| reply(ask))).await;
    patient_client(&[&node], &[], SHORT).observe().await.expect_err("the only node breaks the protocol")
}

fn node(observed: &Observed, id: i32) -> &kafka_features_operator::features::observed::Node {
    observed.nodes.get(&NodeId(id)).unwrap_or_else(|| panic!("node {id} in {observed:?}"))
}

fn why_unknown(observed: &Observed, id: i32) -> &str {
    match &node(observed, id).supported {
        Known::No(why) => why,
        Known::Yes(ranges) => panic!("node {id} is known: {ranges:?}"),
    }
}

// ---- frames

#[tokio::test]
async fn frames_that_end_early_or_never_are_errors_of_their_phase() {
    let cut = |bytes: &'static [u8]| move |_: &Ask| Reply::BytesThenClose(bytes.to_vec());
    let stuck = |bytes: &'static [u8]| move |_: &Ask| Reply::Bytes(bytes.to_vec());
    let half = &[0, 0, 0, 9, 0, 0][..];

    let error = observe_with(ApiKey::ApiVersions, cut(half)).await;
    assert_eq!(error.phase(), Phase::Handshake, "{error}");
    assert!(error.to_string().contains("after 2 of 9 bytes"), "{error}");
    let error = observe_with(ApiKey::DescribeCluster, cut(half)).await;
    assert_eq!(error.phase(), Phase::Protocol, "{error}");
    assert!(error.to_string().contains("after 2 of 9 bytes") && error.is_retryable(), "{error}");
    let error = observe_with(ApiKey::DescribeCluster, |_| Reply::Close).await;
    assert!(error.to_string().contains("the peer closed the connection"), "{error}");

    let error = observe_with(ApiKey::ApiVersions, stuck(half)).await;
    assert_eq!(error.phase(), Phase::Handshake, "{error}");
    let error = observe_with(ApiKey::DescribeCluster, stuck(half)).await;
    assert!(error.to_string().contains("no answer to DescribeCluster within 0.7 s"), "{error}");
    let error = observe_with(ApiKey::ApiVersions, |_| Reply::Silence).await;
    assert_eq!(error.phase(), Phase::Handshake, "{error}");
}

#[tokio::test]
async fn sizes_that_no_answer_has_are_refused_by_their_head() {
    for (announced, shown) in [(i32::MAX, "2147483647"), (-1, "-1"), (i32::MIN, "-2147483648")] {
        let head = announced.to_be_bytes();
        let error = observe_with(ApiKey::DescribeCluster, move |_| Reply::Bytes(head.to_vec())).await;
        assert_eq!(error.phase(), Phase::Protocol, "{error}");
        assert!(error.to_string().contains(&format!("a frame of {shown} bytes")), "{error}");
    }
    let alert = [0x15, 3, 3, 0, 2, 2, 40];
    let error = observe_with(ApiKey::ApiVersions, move |_| Reply::BytesThenClose(alert.to_vec())).await;
    assert!(error.to_string().contains("looks like TLS"), "{error}");
}

#[tokio::test]
async fn counts_inside_an_answer_that_nothing_could_fill_end_the_exchange_and_not_the_process() {
    let endless = [0xff, 0xff, 0xff, 0xff, 0x0f];
    let cluster = [&[0, 0, 0, 0, 0, 0, 0, 1, 2, b'c', 0, 0, 0, 1][..], &endless].concat();
    let error = observe_with(ApiKey::DescribeCluster, move |ask| ask.answer_raw(&cluster)).await;
    assert!(error.to_string().contains("DescribeCluster can't be read"), "{error}");

    let apis = [&[0, 0][..], &endless].concat();
    let error = observe_with(ApiKey::ApiVersions, move |ask| ask.answer_raw(&apis)).await;
    assert!(error.to_string().contains("ApiVersions can't be read"), "{error}");

    // a tagged field that is longer than its content, which hides the count behind it from who trusts lengths
    let hidden = [&[0, 0, 1, 0, 0, 0, 0, 2, 0, 12, 1, 0, 9][..], &endless, &[0, 0, 0, 0, 5, 1, 0]].concat();
    let error = observe_with(ApiKey::ApiVersions, move |ask| ask.answer_raw(&hidden)).await;
    assert!(error.to_string().contains("ApiVersions can't be read"), "{error}");

    // the refusal of a version comes in the old encoding, with a count of its own
    let refusal = [0, 35, 0x7f, 0xff, 0xff, 0xff];
    let error = observe_with(ApiKey::ApiVersions, move |ask| ask.answer_raw(&refusal)).await;
    assert!(error.to_string().contains("offered in versions none"), "{error}");
}

#[tokio::test]
async fn an_answer_to_another_request_is_not_taken() {
    let error = observe_with(ApiKey::DescribeCluster, |ask| {
        let Reply::Frame(mut frame) = Script::broker(1).reply(ask) else { unreachable!("a frame") };
        frame[..4].copy_from_slice(&(ask.correlation_id + 1).to_be_bytes());
        Reply::Frame(frame)
    })
    .await;
    assert_eq!(error.phase(), Phase::Protocol, "{error}");
    assert!(error.to_string().contains("carries number 3 instead of 2"), "{error}");
}

// ---- versions and features

#[tokio::test]
async fn a_node_that_does_not_know_our_version_is_asked_in_its_own_on_the_same_connection() {
    let bound = Bound::new().await;
    let script = Script {
        api_versions: 3,
        supported: vec![("metadata.version", 1, 19)],
        ..Script::broker(bound.port)
    };
    let node_1 = bound.serve(move |ask| script.reply(ask));
    let observed = client(&[&node_1], &[]).observe().await.unwrap();
    let broker = node(&observed, 1);
    assert!(!broker.lists_all_features);
    assert_eq!(broker.range(&FeatureName::new("group.version").unwrap()), None, "left out, so not known");
    let range = LevelRange { min: Level(1), max: Level(19) };
    assert_eq!(broker.range(&FeatureName::metadata_version()), Some(range));
    let asked = node_1.seen(ApiKey::ApiVersions);
    let first: Vec<_> = asked.iter().filter(|ask| ask.connection == 0).map(|ask| ask.version).collect();
    assert_eq!(first, [4, 3]);
}

#[tokio::test]
async fn a_node_without_features_in_its_versions_is_an_error_that_says_what_is_supported() {
    let bound = Bound::new().await;
    let script = Script { api_versions: 2, ..Script::broker(bound.port) };
    let old = bound.serve(move |ask| script.reply(ask));
    let error = client(&[&old], &[]).observe().await.unwrap_err();
    assert!(error.to_string().contains("ApiVersions is offered in versions 0 to 2"), "{error}");
    assert!(!error.is_retryable());
}

#[tokio::test]
async fn odd_ranges_and_names_do_no_harm() {
    let bound = Bound::new().await;
    let script = Script {
        supported: vec![
            ("metadata.version", 33, 7),
            ("twice", 0, 1),
            ("twice", 0, 2),
            ("", 0, 1),
            ("no name", 0, 1),
            ("below", -5, -1),
        ],
        finalized: vec![("metadata.version", 25), ("", 1), ("below", -3), ("zero", 0)],
        ..Script::broker(bound.port)
    };
    let odd = bound.serve(move |ask| script.reply(ask));
    let observed = client(&[&odd], &[]).observe().await.unwrap();
    let broker = node(&observed, 1);
    let upside_down = broker.range(&FeatureName::metadata_version()).unwrap();
    assert!((0..40).all(|level| !upside_down.contains(Level(level))));
    assert_eq!(broker.range(&FeatureName::new("twice").unwrap()).unwrap().max, Level(2));
    let levels: Vec<_> = observed.finalized.iter().map(|(name, level)| (name.as_str(), level.0)).collect();
    assert_eq!(levels, [("metadata.version", 25)]);
}

#[tokio::test]
async fn the_levels_with_the_highest_epoch_are_taken_whoever_says_them() {
    for (broker_epoch, controller_epoch, expected) in [(100, 7, 25), (7, 100, 26), (-1, 3, 26), (3, -1, 25)] {
        let (bound_broker, bound_controller) = (Bound::new().await, Bound::new().await);
        let script = Script { epoch: broker_epoch, ..Script::broker(bound_broker.port) };
        let node_1 = bound_broker.serve(move |ask| script.reply(ask));
        let script = Script {
            epoch: controller_epoch,
            finalized: vec![("metadata.version", 26)],
            ..Script::controller(bound_controller.port)
        };
        let node_9 = bound_controller.serve(move |ask| script.reply(ask));
        let observed = client(&[&node_1], &[&node_9]).observe().await.unwrap();
        assert_eq!(
            observed.finalized.get("metadata.version"),
            Level(expected),
            "{broker_epoch} {controller_epoch}"
        );
    }
}

#[tokio::test]
async fn without_any_node_that_knows_the_levels_there_is_no_observation() {
    let bound = Bound::new().await;
    let script = Script { epoch: -1, ..Script::broker(bound.port) };
    let starting = bound.serve(move |ask| script.reply(ask));
    let error = client(&[&starting], &[]).observe().await.unwrap_err();
    assert!(error.to_string().contains("finalized levels") && error.is_retryable(), "{error}");
}

// ---- discovery

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
    let (silent, refusing) = (FakeBroker::start(|_| Reply::Silence).await, Bound::new().await.port);
    let silent_port = silent.port;
    let bound = Bound::new().await;
    let script = Script {
        nodes: vec![(1, bound.port), (2, silent_port), (3, refusing), (4, 0)],
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
        let result = kafka_protocol::messages::describe_configs_response::DescribeConfigsResult::default()
            .with_error_code(42)
            .with_error_message(Some(StrBytes::from_static_str(
                "Unexpected broker id, expected 5, but received 1",
            )));
        let answer = kafka_protocol::messages::DescribeConfigsResponse::default().with_results(vec![result]);
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
        nodes: vec![(9, port), (3, 1), (4, 1), (5, 1)],
        observers: vec![1, 3],
        ..Script::controller(port)
    };
    let controllers = bound.serve(move |ask| script.reply(ask));
    let observed = client(&[], &[&controllers]).observe().await.unwrap();
    let ghosts: Vec<_> =
        observed.nodes.values().filter(|node| node.is_ghost()).map(|node| node.id.0).collect();
    assert_eq!(ghosts, [4, 5]);
    assert_eq!(node(&observed, 3).quorum, QuorumPlace::Observer);
    assert!(node(&observed, 1).roles.broker, "an observer that is no registered controller");
}

#[tokio::test]
async fn without_a_leader_nobody_has_a_place_in_the_quorum_and_nobody_is_a_ghost() {
    let no_leader = controller(|script, ask| {
        let cluster = Script { active: -1, nodes: vec![(9, script.nodes[0].1), (4, 1)], ..script.clone() };
        (ask.api == ApiKey::DescribeCluster).then(|| ask.answer(&cluster.cluster()))
    })
    .await;
    let client = client(&[], &[&no_leader]);
    let observed = client.observe().await.unwrap();
    assert_eq!(observed.quorum.value().unwrap().leader, None);
    assert!(observed.nodes.values().all(|node| node.quorum == QuorumPlace::Unknown && !node.is_ghost()));
    assert_eq!(no_leader.seen(ApiKey::DescribeQuorum).len(), 0, "who would answer it?");

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
    assert_eq!(observed.quorum.value().unwrap().leader, None);
    assert_eq!(node(&observed, 9).quorum, QuorumPlace::Unknown);
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

// ---- identity

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
async fn nothing_is_sent_to_another_cluster_whichever_way_it_is_reached() {
    let request = raise(&["group.version"]);
    let other = ClusterId("cluster-b".to_owned());
    let (brokers, controllers) = (broker(|_, _| None).await, controller(|_, _| None).await);
    for client in [client(&[&brokers], &[]), client(&[], &[&controllers])] {
        for validate_only in [true, false] {
            let error = client.update_features(&other, &request, validate_only).await.unwrap_err();
            assert!(error.other_cluster().is_some() && !error.outcome_unknown(), "{error}");
        }
    }
    // the way in belongs to the cluster, the active controller that it names does not
    let elsewhere = controller(|script, ask| {
        let other = Script { cluster_id: "cluster-b", ..script.clone() };
        (ask.api == ApiKey::DescribeCluster).then(|| ask.answer(&other.cluster()))
    })
    .await;
    let port = elsewhere.port;
    let way_in = controller(move |script, ask| {
        let pointing = Script { nodes: vec![(9, port)], ..script.clone() };
        (ask.api == ApiKey::DescribeCluster).then(|| ask.answer(&pointing.cluster()))
    })
    .await;
    let error = client(&[], &[&way_in]).update_features(&cluster(), &request, false).await.unwrap_err();
    assert!(error.other_cluster().is_some(), "{error}");
    for node in [&brokers, &controllers, &elsewhere, &way_in] {
        assert_eq!(node.seen(ApiKey::UpdateFeatures).len(), 0);
    }
}

// ---- updates

#[tokio::test]
async fn a_request_says_what_was_asked_and_no_more() {
    let node = broker(|_, _| None).await;
    let mut request = raise(&["group.version", "share.version"]);
    request.steps[1].direction = Direction::Down;
    request.steps[1].to = Level(0);
    client(&[&node], &[]).update_features(&cluster(), &request, true).await.unwrap();
    let sent: UpdateFeaturesRequest = node.seen(ApiKey::UpdateFeatures)[0].read();
    assert!(sent.validate_only && sent.timeout_ms > 0);
    let updates: Vec<_> = sent
        .feature_updates
        .iter()
        .map(|update| (&*update.feature, update.max_version_level, update.upgrade_type))
        .collect();
    assert_eq!(updates, [("group.version", 1, 1), ("share.version", 0, 2)]);
}

#[tokio::test]
async fn what_kafka_would_half_apply_or_misread_is_refused_before_anyone_is_called() {
    let node = broker(|_, _| None).await;
    let client = client(&[&node], &[]);
    for (request, says) in [
        (raise(&["kraft.version", "group.version"]), "kraft.version must be alone"),
        (raise(&["group.version", "kraft.version"]), "kraft.version must be alone"),
        (raise(&["group.version", "group.version"]), "stands twice"),
        (raise(&[]), "changes nothing"),
    ] {
        for validate_only in [true, false] {
            let error = client.update_features(&cluster(), &request, validate_only).await.unwrap_err();
            assert!(error.to_string().contains(says) && !error.is_retryable(), "{error}");
            assert!(!error.outcome_unknown());
        }
    }
    assert_eq!(node.count(), 0);
    client.update_features(&cluster(), &raise(&["kraft.version"]), false).await.unwrap();
}

#[tokio::test]
async fn a_change_whose_end_is_not_heard_is_sent_once_and_its_outcome_is_unknown() {
    let ends: [(&str, fn(&Ask) -> Reply); 5] = [
        ("closed", |_| Reply::Close),
        ("cut", |_| Reply::BytesThenClose(vec![0, 0, 0, 9, 0])),
        ("silent", |_| Reply::Silence),
        ("garbled", |ask| ask.answer_raw(&[0, 0])),
        ("timed out in the server", |ask| ask.answer(&refusal(7, "no time"))),
    ];
    for (name, end) in ends {
        let bend = move |_: &Script, ask: &Ask| (ask.api == ApiKey::UpdateFeatures).then(|| end(ask));
        let (broker, controller) = (broker(bend).await, controller(bend).await);
        for (client, node) in [
            (patient_client(&[&broker], &[], SHORT), &broker),
            (patient_client(&[], &[&controller], SHORT), &controller),
        ] {
            let request = raise(&["group.version"]);
            let error = client.update_features(&cluster(), &request, false).await.unwrap_err();
            assert!(error.outcome_unknown(), "{name}: {error}");
            assert_eq!(node.seen(ApiKey::UpdateFeatures).len(), 1, "{name}");
            let error = client.update_features(&cluster(), &request, true).await.unwrap_err();
            assert!(!error.outcome_unknown(), "a dry run has no outcome: {error}");
        }
    }
}

#[tokio::test]
async fn a_change_that_was_never_sent_has_no_unknown_outcome() {
    let refusing = Bound::new().await;
    let address = format!("127.0.0.1:{}", refusing.port).parse().unwrap();
    drop(refusing);
    let silent = FakeBroker::start(|_| Reply::Silence).await;
    let gone = Client::new(Endpoints { brokers: vec![address], controllers: vec![] }, SHORT);
    let nowhere = Client::new(Endpoints::default(), SHORT);
    let old = broker(|script, ask| {
        let mut versions = script.versions();
        versions.api_keys.retain(|api| api.api_key != ApiKey::UpdateFeatures as i16);
        (ask.api == ApiKey::ApiVersions).then(|| ask.answer(&versions))
    })
    .await;
    let cases = [gone, nowhere, patient_client(&[&silent], &[], SHORT), patient_client(&[&old], &[], SHORT)];
    for client in cases {
        let error = client.update_features(&cluster(), &raise(&["group.version"]), false).await.unwrap_err();
        assert!(!error.outcome_unknown(), "{error}");
    }
}

#[tokio::test]
async fn a_server_that_knows_neither_dry_runs_nor_safe_downgrades_is_sent_nothing() {
    let bound = Bound::new().await;
    let script = Script { update_features: 0, ..Script::broker(bound.port) };
    let old = bound.serve(move |ask| script.reply(ask));
    for validate_only in [true, false] {
        let asked =
            client(&[&old], &[]).update_features(&cluster(), &raise(&["group.version"]), validate_only).await;
        let error = asked.unwrap_err();
        assert!(error.to_string().contains("UpdateFeatures is offered in versions 0 to 0"), "{error}");
    }
    assert_eq!(old.seen(ApiKey::UpdateFeatures).len(), 0);
}

/// Two controllers, each of which says `refusal` to an update; both name node 9 as active, at the first one's address.
async fn two_controllers(first: &'static str, second: &'static str) -> (FakeBroker, FakeBroker) {
    let (a, b) = (Bound::new().await, Bound::new().await);
    let nodes = vec![(9, a.port), (8, b.port)];
    let serve = |bound: Bound, message: &'static str| {
        let script = Script { nodes: nodes.clone(), ..Script::controller(bound.port) };
        bound.serve(move |ask| match ask.api {
            ApiKey::UpdateFeatures if !message.is_empty() => ask.answer(&refusal(41, message)),
            _ => script.reply(ask),
        })
    };
    (serve(a, first), serve(b, second))
}

#[tokio::test]
async fn a_change_follows_the_active_controller_but_not_in_circles() {
    const TO_8: &str = "The active controller appears to be node 8.";
    const TO_9: &str = "The active controller appears to be node 9.";
    let request = raise(&["group.version"]);

    let (first, second) = two_controllers(TO_8, "").await;
    client(&[], &[&first]).update_features(&cluster(), &request, false).await.unwrap();
    assert_eq!((first.seen(ApiKey::UpdateFeatures).len(), second.seen(ApiKey::UpdateFeatures).len()), (1, 1));

    let (first, second) = two_controllers(TO_8, TO_9).await;
    let error = client(&[], &[&first]).update_features(&cluster(), &request, false).await.unwrap_err();
    assert!(error.to_string().contains("named another active controller 4 times"), "{error}");
    assert!(!error.outcome_unknown() && error.is_retryable(), "each of them refused it: {error}");
    assert_eq!((first.seen(ApiKey::UpdateFeatures).len(), second.seen(ApiKey::UpdateFeatures).len()), (2, 2));

    // whom nobody has an address for
    let (first, _second) = two_controllers("The active controller appears to be node 77.", "").await;
    let error = client(&[], &[&first]).update_features(&cluster(), &request, false).await.unwrap_err();
    assert!(error.to_string().contains("77"), "{error}");
    assert!(!error.outcome_unknown());
}

#[tokio::test]
async fn a_controller_that_loses_its_office_over_a_change_leaves_its_outcome_unknown() {
    let (first, second) = two_controllers("No controller appears to be active.", "").await;
    let error = client(&[], &[&first]).update_features(&cluster(), &raise(&["group.version"]), false).await;
    let error = error.unwrap_err();
    assert!(error.outcome_unknown(), "{error}");
    assert_eq!((first.seen(ApiKey::UpdateFeatures).len(), second.seen(ApiKey::UpdateFeatures).len()), (1, 0));
}

#[tokio::test]
async fn a_refusal_carries_the_servers_text_as_one_line() {
    let refusing = broker(|_, ask| {
        let text = "The update failed for all features since\nthe following feature had an error: no\u{7}";
        (ask.api == ApiKey::UpdateFeatures).then(|| ask.answer(&refusal(95, text)))
    })
    .await;
    let asked =
        client(&[&refusing], &[]).update_features(&cluster(), &raise(&["group.version"]), false).await;
    let error = asked.unwrap_err();
    assert_eq!(error.phase(), Phase::Api);
    assert_eq!(error.api_error().unwrap().code, 95);
    assert!(!error.to_string().chars().any(char::is_control), "{error:?}");
    assert!(error.to_string().contains("INVALID_UPDATE_VERSION (95)"), "{error}");
    assert!(!error.outcome_unknown() && !error.is_retryable());
}

#[tokio::test]
async fn a_missing_right_is_named_instead_of_the_servers_dump_of_the_request() {
    let dump = "Request Request(processor=0, connectionId=1, envelope=x) needs ALTER permission.";
    let guarded =
        broker(move |_, ask| (ask.api == ApiKey::UpdateFeatures).then(|| ask.answer(&refusal(31, dump))))
            .await;
    let asked = client(&[&guarded], &[]).update_features(&cluster(), &raise(&["group.version"]), false).await;
    let error = asked.unwrap_err();
    assert_eq!(error.phase(), Phase::Authorization);
    assert!(error.to_string().contains("grant ALTER on the cluster"), "{error}");
    assert!(!error.to_string().contains("processor"), "{error}");
    assert!(!error.outcome_unknown() && !error.is_retryable());
}

#[tokio::test]
async fn an_error_of_one_feature_in_version_1_is_an_error() {
    let bound = Bound::new().await;
    let script = Script { update_features: 1, ..Script::broker(bound.port) };
    let node = bound.serve(move |ask| match ask.api {
        ApiKey::UpdateFeatures => {
            assert_eq!(ask.version, 1);
            let result = |feature: &'static str, code| {
                UpdatableFeatureResult::default()
                    .with_feature(StrBytes::from_static_str(feature))
                    .with_error_code(code)
                    .with_error_message(Some(StrBytes::from_static_str("NONE")))
            };
            let results = vec![result("group.version", 0), result("share.version", 95)];
            ask.answer(&UpdateFeaturesResponse::default().with_results(results))
        }
        _ => script.reply(ask),
    });
    let request = raise(&["group.version", "share.version"]);
    let error = client(&[&node], &[]).update_features(&cluster(), &request, false).await.unwrap_err();
    assert!(error.to_string().contains("share.version: NONE"), "{error}");
}

#[tokio::test]
async fn controllers_that_are_away_leave_the_change_to_a_broker() {
    let gone = FakeBroker::start(|_| Reply::Close).await;
    let node = broker(|_, _| None).await;
    client(&[&node], &[&gone]).update_features(&cluster(), &raise(&["group.version"]), false).await.unwrap();
    assert_eq!(node.seen(ApiKey::UpdateFeatures).len(), 1);
}

#[tokio::test]
async fn own_values_of_min_insync_replicas_are_told_from_inherited_ones() {
    let answer_with = |source: i8| {
        move |script: &Script, ask: &Ask| {
            let mut configs = script.configs();
            configs.results[0].configs[0].config_source = source;
            (ask.api == ApiKey::DescribeConfigs).then(|| ask.answer(&configs))
        }
    };
    for (source, own) in [(2, vec![NodeId(1)]), (3, vec![]), (4, vec![]), (5, vec![])] {
        let node = broker(answer_with(source)).await;
        let observed = client(&[&node], &[]).observe().await.unwrap();
        let own: BTreeSet<_> = own.into_iter().collect();
        assert_eq!(observed.min_insync_overrides, Known::Yes(own), "source {source}");
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
    assert_eq!(observed.quorum.value().unwrap().leader, Some(NodeId(9)));
}
