//! A node's configuration, as far as formatting depends on it. It is refused where Kafka would refuse to start with it, and
//! everything that is wrong is found at once.

mod keys;
mod listeners;
mod quorum;
mod relations;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use super::properties::Properties;
use listeners::Listeners;

pub use keys::TABLE;
pub use listeners::Listener;
pub use quorum::StaticVoter;

/// What a node does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Roles {
    /// It is a broker.
    pub broker: bool,
    /// It is a controller.
    pub controller: bool,
}

/// A node's configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerConfig {
    /// The node's id.
    pub node_id: i32,
    /// What it does.
    pub roles: Roles,
    /// Its directories, as written.
    pub log_dirs: Vec<PathBuf>,
    /// The directory of the metadata log: the one that is set, or the first of the others.
    pub metadata_log_dir: PathBuf,
    /// The names of the controllers' listeners, as written.
    pub controller_listener_names: Vec<String>,
    /// Its listeners.
    pub listeners: Vec<Listener>,
    /// The listeners that others are told of, where they are set.
    pub advertised_listeners: Vec<Listener>,
    /// The voters of a static quorum; none: the quorum is dynamic.
    pub static_voters: Vec<StaticVoter>,
    /// Where a dynamic quorum is found.
    pub bootstrap_servers: Vec<String>,
    /// Whether levels that are not ready for production are allowed.
    pub unstable_feature_versions: bool,
}

/// Something wrong in a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A key that must be there is not.
    #[error("{key} is missing: set it to {wanted}")]
    Missing {
        /// The key.
        key: &'static str,
        /// What belongs there.
        wanted: &'static str,
    },
    /// A value is not what its key takes.
    #[error("{key} is {value:?}: {wanted}")]
    Value {
        /// The key.
        key: String,
        /// The value, or the part of it that is meant.
        value: String,
        /// What is wanted instead.
        wanted: String,
    },
}

impl ConfigError {
    fn missing(key: &'static str, wanted: &'static str) -> Self {
        Self::Missing { key, wanted }
    }

    fn value(key: &str, value: &str, wanted: impl Into<String>) -> Self {
        Self::Value { key: key.to_owned(), value: value.chars().take(128).collect(), wanted: wanted.into() }
    }
}

/// The keys as they are read: values are trimmed.
#[derive(Clone, Copy, Debug)]
struct Keys<'a>(&'a Properties);

impl<'a> Keys<'a> {
    fn get(self, key: &str) -> Option<&'a str> {
        self.0.get(key).map(str::trim)
    }

    /// A number that was checked to be one, or its default.
    fn number(self, key: &str, default: i64) -> i64 {
        self.get(key).and_then(|text| text.parse().ok()).unwrap_or(default)
    }
}

/// The items of a list, as Kafka splits it: at commas, with the blanks around them; none of an empty text.
fn items(text: &str) -> Vec<&str> {
    let text = text.trim();
    if text.is_empty() { Vec::new() } else { text.split(',').map(str::trim).collect() }
}

impl ServerConfig {
    /// Reads a configuration.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn read(properties: &Properties) -> Result<Self, Vec<ConfigError>> {
        let keys = Keys(properties);
        let mut errors = Vec::new();
        keys::check(properties, &mut errors);
        let roles = roles(keys, &mut errors);
        let node_id = node_id(keys, &mut errors);
        let listeners = Listeners::read(keys, roles, &mut errors);
        let static_voters = quorum::voters(keys, roles, node_id, &mut errors);
        let bootstrap_servers = quorum::bootstrap_servers(keys, &mut errors);
        if static_voters.is_empty() && bootstrap_servers.is_empty() && errors.is_empty() {
            let wanted =
                "the controllers of the quorum, as host:port; or controller.quorum.voters, for static voters";
            errors.push(ConfigError::missing("controller.quorum.bootstrap.servers", wanted));
        }
        let log_dirs = log_dirs(keys);
        relations::check(keys, roles, &log_dirs, &mut errors);
        if !errors.is_empty() {
            return Err(errors);
        }
        let metadata_log_dir = keys.get("metadata.log.dir").map(PathBuf::from);
        Ok(Self {
            node_id: node_id.unwrap_or_default(),
            roles,
            metadata_log_dir: metadata_log_dir.or_else(|| log_dirs.first().cloned()).unwrap_or_default(),
            log_dirs,
            controller_listener_names: listeners.controller_names.clone(),
            listeners: listeners.listeners,
            advertised_listeners: listeners.advertised,
            static_voters,
            bootstrap_servers,
            unstable_feature_versions: keys
                .get("unstable.feature.versions.enable")
                .is_some_and(|value| value.eq_ignore_ascii_case("true")),
        })
    }

    /// Where this controller is reached, as a voter is told of: the listener's name, host and port. Of a machine's address
    /// for all only the machine itself can be meant.
    #[must_use]
    pub fn controller_endpoint(&self) -> Option<(String, String, u16)> {
        let listeners = Listeners {
            listeners: self.listeners.clone(),
            advertised: self.advertised_listeners.clone(),
            controller_names: self.controller_listener_names.clone(),
        };
        let listener = listeners.controller()?;
        let host = listener.host.clone().filter(|host| host != "0.0.0.0");
        let port = u16::try_from(listener.port).ok()?;
        Some((listener.name.clone(), host.unwrap_or_else(|| "localhost".to_owned()), port))
    }
}

fn roles(keys: Keys<'_>, errors: &mut Vec<ConfigError>) -> Roles {
    match keys.get("process.roles") {
        None => {
            errors.push(ConfigError::missing("process.roles", "broker, controller, or broker,controller"));
            Roles::default()
        }
        Some(text) => {
            let items = items(text);
            Roles { broker: items.contains(&"broker"), controller: items.contains(&"controller") }
        }
    }
}

fn node_id(keys: Keys<'_>, errors: &mut Vec<ConfigError>) -> Option<i32> {
    let number = |key: &str| keys.get(key).and_then(|text| text.parse::<i32>().ok());
    match (keys.get("node.id"), keys.get("broker.id")) {
        (None, None) => errors.push(ConfigError::missing("node.id", "a number that no other node has")),
        (Some(_), Some(text)) if number("node.id") != number("broker.id") => {
            let wanted = "node.id, which takes its place, is another: leave broker.id out";
            errors.push(ConfigError::value("broker.id", text, wanted));
        }
        (None, Some(text)) if number("broker.id").is_some_and(|id| id < 0) => {
            errors.push(ConfigError::value("broker.id", text, "a number that is not negative is wanted"));
        }
        _ => {}
    }
    number("node.id").or_else(|| number("broker.id"))
}

fn log_dirs(keys: Keys<'_>) -> Vec<PathBuf> {
    let text = keys.get("log.dirs").or_else(|| keys.get("log.dir")).unwrap_or("/tmp/kafka-logs");
    let mut paths = Vec::new();
    for item in items(text).into_iter().map(PathBuf::from) {
        // compared as texts: `data` and `data/` are the same to Rust's paths
        if !paths.iter().any(|path: &PathBuf| path.as_os_str() == item.as_os_str()) {
            paths.push(item);
        }
    }
    paths
}
