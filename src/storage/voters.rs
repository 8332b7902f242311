//! The voters of a dynamic quorum, as `--initial-controllers` names them (KIP-853). Says nothing about whether they can
//! be reached.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use super::Uuid;

/// One voter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Voter {
    /// Its node id.
    pub node_id: i32,
    /// The id of its metadata directory.
    pub directory_id: Uuid,
    /// Its host: a name, or an address. IPv6 addresses stand without brackets, in Java's long form.
    pub host: String,
    /// Its port.
    pub port: u16,
}

/// Why a list of voters can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidVoters {
    /// One of them is out of form.
    #[error("initial controller {voter:?}: {why}; each is id@host:port:directory-id")]
    Voter {
        /// The voter as given.
        voter: String,
        /// What is wrong with it.
        why: String,
    },
    /// Two of them have one id.
    #[error(
        "initial controllers: node id {0} was specified more than once; each controller has an id of its own"
    )]
    Duplicate(i32),
    /// There is none.
    #[error(
        "--initial-controllers names no voters; give them as id@host:port:directory-id, separated by commas"
    )]
    None,
}

/// Reads a list of voters, separated by commas; by node id.
///
/// # Errors
/// If one of them is out of form, two have one id, or there is none. As in Kafka, port 0, an empty host and any directory
/// id are taken.
pub fn parse(text: &str) -> Result<BTreeMap<i32, Voter>, InvalidVoters> {
    let mut voters = BTreeMap::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let voter = parse_voter(part)
            .map_err(|why| InvalidVoters::Voter { voter: part.chars().take(128).collect(), why })?;
        let id = voter.node_id;
        if voters.insert(id, voter).is_some() {
            return Err(InvalidVoters::Duplicate(id));
        }
    }
    if voters.is_empty() { Err(InvalidVoters::None) } else { Ok(voters) }
}

fn parse_voter(text: &str) -> Result<Voter, String> {
    let (id, rest) = text.split_once('@').ok_or("there is no @")?;
    let node_id = java_int(id).ok_or_else(|| format!("{id:?} is no node id"))?;
    if node_id < 0 {
        return Err(format!("node id {node_id} is negative"));
    }
    let (host, rest) = match rest.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or("there is a [ and no ]")?;
            (host, rest.strip_prefix(':').ok_or("no port follows the host")?)
        }
        None => rest.split_once(':').ok_or("there is no host, or no port follows it")?,
    };
    let (port, directory) = rest.split_once(':').ok_or("no directory id follows the port")?;
    let number = java_int(port).ok_or_else(|| format!("port {port:?} is no number"))?;
    let port = u16::try_from(number).map_err(|_| format!("port {number} is not from 0 to 65535"))?;
    let directory_id = directory.parse::<Uuid>().map_err(|error| format!("directory id {error}"))?;
    Ok(Voter { node_id, directory_id, host: host_in_records(host), port })
}

/// A host as Kafka writes it to records: through Java's socket addresses, which write IPv6 addresses in full.
pub fn host_in_records(host: &str) -> String {
    if host.is_empty() {
        return "localhost".to_owned();
    }
    match host.parse::<Ipv6Addr>() {
        Ok(address) => {
            let parts = address.segments().map(|part| format!("{part:x}"));
            parts.join(":")
        }
        Err(_) => host.to_owned(),
    }
}

/// A number as Java's `Integer.parseInt` reads it.
fn java_int(text: &str) -> Option<i32> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "JEXY6aqzQY-32P5TStzaFg";

    #[test]
    fn voters_are_read_by_id() {
        let text = format!(" 3@[::1]:9095:{ID}, ,1@host-1:9093:AAAAAAAAAAAAAAAAAAAAAA,2@:0:{ID},");
        let voters: Vec<(i32, String, u16)> =
            parse(&text).unwrap().into_values().map(|v| (v.node_id, v.host, v.port)).collect();
        let expected = [
            (1, "host-1".to_owned(), 9093),
            (2, "localhost".to_owned(), 0),
            (3, "0:0:0:0:0:0:0:1".to_owned(), 9095),
        ];
        assert_eq!(voters, expected);
    }

    #[test]
    fn what_is_out_of_form_is_refused_with_the_voter() {
        let wrong = [
            ("1localhost:9093:x", "no @"),
            ("x@localhost:9093:x", "\"x\" is no node id"),
            ("-1@localhost:9093:x", "-1 is negative"),
            ("1@", "no host"),
            ("1@localhost", "no port"),
            ("1@[::1:9093:x", "no ]"),
            ("1@[::1]9093:x", "no port"),
            ("1@localhost:9093", "no directory id"),
            ("1@localhost:p:x", "\"p\" is no number"),
            ("1@localhost:65536:x", "65536"),
            ("1@localhost:-1:x", "-1"),
            ("1@localhost:9093:", "\"\" is no id"),
            ("1@localhost:9093:short", "\"short\""),
        ];
        for (text, expected) in wrong {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains(&format!("{text:?}")), "{error}");
        }
        assert_eq!(parse(&format!("1@a:1:{ID},1@b:1:{ID}")), Err(InvalidVoters::Duplicate(1)));
        assert_eq!(parse(" , "), Err(InvalidVoters::None));
    }
}
