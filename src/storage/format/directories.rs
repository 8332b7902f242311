//! Which of a node's directories are to be formatted, and what speaks against it. Looks, and changes nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Fault, FormatRequest};
use crate::storage::Uuid;
use crate::storage::directory::{self, Directory, State};
use crate::storage::meta_properties::MetaProperties;

/// A node's directories, sorted out.
#[derive(Clone, Debug, Default)]
pub(super) struct Directories {
    /// Those that are to be formatted.
    pub(super) to_format: Vec<Directory>,
    /// Those that are formatted already.
    pub(super) formatted: Vec<PathBuf>,
    /// Those that can't be read, and why.
    pub(super) unreadable: Vec<(PathBuf, String)>,
    /// What Kafka may stumble over later.
    pub(super) leftovers: Vec<String>,
    metadata: PathBuf,
}

impl Directories {
    pub(super) fn find(request: &FormatRequest, faults: &mut Vec<Fault>) -> Self {
        let config = &request.config;
        let paths = config.log_dirs.iter().chain([&config.metadata_log_dir]).map(PathBuf::as_path);
        let mut found = Self { metadata: directory::place(&config.metadata_log_dir), ..Self::default() };
        let mut ids = BTreeMap::new();
        for directory in directory::survey(paths) {
            match &directory.state {
                State::Formatted(meta) => {
                    check_identity(request, &directory.path, meta, &mut ids, faults);
                    found.formatted.push(directory.path);
                }
                State::Unreadable(why) => found.unreadable.push((directory.path, why.clone())),
                State::Missing | State::Unformatted => found.to_format.push(directory),
            }
        }
        found.check(request, faults);
        found
    }

    fn check(&mut self, request: &FormatRequest, faults: &mut Vec<Fault>) {
        let config = &request.config;
        let interrupted =
            |directory: &Directory| directory.is_interrupted(request.cluster_id.as_deref(), config.node_id);
        // what an interrupted format has completed is no reason not to complete the rest
        let completes = self.to_format.iter().any(interrupted);
        if !request.ignore_formatted && !completes {
            faults.extend(self.formatted.iter().cloned().map(Fault::AlreadyFormatted));
        }
        if self.to_format.is_empty() && self.formatted.is_empty() {
            let whys: Vec<String> =
                self.unreadable.iter().map(|(path, why)| format!("{}: {why}", path.display())).collect();
            faults.push(Fault::NoneReadable(whys.join("; ")));
        }
        for directory in &self.to_format {
            faults.extend(directory.unwritable().map(Fault::NotWritable));
            self.leftovers.extend(directory.leftovers(config.roles.broker));
        }
    }

    /// Whether a directory is the one that the metadata log is kept in.
    pub(super) fn is_metadata(&self, directory: &Directory) -> bool {
        directory.place == self.metadata
    }
}

fn check_identity(
    request: &FormatRequest,
    path: &Path,
    meta: &MetaProperties,
    ids: &mut BTreeMap<Uuid, PathBuf>,
    faults: &mut Vec<Fault>,
) {
    if let (Some(found), Some(wanted)) = (&meta.cluster_id, &request.cluster_id)
        && found != wanted
    {
        let (found, wanted) = (found.clone(), wanted.clone());
        faults.push(Fault::OtherCluster { path: path.to_owned(), found, wanted });
    }
    if let Some(found) = meta.node_id.filter(|found| *found != request.config.node_id) {
        faults.push(Fault::OtherNode { path: path.to_owned(), found, wanted: request.config.node_id });
    }
    let Some(id) = meta.directory_id else { return };
    if id.is_reserved() {
        faults.push(Fault::ReservedId { path: path.to_owned(), id: id.to_string() });
    }
    if let Some(first) = ids.insert(id, path.to_owned()) {
        faults.push(Fault::SameId { first, second: path.to_owned(), id: id.to_string() });
    }
}
