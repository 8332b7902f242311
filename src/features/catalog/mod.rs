//! What Kafka has released: features, levels, their names and dependencies, and which level each has by default at
//! which release. The catalog explains and resolves; it never forbids a feature or a level that it doesn't know.

mod metadata_version;
mod table;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::{FeatureName, Level, LevelRange, SupportedFeatures};

pub use metadata_version::{MetadataVersion, UnknownRelease};

/// One level of a feature other than `metadata.version`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelEntry {
    /// The level, above 0.
    pub level: Level,
    /// The lowest `metadata.version` at which this level is the default.
    pub default_from: Level,
    /// What must be finalized for this level: features and their lowest levels.
    pub needs: Vec<(FeatureName, Level)>,
}

/// One feature other than `metadata.version`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeatureEntry {
    /// Its name.
    pub name: FeatureName,
    /// Its levels above 0, rising.
    pub levels: Vec<LevelEntry>,
}

/// What one release of the Kafka software supports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Software {
    /// The release's first two numbers, such as `4.4`.
    pub release: String,
    /// The ranges that its nodes advertise, without unstable levels.
    pub supported: SupportedFeatures,
}

/// A set of features and levels. [`Catalog::kafka`] is the real one; others serve to test the planner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalog {
    metadata_versions: Vec<MetadataVersion>,
    features: Vec<FeatureEntry>,
    software: Vec<Software>,
}

static KAFKA: LazyLock<Catalog> = LazyLock::new(|| Catalog {
    metadata_versions: table::METADATA_VERSIONS.iter().map(MetadataVersion::from_row).collect(),
    features: table::FEATURES.iter().map(|(name, levels)| feature_entry(name, levels)).collect(),
    software: table::SOFTWARE
        .iter()
        .map(|(release, ranges)| Software { release: (*release).to_owned(), supported: supported(ranges) })
        .collect(),
});

fn feature_entry(name: &'static str, levels: &[table::LevelRow]) -> FeatureEntry {
    let levels = levels.iter().map(|(level, default_from, needs)| LevelEntry {
        level: Level(*level),
        default_from: Level(*default_from),
        needs: needs.iter().map(|(name, level)| (FeatureName::known(name), Level(*level))).collect(),
    });
    FeatureEntry { name: FeatureName::known(name), levels: levels.collect() }
}

fn supported(ranges: &[table::RangeRow]) -> SupportedFeatures {
    let range = |(name, min, max): &table::RangeRow| {
        (FeatureName::known(name), LevelRange { min: Level(*min), max: Level(*max) })
    };
    ranges.iter().map(range).collect()
}

impl Catalog {
    /// What Kafka has released up to 4.4.
    #[must_use]
    pub fn kafka() -> &'static Self {
        &KAFKA
    }

    /// A catalog of one's own, with `metadata.version` levels (rising) and features.
    #[must_use]
    pub fn new(metadata_versions: Vec<MetadataVersion>, features: Vec<FeatureEntry>) -> Self {
        Self { metadata_versions, features, software: Vec::new() }
    }

    /// All known levels of `metadata.version`, rising.
    #[must_use]
    pub fn metadata_versions(&self) -> &[MetadataVersion] {
        &self.metadata_versions
    }

    /// The features besides `metadata.version`, in the order of Kafka's own listings.
    #[must_use]
    pub fn features(&self) -> &[FeatureEntry] {
        &self.features
    }

    /// What each release of the Kafka software supports, oldest first.
    #[must_use]
    pub fn software(&self) -> &[Software] {
        &self.software
    }

    /// One level of `metadata.version`, if the catalog knows it.
    #[must_use]
    pub fn metadata_version(&self, level: Level) -> Option<&MetadataVersion> {
        self.metadata_versions.iter().find(|version| version.level == level)
    }

    /// The level that each feature besides `metadata.version` has by default at a `metadata.version`, 0 included.
    #[must_use]
    pub fn defaults_at(&self, metadata_version: Level) -> BTreeMap<FeatureName, Level> {
        let default = |feature: &FeatureEntry| {
            let reached = feature.levels.iter().filter(|entry| entry.default_from <= metadata_version);
            reached.map(|entry| entry.level).max().unwrap_or(Level::ZERO)
        };
        self.features.iter().map(|feature| (feature.name.clone(), default(feature))).collect()
    }

    /// What a feature's level depends on: features and their lowest levels. Empty where nothing is needed, and for
    /// what the catalog doesn't know.
    #[must_use]
    pub fn needs(&self, feature: &FeatureName, level: Level) -> &[(FeatureName, Level)] {
        self.features
            .iter()
            .filter(|entry| entry.name == *feature)
            .flat_map(|entry| &entry.levels)
            .find(|entry| entry.level == level)
            .map_or(&[], |entry| &entry.needs)
    }

    /// The lowest `metadata.version` that a downgrade from `from` reaches without loss: Kafka refuses to go below
    /// the highest level up to `from` that changed the metadata. `None` where the catalog doesn't know `from`.
    #[must_use]
    pub fn lowest_lossless(&self, from: Level) -> Option<&MetadataVersion> {
        self.metadata_version(from)?;
        self.metadata_versions.iter().rev().filter(|version| version.level <= from).find(|version| {
            version.changed_metadata || Some(version.level) == self.metadata_versions.first().map(|v| v.level)
        })
    }

    /// A level for people: with its name where it is a known level of `metadata.version`.
    #[must_use]
    pub fn level_text(&self, feature: &FeatureName, level: Level) -> String {
        let version = if feature.is_metadata_version() { self.metadata_version(level) } else { None };
        version.map_or_else(|| level.to_string(), |version| format!("{level} ({})", version.name))
    }

    /// Whether the catalog knows a feature's name.
    #[must_use]
    pub fn knows(&self, feature: &FeatureName) -> bool {
        feature.is_metadata_version() || self.features.iter().any(|entry| entry.name == *feature)
    }

    /// The released name of a feature that KIP-1022 proposed under another.
    #[must_use]
    pub fn released_name(&self, feature: &FeatureName) -> Option<FeatureName> {
        let renamed = table::RENAMED.iter().find(|(proposed, _)| *proposed == feature.as_str())?;
        Some(FeatureName::known(renamed.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> FeatureName {
        FeatureName::new(text).unwrap()
    }

    #[test]
    fn levels_of_metadata_version_are_whole_and_rising() {
        let levels: Vec<i16> = Catalog::kafka().metadata_versions().iter().map(|v| v.level.0).collect();
        assert_eq!(levels, (7..=34).collect::<Vec<i16>>());
    }

    #[test]
    fn the_lowest_lossless_level_is_the_last_that_changed_metadata() {
        let expected = |from: i16| match from {
            33.. => 33,
            32 => 32,
            30..=31 => 30,
            23..=29 => 23,
            17..=22 => 17,
            15..=16 => 15,
            14 => 14,
            13 => 13,
            11..=12 => 11,
            8..=10 => 8,
            _ => 7,
        };
        for from in 7..=34 {
            let lowest = Catalog::kafka().lowest_lossless(Level(from)).unwrap();
            assert_eq!(lowest.level.0, expected(from), "from {from}");
        }
        assert_eq!(Catalog::kafka().lowest_lossless(Level(35)), None);
    }

    #[test]
    fn defaults_jump_where_kafka_makes_them_jump() {
        let at = |level: i16| -> Vec<i16> {
            let defaults = Catalog::kafka().defaults_at(Level(level));
            Catalog::kafka().features().iter().map(|feature| defaults[&feature.name].0).collect()
        };
        assert_eq!(at(7), [0, 0, 0, 0, 0, 0]);
        assert_eq!(at(20), [0, 0, 0, 0, 0, 0]);
        assert_eq!(at(21), [1, 0, 0, 0, 0, 0]);
        assert_eq!(at(22), [1, 0, 1, 0, 0, 0]);
        assert_eq!(at(24), [1, 2, 1, 0, 0, 0]);
        assert_eq!(at(26), [1, 2, 1, 1, 0, 0]);
        assert_eq!(at(28), [1, 2, 1, 1, 1, 0]);
        assert_eq!(at(29), [1, 2, 1, 1, 1, 1]);
        assert_eq!(at(31), [1, 2, 1, 1, 2, 1]);
        assert_eq!(at(34), [1, 2, 1, 1, 2, 1]);
    }

    #[test]
    fn eligible_leader_replicas_is_the_one_level_with_a_dependency() {
        let catalog = Catalog::kafka();
        let dependent: Vec<String> = catalog
            .features()
            .iter()
            .flat_map(|f| f.levels.iter().map(move |l| (f, l)))
            .filter(|(_, l)| !l.needs.is_empty())
            .map(|(f, l)| format!("{}={} needs {:?}", f.name, l.level, l.needs[0].1.0))
            .collect();
        assert_eq!(dependent, ["eligible.leader.replicas.version=1 needs 23"]);
    }

    #[test]
    fn every_default_of_a_release_is_supported_by_the_software_of_that_release() {
        let catalog = Catalog::kafka();
        for software in catalog.software() {
            let release = catalog.release(&software.release).unwrap();
            assert_eq!(software.supported["metadata.version"].max, release.level, "{}", software.release);
            for (feature, level) in catalog.defaults_at(release.level) {
                let range = software.supported.get(&feature).copied().unwrap_or(LevelRange::ABSENT);
                assert!(range.contains(level), "{} {feature} {level}", software.release);
            }
        }
    }

    #[test]
    fn what_the_catalog_does_not_know_is_handled_by_number() {
        let catalog = Catalog::kafka();
        assert_eq!(catalog.level_text(&name("metadata.version"), Level(33)), "33 (4.4-IV2)");
        assert_eq!(catalog.level_text(&name("metadata.version"), Level(99)), "99");
        assert_eq!(catalog.level_text(&name("future.version"), Level(3)), "3");
        assert!(catalog.needs(&name("future.version"), Level(3)).is_empty());
        assert!(catalog.needs(&name("group.version"), Level(9)).is_empty());
        assert!(!catalog.knows(&name("future.version")));
    }

    #[test]
    fn names_of_the_proposal_lead_to_the_released_ones() {
        let released = |text: &str| Catalog::kafka().released_name(&name(text)).map(|n| n.to_string());
        assert_eq!(released("transaction.protocol.version").as_deref(), Some("transaction.version"));
        assert_eq!(released("group.coordinator.version").as_deref(), Some("group.version"));
        assert_eq!(released("group.version"), None);
    }
}
