//! Formatting: what a node's directories must hold before Kafka starts on them, and what they hold already. The only room
//! that writes to Kafka's directories. Knows neither networks nor Kubernetes.

pub mod checkpoint;
pub mod config;
pub mod directory;
pub mod environment;
pub mod format;
mod id;
pub mod info;
pub mod levels;
pub mod meta_properties;
pub mod metadata_record;
pub mod properties;
pub mod scram;
pub mod software;
pub mod voters;
mod wire;

pub use id::{InvalidUuid, Uuid};
