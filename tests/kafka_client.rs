//! The admin client on real Kafka from 3.7 to 4.4: each odd answer on the version that gives it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod raw_request;
mod testbed;

#[path = "kafka_client/absence.rs"]
mod absence;
#[path = "kafka_client/access.rs"]
mod access;
#[path = "kafka_client/cluster.rs"]
mod cluster;
#[path = "kafka_client/quorums.rs"]
mod quorums;
#[path = "kafka_client/versions.rs"]
mod versions;
