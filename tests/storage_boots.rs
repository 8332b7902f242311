//! Real Kafka on directories that our `kafka-storage` formatted: it starts, and finalizes exactly the levels that were
//! asked for. Kafka's own log dump reads our checkpoints.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod testbed;

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use kafka_features_operator::features::catalog::Catalog;
use kafka_features_operator::storage::checkpoint::{BOOTSTRAP_CHECKPOINT, ZERO_CHECKPOINT};
use testbed::{Formatter, Kafka, NodeSpec, Oracle, Quorum};

const OURS: Formatter = Formatter::Ours(env!("CARGO_BIN_EXE_kafka-storage"));

/// The levels of a release, as Kafka's own tool shows them, but for `kraft.version`.
fn levels(release: &str, changed: &[(&str, i16)]) -> BTreeMap<String, String> {
    let catalog = Catalog::kafka();
    let version = catalog.release(release).unwrap();
    let defaults = catalog.defaults_at(version.level).into_iter();
    let mut levels: BTreeMap<String, String> =
        defaults.map(|(name, level)| (name.to_string(), level.to_string())).collect();
    levels.extend(changed.iter().map(|(name, level)| ((*name).to_owned(), level.to_string())));
    levels.insert("metadata.version".to_owned(), version.name.clone());
    levels
}

/// Formats and starts three controllers and a broker of a version, and compares what they finalize.
fn boots(version: &str, quorum: Quorum, release: &str, changed: &[(&str, i16)]) {
    let nodes = [
        NodeSpec::controller(1, version),
        NodeSpec::controller(2, version),
        NodeSpec::controller(3, version),
        NodeSpec::broker(4, version),
    ];
    let mut format = vec!["--release-version".to_owned(), release.to_owned()];
    for (feature, level) in changed {
        format.extend(["--feature".to_owned(), format!("{feature}={level}")]);
    }
    let format: Vec<&str> = format.iter().map(String::as_str).collect();
    let kafka = Kafka::prepare_with(OURS, &nodes, quorum, &format, &[]);
    let dumped = dump(&kafka, version);
    let kafka = kafka.started();
    let mut expected = levels(release, changed);
    let dynamic = quorum == Quorum::Dynamic;
    expected.insert("kraft.version".to_owned(), i32::from(dynamic).to_string());
    for (feature, level) in kafka.finalized() {
        let expected = expected.get(&feature).map_or("0", String::as_str);
        assert_eq!(level, expected, "{feature} of Kafka {version}, {quorum:?}");
    }
    assert!(dumped.contains("metadata.version"), "{dumped}");
    assert_eq!(dumped.contains("KRaftVoters"), dynamic, "{dumped}");
}

/// What Kafka's own tool reads in the checkpoints of a controller.
fn dump(kafka: &Kafka, version: &str) -> String {
    let files = [ZERO_CHECKPOINT, BOOTSTRAP_CHECKPOINT].map(|name| kafka.data(1).join(name));
    let there = files.iter().filter(|file| file.exists());
    let read = there.map(|file| {
        let args = ["--cluster-metadata-decoder", "--files", file.to_str().unwrap()];
        Oracle::of(version).run("kafka-dump-log", &args).ok()
    });
    read.collect()
}

/// Both kinds of quorum in the exhaustive run, one of them else.
fn quorums(version: &str, one: Quorum) -> Vec<(String, Quorum)> {
    let both = std::env::var_os("KAFKA_FEATURES_FULL").is_some();
    let quorums = if both { vec![Quorum::Static, Quorum::Dynamic] } else { vec![one] };
    quorums.into_iter().map(|quorum| (version.to_owned(), quorum)).collect()
}

#[test]
fn kafka_before_4_4_starts_on_its_layout() {
    for (version, quorum) in quorums("3.9.2", Quorum::Dynamic) {
        boots(&version, quorum, "3.9", &[]);
    }
    for (version, quorum) in quorums("4.0.2", Quorum::Static) {
        boots(&version, quorum, "4.0", &[("group.version", 0)]);
    }
    for (version, quorum) in quorums("4.1.2", Quorum::Dynamic) {
        boots(&version, quorum, "4.1-IV0", &[("transaction.version", 1)]);
    }
}

#[test]
fn kafka_4_2_and_later_starts_on_its_layout() {
    for (version, quorum) in quorums("4.2.2", Quorum::Static) {
        boots(&version, quorum, "4.2", &[]);
    }
    for (version, quorum) in quorums("4.3.1", Quorum::Dynamic) {
        boots(&version, quorum, "4.0", &[("share.version", 1)]);
    }
    for (version, quorum) in quorums("4.4.0", Quorum::Static) {
        boots(&version, quorum, "4.4", &[("streams.version", 0)]);
    }
}

#[test]
fn kafka_starts_on_what_a_killed_format_and_the_next_one_left() {
    let nodes = [NodeSpec::combined(1, "4.4.0")];
    for (call, time) in [("rename", 1), ("rename", 2), ("fsync", 3), ("write", 2)] {
        let kafka = Kafka::prepare_with(OURS, &nodes, Quorum::Dynamic, &["--release-version", "4.3"], &[]);
        fs::remove_dir_all(kafka.data(1)).unwrap();
        let tool = env!("CARGO_BIN_EXE_kafka-storage");
        let mut strace = Command::new("strace");
        strace.args([
            "-f",
            "-o",
            "/dev/null",
            "-e",
            &format!("inject={call}:signal=SIGKILL:when={time}"),
            tool,
        ]);
        let killed =
            strace.args(kafka.format_arguments(1)).output().expect("strace, which the set-up installs");
        assert!(killed.status.code().is_none(), "{call} {time}: {killed:?}");
        let again = Command::new(tool).args(kafka.format_arguments(1)).output().unwrap();
        assert!(again.status.success() || again.status.code() == Some(4), "{again:?}");
        let kafka = kafka.started();
        assert_eq!(kafka.finalized()["metadata.version"], "4.3-IV0", "{call} {time}");
    }
}

#[test]
fn a_standalone_controller_on_an_ipv6_address_starts() {
    // Kafka's own tool can't format it
    let nodes = [NodeSpec::combined(1, "4.4.0")];
    let kafka = Kafka::prepare_with(OURS, &nodes, Quorum::Dynamic, &[], &[]);
    fs::remove_dir_all(kafka.data(1)).unwrap();
    let mut arguments = kafka.format_arguments(1);
    let config = arguments.iter().position(|argument| argument == "--config").unwrap() + 1;
    let text = fs::read_to_string(&arguments[config]).unwrap();
    let initial = arguments.iter().position(|argument| argument == "--initial-controllers").unwrap();
    arguments.drain(initial..initial + 2);
    arguments.push("--standalone".to_owned());
    let control = kafka.controller(1);
    fs::write(&arguments[config], text.replace(&control, &control.replace("127.0.0.1", "[::1]"))).unwrap();
    let formatted = Command::new(env!("CARGO_BIN_EXE_kafka-storage")).args(&arguments).output().unwrap();
    assert!(formatted.status.success(), "{}", String::from_utf8_lossy(&formatted.stderr));
    let kafka = kafka.started();
    assert_eq!(kafka.finalized()["kraft.version"], "1");
}
