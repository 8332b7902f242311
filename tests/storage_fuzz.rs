//! Whatever stands in a file or an argument, what reads it neither panics nor believes a size. Random bytes, and corpora of
//! real inputs that are cut, doubled, swapped and altered; checkpoints also with their checksums put right again, so that
//! what is behind them is reached.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use bytes::Bytes;
use kafka_features_operator::features::{FeatureName, Level};
use kafka_features_operator::storage::checkpoint::{self, Checkpoint};
use kafka_features_operator::storage::config::ServerConfig;
use kafka_features_operator::storage::levels::{self, LevelsWanted};
use kafka_features_operator::storage::meta_properties::MetaProperties;
use kafka_features_operator::storage::metadata_record::MetadataRecord;
use kafka_features_operator::storage::properties::Properties;
use kafka_features_operator::storage::software::Software;
use kafka_features_operator::storage::{scram, voters};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use secrecy::SecretString;

/// One change to a text.
#[derive(Clone, Debug)]
enum Change {
    Set(Index, u8),
    Cut(Index, Index),
    Double(Index, Index),
    Insert(Index, Vec<u8>),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Change::Set(at, byte)),
        1 => (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Change::Cut(from, to)),
        1 => (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Change::Double(from, to)),
        2 => (any::<Index>(), vec(any::<u8>(), 1..9)).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
    ]
}

fn apply(mut text: Vec<u8>, changes: &[Change]) -> Vec<u8> {
    for change in changes {
        let length = text.len() + 1;
        let range = |one: &Index, other: &Index| {
            let (one, other) = (one.index(length), other.index(length));
            one.min(other)..one.max(other)
        };
        match change {
            Change::Set(at, byte) => {
                if let Some(place) = text.get_mut(at.index(length)) {
                    *place = *byte;
                }
            }
            Change::Cut(from, to) => drop(text.drain(range(from, to))),
            Change::Double(from, to) => {
                let range = range(from, to);
                let copy = text[range.clone()].to_vec();
                text.splice(range.end..range.end, copy);
            }
            Change::Insert(at, bytes) => {
                let at = at.index(length);
                text.splice(at..at, bytes.clone());
            }
        }
    }
    text
}

/// Random bytes, or one of a corpus with changes.
fn like(corpus: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    let changed = (proptest::sample::select(corpus), vec(change(), 0..6))
        .prop_map(|(text, changes)| apply(text.as_bytes().to_vec(), &changes));
    prop_oneof![1 => vec(any::<u8>(), 0..200), 4 => changed]
}

fn text_like(corpus: &'static [&'static str]) -> impl Strategy<Value = String> {
    like(corpus).prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

const CONFIGURATIONS: &[&str] = &[
    "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\nlog.dirs=/a,/b\n\
     listeners=PLAINTEXT://localhost:9092,CONTROLLER://[::1]:9093\ncontroller.quorum.bootstrap.servers=localhost:9093\n",
    "process.roles: controller\nnode.id 1\ncontroller.listener.names=C\\u004fNTROLLER\nlog.dir=\\\n   /a\n\
     listeners=CONTROLLER://:9093\ncontroller.quorum.voters=1@localhost:9093,2@h:1\nlog.retention.hours=5\n",
    "listener.security.protocol.map=A:PLAINTEXT,B:SSL\nadvertised.listeners=A://h:1\ninter.broker.listener.name=A\n\
     log.cleaner.threads=2\nmax.connections.per.ip.overrides=h:5\ncordoned.log.dirs=*\n",
];

const META: &[&str] = &[
    "#\n#Mon Nov 30 00:00:00 UTC 2026\nnode.id=1\ndirectory.id=JEXY6aqzQY-32P5TStzaFg\nversion=1\ncluster.id=x\n",
    "version=2\nnode.id=1\n",
    "version=0\nbroker.id=1\n",
];

const VOTERS: &[&str] = &[
    "1@localhost:9093:JEXY6aqzQY-32P5TStzaFg,2@[fd00::1]:1:MvDxzVmcRsaTz33bUuRU6A",
    "3@:0:AAAAAAAAAAAAAAAAAAAAAA",
];

const USERS: &[&str] = &[
    r#"SCRAM-SHA-256=[name=alice,salt="N3E=",iterations=4096,password=alice]"#,
    r#"SCRAM-SHA-512=[name=alice,salt="N3E=",saltedpassword="YCE="]"#,
];

const FEATURES: &[&str] = &["group.version=1", "metadata.version=33", " kraft.version = +1 ", "x=-32768"];

/// A real checkpoint.
fn real_checkpoint(voters: bool, records: usize) -> Bytes {
    let level = |number: usize| MetadataRecord::FeatureLevel {
        feature: FeatureName::new(format!("feature.{number}")).unwrap(),
        level: Level(i16::try_from(number).unwrap()),
    };
    let checkpoint = Checkpoint {
        kraft_version: Some(1),
        voters: voters.then(|| ("CONTROLLER".to_owned(), voters::parse(VOTERS[0]).unwrap())),
        records: (0..records).map(level).collect(),
        timed: true,
    };
    checkpoint.encode(1_700_000_000_000).unwrap()
}

/// Puts the checksum of the first batch right, if it is long enough to have one.
fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.len() > 21 {
        let length = u32::from_be_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]) as usize;
        let end = (12 + length).clamp(21, bytes.len());
        let checksum = crc32c::crc32c(&bytes[21..end]);
        bytes[17..21].copy_from_slice(&checksum.to_be_bytes());
    }
    bytes
}

fn cases() -> ProptestConfig {
    let cases = if std::env::var_os("KAFKA_FEATURES_FULL").is_some() { 50_000 } else { 2_000 };
    ProptestConfig { cases, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn configurations(file in like(CONFIGURATIONS)) {
        if let Ok(properties) = Properties::parse(&file)
            && let Ok(config) = ServerConfig::read(&properties)
        {
            let _ = config.controller_endpoint();
            prop_assert!(config.roles.broker || config.roles.controller);
            prop_assert!(!config.log_dirs.is_empty());
        }
    }

    #[test]
    fn meta_properties_are_read_as_they_are_written(file in like(META)) {
        if let Ok(meta) = MetaProperties::parse(&file) {
            // what is older than node ids is never written
            if meta.version > 0 {
                let written = meta.encode(&jiff::Zoned::default());
                prop_assert_eq!(MetaProperties::parse_text(&written), Ok(meta));
            }
        }
    }

    #[test]
    fn checkpoints(
        has_voters in any::<bool>(),
        records in 0..4_usize,
        changes in vec(change(), 0..6),
        right in any::<bool>(),
    ) {
        let bytes = apply(real_checkpoint(has_voters, records).to_vec(), &changes);
        let bytes = if right { with_checksum(bytes) } else { bytes };
        if let Ok(read) = checkpoint::read(&bytes.clone().into()) {
            // nothing is seen that can't have been there
            prop_assert!(read.records <= bytes.len() && read.voters.len() <= bytes.len());
        }
    }

    #[test]
    fn voters_are_told_apart(text in text_like(VOTERS)) {
        if let Ok(read) = voters::parse(&text) {
            prop_assert!(!read.is_empty() && read.iter().all(|(id, voter)| *id == voter.node_id && *id >= 0));
        }
    }

    #[test]
    fn users(text in text_like(USERS)) {
        // hashing is what takes the time: only what would be refused is of interest here, and little else
        prop_assume!(!text.contains("iterations=16"));
        if let Ok(user) = scram::parse(&SecretString::from(text)) {
            prop_assert!((4096..=16384).contains(&user.iterations));
            prop_assert_eq!(user.stored_key.len(), user.server_key.len());
        }
    }

    #[test]
    fn features(
        features in vec(text_like(FEATURES), 0..4),
        release in proptest::option::of(text_like(&["4.4", "4.3-IV0", "3.9.1"])),
        dynamic_quorum in any::<bool>(),
        unstable in any::<bool>(),
        software in proptest::sample::select(vec!["3.7", "4.0", "4.3", "4.4"]),
    ) {
        let software = Software::of(software).unwrap();
        let wanted = LevelsWanted { release: release.as_deref(), features: &features, dynamic_quorum, unstable };
        match levels::resolve(&software, &wanted) {
            Ok(levels) => {
                for (feature, level) in &levels.others {
                    let range = software.supports(feature).unwrap();
                    prop_assert!(range.min <= *level && *level <= range.max);
                }
            }
            Err(wrong) => prop_assert!(!wrong.is_empty()),
        }
    }

    #[test]
    fn software_versions(text in text_like(&["4.4.0", "3.9", "kip-1262-draft"])) {
        if let Ok(software) = Software::of(&text) {
            prop_assert!(text.starts_with(software.release));
        }
    }
}
