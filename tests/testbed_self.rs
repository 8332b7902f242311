//! The testbed itself: that its parts are real, and that it leaves nothing behind.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod testbed;

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use kube::api::{Api, ListParams, ObjectMeta, PostParams};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use testbed::{ApiServer, Kafka, NodeSpec, Oracle, Quorum};

#[tokio::test]
async fn the_api_server_is_real_and_denies_whom_nobody_gave_rights() {
    let mut server = ApiServer::start().await;
    let admin = server.client().await;
    let version = admin.apiserver_version().await.unwrap();
    assert_eq!((version.major.as_str(), version.minor.as_str()), ("1", "36"));

    let accounts = Api::<ServiceAccount>::namespaced(admin.clone(), "default");
    let account = ServiceAccount {
        metadata: ObjectMeta { name: Some("nobody".into()), ..Default::default() },
        ..Default::default()
    };
    accounts.create(&PostParams::default(), &account).await.unwrap();
    let (params, request) = (PostParams::default(), TokenRequest::default());
    let answer = accounts.create_token_request("nobody", &params, &request).await.unwrap();
    let token = answer.status.unwrap().token.unwrap();
    let nobody = Api::<ConfigMap>::namespaced(server.client_with(&token).await, "default");
    let kube::Error::Api(denied) = nobody.list(&ListParams::default()).await.unwrap_err() else { panic!() };
    assert_eq!(denied.code, 403);

    server.restart().await;
    assert!(accounts.get("nobody").await.is_ok());
    assert!(server.audit().iter().any(|event| event["responseStatus"]["code"] == 403));
}

#[test]
fn a_cluster_of_two_versions_runs_and_its_nodes_stop_die_and_return() {
    let nodes =
        [NodeSpec::controller(1, "4.4.0"), NodeSpec::broker(2, "4.0.2"), NodeSpec::broker(3, "4.4.0")];
    let mut kafka = Kafka::start(&nodes, Quorum::Dynamic, &["--release-version", "4.0"], &[]);
    let levels = kafka.finalized();
    assert_eq!(levels["metadata.version"], "4.0-IV3");
    assert_eq!(levels["kraft.version"], "1");
    assert_eq!(levels["transaction.version"], "2");

    kafka.kill(2);
    let registered = |kafka: &Kafka| {
        let broker = kafka.broker(3);
        let args = ["--bootstrap-server", &broker, "describe", "--node-id", "2"];
        Oracle::of("4.4.0").run("kafka-features", &args).exit == 0
    };
    kafka.restart(2, Some("4.4.0"));
    assert!(registered(&kafka));
    kafka.stop(3);
    kafka.unregister(3);
    kafka.restart(3, None);
    assert_eq!(kafka.finalized()["metadata.version"], "4.0-IV3");
}

#[test]
fn every_kafka_version_formats_and_its_tools_say_what_they_would_say_in_a_shell() {
    for version in testbed::parts::kafka_versions() {
        let kafka = Kafka::prepare(&[NodeSpec::combined(1, &version)], Quorum::Static, &[], &[]);
        let (oracle, data) = (Oracle::of(&version), kafka.data(1));
        let config = data.with_file_name("server.properties").display().to_string();
        let again = oracle.run("kafka-storage", &["format", "-t", &kafka.cluster_id, "-c", &config]);
        assert_eq!(again.exit, 1, "{version}: {again:?}");
        assert!(again.stderr.contains("is already formatted"), "{version}: {again:?}");
        let nothing = oracle.run("kafka-features", &["--bootstrap-server", "127.0.0.1:1", "upgrade"]);
        assert_eq!(nothing.exit, 1, "{version}: {nothing:?}");
        assert!(nothing.stderr.contains("at least one feature"), "{version}: {nothing:?}");
        let usage = oracle.run("kafka-leader-election", &["--bootstrap-server", "127.0.0.1:1"]);
        assert_eq!(usage.exit, 1, "{version}: {usage:?}");
        assert!(usage.stderr.contains("election-type"), "{version}: {usage:?}");

        // up to 4.3 the levels stand in a file of their own, from 4.4 in the first snapshot (KIP-1170)
        let first = data.join("__cluster_metadata-0/00000000000000000000-0000000000.checkpoint");
        let bootstrap = data.join("bootstrap.checkpoint");
        let levels = if bootstrap.exists() { bootstrap } else { first };
        let files = ["--cluster-metadata-decoder", "--files", levels.to_str().unwrap()];
        let dumped = oracle.run("kafka-dump-log", &files).ok();
        assert!(dumped.contains("FEATURE_LEVEL_RECORD"), "{version}: {dumped}");
    }
}

#[test]
fn nothing_outlives_a_cluster() {
    let kafka = Kafka::single("4.4.0", &[]);
    let (folder, broker) = (kafka.folder().to_owned(), kafka.broker(1));
    assert!(std::net::TcpStream::connect(&broker).is_ok());
    drop(kafka);
    assert!(!folder.exists());
    assert!(std::net::TcpStream::connect(&broker).is_err());
}

/// Neither the end of the thread that started it nor anything but the end of the whole process ends a child; and that
/// does, even a SIGKILL.
#[test]
fn nothing_outlives_a_killed_test() {
    const HOLD: &str = "TESTBED_HOLD";
    if std::env::var_os(HOLD).is_some() {
        let start = || testbed::process::spawn("sleep", |command| _ = command.arg("600")).unwrap();
        let mut child = std::thread::spawn(start).join().unwrap();
        println!("\nchild {}", child.id());
        child.wait().unwrap();
        return;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--nocapture", "nothing_outlives_a_killed_test"]).env(HOLD, "1");
    let mut test = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(test.stdout.take().unwrap()).lines().map_while(Result::ok);
    let child = lines.find_map(|line| line.strip_prefix("child ").map(str::to_owned)).unwrap();
    let stat = PathBuf::from("/proc").join(child).join("stat");
    let runs = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
    assert!(runs());
    test.kill().unwrap();
    test.wait().unwrap();
    for _ in 0..500 {
        if !runs() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{} is still there", stat.display());
}
