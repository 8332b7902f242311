//! Where the real parts stand; what is missing is fetched or built by `setup.sh`, the same as `make setup` calls.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn setup(args: &[&str]) -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/testbed/setup.sh");
    let output = Command::new(script).args(args).output().expect("bash is there");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "setup.sh {}: {said}", args.join(" "));
    String::from_utf8(output.stdout).expect("UTF-8").trim().to_owned()
}

fn part(make: &[&str], path: &[&str]) -> PathBuf {
    let _lock = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    setup(make);
    PathBuf::from(setup(path))
}

/// The folder with `etcd`, `kube-apiserver` and `kubectl`.
pub fn kubernetes() -> PathBuf {
    part(&["kubernetes"], &["path", "kubernetes"])
}

/// The folder of one Kafka version: its jars in `libs`, the oracle's classes in `oracle`.
pub fn kafka(version: &str) -> PathBuf {
    part(&["kafka", version], &["path", "kafka", version])
}

/// A folder in the cache for what the processes of this machine share.
pub fn shared(name: &str) -> PathBuf {
    let folder = PathBuf::from(setup(&["where"])).join(name);
    std::fs::create_dir_all(&folder).expect("the cache can be written");
    folder
}
