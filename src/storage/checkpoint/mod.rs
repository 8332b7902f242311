//! Checkpoint files of the metadata log: what a controller's directory begins with. A checkpoint is a header, maybe the
//! kind of quorum and its voters, maybe metadata records, and a footer, in record batches (KIP-630, KIP-853, KIP-1170).
//! Writes none to a disk.

mod read;

use std::collections::BTreeMap;

use bytes::{BufMut as _, Bytes, BytesMut};
use kafka_protocol::indexmap::IndexMap;
use kafka_protocol::messages::BrokerId;
use kafka_protocol::messages::snapshot_footer_record::SnapshotFooterRecord;
use kafka_protocol::messages::snapshot_header_record::SnapshotHeaderRecord;
use kafka_protocol::messages::voters_record::{
    Endpoint, KRaftVersionFeature, Voter as VoterRecord, VotersRecord,
};
use kafka_protocol::protocol::{Encodable, StrBytes};
use kafka_protocol::records::{
    Compression, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, Record, RecordBatchEncoder, RecordEncodeOptions,
    TimestampType,
};

use super::metadata_record::MetadataRecord;
use super::voters::Voter;

pub use read::{InvalidCheckpoint, ReadCheckpoint, read};

/// The checkpoint of the metadata log's very beginning (end offset 0, epoch 0), below the metadata directory.
pub const ZERO_CHECKPOINT: &str = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint";
/// The file that Kafka up to 4.3 has the first metadata records in.
pub const BOOTSTRAP_CHECKPOINT: &str = "bootstrap.checkpoint";

/// The types of control records.
const SNAPSHOT_HEADER: i16 = 3;
const SNAPSHOT_FOOTER: i16 = 4;
const KRAFT_VERSION: i16 = 5;
const KRAFT_VOTERS: i16 = 6;

/// The kraft.version levels that every controller which can be a dynamic voter supports.
const KRAFT_VERSIONS: (i16, i16) = (0, 1);

/// What a checkpoint is to hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// The kraft.version, where it is above 0.
    pub kraft_version: Option<i16>,
    /// The voters, and the name of the listener that they are reached by.
    pub voters: Option<(String, BTreeMap<i32, Voter>)>,
    /// The metadata records.
    pub records: Vec<MetadataRecord>,
    /// Whether its header says when it was made: a `bootstrap.checkpoint`'s says 0.
    pub timed: bool,
}

/// A checkpoint that can't be written, since a text in it is too long.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the checkpoint can't be put together: {0}")]
pub struct Unwritable(String);

impl Checkpoint {
    /// The file's bytes, `now` being the time in milliseconds since 1970.
    ///
    /// # Errors
    /// If a text is too long for its record.
    pub fn encode(&self, now: i64) -> Result<Bytes, Unwritable> {
        let header = SnapshotHeaderRecord::default().with_last_contained_log_timestamp(if self.timed {
            now
        } else {
            0
        });
        let mut control = vec![control_record(SNAPSHOT_HEADER, value(&header)?)];
        if let Some(version) = self.kraft_version {
            control.push(control_record(KRAFT_VERSION, kraft_version(version)));
        }
        if let Some((listener, voters)) = &self.voters {
            let voters = voters.values().map(|voter| voter_record(listener, voter)).collect();
            control.push(control_record(KRAFT_VOTERS, value(&VotersRecord::default().with_voters(voters))?));
        }
        let data = self.records.iter().map(|record| (None, record.encode())).collect();
        let footer = vec![control_record(SNAPSHOT_FOOTER, value(&SnapshotFooterRecord::default())?)];

        let mut out = BytesMut::new();
        let mut offset = 0;
        for (is_control, records) in [(true, control), (false, data), (true, footer)] {
            offset = put_batch(&mut out, is_control, records, offset, now)?;
        }
        Ok(out.freeze())
    }
}

type KeyAndValue = (Option<Bytes>, Bytes);

/// Adds a batch, if there is anything in it, and gives the offset that follows it.
fn put_batch(
    out: &mut BytesMut,
    control: bool,
    records: Vec<KeyAndValue>,
    first_offset: i64,
    now: i64,
) -> Result<i64, Unwritable> {
    let mut offset = first_offset;
    let mut batch = Vec::with_capacity(records.len());
    for (key, value) in records {
        // the encoder takes the batch's sequence number from the records': -1, none, for the first
        let sequence = i32::try_from(offset - first_offset).unwrap_or(i32::MAX) - 1;
        batch.push(Record {
            transactional: false,
            control,
            delete_horizon: false,
            partition_leader_epoch: 0,
            producer_id: NO_PRODUCER_ID,
            producer_epoch: NO_PRODUCER_EPOCH,
            timestamp_type: TimestampType::Creation,
            offset,
            sequence,
            timestamp: now,
            key,
            value: Some(value),
            headers: IndexMap::new(),
        });
        offset += 1;
    }
    let options = RecordEncodeOptions { version: 2, compression: Compression::None };
    RecordBatchEncoder::encode(out, &batch, &options).map_err(|error| Unwritable(error.to_string()))?;
    Ok(offset)
}

fn control_record(kind: i16, value: Bytes) -> KeyAndValue {
    let mut key = BytesMut::with_capacity(4);
    key.put_i16(0);
    key.put_i16(kind);
    (Some(key.freeze()), value)
}

fn value(record: &impl Encodable) -> Result<Bytes, Unwritable> {
    let mut out = BytesMut::new();
    record.encode(&mut out, 0).map_err(|error| Unwritable(error.to_string()))?;
    Ok(out.freeze())
}

/// A KRaftVersionRecord, which the wire library does not know: its own version, the level, no tagged fields.
fn kraft_version(level: i16) -> Bytes {
    let mut out = BytesMut::with_capacity(5);
    out.put_i16(0);
    out.put_i16(level);
    out.put_u8(0);
    out.freeze()
}

fn voter_record(listener: &str, voter: &Voter) -> VoterRecord {
    let text = |text: &str| StrBytes::from_string(text.to_owned());
    let endpoint =
        Endpoint::default().with_name(text(listener)).with_host(text(&voter.host)).with_port(voter.port);
    let supported = KRaftVersionFeature::default()
        .with_min_supported_version(KRAFT_VERSIONS.0)
        .with_max_supported_version(KRAFT_VERSIONS.1);
    VoterRecord::default()
        .with_voter_id(BrokerId(voter.node_id))
        .with_voter_directory_id(uuid::Uuid::from_bytes(*voter.directory_id.as_bytes()))
        .with_endpoints(vec![endpoint])
        .with_k_raft_version_feature(supported)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::{FeatureName, Level};
    use crate::storage::voters;

    const NOW: i64 = 1_700_000_000_000;

    fn checkpoint(kraft_version: Option<i16>, voters: bool) -> Checkpoint {
        let voters = voters.then(|| {
            ("CONTROLLER".to_owned(), voters::parse("1@localhost:9093:JEXY6aqzQY-32P5TStzaFg").unwrap())
        });
        // the defaults of 4.4
        let levels = [
            ("metadata.version", 33),
            ("eligible.leader.replicas.version", 1),
            ("group.version", 1),
            ("share.version", 2),
            ("streams.version", 1),
            ("transaction.version", 2),
        ];
        let record = |(feature, level)| MetadataRecord::FeatureLevel {
            feature: FeatureName::new(feature).unwrap(),
            level: Level(level),
        };
        Checkpoint { kraft_version, voters, records: levels.map(record).to_vec(), timed: true }
    }

    #[test]
    fn checkpoints_are_as_long_as_kafkas() {
        let length = |kraft_version, voters| checkpoint(kraft_version, voters).encode(NOW).unwrap().len();
        assert_eq!((length(None, false), length(Some(1), false), length(Some(1), true)), (411, 427, 494));
    }

    #[test]
    fn a_checkpoint_is_read_as_it_was_written() {
        let bytes = checkpoint(Some(1), true).encode(NOW).unwrap();
        let read = read(&bytes).unwrap();
        assert_eq!((read.kraft_version, read.voters.len()), (Some(1), 1));
        assert_eq!(read.voters[0].1.to_string(), "JEXY6aqzQY-32P5TStzaFg");
        assert_eq!((read.levels.len(), read.levels["metadata.version"], read.records), (6, Level(33), 6));
        let control_only = Checkpoint { records: Vec::new(), ..checkpoint(Some(1), true) };
        assert_eq!(super::read(&control_only.encode(NOW).unwrap()).unwrap().records, 0);
    }

    #[test]
    fn what_is_cut_off_or_altered_is_no_checkpoint() {
        let bytes = checkpoint(Some(1), true).encode(NOW).unwrap();
        for end in 0..bytes.len() {
            assert!(read(&bytes.slice(..end)).is_err(), "{end}");
        }
        for at in 0..bytes.len() {
            let mut altered = bytes.to_vec();
            altered[at] ^= 1;
            let altered = read(&altered.into());
            // where a batch says it begins is outside of its checksum
            assert!(
                altered.is_err()
                    || at < 8
                    || matches!(at, 166..174 | 419..427)
                    || matches!(at, 12..16 | 178..182 | 431..435),
                "{at}"
            );
        }
    }
}
