//! The node that a pod is: its configuration, by the pod's annotations, and the state of its directories.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::path::{Path, PathBuf};

use super::refusal::Refusal;
use super::{Refused, empty_report};
use crate::api::pods::{CLUSTER_ID_VARIABLE, NODE_ID_ENV, POD_NAME_ENV, PROPERTIES_ENV, Report, Verdict};
use crate::cli::arguments as files;
use crate::cli::storage::arguments::InPod;
use crate::storage::config::ServerConfig;
use crate::storage::directory::{self, Directory, State};
use crate::storage::environment;
use crate::storage::properties::Properties;

/// What a pod says about its node, from the variables that the injection adds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) pod: String,
    /// The properties file; empty: the variables of Kafka's own image.
    pub(super) properties: String,
    /// The rule for the node's id; empty: the configuration has it.
    pub(super) node_id: String,
    /// The cluster's id by the identity record; empty: there is none yet.
    pub(super) cluster_id: String,
}

impl Said {
    fn from_variables() -> Self {
        let of = |name: &str| env::var(name).unwrap_or_default().trim().to_owned();
        Self {
            pod: of(POD_NAME_ENV),
            properties: of(PROPERTIES_ENV),
            node_id: of(NODE_ID_ENV),
            cluster_id: of(CLUSTER_ID_VARIABLE),
        }
    }
}

/// A node with its configuration.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) config: ServerConfig,
    cluster_id: Option<String>,
}

impl Node {
    /// Works out the node of the pod that this runs in.
    pub(super) fn find(files: &InPod) -> Result<Self, Box<Refused>> {
        Self::read(&Said::from_variables(), &files.image_properties)
            .map_err(|refusal| Refused::new(empty_report(), refusal))
    }

    /// Reads the configuration that a pod says it has.
    pub(super) fn read(said: &Said, image_properties: &Path) -> Result<Self, Refusal> {
        let (name, file, variables) = if said.properties.is_empty() {
            let file = if image_properties.exists() { read(image_properties)? } else { Vec::new() };
            ("the image's variables".to_owned(), file, env::vars_os().collect())
        } else {
            let path = PathBuf::from(&said.properties);
            (said.properties.clone(), read(&path)?, Vec::new())
        };
        let wrong = |what: String| Refusal::configuration(format!("{name}: {what}"));
        let properties = environment::read(&file, variables.clone()).map_err(|e| wrong(e.to_string()))?;
        let ruled = ruled_id(said, &properties)?;
        let id = ruled.map(|id| ("KAFKA_NODE_ID".into(), id.to_string().into()));
        let properties =
            environment::read(&file, variables.into_iter().chain(id)).map_err(|e| wrong(e.to_string()))?;
        let config = ServerConfig::read(&properties)
            .map_err(|errors| wrong(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")))?;
        let cluster_id = Some(said.cluster_id.clone()).filter(|id| !id.is_empty());
        Ok(Self { config, cluster_id })
    }

    /// What is known of the node before its directories are looked at.
    fn about(&self) -> Report {
        let config = &self.config;
        let voter = |v: &crate::storage::config::StaticVoter| address(v.node_id, &v.host, v.port);
        let endpoint = config.controller_endpoint().filter(|_| config.roles.controller);
        Report {
            node_id: Some(config.node_id),
            broker: config.roles.broker,
            controller: config.roles.controller,
            static_voters: config.static_voters.iter().map(voter).collect(),
            endpoint: endpoint.map(|(_, host, port)| host_and_port(&host, port)),
            ..empty_report()
        }
    }

    /// Looks at the directories, and sees whether they belong together and to this node.
    pub(super) fn survey(&self) -> Result<Report, Box<Refused>> {
        let config = &self.config;
        let paths = config.log_dirs.iter().chain([&config.metadata_log_dir]).map(PathBuf::as_path);
        let metadata = directory::place(&config.metadata_log_dir);
        let mut report = self.about();
        let directories = directory::survey(paths);
        let clusters =
            self.clusters(&directories).map_err(|refusal| Refused::new(report.clone(), refusal))?;
        report.cluster_id = clusters;
        if let Some(refusal) = self.of_another_cluster(report.cluster_id.as_deref()) {
            return Err(Refused::new(report, refusal));
        }
        let (mut unformatted, mut formatted, mut unreadable) = (Vec::new(), false, Vec::new());
        for directory in &directories {
            let is_metadata = directory.place == metadata;
            match &directory.state {
                State::Formatted(meta) => {
                    formatted = true;
                    if is_metadata {
                        report.directory_id = meta.directory_id.map(|id| id.to_string());
                    }
                }
                State::Missing | State::Unformatted => {
                    unformatted.push(directory);
                    report.metadata_directory_missing |= is_metadata;
                }
                State::Unreadable(why) => {
                    unreadable.push((is_metadata, format!("{}: {why}", directory.path.display())));
                }
            }
        }
        report.metadata_directory_missing &= formatted;
        // a broker starts without a directory that fails, as long as it is not all of them
        let vital = config.roles.controller && unreadable.iter().any(|(is_metadata, _)| *is_metadata);
        if vital || (!formatted && unformatted.is_empty()) {
            let whys: Vec<String> = unreadable.into_iter().map(|(_, why)| why).collect();
            return Err(Refused::new(report, Refusal::disk(whys.join("; "))));
        }
        if let Some(refusal) = unformatted.iter().find_map(|directory| self.unusable(directory)) {
            return Err(Refused::new(report, refusal));
        }
        report.verdict = if unformatted.is_empty() { Verdict::Formatted } else { Verdict::Unformatted };
        Ok(report)
    }

    /// The cluster that the directories belong to.
    fn clusters(&self, directories: &[Directory]) -> Result<Option<String>, Refusal> {
        let mut clusters = BTreeMap::new();
        let mut ids = BTreeSet::new();
        for directory in directories {
            let State::Formatted(meta) = &directory.state else { continue };
            let path = directory.path.display();
            if let Some(found) = meta.node_id.filter(|found| *found != self.config.node_id) {
                return Err(Refusal::node_id(format!(
                    "{path} belongs to node {found}, but this is node {}: correct the id, or give the pod the volume of \
                     its own node",
                    self.config.node_id
                )));
            }
            if let Some(cluster) = &meta.cluster_id {
                clusters.entry(cluster.clone()).or_insert_with(|| path.to_string());
            }
            if let Some(id) = meta.directory_id
                && (id.is_reserved() || !ids.insert(id))
            {
                let message = format!(
                    "{path} has the directory id {id}, which is another directory's, or Kafka's own: one of two copies \
                     has to go"
                );
                return Err(Refusal::new("DirectoryIdInvalid", crate::cli::Status::Identity, message));
            }
        }
        if clusters.len() > 1 {
            let each: Vec<String> = clusters.iter().map(|(id, path)| format!("{path} to {id:?}")).collect();
            return Err(Refusal::cluster_id(format!(
                "the directories belong to two clusters, {}: use the directories of one",
                each.join(" and ")
            )));
        }
        Ok(clusters.into_keys().next())
    }

    /// Whether the directories belong to another cluster than the one that the identity record names, where there is one.
    fn of_another_cluster(&self, found: Option<&str>) -> Option<Refusal> {
        let (found, wanted) = (found?, self.cluster_id.as_deref()?);
        (found != wanted).then(|| {
            Refusal::cluster_id(format!(
                "the directories belong to cluster {found:?}, and this is cluster {wanted:?}: give the pod the volume of its \
                 own cluster, or an empty one"
            ))
        })
    }

    /// What keeps a directory from being formatted, or Kafka from starting on it then.
    fn unusable(&self, directory: &Directory) -> Option<Refusal> {
        if let Some(why) = directory.unwritable() {
            return Some(Refusal::disk(format!("{why}: make the volume writable for the pod's user")));
        }
        let leftovers = directory.leftovers(self.config.roles.broker);
        let first = leftovers.into_iter().next()?;
        Some(Refusal::new("DirectoryNotEmpty", crate::cli::Status::Disk, first))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Refusal> {
    files::read(path).map_err(|error| Refusal::configuration(format!("{}: {error}", path.display())))
}

/// A voter as `controller.quorum.voters` has it.
fn address(node_id: i32, host: &str, port: u16) -> String {
    format!("{node_id}@{}", host_and_port(host, port))
}

fn host_and_port(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// The id that the pod's rule gives its node; `None` where the configuration has it.
fn ruled_id(said: &Said, properties: &Properties) -> Result<Option<i32>, Refusal> {
    let rule = said.node_id.as_str();
    let wrong = |why: &str| {
        Refusal::configuration(format!(
            "annotation {} is {rule:?}, {why}: give ordinal or ordinal+N, or leave it out where the configuration has \
             node.id",
            crate::api::pods::NODE_ID
        ))
    };
    if rule.is_empty() || rule == "properties" {
        return Ok(None);
    }
    let offset = match rule.strip_prefix("ordinal") {
        Some("") => 0,
        Some(rest) => {
            let digits = rest.strip_prefix('+').ok_or_else(|| wrong("which is no rule"))?;
            digits.parse::<u16>().map_err(|_| wrong("whose offset is no number from 0 to 65535"))?
        }
        None => return Err(wrong("which is no rule")),
    };
    let ordinal = said.pod.rsplit_once('-').and_then(|(_, ordinal)| ordinal.parse::<u16>().ok());
    let Some(ordinal) = ordinal else {
        return Err(wrong(&format!("and the pod's name {:?} ends in no ordinal", said.pod)));
    };
    let id = i32::from(ordinal) + i32::from(offset);
    match properties.get("node.id").map(str::trim) {
        Some(other) if other != id.to_string() => Err(Refusal::node_id(format!(
            "node.id is {other} in the configuration, and {id} by the rule {rule:?}: leave one of the two out"
        ))),
        _ => Ok(Some(id)),
    }
}
