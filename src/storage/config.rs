//! stub
#![allow(missing_docs)]
use super::properties::Properties;
use std::path::PathBuf;
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Roles {
    pub broker: bool,
    pub controller: bool,
}
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticVoter;
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerConfig {
    pub node_id: i32,
    pub roles: Roles,
    pub log_dirs: Vec<PathBuf>,
    pub metadata_log_dir: PathBuf,
    pub controller_listener_names: Vec<String>,
    pub static_voters: Vec<StaticVoter>,
    pub bootstrap_servers: Vec<String>,
    pub unstable_feature_versions: bool,
}
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("x")]
pub struct ConfigErrors;
impl ServerConfig {
    pub fn read(p: &Properties) -> Result<Self, ConfigErrors> {
        let get = |k: &str| p.get(k).map(str::trim).unwrap_or_default().to_owned();
        let roles = get("process.roles");
        let dirs = if get("log.dirs").is_empty() { get("log.dir") } else { get("log.dirs") };
        let log_dirs: Vec<PathBuf> = dirs.split(',').map(|d| PathBuf::from(d.trim())).collect();
        let metadata_log_dir = if get("metadata.log.dir").is_empty() {
            log_dirs[0].clone()
        } else {
            PathBuf::from(get("metadata.log.dir"))
        };
        Ok(Self {
            node_id: get("node.id").parse().map_err(|_| ConfigErrors)?,
            roles: Roles { broker: roles.contains("broker"), controller: roles.contains("controller") },
            log_dirs,
            metadata_log_dir,
            controller_listener_names: vec![get("controller.listener.names")],
            static_voters: if get("controller.quorum.voters").is_empty() {
                vec![]
            } else {
                vec![StaticVoter]
            },
            bootstrap_servers: vec![],
            unstable_feature_versions: get("unstable.feature.versions.enable") == "true",
        })
    }
    pub fn controller_endpoint(&self) -> Option<(String, String, u16)> {
        Some(("CONTROLLER".into(), "localhost".into(), 9093))
    }
}
