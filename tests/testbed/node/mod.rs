//! A whole Kubernetes cluster of one node, with real pods: etcd, the API server, the controllers, the scheduler, a
//! kubelet on containerd, services and DNS, in a network namespace, a cgroup and a mount namespace of its own. The
//! API server and the pods are reached from the test by their addresses. It asks for root.

mod daemons;
mod guard;
mod images;
mod keys;
mod settings;
mod volumes;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Node as Worker;
use kube::api::Api;
use serde_json::Value;

use super::parts;
use super::process::Process;
use daemons::Daemon;
use guard::Guard;

/// The node's name and address.
pub const NAME: &str = "node";
pub const ADDRESS: &str = "10.201.0.2";
const SERVER: &str = "https://10.201.0.2:6443";
const POD_RANGE: &str = "10.244.0.0/24";
pub const NETWORK_NAMESPACE: &str = "kafka-features-node";
pub const CGROUP: &str = "kafka-features-node";
/// The host's end of the node's network.
pub const LINK: &str = "kf-node";

/// Holds the folder of the node that runs on this machine.
pub const CURRENT: &str = "/run/kafka-features-node/folder";

/// How long one step of the start may take.
const STEP: Duration = Duration::from_secs(90);

/// A running cluster; it ends with this value.
pub struct Node {
    bin: PathBuf,
    debian: PathBuf,
    folder: PathBuf,
    // in this order: the guard removes what the daemons have left
    daemons: Vec<Daemon>,
    guard: Guard,
}

impl Node {
    /// Starts a cluster with its DNS, and waits until it is ready. Only one runs on a machine at a time; the others
    /// wait for its end.
    pub async fn start() -> Self {
        let (bin, part) = (parts::kubernetes(), parts::node());
        let guard = Guard::start();
        let folder = guard.folder().to_owned();
        let mut node = Self { bin, debian: part.join("debian"), folder, daemons: Vec::new(), guard };
        node.prepare();
        node.start_etcd();
        node.start_containerd();
        node.start_api_server();
        let images = ["pause.tar", "coredns.tar"].map(|image| part.join(image));
        let import = images.map(|image| node.importing(&image).spawn().expect("ctr is there"));
        node.wait_for_api_server().await;
        node.start_controllers();
        for mut import in import {
            assert!(import.wait().expect("a child").success(), "can't import an image");
        }
        node.start_kubelet();
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/testbed/node/cluster.yaml");
        node.kubectl_ok(&["apply", "-f", manifest]);
        node.wait_for_worker().await;
        node.kubectl_ok(&["-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=90s"]);
        node
    }

    async fn wait_for_api_server(&mut self) {
        let client = self.client().await;
        let begun = Instant::now();
        loop {
            let request = http::Request::get("/readyz").body(Vec::new()).expect("a request");
            if client.request_text(request).await.is_ok() {
                return;
            }
            self.check(begun, "the API server is ready", &["etcd", "kube-apiserver"]);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn wait_for_worker(&mut self) {
        let workers = Api::<Worker>::all(self.client().await);
        let begun = Instant::now();
        loop {
            let worker = workers.get_opt(NAME).await.expect("an answer");
            let conditions = worker.and_then(|worker| worker.status?.conditions).unwrap_or_default();
            if conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True") {
                return;
            }
            self.check(begun, "the node is ready", &["kube-controller-manager", "kubelet", "kube-proxy"]);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Fails when one of these daemons has ended, or when a step takes too long.
    fn check(&mut self, begun: Instant, what: &str, daemons: &[&str]) {
        for name in daemons {
            let process = self.daemon_named(name);
            assert!(process.runs(), "{name} ended before {what}:\n{}", process.tail(30));
        }
        assert!(begun.elapsed() < STEP, "it took too long until {what}");
    }

    /// A client with all rights.
    pub async fn client(&self) -> kube::Client {
        self.client_from(&std::fs::read_to_string(self.kubeconfig()).expect("a kubeconfig")).await
    }

    /// A client that shows a token, such as one of a ServiceAccount.
    pub async fn client_with(&self, token: &str) -> kube::Client {
        self.client_from(&self.kubeconfig_for(token)).await
    }

    async fn client_from(&self, kubeconfig: &str) -> kube::Client {
        let kubeconfig = kube::config::Kubeconfig::from_yaml(kubeconfig).expect("a kubeconfig");
        let options = kube::config::KubeConfigOptions::default();
        let config =
            kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.expect("a configuration");
        kube::Client::try_from(config).expect("a client")
    }

    /// A kubeconfig file with all rights.
    pub fn kubeconfig(&self) -> PathBuf {
        self.keys().join("admin.kubeconfig")
    }

    /// The text of a kubeconfig for a token.
    pub fn kubeconfig_for(&self, token: &str) -> String {
        keys::kubeconfig(&self.keys(), &format!("token: \"{token}\""))
    }

    /// The real `kubectl`.
    pub fn kubectl(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.bin.join("kubectl"));
        // its cache of what the server knows would be shared by all clusters at this address
        command.env("KUBECONFIG", self.kubeconfig()).arg("--cache-dir").arg(self.folder.join("kubectl"));
        command.args(args);
        command
    }

    /// Runs `kubectl`, which must succeed, and returns its output.
    pub fn kubectl_ok(&self, args: &[&str]) -> String {
        let output = self.kubectl(args).output().expect("kubectl is there");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {}: {said}", args.join(" "));
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// A command that runs on the node: in its network and with its mounts.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new("nsenter");
        command.args(self.guard.enter()).arg(program.as_ref());
        self.set_paths(&mut command);
        command
    }

    /// Every request so far, a JSON event each.
    pub fn audit(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.join("audit.log")).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The process that removes what the node leaves.
    pub fn guard(&self) -> u32 {
        self.guard.id()
    }

    /// Where all of the node's files are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn keys(&self) -> PathBuf {
        self.folder.join("keys")
    }

    /// Stops everything and removes it; so does a drop.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        // those that depend on others first; all are waited for, so that none keeps the cgroup
        self.daemons.reverse();
        self.daemons.clear();
        self.guard.stop();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.end();
    }
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("a mode");
}
