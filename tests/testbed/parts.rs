//! Where the real parts stand; what is missing is fetched or built by `setup.sh`, the same as `make setup` calls.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

static KNOWN: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());

fn setup(args: &[&str]) -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/testbed/setup.sh");
    let output = Command::new(script).args(args).output().expect("bash is there");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "setup.sh {}: {said}", args.join(" "));
    String::from_utf8(output.stdout).expect("UTF-8").trim().to_owned()
}

/// Makes a part unless it is there, and tells where it stands; the script is asked once a process.
fn part(make: &[&str], path: &[&str]) -> PathBuf {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let name = path.join(" ");
    if let Some(folder) = known.get(&name) {
        return folder.clone();
    }
    setup(make);
    let folder = PathBuf::from(setup(path));
    known.insert(name, folder.clone());
    folder
}

/// The folder with `etcd`, `kube-apiserver`, `kubelet`, `kubectl` and so on.
pub fn kubernetes() -> PathBuf {
    part(&["kubernetes"], &["path", "kubernetes"])
}

/// The folder with `debian/`, where Debian's programs are unpacked, and the images that every node has.
pub fn node() -> PathBuf {
    part(&["node"], &["path", "node"])
}

/// The folder with `kafka.tar`, the image of one Kafka version.
pub fn image_kafka(version: &str) -> PathBuf {
    part(&["image-kafka", version], &["path", "image-kafka", version])
}

/// The folder with the jars of one Kafka version.
pub fn kafka(version: &str) -> PathBuf {
    part(&["kafka", version], &["path", "kafka", version])
}

/// The folder with the oracle's classes for one Kafka version.
pub fn oracle(version: &str) -> PathBuf {
    part(&["kafka", version], &["path", "oracle", version])
}

/// Every Kafka version that has a manifest, oldest first.
pub fn kafka_versions() -> Vec<String> {
    let manifests = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/testbed/kafka");
    let entries = std::fs::read_dir(manifests).expect("manifests");
    let mut versions: Vec<String> =
        entries.map(|entry| entry.expect("a manifest").file_name().into_string().expect("UTF-8")).collect();
    versions
        .sort_by_key(|version| version.split('.').map(|part| part.parse::<u32>().ok()).collect::<Vec<_>>());
    versions
}

/// A folder in the cache for what the processes of this machine share.
pub fn shared(name: &str) -> PathBuf {
    let folder = PathBuf::from(setup(&["where"])).join(name);
    std::fs::create_dir_all(&folder).expect("the cache can be written");
    folder
}
