//! What a node's directories hold, and what of it is not as it should be. Looks, and changes nothing.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::checkpoint::{self, BOOTSTRAP_CHECKPOINT, ReadCheckpoint, ZERO_CHECKPOINT};
use super::config::ServerConfig;
use super::directory::{self, State};
use super::meta_properties::{META_PROPERTIES, MetaProperties};
use super::software::{Layout, Software};
use crate::features::catalog::Catalog;
use crate::features::{FeatureName, Level};

/// No checkpoint that a format writes is longer.
const LONGEST_CHECKPOINT: u64 = 64 << 20;

/// What a node's directories hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Info {
    /// The directories that are there, by path.
    pub directories: Vec<String>,
    /// What the first of them that can be read says, by key.
    pub metadata: BTreeMap<&'static str, String>,
    /// What a controller would start from; left out on other nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bootstrap: Option<Bootstrap>,
    /// What is wrong.
    pub problems: Vec<String>,
    /// What is worth knowing, and is wrong only to the software that was named.
    pub notes: Vec<String>,
}

/// Which files a controller would take the first metadata records from (KIP-1170).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Bootstrap {
    /// The metadata directory.
    pub directory: String,
    /// Where the records are.
    pub state: BootstrapState,
    /// The kraft.version that the zero checkpoint says; 0 where it says none.
    pub kraft_version: i16,
    /// The voters that the zero checkpoint names, with their directories.
    pub voters: BTreeMap<i32, String>,
    /// The levels that the records finalize.
    pub levels: BTreeMap<String, i16>,
}

/// The states that a controller can start from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum BootstrapState {
    /// There are no records.
    None,
    /// Only `bootstrap.checkpoint` holds records, and there is no zero checkpoint.
    BootstrapCheckpoint,
    /// `bootstrap.checkpoint` holds records, and the zero checkpoint, without any, says how the quorum begins.
    BootstrapAndZeroCheckpoint,
    /// The zero checkpoint holds records.
    ZeroCheckpoint,
}

impl BootstrapState {
    /// The state in words.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::None => "no metadata records",
            Self::BootstrapCheckpoint => "metadata records in bootstrap.checkpoint only",
            Self::BootstrapAndZeroCheckpoint => {
                "metadata records in bootstrap.checkpoint, and a zero checkpoint without any"
            }
            Self::ZeroCheckpoint => "metadata records in the zero checkpoint",
        }
    }
}

impl Info {
    /// Looks at a node's directories, `software` being what is to start on them.
    #[must_use]
    pub fn of(config: &ServerConfig, software: &Software) -> Self {
        let mut info = Self::default();
        let paths = config.log_dirs.iter().chain([&config.metadata_log_dir]).map(PathBuf::as_path);
        let mut first = None;
        for directory in directory::survey(paths) {
            let path = directory.path.display().to_string();
            info.notes.extend(directory.leftovers(config.roles.broker));
            match directory.state {
                State::Missing => info.problems.push(format!("{path} does not exist")),
                State::Unreadable(why) if !directory.place.is_dir() => {
                    info.problems.push(format!("{path} {}", why.trim_start_matches("it ")))
                }
                State::Unreadable(why) => {
                    let why = why.split_once(": ").map_or(why.as_str(), |(_, why)| why).to_owned();
                    info.directories.push(path.clone());
                    info.problems.push(format!("Error loading {path}/{META_PROPERTIES}: {why}"));
                }
                State::Unformatted => {
                    info.directories.push(path.clone());
                    info.problems.push(format!("{path} is not formatted."));
                }
                State::Formatted(meta) => {
                    info.directories.push(path.clone());
                    info.compare(&path, &meta, &mut first, config, software);
                }
            }
        }
        if first.as_ref().is_some_and(|meta| meta.version == 0) {
            let problem = "The kafka configuration file appears to be for a cluster in KRaft mode, but the directories \
                           are formatted for legacy mode.";
            info.problems.push(problem.to_owned());
        }
        info.metadata = first.map(|meta| meta.entries()).unwrap_or_default();
        if config.roles.controller {
            info.look_at_bootstrap(&config.metadata_log_dir, software);
        }
        info
    }

    fn compare(
        &mut self,
        path: &str,
        meta: &MetaProperties,
        first: &mut Option<MetaProperties>,
        config: &ServerConfig,
        software: &Software,
    ) {
        if meta.version == 2 && software.cluster_id_record.is_none() {
            self.notes.push(format!(
                "{path}/{META_PROPERTIES} is of version 2, which KIP-1262 drafts and Kafka {} does not read",
                software.release
            ));
        }
        if meta.version == 2 && meta.cluster_id.is_none() {
            self.notes.push(format!(
                "{path}/{META_PROPERTIES} has no cluster.id: the node is to learn it from its cluster"
            ));
        }
        if let Some(found) = meta.node_id.filter(|found| *found != config.node_id) {
            self.notes.push(format!(
                "{path} belongs to node {found}, but node.id is {}: Kafka will not start on it",
                config.node_id
            ));
        }
        match first {
            None => *first = Some(meta.clone()),
            Some(first) if first.cluster_id != meta.cluster_id => {
                self.problems.push("Mismatched cluster IDs between storage directories.".to_owned());
            }
            Some(first) if first.node_id != meta.node_id => {
                self.problems.push("Mismatched node IDs between storage directories.".to_owned());
            }
            Some(_) => {}
        }
    }

    fn look_at_bootstrap(&mut self, directory: &Path, software: &Software) {
        if !directory.is_dir() {
            return;
        }
        let zero = self.checkpoint(&directory.join(ZERO_CHECKPOINT));
        let legacy = self.checkpoint(&directory.join(BOOTSTRAP_CHECKPOINT));
        let has_records =
            |checkpoint: &Option<ReadCheckpoint>| checkpoint.as_ref().is_some_and(|c| c.records > 0);
        let state = match (has_records(&zero), has_records(&legacy), &zero) {
            (true, ..) => BootstrapState::ZeroCheckpoint,
            (false, true, None) => BootstrapState::BootstrapCheckpoint,
            (false, true, Some(_)) => BootstrapState::BootstrapAndZeroCheckpoint,
            (false, false, _) => BootstrapState::None,
        };
        if has_records(&zero) && has_records(&legacy) {
            self.notes.push(format!(
                "{} holds metadata records in the zero checkpoint and in {BOOTSTRAP_CHECKPOINT}: Kafka 4.4 and later take \
                 the former, earlier ones the latter; remove the one that is not meant",
                directory.display()
            ));
        }
        let records = if has_records(&zero) { &zero } else { &legacy };
        let levels = records.as_ref().map(|records| records.levels.clone()).unwrap_or_default();
        // once the log has begun, nothing of this is read any more
        if !directory::has_log(directory) {
            self.fit(directory, state, &levels, software);
        }
        let zero = zero.unwrap_or_default();
        self.bootstrap = Some(Bootstrap {
            directory: directory.display().to_string(),
            state,
            kraft_version: zero.kraft_version.unwrap_or_default(),
            voters: zero.voters.iter().map(|(id, directory)| (*id, directory.to_string())).collect(),
            levels: levels.into_iter().map(|(feature, level)| (feature, level.0)).collect(),
        });
    }

    fn checkpoint(&mut self, path: &Path) -> Option<ReadCheckpoint> {
        let read = directory::read_bounded(path, LONGEST_CHECKPOINT);
        let why = match read {
            Ok(bytes) => match checkpoint::read(&bytes.into()) {
                Ok(checkpoint) => return Some(checkpoint),
                Err(error) => error.to_string(),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => error.to_string(),
        };
        self.notes.push(format!("{} is no checkpoint that can be read: {why}", path.display()));
        None
    }

    /// Whether the software that is to start can make something of the state.
    fn fit(
        &mut self,
        directory: &Path,
        state: BootstrapState,
        levels: &BTreeMap<String, Level>,
        software: &Software,
    ) {
        let path = directory.display();
        let release = software.release;
        match (state, software.layout) {
            (BootstrapState::None, _) => self.notes.push(format!(
                "{path} holds no metadata records: a controller of Kafka {release} that begins the cluster would take its \
                 own metadata.version and level 0 of every other feature"
            )),
            (BootstrapState::ZeroCheckpoint, Layout::BootstrapCheckpoint) => self.notes.push(format!(
                "{path} holds its metadata records in the zero checkpoint, where Kafka {release} does not look for them: \
                 it would begin with its own metadata.version; format it with --kafka-version {release}"
            )),
            _ => {}
        }
        for (feature, level) in levels {
            let Ok(feature) = FeatureName::new(feature.clone()) else { continue };
            let known = software.supports(&feature).is_some_and(|range| *level <= range.max);
            if !known && *level > Level::ZERO {
                let level = Catalog::kafka().level_text(&feature, *level);
                self.notes
                    .push(format!("{path} holds {feature} {level}, which Kafka {release} does not know"));
            }
        }
    }
}
