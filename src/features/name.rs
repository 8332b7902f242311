use std::fmt;

/// The name of a feature, such as `group.version`.
///
/// Any name that Kafka could carry is accepted, known to the catalog or not: what the catalog doesn't know,
/// the cluster decides.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FeatureName(String);

/// Why a text can't be a feature's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} can't be a feature's name: it takes 1 to 249 letters, digits, dots, dashes and underscores, \
     as in group.version"
)]
pub struct InvalidFeatureName(String);

impl FeatureName {
    /// `metadata.version`, the version of the metadata log's records (KIP-584, KIP-778).
    pub const METADATA_VERSION: &'static str = "metadata.version";
    /// `kraft.version`: 1 means dynamic controller quorums (KIP-853).
    pub const KRAFT_VERSION: &'static str = "kraft.version";
    /// `transaction.version` (KIP-890, KIP-1022).
    pub const TRANSACTION_VERSION: &'static str = "transaction.version";
    /// `group.version` (KIP-848, KIP-1022).
    pub const GROUP_VERSION: &'static str = "group.version";
    /// `eligible.leader.replicas.version` (KIP-966).
    pub const ELIGIBLE_LEADER_REPLICAS_VERSION: &'static str = "eligible.leader.replicas.version";
    /// `share.version` (KIP-932).
    pub const SHARE_VERSION: &'static str = "share.version";
    /// `streams.version` (KIP-1071).
    pub const STREAMS_VERSION: &'static str = "streams.version";

    /// Takes a name from outside.
    ///
    /// # Errors
    /// If the text is empty, longer than 249 characters, or holds anything but letters, digits, `.`, `-`, `_`.
    pub fn new(name: impl Into<String>) -> Result<Self, InvalidFeatureName> {
        let name = name.into();
        let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if name.is_empty() || name.len() > 249 || !name.chars().all(legal) {
            return Err(InvalidFeatureName(name));
        }
        Ok(Self(name))
    }

    /// A name that the catalog itself holds, legal by construction.
    pub(crate) fn known(name: &'static str) -> Self {
        Self(name.to_owned())
    }

    /// `metadata.version`.
    #[must_use]
    pub fn metadata_version() -> Self {
        Self::known(Self::METADATA_VERSION)
    }

    /// `kraft.version`.
    #[must_use]
    pub fn kraft_version() -> Self {
        Self::known(Self::KRAFT_VERSION)
    }

    /// The name as Kafka writes it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is `metadata.version`, the one feature that is never absent and has named levels.
    #[must_use]
    pub fn is_metadata_version(&self) -> bool {
        self.0 == Self::METADATA_VERSION
    }

    /// Whether this is `kraft.version`, which Kafka applies outside of the metadata log and never lowers.
    #[must_use]
    pub fn is_kraft_version(&self) -> bool {
        self.0 == Self::KRAFT_VERSION
    }
}

impl fmt::Display for FeatureName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// So that maps keyed by feature can be asked with a `&str`.
impl std::borrow::Borrow<str> for FeatureName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_no_cluster_could_have_are_refused_with_the_value() {
        for bad in ["", "group version", "group=1", "ä", &"x".repeat(250)] {
            let error = FeatureName::new(bad).unwrap_err().to_string();
            assert!(error.contains(bad), "{error}");
        }
    }

    #[test]
    fn names_that_the_catalog_does_not_know_are_taken() {
        assert_eq!(FeatureName::new("some.future-version_2").unwrap().as_str(), "some.future-version_2");
    }
}
