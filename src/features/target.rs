//! What a declaration means in levels: a release or a set of levels, resolved to a checked [`Target`].

use std::collections::BTreeMap;

use super::catalog::{Catalog, UnknownRelease};
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

/// Why a declaration can't be a target. Whatever the cluster could decide is not an error here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The release is not in the catalog.
    #[error("{0}; declare levels by number under features, or use an operator that knows it")]
    UnknownRelease(UnknownRelease),
    /// The release is not ready for production.
    #[error(
        "release {release:?} is metadata.version {level}, which Kafka does not call stable yet; declare a stable \
         release, or the levels by number under features"
    )]
    UnstableRelease {
        /// The release as declared.
        release: String,
        /// Its level, with its name.
        level: String,
    },
    /// A level by name that names no metadata version.
    #[error("metadata.version {0}; give the level by number, or use an operator that knows it")]
    UnknownMetadataVersion(UnknownRelease),
    /// A level by name for a feature whose levels have no names.
    #[error("{feature} {level:?}: only metadata.version has named levels; give the level as a number")]
    NamedLevel {
        /// The feature.
        feature: FeatureName,
        /// The level as declared.
        level: String,
    },
    /// A level below the lowest that the feature can have.
    #[error("{feature} {level}: the lowest level of {feature} is {lowest}")]
    LevelTooLow {
        /// The feature.
        feature: FeatureName,
        /// The level as declared.
        level: Level,
        /// Its lowest level.
        lowest: Level,
    },
    /// A name of KIP-1022's text that was released as another.
    #[error(
        "{feature} is the name in KIP-1022's text; Kafka released the feature as {released}: declare that"
    )]
    RenamedFeature {
        /// The feature as declared.
        feature: FeatureName,
        /// The released name.
        released: FeatureName,
    },
    /// Two declared levels contradict each other.
    #[error(
        "{feature} {level} needs {needs} {needs_level} or higher, but {declared} is declared: raise {needs}, or lower {feature}"
    )]
    DependencyInTarget {
        /// The feature.
        feature: FeatureName,
        /// Its declared level.
        level: Level,
        /// What it depends on.
        needs: FeatureName,
        /// The lowest level of that.
        needs_level: String,
        /// The declared level of that.
        declared: String,
    },
}

impl Target {
    /// Whether the target owns the feature.
    #[must_use]
    pub fn owns(&self, feature: &FeatureName) -> bool {
        self.levels.contains_key(feature)
    }
}

/// Resolves a declaration; `None` where nothing is declared.
///
/// # Errors
/// If the declaration contradicts itself, or names what can't exist or what only a newer catalog could know by name.
pub fn resolve(catalog: &Catalog, spec: &TargetSpec) -> Result<Option<Target>, TargetError> {
    match spec {
        TargetSpec::Nothing => Ok(None),
        TargetSpec::Levels(levels) if levels.is_empty() => Ok(None),
        TargetSpec::Release(release) => resolve_release(catalog, release).map(Some),
        TargetSpec::Levels(levels) => resolve_levels(catalog, levels).map(Some),
    }
}

fn resolve_release(catalog: &Catalog, release: &str) -> Result<Target, TargetError> {
    let version = catalog.declared_release(release).map_err(TargetError::UnknownRelease)?;
    let metadata_version = FeatureName::metadata_version();
    if !version.stable {
        let level = catalog.level_text(&metadata_version, version.level);
        return Err(TargetError::UnstableRelease { release: release.to_owned(), level });
    }
    let mut levels = catalog.defaults_at(version.level);
    levels.insert(metadata_version, version.level);
    Ok(Target { levels, release: Some(version.level) })
}

fn resolve_levels(
    catalog: &Catalog,
    declared: &BTreeMap<FeatureName, DeclaredLevel>,
) -> Result<Target, TargetError> {
    let mut levels = BTreeMap::new();
    for (feature, level) in declared {
        levels.insert(feature.clone(), resolve_level(catalog, feature, level)?);
    }
    for (feature, level) in &levels {
        for (needs, lowest) in catalog.needs(feature, *level) {
            let Some(declared) = levels.get(needs).filter(|declared| *declared < lowest) else { continue };
            return Err(TargetError::DependencyInTarget {
                feature: feature.clone(),
                level: *level,
                needs: needs.clone(),
                needs_level: catalog.level_text(needs, *lowest),
                declared: catalog.level_text(needs, *declared),
            });
        }
    }
    Ok(Target { levels, release: None })
}

fn resolve_level(
    catalog: &Catalog,
    feature: &FeatureName,
    declared: &DeclaredLevel,
) -> Result<Level, TargetError> {
    if let Some(released) = catalog.released_name(feature) {
        return Err(TargetError::RenamedFeature { feature: feature.clone(), released });
    }
    let level = match declared {
        DeclaredLevel::Number(level) => *level,
        DeclaredLevel::Name(name) if feature.is_metadata_version() => {
            catalog.declared_release(name).map_err(TargetError::UnknownMetadataVersion)?.level
        }
        DeclaredLevel::Name(name) => {
            let level = name.chars().take(64).collect();
            return Err(TargetError::NamedLevel { feature: feature.clone(), level });
        }
    };
    let lowest = if feature.is_metadata_version() {
        catalog.metadata_versions().first().map_or(Level::ZERO, |version| version.level)
    } else {
        Level::ZERO
    };
    if level < lowest {
        return Err(TargetError::LevelTooLow { feature: feature.clone(), level, lowest });
    }
    Ok(level)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> FeatureName {
        FeatureName::new(text).unwrap()
    }

    fn release(text: &str) -> Result<Option<Target>, TargetError> {
        resolve(Catalog::kafka(), &TargetSpec::Release(text.to_owned()))
    }

    fn levels(declared: &[(&str, &str)]) -> Result<Option<Target>, TargetError> {
        let level = |text: &str| match text.parse() {
            Ok(number) => DeclaredLevel::Number(Level(number)),
            Err(_) => DeclaredLevel::Name(text.to_owned()),
        };
        let declared = declared.iter().map(|(feature, text)| (name(feature), level(text))).collect();
        resolve(Catalog::kafka(), &TargetSpec::Levels(declared))
    }

    #[test]
    fn nothing_declared_is_no_target() {
        assert_eq!(resolve(Catalog::kafka(), &TargetSpec::Nothing), Ok(None));
        assert_eq!(levels(&[]), Ok(None));
    }

    #[test]
    fn a_release_owns_every_feature_level_0_included() {
        let target = release("3.9").unwrap().unwrap();
        assert_eq!(target.release, Some(Level(21)));
        assert_eq!(target.levels.len(), 7);
        assert_eq!(target.levels["kraft.version"], Level(1));
        assert_eq!(target.levels["group.version"], Level(0));
    }

    #[test]
    fn only_declared_features_are_owned() {
        let target = levels(&[("group.version", "1")]).unwrap().unwrap();
        assert!(target.owns(&name("group.version")) && !target.owns(&name("metadata.version")));
    }

    #[test]
    fn metadata_version_takes_names_and_numbers_known_or_not() {
        for (text, level) in [("4.3-IV0", 30), ("4.3", 30), ("30", 30), ("4.5-IV0", 34), ("77", 77)] {
            let target = levels(&[("metadata.version", text)]).unwrap().unwrap();
            assert_eq!(target.levels["metadata.version"], Level(level), "{text}");
        }
    }

    #[test]
    fn features_and_levels_that_the_catalog_does_not_know_are_taken() {
        let target = levels(&[("future.version", "3"), ("share.version", "9")]).unwrap().unwrap();
        assert_eq!(target.levels["future.version"], Level(3));
        assert_eq!(target.levels["share.version"], Level(9));
    }

    #[test]
    fn wrong_declarations_name_the_thing_the_value_and_the_way_out() {
        let cases = [
            (release("4.9"), vec!["\"4.9\"", "4.4", "by number under features"]),
            (release("4.4.0-IV0"), vec!["\"4.4.0-IV0\"", "not known"]),
            (release("latest"), vec!["\"latest\"", "not known"]),
            (release("4.5-IV0"), vec!["4.5-IV0", "34", "stable"]),
            (levels(&[("metadata.version", "4.9")]), vec!["metadata.version", "4.9", "number"]),
            (levels(&[("group.version", "one")]), vec!["group.version", "\"one\"", "number"]),
            (levels(&[("group.version", "-1")]), vec!["group.version", "-1", "0"]),
            (levels(&[("metadata.version", "6")]), vec!["metadata.version", "6", "7"]),
            (levels(&[("transaction.protocol.version", "1")]), vec!["transaction.version", "KIP-1022"]),
            (levels(&[("group.coordinator.version", "1")]), vec!["released the feature as group.version"]),
            (
                levels(&[("eligible.leader.replicas.version", "1"), ("metadata.version", "22")]),
                vec!["eligible.leader.replicas.version 1", "23 (4.0-IV1)", "22 (4.0-IV0)"],
            ),
        ];
        for (result, parts) in cases {
            let error = result.unwrap_err().to_string();
            for part in parts {
                assert!(error.contains(part), "{part:?} in {error:?}");
            }
            assert!(!error.contains('\n'));
        }
    }
}
