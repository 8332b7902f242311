//! What one node says about features in its ApiVersions answer: the ranges it supports itself, and the
//! finalized levels as far as it has heard of them. Odd entries are taken as they are or left out; they never
//! end the pass.

use kafka_protocol::messages::ApiVersionsResponse;

use crate::features::{FeatureName, FinalizedFeatures, Level, LevelRange, SupportedFeatures};

/// How many features of one node are looked at. Kafka has seven; a status has room for a few hundred.
const MOST: usize = 128;

/// The first version in which features supported from level 0 are listed.
const LISTS_ALL: i16 = 4;

/// One node's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeFeatures {
    /// The ranges it supports.
    pub(super) supported: SupportedFeatures,
    /// Whether these are all. Up to version 3 a node leaves out every feature that it supports from level 0
    /// (KAFKA-17011); Kafka speaks version 4 from 3.9.
    pub(super) complete: bool,
    /// The finalized levels, if it knows them yet.
    pub(super) finalized: Option<Finalized>,
}

/// Finalized levels, and up to where in the metadata log they hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finalized {
    /// The levels.
    pub(super) levels: FinalizedFeatures,
    /// On a broker the offset of the last record that it applied, on a controller that of the last change of a
    /// level. Either way the levels hold every change up to this offset, so of two answers the one with the
    /// higher epoch is never the staler one, whoever gave them.
    pub(super) epoch: i64,
}

impl NodeFeatures {
    /// Reads an answer of the given version.
    pub(super) fn read(answer: &ApiVersionsResponse, version: i16) -> Self {
        let supported = answer.supported_features.iter().take(MOST).filter_map(|feature| {
            let name = name(&feature.name)?;
            Some((name, LevelRange { min: Level(feature.min_version), max: Level(feature.max_version) }))
        });
        let levels = answer.finalized_features.iter().take(MOST).filter_map(|feature| {
            // A finalized level of 0 or less is as good as none.
            Some((name(&feature.name)?, Level(feature.max_version_level.max(0))))
        });
        let epoch = answer.finalized_features_epoch;
        Self {
            supported: supported.collect(),
            complete: version >= LISTS_ALL,
            finalized: (epoch >= 0).then(|| Finalized { levels: levels.collect(), epoch }),
        }
    }
}

impl NodeFeatures {
    /// What two nodes both support; the finalized levels are left out.
    pub(super) fn in_common_with(&self, other: &Self) -> Self {
        let both = self.supported.iter().filter_map(|(feature, a)| {
            let b = other.supported.get(feature)?;
            Some((feature.clone(), LevelRange { min: a.min.max(b.min), max: a.max.min(b.max) }))
        });
        Self { supported: both.collect(), complete: self.complete && other.complete, finalized: None }
    }
}

fn name(text: &str) -> Option<FeatureName> {
    FeatureName::new(text)
        .inspect_err(|error| tracing::debug!(%error, "left out a feature that a node named"))
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_protocol::messages::api_versions_response::{FinalizedFeatureKey, SupportedFeatureKey};
    use kafka_protocol::protocol::StrBytes;

    fn supported(name: &'static str, min: i16, max: i16) -> SupportedFeatureKey {
        SupportedFeatureKey::default()
            .with_name(StrBytes::from_static_str(name))
            .with_min_version(min)
            .with_max_version(max)
    }

    fn finalized(name: &'static str, level: i16) -> FinalizedFeatureKey {
        FinalizedFeatureKey::default()
            .with_name(StrBytes::from_static_str(name))
            .with_min_version_level(level)
            .with_max_version_level(level)
    }

    #[test]
    fn odd_entries_are_taken_as_they_are_or_left_out() {
        let answer = ApiVersionsResponse::default()
            .with_supported_features(vec![
                supported("upside.down", 5, 3),
                supported("twice", 0, 1),
                supported("twice", 0, 2),
                supported("", 0, 1),
                supported("not a name", 0, 1),
            ])
            .with_finalized_features(vec![finalized("gone", 0), finalized("below", -3), finalized("", 1)])
            .with_finalized_features_epoch(7);
        let features = NodeFeatures::read(&answer, 4);
        assert_eq!(features.supported.len(), 2);
        let upside_down = features.supported.get("upside.down").unwrap();
        assert!((0..=6).all(|level| !upside_down.contains(Level(level))));
        assert_eq!(features.supported.get("twice").unwrap().max, Level(2));
        assert_eq!(features.finalized.unwrap(), Finalized { levels: FinalizedFeatures::default(), epoch: 7 });
    }

    #[test]
    fn levels_without_an_epoch_are_not_known() {
        let answer = ApiVersionsResponse::default().with_finalized_features(vec![finalized("a", 1)]);
        assert_eq!(NodeFeatures::read(&answer, 4).finalized, None);
    }
}
