//! Where a node can be reached: one host and one port, as an operator writes it or as a node advertises it.
//! Nothing here resolves or connects.

use std::fmt;
use std::str::FromStr;

/// The address of one listener of one node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    host: String,
    port: u16,
}

/// Why a text can't be an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the address {text:?} {fault}; write host:port, as in kafka-0.kafka:9092 or [fd00::1]:9092")]
pub struct InvalidAddress {
    text: String,
    fault: &'static str,
}

impl Address {
    /// An address as a node advertises it: the host stands alone, without brackets around an IPv6 address.
    pub(super) fn advertised(host: &str, port: i32) -> Result<Self, String> {
        match u16::try_from(port) {
            Ok(port) if port > 0 && is_host(host) => Ok(Self { host: host.to_owned(), port }),
            _ => Err(format!("it advertises an address that nothing can connect to, {host:?} port {port}")),
        }
    }

    /// Host and port, as the resolver takes them.
    pub(super) fn parts(&self) -> (&str, u16) {
        (&self.host, self.port)
    }
}

fn is_host(host: &str) -> bool {
    !host.is_empty()
        && host.len() <= 255
        && host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '%'))
}

impl FromStr for Address {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        let invalid = |fault| InvalidAddress { text: text.chars().take(300).collect(), fault };
        if text.contains("://") {
            return Err(invalid("names a protocol"));
        }
        if text.contains(',') {
            return Err(invalid("is more than one address"));
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(|| invalid("has no port"))?;
        let host = match host.strip_prefix('[').map(|rest| rest.strip_suffix(']')) {
            Some(Some(v6)) => v6,
            Some(None) => return Err(invalid("has an opening bracket only")),
            None if host.contains(':') => return Err(invalid("is an IPv6 address without brackets")),
            None => host,
        };
        if !is_host(host) {
            return Err(invalid("has no usable host name"));
        }
        match port.parse() {
            Ok(port) if port > 0 => Ok(Self { host: host.to_owned(), port }),
            _ => Err(invalid("has no usable port")),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_back_as_they_were_written() {
        for text in ["kafka-0.kafka:9092", "10.0.0.1:1", "[::1]:65535", "[fe80::1%eth0]:9092", "a_b:9092"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        assert_eq!(Address::advertised("::1", 9092).unwrap().to_string(), "[::1]:9092");
    }

    #[test]
    fn what_is_no_address_is_refused_with_the_text_and_the_form_to_write() {
        for text in [
            "",
            "kafka",
            "kafka:",
            "kafka:0",
            "kafka:65536",
            ":9092",
            "::1:9092",
            "[::1:9092",
            "a:1,b:2",
            "PLAINTEXT://kafka:9092",
            "ka fka:9092",
            "kafka:9092\n",
        ] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")) && error.contains("host:port"), "{error}");
        }
    }

    #[test]
    fn advertised_addresses_that_nothing_can_connect_to_are_refused() {
        for (host, port) in [("", 9092), ("kafka", 0), ("kafka", -1), ("kafka", 65536), ("a b", 1)] {
            assert!(Address::advertised(host, port).is_err(), "{host:?} {port}");
        }
    }
}
