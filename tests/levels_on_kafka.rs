//! KIP-1022's test plan on a real Kafka 4.4.0: every release's default set and every level of every feature, set
//! through our client as our planner orders it, and read back by Kafka's own tool. And the dependency between
//! eligible leader replicas and `metadata.version`, both ways, in one request and in two.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod testbed;

use std::collections::{BTreeMap, BTreeSet};

use kafka_features_operator::features::catalog::Catalog;
use kafka_features_operator::features::observed::{ClusterId, Known, Observed};
use kafka_features_operator::features::plan::{
    Batching, Direction, DowngradePolicy, Plan, PlanError, PlanInput, Request, Step, plan,
};
use kafka_features_operator::features::target::{DeclaredLevel, Target, TargetSpec, resolve};
use kafka_features_operator::features::{FeatureName, Level};
use kafka_features_operator::kafka::{Client, Endpoints, Timeouts};
use testbed::{Kafka, NodeSpec, Quorum};

const ELR: &str = FeatureName::ELIGIBLE_LEADER_REPLICAS_VERSION;

struct Cluster {
    kafka: Kafka,
    client: Client,
    id: ClusterId,
}

impl Cluster {
    fn start(release: &str) -> Self {
        Self::of(Kafka::start(
            &[NodeSpec::combined(1, "4.4.0")],
            Quorum::Static,
            &["--release-version", release],
            &[],
        ))
    }

    fn of(kafka: Kafka) -> Self {
        let addresses = |texts: Vec<String>| texts.iter().map(|text| text.parse().unwrap()).collect();
        let endpoints =
            Endpoints { brokers: addresses(kafka.brokers()), controllers: addresses(kafka.controllers()) };
        let id = ClusterId(kafka.cluster_id.clone());
        Self { client: Client::new(endpoints, Timeouts::default()), id, kafka }
    }

    async fn observe(&self) -> Observed {
        self.client.observe().await.unwrap()
    }

    /// The plan to a target from what the cluster says now; downgrades and one-way steps allowed.
    async fn plan(&self, target: &TargetSpec, batching: Batching) -> Result<Plan, PlanError> {
        let observed = self.observe().await;
        let target = resolve(Catalog::kafka(), target).unwrap().unwrap();
        plan_for(&observed, &target, batching)
    }

    /// Reaches a target, request by request, each first with validate-only; returns the requests.
    async fn reach(&self, target: &TargetSpec, batching: Batching) -> Vec<Request> {
        let requests = self.plan(target, batching).await.unwrap().requests;
        for request in &requests {
            self.client.update_features(&self.id, request, true).await.unwrap();
            self.client.update_features(&self.id, request, false).await.unwrap();
        }
        requests
    }

    /// Holds the levels that Kafka's own tool reads to what is expected.
    async fn assert_levels(&self, expected: &BTreeMap<FeatureName, Level>, what: &str) {
        // a broker follows the controller a little behind
        for patience in (0..50).rev() {
            let read = self.kafka.finalized();
            let differs = expected.iter().find(|(feature, level)| {
                let text = if feature.is_metadata_version() {
                    Catalog::kafka().metadata_version(**level).unwrap().name.clone()
                } else {
                    level.to_string()
                };
                read[feature.as_str()] != text
            });
            match differs {
                None => return,
                Some((feature, level)) if patience == 0 => {
                    panic!("{what}: {feature} is not at {level}: {read:?}")
                }
                Some(_) => tokio::time::sleep(std::time::Duration::from_millis(100)).await,
            }
        }
    }
}

fn plan_for(observed: &Observed, target: &Target, batching: Batching) -> Result<Plan, PlanError> {
    plan(&PlanInput {
        catalog: Catalog::kafka(),
        finalized: &observed.finalized,
        target,
        downgrade: DowngradePolicy::Safe,
        allow_one_way: &target.levels.keys().cloned().collect(),
        min_insync_overrides: &observed.min_insync_overrides,
        batching,
    })
}

fn name(text: &str) -> FeatureName {
    FeatureName::new(text).unwrap()
}

fn levels(levels: &[(&str, i16)]) -> TargetSpec {
    let declared = |(feature, level): &(&str, i16)| (name(feature), DeclaredLevel::Number(Level(*level)));
    TargetSpec::Levels(levels.iter().map(declared).collect())
}

#[tokio::test]
async fn every_releases_default_set_is_reached_from_the_one_before() {
    let cluster = Cluster::start("3.3");
    for version in Catalog::kafka().metadata_versions().iter().filter(|version| version.stable) {
        let target = TargetSpec::Release(version.name.clone());
        let requests = cluster.reach(&target, Batching::Together).await;
        for request in &requests {
            let kraft = request.steps.iter().any(|step| step.feature.is_kraft_version());
            assert!(!kraft || request.steps.len() == 1, "kraft.version goes alone: {request}");
        }
        let mut expected = Catalog::kafka().defaults_at(version.level);
        expected.insert(FeatureName::metadata_version(), version.level);
        cluster.assert_levels(&expected, &version.name).await;
        assert!(
            cluster.plan(&target, Batching::Together).await.unwrap().requests.is_empty(),
            "{}",
            version.name
        );
    }
}

#[tokio::test]
async fn every_level_of_every_feature_is_set_with_the_others_at_their_defaults() {
    let cluster = Cluster::start("4.4");
    let defaults = Catalog::kafka().defaults_at(Level(33));
    for feature in Catalog::kafka().features() {
        let lowest = if feature.name.is_kraft_version() { 1 } else { 0 };
        let top = feature.levels.last().unwrap().level.0;
        // down and up again, and every level between in both directions
        for level in (lowest..=top).rev().chain(lowest..=top) {
            cluster.reach(&levels(&[(feature.name.as_str(), level)]), Batching::Together).await;
            let mut expected = defaults.clone();
            if !feature.name.is_kraft_version() {
                // formatted with static voters, so kraft.version is 0 until its own turn
                expected.remove("kraft.version");
            }
            expected.insert(feature.name.clone(), Level(level));
            cluster.assert_levels(&expected, &format!("{} {level}", feature.name)).await;
        }
        cluster
            .reach(&levels(&[(feature.name.as_str(), defaults[&feature.name].0)]), Batching::Together)
            .await;
    }
}

#[tokio::test]
async fn a_dependency_goes_up_first_and_comes_down_last_in_two_requests_and_also_in_one() {
    let cluster = Cluster::start("4.0-IV0");
    let up = levels(&[(ELR, 1), ("metadata.version", 24)]);
    let down = levels(&[(ELR, 0), ("metadata.version", 23)]);
    let order = |requests: &[Request]| -> Vec<Vec<String>> {
        let names = |request: &Request| request.steps.iter().map(|step| step.feature.to_string()).collect();
        requests.iter().map(names).collect()
    };

    // what Kafka itself refuses, so that the order is not a matter of taste
    let elr = Step {
        feature: name(ELR),
        from: Level(0),
        to: Level(1),
        direction: Direction::Up,
        one_way: false,
        note: None,
    };
    let alone = Request { steps: vec![elr] };
    let refusal = cluster.client.update_features(&cluster.id, &alone, true).await.unwrap_err().to_string();
    assert!(refusal.contains("depends on metadata.version level 23"), "{refusal}");

    let requests = cluster.reach(&up, Batching::Ordered).await;
    assert_eq!(order(&requests), [["metadata.version"], [ELR]]);
    cluster
        .assert_levels(
            &BTreeMap::from([(name(ELR), Level(1)), (FeatureName::metadata_version(), Level(24))]),
            "up",
        )
        .await;

    let only_metadata =
        cluster.plan(&levels(&[("metadata.version", 22)]), Batching::Ordered).await.unwrap_err();
    assert!(matches!(only_metadata, PlanError::LossyDowngrade { .. }), "{only_metadata}");

    let requests = cluster.reach(&down, Batching::Ordered).await;
    assert_eq!(order(&requests), [[ELR], ["metadata.version"]]);
    cluster
        .assert_levels(
            &BTreeMap::from([(name(ELR), Level(0)), (FeatureName::metadata_version(), Level(23))]),
            "down",
        )
        .await;

    let other = Cluster::start("4.0-IV0");
    let requests = other.reach(&up, Batching::Together).await;
    assert_eq!(order(&requests), [["metadata.version", ELR]]);
    other
        .assert_levels(
            &BTreeMap::from([(name(ELR), Level(1)), (FeatureName::metadata_version(), Level(24))]),
            "up in one",
        )
        .await;
    let requests = other.reach(&down, Batching::Together).await;
    assert_eq!(order(&requests), [[ELR, "metadata.version"]]);
    other
        .assert_levels(
            &BTreeMap::from([(name(ELR), Level(0)), (FeatureName::metadata_version(), Level(23))]),
            "down in one",
        )
        .await;
}

/// Kafka applies `kraft.version` from a request that it refuses for another feature: shown on Kafka by its own tool,
/// and never sent by us, neither by the planner nor by the client.
#[tokio::test]
async fn the_request_that_kafka_half_applies_is_never_sent() {
    let cluster = Cluster::start("3.8");
    let both = Request {
        steps: [("kraft.version", 0, 1), ("streams.version", 0, 9)]
            .map(|(feature, from, to)| Step {
                feature: name(feature),
                from: Level(from),
                to: Level(to),
                direction: Direction::Up,
                one_way: false,
                note: None,
            })
            .to_vec(),
    };
    let error = cluster.client.update_features(&cluster.id, &both, false).await.unwrap_err().to_string();
    assert!(error.contains("never sent") && error.contains("kraft.version"), "{error}");
    cluster.assert_levels(&BTreeMap::from([(name("kraft.version"), Level(0))]), "nothing was sent").await;

    for batching in [Batching::Together, Batching::Ordered] {
        let requests = cluster.plan(&TargetSpec::Release("4.4".into()), batching).await.unwrap().requests;
        let (last, before) = requests.split_last().unwrap();
        assert_eq!(last.steps.len(), 1);
        assert!(last.steps[0].feature.is_kraft_version() && last.steps[0].one_way);
        let kraft = |request: &Request| request.steps.iter().any(|step| step.feature.is_kraft_version());
        assert!(!before.iter().any(kraft));
    }

    let answer = cluster.kafka.features(&[
        "upgrade",
        "--feature",
        "kraft.version=1",
        "--feature",
        "streams.version=9",
    ]);
    assert_eq!(answer.exit, 1, "{}", answer.stdout);
    cluster
        .assert_levels(&BTreeMap::from([(name("kraft.version"), Level(1))]), "Kafka applies it all the same")
        .await;
}

/// A broker's own `min.insync.replicas` from its file no longer counts either: one for the whole cluster, which Kafka
/// sets, comes before it.
#[tokio::test]
async fn a_min_insync_replicas_from_a_brokers_file_is_seen_since_kafka_overrides_it() {
    let nodes = [NodeSpec::combined(1, "4.4.0")];
    let properties = ["min.insync.replicas=2"];
    let cluster =
        Cluster::of(Kafka::start(&nodes, Quorum::Static, &["--release-version", "4.0"], &properties));
    let own = |observed: Observed| observed.min_insync_overrides.value().unwrap().len();
    assert_eq!(own(cluster.observe().await), 1);
    let broker = cluster.kafka.broker(1);
    let for_all = [
        "--bootstrap-server",
        &broker,
        "--alter",
        "--entity-type",
        "brokers",
        "--entity-default",
        "--add-config",
        "min.insync.replicas=2",
    ];
    testbed::Oracle::of("4.4.0").run("kafka-configs", &for_all).ok();
    for patience in (0..50).rev() {
        // what is set for all stays as it is
        if own(cluster.observe().await) == 0 {
            return;
        }
        assert!(patience > 0, "a value for the whole cluster is not seen");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}

/// Brokers' own `min.insync.replicas`, which Kafka removes when eligible leader replicas are raised, are seen, and
/// need consent under a release.
#[tokio::test]
async fn a_brokers_own_min_insync_replicas_is_seen_and_holds_eligible_leader_replicas() {
    let cluster = Cluster::start("4.0");
    assert_eq!(cluster.observe().await.min_insync_overrides, Known::Yes(BTreeSet::new()));
    let broker = cluster.kafka.broker(1);
    let set = [
        "--bootstrap-server",
        &broker,
        "--alter",
        "--entity-type",
        "brokers",
        "--entity-name",
        "1",
        "--add-config",
        "min.insync.replicas=1",
    ];
    testbed::Oracle::of("4.4.0").run("kafka-configs", &set).ok();
    let mut observed = cluster.observe().await;
    for _ in 0..50 {
        if observed.min_insync_overrides.value().is_some_and(|own| !own.is_empty()) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        observed = cluster.observe().await;
    }
    assert_eq!(observed.min_insync_overrides.value().unwrap().iter().map(|id| id.0).collect::<Vec<_>>(), [1]);

    let target = resolve(Catalog::kafka(), &TargetSpec::Release("4.1".into())).unwrap().unwrap();
    let held = plan(&PlanInput {
        catalog: Catalog::kafka(),
        finalized: &observed.finalized,
        target: &target,
        downgrade: DowngradePolicy::Never,
        allow_one_way: &BTreeSet::new(),
        min_insync_overrides: &observed.min_insync_overrides,
        batching: Batching::Together,
    });
    let held: Vec<String> = held.unwrap().held.iter().map(|held| held.step.feature.to_string()).collect();
    assert_eq!(held, [ELR, "kraft.version"]);
}
