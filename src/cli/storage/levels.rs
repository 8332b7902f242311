//! `kafka-storage version-mapping` and `feature-dependencies`: what the catalog says.

use std::fmt::Write as _;

use super::Answer;
use super::arguments::{FeatureDependencies, VersionMapping};
use crate::cli::{Failure, Status};
use crate::features::catalog::Catalog;
use crate::features::{FeatureName, Level};

pub(super) fn mapping(arguments: &VersionMapping) -> Result<Answer, Failure> {
    let catalog = Catalog::kafka();
    let newest = catalog.metadata_versions().iter().rfind(|version| version.stable);
    let (version, text) = match &arguments.release_version {
        None => (newest, newest.map(|newest| newest.name.as_str()).unwrap_or_default()),
        Some(text) => match catalog.release(text) {
            Ok(version) => (Some(version), text.as_str()),
            Err(error) => {
                return Err(Failure::new(Status::Configuration, format!("--release-version: {error}")));
            }
        },
    };
    let level = version.map(|version| version.level).unwrap_or_default();
    let mut out = format!("{}={level} ({text})\n", FeatureName::METADATA_VERSION);
    let defaults = catalog.defaults_at(level);
    for feature in catalog.features() {
        let _ =
            writeln!(out, "{}={}", feature.name, defaults.get(&feature.name).copied().unwrap_or_default());
    }
    Ok(Answer::done(out))
}

pub(super) fn dependencies(arguments: &FeatureDependencies) -> Result<Answer, Failure> {
    let mut out = String::new();
    let mut wrong = Vec::new();
    for text in &arguments.feature {
        match dependencies_of(text) {
            Ok(lines) => out += &lines,
            Err(message) => wrong.push(message),
        }
    }
    if wrong.is_empty() {
        Ok(Answer::done(out))
    } else {
        Err(Failure { status: Status::Configuration, messages: wrong })
    }
}

fn dependencies_of(text: &str) -> Result<String, String> {
    let catalog = Catalog::kafka();
    let form = "features are given as name=level, such as group.version=1";
    let (name, level) =
        text.split_once('=').ok_or_else(|| format!("--feature {text:?} has no equals sign: {form}"))?;
    let (name, level) = (name.trim(), level.trim());
    let number =
        level.parse().map(Level).map_err(|_| format!("--feature {name}: {level:?} is no level: {form}"))?;
    let feature = FeatureName::new(name).ok().filter(|feature| catalog.knows(feature)).ok_or_else(|| {
        let released = FeatureName::new(name).ok().and_then(|feature| catalog.released_name(&feature));
        let hint = released.map(|name| format!(", which was released as {name}")).unwrap_or_default();
        let known: Vec<&str> = catalog.features().iter().map(|feature| feature.name.as_str()).collect();
        format!(
            "{name:?} is no feature{hint}; known are {}, {}",
            FeatureName::METADATA_VERSION,
            known.join(", ")
        )
    })?;
    if !has_level(&feature, number) {
        return Err(format!("{feature} {number} is not known"));
    }
    let subject = if feature.is_metadata_version() {
        let version =
            catalog.metadata_version(number).map(|version| version.name.as_str()).unwrap_or_default();
        format!("{feature}={number} ({version})")
    } else {
        format!("{feature}={number}")
    };
    let needs = catalog.needs(&feature, number);
    if needs.is_empty() {
        return Ok(format!("{subject} has no dependencies.\n"));
    }
    let mut out = format!("{subject} requires:\n");
    for (needs, lowest) in needs {
        let _ = writeln!(out, "    {needs}={}", catalog.level_text(needs, *lowest));
    }
    Ok(out)
}

fn has_level(feature: &FeatureName, level: Level) -> bool {
    let catalog = Catalog::kafka();
    if feature.is_metadata_version() {
        return catalog.metadata_version(level).is_some();
    }
    let mut features = catalog.features().iter().filter(|entry| entry.name == *feature);
    level == Level::ZERO || features.any(|entry| entry.levels.iter().any(|entry| entry.level == level))
}
