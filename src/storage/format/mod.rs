//! Formatting a node: first everything that is wrong with what is asked is found, then the directories are written, in an
//! order in which nothing can be half done for good.
//!
//! What is written is what Kafka's own tool would have written for the same arguments and the same target software.
//! A formatted directory is never written to.

mod directories;
mod fault;
mod quorum;
mod record;
#[cfg(test)]
mod tests;
mod write;

use std::path::PathBuf;

use bytes::Bytes;
use jiff::{Timestamp, Zoned};
use secrecy::SecretString;

use super::Uuid;
use super::checkpoint::{BOOTSTRAP_CHECKPOINT, Checkpoint, ZERO_CHECKPOINT};
use super::config::ServerConfig;
use super::directory::Directory;
use super::levels::{self, Levels, LevelsWanted};
use super::meta_properties::MetaProperties;
use super::metadata_record::MetadataRecord;
use super::scram::{self, Credential};
use super::software::{Layout, Software};
use crate::features::{FeatureName, Level};
use directories::Directories;
use quorum::Quorum;
use write::DirectoryWrite;

pub use fault::{Fault, FaultKind};
pub use record::{FormatRecord, FormattedDirectory, ScramUser};

/// How the quorum of a new cluster begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum InitialQuorum {
    /// Nothing is said: right for static voters, and for brokers.
    #[default]
    Unsaid,
    /// This node is the only voter.
    Standalone,
    /// The voters, as `id@host:port:directory-id`, separated by commas.
    InitialControllers(String),
    /// The voters are elsewhere: this controller joins as an observer.
    NoInitialControllers,
    /// The voters of a running dynamic quorum, in the same form: this controller joins as an observer, whatever its
    /// configuration says of voters. Without them a controller that still has `controller.quorum.voters` would take itself
    /// for a voter.
    RunningVoters(String),
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct FormatRequest {
    /// The node's configuration.
    pub config: ServerConfig,
    /// The software that is to start on the directories.
    pub software: Software,
    /// The cluster's id.
    pub cluster_id: Option<String>,
    /// A release, or a metadata version by name.
    pub release: Option<String>,
    /// Features, each as `name=level`.
    pub features: Vec<String>,
    /// How the quorum begins.
    pub quorum: InitialQuorum,
    /// The id that the metadata directory gets; `None`: the one that the voters are told, or a new one.
    pub directory_id: Option<Uuid>,
    /// SCRAM users, each as `MECHANISM=[…]`.
    pub scram: Vec<SecretString>,
    /// Whether directories that are formatted already are left alone, rather than a fault.
    pub ignore_formatted: bool,
}

/// A format that can be carried out.
#[derive(Clone, Debug)]
pub struct Format {
    writes: Vec<DirectoryWrite>,
    record: FormatRecord,
}

/// The lowest metadata version that has SCRAM users.
const SCRAM_FROM: Level = Level(11);

impl FormatRequest {
    /// Whether the node is a controller that the cluster begins with: a static voter, or one that is told the first voters.
    /// There is no running cluster yet whose id it could take.
    #[must_use]
    pub fn begins_cluster(&self) -> bool {
        let is_static_voter = self.config.roles.controller && !self.config.static_voters.is_empty();
        match self.quorum {
            InitialQuorum::Standalone | InitialQuorum::InitialControllers(_) => true,
            InitialQuorum::Unsaid | InitialQuorum::NoInitialControllers => is_static_voter,
            InitialQuorum::RunningVoters(_) => false,
        }
    }

    fn is_dynamic(&self) -> bool {
        self.config.static_voters.is_empty() || matches!(self.quorum, InitialQuorum::RunningVoters(_))
    }

    /// Finds out what is to be written, and everything that speaks against it. Changes nothing.
    ///
    /// # Errors
    /// All faults, if there are any.
    pub fn prepare(&self) -> Result<Format, Vec<Fault>> {
        let mut faults = Vec::new();
        let quorum = Quorum::of(self, &mut faults);
        let levels = self.levels(&mut faults);
        let scram = self.scram(levels.as_ref(), &mut faults);
        self.check_cluster_id(&mut faults);
        let directories = Directories::find(self, &mut faults);
        match levels {
            Some(levels) if faults.is_empty() => self.put_together(&quorum, &levels, &scram, &directories),
            _ => Err(faults),
        }
    }

    fn levels(&self, faults: &mut Vec<Fault>) -> Option<Levels> {
        let wanted = LevelsWanted {
            release: self.release.as_deref(),
            features: &self.features,
            dynamic_quorum: self.is_dynamic(),
            unstable: self.config.unstable_feature_versions,
        };
        match levels::resolve(&self.software, &wanted) {
            Ok(levels) => Some(levels),
            Err(wrong) => {
                faults.extend(wrong.into_iter().map(Fault::Levels));
                None
            }
        }
    }

    fn scram(&self, levels: Option<&Levels>, faults: &mut Vec<Fault>) -> Vec<Credential> {
        if let Some(levels) = levels.filter(|levels| levels.metadata_version.level < SCRAM_FROM)
            && !self.scram.is_empty()
        {
            faults.push(Fault::ScramTooEarly(levels.metadata_version.name.clone()));
        }
        let mut credentials = Vec::new();
        for (number, argument) in (1..).zip(&self.scram) {
            match scram::parse(argument) {
                Ok(credential) => credentials.push(credential),
                Err(error) => faults.push(Fault::Scram { number, error }),
            }
        }
        credentials
    }

    /// A controller that the cluster begins with must be told its id; others can learn it, from a release on that none
    /// has reached (KIP-1262).
    fn check_cluster_id(&self, faults: &mut Vec<Fault>) {
        let can_learn = self.software.cluster_id_record.is_some() && !self.begins_cluster();
        if self.cluster_id.is_none() && !can_learn {
            faults.push(Fault::NoClusterId { bootstraps: self.begins_cluster() });
        }
    }

    fn put_together(
        &self,
        quorum: &Quorum,
        levels: &Levels,
        scram: &[Credential],
        directories: &Directories,
    ) -> Result<Format, Vec<Fault>> {
        let (now, zoned) = (Timestamp::now().as_millisecond(), Zoned::now());
        let records = self.records(levels, scram);
        let mut record = FormatRecord::of(self, levels, scram, directories);
        let mut writes = Vec::new();
        for directory in &directories.to_format {
            let is_metadata = directories.is_metadata(directory);
            let id = quorum.directory_id(self, is_metadata);
            let files = self
                .files(quorum, levels, &records, is_metadata)
                .into_iter()
                .map(|(name, checkpoint, mode)| Ok((name, checkpoint.encode(now)?, mode)))
                .collect::<Result<Vec<(&str, Bytes, u32)>, super::checkpoint::Unwritable>>()
                .map_err(|error| vec![Fault::Unwritable(error)])?;
            let meta = MetaProperties {
                version: if self.cluster_id.is_some() { 1 } else { 2 },
                cluster_id: self.cluster_id.clone(),
                node_id: Some(self.config.node_id),
                directory_id: Some(id),
            };
            record.add(directory, quorum.kind(self, is_metadata), id);
            writes.push(DirectoryWrite {
                place: directory.place.clone(),
                stale: self.stale(&files, is_metadata),
                files,
                meta: meta.encode(&zoned),
            });
        }
        Ok(Format { writes, record })
    }

    /// The metadata records that the cluster begins with, in the order of Kafka's own tool.
    fn records(&self, levels: &Levels, scram: &[Credential]) -> Vec<MetadataRecord> {
        let level =
            |feature: &FeatureName, level| MetadataRecord::FeatureLevel { feature: feature.clone(), level };
        let metadata_version = levels.metadata_version.level;
        let others = levels.others.iter().filter(|(_, level)| **level > Level::ZERO);
        let cluster_id = self.software.cluster_id_record.filter(|record| record.from <= metadata_version);
        let cluster_id = cluster_id
            .zip(self.cluster_id.clone())
            .map(|(record, id)| MetadataRecord::ClusterId { key: record.key, id });
        std::iter::once(level(&FeatureName::metadata_version(), metadata_version))
            .chain(others.map(|(feature, number)| level(feature, *number)))
            .chain(cluster_id)
            .chain(scram.iter().cloned().map(MetadataRecord::ScramCredential))
            .collect()
    }

    /// The checkpoints of a directory: below it, what they hold, and their mode.
    fn files(
        &self,
        quorum: &Quorum,
        levels: &Levels,
        records: &[MetadataRecord],
        is_metadata: bool,
    ) -> Vec<(&'static str, Checkpoint, u32)> {
        let kraft_version = Some(levels.kraft_version.0).filter(|version| *version > 0);
        let with = |records: &[MetadataRecord]| Checkpoint {
            kraft_version,
            voters: quorum.voters.clone(),
            records: records.to_vec(),
            timed: true,
        };
        match self.software.layout {
            Layout::ZeroCheckpoint if is_metadata && self.config.roles.controller => {
                vec![(ZERO_CHECKPOINT, with(records), write::READ_ONLY)]
            }
            Layout::ZeroCheckpoint => Vec::new(),
            Layout::BootstrapCheckpoint => {
                let bootstrap = Checkpoint { records: records.to_vec(), ..Checkpoint::default() };
                let mut files = vec![(BOOTSTRAP_CHECKPOINT, bootstrap, write::ORDINARY)];
                if is_metadata && quorum.voters.is_some() {
                    files.push((ZERO_CHECKPOINT, with(&[]), write::READ_ONLY));
                }
                files
            }
        }
    }

    /// The checkpoints that must not be there besides what is written: the first metadata records stand in one place only
    /// (KIP-1170).
    fn stale(&self, files: &[(&'static str, Bytes, u32)], is_metadata: bool) -> Vec<PathBuf> {
        if !is_metadata || !self.config.roles.controller {
            return Vec::new();
        }
        let written = |name: &&str| files.iter().any(|file| file.0 == *name);
        [BOOTSTRAP_CHECKPOINT, ZERO_CHECKPOINT]
            .iter()
            .filter(|name| !written(name))
            .map(PathBuf::from)
            .collect()
    }
}

impl Format {
    /// What is to be written, or was.
    #[must_use]
    pub fn record(&self) -> &FormatRecord {
        &self.record
    }

    /// Writes it. Whatever moment this ends at, each directory is untouched, complete, or completed by the same format
    /// once more.
    ///
    /// # Errors
    /// If the disk refuses something, or somebody else formats the directories at this moment.
    pub fn write(&self) -> Result<(), Fault> {
        write::write(&self.writes)
    }
}

impl Directory {
    /// Whether a format with this cluster and node was under way here when it ended.
    fn is_interrupted(&self, cluster_id: Option<&str>, node_id: i32) -> bool {
        write::staged(&self.place).is_some_and(|staged| {
            staged.cluster_id.as_deref() == cluster_id && staged.node_id == Some(node_id)
        })
    }
}
