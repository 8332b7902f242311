//! What the init containers do, on the tool itself: directories in every state, grants that come late or are for others, a
//! quorum that has a leader already, and what they report.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod testbed;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use kafka_features_operator::api::pods::{Grant, GrantedVoter, Part, Report, Verdict};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use testbed::{Kafka, NodeSpec, Quorum};

const TOOL: &str = env!("CARGO_BIN_EXE_kafka-storage");
const CLUSTER: &str = "5L6g3nShTgeMCtKhhX86sw";
const DIRECTORY: &str = "JEXY6aqzQYg32P5TStzaFg";

/// A pod with its volumes.
struct Scene {
    folder: TempDir,
    pod: &'static str,
}

impl Scene {
    /// A combined node in a dynamic quorum.
    fn set() -> Self {
        Self::with(
            "process.roles=broker,controller\ncontroller.quorum.bootstrap.servers=localhost:9093\nnode.id=1\n",
        )
    }

    fn with(more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().to_str().unwrap();
        let text = format!(
            "controller.listener.names=CONTROLLER\nlog.dirs={dir}/data\n\
             listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093\n{more}\n"
        );
        fs::write(folder.path().join("server.properties"), text.replace("{DIR}", dir)).unwrap();
        fs::create_dir(folder.path().join("data")).unwrap();
        Self { folder, pod: "pod-a" }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, container: &str) -> Command {
        let mut tool = Command::new(TOOL);
        tool.args(["pod", container, "--report"]).arg(self.path("report"));
        tool.arg("--grant").arg(self.path("grant")).arg("--scram").arg(self.path("scram"));
        tool.env("KFEAT_POD_NAME", "kafka-1").env("KFEAT_POD_UID", self.pod);
        tool.env("KFEAT_PROPERTIES", self.path("server.properties"));
        tool.stdout(Stdio::piped()).stderr(Stdio::piped());
        tool
    }

    fn ended(&self, output: &Output) -> (i32, Report) {
        let report = fs::read_to_string(self.path("report")).unwrap();
        assert!(report.len() <= 4096, "{} bytes", report.len());
        fs::remove_file(self.path("report")).unwrap();
        (output.status.code().unwrap(), serde_json::from_str(&report).unwrap())
    }

    fn look(&self) -> (i32, Report) {
        let output = self.command("look").output().unwrap();
        self.ended(&output)
    }

    fn format(&self, grant: &Grant) -> (i32, Report) {
        self.grant(grant);
        let output = self.command("format").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.lines().count() <= 1, "{said}");
        self.ended(&output)
    }

    fn grant(&self, grant: &Grant) {
        fs::write(self.path("grant"), serde_json::to_vec(grant).unwrap()).unwrap();
    }

    /// Everything below the data directory.
    fn files(&self) -> Vec<String> {
        let output = Command::new("find").arg(self.path("data")).arg("-type").arg("f").output().unwrap();
        let mut files: Vec<String> = String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .map(|line| line.rsplit_once("/data/").unwrap().1.to_owned())
            .collect();
        files.sort();
        files
    }

    fn info(&self) -> serde_json::Value {
        let mut tool = Command::new(TOOL);
        tool.args(["info", "--output", "json", "--config"]).arg(self.path("server.properties"));
        serde_json::from_slice(&tool.output().unwrap().stdout).unwrap()
    }
}

fn grant(part: Part) -> Grant {
    let voter = |node_id, port| GrantedVoter {
        node_id,
        host: "localhost".into(),
        port,
        directory_id: Some(DIRECTORY.into()),
    };
    Grant {
        pod: "pod-a".into(),
        node_id: 1,
        cluster_id: CLUSTER.into(),
        kafka_version: "4.4.0".into(),
        part,
        directory_id: None,
        voters: if part == Part::Voter { vec![voter(1, 9093)] } else { Vec::new() },
        levels: BTreeMap::from([("metadata.version".into(), 30), ("group.version".into(), 1)]),
    }
}

const CHECKPOINT: &str = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint";

#[test]
fn an_empty_directory_is_told_then_formatted_as_granted_and_then_left_alone() {
    let scene = Scene::set();
    let (exit, report) = scene.look();
    assert_eq!((exit, report.verdict, report.node_id), (0, Verdict::Unformatted, Some(1)));
    assert!(report.broker && report.controller && report.static_voters.is_empty());
    assert_eq!(report.endpoint.as_deref(), Some("localhost:9093"));
    assert_eq!(scene.files(), Vec::<String>::new());

    let (exit, report) = scene.format(&grant(Part::Voter));
    assert_eq!((exit, report.verdict), (0, Verdict::FormattedNow));
    assert_eq!(report.cluster_id.as_deref(), Some(CLUSTER));
    assert_eq!(report.directory_id.as_deref(), Some(DIRECTORY));
    assert_eq!(scene.files(), [CHECKPOINT, "meta.properties"]);
    let bootstrap = &scene.info()["bootstrap"];
    assert_eq!(bootstrap["levels"]["metadata.version"], 30);
    assert_eq!(bootstrap["levels"]["group.version"], 1);
    assert_eq!(bootstrap["levels"]["transaction.version"], serde_json::Value::Null, "not granted, so 0");
    assert_eq!(bootstrap["voters"]["1"], DIRECTORY);

    let before = fs::metadata(scene.path("data/meta.properties")).unwrap().modified().unwrap();
    fs::remove_file(scene.path("grant")).unwrap();
    for container in ["look", "format"] {
        let output = scene.command(container).output().unwrap();
        let (exit, report) = scene.ended(&output);
        assert_eq!((exit, report.verdict), (0, Verdict::Formatted), "nobody is asked");
        assert_eq!(report.directory_id.as_deref(), Some(DIRECTORY));
    }
    assert_eq!(fs::metadata(scene.path("data/meta.properties")).unwrap().modified().unwrap(), before);
}

/// Waits for a child's end, for as long as anything here may take.
fn wait(mut child: Child) -> Output {
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > Duration::from_secs(20) {
            child.kill().unwrap();
            panic!("it did not end");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output().unwrap()
}

#[test]
fn it_waits_for_a_grant_for_this_very_pod() {
    let scene = Scene::set();
    let mut waiting = scene.command("format").spawn().unwrap();
    let pause = || std::thread::sleep(Duration::from_millis(400));
    let still = |child: &mut Child| assert!(child.try_wait().unwrap().is_none(), "it waits");
    pause();
    for text in ["", "\n", "{", "{\"pod\": \"pod-a\"}", "null"] {
        fs::write(scene.path("grant"), text).unwrap();
        pause();
        still(&mut waiting);
    }
    scene.grant(&Grant { pod: "pod-before".into(), ..grant(Part::Voter) });
    pause();
    still(&mut waiting);
    assert_eq!(scene.files(), Vec::<String>::new());
    scene.grant(&grant(Part::Voter));
    let output = wait(waiting);
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(said.contains("waiting for the operator's grant") && said.contains("\"pod-before\""), "{said}");
    assert_eq!(scene.ended(&output).1.verdict, Verdict::FormattedNow);
}

#[test]
fn a_pod_that_is_to_go_is_not_waited_for() {
    let scene = Scene::set();
    let waiting = scene.command("format").spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let pid = Pid::from_raw(i32::try_from(waiting.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    let begun = Instant::now();
    let (exit, report) = scene.ended(&wait(waiting));
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!((exit, report.reason.as_deref()), (1, Some("Terminated")));
    assert_eq!(scene.files(), Vec::<String>::new());
}

#[test]
fn every_part_is_formatted_as_its_own() {
    // an observer of a dynamic quorum: the voters are elsewhere
    let scene = Scene::set();
    let observer = Grant { directory_id: Some(DIRECTORY.into()), ..grant(Part::Observer) };
    let (exit, report) = scene.format(&observer);
    assert_eq!((exit, report.directory_id.as_deref()), (0, Some(DIRECTORY)));
    let bootstrap = &scene.info()["bootstrap"];
    assert_eq!(
        (bootstrap["kraftVersion"].as_i64(), bootstrap["voters"].as_object().unwrap().len()),
        (Some(1), 0)
    );

    // a controller whose file still names static voters, in a quorum that has become dynamic
    let fixed = "process.roles=controller\nnode.id=1\nlisteners=CONTROLLER://localhost:9093\n\
                 controller.quorum.voters=1@localhost:9093,2@localhost:9094\n";
    let scene = Scene::with(fixed);
    let voter = |node_id| GrantedVoter {
        node_id,
        host: "localhost".into(),
        port: 9093,
        directory_id: Some(DIRECTORY.into()),
    };
    let (exit, report) = scene.format(&Grant { voters: vec![voter(1), voter(2)], ..grant(Part::Observer) });
    assert_eq!(exit, 0, "{report:?}");
    assert_ne!(report.directory_id.as_deref(), Some(DIRECTORY), "an observer is not the voter of its number");
    let bootstrap = &scene.info()["bootstrap"];
    assert_eq!(
        (bootstrap["kraftVersion"].as_i64(), bootstrap["voters"].as_object().unwrap().len()),
        (Some(1), 2)
    );

    // a static voter, new or returning
    for part in [Part::Voter, Part::ReturningVoter] {
        let scene = Scene::with(fixed);
        let (exit, report) = scene.format(&Grant { voters: Vec::new(), ..grant(part) });
        assert_eq!((exit, report.static_voters.len()), (0, 2), "{report:?}");
        let bootstrap = &scene.info()["bootstrap"];
        assert_eq!(
            (bootstrap["kraftVersion"].as_i64(), bootstrap["state"].as_str()),
            (Some(0), Some("zeroCheckpoint"))
        );
    }

    // a broker, for new and for older software
    for (version, files) in
        [("4.4.0", vec!["meta.properties"]), ("4.3.1", vec!["bootstrap.checkpoint", "meta.properties"])]
    {
        let scene = Scene::with(
            "process.roles=broker\nnode.id=1\nlisteners=PLAINTEXT://localhost:9092\n\
             controller.quorum.voters=2@localhost:9094\n",
        );
        let (exit, report) = scene.format(&Grant { kafka_version: version.into(), ..grant(Part::Broker) });
        assert_eq!((exit, report.verdict), (0, Verdict::FormattedNow));
        assert_eq!(scene.files(), files);
    }
}

/// A failure: what the container says, in one line; and nothing is written.
fn refused(scene: &Scene, reason: &str, words: &[&str]) {
    scene.grant(&grant(Part::Voter));
    let before = scene.files();
    for container in ["look", "format"] {
        let output = scene.command(container).output().unwrap();
        let said = String::from_utf8(output.stderr.clone()).unwrap();
        let (exit, report) = scene.ended(&output);
        assert_ne!(exit, 0);
        assert_eq!((report.verdict, report.reason.as_deref()), (Verdict::Failed, Some(reason)), "{report:?}");
        let message = report.message.unwrap();
        assert_eq!(said, format!("kafka-storage: {message}\n"));
        for word in words {
            assert!(message.contains(word), "{message}: {word}");
        }
    }
    assert_eq!(scene.files(), before);
}

#[test]
fn what_can_not_be_is_one_line_with_its_reason_and_changes_nothing() {
    let meta = |scene: &Scene, folder: &str, cluster: &str, node: i32| {
        fs::create_dir_all(scene.path(folder)).unwrap();
        let text = format!("version=1\ncluster.id={cluster}\nnode.id={node}\n");
        fs::write(scene.path(folder).join("meta.properties"), text).unwrap();
    };
    let scene = Scene::set();
    meta(&scene, "data", CLUSTER, 1389);
    refused(&scene, "NodeIdMismatch", &["node 1389", "node 1:"]);

    let two = "process.roles=broker,controller\ncontroller.quorum.bootstrap.servers=localhost:9093\nnode.id=1\n\
               log.dirs={DIR}/data,{DIR}/more\n";
    let scene = Scene::with(two);
    meta(&scene, "data", "cluster-a", 1);
    meta(&scene, "more", "cluster-b", 1);
    refused(&scene, "ClusterIdMismatch", &["\"cluster-a\"", "\"cluster-b\""]);

    // the volume of another cluster, which by itself is as it should be
    let scene = Scene::set();
    meta(&scene, "data", "cluster-a", 1);
    assert_eq!(scene.look().1.verdict, Verdict::Formatted);
    let output = scene.command("look").env("KFEAT_CLUSTER_ID", CLUSTER).output().unwrap();
    let (exit, report) = scene.ended(&output);
    assert_eq!((exit, report.reason.as_deref()), (5, Some("ClusterIdMismatch")));
    let output = scene.command("look").env("KFEAT_CLUSTER_ID", "cluster-a").output().unwrap();
    assert_eq!(scene.ended(&output).1.verdict, Verdict::Formatted);

    let scene = Scene::set();
    fs::create_dir(scene.path("data/lost+found")).unwrap();
    refused(&scene, "DirectoryNotEmpty", &["\"lost+found\"", "a folder below it"]);

    let scene = Scene::set();
    fs::create_dir(scene.path("data/__cluster_metadata-0")).unwrap();
    fs::write(scene.path("data/__cluster_metadata-0/00000000000000000000.log"), "x").unwrap();
    refused(&scene, "DirectoryNotEmpty", &["a metadata log and no meta.properties"]);

    let scene = Scene::set();
    fs::remove_dir(scene.path("data")).unwrap();
    fs::write(scene.path("data"), "").unwrap();
    let output = scene.command("look").output().unwrap();
    assert_eq!(scene.ended(&output).1.reason.as_deref(), Some("DirectoryNotUsable"));

    let scene = Scene::with("process.roles=broker\nnode.id=x\n");
    refused(&scene, "InvalidConfiguration", &["node.id", "\"x\"", "controller.listener.names"]);
    let scene = Scene::set();
    fs::remove_file(scene.path("server.properties")).unwrap();
    refused(&scene, "InvalidConfiguration", &["server.properties", "No such file"]);
}

#[test]
fn a_grant_that_does_not_fit_is_refused_and_nothing_is_written() {
    let cases: [(&str, Grant, &str); 5] = [
        ("NodeIdMismatch", Grant { node_id: 2, ..grant(Part::Voter) }, "node 2"),
        ("UnknownKafkaVersion", Grant { kafka_version: "5.0.0".into(), ..grant(Part::Voter) }, "\"5.0.0\""),
        ("InvalidLevels", Grant { kafka_version: "3.9.2".into(), ..grant(Part::Voter) }, "3.9"),
        ("QuorumKindMismatch", Grant { kafka_version: "3.8.1".into(), ..grant(Part::Voter) }, "3.8"),
        (
            "InvalidConfiguration",
            Grant { directory_id: Some("short".into()), ..grant(Part::Voter) },
            "\"short\"",
        ),
    ];
    for (reason, grant, word) in cases {
        let scene = Scene::set();
        let (exit, report) = scene.format(&grant);
        assert_ne!(exit, 0);
        assert_eq!(report.reason.as_deref(), Some(reason), "{report:?}");
        assert!(report.message.unwrap().contains(word));
        assert_eq!(scene.files(), Vec::<String>::new());
    }
    // a directory of one cluster, and a new one beside it for another
    let scene = Scene::with(
        "process.roles=broker\nnode.id=1\nlisteners=PLAINTEXT://localhost:9092\nlog.dirs={DIR}/data,{DIR}/more\n\
         controller.quorum.voters=2@localhost:9094\n",
    );
    fs::write(scene.path("data/meta.properties"), "version=1\ncluster.id=other\nnode.id=1\n").unwrap();
    let (exit, report) = scene.format(&grant(Part::Broker));
    assert_eq!((exit, report.reason.as_deref()), (5, Some("ClusterIdMismatch")));
    assert!(!scene.path("more").exists());
    let (exit, report) = scene.format(&Grant { cluster_id: "other".into(), ..grant(Part::Broker) });
    assert_eq!((exit, report.verdict), (0, Verdict::FormattedNow), "a disk was added");
}

#[test]
fn a_denial_ends_the_container_with_its_reason_and_a_grant_that_follows_is_taken() {
    let scene = Scene::set();
    let waiting = scene.command("format").spawn().unwrap();
    let denial = r#"{"pod":"pod-a","reason":"QuorumKindMismatch","message":"the quorum is static"}"#;
    fs::write(scene.path("grant"), denial).unwrap();
    let output = wait(waiting);
    assert_eq!(
        String::from_utf8_lossy(&output.stderr).lines().last(),
        Some("kafka-storage: the quorum is static")
    );
    let (exit, report) = scene.ended(&output);
    assert_eq!((exit, report.verdict, report.node_id), (3, Verdict::Failed, Some(1)));
    assert_eq!((report.reason.as_deref(), report.denied), (Some("QuorumKindMismatch"), true));
    assert_eq!(scene.files(), Vec::<String>::new());
    assert_eq!(scene.format(&grant(Part::Voter)).1.verdict, Verdict::FormattedNow);
}

#[test]
fn a_report_fits_into_a_termination_message() {
    let voters: Vec<String> = (1..=33)
        .map(|id| format!("{id}@controller-{id}.controllers.my-namespace.svc.cluster.local:9093"))
        .collect();
    let scene = Scene::with(&format!(
        "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters={}\nlog.dirs={{DIR}}/data/{}\n",
        voters.join(","),
        "x".repeat(200)
    ));
    let (exit, report) = scene.look();
    assert_eq!((exit, report.static_voters.len()), (0, 33));
    let folder = scene.path("data").join("x".repeat(200)).join("y".repeat(200)).join("\u{1}".repeat(200));
    fs::create_dir_all(&folder).unwrap();
    let (exit, report) = scene.look();
    assert_eq!((exit, report.verdict), (6, Verdict::Failed), "{report:?}");
    assert!(!report.message.unwrap().is_empty());
}

#[test]
fn users_come_from_the_mounted_secret_and_no_password_is_told() {
    let scene = Scene::set();
    let real = scene.path("scram/..2026");
    fs::create_dir_all(&real).unwrap();
    let alice = "SCRAM-SHA-512=[name=alice,password=alice-secret]\nSCRAM-SHA-256=[name=alice,password=alice-secret]\n";
    fs::write(real.join("alice"), alice).unwrap();
    fs::write(real.join("bob"), "SCRAM-SHA-256=[name=bob,password=bob-secret]").unwrap();
    std::os::unix::fs::symlink("..2026", scene.path("scram/..data")).unwrap();
    for name in ["alice", "bob"] {
        std::os::unix::fs::symlink(Path::new("..data").join(name), scene.path("scram").join(name)).unwrap();
    }
    let (exit, _) = scene.format(&grant(Part::Voter));
    assert_eq!(exit, 0);
    let checkpoint =
        String::from_utf8_lossy(&fs::read(scene.path("data").join(CHECKPOINT)).unwrap()).into_owned();
    assert_eq!((checkpoint.matches("alice").count(), checkpoint.matches("bob").count()), (2, 1));
    assert!(!checkpoint.contains("secret"));

    let scene = Scene::set();
    fs::create_dir(scene.path("scram")).unwrap();
    fs::write(scene.path("scram/x"), "SCRAM-SHA-1=[name=alice,password=alice-secret]").unwrap();
    scene.grant(&grant(Part::Voter));
    let output = scene.command("format").output().unwrap();
    assert!(!String::from_utf8_lossy(&output.stderr).contains("secret"));
    let (_, report) = scene.ended(&output);
    assert_eq!(report.reason.as_deref(), Some("InvalidScram"));
    assert!(!report.message.unwrap().contains("secret"));
}

/// A voter that comes back empty must not begin a cluster that runs; one that is granted to return, may.
#[test]
fn a_voter_is_not_formatted_once_the_others_have_a_leader() {
    let kafka = Kafka::start(&[NodeSpec::combined(2, "4.4.0")], Quorum::Dynamic, &[], &[]);
    let address = kafka.controller(2);
    let (host, port) = address.rsplit_once(':').unwrap();
    let scene = Scene::set();
    let mut granted = grant(Part::Voter);
    granted.voters.push(GrantedVoter {
        node_id: 2,
        host: host.into(),
        port: port.parse().unwrap(),
        directory_id: Some("AAAAAAAAAAAAAAAAAAABBB".into()),
    });
    let (exit, report) = scene.format(&granted);
    assert_eq!((exit, report.reason.as_deref()), (5, Some("LeaderFound")), "{report:?}");
    assert!(report.message.unwrap().contains("node 2"));
    assert_eq!(scene.files(), Vec::<String>::new());
    let (exit, _) = scene.format(&Grant { part: Part::Observer, voters: Vec::new(), ..granted });
    assert_eq!(exit, 0);
}
