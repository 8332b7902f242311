//! What is on the disk, in a form in which two runs can be compared: random ids by the order in which they come up, times
//! left out. Reads checkpoints by itself and not by the code under test.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use bytes::{Buf as _, Bytes};
use kafka_protocol::messages::snapshot_header_record::SnapshotHeaderRecord;
use kafka_protocol::messages::voters_record::VotersRecord;
use kafka_protocol::protocol::Decodable as _;
use kafka_protocol::records::RecordBatchDecoder;

/// Each path with what is there.
pub type Contents = BTreeMap<String, String>;

const SNAPSHOT_HEADER: i16 = 3;
const KRAFT_VOTERS: i16 = 6;
const USER_SCRAM_CREDENTIAL: u8 = 11;
/// The salt that the cases give, as bytes.
const GIVEN_SALT: &[u8] = b"7q";

/// Directory ids, by the order in which they come up.
#[derive(Default)]
struct Ids(Vec<String>);

impl Ids {
    /// A name for an id that is the same wherever the id is, and no id's of another run.
    fn name(&mut self, id: &str) -> String {
        let at = self.0.iter().position(|known| known == id).unwrap_or_else(|| {
            self.0.push(id.to_owned());
            self.0.len() - 1
        });
        format!("<id {at}>")
    }
}

/// Everything below a folder but the configuration.
pub fn contents(folder: &Path) -> Contents {
    let mut contents = Contents::new();
    let mut paths = Vec::new();
    walk(folder, &mut paths);
    paths.sort();
    let mut ids = Ids::default();
    for path in paths {
        let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
        if ["server.properties", "arguments"].contains(&name.as_str()) {
            continue;
        }
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
        let content = if path.is_dir() {
            "folder".to_owned()
        } else {
            let bytes = fs::read(&path).unwrap();
            match name.rsplit('/').next().unwrap() {
                "meta.properties" => meta(&String::from_utf8(bytes).unwrap(), &mut ids),
                file if file.ends_with(".checkpoint") => checkpoint(bytes.into(), &mut ids),
                _ => format!("{bytes:?}"),
            }
        };
        contents.insert(name, format!("{mode:o} {content}"));
    }
    contents
}

fn walk(folder: &Path, paths: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        paths.push(path.clone());
        if path.is_dir() {
            walk(&path, paths);
        }
    }
}

/// The lines in their order; of the time only that one is there.
fn meta(text: &str, ids: &mut Ids) -> String {
    let line = |line: &str| match line.split_once('=') {
        Some(("directory.id", id)) => format!("directory.id={}", ids.name(id)),
        None if line.len() > 1 => format!("#time of {} words", line.split_whitespace().count()),
        _ => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("|")
}

fn checkpoint(bytes: Bytes, ids: &mut Ids) -> String {
    let mut told = String::new();
    let mut rest = bytes;
    while rest.has_remaining() {
        told += &header(&rest);
        let set = RecordBatchDecoder::decode(&mut rest).expect("a batch");
        let first = set.records[0].timestamp;
        for record in set.records {
            assert_eq!(record.timestamp, first, "one time in a batch");
            let key = record.key.map(|key| hex(&key));
            let value = value(record.control, key.as_deref(), record.value.unwrap(), ids);
            told +=
                &format!("\n  {} key {key:?} headers {} value {value}", record.offset, record.headers.len());
        }
        told.push('\n');
    }
    told
}

/// A batch's own fields but for its length, which follows from the rest, checksum and times.
fn header(batch: &Bytes) -> String {
    let mut batch = batch.clone();
    let (offset, _length) = (batch.get_i64(), batch.get_i32());
    let (epoch, magic, _checksum) = (batch.get_i32(), batch.get_i8(), batch.get_u32());
    let (attributes, last) = (batch.get_i16(), batch.get_i32());
    let times = [moment(batch.get_i64()), moment(batch.get_i64())];
    let producer = (batch.get_i64(), batch.get_i16(), batch.get_i32());
    format!(
        "batch at {offset} epoch {epoch} magic {magic} attributes {attributes:#x} last {last} times {times:?} producer {producer:?}"
    )
}

/// A time that is of this run, or the number that stands for none.
fn moment(time: i64) -> String {
    if time > 1_700_000_000_000 { "now".to_owned() } else { time.to_string() }
}

fn value(control: bool, key: Option<&str>, value: Bytes, ids: &mut Ids) -> String {
    if control {
        let kind = i16::from_str_radix(&key.unwrap()[4..], 16).unwrap();
        let mut rest = value.clone();
        return match kind {
            SNAPSHOT_HEADER => {
                let header = SnapshotHeaderRecord::decode(&mut rest, 0).unwrap();
                let time = moment(header.last_contained_log_timestamp);
                format!("header of version {}, {} bytes, {time}", header.version, value.len())
            }
            KRAFT_VOTERS => {
                let mut record = VotersRecord::decode(&mut rest, 0).unwrap();
                let mut told = String::new();
                for voter in &mut record.voters {
                    let id = std::mem::take(&mut voter.voter_directory_id);
                    told += &format!("{} ", ids.name(&base64_of(id.as_bytes())));
                }
                format!("{told}{record:?}")
            }
            _ => hex(&value),
        };
    }
    if value[1] == USER_SCRAM_CREDENTIAL { user(value) } else { hex(&value) }
}

/// A user; of one that got a salt of its own, not that and what follows from it.
fn user(value: Bytes) -> String {
    fn take(value: &mut Bytes) -> Bytes {
        let length = usize::from(value.get_u8()) - 1;
        value.split_to(length)
    }
    let mut rest = value.slice(3..);
    let (name, mechanism) = (take(&mut rest), rest.get_i8());
    let (salt, stored_key, server_key) = (take(&mut rest), take(&mut rest), take(&mut rest));
    if salt == GIVEN_SALT {
        return hex(&value);
    }
    assert!(salt.len() > 20, "{salt:?}");
    let rest = hex(&rest);
    format!("user {name:?} {mechanism} keys of {} and {} rest {rest}", stored_key.len(), server_key.len())
}

fn base64_of(bytes: &[u8; 16]) -> String {
    kafka_features_operator::storage::Uuid::from(*bytes).to_string()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
