//! The Kafka software that is to start on a directory, and what it can read there. The one table of what differs between
//! versions; which layout is right depends on the software alone, never on the levels that are asked for (KIP-1170).

use crate::features::catalog::{Catalog, Software as Supports};
use crate::features::{FeatureName, Level, LevelRange};

/// What a controller's directory begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// `bootstrap.checkpoint` with the metadata records in every directory; for voters of a dynamic quorum also the zero
    /// checkpoint, without any.
    BootstrapCheckpoint,
    /// The zero checkpoint with the metadata records, in a controller's metadata directory only.
    ZeroCheckpoint,
}

/// A record that holds the cluster's id (KIP-1262).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterIdRecord {
    /// Its key.
    pub key: u32,
    /// The lowest `metadata.version` that has it.
    pub from: Level,
}

/// The part of the table that is about directories: release, layout, whether there are dynamic quorums, the record of the
/// cluster's id.
type Row = (&'static str, Layout, bool, Option<ClusterIdRecord>);

const DYNAMIC: bool = true;
const STATIC_ONLY: bool = false;

const TABLE: &[Row] = &[
    ("3.7", Layout::BootstrapCheckpoint, STATIC_ONLY, None),
    ("3.8", Layout::BootstrapCheckpoint, STATIC_ONLY, None),
    ("3.9", Layout::BootstrapCheckpoint, DYNAMIC, None),
    ("4.0", Layout::BootstrapCheckpoint, DYNAMIC, None),
    ("4.1", Layout::BootstrapCheckpoint, DYNAMIC, None),
    ("4.2", Layout::BootstrapCheckpoint, DYNAMIC, None),
    ("4.3", Layout::BootstrapCheckpoint, DYNAMIC, None),
    ("4.4", Layout::ZeroCheckpoint, DYNAMIC, None),
    // key and level are the proposal's; released software has given both to other things
    (DRAFT, Layout::ZeroCheckpoint, DYNAMIC, Some(ClusterIdRecord { key: 29, from: Level(33) })),
];

/// The row for the draft of KIP-1262, which no release has.
const DRAFT: &str = "kip-1262-draft";
/// The release that the draft is based on.
const DRAFT_BASE: &str = "4.4";

/// The Kafka software that is to start on a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Software {
    /// Its release, as a row of the table has it.
    pub release: &'static str,
    /// What it finds its first metadata records in.
    pub layout: Layout,
    /// Whether its quorums can be dynamic (KIP-853).
    pub dynamic_quorums: bool,
    /// Its record of the cluster's id, if it has one. What has one also reads a `meta.properties` without that id.
    pub cluster_id_record: Option<ClusterIdRecord>,
    supports: &'static Supports,
}

/// A text that names no Kafka software that is known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Kafka {text:?} is not known: known are {known}")]
pub struct UnknownSoftware {
    text: String,
    known: String,
}

/// The newest release, which is meant where none is named.
pub const NEWEST: &str = "4.4";

impl Software {
    /// The software of a version such as `4.3.1` or `4.3`; what follows the second number does not count.
    ///
    /// # Errors
    /// If the version is not in the table: what it could read is not known then.
    pub fn of(text: &str) -> Result<Self, UnknownSoftware> {
        let release = if text == DRAFT { Some(text) } else { release(text) };
        let row = release.and_then(|release| TABLE.iter().find(|row| row.0 == release));
        row.and_then(Self::from_row).ok_or_else(|| UnknownSoftware {
            text: text.chars().take(64).collect(),
            known: TABLE.iter().map(|row| row.0).collect::<Vec<_>>().join(", "),
        })
    }

    fn from_row(row: &Row) -> Option<Self> {
        let &(release, layout, dynamic_quorums, cluster_id_record) = row;
        let base = if release == DRAFT { DRAFT_BASE } else { release };
        let supports = Catalog::kafka().software().iter().find(|software| software.release == base)?;
        Some(Self { release, layout, dynamic_quorums, cluster_id_record, supports })
    }

    /// The levels of a feature that it supports; `None`: it does not know the feature.
    #[must_use]
    pub fn supports(&self, feature: &FeatureName) -> Option<LevelRange> {
        self.supports.supported.get(feature).copied()
    }

    /// The features besides `metadata.version` that it knows, by name.
    pub fn features(&self) -> impl Iterator<Item = &'static FeatureName> {
        self.supports.supported.keys().filter(|feature| !feature.is_metadata_version())
    }
}

/// The first two numbers of a version.
fn release(text: &str) -> Option<&str> {
    let (major, rest) = text.split_once('.')?;
    let minor = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (minor, rest) = rest.split_at(minor);
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let well_formed =
        digits(major) && digits(minor) && (rest.is_empty() || rest.starts_with(['.', '-', '+']));
    well_formed.then(|| text.get(..major.len() + 1 + minor.len())).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_its_levels_in_the_catalog() {
        for row in TABLE {
            assert!(Software::from_row(row).is_some(), "{}", row.0);
        }
        assert_eq!(Software::of(NEWEST).unwrap().release, NEWEST);
        let catalog = Catalog::kafka().software().iter().all(|s| TABLE.iter().any(|row| row.0 == s.release));
        assert!(catalog, "a release of the catalog has no row here");
    }

    #[test]
    fn a_version_is_known_by_its_first_two_numbers() {
        for (text, expected) in [("4.3.1", "4.3"), ("4.4", "4.4"), ("3.9.2-rc1", "3.9"), (DRAFT, DRAFT)] {
            assert_eq!(Software::of(text).unwrap().release, expected);
        }
        for text in ["", "4", "4.", "4.10", "4.4x", "5.0", "v4.4", "latest", "kip-1262", ".4", "4 .4"] {
            let error = Software::of(text).unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")) && error.contains("4.3, 4.4"), "{error}");
        }
    }

    #[test]
    fn no_released_software_has_a_record_of_the_cluster_id() {
        for row in TABLE.iter().filter(|row| row.0 != DRAFT) {
            assert_eq!(row.3, None, "{}", row.0);
        }
    }
}
