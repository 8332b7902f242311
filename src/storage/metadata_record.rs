//! The few metadata records that a new cluster begins with, as bytes. The wire library knows none of them, so the frame
//! around them and their fields are written here; what a record means is not known here.

use super::scram::Credential;
use super::wire::{put_compact, put_unsigned, take_text, take_unsigned};
use crate::features::{FeatureName, Level};
use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

/// The frame around every record of the metadata log: version 1, the record's type, its version.
const FRAME: u32 = 1;
const USER_SCRAM_CREDENTIAL: u32 = 11;
const FEATURE_LEVEL: u32 = 12;

/// A record of the metadata log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetadataRecord {
    /// A feature's finalized level.
    FeatureLevel {
        /// The feature.
        feature: FeatureName,
        /// Its level.
        level: Level,
    },
    /// A SCRAM user.
    ScramCredential(Credential),
    /// The cluster's id, as KIP-1262 drafts it. No released Kafka knows it.
    ClusterId {
        /// The key that the record has in the software that it is written for.
        key: u32,
        /// The cluster's id.
        id: String,
    },
}

/// What a record of the metadata log is, as far as it is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadRecord {
    /// A feature's finalized level.
    FeatureLevel {
        /// The feature, as written.
        feature: String,
        /// Its level.
        level: Level,
    },
    /// A record of another type.
    Other,
}

impl MetadataRecord {
    /// The record as the log holds it.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        match self {
            Self::FeatureLevel { feature, level } => {
                put_frame(&mut out, FEATURE_LEVEL);
                put_compact(&mut out, feature.as_str().as_bytes());
                out.put_i16(level.0);
            }
            Self::ScramCredential(credential) => {
                put_frame(&mut out, USER_SCRAM_CREDENTIAL);
                put_compact(&mut out, credential.user.as_bytes());
                out.put_i8(credential.mechanism.number());
                put_compact(&mut out, &credential.salt);
                put_compact(&mut out, &credential.stored_key);
                put_compact(&mut out, &credential.server_key);
                out.put_i32(credential.iterations);
            }
            Self::ClusterId { key, id } => {
                put_frame(&mut out, *key);
                put_compact(&mut out, id.as_bytes());
            }
        }
        put_unsigned(&mut out, 0); // no tagged fields
        out.freeze()
    }
}

fn put_frame(out: &mut BytesMut, kind: u32) {
    put_unsigned(out, FRAME.into());
    put_unsigned(out, kind.into());
    put_unsigned(out, 0); // the record's version
}

impl ReadRecord {
    /// Reads a record of the metadata log; `None` if it is none.
    #[must_use]
    pub fn read(value: &Bytes) -> Option<Self> {
        let mut value = value.clone();
        let (frame, kind) = (take_unsigned(&mut value).ok()?, take_unsigned(&mut value).ok()?);
        let version = take_unsigned(&mut value).ok()?;
        if frame != u64::from(FRAME) {
            return None;
        }
        if (kind, version) != (u64::from(FEATURE_LEVEL), 0) {
            return Some(Self::Other);
        }
        let feature = take_text(&mut value).ok()?;
        let level = value.try_get_i16().ok()?;
        Some(Self::FeatureLevel { feature, level: Level(level) })
    }
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::*;

    fn hex(bytes: &Bytes) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn a_feature_level_is_written_as_kafka_was_seen_to_and_read_again() {
        let feature = FeatureName::new("group.version").unwrap();
        let encoded = MetadataRecord::FeatureLevel { feature, level: Level(1) }.encode();
        assert_eq!(hex(&encoded), "010c000e67726f75702e76657273696f6e000100");
        let expected = ReadRecord::FeatureLevel { feature: "group.version".into(), level: Level(1) };
        assert_eq!(ReadRecord::read(&encoded), Some(expected));
        for end in 0..encoded.len() - 1 {
            assert_eq!(ReadRecord::read(&encoded.slice(..end)), None);
        }
    }

    #[test]
    fn a_user_is_written_field_by_field() {
        let text = r#"SCRAM-SHA-512=[name=alice,salt="N3E=",saltedpassword="YCE="]"#;
        let user = super::super::scram::parse(&SecretString::from(text)).unwrap();
        let encoded = MetadataRecord::ScramCredential(user).encode();
        let hex = hex(&encoded);
        assert!(hex.starts_with("010b0006616c6963650203377141"), "{hex}");
        assert!(hex.ends_with("0000100000"), "{hex}");
        assert_eq!(ReadRecord::read(&encoded), Some(ReadRecord::Other));
    }

    #[test]
    fn the_draft_of_a_cluster_id_has_one_field() {
        let record = MetadataRecord::ClusterId { key: 29, id: "abc".into() };
        assert_eq!(hex(&record.encode()), "011d000461626300");
    }
}
