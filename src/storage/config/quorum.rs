//! Where the controllers are: static voters, or the servers that a dynamic quorum is found by.

use super::{ConfigError, Keys, Roles, items};

/// A voter of a static quorum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticVoter {
    /// Its node id.
    pub node_id: i32,
    /// Its host.
    pub host: String,
    /// Its port.
    pub port: u16,
}

pub(super) fn voters(
    keys: Keys<'_>,
    roles: Roles,
    node_id: Option<i32>,
    errors: &mut Vec<ConfigError>,
) -> Vec<StaticVoter> {
    let key = "controller.quorum.voters";
    let mut voters = Vec::new();
    for item in keys.get(key).map(items).unwrap_or_default() {
        match voter(item) {
            Some(voter) => voters.push(voter),
            None => errors.push(ConfigError::value(key, item, "each voter is id@host:port")),
        }
    }
    let Some(node_id) = node_id.filter(|_| !voters.is_empty()) else { return voters };
    let votes = voters.iter().any(|voter| voter.node_id == node_id);
    let id = node_id.to_string();
    match (roles.controller, votes) {
        (true, false) => {
            let wanted = "this controller is not among controller.quorum.voters: add it, or correct the id";
            errors.push(ConfigError::value("node.id", &id, wanted));
        }
        (false, true) if roles.broker => {
            let wanted = "controller.quorum.voters has this id, and the node is no controller: each node has an id of \
                          its own";
            errors.push(ConfigError::value("node.id", &id, wanted));
        }
        _ => {}
    }
    voters
}

fn voter(text: &str) -> Option<StaticVoter> {
    let (id, address) = text.split_once('@')?;
    let (host, port) = host_and_port(address)?;
    Some(StaticVoter { node_id: id.parse().ok()?, host, port })
}

pub(super) fn bootstrap_servers(keys: Keys<'_>, errors: &mut Vec<ConfigError>) -> Vec<String> {
    let key = "controller.quorum.bootstrap.servers";
    let servers = keys.get(key).map(items).unwrap_or_default();
    for server in &servers {
        if host_and_port(server).is_none() {
            errors.push(ConfigError::value(key, server, "each server is host:port"));
        }
    }
    servers.into_iter().map(str::to_owned).collect()
}

/// Host and port as Kafka finds them in an address, which may have a protocol in front.
fn host_and_port(text: &str) -> Option<(String, u16)> {
    let text = text.rsplit_once("://").map_or(text, |(_, address)| address);
    let (host, port) = text.rsplit_once(':')?;
    let host = host.strip_prefix('[').unwrap_or(host);
    let host = host.strip_suffix(']').unwrap_or(host);
    let well_formed = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-%._:".contains(&byte));
    let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let port = port.parse().ok().filter(|_| digits && well_formed)?;
    Some((host.to_owned(), port))
}
