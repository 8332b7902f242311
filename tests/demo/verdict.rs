//! Whether the cluster is where it was declared to be: the levels that Kafka's own tool reads from it, against those
//! that Kafka's own tool says the release stands for. What the operator says counts only for what it held back.

use std::collections::BTreeMap;
use std::time::Duration;

use kafka_features_operator::api::{FeatureState, KafkaFeatures};

use crate::testbed::{Kafka, Oracle};

/// A release may leave behind only this one: raising it can't be undone, and the sample doesn't consent.
const MAY_BE_HELD: &str = "kraft.version";
const METADATA_VERSION: &str = "metadata.version";

type Levels = BTreeMap<String, String>;

/// One line a feature, or why the cluster is not there.
pub(crate) fn reached(kafka: &Kafka, release: &str, resource: &KafkaFeatures) -> Result<Vec<String>, String> {
    let declared = mapping(release)?;
    let features = resource.status.iter().flat_map(|status| &status.features);
    let held = features
        .filter(|feature| feature.state == FeatureState::Held)
        .any(|feature| feature.name == MAY_BE_HELD);
    // a broker, which is what the tool asks, follows the controller a little behind
    for _ in 0..40 {
        if let Ok(lines) = compare(&declared, &found(kafka)?, held) {
            return Ok(lines);
        }
        std::thread::sleep(Duration::from_millis(250));
    }
    compare(&declared, &found(kafka)?, held)
}

fn compare(declared: &Levels, found: &Levels, held: bool) -> Result<Vec<String>, String> {
    let line = |(feature, level): (&String, &String)| {
        let found = found.get(feature).ok_or_else(|| format!("the cluster knows nothing of {feature}"))?;
        if found == level {
            Ok(format!("{feature} {found}, as declared"))
        } else if held && feature == MAY_BE_HELD {
            Ok(format!("{feature} {found}, held: {level} is one way and needs consent by allowOneWay"))
        } else {
            Err(format!("{feature} is at {found}, not at {level}, which the release stands for"))
        }
    };
    declared.iter().map(line).collect()
}

/// What the cluster has. `describe` tells `metadata.version` by its name only; Kafka's tool also knows its number.
fn found(kafka: &Kafka) -> Result<Levels, String> {
    let mut found = kafka.finalized();
    if let Some(name) = found.get(METADATA_VERSION) {
        let level = mapping(name)?.remove(METADATA_VERSION).unwrap_or_default();
        found.insert(METADATA_VERSION.to_owned(), level);
    }
    Ok(found)
}

/// The level of each feature at a release, from lines such as `metadata.version=33 (4.4)` and `group.version=1`.
fn mapping(release: &str) -> Result<Levels, String> {
    let args = ["version-mapping", "--release-version", release];
    let printed = Oracle::of(super::KAFKA).run("kafka-features", &args).ok();
    let level = |line: &str| {
        let (feature, level) = line.split_once('=')?;
        Some((feature.to_owned(), level.split_whitespace().next()?.to_owned()))
    };
    let levels: Option<Levels> = printed.lines().map(level).collect();
    levels
        .filter(|levels| levels.contains_key(METADATA_VERSION))
        .ok_or_else(|| format!("version-mapping of {release} printed: {printed}"))
}
