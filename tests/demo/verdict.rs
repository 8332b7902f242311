//! Whether the cluster is where it was declared to be: the levels that Kafka's own tool reads from it, against those
//! that Kafka's own tool says the release stands for. What the operator says counts only for what it held back.

use std::collections::BTreeMap;
use std::time::Duration;

use kafka_features_operator::api::{FeatureState, KafkaFeatures};

use crate::testbed::{Kafka, Oracle};

/// A release may leave behind only this one: raising it can't be undone, and the sample doesn't consent.
const MAY_BE_HELD: &str = "kraft.version";

/// One line a feature, or why the cluster is not there.
pub(crate) fn reached(kafka: &Kafka, release: &str, resource: &KafkaFeatures) -> Result<Vec<String>, String> {
    let declared = mapping(
        &Oracle::of(super::KAFKA)
            .run("kafka-features", &["version-mapping", "--release-version", release])
            .ok(),
    )?;
    let features = resource.status.iter().flat_map(|status| &status.features);
    let held: Vec<&str> =
        features.filter(|f| f.state == FeatureState::Held).map(|f| f.name.as_str()).collect();
    // a broker, which is what the tool asks, follows the controller a little behind
    for _ in 0..40 {
        if let Ok(lines) = compare(&declared, &kafka.finalized(), &held) {
            return Ok(lines);
        }
        std::thread::sleep(Duration::from_millis(250));
    }
    compare(&declared, &kafka.finalized(), &held)
}

fn compare(
    declared: &BTreeMap<String, String>,
    found: &BTreeMap<String, String>,
    held: &[&str],
) -> Result<Vec<String>, String> {
    let mut lines = Vec::new();
    for (feature, level) in declared {
        let Some(found) = found.get(feature) else {
            return Err(format!("the cluster knows nothing of {feature}, declared {level}"));
        };
        let may = feature == MAY_BE_HELD && held.contains(&MAY_BE_HELD);
        lines.push(match found == level {
            true => format!("{feature} {found}, as declared"),
            false if may => {
                format!("{feature} {found}, held: raising it to {level} can't be undone, and needs consent")
            }
            false => {
                return Err(format!("{feature} is at {found}, not at {level}, which the release stands for"));
            }
        });
    }
    Ok(lines)
}

/// Each feature's level as `describe` would print it, from `feature=level` and `metadata.version=33 (4.4-IV2)`.
fn mapping(printed: &str) -> Result<BTreeMap<String, String>, String> {
    let levels: Option<BTreeMap<String, String>> = printed
        .lines()
        .map(|line| {
            let (feature, level) = line.split_once('=')?;
            let name = level.split_once('(').map(|(_, name)| name.trim_end_matches(')'));
            Some((feature.to_owned(), name.unwrap_or(level).trim().to_owned()))
        })
        .collect();
    levels.filter(|levels| !levels.is_empty()).ok_or_else(|| format!("version-mapping printed: {printed}"))
}
