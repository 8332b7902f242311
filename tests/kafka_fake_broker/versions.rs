//! What nodes say of their versions and features.

use kafka_features_operator::features::{FeatureName, Level, LevelRange};

use kafka_protocol::messages::ApiKey;

use crate::discovery::node;
use crate::fake_broker::clients::client;
use crate::fake_broker::{Bound, Script};

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
