//! The levels that are written at a format: the declared ones where the cluster is new, the finalized ones where it runs;
//! and never one that the pod's Kafka does not know.

use std::collections::BTreeMap;

use super::{Failure, Pod, Record, Situation};
use crate::features::catalog::Catalog;
use crate::features::observed::Observed;
use crate::features::target::{TargetSpec, resolve};
use crate::features::{FeatureName, Level};
use crate::storage::levels::{self, LevelsWanted};
use crate::storage::software::Software;

/// The Kafka software of a pod, and the text that names it.
///
/// # Errors
/// If nobody says, if it is said in two ways, or if it is not known.
pub(super) fn software(situation: &Situation<'_>, pod: &Pod) -> Result<(String, Software), Failure> {
    let text = match &pod.kafka_version {
        Some(Ok(text)) => text.clone(),
        Some(Err(contradiction)) => return Err(Failure::new("KafkaVersionContradiction", contradiction)),
        None => situation.format.kafka_version.clone().ok_or_else(|| {
            let message = format!(
                "nothing says which Kafka it runs: add the annotation {}, or give format.kafkaVersion",
                crate::api::pods::KAFKA_VERSION
            );
            Failure::new("KafkaVersionUnknown", message)
        })?,
    };
    let software =
        Software::of(&text).map_err(|error| Failure::new("UnknownKafkaVersion", error.to_string()))?;
    Ok((text, software))
}

/// The levels that a cluster begins with, for the oldest software among the pods.
pub(super) fn declared(situation: &Situation<'_>, record: &Record) -> Result<BTreeMap<String, i16>, Failure> {
    let wrong = |message: String| Failure::new("InvalidLevels", message);
    let known = situation.pods.iter().filter_map(|pod| software(situation, pod).ok());
    let newest = |software: &Software| {
        software.supports(&FeatureName::metadata_version()).map(|range| range.max).unwrap_or_default()
    };
    let Some((_, software)) = known.min_by_key(|(_, software)| newest(software)) else {
        return Ok(BTreeMap::new());
    };
    let target = resolve(Catalog::kafka(), situation.target).map_err(|error| wrong(error.to_string()))?;
    let wanted: Vec<String> = match (&target, situation.target) {
        (Some(target), TargetSpec::Release(_)) => target
            .levels
            .iter()
            .filter(|(feature, _)| feature.is_metadata_version())
            .map(|(feature, level)| format!("{feature}={level}"))
            .collect(),
        (Some(target), _) => target
            .levels
            .iter()
            // what the software does not have yet can be raised later, by request
            .filter(|(feature, _)| {
                feature.as_str() != FeatureName::KRAFT_VERSION && software.supports(feature).is_some()
            })
            .map(|(feature, level)| format!("{feature}={level}"))
            .collect(),
        (None, _) => Vec::new(),
    };
    let wanted =
        LevelsWanted { release: None, features: &wanted, dynamic_quorum: record.dynamic, unstable: false };
    let levels = levels::resolve(&software, &wanted)
        .map_err(|errors| wrong(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")))?;
    let metadata = (FeatureName::METADATA_VERSION.to_owned(), levels.metadata_version.level.0);
    let others = levels.others.into_iter().map(|(feature, level)| (feature.to_string(), level.0));
    Ok(others.chain([metadata]).collect())
}

/// The levels that a running cluster has.
pub(super) fn finalized(observed: &Observed) -> BTreeMap<String, i16> {
    let own = observed.finalized.iter().map(|(feature, level)| (feature.to_string(), level.0));
    own.filter(|(feature, _)| feature != FeatureName::KRAFT_VERSION).collect()
}

/// Whether the software can start on these levels.
pub(super) fn check(text: &str, software: &Software, levels: &BTreeMap<String, i16>) -> Result<(), Failure> {
    for (name, level) in levels {
        let Ok(feature) = FeatureName::new(name.clone()) else { continue };
        let highest = software.supports(&feature).map_or(Level::ZERO, |range| range.max);
        if Level(*level) > highest {
            let catalog = Catalog::kafka();
            let message = format!(
                "its Kafka {text} knows {name} up to {}, and the cluster has, or is to have, {}: run a later Kafka",
                catalog.level_text(&feature, highest),
                catalog.level_text(&feature, Level(*level))
            );
            return Err(Failure::new("KafkaVersionTooOld", message));
        }
    }
    Ok(())
}
