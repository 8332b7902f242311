//! What formats find, write and leave alone, on real folders.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tempfile::TempDir;

use super::*;
use crate::storage::checkpoint;
use crate::storage::directory::{State, survey};

struct Scene {
    folder: TempDir,
    request: FormatRequest,
}

/// A controller and broker in a dynamic quorum of its own, with two directories.
fn scene() -> Scene {
    scene_with(&["controller.quorum.bootstrap.servers=localhost:9093"])
}

fn scene_with(more: &[&str]) -> Scene {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display();
    let text = format!(
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n\
         listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093\nlog.dirs={path}/a,{path}/b\n{}\n",
        more.join("\n")
    );
    let properties = crate::storage::properties::Properties::parse(text.as_bytes()).unwrap();
    let request = FormatRequest {
        config: ServerConfig::read(&properties).unwrap(),
        software: Software::of("4.4").unwrap(),
        cluster_id: Some("cluster-a".into()),
        release: None,
        features: Vec::new(),
        quorum: InitialQuorum::Standalone,
        directory_id: None,
        scram: Vec::new(),
        ignore_formatted: false,
    };
    Scene { folder, request }
}

impl Scene {
    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn format(&self) -> Result<FormatRecord, Vec<Fault>> {
        let format = self.request.prepare()?;
        format.write().map_err(|fault| vec![fault])?;
        Ok(format.record().clone())
    }

    fn faults(&self) -> Vec<FaultKind> {
        self.request.prepare().unwrap_err().iter().map(Fault::kind).collect()
    }

    fn meta(&self, name: &str) -> MetaProperties {
        let path = self.path(name);
        let State::Formatted(meta) = survey([path.as_path()]).remove(0).state else { panic!("{name}") };
        meta
    }
}

/// Every file below a folder, by path.
fn files(folder: &Path) -> Vec<String> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            files.extend(self::files(&path).into_iter().map(|below| format!("{name}/{below}")));
        } else {
            files.push(name);
        }
    }
    files.sort();
    files
}

#[test]
fn each_layout_puts_the_first_records_in_one_place() {
    let scene = scene();
    scene.format().unwrap();
    let zero = format!("a/{ZERO_CHECKPOINT}");
    assert_eq!(files(scene.folder.path()), [zero.as_str(), "a/meta.properties", "b/meta.properties"]);
    let mode = fs::metadata(scene.path(&zero)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o400);
    let read = checkpoint::read(&fs::read(scene.path(&zero)).unwrap().into()).unwrap();
    let own = scene.meta("a").directory_id.unwrap();
    assert_eq!((read.voters, read.kraft_version, read.records), (vec![(1, own)], Some(1), 6));
    assert_ne!(scene.meta("b").directory_id, Some(own));

    let mut older = self::scene();
    older.request.software = Software::of("4.3").unwrap();
    older.format().unwrap();
    let expected =
        [&zero, "a/bootstrap.checkpoint", "a/meta.properties", "b/bootstrap.checkpoint", "b/meta.properties"];
    assert_eq!(files(older.folder.path()), expected);
    let read = checkpoint::read(&fs::read(older.path(&zero)).unwrap().into()).unwrap();
    assert_eq!((read.records, read.voters.len()), (0, 1));
}

#[test]
fn an_old_bootstrap_checkpoint_goes() {
    let scene = scene();
    fs::create_dir(scene.path("a")).unwrap();
    fs::write(scene.path("a/bootstrap.checkpoint"), "old").unwrap();
    scene.format().unwrap();
    assert!(!scene.path("a/bootstrap.checkpoint").exists());
}

#[test]
fn a_log_that_has_begun_keeps_its_checkpoints_and_is_told_of() {
    let mut scene = scene();
    scene.request.software = Software::of("4.3").unwrap();
    scene.request.quorum = InitialQuorum::NoInitialControllers;
    let zero = scene.path("a").join(ZERO_CHECKPOINT);
    fs::create_dir_all(zero.parent().unwrap()).unwrap();
    fs::write(&zero, "the voters").unwrap();
    fs::write(zero.with_file_name("00000000000000000000.log"), "a batch").unwrap();
    let record = scene.format().unwrap();
    assert_eq!(fs::read_to_string(&zero).unwrap(), "the voters");
    assert!(record.warnings[0].contains("may have been lost"), "{record:?}");

    let mut fresh = self::scene();
    fresh.request.software = Software::of("4.3").unwrap();
    fresh.request.quorum = InitialQuorum::NoInitialControllers;
    let zero = fresh.path("a").join(ZERO_CHECKPOINT);
    fs::create_dir_all(zero.parent().unwrap()).unwrap();
    fs::write(&zero, "of another layout").unwrap();
    fresh.format().unwrap();
    assert!(!zero.exists(), "nothing may be read that was not written now");
}

#[test]
fn everything_that_is_wrong_is_found_before_anything_is_written() {
    let mut scene = scene_with(&["controller.quorum.voters=1@localhost:9093"]);
    scene.request.features = vec!["nonsense=1".into(), "share.version=9".into()];
    scene.request.scram = vec![SecretString::from("SCRAM-SHA-256=[name=a]")];
    fs::create_dir(scene.path("b")).unwrap();
    fs::write(scene.path("b/meta.properties"), "version=1\nnode.id=2\ncluster.id=other\n").unwrap();
    let faults = scene.request.prepare().unwrap_err();
    let told: Vec<String> = faults.iter().map(ToString::to_string).collect();
    let told = told.join("\n");
    for part in [
        "--standalone makes it dynamic",
        "\"nonsense\"",
        "share.version 9",
        "'password'",
        "\"other\"",
        "node 2",
        "already formatted",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
    assert_eq!(files(scene.folder.path()), ["b/meta.properties"]);
}

#[test]
fn a_directory_of_another_cluster_or_node_or_a_copy_is_not_touched() {
    let mut scene = scene();
    scene.request.ignore_formatted = true;
    fs::create_dir(scene.path("b")).unwrap();
    let wrong = [
        "version=1\nnode.id=1\ncluster.id=other\n",
        "version=1\nnode.id=2\ncluster.id=cluster-a\n",
        "version=1\nnode.id=1\ncluster.id=cluster-a\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAQ\n",
    ];
    for text in wrong {
        fs::write(scene.path("b/meta.properties"), text).unwrap();
        assert_eq!(scene.faults(), [FaultKind::Identity], "{text}");
    }
    fs::create_dir(scene.path("a")).unwrap();
    let same = "version=1\nnode.id=1\ncluster.id=cluster-a\ndirectory.id=JEXY6aqzQY-32P5TStzaFg\n";
    for name in ["a", "b"] {
        fs::write(scene.path(name).join("meta.properties"), same).unwrap();
    }
    assert_eq!(scene.faults(), [FaultKind::Identity]);
}

#[test]
fn formatted_directories_are_a_fault_or_left_alone() {
    let mut scene = scene();
    scene.format().unwrap();
    let before = fs::read_to_string(scene.path("a/meta.properties")).unwrap();
    assert_eq!(scene.faults(), [FaultKind::AlreadyFormatted; 2]);
    scene.request.ignore_formatted = true;
    assert!(scene.format().unwrap().formatted.is_empty());
    fs::remove_dir_all(scene.path("b")).unwrap();
    let record = scene.format().unwrap();
    assert_eq!((record.formatted.len(), record.already_formatted.len()), (1, 1));
    assert_eq!(fs::read_to_string(scene.path("a/meta.properties")).unwrap(), before);
}

#[test]
fn an_interrupted_format_is_completed_by_the_same_one_and_by_no_other() {
    let mut scene = scene();
    scene.format().unwrap();
    // as if it had ended between the two renames
    fs::rename(scene.path("b/meta.properties"), scene.path("b/meta.properties.tmp")).unwrap();
    scene.request.cluster_id = Some("cluster-b".into());
    assert!(scene.faults().contains(&FaultKind::AlreadyFormatted));
    scene.request.cluster_id = Some("cluster-a".into());
    let record = scene.format().unwrap();
    assert_eq!(record.formatted[0].path, scene.path("b").display().to_string());
    assert_eq!(scene.meta("b").cluster_id.as_deref(), Some("cluster-a"));
    assert!(!scene.path("b/meta.properties.tmp").exists());
}

#[test]
fn a_directory_that_can_not_be_read_is_left_alone_while_others_are_there() {
    let scene = scene();
    fs::write(scene.path("b"), "").unwrap();
    let record = scene.format().unwrap();
    assert_eq!((record.formatted.len(), record.unreadable.len()), (1, 1));
    fs::remove_dir_all(scene.path("a")).unwrap();
    fs::write(scene.path("a"), "").unwrap();
    assert_eq!(scene.faults(), [FaultKind::Disk]);
}

#[test]
fn only_one_can_write_at_a_time() {
    let scene = scene();
    let format = scene.request.prepare().unwrap();
    fs::create_dir(scene.path("b")).unwrap();
    let held = fs::File::open(scene.path("b")).unwrap();
    rustix::fs::flock(&held, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
    assert!(matches!(format.write(), Err(Fault::Busy(_))));
    drop(held);
    // another was faster
    fs::write(scene.path("b/meta.properties"), "").unwrap();
    assert!(matches!(format.write(), Err(Fault::Overtaken(_))));
    assert_eq!(files(scene.folder.path()), ["b/meta.properties"]);
}

#[test]
fn the_cluster_id_is_needed_wherever_the_software_can_not_learn_it() {
    let mut scene = scene();
    scene.request.cluster_id = None;
    assert_eq!(scene.faults(), [FaultKind::Configuration]);
    scene.request.quorum = InitialQuorum::NoInitialControllers;
    assert_eq!(scene.faults(), [FaultKind::Configuration]);
    scene.request.software = Software::of("kip-1262-draft").unwrap();
    scene.format().unwrap();
    assert_eq!((scene.meta("a").version, scene.meta("a").cluster_id), (2, None));
}

#[test]
fn the_draft_has_its_record_from_its_level_on_and_no_release_has_it() {
    let records = |software: &str, release: &str| {
        let mut scene = scene();
        scene.request.software = Software::of(software).unwrap();
        scene.request.release = Some(release.into());
        scene.format().unwrap();
        checkpoint::read(&fs::read(scene.path("a").join(ZERO_CHECKPOINT)).unwrap().into()).unwrap().records
    };
    assert_eq!(records("4.4", "4.4"), 6);
    assert_eq!(records("kip-1262-draft", "4.4"), 7);
    assert_eq!(records("kip-1262-draft", "4.4-IV1"), 6);
}

#[test]
fn secrets_are_in_no_record_and_no_debug() {
    let mut scene = scene();
    scene.request.scram = vec![SecretString::from("SCRAM-SHA-256=[name=alice,password=hush]")];
    assert!(!format!("{:?}", scene.request).contains("hush"));
    let record = scene.format().unwrap();
    let told = format!("{record:?} {}", serde_json::to_string(&record).unwrap());
    assert!(told.contains("alice") && !told.contains("hush"), "{told}");
    scene.request.release = Some("3.5-IV1".into());
    assert_eq!(scene.faults()[0], FaultKind::Configuration);
}
