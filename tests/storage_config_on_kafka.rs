//! Configurations as we read them beside how Java and Kafka 4.4.0 read them: the same keys and values, and the same verdict
//! on whether Kafka would start with them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod testbed;

use std::collections::BTreeMap;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kafka_features_operator::storage::config::{ServerConfig, TABLE};
use kafka_features_operator::storage::environment;
use kafka_features_operator::storage::properties::Properties;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use testbed::{Oracle, parts};

const KAFKA: &str = "4.4.0";

/// The seed of this run's random cases.
fn random() -> StdRng {
    let seed = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    println!("seed {seed}");
    StdRng::seed_from_u64(seed)
}

/// So many cases, or ten times as many in the exhaustive run.
fn cases(number: usize) -> usize {
    if std::env::var_os("KAFKA_FEATURES_FULL").is_some() { number * 10 } else { number }
}

fn ask(what: &str, file: &[u8]) -> testbed::oracle::Answer {
    Oracle::of(KAFKA).run("configuration", &[what, &STANDARD.encode(file)])
}

#[test]
fn the_table_of_keys_is_kafkas_own() {
    let keys = Oracle::of(KAFKA).run("configuration", &["keys"]).ok();
    let (ours, kafkas): (Vec<&str>, Vec<&str>) = (TABLE.lines().collect(), keys.lines().collect());
    for (ours, kafkas) in ours.iter().zip(&kafkas) {
        assert_eq!(ours, kafkas, "src/storage/config/keys.tsv");
    }
    assert_eq!(ours.len(), kafkas.len());
}

/// Texts that random ones are made of.
const PIECES: [&[u8]; 34] = [
    b"key",
    b"a",
    b"=",
    b":",
    b" ",
    b"\t",
    b"\x0c",
    b"\n",
    b"\r",
    b"\r\n",
    b"\\",
    b"\\\\",
    b"\\\n",
    b"\\\r\n   ",
    b"#",
    b"!",
    b"\\u00e9",
    b"\\uD83D\\uDE00",
    b"\\u12",
    b"\\uzzzz",
    b"\\t",
    b"\\n",
    b"\\r",
    b"\\f",
    b"\\=",
    b"\\:",
    b"\\ ",
    b"\xfc",
    b"\xc3\xbc",
    b"value",
    b",",
    b"\"",
    b"\x00",
    b"\\u0041b",
];

#[test]
fn properties_are_read_as_java_reads_them() {
    let mut random = random();
    for _ in 0..cases(3000) {
        let pieces = random.random_range(0..24);
        let text: Vec<u8> = (0..pieces).flat_map(|_| PIECES.choose(&mut random).unwrap().to_vec()).collect();
        let shown = String::from_utf8_lossy(&text).into_owned();
        let java = ask("properties", &text);
        match Properties::parse(&text) {
            Ok(properties) => {
                // a half of a character that stands alone: Java's output has a question mark for it
                let shown_by_java = |text: &str| text.replace('\u{fffd}', "?");
                let ours = properties.iter().map(|(key, value)| (shown_by_java(key), shown_by_java(value)));
                let ours: BTreeMap<String, String> = ours.collect();
                let java: BTreeMap<String, String> = serde_json::from_str(&java.ok()).unwrap();
                assert_eq!(ours, java, "{shown:?}");
            }
            Err(error) => assert_ne!(java.exit, 0, "{shown:?}: {error}"),
        }
    }
}

/// A configuration that Kafka starts with; changes are made to it.
const GOOD: [(&str, &str); 6] = [
    ("process.roles", "broker,controller"),
    ("node.id", "1"),
    ("listeners", "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093"),
    ("controller.listener.names", "CONTROLLER"),
    ("controller.quorum.bootstrap.servers", "localhost:9093"),
    ("log.dirs", "/tmp/kafka-logs"),
];
const BROKER: &str = "process.roles=broker;node.id=2;listeners=PLAINTEXT://localhost:9092";
const CONTROLLER: &str = "process.roles=controller;listeners=CONTROLLER://localhost:9093";
const STATIC: &str = "controller.quorum.bootstrap.servers;controller.quorum.voters=1@localhost:9093";
const MAPPED: &str =
    "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT,CONTROLLER:PLAINTEXT";

/// Changes: `key=value` sets a key, a key alone takes it out; several stand apart by `;`.
const CHANGES: &[&str] = &[
    "process.roles=",
    "process.roles=broker,",
    "process.roles=Broker",
    "process.roles= broker , controller ",
    "process.roles",
    "process.roles=broker,broker",
    "node.id=",
    "node.id=-1",
    "node.id=x",
    "node.id= 1 ",
    "node.id=+1",
    "node.id=2147483648",
    "node.id;broker.id=1",
    "broker.id=1",
    "broker.id=-1",
    "broker.id=2",
    "node.id;broker.id=-1",
    "broker.id=x",
    "controller.listener.names",
    "controller.listener.names=",
    "controller.listener.names=OTHER",
    "controller.listener.names=controller",
    "controller.listener.names=CONTROLLER,CONTROLLER",
    "controller.listener.names=CONTROLLER,OTHER",
    "controller.listener.names=CONTROLLER,",
    "controller.listener.names=PLAINTEXT",
    "controller.listener.names=CONTROLLER,PLAINTEXT",
    "controller.listener.names=SSL",
    BROKER,
    CONTROLLER,
    STATIC,
    MAPPED,
    "process.roles=broker;node.id=2;listeners=PLAINTEXT://localhost:9092;controller.listener.names=PLAINTEXT",
    "process.roles=broker;node.id=2",
    "process.roles=broker;node.id=2;listeners",
    "process.roles=broker;node.id=2;listeners=PLAINTEXT://localhost:9092;controller.listener.names=A,B",
    "process.roles=controller;listeners",
    "process.roles=controller;listeners=PLAINTEXT://:9092,CONTROLLER://:9093",
    "process.roles=controller;listeners=CONTROLLER://h:9093,C2://h:9094;controller.listener.names=CONTROLLER,C2",
    "listeners=",
    "listeners=PLAINTEXT://localhost:9092",
    "listeners=PLAINTEXT://h:9092,CONTROLLER://h:9092",
    "listeners=PLAINTEXT://h:9092,PLAINTEXT://h:9094,CONTROLLER://h:9093",
    "listeners=PLAINTEXT://h:0,CONTROLLER://h:0",
    "listeners=PLAINTEXT://h:99999,CONTROLLER://h:9093",
    "listeners=PLAINTEXT://h:-1,CONTROLLER://h:9093",
    "listeners=PLAINTEXT://h,CONTROLLER://h:9093",
    "listeners=h:9092,CONTROLLER://h:9093",
    "listeners=PLAINTEXT://[::1]:9092,CONTROLLER://[::1]:9093",
    "listeners=PLAINTEXT://::1:9092,CONTROLLER://h:9093",
    "listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://[::1]:9092",
    "listeners=plaintext://h:9092,controller://h:9093",
    "listeners=FOO://h:9092,CONTROLLER://h:9093",
    "listeners=SSL://h:9092,CONTROLLER://h:9093",
    "listeners=PLAINTEXT://0.0.0.0:9092,CONTROLLER://0.0.0.0:9093",
    "listeners=PLAINTEXT://h:9092,OTHER://h:9092,CONTROLLER://h:1",
    "listeners=PLAINTEXT://127.0.0.1:9092,OTHER://127.0.0.2:9092,CONTROLLER://h:1",
    "listeners=PLAINTEXT://127.0.0.1:9092,OTHER://[::1]:9092,CONTROLLER://h:1",
    "listener.security.protocol.map=PLAINTEXT:BAR,CONTROLLER:PLAINTEXT",
    "listener.security.protocol.map=PLAINTEXT",
    "listener.security.protocol.map=",
    "listener.security.protocol.map=PLAINTEXT:SSL,CONTROLLER:PLAINTEXT",
    "listener.security.protocol.map=PLAINTEXT:PLAINTEXT",
    "listener.security.protocol.map=plaintext:plaintext,controller:Ssl",
    "advertised.listeners=",
    "advertised.listeners=PLAINTEXT://0.0.0.0:9092",
    "advertised.listeners=PLAINTEXT://h:9092",
    "advertised.listeners=PLAINTEXT://h:9092,CONTROLLER://h:9093",
    "advertised.listeners=PLAINTEXT://h:9092,CONTROLLER://0.0.0.0:9093",
    "advertised.listeners=OTHER://h:9092",
    "advertised.listeners=PLAINTEXT://:9092",
    "advertised.listeners=CONTROLLER://h:9093",
    "advertised.listeners=PLAINTEXT://h:9092,PLAINTEXT://h:9093",
    "inter.broker.listener.name=CONTROLLER",
    "inter.broker.listener.name=FOO",
    "inter.broker.listener.name=PLAINTEXT",
    "inter.broker.listener.name=",
    "inter.broker.listener.name=PLAINTEXT;security.inter.broker.protocol=PLAINTEXT",
    "security.inter.broker.protocol=SSL",
    "security.inter.broker.protocol=SASL_PLAINTEXT",
    "sasl.mechanism.inter.broker.protocol=X",
    "listener.security.protocol.map=PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "controller.quorum.voters=1@localhost:9093",
    "controller.quorum.bootstrap.servers;controller.quorum.voters=",
    "controller.quorum.voters=x@localhost:1",
    "controller.quorum.voters=1@localhost",
    "controller.quorum.voters=1localhost:9093",
    "controller.quorum.voters=1@:9093",
    "controller.quorum.voters=1@localhost:0",
    "controller.quorum.voters=1@localhost:99999",
    "controller.quorum.voters=1@[::1]:9093",
    "controller.quorum.voters=1@h:1,1@h:2",
    "controller.quorum.voters=-1@h:1",
    "controller.quorum.voters=1@h:1,",
    "controller.quorum.voters= 1@h:1 , 2@h:1 ",
    "controller.quorum.voters=3@h:1",
    "controller.quorum.bootstrap.servers",
    "controller.quorum.bootstrap.servers=",
    "controller.quorum.bootstrap.servers=h",
    "controller.quorum.bootstrap.servers=h:x",
    "controller.quorum.bootstrap.servers=:9093",
    "controller.quorum.bootstrap.servers=a:1,a:1",
    "controller.quorum.bootstrap.servers=a:1,",
    "controller.quorum.bootstrap.servers=PLAINTEXT://a:1",
    "controller.quorum.bootstrap.servers=[::1]:1",
    "controller.quorum.bootstrap.servers=a:99999",
    "log.dirs=",
    "log.dirs",
    "log.dirs;log.dir=/a,/b",
    "log.dirs;log.dir=",
    "log.dirs=/tmp/x,",
    "log.dirs=/tmp/x,/tmp/x",
    "log.dirs= /tmp/x , /tmp/y/ ",
    "log.dirs=,/tmp/x",
    "metadata.log.dir=",
    "metadata.log.dir= /tmp/m ",
    "cordoned.log.dirs=/tmp/z",
    "cordoned.log.dirs=*",
    "cordoned.log.dirs=/tmp/kafka-logs",
    "unstable.feature.versions.enable=TRUE",
    "unstable.feature.versions.enable=yes",
    "unstable.feature.versions.enable=",
    "unknown.key=x",
    "early.start.listeners=FOO",
    "early.start.listeners=PLAINTEXT",
    "early.start.listeners=",
    "early.start.listeners=CONTROLLER",
    "log.retention.ms=0",
    "log.retention.hours=0",
    "log.retention.minutes=0",
    "log.retention.ms=5;log.retention.hours=0",
    "log.roll.ms=0",
    "max.connections.per.ip.overrides=x",
    "max.connections.per.ip.overrides=127.0.0.1:5",
    "max.connections.per.ip=0",
    "max.connections.per.ip=0;max.connections.per.ip.overrides=127.0.0.1:5",
    "queued.max.request.bytes=5",
    "zookeeper.connect=x;inter.broker.protocol.version=nonsense",
    "principal.builder.class=",
    "compression.gzip.level=0",
    "log.cleanup.policy=compact,delete",
    "log.cleanup.policy=x",
    "ssl.client.auth=REQUIRED",
    "authorizer.class.name= ",
    "group.share.assignors=x",
    "group.consumer.assignors=range",
    "log.cleaner.threads=0",
];

/// Values that are odd for most keys.
const ODD: [&str; 20] = [
    "",
    "0",
    "-1",
    "1",
    "5",
    "100",
    "99999",
    "2147483647",
    "2147483648",
    "-2",
    "x",
    "true",
    "false",
    "0.5",
    "a,b",
    "a,,b",
    "*",
    " 7 ",
    "1e3",
    "07",
];

type Settings = BTreeMap<String, String>;

fn good() -> Settings {
    GOOD.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn change(settings: &mut Settings, changes: &str) {
    for part in changes.split(';') {
        match part.split_once('=') {
            Some((key, value)) => settings.insert(key.to_owned(), value.to_owned()),
            None => settings.remove(part),
        };
    }
}

/// Compares the two verdicts on a configuration.
fn compare(settings: &Settings) {
    let text: String = settings.iter().map(|(key, value)| format!("{key}={value}\n")).collect();
    let kafka = ask("verdict", text.as_bytes());
    let ours = ServerConfig::read(&Properties::parse(text.as_bytes()).unwrap());
    let refusal = kafka.stderr.lines().next().unwrap_or_default();
    assert_eq!(kafka.exit == 0, ours.is_ok(), "{text}\nKafka: {refusal}\nours: {ours:?}");
}

#[test]
fn kafka_would_start_where_we_say_so() {
    compare(&good());
    for changes in CHANGES {
        let mut settings = good();
        change(&mut settings, changes);
        compare(&settings);
    }
}

#[test]
fn and_so_with_any_two_changes() {
    let mut random = random();
    for _ in 0..cases(1500) {
        let mut settings = good();
        change(&mut settings, CHANGES.choose(&mut random).unwrap());
        change(&mut settings, CHANGES.choose(&mut random).unwrap());
        compare(&settings);
    }
}

#[test]
fn and_so_with_any_value_of_any_key() {
    let mut random = random();
    // which classes there are only Java can tell
    let keys: Vec<Vec<&str>> = TABLE.lines().map(|line| line.split('\t').collect()).collect();
    let keys: Vec<&Vec<&str>> = keys.iter().filter(|columns| columns[1] != "class").collect();
    for _ in 0..cases(2500) {
        let mut settings = good();
        for _ in 0..random.random_range(1..4) {
            let columns = keys.choose(&mut random).unwrap();
            let value = match columns.get(2).and_then(|limits| limits.split_once("..")) {
                // within the limits, to meet the rules between keys
                Some((low, high)) if random.random_bool(0.8) => {
                    let low = low.parse::<f64>().unwrap_or(-5.0);
                    let high = high.parse::<f64>().unwrap_or(2_147_483_647.0);
                    let near = high.min(low + 1e6);
                    let between = low + (near - low) * random.random::<f64>();
                    let value = *[low, high, between, between].choose(&mut random).unwrap();
                    format!("{}", value as i64)
                }
                _ => (*ODD.choose(&mut random).unwrap()).to_owned(),
            };
            settings.insert(columns[0].to_owned(), value);
        }
        compare(&settings);
    }
}

#[test]
fn the_environment_is_read_as_kafkas_image_reads_it() {
    let variables = [
        ("KAFKA_NODE_ID", "5"),
        ("KAFKA_A___B__C_D", "x\\ty"),
        ("KAFKA_A____B", "1"),
        ("KAFKA_KAFKA_X", "3"),
        ("KAFKA_JMX_PORT", "9"),
        ("KAFKA_HEAP_OPTS", "z"),
        ("KAFKA_LOG4J_LOGGERS", "z"),
        ("KAFKA_VERSION", "4"),
        ("KAFKA_JMX_HOSTNAME", "h"),
        ("KAFKA_ml.dotted", "1"),
        ("KAFKA_LISTENERS", "A://:1,B://:2"),
        ("kafka_y", "4"),
        ("OTHER", "1"),
    ];
    let folder = tempfile::tempdir().unwrap();
    for part in ["defaults", "mounted", "final"] {
        std::fs::create_dir(folder.path().join(part)).unwrap();
    }
    for file in ["server.properties", "log4j2.yaml", "tools-log4j2.yaml"] {
        std::fs::write(folder.path().join("defaults").join(file), "default=1\n").unwrap();
    }
    let mounted = "node.id=1\nbroker.rack=r";
    std::fs::write(folder.path().join("mounted/server.properties"), mounted).unwrap();
    let mut java = Command::new("java");
    java.current_dir(&folder).env_clear().env("PATH", std::env::var_os("PATH").unwrap()).envs(variables);
    java.args([
        "-cp",
        &format!("{}/*", parts::kafka(KAFKA).display()),
        "kafka.docker.KafkaDockerWrapper",
        "setup",
    ]);
    java.args([
        "--default-configs-dir",
        "defaults",
        "--mounted-configs-dir",
        "mounted",
        "--final-configs-dir",
        "final",
    ]);
    // it writes the configuration, and then would format
    let _ = java.output().unwrap();
    let written = std::fs::read(folder.path().join("final/server.properties")).unwrap();
    let kafkas = Properties::parse(&written).unwrap();
    let ours =
        environment::read(mounted.as_bytes(), variables.map(|(name, value)| (name.into(), value.into())))
            .unwrap();
    assert_eq!(ours, kafkas);
    assert_eq!(ours.get("node.id"), Some("5"));
}
