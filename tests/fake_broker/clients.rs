//! Our client against fake nodes, and what most tests do with it.

use std::time::Duration;

use kafka_features_operator::features::observed::ClusterId;
use kafka_features_operator::features::plan::{Direction, Request, Step};
use kafka_features_operator::features::{FeatureName, Level};
use kafka_features_operator::kafka::{Client, Endpoints, Timeouts};
use kafka_protocol::messages::DescribeQuorumResponse;

use super::{Ask, Bound, FakeBroker, Reply, Script};

/// For tests that wait for a time-out: long enough for every answer that does come.
pub const SHORT: Timeouts = Timeouts { request: Duration::from_millis(700), pass: Duration::from_secs(3) };

pub fn client(brokers: &[&FakeBroker], controllers: &[&FakeBroker]) -> Client {
    patient_client(brokers, controllers, Timeouts::default())
}

pub fn patient_client(brokers: &[&FakeBroker], controllers: &[&FakeBroker], timeouts: Timeouts) -> Client {
    let addresses =
        |nodes: &[&FakeBroker]| nodes.iter().map(|node| node.address().parse().unwrap()).collect();
    Client::new(Endpoints { brokers: addresses(brokers), controllers: addresses(controllers) }, timeouts)
}

pub fn cluster() -> ClusterId {
    ClusterId("cluster-a".to_owned())
}

pub fn raise(features: &[&str]) -> Request {
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

pub async fn broker(bend: impl Fn(&Script, &Ask) -> Option<Reply> + Send + Sync + 'static) -> FakeBroker {
    let bound = Bound::new().await;
    let script = Script::broker(bound.port);
    bound.serve(move |ask| bend(&script, ask).unwrap_or_else(|| script.reply(ask)))
}

pub async fn controller(bend: impl Fn(&Script, &Ask) -> Option<Reply> + Send + Sync + 'static) -> FakeBroker {
    let bound = Bound::new().await;
    let script = Script::controller(bound.port);
    bound.serve(move |ask| bend(&script, ask).unwrap_or_else(|| script.reply(ask)))
}

/// What a controller that does not lead answers to DescribeQuorum.
pub fn not_the_leader(script: &Script) -> DescribeQuorumResponse {
    let mut quorum = script.quorum();
    quorum.topics[0].partitions[0].error_code = 6;
    quorum
}
