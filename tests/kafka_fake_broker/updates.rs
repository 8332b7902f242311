//! Changes: what is sent, to whom, how often, and what is known of it afterwards.

use std::sync::Arc;

use kafka_features_operator::features::Level;
use kafka_features_operator::features::observed::ClusterId;
use kafka_features_operator::features::plan::Direction;
use kafka_features_operator::kafka::{Client, Endpoints, Permit, Phase};
use kafka_protocol::messages::update_features_response::UpdatableFeatureResult;
use kafka_protocol::messages::{ApiKey, UpdateFeaturesRequest, UpdateFeaturesResponse};
use kafka_protocol::protocol::StrBytes;

use crate::fake_broker::clients::*;
use crate::fake_broker::{Ask, Bound, ClosedPort, FakeBroker, Reply, Script, refusal};

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

type End = fn(&Ask) -> Reply;

#[tokio::test]
async fn a_change_whose_end_is_not_heard_is_sent_once_and_its_outcome_is_unknown() {
    let ends: [(&str, End); 5] = [
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
    let refusing = ClosedPort::new();
    let address = format!("127.0.0.1:{}", refusing.port).parse().unwrap();
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
async fn kraft_version_is_not_asked_of_a_kafka_that_would_only_say_that_it_did_it() {
    for (top, sent) in [(21, false), (25, false), (27, true)] {
        let bound = Bound::new().await;
        let script = Script { supported: vec![("metadata.version", 7, top)], ..Script::broker(bound.port) };
        let node = bound.serve(move |ask| script.reply(ask));
        let asked =
            client(&[&node], &[]).update_features(&cluster(), &raise(&["kraft.version"]), false).await;
        assert_eq!(asked.is_ok(), sent, "{top}: {asked:?}");
        assert_eq!(node.seen(ApiKey::UpdateFeatures).len(), usize::from(sent), "{top}");
    }
}

#[tokio::test]
async fn a_change_without_a_permit_is_not_sent_however_far_it_came() {
    #[derive(Debug)]
    struct Never;
    impl Permit for Never {
        fn holds(&self) -> bool {
            false
        }
    }
    let (brokers, controllers) = (broker(|_, _| None).await, controller(|_, _| None).await);
    for client in [client(&[&brokers], &[]), client(&[], &[&controllers])] {
        let client = client.under(Arc::new(Never));
        let error = client.update_features(&cluster(), &raise(&["group.version"]), false).await.unwrap_err();
        assert!(error.to_string().contains("nothing was sent"), "{error}");
        assert!(error.not_permitted() && error.is_retryable() && !error.outcome_unknown(), "{error}");
        // a question changes nothing
        client.update_features(&cluster(), &raise(&["group.version"]), true).await.unwrap();
    }
    for node in [&brokers, &controllers] {
        let [asked] = &node.seen(ApiKey::UpdateFeatures)[..] else { panic!("one request") };
        assert!(asked.read::<UpdateFeaturesRequest>().validate_only);
    }
}
