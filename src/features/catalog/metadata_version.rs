//! `metadata.version`: the feature whose levels have names, and how a release's text leads to one of them.

use super::{Catalog, table};
use crate::features::Level;

/// One level of `metadata.version`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataVersion {
    /// The level.
    pub level: Level,
    /// Its name, such as `4.4-IV2`.
    pub name: String,
    /// Whether Kafka calls it ready for production.
    pub stable: bool,
    /// Whether it changed the metadata, so that Kafka refuses to go from it to a lower level.
    pub changed_metadata: bool,
}

/// A text that names no release and no metadata version of the catalog.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "release {text:?} is not known; known are the releases {releases} and the metadata versions {oldest} to {newest}"
)]
pub struct UnknownRelease {
    text: String,
    releases: String,
    oldest: String,
    newest: String,
}

impl MetadataVersion {
    pub(super) fn from_row(&(level, name, stable, changed_metadata): &table::MetadataVersionRow) -> Self {
        Self { level: Level(level), name: name.to_owned(), stable, changed_metadata }
    }

    /// The release that the version belongs to, such as `4.4` for `4.4-IV2`.
    #[must_use]
    pub fn release(&self) -> &str {
        self.name.split_once("-IV").map_or(self.name.as_str(), |(release, _)| release)
    }
}

impl Catalog {
    /// The metadata version that a text means: a release (`4.3`: its highest stable version) or a version by name
    /// (`4.3-IV0`). As in Kafka, only the first two parts between dots count (`4.3.1` is `4.3`, `4.3-IV0.x` is
    /// `4.3-IV0`), case matters, and nothing is trimmed, dots at the end included. Unstable versions are found by
    /// their own name alone.
    ///
    /// # Errors
    /// If the text names nothing that the catalog knows; `latest` is no release.
    pub fn release(&self, text: &str) -> Result<&MetadataVersion, UnknownRelease> {
        let key = release_key(text);
        let versions = self.metadata_versions();
        let named = versions.iter().find(|version| version.name == key);
        let of_release = || versions.iter().rfind(|version| version.stable && version.release() == key);
        named.or_else(of_release).ok_or_else(|| self.unknown_release(text))
    }

    /// The same, for a text that a person declares: it must say nothing that would be left out, but for a release's patch
    /// number. `4.4.0-IV0` would be taken as `4.4`, which is another level, and no way back.
    ///
    /// # Errors
    /// As [`Catalog::release`], and for a metadata version's name with more than two numbers before or any after it.
    pub fn declared_release(&self, text: &str) -> Result<&MetadataVersion, UnknownRelease> {
        if text.contains('-') && text.matches('.').count() > 1 {
            return Err(self.unknown_release(text));
        }
        self.release(text)
    }

    fn unknown_release(&self, text: &str) -> UnknownRelease {
        let stable = || self.metadata_versions().iter().filter(|version| version.stable);
        let mut releases: Vec<&str> = stable().map(MetadataVersion::release).collect();
        releases.dedup();
        let name = |version: Option<&MetadataVersion>| version.map(|v| v.name.clone()).unwrap_or_default();
        UnknownRelease {
            text: text.chars().take(64).collect(),
            releases: releases.join(", "),
            oldest: name(stable().next()),
            newest: name(stable().next_back()),
        }
    }
}

/// The part of a release's text that counts: what stands before the second dot. Kafka splits as Java does, which
/// counts no empty parts at the end, so `4.4.` has two parts only and is taken, and not found, as it stands.
fn release_key(text: &str) -> &str {
    match text.match_indices('.').nth(1) {
        Some((second_dot, _)) if text.trim_end_matches('.').len() > second_dot => &text[..second_dot],
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(text: &str) -> Option<i16> {
        Catalog::kafka().release(text).ok().map(|version| version.level.0)
    }

    #[test]
    fn a_release_is_its_highest_stable_version() {
        let expected = [
            ("3.3", 7),
            ("3.4", 8),
            ("3.5", 11),
            ("3.6", 14),
            ("3.7", 19),
            ("3.8", 20),
            ("3.9", 21),
            ("4.0", 25),
            ("4.1", 27),
            ("4.2", 29),
            ("4.3", 30),
            ("4.4", 33),
        ];
        for (text, wanted) in expected {
            assert_eq!(level(text), Some(wanted), "{text}");
        }
    }

    #[test]
    fn only_the_first_two_parts_count() {
        assert_eq!(level("4.4.0"), Some(33));
        assert_eq!(level("4.4.1-SNAPSHOT"), Some(33));
        assert_eq!(level("4.4-IV2.9"), Some(33));
        assert_eq!(level("4.3-IV0"), Some(30));
        assert_eq!(level("4.4..1"), Some(33));
    }

    #[test]
    fn an_unstable_version_is_found_by_its_own_name_only() {
        assert_eq!(level("4.5-IV0"), Some(34));
        assert_eq!(level("4.5"), None);
        assert!(!Catalog::kafka().release("4.5-IV0").unwrap().stable);
    }

    #[test]
    fn what_kafka_refuses_is_refused_and_told_with_what_is_known() {
        let texts = [
            "latest", "", "4", "4.", "4.4.", "4.4..", "4.4-IV2.", "4.4-iv2", " 4.4", "4.4 ", "4,4",
            "3.3-IV2", "3.2", "9.9", "4.4-IV3",
        ];
        for text in texts {
            let error = Catalog::kafka().release(text).unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")) && error.contains("4.3, 4.4"), "{error}");
        }
    }
}
