//! What a format did, for machines and for people. Holds no secret.

use std::collections::BTreeMap;

use serde::Serialize;

use super::FormatRequest;
use super::directories::Directories;
use crate::features::FeatureName;
use crate::storage::Uuid;
use crate::storage::directory::Directory;
use crate::storage::levels::Levels;
use crate::storage::scram::Credential;
use crate::storage::software::Layout;

/// The record of a format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FormatRecord {
    /// The cluster's id; left out where the node is to learn it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// The node's id.
    pub node_id: i32,
    /// The release of the target software.
    pub kafka_version: &'static str,
    /// What that software finds its first metadata records in.
    pub layout: &'static str,
    /// The name of the metadata version, such as `4.4-IV2`.
    pub metadata_version: String,
    /// The levels of all features.
    pub levels: BTreeMap<String, i16>,
    /// The SCRAM users.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scram_users: Vec<ScramUser>,
    /// The directories that are formatted, by path.
    pub formatted: Vec<FormattedDirectory>,
    /// The directories that were formatted already.
    pub already_formatted: Vec<String>,
    /// The directories that can't be read and are left alone, with the reason.
    pub unreadable: BTreeMap<String, String>,
    /// What Kafka may stumble over later, with the way out.
    pub warnings: Vec<String>,
}

/// A SCRAM user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ScramUser {
    /// Its name.
    pub name: String,
    /// Its mechanism.
    pub mechanism: &'static str,
}

/// A directory that is formatted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FormattedDirectory {
    /// Its path.
    pub path: String,
    /// What Kafka's tool calls such a directory.
    pub kind: &'static str,
    /// Its id.
    pub directory_id: String,
}

impl FormatRecord {
    pub(super) fn of(
        request: &FormatRequest,
        levels: &Levels,
        scram: &[Credential],
        directories: &Directories,
    ) -> Self {
        let own = [
            (FeatureName::METADATA_VERSION.to_owned(), levels.metadata_version.level.0),
            (FeatureName::KRAFT_VERSION.to_owned(), levels.kraft_version.0),
        ];
        let others = levels.others.iter().map(|(feature, level)| (feature.to_string(), level.0));
        let user = |of: &Credential| ScramUser { name: of.user.clone(), mechanism: of.mechanism.name() };
        Self {
            cluster_id: request.cluster_id.clone(),
            node_id: request.config.node_id,
            kafka_version: request.software.release,
            layout: match request.software.layout {
                Layout::BootstrapCheckpoint => "bootstrap-checkpoint",
                Layout::ZeroCheckpoint => "zero-checkpoint",
            },
            metadata_version: levels.metadata_version.name.clone(),
            levels: own.into_iter().chain(others).collect(),
            scram_users: scram.iter().map(user).collect(),
            formatted: Vec::new(),
            already_formatted: directories.formatted.iter().map(|path| path.display().to_string()).collect(),
            unreadable: directories
                .unreadable
                .iter()
                .map(|(path, why)| (path.display().to_string(), why.clone()))
                .collect(),
            warnings: directories.leftovers.clone(),
        }
    }

    pub(super) fn add(&mut self, directory: &Directory, kind: &'static str, id: Uuid) {
        let path = directory.path.display().to_string();
        self.formatted.push(FormattedDirectory { path, kind, directory_id: id.to_string() });
    }
}
