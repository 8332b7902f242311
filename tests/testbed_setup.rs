//! The testbed's set-up: it says what is missing in one line, and takes nothing half made for whole. The tools that it
//! calls are stood in for by scripts, so that nothing is fetched.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/testbed/setup.sh");
/// What the script may take for granted.
const ORDINARY: [&str; 17] = [
    "awk",
    "basename",
    "bash",
    "cat",
    "cut",
    "dirname",
    "ls",
    "mkdir",
    "mv",
    "nice",
    "realpath",
    "rm",
    "sed",
    "sha256sum",
    "sleep",
    "tail",
    "touch",
];

struct Machine {
    folder: tempfile::TempDir,
}

impl Machine {
    /// One that has the ordinary tools, and all that the set-up asks for.
    fn new() -> Self {
        let machine = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir(machine.bin()).unwrap();
        for tool in ORDINARY.iter().chain(&["flock", "setpriv"]) {
            let paths = std::env::var("PATH").unwrap();
            let found = std::env::split_paths(&paths).map(|path| path.join(tool)).find(|path| path.exists());
            symlink(found.unwrap_or_else(|| panic!("no {tool}")), machine.bin().join(tool)).unwrap();
        }
        machine.install("java", "echo 'openjdk version \"17.0.15\" 2025-04-15' >&2");
        machine.install("id", "echo 0");
        for tool in ["apt-get", "cargo", "dpkg", "find", "go", "ip", "javac", "jlink", "ldd", "mvn"] {
            machine.install(tool, "");
        }
        for tool in ["nsenter", "tar", "unshare"] {
            machine.install(tool, "");
        }
        machine
    }

    fn bin(&self) -> PathBuf {
        self.folder.path().join("bin")
    }

    fn install(&self, tool: &str, script: &str) {
        let path = self.bin().join(tool);
        std::fs::write(&path, format!("#!{}/bash\n{script}\n", self.bin().display())).unwrap();
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }

    fn remove(&self, tool: &str) {
        std::fs::remove_file(self.bin().join(tool)).unwrap();
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(SCRIPT);
        command.args(args).env("PATH", self.bin());
        command.env("KAFKA_FEATURES_CACHE", self.folder.path().join("cache"));
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Where a part is to stand.
    fn part(&self, args: &[&str]) -> PathBuf {
        let path = self.run(&[&["path"], args].concat());
        PathBuf::from(String::from_utf8(path.stdout).unwrap().trim())
    }
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn count(file: &Path) -> usize {
    std::fs::read_to_string(file).map_or(0, |text| text.lines().count())
}

#[test]
fn each_missing_prerequisite_is_one_line_and_nothing_is_begun() {
    for (tool, remedy) in [
        ("go", "install Go 1.26.0 or newer"),
        ("java", "install a Java runtime, 17 to 23"),
        ("javac", "install a JDK, 17 to 23"),
        ("mvn", "install Maven 3.8 or newer"),
        ("cargo", "install Rust 1.89 or newer, by rustup"),
        ("setpriv", "install util-linux"),
    ] {
        for wanted in ["all", "demo"] {
            let machine = Machine::new();
            machine.remove(tool);
            let output = machine.run(&[wanted]);
            assert_eq!(output.status.code(), Some(1), "{tool}");
            assert_eq!(said(&output), format!("setup: {tool} is missing: {remedy}\n"));
            assert!(!machine.folder.path().join("cache").exists(), "{tool}");
        }
    }
}

#[test]
fn what_a_node_needs_is_named_in_one_line_before_anything_is_begun() {
    for (tool, remedy) in [
        ("go", "install Go 1.26.0 or newer"),
        ("apt-get", "install apt, on Debian or what derives from it"),
        ("dpkg", "install dpkg, on Debian or what derives from it"),
        ("ip", "install iproute2"),
        ("nsenter", "install util-linux"),
        ("unshare", "install util-linux"),
        ("tar", "install GNU tar"),
        ("find", "install findutils"),
        ("jlink", "install a JDK, 17 to 23, with its jmods"),
        ("ldd", "install libc-bin"),
    ] {
        for wanted in [&["all"][..], &["node"], &["image-kafka", "4.4.0"]] {
            if wanted == ["node"] && ["jlink", "ldd"].contains(&tool) {
                continue;
            }
            let machine = Machine::new();
            machine.remove(tool);
            let output = machine.run(wanted);
            assert_eq!(output.status.code(), Some(1), "{tool}");
            assert_eq!(said(&output), format!("setup: {tool} is missing: {remedy}\n"));
            assert!(!machine.folder.path().join("cache").exists(), "{tool}");
        }
    }
}

#[test]
fn a_node_asks_for_root() {
    let machine = Machine::new();
    machine.install("id", "echo 1000");
    let output = machine.run(&["node"]);
    assert_eq!(output.status.code(), Some(1));
    let why = "a node makes network namespaces and cgroups, run this as root";
    assert_eq!(said(&output), format!("setup: root is missing: {why}\n"));
}

#[test]
fn a_java_that_has_no_security_manager_is_named() {
    let machine = Machine::new();
    machine.install("java", "echo 'openjdk version \"25\" 2025-09-16' >&2");
    let output = machine.run(&["kafka", "4.4.0"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(said(&output), "setup: java is of version 25: install a JDK, 17 to 23\n");
}

#[test]
fn a_part_that_failed_or_was_killed_half_way_is_not_taken_for_whole_and_is_made_anew() {
    let machine = Machine::new();
    let out = "out=${!#}; out=${out#-DoutputDirectory=}";
    machine.install("mvn", &format!("{out}; touch $out/half.jar; echo no such artifact; exit 1"));
    let output = machine.run(&["kafka", "4.4.0"]);
    let part = machine.part(&["kafka", "4.4.0"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("no such artifact"), "{}", said(&output));
    assert!(!part.exists());

    machine.install("mvn", &format!("{out}; touch $out/half.jar; kill -KILL $PPID; sleep 1"));
    assert!(!machine.run(&["kafka", "4.4.0"]).status.success());
    assert!(!part.exists());

    machine.install("mvn", &format!("{out}; touch $out/whole.jar"));
    let output = machine.run(&["kafka", "4.4.0"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(part.join("whole.jar").exists() && !part.join("half.jar").exists());
}

#[test]
fn two_at_once_make_a_part_once_and_a_third_finds_it() {
    let machine = Machine::new();
    let calls = machine.folder.path().join("calls");
    machine.install("mvn", &format!("echo call >> {}; sleep 0.3", calls.display()));
    let mut two = [(); 2].map(|()| machine.command(&["kafka", "4.4.0"]).spawn().unwrap());
    assert!(two.each_mut().map(|run| run.wait().unwrap().success()).iter().all(|success| *success));
    assert_eq!(said(&machine.run(&["kafka", "4.4.0"])), "");
    assert_eq!(count(&calls), 1);
}

#[test]
fn a_version_without_a_manifest_is_refused() {
    let output = Machine::new().run(&["kafka", "9.9.9"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(said(&output), "setup: there is no manifest for Kafka 9.9.9 in tests/testbed/kafka/\n");
}

#[test]
fn the_same_folders_make_the_same_image_and_any_string_survives() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    std::fs::create_dir(&root).unwrap();
    std::fs::write(root.join("file"), "text").unwrap();
    let make = |name: &str| {
        let out = folder.path().join(name);
        let mut command = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/testbed/image.sh"));
        command.arg(&out).args(["localhost/name:1", "--user", "1000", "--layer"]).arg(&root);
        command.args(["--env", r#"NAME=a "b" \c"#, "--", "sh", "-c", r#"echo "\n""#]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        std::fs::read(out).unwrap()
    };
    let image = make("one.tar");
    assert_eq!(image, make("two.tar"));
    let text = String::from_utf8_lossy(&image);
    let config =
        text.lines().find_map(|line| line.find(r#"{"created""#).map(|start| &line[start..])).unwrap();
    let mut config = serde_json::Deserializer::from_str(config).into_iter::<serde_json::Value>();
    let config = config.next().unwrap().unwrap();
    assert_eq!(config["config"]["Cmd"], serde_json::json!(["sh", "-c", r#"echo "\n""#]));
    assert_eq!(config["config"]["Env"][1], r#"NAME=a "b" \c"#);
    assert_eq!(config["config"]["User"], "1000");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
}
