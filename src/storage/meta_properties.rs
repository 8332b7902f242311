//! `meta.properties`: which cluster and node a directory belongs to. It is the mark of a formatted directory, written
//! last. Reads all three versions; writes the one that released software reads.

use std::collections::BTreeMap;

use jiff::Zoned;

use super::Uuid;
use super::properties::{self, Properties};

/// The file's name.
pub const META_PROPERTIES: &str = "meta.properties";

/// What a `meta.properties` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetaProperties {
    /// Its version: 0 from before `KRaft`, 1, or 2 of KIP-1262's draft.
    pub version: i32,
    /// The cluster; required in version 1.
    pub cluster_id: Option<String>,
    /// The node; required from version 1 on. In version 0 it is called the broker's id.
    pub node_id: Option<i32>,
    /// The directory; written since Kafka 3.7.
    pub directory_id: Option<Uuid>,
}

/// Why a `meta.properties` can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidMetaProperties {
    /// It is no properties file.
    #[error(transparent)]
    Properties(#[from] properties::PropertiesError),
    /// A version that no Kafka has.
    #[error("its version is {0:?}; known are 0, 1 and 2")]
    Version(String),
    /// A value is not of its kind.
    #[error("its {key} is {value:?}, which is {wanted}")]
    Value {
        /// The key.
        key: &'static str,
        /// The value.
        value: String,
        /// What is wrong with it.
        wanted: &'static str,
    },
    /// A required key is missing.
    #[error("it has no {0}")]
    Missing(&'static str),
}

impl MetaProperties {
    /// Reads the file's content.
    ///
    /// # Errors
    /// If it is out of form, of an unknown version, or lacks what its version requires.
    pub fn parse(bytes: &[u8]) -> Result<Self, InvalidMetaProperties> {
        Self::read(&Properties::parse(bytes)?)
    }

    /// Reads a text that is known to be one.
    ///
    /// # Errors
    /// As [`MetaProperties::parse`].
    pub fn parse_text(text: &str) -> Result<Self, InvalidMetaProperties> {
        Self::read(&Properties::parse_text(text)?)
    }

    fn read(properties: &Properties) -> Result<Self, InvalidMetaProperties> {
        let number = |key: &'static str| match properties.get(key) {
            None => Ok(None),
            Some(text) => text.parse::<i32>().map(Some).map_err(|_| InvalidMetaProperties::Value {
                key,
                value: text.to_owned(),
                wanted: "no number",
            }),
        };
        let version = properties.get("version").unwrap_or("0");
        let unknown = || InvalidMetaProperties::Version(version.to_owned());
        let version = version.parse().ok().filter(|version| (0..=2).contains(version)).ok_or_else(unknown)?;
        let directory_id = match properties.get("directory.id") {
            None => None,
            Some(text) => Some(text.parse().map_err(|_| InvalidMetaProperties::Value {
                key: "directory.id",
                value: text.to_owned(),
                wanted: "no id",
            })?),
        };
        let read = Self {
            version,
            cluster_id: properties.get("cluster.id").map(str::to_owned),
            node_id: number(if version == 0 { "broker.id" } else { "node.id" })?,
            directory_id,
        };
        match &read {
            Self { version: 1, cluster_id: None, .. } => Err(InvalidMetaProperties::Missing("cluster.id")),
            Self { version: 1.., node_id: None, .. } => Err(InvalidMetaProperties::Missing("node.id")),
            _ => Ok(read),
        }
    }

    /// What it says, by key.
    #[must_use]
    pub fn entries(&self) -> BTreeMap<&'static str, String> {
        let node = if self.version == 0 { "broker.id" } else { "node.id" };
        let mut entries = BTreeMap::from([("version", self.version.to_string())]);
        entries.extend(self.cluster_id.clone().map(|id| ("cluster.id", id)));
        entries.extend(self.node_id.map(|id| (node, id.to_string())));
        entries.extend(self.directory_id.map(|id| ("directory.id", id.to_string())));
        entries
    }

    /// The file's content, as Java writes it: a comment, the time, then the keys in the order that Java's table has them.
    #[must_use]
    pub fn encode(&self, now: &Zoned) -> String {
        let mut text = format!("#\n#{}\n", now.strftime("%a %b %d %H:%M:%S %Z %Y"));
        let mut put = |key: &str, value: &str| {
            text += &format!("{key}={}\n", properties::escape_value(value));
        };
        if let Some(node_id) = self.node_id {
            put("node.id", &node_id.to_string());
        }
        if let Some(directory_id) = self.directory_id {
            put("directory.id", &directory_id.to_string());
        }
        put("version", &self.version.to_string());
        if let Some(cluster_id) = &self.cluster_id {
            put("cluster.id", cluster_id);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta() -> MetaProperties {
        MetaProperties {
            version: 1,
            cluster_id: Some("a=b:#!\\ ü".into()),
            node_id: Some(7),
            directory_id: Some("JEXY6aqzQY-32P5TStzaFg".parse().unwrap()),
        }
    }

    #[test]
    fn it_is_written_as_java_writes_it() {
        let now: Zoned = "2026-11-30T01:02:03+00:00[UTC]".parse().unwrap();
        let expected = "#\n#Mon Nov 30 01:02:03 UTC 2026\nnode.id=7\ndirectory.id=JEXY6aqzQY-32P5TStzaFg\nversion=1\n\
                        cluster.id=a\\=b\\:\\#\\!\\\\ ü\n";
        assert_eq!(meta().encode(&now), expected);
    }

    #[test]
    fn every_version_is_read() {
        let read = |text: &str| MetaProperties::parse(text.as_bytes());
        assert_eq!(read("").unwrap(), MetaProperties::default());
        let old = read("version=0\nbroker.id=3\ncluster.id=x\n").unwrap();
        assert_eq!((old.version, old.node_id, old.cluster_id.as_deref()), (0, Some(3), Some("x")));
        let draft = read("version=2\nnode.id=4\n").unwrap();
        assert_eq!((draft.version, draft.node_id, draft.cluster_id), (2, Some(4), None));
    }

    #[test]
    fn what_its_version_requires_must_be_there() {
        let wrong = [
            ("version=1\ncluster.id=x\n", "no node.id"),
            ("version=1\nnode.id=1\n", "no cluster.id"),
            ("version=2\ncluster.id=x\n", "no node.id"),
            ("version=3\n", "\"3\""),
            ("version=x\n", "\"x\""),
            ("version=1\ncluster.id=x\nnode.id=y\n", "node.id is \"y\""),
            ("version=1\ncluster.id=x\nnode.id=1\ndirectory.id=short\n", "directory.id is \"short\""),
        ];
        for (text, expected) in wrong {
            let error = MetaProperties::parse(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
