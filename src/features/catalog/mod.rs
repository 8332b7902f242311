//! What Kafka has released: features, levels, their names and dependencies, and which level each has by default at
//! which release. The catalog explains and resolves; it never forbids a feature or a level that it doesn't know.

mod metadata_version;
mod table;
#[cfg(test)]
mod tests;

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

    /// Whether Kafka itself keeps a level from being finalized that a controller does not support: not below
    /// `metadata.version` 15, where controllers don't register. A controller that is left behind dies of the level.
    #[must_use]
    pub fn kafka_checks_controllers(&self, metadata_version: Level) -> bool {
        metadata_version >= Level(table::CONTROLLERS_REGISTER)
    }

    /// Whether a controller that supports these ranges really moves `kraft.version`: Kafka before 4.1 advertises level
    /// 1 and reports success, and does not.
    #[must_use]
    pub fn moves_kraft_version(&self, supported: &SupportedFeatures) -> bool {
        let metadata_version = supported.get(FeatureName::METADATA_VERSION);
        metadata_version.is_some_and(|range| range.max >= Level(table::MOVES_KRAFT_VERSION))
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
