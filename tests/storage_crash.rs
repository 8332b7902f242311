//! Formats that are killed. strace ends the process at each system call that changes something, in turn; whatever is on
//! the disk then is read, and the same format is run once more: it must end where an undisturbed one does.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use kafka_features_operator::storage::checkpoint::{self, ZERO_CHECKPOINT};
use kafka_features_operator::storage::meta_properties::MetaProperties;
use tempfile::TempDir;

/// The system calls that change something on a disk, or make it last. `openat` is among them, since it makes files.
const CALLS: [&str; 9] =
    ["mkdir", "openat", "write", "fchmod", "fsync", "rename", "unlink", "flock", "exit_group"];

const CLUSTER: &str = "5L6g3nShT-eMCtK--X86sw";

/// A node, and how it is formatted.
struct Layout {
    name: &'static str,
    properties: &'static str,
    arguments: &'static [&'static str],
}

const LAYOUTS: [Layout; 4] = [
    Layout {
        name: "standalone on 4.4, three directories",
        properties: "process.roles=broker,controller\nlisteners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093\n\
                     controller.quorum.bootstrap.servers=localhost:9093\nlog.dirs={}/b,{}/deep/a,{}/c\n",
        arguments: &["--standalone"],
    },
    Layout {
        name: "static voters on 4.4, a metadata directory of its own",
        properties: "process.roles=controller\nlisteners=CONTROLLER://localhost:9093\n\
                     controller.quorum.voters=1@localhost:9093\nlog.dirs={}/b\nmetadata.log.dir={}/a\n",
        arguments: &["--release-version", "4.0"],
    },
    Layout {
        name: "standalone on 4.3",
        properties: "process.roles=controller\nlisteners=CONTROLLER://localhost:9093\n\
                     controller.quorum.bootstrap.servers=localhost:9093\nlog.dirs={}/a,{}/b\n",
        arguments: &["--standalone", "--kafka-version", "4.3"],
    },
    Layout {
        name: "a broker",
        properties: "process.roles=broker\nlisteners=PLAINTEXT://localhost:9092\n\
                     controller.quorum.bootstrap.servers=localhost:9093\nlog.dirs={}/a,{}/b\n",
        arguments: &[],
    },
];

/// A folder to format in.
struct Scene {
    folder: TempDir,
    arguments: Vec<String>,
}

impl Scene {
    fn of(layout: &Layout) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        fs::create_dir(&data).unwrap();
        let properties = layout.properties.replace("{}", data.to_str().unwrap());
        let config = folder.path().join("server.properties");
        fs::write(&config, format!("node.id=1\ncontroller.listener.names=CONTROLLER\n{properties}")).unwrap();
        let mut arguments: Vec<String> =
            ["format", "--cluster-id", CLUSTER, "--config", config.to_str().unwrap()]
                .map(String::from)
                .into();
        arguments.extend(layout.arguments.iter().map(ToString::to_string));
        Self { folder, arguments }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn run(&self) -> Output {
        Command::new(env!("CARGO_BIN_EXE_kafka-storage")).args(&self.arguments).output().unwrap()
    }

    /// Runs it under strace, which ends it when it begins a system call for the given time; whether it came that far.
    fn run_until(&self, call: &str, time: usize) -> bool {
        let output = self.strace(&["-e", &format!("inject={call}:signal=SIGKILL:when={time}")]);
        let killed = output.status.code().is_none();
        assert!(killed || output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        killed
    }

    fn strace(&self, options: &[&str]) -> Output {
        let mut strace = Command::new("strace");
        let log = self.folder.path().join("strace");
        strace.args(["-f", "-y", "-o", log.to_str().unwrap()]).args(options);
        strace.arg(env!("CARGO_BIN_EXE_kafka-storage")).args(&self.arguments);
        strace.output().expect("strace, which the set-up installs")
    }
}

/// Everything below a folder: files with mode and content, directories with mode. What differs from run to run (ids, times
/// and the checksums over them) is left out.
fn contents(folder: &Path) -> BTreeMap<String, String> {
    let mut contents = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            let content = if path.is_dir() {
                folders.push(path);
                "directory".to_owned()
            } else if name.ends_with(".checkpoint") {
                let read = checkpoint::read(&fs::read(&path).unwrap().into()).expect("a whole checkpoint");
                let voters: Vec<i32> = read.voters.iter().map(|(id, _)| *id).collect();
                format!("{:?} {voters:?} {:?} {}", read.kraft_version, read.levels, read.records)
            } else {
                let mut meta =
                    MetaProperties::parse(&fs::read(&path).unwrap()).expect("a whole meta.properties");
                assert!(meta.directory_id.take().is_some());
                format!("{meta:?}")
            };
            contents.insert(name, format!("{mode:o} {content}"));
        }
    }
    contents
}

/// Whether every formatted directory has all that its layout has, and the id that the voters were told.
fn assert_sound(scene: &Scene, whole: &BTreeMap<String, String>, at: &str) {
    let formatted = |name: &&String| name.ends_with("meta.properties");
    for meta in whole.keys().filter(formatted) {
        let place = scene.data().join(meta);
        if !place.exists() {
            continue;
        }
        let directory = place.parent().unwrap();
        let prefix = meta.strip_suffix("meta.properties").unwrap();
        for file in whole.keys().filter(|file| file.starts_with(prefix)) {
            assert!(scene.data().join(file).exists(), "{at}: {meta} is there, {file} is not");
        }
        if let Ok(bytes) = fs::read(directory.join(ZERO_CHECKPOINT)) {
            let read = checkpoint::read(&bytes.into()).unwrap();
            let own = MetaProperties::parse(&fs::read(&place).unwrap()).unwrap().directory_id;
            let told: Vec<_> = read.voters.into_iter().map(|(_, directory)| Some(directory)).collect();
            assert!(told.is_empty() || told == [own], "{at}: {told:?} {own:?}");
        }
    }
}

fn killed_at_every_call(layout: &Layout) -> usize {
    let undisturbed = Scene::of(layout);
    let output = undisturbed.run();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let whole = contents(&undisturbed.data());
    let mut points = 0;
    for call in CALLS {
        for time in 1.. {
            let scene = Scene::of(layout);
            let at = format!("{}, killed at {call} number {time}", layout.name);
            if !scene.run_until(call, time) {
                break;
            }
            points += 1;
            assert_sound(&scene, &whole, &at);
            let output = scene.run();
            let everything_was_done = output.status.code() == Some(4) && contents(&scene.data()) == whole;
            let told = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() || everything_was_done, "{at}: {told}");
            assert_eq!(contents(&scene.data()), whole, "{at}");
            assert_sound(&scene, &whole, &at);
        }
    }
    points
}

#[test]
fn whatever_call_it_dies_at_the_next_run_completes_it() {
    for layout in &LAYOUTS {
        let points = killed_at_every_call(layout);
        // the least that two directories take: each is made, locked, written and made to last
        assert!(points > 20, "{}: only {points} points", layout.name);
    }
}

#[test]
fn nothing_is_renamed_before_it_lasts_and_every_rename_is_made_to_last() {
    for layout in &LAYOUTS {
        let scene = Scene::of(layout);
        assert!(scene.strace(&["-e", "trace=rename,fsync,mkdir"]).status.success());
        let log = fs::read_to_string(scene.folder.path().join("strace")).unwrap();
        let calls: Vec<&str> =
            log.lines().filter_map(|line| line.split_once(' ').map(|(_, call)| call.trim())).collect();
        let synced = |path: &str, calls: &[&str]| {
            calls.iter().any(|call| call.starts_with("fsync(") && call.contains(&format!("<{path}>")))
        };
        let parent = |path: &str| Path::new(path).parent().unwrap().to_str().unwrap().to_owned();
        let quoted =
            |call: &str| -> Vec<String> { call.split('"').skip(1).step_by(2).map(str::to_owned).collect() };
        let (mut renames, mut marks) = (0, Vec::new());
        for (at, call) in calls.iter().enumerate() {
            if call.starts_with("mkdir(") && call.ends_with("= 0") {
                let made = &quoted(call)[0];
                assert!(synced(&parent(made), &calls[at..]), "{}: {made} does not last", layout.name);
            }
            if !call.starts_with("rename(") {
                continue;
            }
            renames += 1;
            let paths = quoted(call);
            assert!(synced(&paths[0], &calls[..at]), "{}: {call} before its content lasts", layout.name);
            assert!(synced(&parent(&paths[1]), &calls[at..]), "{}: {call} does not last", layout.name);
            if paths[1].ends_with("meta.properties") {
                marks.push(at);
            } else {
                assert!(
                    marks.is_empty(),
                    "{}: {call} after a directory was marked as formatted",
                    layout.name
                );
            }
        }
        assert!(renames >= 2 && marks.len() >= 2, "{}: {log}", layout.name);
    }
}
