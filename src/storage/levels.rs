//! The levels that a new cluster begins with: from a release, single features, and what the target software knows. Finds
//! everything that is wrong with them at once.

use std::collections::BTreeMap;

use super::software::Software;
use crate::features::catalog::{Catalog, MetadataVersion, UnknownRelease};
use crate::features::{FeatureName, Level};

/// What was asked for.
#[derive(Clone, Debug, Default)]
pub struct LevelsWanted<'a> {
    /// A release, or a metadata version by name.
    pub release: Option<&'a str>,
    /// Features, each as `name=level`; of several about one feature the last counts.
    pub features: &'a [String],
    /// Whether the quorum is dynamic: no `controller.quorum.voters`.
    pub dynamic_quorum: bool,
    /// Whether levels that are not ready for production are allowed.
    pub unstable: bool,
}

/// The levels of a new cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Levels {
    /// Its metadata version.
    pub metadata_version: &'static MetadataVersion,
    /// Its kraft.version, which follows from the kind of quorum unless it is given.
    pub kraft_version: Level,
    /// Every other feature that the software knows, level 0 included.
    pub others: BTreeMap<FeatureName, Level>,
}

/// Why levels can't be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidLevels {
    /// The release is not known.
    #[error("--release-version: {0}")]
    UnknownRelease(#[from] UnknownRelease),
    /// The release is newer than the software.
    #[error(
        "--release-version {release:?} is metadata.version {level}, which Kafka {software} does not know: its newest is {newest}"
    )]
    NewerThanSoftware {
        /// The release as given.
        release: String,
        /// Its level, with its name.
        level: String,
        /// The target software.
        software: &'static str,
        /// The newest level that it knows.
        newest: String,
    },
    /// A level that is not ready for production.
    #[error(
        "metadata.version {0} is not stable yet; set unstable.feature.versions.enable=true only where all data may be lost"
    )]
    Unstable(String),
    /// Both say what the metadata version is.
    #[error("--release-version and --feature {0} both say what metadata.version is: give one of the two")]
    TwoMetadataVersions(String),
    /// A feature without its level.
    #[error("--feature {0:?} has no equals sign: give it as name=level, such as group.version=1")]
    NoEqualsSign(String),
    /// A level that is no number.
    #[error("--feature {feature}: {level:?} is no level; levels are numbers from 0 to {}", i16::MAX)]
    NotANumber {
        /// The feature.
        feature: String,
        /// The level as given.
        level: String,
    },
    /// A feature that the software does not know.
    #[error("{feature:?} is no feature of Kafka {software}{hint}; known are {known}")]
    UnknownFeature {
        /// The feature as given.
        feature: String,
        /// The target software.
        software: &'static str,
        /// The name that it was released under, in words.
        hint: String,
        /// What the software knows.
        known: String,
    },
    /// A level that the feature does not have in the software.
    #[error("{feature} {level} is not known to Kafka {software}; its levels are {min} to {max}")]
    UnknownLevel {
        /// The feature.
        feature: FeatureName,
        /// The level.
        level: Level,
        /// The target software.
        software: &'static str,
        /// The lowest level.
        min: Level,
        /// The highest level.
        max: Level,
    },
    /// A level that needs another feature at a higher one.
    #[error(
        "{feature} {level} needs {needs} {lowest} or higher, but it would be {would_be}: raise {needs}, or lower {feature}"
    )]
    Dependency {
        /// The feature.
        feature: FeatureName,
        /// Its level.
        level: Level,
        /// What it depends on.
        needs: FeatureName,
        /// The lowest level of that, with its name.
        lowest: String,
        /// The level that it would have, with its name.
        would_be: String,
    },
    /// kraft.version 0 in a dynamic quorum.
    #[error(
        "kraft.version 0 is for static quorums, and without controller.quorum.voters the quorum is dynamic: leave kraft.version out"
    )]
    KraftVersionOfDynamicQuorum,
    /// kraft.version above 0 in a static quorum.
    #[error(
        "kraft.version {0} is for dynamic quorums, and with controller.quorum.voters the quorum is static: leave \
         kraft.version out, or remove controller.quorum.voters and use --standalone, --initial-controllers or \
         --no-initial-controllers"
    )]
    KraftVersionOfStaticQuorum(Level),
}

/// Works out the levels.
///
/// # Errors
/// All that is wrong with what is wanted.
pub fn resolve(software: &Software, wanted: &LevelsWanted<'_>) -> Result<Levels, Vec<InvalidLevels>> {
    let mut wrong = Vec::new();
    let given = given(wanted.features, &mut wrong);
    let metadata_version = metadata_version(software, wanted, &given, &mut wrong);
    let kraft_version = kraft_version(software, wanted, &given, &mut wrong);
    let mut others = match metadata_version {
        Some(version) => Catalog::kafka().defaults_at(version.level),
        None => BTreeMap::new(),
    };
    others.retain(|feature, _| {
        feature.as_str() != FeatureName::KRAFT_VERSION && software.supports(feature).is_some()
    });
    for (name, level) in &given {
        if [FeatureName::METADATA_VERSION, FeatureName::KRAFT_VERSION].contains(&name.as_str()) {
            continue;
        }
        match known(software, name, *level) {
            Ok(feature) => {
                others.insert(feature, *level);
            }
            Err(error) => wrong.push(error),
        }
    }
    if let Some(metadata_version) = metadata_version {
        let levels = Levels { metadata_version, kraft_version, others };
        wrong.extend(levels.unmet());
        if wrong.is_empty() {
            return Ok(levels);
        }
    }
    Err(wrong)
}

impl Levels {
    fn unmet(&self) -> Vec<InvalidLevels> {
        let catalog = Catalog::kafka();
        let level_of = |feature: &FeatureName| match feature.as_str() {
            FeatureName::METADATA_VERSION => self.metadata_version.level,
            FeatureName::KRAFT_VERSION => self.kraft_version,
            _ => self.others.get(feature).copied().unwrap_or_default(),
        };
        let unmet = |(feature, level): (&FeatureName, &Level)| {
            let needs =
                catalog.needs(feature, *level).iter().filter(|(needs, lowest)| level_of(needs) < *lowest);
            let error = |(needs, lowest): &(FeatureName, Level)| InvalidLevels::Dependency {
                feature: feature.clone(),
                level: *level,
                needs: needs.clone(),
                lowest: catalog.level_text(needs, *lowest),
                would_be: catalog.level_text(needs, level_of(needs)),
            };
            needs.map(error).collect::<Vec<_>>()
        };
        self.others.iter().flat_map(unmet).collect()
    }
}

/// The features as given, by name. As in Kafka, both parts are trimmed and the last of several counts.
fn given(features: &[String], wrong: &mut Vec<InvalidLevels>) -> BTreeMap<String, Level> {
    let mut given = BTreeMap::new();
    for text in features {
        let Some((name, level)) = text.split_once('=') else {
            wrong.push(InvalidLevels::NoEqualsSign(short(text)));
            continue;
        };
        let (name, level) = (name.trim(), level.trim());
        match level.parse::<i16>() {
            Ok(level) => {
                given.insert(name.to_owned(), Level(level));
            }
            Err(_) => {
                wrong.push(InvalidLevels::NotANumber { feature: short(name), level: short(level) });
            }
        }
    }
    given
}

fn short(text: &str) -> String {
    text.chars().take(64).collect()
}

fn metadata_version(
    software: &Software,
    wanted: &LevelsWanted<'_>,
    given: &BTreeMap<String, Level>,
    wrong: &mut Vec<InvalidLevels>,
) -> Option<&'static MetadataVersion> {
    let catalog = Catalog::kafka();
    let feature = FeatureName::metadata_version();
    let range = software.supports(&feature)?;
    // only the newest software's unstable levels are known
    let unstable = wanted.unstable && software.release == super::software::NEWEST;
    let newest = catalog.metadata_versions().last().filter(|_| unstable).map_or(range.max, |last| last.level);
    let level = given.get(feature.as_str());
    let mut check = |version: &'static MetadataVersion, error: InvalidLevels| {
        if version.level > newest {
            wrong.push(error);
            None
        } else {
            Some(version)
        }
    };
    match (wanted.release, level) {
        (release, Some(level)) => {
            if release.is_some() {
                wrong.push(InvalidLevels::TwoMetadataVersions(format!("{feature}={level}")));
                return None;
            }
            let version = catalog
                .metadata_version(*level)
                .filter(|version| version.stable || software.release == super::software::NEWEST);
            let Some(version) = version else {
                wrong.push(unknown_level(software, &feature, *level));
                return None;
            };
            let error = if version.stable {
                unknown_level(software, &feature, *level)
            } else {
                InvalidLevels::Unstable(catalog.level_text(&feature, *level))
            };
            check(version, error)
        }
        (Some(release), None) => match catalog.release(release) {
            Ok(version) => check(
                version,
                InvalidLevels::NewerThanSoftware {
                    release: short(release),
                    level: catalog.level_text(&feature, version.level),
                    software: software.release,
                    newest: catalog.level_text(&feature, newest),
                },
            ),
            Err(error) => {
                wrong.push(error.into());
                None
            }
        },
        (None, None) => catalog.metadata_version(newest),
    }
}

fn kraft_version(
    software: &Software,
    wanted: &LevelsWanted<'_>,
    given: &BTreeMap<String, Level>,
    wrong: &mut Vec<InvalidLevels>,
) -> Level {
    let name = FeatureName::KRAFT_VERSION;
    match given.get(name).copied() {
        None => Level(i16::from(wanted.dynamic_quorum)),
        Some(Level::ZERO) if wanted.dynamic_quorum => {
            wrong.push(InvalidLevels::KraftVersionOfDynamicQuorum);
            Level::ZERO
        }
        Some(level) if level != Level::ZERO && !wanted.dynamic_quorum => {
            wrong.push(InvalidLevels::KraftVersionOfStaticQuorum(level));
            level
        }
        Some(level) => {
            wrong.extend(known(software, name, level).err());
            level
        }
    }
}

/// The feature of a name, if the software knows it and the level.
fn known(software: &Software, name: &str, level: Level) -> Result<FeatureName, InvalidLevels> {
    let unknown = |feature: Option<&FeatureName>| {
        let released = feature.and_then(|feature| Catalog::kafka().released_name(feature));
        InvalidLevels::UnknownFeature {
            feature: short(name),
            software: software.release,
            hint: released.map(|name| format!(", which was released as {name}")).unwrap_or_default(),
            known: software.features().map(FeatureName::as_str).collect::<Vec<_>>().join(", "),
        }
    };
    let feature = FeatureName::new(name).map_err(|_| unknown(None))?;
    let range = software.supports(&feature).ok_or_else(|| unknown(Some(&feature)))?;
    if range.min <= level && level <= range.max {
        Ok(feature)
    } else {
        Err(unknown_level(software, &feature, level))
    }
}

fn unknown_level(software: &Software, feature: &FeatureName, level: Level) -> InvalidLevels {
    let range = software.supports(feature);
    // what a node supports may reach below what can be formatted
    let lowest = Catalog::kafka().metadata_versions().first().map_or(Level::ZERO, |version| version.level);
    let min = range.map_or(Level::ZERO, |range| range.min);
    InvalidLevels::UnknownLevel {
        feature: feature.clone(),
        level,
        software: software.release,
        min: if feature.is_metadata_version() { min.max(lowest) } else { min },
        max: range.map_or(Level::ZERO, |range| range.max),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted<'a>(release: Option<&'a str>, features: &'a [String]) -> LevelsWanted<'a> {
        LevelsWanted { release, features, dynamic_quorum: true, unstable: false }
    }

    fn of(software: &str, release: Option<&str>, features: &[&str]) -> Result<Levels, Vec<InvalidLevels>> {
        let features: Vec<String> = features.iter().map(ToString::to_string).collect();
        resolve(&Software::of(software).unwrap(), &wanted(release, &features))
    }

    fn told(levels: &Levels) -> String {
        let others: Vec<String> = levels.others.values().map(ToString::to_string).collect();
        format!("{} kraft {} {}", levels.metadata_version.level, levels.kraft_version, others.join(" "))
    }

    #[test]
    fn with_nothing_given_it_is_the_latest_stable_of_the_software() {
        let newest = |software| told(&of(software, None, &[]).unwrap());
        // eligible leader replicas, group, share, streams, transaction: as far as the software knows them
        assert_eq!(newest("4.4"), "33 kraft 1 1 1 2 1 2");
        assert_eq!(newest("4.1"), "27 kraft 1 1 1 0 2");
        assert_eq!(newest("3.9"), "21 kraft 1 ");
    }

    #[test]
    fn features_are_set_on_top_of_a_release() {
        let levels = of("4.4", Some("3.9"), &["group.version = 0", "group.version=+1"]).unwrap();
        assert_eq!(told(&levels), "21 kraft 1 0 1 0 0 0");
        assert_eq!(told(&of("4.4", None, &["metadata.version=22"]).unwrap()), "22 kraft 1 0 1 0 0 0");
    }

    #[test]
    fn everything_that_is_wrong_is_told_at_once() {
        let wrong = of(
            "4.4",
            Some("9.9"),
            &["group.coordinator.version=1", "share.version=9", "share.version", "kraft.version=0", "x=y"],
        );
        let told: Vec<String> = wrong.unwrap_err().iter().map(ToString::to_string).collect();
        let told = told.join("\n");
        let parts = [
            "\"9.9\" is not known",
            "\"group.coordinator.version\" is no feature of Kafka 4.4, which was released as group.version",
            "share.version 9 is not known to Kafka 4.4; its levels are 0 to 2",
            "\"share.version\" has no equals sign",
            "kraft.version 0 is for static quorums",
            "x: \"y\" is no level",
        ];
        for part in parts {
            assert!(told.contains(part), "{part}\n{told}");
        }
    }

    #[test]
    fn nothing_above_what_the_software_knows_is_taken() {
        let refused = |software, release, features: &[&str]| {
            of(software, release, features).unwrap_err()[0].to_string()
        };
        assert!(refused("4.3", Some("4.4"), &[]).contains("33 (4.4-IV2), which Kafka 4.3 does not know"));
        assert!(refused("4.3", None, &["metadata.version=31"]).contains("31 is not known to Kafka 4.3"));
        assert!(refused("4.3", None, &["share.version=2"]).contains("its levels are 0 to 1"));
        assert!(refused("4.0", None, &["streams.version=0"]).contains("no feature of Kafka 4.0"));
        assert!(refused("4.4", Some("4.5-IV0"), &[]).contains("4.5-IV0"));
        assert!(refused("4.4", None, &["metadata.version=34"]).contains("34 (4.5-IV0) is not stable yet"));
        assert!(refused("4.4", None, &["metadata.version=35"]).contains("35 is not known"));
        assert!(refused("3.9", None, &["metadata.version=1"]).contains("its levels are 7 to 21"));
    }

    #[test]
    fn unstable_levels_are_for_those_who_ask_for_them() {
        let newest = Software::of("4.4").unwrap();
        let unstable = LevelsWanted { unstable: true, ..LevelsWanted::default() };
        assert_eq!(resolve(&newest, &unstable).unwrap().metadata_version.name, "4.5-IV0");
        let by_name = LevelsWanted { release: Some("4.5-IV0"), ..unstable };
        assert_eq!(resolve(&newest, &by_name).unwrap().metadata_version.level, Level(34));
    }

    #[test]
    fn a_dependency_must_be_met_by_the_whole_set() {
        let elr = "eligible.leader.replicas.version=1";
        let error = of("4.4", Some("3.9"), &[elr]).unwrap_err()[0].to_string();
        assert!(
            error.contains("needs metadata.version 23 (4.0-IV1)") && error.contains("21 (3.9-IV0)"),
            "{error}"
        );
        assert!(of("4.4", None, &[elr, "metadata.version=23"]).is_ok());
        let error = of("4.4", Some("4.4"), &["metadata.version=33"]).unwrap_err()[0].to_string();
        assert!(error.contains("metadata.version=33 both say"), "{error}");
    }

    #[test]
    fn the_kind_of_quorum_says_what_kraft_version_is() {
        let newest = Software::of("4.4").unwrap();
        let with = |features: &[String], dynamic_quorum| {
            resolve(&newest, &LevelsWanted { features, dynamic_quorum, ..LevelsWanted::default() })
        };
        let level = |level: i16| [format!("kraft.version={level}")];
        assert_eq!(with(&[], false).unwrap().kraft_version, Level(0));
        assert_eq!(with(&level(0), false).unwrap().kraft_version, Level(0));
        assert_eq!(with(&level(1), true).unwrap().kraft_version, Level(1));
        assert_eq!(with(&level(1), false), Err(vec![InvalidLevels::KraftVersionOfStaticQuorum(Level(1))]));
        assert_eq!(with(&level(-1), false), Err(vec![InvalidLevels::KraftVersionOfStaticQuorum(Level(-1))]));
        assert!(with(&level(2), true).unwrap_err()[0].to_string().contains("kraft.version 2 is not known"));
    }
}
