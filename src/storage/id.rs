//! Kafka's 128-bit ids: of directories and, as they are made, of clusters. An id is random, or read from where it was
//! written; nothing is ever derived from a node's number, so that a replaced disk is another replica.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// The text form: 22 characters of base64 for URLs. Read as Java reads it, with or without padding.
const TEXT: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// The longest text that Kafka tries to read as an id.
const LONGEST: usize = 24;

/// An id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid([u8; 16]);

/// A text that is no id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no id: ids are 22 characters of URL-safe base64, such as `kafka-storage random-uuid` prints"
)]
pub struct InvalidUuid {
    text: String,
}

impl Uuid {
    /// A new random id. Its text has no dash, so that it is never taken for an option (KAFKA-20072 says at the beginning;
    /// a dash inside hurts scripts that split a list of voters).
    #[must_use]
    pub fn random() -> Self {
        loop {
            let mut bytes: [u8; 16] = rand::random();
            // a version 4 UUID, as Java makes it
            bytes[6] = bytes[6] & 0x0f | 0x40;
            bytes[8] = bytes[8] & 0x3f | 0x80;
            let id = Self(bytes);
            if !id.is_reserved() && !id.to_string().contains('-') {
                return id;
            }
        }
    }

    /// Whether Kafka keeps the id for a meaning of its own: the first hundred are no directory's.
    #[must_use]
    pub fn is_reserved(self) -> bool {
        u128::from_be_bytes(self.0) < 100
    }

    /// The bytes, as records hold them.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl From<[u8; 16]> for Uuid {
    fn from(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&TEXT.encode(self.0))
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Uuid {
    type Err = InvalidUuid;

    fn from_str(text: &str) -> Result<Self, InvalidUuid> {
        let invalid = || InvalidUuid { text: text.chars().take(64).collect() };
        if text.len() > LONGEST {
            return Err(invalid());
        }
        let bytes = TEXT.decode(text).map_err(|_| invalid())?;
        bytes.try_into().map(Self).map_err(|_| invalid())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_is_written() {
        for text in ["JEXY6aqzQY-32P5TStzaFg", "AAAAAAAAAAAAAAAAAAAAAQ", "-rmdB0m4T4--Y4thlNXk4Q"] {
            assert_eq!(text.parse::<Uuid>().unwrap().to_string(), text);
        }
        assert_eq!("JEXY6aqzQY-32P5TStzaFg==".parse(), "JEXY6aqzQY-32P5TStzaFg".parse::<Uuid>());
        // Java drops the bits that are left over
        assert_eq!("JEXY6aqzQY-32P5TStzaFh".parse(), "JEXY6aqzQY-32P5TStzaFg".parse::<Uuid>());
    }

    #[test]
    fn what_is_no_id_is_refused_with_the_text() {
        for text in [
            "",
            "abc",
            "JEXY6aqzQY+32P5TStzaFg",
            "JEXY6aqzQY-32P5TStzaFgAA",
            "JEXY6aqzQY-32P5TStzaFgAAAAA",
            "ä",
        ] {
            let error = text.parse::<Uuid>().unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")), "{error}");
        }
    }

    #[test]
    fn no_new_id_has_a_dash_or_is_reserved() {
        for _ in 0..100_000 {
            let id = Uuid::random();
            assert!(!id.to_string().contains('-') && !id.is_reserved(), "{id}");
        }
        assert!("AAAAAAAAAAAAAAAAAAAAAA".parse::<Uuid>().unwrap().is_reserved());
        assert!(Uuid::from(99u128.to_be_bytes()).is_reserved());
        assert!(!Uuid::from(100u128.to_be_bytes()).is_reserved());
    }
}
