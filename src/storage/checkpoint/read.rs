//! Reads a checkpoint file for people: which of the states that a controller can start from it stands for. A file on a
//! disk can hold anything, so no number in it is believed before that many bytes are seen to follow.

use std::collections::BTreeMap;

use bytes::{Buf as _, Bytes, TryGetError};

use super::{KRAFT_VERSION, KRAFT_VOTERS, SNAPSHOT_FOOTER, SNAPSHOT_HEADER};
use crate::features::Level;
use crate::storage::Uuid;
use crate::storage::metadata_record::ReadRecord;
use crate::storage::wire::{Malformed, take, take_signed, take_text, take_unsigned};

/// What a checkpoint holds, as far as it is looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadCheckpoint {
    /// The kraft.version, if it says one.
    pub kraft_version: Option<i16>,
    /// The voters, with their directories.
    pub voters: Vec<(i32, Uuid)>,
    /// The finalized levels.
    pub levels: BTreeMap<String, Level>,
    /// How many metadata records there are, those of levels included.
    pub records: usize,
}

/// A file that is no whole checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidCheckpoint(String);

impl From<TryGetError> for InvalidCheckpoint {
    fn from(_: TryGetError) -> Self {
        Malformed::CutOff.into()
    }
}

impl From<Malformed> for InvalidCheckpoint {
    fn from(malformed: Malformed) -> Self {
        Self(malformed.to_string())
    }
}

type Result<T> = std::result::Result<T, InvalidCheckpoint>;

fn invalid<T>(why: &str) -> Result<T> {
    Err(InvalidCheckpoint(why.to_owned()))
}

/// Reads a checkpoint.
///
/// # Errors
/// If the bytes are no whole checkpoint: a batch is cut off or altered, or header or footer is missing.
pub fn read(bytes: &Bytes) -> Result<ReadCheckpoint> {
    let mut rest = bytes.clone();
    let mut checkpoint = ReadCheckpoint::default();
    let (mut begun, mut ended) = (false, false);
    while rest.has_remaining() {
        let batch = take_batch(&mut rest)?;
        for record in records(batch.records, batch.count)? {
            if ended {
                return invalid("something follows its footer");
            }
            if !batch.control {
                checkpoint.records += 1;
                take_level(&mut checkpoint, &record.value)?;
                continue;
            }
            let mut key = record.key;
            let (_version, kind) = (key.try_get_i16()?, key.try_get_i16()?);
            match kind {
                SNAPSHOT_HEADER => begun = true,
                SNAPSHOT_FOOTER => ended = true,
                KRAFT_VERSION => {
                    let mut value = record.value;
                    let _version = value.try_get_i16()?;
                    checkpoint.kraft_version = Some(value.try_get_i16()?);
                }
                KRAFT_VOTERS => checkpoint.voters = voters(record.value)?,
                _ => {}
            }
            if !begun {
                return invalid("it does not begin with a header");
            }
        }
    }
    if ended { Ok(checkpoint) } else { invalid("it has no footer") }
}

fn take_level(checkpoint: &mut ReadCheckpoint, value: &Bytes) -> Result<()> {
    match ReadRecord::read(value) {
        Some(ReadRecord::FeatureLevel { feature, level }) => {
            checkpoint.levels.insert(feature, level);
            Ok(())
        }
        Some(ReadRecord::Other) => Ok(()),
        None => invalid("it holds something that is no metadata record"),
    }
}

struct Batch {
    control: bool,
    count: i32,
    records: Bytes,
}

/// The attribute bits that say how records are compressed.
const COMPRESSION: i16 = 0b111;
/// The attribute bit of control records.
const CONTROL: i16 = 1 << 5;

fn take_batch(rest: &mut Bytes) -> Result<Batch> {
    let _base_offset = rest.try_get_i64()?;
    let Ok(length) = u64::try_from(rest.try_get_i32()?) else {
        return invalid("a batch has a negative length");
    };
    let mut batch = take(rest, length)?;
    let _leader_epoch = batch.try_get_i32()?;
    if batch.try_get_i8()? != 2 {
        return invalid("a batch is not of version 2");
    }
    if batch.try_get_u32()? != crc32c::crc32c(&batch) {
        return invalid("a batch was altered: its checksum is wrong");
    }
    let attributes = batch.try_get_i16()?;
    if attributes & COMPRESSION != 0 {
        return invalid("a batch is compressed, which Kafka does not do to checkpoints");
    }
    // last offset, two times, producer id, producer epoch, sequence
    take(&mut batch, 4 + 8 + 8 + 8 + 2 + 4)?;
    let count = batch.try_get_i32()?;
    Ok(Batch { control: attributes & CONTROL != 0, count, records: batch })
}

struct KeyAndValue {
    key: Bytes,
    value: Bytes,
}

fn records(mut batch: Bytes, count: i32) -> Result<Vec<KeyAndValue>> {
    let mut records = Vec::new();
    for _ in 0..count {
        let length = take_signed(&mut batch)?;
        let Ok(length) = u64::try_from(length) else { return invalid("a record has a negative length") };
        let mut record = take(&mut batch, length)?;
        let _attributes = record.try_get_i8()?;
        let (_time, _offset) = (take_signed(&mut record)?, take_signed(&mut record)?);
        let key = take_nullable(&mut record)?;
        let value = take_nullable(&mut record)?;
        records.push(KeyAndValue { key, value });
    }
    if batch.has_remaining() { invalid("a batch holds more than its records") } else { Ok(records) }
}

fn voters(mut value: Bytes) -> Result<Vec<(i32, Uuid)>> {
    let _version = value.try_get_i16()?;
    let mut voters = Vec::new();
    for _ in 1..take_unsigned(&mut value)? {
        let id = value.try_get_i32()?;
        voters.push((id, Uuid::from(value.try_get_u128()?.to_be_bytes())));
        for _ in 1..take_unsigned(&mut value)? {
            let (_name, _host) = (take_text(&mut value)?, take_text(&mut value)?);
            let _port = value.try_get_u16()?;
            skip_tags(&mut value)?;
        }
        let (_min, _max) = (value.try_get_i16()?, value.try_get_i16()?);
        skip_tags(&mut value)?;
        skip_tags(&mut value)?;
    }
    Ok(voters)
}

fn skip_tags(rest: &mut Bytes) -> Result<()> {
    for _ in 0..take_unsigned(rest)? {
        let _tag = take_unsigned(rest)?;
        let length = take_unsigned(rest)?;
        take(rest, length)?;
    }
    Ok(())
}

/// Bytes after their length; none where the length is negative.
fn take_nullable(rest: &mut Bytes) -> Result<Bytes> {
    match u64::try_from(take_signed(rest)?) {
        Ok(length) => Ok(take(rest, length)?),
        Err(_) => Ok(Bytes::new()),
    }
}
