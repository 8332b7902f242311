//! Listeners: where a node is reached, by whom, and under which names others are told. The rules between them are those of
//! Kafka 4.4.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::{ConfigError, Keys, Roles, items};

/// The address that stands for all of a machine's.
const ANY: &str = "0.0.0.0";
/// The name that a listener has where none is given.
const DEFAULT_LISTENERS: &str = "PLAINTEXT://:9092";
const PROTOCOLS: [&str; 4] = ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"];

/// One listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Its name, in capitals.
    pub name: String,
    /// The host, if one is given; IPv6 addresses without brackets.
    pub host: Option<String>,
    /// The port. As in Kafka's configuration, any number is taken; 0 is one that the machine chooses.
    pub port: i32,
}

/// A node's listeners, checked against each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Listeners {
    pub(super) listeners: Vec<Listener>,
    pub(super) advertised: Vec<Listener>,
    pub(super) controller_names: Vec<String>,
}

impl Listeners {
    pub(super) fn read(keys: Keys<'_>, roles: Roles, errors: &mut Vec<ConfigError>) -> Self {
        let mut controller_names = Vec::new();
        match keys.get("controller.listener.names") {
            None => errors.push(ConfigError::missing(
                "controller.listener.names",
                "the names of the controllers' listeners, such as CONTROLLER",
            )),
            Some(names) => {
                for name in items(names) {
                    if !controller_names.contains(&name.to_owned()) {
                        controller_names.push(name.to_owned());
                    }
                }
            }
        }
        let mut read = Self { controller_names, ..Self::default() };
        let Some(protocols) = read.protocols(keys, errors) else { return read };
        read.listeners =
            endpoints("listeners", keys.get("listeners").unwrap_or(DEFAULT_LISTENERS), &protocols, errors);
        check_ports(&read.listeners, errors);
        if let Some(text) = keys.get("advertised.listeners") {
            read.advertised = endpoints("advertised.listeners", text, &protocols, errors);
        }
        read.check_controllers(keys, roles, &protocols, errors);
        read.check_routable(keys, roles, errors);
        let between = between_brokers(keys, &protocols, errors);
        let (name, protocol) = between.unzip();
        check_mechanism(keys, protocol.as_deref(), errors);
        if roles.broker {
            read.check_brokers(keys, name, errors);
        }
        read.check_early_start(keys, errors);
        read
    }

    /// The security protocol of each listener's name; `None` if it can't be read.
    fn protocols(&self, keys: Keys<'_>, errors: &mut Vec<ConfigError>) -> Option<BTreeMap<String, String>> {
        let key = "listener.security.protocol.map";
        let mut protocols = BTreeMap::new();
        let Some(text) = keys.get(key) else {
            protocols.extend(PROTOCOLS.map(|name| (name.to_owned(), name.to_owned())));
            let secured = |name: &str| PROTOCOLS[1..].contains(&name);
            let listeners = items(keys.get("listeners").unwrap_or(DEFAULT_LISTENERS));
            let listed =
                listeners.iter().filter_map(|listener| Some(listener.split_once(':')?.0.to_uppercase()));
            if !self.controller_names.iter().any(|name| secured(name))
                && !listed.into_iter().any(|name| secured(&name))
            {
                protocols
                    .extend(self.controller_names.iter().map(|name| (name.clone(), PROTOCOLS[0].to_owned())));
            }
            return Some(protocols);
        };
        for entry in items(text) {
            let Some((name, protocol)) = entry.rsplit_once(':') else {
                errors.push(ConfigError::value(
                    key,
                    entry,
                    "each entry is a listener's name, a colon and a protocol",
                ));
                return None;
            };
            let (name, protocol) = (name.trim(), protocol.trim().to_uppercase());
            if name.is_empty() || !PROTOCOLS.contains(&protocol.as_str()) {
                errors.push(ConfigError::value(
                    key,
                    entry,
                    format!("the protocols are {}", PROTOCOLS.join(", ")),
                ));
                return None;
            }
            protocols.insert(name.to_uppercase(), protocol);
        }
        Some(protocols)
    }

    fn names(&self) -> BTreeSet<&str> {
        self.listeners.iter().map(|listener| listener.name.as_str()).collect()
    }

    fn check_controllers(
        &self,
        keys: Keys<'_>,
        roles: Roles,
        protocols: &BTreeMap<String, String>,
        errors: &mut Vec<ConfigError>,
    ) {
        let key = "controller.listener.names";
        let text = keys.get(key).unwrap_or_default();
        let names = self.names();
        let own = |name: &String| names.contains(name.as_str());
        if roles.controller {
            if !self.controller_names.iter().all(own) {
                errors.push(ConfigError::value(
                    key,
                    text,
                    "a controller listens on each: add them to listeners",
                ));
            }
            let between = keys.get("inter.broker.listener.name").map(str::to_uppercase);
            if let Some(between) =
                between.filter(|name| !roles.broker && self.controller_names.contains(name))
            {
                let wanted = "a node that is only a controller has no listener between brokers: leave it out";
                errors.push(ConfigError::value("inter.broker.listener.name", &between, wanted));
            }
            let other =
                self.listeners.iter().find(|listener| !self.controller_names.contains(&listener.name));
            if let Some(other) = other.filter(|_| !roles.broker) {
                errors.push(ConfigError::value(
                    "listeners",
                    &other.name,
                    "a node that is only a controller listens on nothing but controller.listener.names",
                ));
            }
        } else if self.controller_names.iter().any(own) {
            let wanted = "a node that is only a broker does not listen on them: take them out of listeners";
            errors.push(ConfigError::value(key, text, wanted));
        }
        let unknown =
            self.controller_names.first().filter(|first| !protocols.contains_key(&first.to_uppercase()));
        if let Some(first) = unknown.filter(|_| !roles.controller) {
            let wanted = "listener.security.protocol.map does not say how it is secured: add it there";
            errors.push(ConfigError::value(key, first, wanted));
        }
    }

    fn check_brokers(&self, keys: Keys<'_>, between: Option<String>, errors: &mut Vec<ConfigError>) {
        let told =
            if keys.get("advertised.listeners").is_some() { &self.advertised } else { &self.listeners };
        let brokers: Vec<&Listener> =
            told.iter().filter(|listener| !self.controller_names.contains(&listener.name)).collect();
        let key = "advertised.listeners";
        if brokers.is_empty() {
            errors
                .push(ConfigError::missing(key, "at least one that is not among controller.listener.names"));
            return;
        }
        let own = self.names();
        if let Some(listener) = brokers.iter().find(|listener| !own.contains(listener.name.as_str())) {
            errors.push(ConfigError::value(key, &listener.name, "listeners has no such name"));
        }
        let Some(between) = between else { return };
        if !brokers.iter().any(|listener| listener.name == between) {
            let names: Vec<&str> = brokers.iter().map(|listener| listener.name.as_str()).collect();
            let wanted =
                format!("advertised.listeners has no such broker listener, only {}", names.join(", "));
            errors.push(ConfigError::value("inter.broker.listener.name", &between, wanted));
        }
    }

    /// Others are told of no address that stands for all of a machine's.
    fn check_routable(&self, keys: Keys<'_>, roles: Roles, errors: &mut Vec<ConfigError>) {
        let told: Vec<&Listener> = match keys.get("advertised.listeners") {
            Some(_) => self.advertised.iter().collect(),
            None if !roles.broker => Vec::new(),
            None => self.listeners.iter().filter(|l| !self.controller_names.contains(&l.name)).collect(),
        };
        if told.iter().any(|listener| listener.host.as_deref() == Some(ANY)) {
            let wanted = "nobody can reach that address: give one that others can";
            errors.push(ConfigError::value("advertised.listeners", ANY, wanted));
        }
    }

    fn check_early_start(&self, keys: Keys<'_>, errors: &mut Vec<ConfigError>) {
        let key = "early.start.listeners";
        let names = self.names();
        for name in keys.get(key).map(items).unwrap_or_default() {
            if !names.contains(name.to_uppercase().as_str()) {
                errors.push(ConfigError::value(key, name, "listeners has no such name"));
            }
        }
    }

    /// Where this controller is reached, as others are told: by the listener that `controller.listener.names` has first.
    pub(super) fn controller(&self) -> Option<&Listener> {
        let first = self.controller_names.first()?.to_uppercase();
        let named = |listener: &&Listener| listener.name == first;
        self.advertised.iter().find(named).or_else(|| self.listeners.iter().find(named))
    }
}

/// The name of the listener that brokers reach each other by, and how it is secured.
fn between_brokers(
    keys: Keys<'_>,
    protocols: &BTreeMap<String, String>,
    errors: &mut Vec<ConfigError>,
) -> Option<(String, String)> {
    let key = "inter.broker.listener.name";
    let protocol = keys.get("security.inter.broker.protocol");
    let Some(name) = keys.get(key) else {
        // the protocol by itself is meant, whatever the map says of a listener of that name
        let protocol = protocol.unwrap_or(PROTOCOLS[0]).to_owned();
        return Some((protocol.clone(), protocol));
    };
    let name = name.to_uppercase();
    if protocol.is_some() {
        let wanted = "security.inter.broker.protocol is set as well: set only one of the two";
        errors.push(ConfigError::value(key, &name, wanted));
    } else if let Some(protocol) = protocols.get(&name).filter(|_| !name.is_empty()) {
        return Some((name, protocol.clone()));
    } else {
        errors.push(ConfigError::value(key, &name, "listener.security.protocol.map has no such name"));
    }
    None
}

/// The mechanism that brokers use between each other must be one that they let in.
fn check_mechanism(keys: Keys<'_>, protocol: Option<&str>, errors: &mut Vec<ConfigError>) {
    const DEFAULT: &str = "GSSAPI";
    let key = "sasl.mechanism.inter.broker.protocol";
    let mechanism = keys.get(key).unwrap_or(DEFAULT);
    let enabled = items(keys.get("sasl.enabled.mechanisms").unwrap_or(DEFAULT));
    if protocol.is_some_and(|protocol| protocol.starts_with("SASL")) && !enabled.contains(&mechanism) {
        errors.push(ConfigError::value(
            key,
            mechanism,
            "sasl.enabled.mechanisms does not have it: add it there",
        ));
    }
}

fn endpoints(
    key: &'static str,
    text: &str,
    protocols: &BTreeMap<String, String>,
    errors: &mut Vec<ConfigError>,
) -> Vec<Listener> {
    let mut listeners: Vec<Listener> = Vec::new();
    for item in items(text) {
        let Some(listener) = endpoint(item) else {
            errors.push(ConfigError::value(key, item, "each is NAME://host:port"));
            continue;
        };
        if !protocols.contains_key(&listener.name) {
            let wanted = "listener.security.protocol.map does not say how it is secured: add it there";
            errors.push(ConfigError::value(key, &listener.name, wanted));
        }
        if listeners.iter().any(|other| other.name == listener.name) {
            errors.push(ConfigError::value(key, &listener.name, "each listener has a name of its own"));
        }
        listeners.push(listener);
    }
    listeners
}

fn endpoint(text: &str) -> Option<Listener> {
    let (name, rest) = text.rsplit_once("://")?;
    let (host, port) = rest.rsplit_once(':')?;
    let host = host.strip_prefix('[').unwrap_or(host);
    let host = host.strip_suffix(']').unwrap_or(host);
    let well_formed = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-%._:".contains(&byte));
    let digits = port.strip_prefix('-').unwrap_or(port);
    if !well_formed || digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(Listener {
        name: name.to_uppercase(),
        host: Some(host.to_owned()).filter(|host| !host.is_empty()),
        port: port.parse().ok()?,
    })
}

/// Two listeners share a port only if one is on IPv4 and the other on IPv6.
fn check_ports(listeners: &[Listener], errors: &mut Vec<ConfigError>) {
    let mut by_port: BTreeMap<i32, Vec<Option<IpAddr>>> = BTreeMap::new();
    for listener in listeners.iter().filter(|listener| listener.port != 0) {
        let address = listener.host.as_deref().and_then(|host| host.parse().ok());
        by_port.entry(listener.port).or_default().push(address);
    }
    for (port, addresses) in by_port {
        let apart = match &addresses[..] {
            [_] => true,
            [Some(one), Some(other)] => one.is_ipv4() != other.is_ipv4(),
            _ => false,
        };
        if !apart {
            let wanted =
                "each listener has a port of its own, but for one on an IPv4 and one on an IPv6 address";
            errors.push(ConfigError::value("listeners", &port.to_string(), wanted));
        }
    }
}
