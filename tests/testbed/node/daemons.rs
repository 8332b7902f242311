//! The node's daemons.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::keys::Keys;
use super::{ADDRESS, NAME, Node, Process, settings};

const ETCD: &str = "http://127.0.0.1:2379";
const ETCD_PEER: &str = "http://127.0.0.1:2380";
const SERVICE_RANGE: &str = "10.96.0.0/16";

/// A process that runs as long as the node, and how it is called.
pub(super) struct Daemon {
    pub(super) process: Process,
    call: Vec<String>,
}

impl Node {
    /// Writes what the daemons read.
    pub(super) fn prepare(&self) {
        for folder in ["keys", "logs", "network", "pod-logs", "volumes", "etcd"] {
            std::fs::create_dir(self.folder.join(folder)).expect("a folder");
        }
        super::set_mode(&self.folder.join("etcd"), 0o700);
        Keys::write(&self.keys());
        let write = |name: &str, text: &str| std::fs::write(self.folder.join(name), text).expect("a file");
        write("audit-policy.yaml", settings::AUDIT_POLICY);
        write("containerd.toml", &settings::containerd(&self.folder, &self.debian));
        write("network/pods.conflist", &settings::pod_network(&self.folder));
        write("resolv.conf", "nameserver 10.96.0.10\n");
        write("kubelet.yaml", &settings::kubelet(&self.folder, &self.keys()));
        write("kube-proxy.yaml", &settings::proxy(&self.keys()));
    }

    /// Lets a command find Debian's unpacked programs and their libraries.
    pub(super) fn set_paths(&self, command: &mut Command) {
        let debian = self.debian.display();
        let mut paths = format!("{debian}/usr/bin:{debian}/usr/sbin:{debian}/bin");
        if let Ok(path) = std::env::var("PATH") {
            paths = format!("{paths}:{path}");
        }
        command.env("PATH", format!("{paths}:/usr/sbin:/sbin"));
        let libraries = std::fs::read_dir(self.debian.join("usr/lib")).expect("libraries");
        let libraries = libraries.map(|entry| entry.expect("a folder").path().display().to_string());
        command.env("LD_LIBRARY_PATH", libraries.collect::<Vec<_>>().join(":"));
    }

    fn daemon(&mut self, name: &str, program: impl AsRef<Path>, args: &[String]) {
        let mut call = vec![program.as_ref().display().to_string()];
        call.extend_from_slice(args);
        let process = self.process(name, &call);
        self.daemons.push(Daemon { process, call });
    }

    fn process(&self, name: &str, call: &[String]) -> Process {
        let log = self.folder.join("logs").join(name);
        Process::start(name, "nsenter", log, |command| {
            command.args(self.guard.enter()).args(call);
            self.set_paths(command);
        })
    }

    fn position(&self, name: &str) -> usize {
        let position = self.daemons.iter().position(|daemon| daemon.process.name == name);
        position.unwrap_or_else(|| panic!("no {name}"))
    }

    /// A daemon by its program's name, such as `kubelet`; a test may stop or kill it, or read its log.
    pub fn daemon_named(&mut self, name: &str) -> &mut Process {
        let position = self.position(name);
        &mut self.daemons[position].process
    }

    /// Starts a daemon again that was stopped or killed.
    pub async fn start_again(&mut self, name: &str) {
        let position = self.position(name);
        self.daemons[position].process.kill();
        self.daemons[position].process = self.process(name, &self.daemons[position].call);
        self.wait_for_api_server().await;
    }

    fn kubernetes(&mut self, name: &str, args: &[String]) {
        self.daemon(name, self.bin.join(name), args);
    }

    fn key(&self, name: &str) -> String {
        self.keys().join(name).display().to_string()
    }

    pub(super) fn start_etcd(&mut self) {
        let args = [
            "--name=one".to_owned(),
            "--unsafe-no-fsync".to_owned(),
            format!("--data-dir={}", self.folder.join("etcd").display()),
            format!("--listen-client-urls={ETCD}"),
            format!("--advertise-client-urls={ETCD}"),
            format!("--listen-peer-urls={ETCD_PEER}"),
            format!("--initial-advertise-peer-urls={ETCD_PEER}"),
            format!("--initial-cluster=one={ETCD_PEER}"),
        ];
        self.daemon("etcd", self.bin.join("etcd"), &args);
    }

    pub(super) fn start_api_server(&mut self) {
        let args = [
            format!("--etcd-servers={ETCD}"),
            format!("--bind-address={ADDRESS}"),
            format!("--advertise-address={ADDRESS}"),
            "--secure-port=6443".to_owned(),
            format!("--tls-cert-file={}", self.key("kube-apiserver.crt")),
            format!("--tls-private-key-file={}", self.key("kube-apiserver.key")),
            format!("--client-ca-file={}", self.key("authority.crt")),
            format!("--kubelet-client-certificate={}", self.key("apiserver-kubelet-client.crt")),
            format!("--kubelet-client-key={}", self.key("apiserver-kubelet-client.key")),
            format!("--kubelet-certificate-authority={}", self.key("authority.crt")),
            "--kubelet-preferred-address-types=InternalIP".to_owned(),
            format!("--service-account-key-file={}", self.key("accounts.pub")),
            format!("--service-account-signing-key-file={}", self.key("accounts.key")),
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local".to_owned(),
            format!("--service-cluster-ip-range={SERVICE_RANGE}"),
            "--authorization-mode=Node,RBAC".to_owned(),
            "--enable-admission-plugins=NodeRestriction".to_owned(),
            "--enable-aggregator-routing=true".to_owned(),
            "--allow-privileged=true".to_owned(),
            "--profiling=false".to_owned(),
            "--shutdown-delay-duration=0s".to_owned(),
            format!("--audit-policy-file={}", self.folder.join("audit-policy.yaml").display()),
            format!("--audit-log-path={}", self.folder.join("audit.log").display()),
        ];
        self.kubernetes("kube-apiserver", &args);
    }

    pub(super) fn start_controllers(&mut self) {
        let args = [
            format!("--kubeconfig={}", self.key("kube-controller-manager.kubeconfig")),
            format!("--service-account-private-key-file={}", self.key("accounts.key")),
            format!("--root-ca-file={}", self.key("authority.crt")),
            format!("--cluster-signing-cert-file={}", self.key("authority.crt")),
            format!("--cluster-signing-key-file={}", self.key("authority.key")),
            "--use-service-account-credentials=true".to_owned(),
            "--allocate-node-cidrs=false".to_owned(),
            format!("--service-cluster-ip-range={SERVICE_RANGE}"),
            // by default it starts for four seconds longer, which it waits at its own limit of requests
            "--kube-api-qps=1000".to_owned(),
            "--kube-api-burst=1000".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
            "--leader-elect=false".to_owned(),
        ];
        self.kubernetes("kube-controller-manager", &args);
        let args = [
            format!("--kubeconfig={}", self.key("kube-scheduler.kubeconfig")),
            "--bind-address=127.0.0.1".to_owned(),
            "--leader-elect=false".to_owned(),
        ];
        self.kubernetes("kube-scheduler", &args);
    }

    /// Starts containerd, and waits until it answers.
    pub(super) fn start_containerd(&mut self) {
        let args = [format!("--config={}", self.folder.join("containerd.toml").display())];
        self.daemon("containerd", self.debian.join("usr/bin/containerd"), &args);
        let socket = self.socket();
        self.daemon_named("containerd").wait_until("listening", Duration::from_secs(30), |_| {
            std::os::unix::net::UnixStream::connect(&socket).is_ok()
        });
    }

    /// Starts the kubelet and the proxy.
    pub(super) fn start_kubelet(&mut self) {
        let args = [
            format!("--config={}", self.folder.join("kubelet.yaml").display()),
            format!("--kubeconfig={}", self.key("kubelet.kubeconfig")),
            format!("--root-dir={}", self.folder.join("kubelet").display()),
            format!("--cert-dir={}", self.folder.join("kubelet/pki").display()),
            format!("--hostname-override={NAME}"),
            format!("--node-ip={ADDRESS}"),
            "--node-labels=topology.kubernetes.io/zone=zone".to_owned(),
        ];
        self.kubernetes("kubelet", &args);
        let args = [format!("--config={}", self.folder.join("kube-proxy.yaml").display())];
        self.kubernetes("kube-proxy", &args);
    }
}
