//! The domain: which features and levels Kafka has, what a declared target means for a cluster, the ordered
//! way from the finalized levels to it, and the decision what to do next.
//!
//! Everything here is a function from values to values. This room does no I/O, awaits nothing, reads no
//! clock, and names neither Kubernetes nor the Kafka protocol.

pub mod catalog;
pub mod decide;
mod level;
mod name;
pub mod observed;
pub mod plan;
pub mod target;

pub use level::{FinalizedFeatures, Level, LevelRange, SupportedFeatures};
pub use name::{FeatureName, InvalidFeatureName};
