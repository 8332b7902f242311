//! What is read of a configuration, and how it is told what is wrong. That the verdicts are Kafka's is shown beside Kafka
//! itself.

use super::*;

const BASE: &str = "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n\
                    listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093\n\
                    controller.quorum.bootstrap.servers=localhost:9093\nlog.dirs=/b, /a ,/b\n";

fn read(more: &str) -> Result<ServerConfig, String> {
    let properties = Properties::parse(format!("{BASE}{more}").as_bytes()).unwrap();
    let told =
        |errors: Vec<ConfigError>| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    ServerConfig::read(&properties).map_err(told)
}

#[test]
fn what_formatting_depends_on_is_read() {
    let config = read("unstable.feature.versions.enable=True\n").unwrap();
    assert_eq!((config.node_id, config.roles), (1, Roles { broker: true, controller: true }));
    assert_eq!(config.log_dirs, [PathBuf::from("/b"), PathBuf::from("/a")]);
    assert_eq!(config.metadata_log_dir, PathBuf::from("/b"), "the first, as written");
    assert!(config.unstable_feature_versions && config.static_voters.is_empty());
    assert_eq!(config.bootstrap_servers, ["localhost:9093"]);
    assert_eq!(read("metadata.log.dir=/m").unwrap().metadata_log_dir, PathBuf::from("/m"));
    let config = read("controller.quorum.voters=1@[::1]:9093,2@other:1").unwrap();
    let voters: Vec<(i32, &str, u16)> =
        config.static_voters.iter().map(|voter| (voter.node_id, voter.host.as_str(), voter.port)).collect();
    assert_eq!(voters, [(1, "::1", 9093), (2, "other", 1)]);
}

#[test]
fn a_controller_is_reached_as_others_are_told() {
    let endpoint = |more: &str| read(more).unwrap().controller_endpoint().unwrap();
    let expected = |host: &str, port| ("CONTROLLER".to_owned(), host.to_owned(), port);
    assert_eq!(endpoint(""), expected("localhost", 9093));
    let advertised = "advertised.listeners=PLAINTEXT://h:1,CONTROLLER://told:2";
    assert_eq!(endpoint(advertised), expected("told", 2));
    assert_eq!(endpoint("listeners=PLAINTEXT://h:1,CONTROLLER://:2"), expected("localhost", 2));
    assert_eq!(
        endpoint("listeners=PLAINTEXT://h:1,CONTROLLER://0.0.0.0:2\nadvertised.listeners=PLAINTEXT://h:1"),
        expected("localhost", 2)
    );
    assert_eq!(endpoint("listeners=PLAINTEXT://h:1,CONTROLLER://[fd00::1]:2"), expected("fd00::1", 2));
}

#[test]
fn everything_that_is_wrong_is_told_with_key_value_and_the_way_out() {
    let told = read("num.partitions=none\nlog.dirs=\nnode.id=\nlisteners=PLAINTEXT://h:1,PLAINTEXT://h:1")
        .unwrap_err();
    for part in [
        "num.partitions is \"none\": a whole number from 1 to 2147483647 is wanted",
        "log.dirs is \"\": it must not be empty",
        "node.id is \"\": a whole number from 0",
        "listeners is \"PLAINTEXT\": each listener has a name of its own",
        "listeners is \"1\": each listener has a port of its own",
        "controller.listener.names is \"CONTROLLER\": a controller listens on each",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
    let nothing = ServerConfig::read(&Properties::default()).unwrap_err();
    let told: Vec<String> = nothing.iter().map(ToString::to_string).collect();
    for key in ["process.roles", "node.id", "controller.listener.names"] {
        assert!(told.iter().any(|line| line.starts_with(&format!("{key} is missing"))), "{told:?}");
    }
}

#[test]
fn no_value_that_may_be_a_secret_is_checked_or_told() {
    let secret = "ssl.keystore.password=hush\nsasl.jaas.config=hush\nnum.partitions=0";
    assert!(!read(secret).unwrap_err().contains("hush"));
}
