//! A real API server with its etcd, RBAC and admission on, and an audit log that tests count requests in.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::parts;
use super::ports::Port;
use super::process::Process;

const ADMIN_TOKEN: &str = "testbed-admin";

const AUDIT_POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
";

/// An API server; it ends with this value.
pub struct ApiServer {
    folder: tempfile::TempDir,
    port: Port,
    bin: PathBuf,
    etcd_address: String,
    api: Option<Process>,
    _etcd: Process,
    _etcd_ports: [Port; 2],
}

impl ApiServer {
    /// Starts etcd and the API server, and waits until it is ready.
    pub async fn start() -> Self {
        let bin = parts::kubernetes();
        let folder = tempfile::Builder::new().prefix("api-server-").tempdir().expect("a folder");
        let etcd_ports = [Port::lease(), Port::lease()];
        let [client, peer] = etcd_ports.each_ref().map(|port| format!("http://{}", port.address()));
        let etcd = Process::start("etcd", bin.join("etcd"), folder.path().join("etcd.log"), |command| {
            command
                .arg("--data-dir")
                .arg(folder.path().join("etcd"))
                .args(["--name=one", "--unsafe-no-fsync"]);
            command.args([
                format!("--listen-client-urls={client}"),
                format!("--advertise-client-urls={client}"),
            ]);
            command.args([
                format!("--listen-peer-urls={peer}"),
                format!("--initial-advertise-peer-urls={peer}"),
            ]);
            command.arg(format!("--initial-cluster=one={peer}"));
        });
        write_keys(folder.path());
        let mut server = Self {
            port: Port::lease(),
            bin,
            etcd_address: client,
            api: None,
            _etcd: etcd,
            _etcd_ports: etcd_ports,
            folder,
        };
        server.write_kubeconfig();
        server.launch().await;
        server
    }

    /// Stops the API server and starts it again; etcd stays.
    pub async fn restart(&mut self) {
        if let Some(api) = &mut self.api {
            api.stop();
        }
        self.launch().await;
    }

    /// Stops the API server.
    pub fn stop(&mut self) {
        if let Some(api) = &mut self.api {
            api.stop();
        }
    }

    /// Kills the API server; unlike one that is stopped, it doesn't wait for those who watch.
    pub fn kill(&mut self) {
        if let Some(api) = &mut self.api {
            api.kill();
        }
    }

    /// Starts a stopped API server.
    pub async fn launch(&mut self) {
        let at = |name: &str| self.folder.path().join(name).display().to_string();
        let log = self.folder.path().join("kube-apiserver.log");
        let api = Process::start("kube-apiserver", self.bin.join("kube-apiserver"), log, |command| {
            command.args([
                format!("--etcd-servers={}", self.etcd_address),
                "--bind-address=127.0.0.1".to_owned(),
                "--advertise-address=127.0.0.1".to_owned(),
                format!("--secure-port={}", self.port.number),
                format!("--tls-cert-file={}", at("server.crt")),
                format!("--tls-private-key-file={}", at("server.key")),
                format!("--token-auth-file={}", at("tokens.csv")),
                format!("--service-account-key-file={}", at("accounts.pub")),
                format!("--service-account-signing-key-file={}", at("accounts.key")),
                "--service-account-issuer=https://kubernetes.default.svc.cluster.local".to_owned(),
                "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
                "--authorization-mode=Node,RBAC".to_owned(),
                "--enable-admission-plugins=NodeRestriction".to_owned(),
                "--profiling=false".to_owned(),
                "--shutdown-delay-duration=0s".to_owned(),
                "--endpoint-reconciler-type=none".to_owned(),
                format!("--audit-policy-file={}", at("audit-policy.yaml")),
                format!("--audit-log-path={}", at("audit.log")),
            ]);
        });
        self.api = Some(api);
        self.wait_ready().await;
    }

    async fn wait_ready(&mut self) {
        let client = self.client().await;
        let begun = Instant::now();
        loop {
            let request = http::Request::get("/readyz").body(Vec::new()).expect("a request");
            if client.request_text(request).await.is_ok() {
                return;
            }
            let api = self.api.as_mut().expect("started");
            let ended = !api.runs();
            assert!(
                !ended && begun.elapsed() < Duration::from_secs(60),
                "the API server did not become ready:\n{}",
                api.tail(30)
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// A client with all rights.
    pub async fn client(&self) -> kube::Client {
        self.client_with(ADMIN_TOKEN).await
    }

    /// A client that shows a token, such as one of a ServiceAccount.
    pub async fn client_with(&self, token: &str) -> kube::Client {
        let kubeconfig =
            kube::config::Kubeconfig::from_yaml(&self.kubeconfig_for(token)).expect("a kubeconfig");
        let options = kube::config::KubeConfigOptions::default();
        let config =
            kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.expect("a configuration");
        kube::Client::try_from(config).expect("a client")
    }

    /// A kubeconfig file with all rights.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// The text of a kubeconfig for a token.
    pub fn kubeconfig_for(&self, token: &str) -> String {
        self.kubeconfig_by(&format!("https://{}", self.port.address()), token)
    }

    /// The same for another way to the server.
    pub fn kubeconfig_by(&self, server: &str, token: &str) -> String {
        let authority = self.folder.path().join("authority.crt").display().to_string();
        let mut text = String::from("apiVersion: v1\nkind: Config\ncurrent-context: testbed\n");
        let _ = writeln!(
            text,
            "clusters: [{{name: testbed, cluster: {{server: \"{server}\", certificate-authority: \"{authority}\"}}}}]"
        );
        let _ = writeln!(text, "users: [{{name: testbed, user: {{token: \"{token}\"}}}}]");
        text.push_str("contexts: [{name: testbed, context: {cluster: testbed, user: testbed}}]\n");
        text
    }

    fn write_kubeconfig(&self) {
        std::fs::write(self.kubeconfig(), self.kubeconfig_for(ADMIN_TOKEN)).expect("a file");
    }

    /// The real `kubectl`.
    pub fn kubectl(&self) -> std::process::Command {
        let mut command = std::process::Command::new(self.bin.join("kubectl"));
        command.env("KUBECONFIG", self.kubeconfig());
        command
    }

    /// Every request so far, a JSON event each.
    pub fn audit(&self) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(self.folder.path().join("audit.log")).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }
}

/// An authority, the server's certificate, the key that signs ServiceAccount tokens, and the files that need no more.
fn write_keys(folder: &Path) {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
    let write = |name: &str, text: String| std::fs::write(folder.join(name), text).expect("a file");
    let authority_key = KeyPair::generate().expect("a key");
    let mut authority = CertificateParams::new(Vec::new()).expect("parameters");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    write("authority.crt", authority.self_signed(&authority_key).expect("a certificate").pem());
    let issuer = Issuer::new(authority, authority_key);
    let names = ["127.0.0.1", "localhost", "kubernetes.default.svc"].map(str::to_owned);
    let server_key = KeyPair::generate().expect("a key");
    let server = CertificateParams::new(names).expect("parameters").signed_by(&server_key, &issuer);
    write("server.crt", server.expect("a certificate").pem());
    write("server.key", server_key.serialize_pem());
    let accounts = KeyPair::generate().expect("a key");
    write("accounts.key", accounts.serialize_pem());
    write("accounts.pub", accounts.public_key_pem());
    write("tokens.csv", format!("{ADMIN_TOKEN},admin,admin,\"system:masters\"\n"));
    write("audit-policy.yaml", AUDIT_POLICY.to_owned());
}
