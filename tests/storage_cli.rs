//! `kafka-storage` as scripts and people use it: its exit statuses, where it writes, what it tells of secrets, and the
//! cluster's id from a running cluster.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod testbed;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use testbed::Kafka;

const TOOL: &str = env!("CARGO_BIN_EXE_kafka-storage");
const CLUSTER: &str = "5L6g3nShT-eMCtK--X86sw";

/// A folder with the configuration of a combined node in a dynamic quorum.
struct Scene {
    folder: TempDir,
}

impl Scene {
    fn set() -> Self {
        Self::with("")
    }

    /// With more lines of configuration, which count.
    fn with(more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let scene = Self { folder };
        scene.configure(&format!(
            "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n\
             listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093\n\
             controller.quorum.bootstrap.servers=localhost:9093\nlog.dirs={{DIR}}/data\n{more}\n"
        ));
        scene
    }

    fn configure(&self, text: &str) {
        let text = text.replace("{DIR}", self.folder.path().to_str().unwrap());
        fs::write(self.path("server.properties"), text).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, command: &str, more: &[&str]) -> Command {
        let mut tool = Command::new(TOOL);
        tool.args([command, "--config"]).arg(self.path("server.properties")).args(more);
        tool
    }

    fn run(&self, command: &str, more: &[&str]) -> Output {
        self.command(command, more).output().unwrap()
    }

    /// The tool as a user without rights runs it: nothing is forbidden to root. A copy, since that user may not reach the
    /// one that was built.
    fn as_somebody_else(&self) -> Command {
        let copy = self.path("kafka-storage");
        fs::copy(TOOL, &copy).unwrap();
        let mut other = Command::new("setpriv");
        other.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(copy);
        other
    }

    fn format(&self, more: &[&str]) -> Output {
        self.run("format", &[&["--cluster-id", CLUSTER, "--standalone"], more].concat())
    }
}

fn told(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

fn status(output: &Output) -> i32 {
    output.status.code().expect("it ends by itself")
}

#[test]
fn each_kind_of_failure_has_a_status_of_its_own() {
    let scene = Scene::set();
    assert_eq!(status(&scene.run("info", &[])), 1);
    assert_eq!(status(&scene.format(&["--nonsense"])), 2);
    assert_eq!(status(&scene.format(&["--feature", "group.version=9"])), 3);
    assert_eq!(status(&scene.format(&["--kafka-version", "9.9"])), 3);
    assert_eq!(status(&scene.format(&[])), 0);
    assert_eq!(status(&scene.run("info", &[])), 0);
    assert_eq!(status(&scene.format(&[])), 4);
    assert_eq!(status(&scene.format(&["--ignore-formatted"])), 0);
    assert_eq!(status(&scene.run("format", &["-t", "other", "-s", "-g"])), 5);
    assert_eq!(status(&Scene::with("log.dirs=/proc/kafka").format(&[])), 6);
    let nobody = ["--bootstrap-server", "127.0.0.1:1", "--no-initial-controllers"];
    assert_eq!(status(&Scene::set().run("format", &nobody)), 7);
    assert_eq!(status(&Command::new(TOOL).arg("--help").output().unwrap()), 0);
}

#[test]
fn a_failure_tells_everything_at_once_a_line_each_and_for_machines_too() {
    let scene = Scene::with("num.partitions=0\nlog.roll.ms=0");
    let output = scene.format(&["--output", "json"]);
    let lines: Vec<String> = String::from_utf8(output.stderr).unwrap().lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].contains("num.partitions is \"0\"") && lines[1].contains("log.roll.ms"), "{lines:?}");
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&record["status"], record["errors"].as_array().unwrap().len()), (&Value::from(3), 2));
}

#[test]
fn the_record_says_what_was_done() {
    let scene = Scene::set();
    fs::create_dir_all(scene.path("data/lost+found")).unwrap();
    let output = scene.format(&["--output", "json", "--kafka-version", "4.3.1"]);
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&record["status"], &record["kafkaVersion"]), (&Value::from(0), &Value::from("4.3")));
    assert_eq!(record["levels"]["metadata.version"], 30);
    let meta = fs::read_to_string(scene.path("data/meta.properties")).unwrap();
    assert!(meta.contains(record["formatted"][0]["directoryId"].as_str().unwrap()), "{meta}");
    let warning = record["warnings"][0].as_str().unwrap();
    assert!(warning.contains("lost+found") && warning.contains("a folder below it"), "{warning}");
    assert!(told(&output).contains("warning: "), "and people are told as well");
}

#[test]
fn secrets_are_told_nowhere() {
    let scene = Scene::set();
    let users = scene.path("users");
    fs::write(
        &users,
        "# two of them\nSCRAM-SHA-256=[name=alice,password=hush]\n\nSCRAM-SHA-512=[name=bob,password=hush]\n",
    )
    .unwrap();
    let users = users.to_str().unwrap();
    let user = "SCRAM-SHA-256=[name=carol,password=hush]";
    let wrong = [
        scene.format(&["--add-scram", "SCRAM-SHA-256=[name=a,password=hush,iterations=1]"]),
        scene.format(&["--add-scram", "SCRAM-SHA-256=[name=a,password=hush,hush=1]"]),
        scene.format(&["--add-scram", "password=hush"]),
        scene.format(&[user]),
        scene.format(&["--add-scramm", user]),
        scene.format(&[&format!("--nonsense={user}")]),
        scene.format(&["--add-scram-file", users, "-r", "3.4"]),
    ];
    for output in wrong {
        assert_ne!(status(&output), 0);
        assert!(!told(&output).contains("hush"), "{}", told(&output));
    }
    let output = scene.format(&["--add-scram-file", users, "--add-scram", user, "--output", "json"]);
    assert_eq!(status(&output), 0, "{}", told(&output));
    let said = told(&output);
    assert!(
        ["alice", "bob", "carol"].iter().all(|name| said.contains(name)) && !said.contains("hush"),
        "{said}"
    );
    let text = Scene::set();
    let output = text.format(&["--add-scram", user]);
    assert!(status(&output) == 0 && !told(&output).contains("hush"), "{}", told(&output));
}

#[test]
fn it_writes_nowhere_but_to_its_directories_and_needs_nothing_of_its_surroundings() {
    let scene = Scene::set();
    let log = scene.path("strace");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-e", "trace=open,openat,creat,mkdir,rename,unlink,symlink,link", "-o"]).arg(&log);
    strace.arg(TOOL).args(["format", "-t", CLUSTER, "-s", "-c"]).arg(scene.path("server.properties"));
    // no home, no search path, no place for temporary files, no user of that number, and a folder that it can't write to
    let output = strace.env_clear().env("PATH", "/usr/bin:/bin").current_dir("/proc").output().unwrap();
    assert!(output.status.success(), "{}", told(&output));
    let log = fs::read_to_string(log).unwrap();
    let data = scene.path("data");
    let data = data.to_str().unwrap();
    let changes = |line: &&str| {
        ["O_CREAT", "O_WRONLY", "O_RDWR", "mkdir(", "rename(", "unlink(", "link("]
            .iter()
            .any(|sign| line.contains(sign))
    };
    let elsewhere: Vec<&str> = log.lines().filter(changes).filter(|line| !line.contains(data)).collect();
    assert_eq!(elsewhere, Vec::<&str>::new());
    assert!(log.lines().filter(changes).count() > 5, "{log}");
}

#[test]
fn of_several_at_once_one_writes() {
    for _ in 0..20 {
        let scene = Scene::set();
        let start = || {
            let mut command = scene.command("format", &["--cluster-id", CLUSTER, "--standalone"]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let running = [start(), start(), start(), start()];
        let statuses: Vec<i32> = running.map(|run| status(&run.wait_with_output().unwrap())).into();
        assert_eq!(statuses.iter().filter(|status| **status == 0).count(), 1, "{statuses:?}");
        // too late, or at the same moment
        assert!(statuses.iter().all(|status| [0, 4, 6].contains(status)), "{statuses:?}");
        assert_eq!(status(&scene.run("info", &[])), 0);
        assert!(!scene.path("data/meta.properties.tmp").exists());
    }
}

#[test]
fn a_directory_that_is_not_ours_to_write_is_told_with_owner_and_mode_before_anything_is_written() {
    let scene = Scene::with("log.dirs={DIR}/a,{DIR}/b");
    fs::create_dir(scene.path("a")).unwrap();
    fs::create_dir(scene.path("b")).unwrap();
    for (path, mode) in
        [(scene.path("a"), 0o777), (scene.path("b"), 0o755), (scene.folder.path().to_owned(), 0o755)]
    {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let output = if rustix::process::geteuid().is_root() {
        let mut other = scene.as_somebody_else();
        other
            .args(["format", "-t", CLUSTER, "-s", "-c"])
            .arg(scene.path("server.properties"))
            .output()
            .unwrap()
    } else {
        fs::set_permissions(scene.path("b"), fs::Permissions::from_mode(0o555)).unwrap();
        scene.format(&[])
    };
    assert_eq!(status(&output), 6, "{}", told(&output));
    let said = told(&output);
    for part in ["/b can't be written to", "mode 0", "it belongs to ", "we are "] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(fs::read_dir(scene.path("a")).unwrap().count(), 0);
}

#[test]
fn a_directory_that_is_not_ours_to_read_is_told_with_owner_and_mode() {
    let scene = Scene::set();
    fs::create_dir(scene.path("data")).unwrap();
    fs::set_permissions(scene.path("data"), fs::Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(scene.folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let mut tool =
        if rustix::process::geteuid().is_root() { scene.as_somebody_else() } else { Command::new(TOOL) };
    tool.args(["format", "-t", CLUSTER, "-s", "-c"]).arg(scene.path("server.properties"));
    let output = tool.output().unwrap();
    assert_eq!(status(&output), 6, "{}", told(&output));
    let said = told(&output);
    for part in ["/data", "Permission denied", "it belongs to ", "mode 0000", "we are "] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn one_place_is_formatted_once_however_it_is_written() {
    let scene = Scene::with(
        "log.dirs={DIR}/data,{DIR}/data/,{DIR}/link,{DIR}/x/../data\nmetadata.log.dir={DIR}/link/",
    );
    fs::create_dir(scene.path("data")).unwrap();
    symlink(scene.path("data"), scene.path("link")).unwrap();
    let output = scene.format(&[]);
    assert_eq!((status(&output), told(&output).lines().count()), (0, 1), "{}", told(&output));
    assert!(told(&output).contains("Formatting dynamic metadata voter directory"), "{}", told(&output));
    assert_eq!(status(&scene.run("info", &[])), 0);
}

#[test]
fn a_cluster_id_may_begin_with_a_dash_and_is_missed_where_it_was_forgotten() {
    let scene = Scene::set();
    let forgotten = scene.run("format", &["--cluster-id", "--standalone"]);
    assert_eq!(status(&forgotten), 2, "{}", told(&forgotten));
    assert!(told(&forgotten).contains("the id is missing"), "{}", told(&forgotten));
    assert_eq!(status(&scene.run("format", &["-t", "-rmdB0m4T4--Y4thlNXk4Q", "-s"])), 0);
    let meta = fs::read_to_string(scene.path("data/meta.properties")).unwrap();
    assert!(meta.contains("cluster.id=-rmdB0m4T4--Y4thlNXk4Q"), "{meta}");
}

/// The bootstrap state and the notes that `info` gives for a target software.
fn bootstrap(scene: &Scene, version: &str) -> (String, String) {
    let output = scene.run("info", &["--output", "json", "--kafka-version", version]);
    let info: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", told(&output)));
    (info["bootstrap"]["state"].as_str().unwrap().to_owned(), info["notes"].to_string())
}

#[test]
fn info_knows_the_states_that_a_controller_starts_from_and_what_fits_the_software() {
    let scene = Scene::set();
    scene.format(&[]);
    assert_eq!(bootstrap(&scene, "4.4"), ("zeroCheckpoint".into(), "[]".into()));
    let (_, notes) = bootstrap(&scene, "4.3");
    assert!(
        notes.contains("does not look for them") && notes.contains("metadata.version 33 (4.4-IV2)"),
        "{notes}"
    );

    let older = Scene::set();
    older.format(&["--kafka-version", "4.3"]);
    assert_eq!(bootstrap(&older, "4.3"), ("bootstrapAndZeroCheckpoint".into(), "[]".into()));
    assert_eq!(bootstrap(&older, "4.4").0, "bootstrapAndZeroCheckpoint");

    let fixed = Scene::with("controller.quorum.voters=1@localhost:9093");
    fixed.run("format", &["-t", CLUSTER, "--kafka-version", "4.2"]);
    assert_eq!(bootstrap(&fixed, "4.2"), ("bootstrapCheckpoint".into(), "[]".into()));
    fs::remove_file(fixed.path("data/bootstrap.checkpoint")).unwrap();
    let (state, notes) = bootstrap(&fixed, "4.2");
    assert!(state == "none" && notes.contains("no metadata records"), "{state} {notes}");
    fs::write(fixed.path("data/bootstrap.checkpoint"), "nonsense").unwrap();
    assert!(bootstrap(&fixed, "4.2").1.contains("no checkpoint that can be read"));
}

#[test]
fn info_explains_a_meta_properties_without_a_cluster() {
    let scene = Scene::set();
    fs::create_dir(scene.path("data")).unwrap();
    fs::write(scene.path("data/meta.properties"), "version=2\nnode.id=1\n").unwrap();
    let output = scene.run("info", &[]);
    assert_eq!(status(&output), 0, "{}", told(&output));
    assert!(
        told(&output).contains("has no cluster.id") && told(&output).contains("KIP-1262"),
        "{}",
        told(&output)
    );
}

#[test]
fn the_clusters_id_can_be_taken_from_the_running_cluster() {
    let kafka = Kafka::single("4.4.0", &["--release-version", "4.3"]);
    let broker = |more: &[&str]| {
        let scene = Scene::with("process.roles=broker\nnode.id=9\nlisteners=PLAINTEXT://localhost:9092");
        let output = scene.run("format", more);
        (scene, output)
    };
    for address in
        [["--bootstrap-server", &kafka.broker(1)], ["--bootstrap-controller", &kafka.controller(1)]]
    {
        let (scene, output) = broker(&address);
        assert_eq!(status(&output), 0, "{}", told(&output));
        let meta = fs::read_to_string(scene.path("data/meta.properties")).unwrap();
        assert!(meta.contains(&format!("cluster.id={}", kafka.cluster_id)), "{meta}");
    }
    let (scene, output) = broker(&["--bootstrap-server", &kafka.broker(1), "--cluster-id", "another"]);
    assert_eq!(status(&output), 5);
    assert!(
        told(&output).contains(&kafka.cluster_id) && told(&output).contains("another"),
        "{}",
        told(&output)
    );
    assert!(!exists(&scene.path("data")));
    // a controller that the cluster begins with has none to ask
    let output = Scene::set().run("format", &["--standalone", "--bootstrap-server", &kafka.broker(1)]);
    assert_eq!(status(&output), 3, "{}", told(&output));
    assert!(told(&output).contains("--cluster-id is missing"), "{}", told(&output));
    let (_, output) = broker(&[]);
    assert!(status(&output) == 3 && told(&output).contains("--bootstrap-server"), "{}", told(&output));
}

fn exists(path: &Path) -> bool {
    path.try_exists().unwrap()
}
