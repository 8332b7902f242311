//! Images on the node. There are no pulls: a container names an image that was imported, with `imagePullPolicy: Never`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Node, parts};

impl Node {
    pub(super) fn socket(&self) -> PathBuf {
        self.folder.join("containerd.sock")
    }

    /// containerd's own client, on the images and containers of Kubernetes.
    pub fn ctr(&self) -> Command {
        let mut command = Command::new(self.debian.join("usr/bin/ctr"));
        command.arg("--address").arg(self.socket()).args(["--namespace", "k8s.io"]);
        self.set_paths(&mut command);
        command
    }

    pub(super) fn importing(&self, image: &Path) -> Command {
        let mut command = self.ctr();
        command.args(["images", "import", "--snapshotter", "overlayfs"]).arg(image).stdout(Stdio::null());
        command
    }

    /// Imports an image from an OCI layout in a tar.
    pub fn import(&self, image: &Path) {
        let output = self.importing(image).output().expect("ctr is there");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "can't import {}: {said}", image.display());
    }

    /// Imports the image of a Kafka version, and returns its name.
    pub fn import_kafka(&self, version: &str) -> String {
        self.import(&parts::image_kafka(version).join("kafka.tar"));
        format!("localhost/kafka:{version}")
    }

    /// Imports an image of one layer, made from a folder. The name needs a domain, such as `localhost/name:1`.
    pub fn build_image(&self, name: &str, root: &Path, cmd: &[&str], env: &[(&str, &str)], user: &str) {
        let image = tempfile::Builder::new().prefix("image-").suffix(".tar").tempfile_in(&self.folder);
        let image = image.expect("a file").into_temp_path();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/testbed/image.sh");
        let mut command = Command::new(script);
        command.arg(&image).args([name, "--user", user, "--layer"]).arg(root);
        for (variable, value) in env {
            command.args(["--env", &format!("{variable}={value}")]);
        }
        let output = command.arg("--").args(cmd).output().expect("bash is there");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "can't make the image {name}: {said}");
        self.import(&image);
    }
}
