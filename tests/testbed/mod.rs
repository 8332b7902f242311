//! Real parts for tests and the demo: Kafka of any version that has a manifest here, Kafka's own tools, an API server,
//! and a whole cluster of one node. Everything listens on loopback or in a network namespace, and nothing outlives the
//! process that started it.

// each test binary uses its own share of the testbed
#![allow(dead_code, unused_imports, unreachable_pub, missing_docs)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod api_server;
pub mod kafka;
pub mod node;
pub mod oracle;
pub mod parts;
pub mod ports;
pub mod process;

#[allow(unused_imports)]
pub use api_server::ApiServer;
pub use kafka::{Formatter, Kafka, NodeSpec, Quorum};
pub use node::Node;
pub use oracle::Oracle;
