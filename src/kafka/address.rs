use std::fmt;

/// A host and port to connect to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// A text that is no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no address: it takes HOST:PORT, as in kafka-0.kafka:9092 or [::1]:9092")]
pub struct InvalidAddress(String);

impl Address {
    /// An address from a host, which may be an IPv6 address without brackets, and a port.
    pub(crate) fn new(host: &str, port: u16) -> Self {
        Self { host: host.to_owned(), port }
    }
}

impl std::str::FromStr for Address {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        let invalid = || InvalidAddress(text.chars().take(128).collect());
        let (host, port) = text.rsplit_once(':').ok_or_else(invalid)?;
        let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(invalid)?;
        let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        match bracketed {
            Some(v6) if v6.parse::<std::net::Ipv6Addr>().is_ok() => Ok(Self::new(v6, port)),
            None if !host.is_empty() && host.len() <= 255 && host.chars().all(bare) => {
                Ok(Self::new(host, port))
            }
            _ => Err(invalid()),
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
    fn names_and_addresses_of_both_families_are_read_and_written_alike() {
        for text in ["kafka-0.kafka:9092", "10.0.0.1:9092", "[::1]:9093", "under_score:1"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_address_is_refused_with_the_value() {
        for text in [
            "",
            "kafka",
            "kafka:",
            "kafka:0",
            "kafka:70000",
            "::1:9092",
            ":9092",
            "[kafka]:1",
            "a b:1",
            "PLAINTEXT://k:1",
        ] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")), "{error}");
        }
    }
}
