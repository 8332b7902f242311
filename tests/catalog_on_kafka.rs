//! The catalog and the planner's verdicts against Kafka 4.4.0 itself: its tools' listings, and a real controller's dry
//! run of every change of `metadata.version`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod testbed;

use std::collections::{BTreeMap, BTreeSet};

use kafka_features_operator::features::catalog::Catalog;
use kafka_features_operator::features::observed::{ClusterId, Known};
use kafka_features_operator::features::plan::{
    Batching, Direction, DowngradePolicy, PlanError, PlanInput, Request, Step, plan,
};
use kafka_features_operator::features::target::Target;
use kafka_features_operator::features::{FeatureName, FinalizedFeatures, Level};
use kafka_features_operator::kafka::{Client, Endpoints, Timeouts};
use testbed::{Kafka, Oracle};

fn metadata_version() -> FeatureName {
    FeatureName::metadata_version()
}

/// `feature=level` lines as Kafka prints them.
fn listing(text: &str) -> BTreeMap<String, i16> {
    let pair = |line: &str| {
        let (feature, level) = line.split_once('=').unwrap();
        (feature.to_owned(), level.split_whitespace().next().unwrap().parse().unwrap())
    };
    text.lines().map(pair).collect()
}

#[test]
fn every_release_maps_to_the_levels_that_kafkas_own_tools_print() {
    let catalog = Catalog::kafka();
    let oracle = Oracle::of("4.4.0");
    let names = catalog.metadata_versions().iter().map(|version| version.name.as_str());
    let mut releases: Vec<&str> =
        catalog.metadata_versions().iter().map(|version| version.release()).collect();
    releases.dedup();
    for text in names.chain(releases) {
        let printed = oracle.run("kafka-storage", &["version-mapping", "--release-version", text]);
        let Ok(version) = catalog.release(text) else {
            assert_ne!(printed.exit, 0, "{text}: {}", printed.stdout);
            continue;
        };
        let mut expected: BTreeMap<String, i16> = catalog
            .defaults_at(version.level)
            .into_iter()
            .map(|(f, level)| (f.to_string(), level.0))
            .collect();
        expected.insert(FeatureName::METADATA_VERSION.to_owned(), version.level.0);
        assert_eq!(listing(&printed.ok()), expected, "{text}");
    }
    for unknown in ["3.3-IV2", "4.5", "latest", "4.4-iv2", "4", ""] {
        let printed = oracle.run("kafka-storage", &["version-mapping", "--release-version", unknown]);
        assert_eq!((printed.exit == 0, catalog.release(unknown).is_ok()), (false, false), "{unknown}");
    }
}

#[test]
fn every_level_has_the_dependencies_that_kafkas_own_tool_prints_and_no_more_levels() {
    let catalog = Catalog::kafka();
    let oracle = Oracle::of("4.4.0");
    for feature in catalog.features() {
        let top = feature.levels.last().unwrap().level.0;
        for level in 0..=top + 1 {
            let item = format!("{}={level}", feature.name);
            let printed = oracle.run("kafka-storage", &["feature-dependencies", "--feature", &item]);
            if level > top {
                assert_ne!(printed.exit, 0, "{item} is a level of Kafka's: {}", printed.stdout);
                continue;
            }
            let printed = printed.ok();
            let needs: BTreeMap<String, i16> = catalog
                .needs(&feature.name, Level(level))
                .iter()
                .map(|(f, l)| (f.to_string(), l.0))
                .collect();
            let expected = if printed.contains("has no dependencies") {
                BTreeMap::new()
            } else {
                listing(&printed.lines().skip(1).map(str::trim).collect::<Vec<_>>().join("\n"))
            };
            assert_eq!(needs, expected, "{item}");
        }
    }
}

fn step(from: Level, to: Level) -> Request {
    let direction = if to > from { Direction::Up } else { Direction::Down };
    Request {
        steps: vec![Step { feature: metadata_version(), from, to, direction, one_way: false, note: None }],
    }
}

/// What our planner says of one change of `metadata.version`.
fn verdict(from: Level, to: Level) -> Result<Vec<Request>, PlanError> {
    let target = Target { levels: BTreeMap::from([(metadata_version(), to)]), release: None };
    let finalized = FinalizedFeatures::from_iter([(metadata_version(), from)]);
    let input = PlanInput {
        catalog: Catalog::kafka(),
        finalized: &finalized,
        target: &target,
        downgrade: DowngradePolicy::Safe,
        allow_one_way: &BTreeSet::new(),
        min_insync_overrides: &Known::Yes(BTreeSet::new()),
        batching: Batching::Together,
    };
    plan(&input).map(|plan| plan.requests)
}

/// One cluster climbs through all levels; at each, a dry run of the change to every other.
#[tokio::test]
async fn every_pair_of_metadata_versions_has_the_verdict_of_a_real_controller() {
    let nodes = [testbed::NodeSpec::combined(1, "4.4.0")];
    let unstable = ["unstable.feature.versions.enable=true"];
    let format = ["--release-version", "3.3-IV3"];
    let kafka = Kafka::start(&nodes, testbed::Quorum::Static, &format, &unstable);
    let brokers = kafka.brokers().iter().map(|address| address.parse().unwrap()).collect();
    let client = Client::new(Endpoints { brokers, controllers: vec![] }, Timeouts::default());
    let cluster = ClusterId(kafka.cluster_id.clone());
    let levels: Vec<Level> =
        Catalog::kafka().metadata_versions().iter().map(|version| version.level).collect();
    let (mut pairs, mut refused) = (0, 0);
    for from in &levels {
        if *from != levels[0] {
            let below = Level(from.0 - 1);
            client.update_features(&cluster, &step(below, *from), false).await.unwrap();
        }
        for to in levels.iter().filter(|to| *to != from) {
            let real = client.update_features(&cluster, &step(*from, *to), true).await;
            match verdict(*from, *to) {
                Ok(requests) => {
                    assert_eq!(requests.len(), 1, "{from} to {to}");
                    assert!(
                        real.is_ok(),
                        "{from} to {to}: we would send it, Kafka says {}",
                        real.unwrap_err()
                    );
                }
                Err(PlanError::LossyDowngrade { .. }) => {
                    let text = real.expect_err("we refuse it, Kafka would take it").to_string();
                    assert!(
                        text.contains("Unsupported metadata.version downgrade"),
                        "{from} to {to}: {text}"
                    );
                    refused += 1;
                }
                Err(other) => panic!("{from} to {to}: {other}"),
            }
            pairs += 1;
        }
    }
    assert_eq!(pairs, 28 * 27);
    assert!(refused > 200, "{refused} downgrades are lossy");
}
