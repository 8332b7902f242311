//! What a declaration means in levels: a release or a set of levels, resolved to a checked [`Target`].

use std::collections::BTreeMap;

use super::{FeatureName, Level};

/// A level as it is declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeclaredLevel {
    /// By number.
    Number(Level),
    /// By name, which only the levels of `metadata.version` have, such as `4.3-IV0` or `4.3`.
    Name(String),
}

/// What a resource declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetSpec {
    /// Nothing: observe and hold.
    Nothing,
    /// A release or a metadata version by name; owns every feature.
    Release(String),
    /// Levels; only the features named are owned.
    Levels(BTreeMap<FeatureName, DeclaredLevel>),
}

/// The levels that a cluster shall have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The level of every owned feature. By release: all of the catalog, level 0 included.
    pub levels: BTreeMap<FeatureName, Level>,
    /// The `metadata.version` level of the declared release; `None` where levels were declared.
    pub release: Option<Level>,
}
