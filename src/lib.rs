//! Feature levels of Kafka clusters, managed declaratively.
//!
//! The rooms of this crate, and which may use which, are described in
//! `docs/architecture.md`; `tests/rooms.rs` holds them to it.

pub mod api;
pub mod cli;
pub mod controller;
pub mod features;
pub mod grants;
pub mod injection;
pub mod kafka;
pub mod storage;
pub mod telemetry;
