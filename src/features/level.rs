use std::collections::BTreeMap;
use std::fmt;

use super::FeatureName;

/// A feature's level, as Kafka numbers it. 0 means "not finalized" for every feature but `metadata.version`,
/// whose lowest level is 7.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Level(pub i16);

impl Level {
    /// The level of a feature that is not finalized.
    pub const ZERO: Self = Self(0);
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The levels of one feature that some software supports, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LevelRange {
    /// The lowest supported level.
    pub min: Level,
    /// The highest supported level.
    pub max: Level,
}

impl LevelRange {
    /// The range of a feature that a node does not mention: Kafka counts it as 0 to 0.
    pub const ABSENT: Self = Self { min: Level::ZERO, max: Level::ZERO };

    /// Whether `level` lies in the range.
    #[must_use]
    pub fn contains(self, level: Level) -> bool {
        self.min <= level && level <= self.max
    }
}

impl fmt::Display for LevelRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.min, self.max)
    }
}

/// The supported range of every feature that one node names.
pub type SupportedFeatures = BTreeMap<FeatureName, LevelRange>;

/// The finalized level of every feature of one cluster; a feature that is absent has level 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FinalizedFeatures(BTreeMap<FeatureName, Level>);

impl FinalizedFeatures {
    /// The finalized level of a feature, 0 if the cluster does not name it.
    #[must_use]
    pub fn get(&self, feature: &str) -> Level {
        self.0.get(feature).copied().unwrap_or_default()
    }

    /// Sets a feature's level; level 0 removes it.
    pub fn set(&mut self, feature: FeatureName, level: Level) {
        if level == Level::ZERO {
            self.0.remove(&feature);
        } else {
            self.0.insert(feature, level);
        }
    }

    /// All features above level 0, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&FeatureName, Level)> {
        self.0.iter().map(|(feature, level)| (feature, *level))
    }
}

impl FromIterator<(FeatureName, Level)> for FinalizedFeatures {
    fn from_iter<I: IntoIterator<Item = (FeatureName, Level)>>(levels: I) -> Self {
        let mut finalized = Self::default();
        for (feature, level) in levels {
            finalized.set(feature, level);
        }
        finalized
    }
}
