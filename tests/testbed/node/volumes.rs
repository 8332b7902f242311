//! Local volumes on the node: PersistentVolumes of the storage class `local`.

use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::PersistentVolume;
use kube::api::{Api, PostParams};
use serde_json::json;

use super::{NAME, Node};

impl Node {
    /// Makes a volume that is a folder, and returns the folder, which a test may look into or wipe. `claim` is the
    /// namespace and name of the claim that it's kept for.
    pub async fn pv(&self, name: &str, claim: Option<(&str, &str)>) -> PathBuf {
        let folder = self.volume(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        super::set_mode(&folder, 0o777);
        self.create_pv(name, claim).await;
        folder
    }

    /// The same with a file system of its own, in memory, of a size such as `1m`, so that it can be full or read-only.
    /// The folder returned is one that the test sees it at.
    pub async fn pv_of_size(&self, name: &str, claim: Option<(&str, &str)>, size: &str) -> PathBuf {
        let folder = self.volume(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        self.mount(&format!("size={size},mode=777"), &folder);
        self.create_pv(name, claim).await;
        self.guard.root().join(folder.strip_prefix("/").expect("an absolute path"))
    }

    /// Makes a volume of [`Node::pv_of_size`] read-only, or writable again. It fails while a file of it is open for
    /// writing.
    pub fn set_read_only(&self, name: &str, read_only: bool) {
        self.mount(if read_only { "remount,ro" } else { "remount,rw" }, &self.volume(name));
    }

    fn volume(&self, name: &str) -> PathBuf {
        self.folder.join("volumes").join(name)
    }

    fn mount(&self, options: &str, folder: &Path) {
        let mut command = self.command("mount");
        command.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(folder);
        let output = command.output().expect("mount is there");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "mount -o {options}: {said}");
    }

    async fn create_pv(&self, name: &str, claim: Option<(&str, &str)>) {
        let here = json!({ "key": "kubernetes.io/hostname", "operator": "In", "values": [NAME] });
        let mut volume = json!({
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": { "name": name },
            "spec": {
                "capacity": { "storage": "1Gi" },
                "accessModes": ["ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": "local",
                "local": { "path": self.volume(name) },
                "nodeAffinity": { "required": { "nodeSelectorTerms": [{ "matchExpressions": [here] }] } },
            },
        });
        if let Some((namespace, name)) = claim {
            volume["spec"]["claimRef"] = json!({
                "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": name,
            });
        }
        let volume: PersistentVolume = serde_json::from_value(volume).expect("a volume");
        let volumes = Api::<PersistentVolume>::all(self.client().await);
        volumes.create(&PostParams::default(), &volume).await.expect("the volume is made");
    }
}
