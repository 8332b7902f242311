//! The admin client against nodes that break the protocol, fall silent, lie, or lose their office at the worst moment.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod fake_broker;

#[path = "kafka_fake_broker/discovery.rs"]
mod discovery;
#[path = "kafka_fake_broker/frames.rs"]
mod frames;
#[path = "kafka_fake_broker/updates.rs"]
mod updates;
#[path = "kafka_fake_broker/versions.rs"]
mod versions;
