//! Where pods are formatted for real: a cluster of one node on which the operator runs as a Deployment, from the image that
//! the Dockerfile describes and with the rights that `deploy/` gives it.

// each test binary uses its own share
#![allow(dead_code, unreachable_pub, missing_docs)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use kube::Client;
use serde_json::{Value, json};

use crate::testbed::Node;

const IMAGE: &str = "localhost/kafka-features-operator:test";
/// How long anything here may take.
const PATIENCE: Duration = Duration::from_secs(240);

/// How the containers come to the pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Policy,
    /// The operator's webhook; its certificates live for seconds.
    Webhook,
    /// Nothing adds them: the manifest has them.
    ByHand,
}

pub struct Stage {
    pub node: Node,
    pub client: Client,
    pub form: Form,
}

/// The final stage of the Dockerfile: what is copied, the user and the entry point.
struct FinalStage {
    files: Vec<(String, String)>,
    user: String,
    entry: String,
}

fn final_stage() -> FinalStage {
    let text = include_str!("../../Dockerfile");
    let last = text.split("\nFROM ").last().unwrap();
    assert!(last.starts_with("scratch\n"), "nothing but what is copied is in the image");
    let mut found = FinalStage { files: Vec::new(), user: String::new(), entry: String::new() };
    for line in last.lines().skip(1).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[0] {
            "COPY" => {
                assert_eq!(words[1], "--from=build", "{line}");
                let binary = Path::new(words[2]).file_name().unwrap().to_str().unwrap().to_owned();
                found.files.push((binary, words[3].to_owned()));
            }
            "USER" => found.user = words[1].split(':').next().unwrap().to_owned(),
            "ENTRYPOINT" => found.entry = words[1].trim_matches(&['[', ']', '"'][..]).to_owned(),
            other => panic!("the final stage does something that no test packs: {other}"),
        }
    }
    found
}

/// Builds the static binaries as the Dockerfile does, but for the optimizations, and returns their folder.
pub fn static_binaries() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        let version = Command::new("rustc").arg("-vV").output().unwrap();
        let version = String::from_utf8(version.stdout).unwrap();
        let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap().to_owned();
        let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/static");
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(["build", "--locked", "--quiet", "--bins", "--target", &host, "--target-dir"])
            .arg(&target);
        cargo.current_dir(env!("CARGO_MANIFEST_DIR")).env("RUSTFLAGS", "-C target-feature=+crt-static");
        let output = cargo.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        target.join(host).join("debug")
    };
    BUILT.get_or_init(build).clone()
}

impl Stage {
    /// Starts the node, and the operator on it.
    pub async fn set(kafka: &[&str]) -> Self {
        Self::set_with(kafka, Form::Policy).await
    }

    pub async fn set_with(kafka: &[&str], form: Form) -> Self {
        let binaries = tokio::task::spawn_blocking(static_binaries).await.unwrap();
        let begun = Instant::now();
        let node = Node::start().await;
        let client = node.client().await;
        let stage = Self { node, client, form };
        tokio::task::block_in_place(|| {
            stage.pack(&binaries);
            for version in kafka {
                stage.node.import_kafka(version);
            }
            stage.deploy();
        });
        println!("the node and the operator are ready after {:.1?}", begun.elapsed());
        if form != Form::ByHand {
            stage.until_injected().await;
        }
        stage
    }

    /// Packs the image as the Dockerfile's final stage has it.
    fn pack(&self, binaries: &Path) {
        let stage = final_stage();
        let root = tempfile::tempdir().unwrap();
        for (binary, path) in &stage.files {
            let to = root.path().join(path.trim_start_matches('/'));
            std::fs::copy(binaries.join(binary), to).unwrap();
        }
        self.node.build_image(IMAGE, root.path(), &[&stage.entry], &[], &stage.user);
    }

    fn deploy(&self) {
        let overlay = match self.form {
            Form::Policy => "policy",
            Form::Webhook => "webhook",
            Form::ByHand => "base",
        };
        let overlay = format!("{}/deploy/{overlay}", env!("CARGO_MANIFEST_DIR"));
        let rendered = self.node.kubectl_ok(&["kustomize", &overlay]);
        // a container's command is in the image's entry point, which is packed as its command here
        let rendered = rendered
            .replace("kafka-features-operator:dev", IMAGE)
            .replace("- args:\n        - run", "- args:\n        - /kafka-features-operator\n        - run")
            .replace(
                "--webhook=0.0.0.0:9443",
                "--webhook=0.0.0.0:9443\n        - --webhook-lifetime-seconds=9",
            );
        self.apply_text(&rendered);
        let wait =
            ["-n", "kafka-features-operator", "rollout", "status", "deployment/kafka-features-operator"];
        self.node.kubectl_ok(&[&wait[..], &["--timeout=120s"]].concat());
    }

    /// Waits until labelled pods get the containers.
    async fn until_injected(&self) {
        let begun = Instant::now();
        let probe = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": { "name": "probe", "namespace": "default", "labels": { "kafkafeatures.dev/cluster": "probe" } },
            "spec": { "containers": [{ "name": "c", "image": "localhost/c:1" }] },
        });
        let probe = probe.to_string();
        while !self
            .kubectl_with(&["create", "--dry-run=server", "-o", "yaml", "-f", "-"], &probe)
            .1
            .contains("kafka-features-format")
        {
            assert!(begun.elapsed() < PATIENCE, "the injection never became active");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Runs `kubectl` with an input; whether it succeeded, and what it said.
    pub fn kubectl_with(&self, args: &[&str], input: &str) -> (bool, String) {
        let mut command = self.node.kubectl(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(said).unwrap())
    }

    pub fn apply_text(&self, text: &str) {
        let (done, said) = self.kubectl_with(&["apply", "-f", "-"], text);
        assert!(done, "{said}");
    }

    pub fn apply(&self, objects: &[Value]) {
        let text: Vec<String> = objects.iter().map(ToString::to_string).collect();
        self.apply_text(&text.join("\n---\n"));
    }

    /// A namespace that takes only pods that are restricted.
    pub fn namespace(&self, name: &str) {
        self.apply(&[json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": { "name": name, "labels": { "pod-security.kubernetes.io/enforce": "restricted" } },
        })]);
    }

    pub fn get(&self, namespace: &str, what: &str) -> Value {
        let (done, said) = self.kubectl_with(&["-n", namespace, "get", what, "-o", "json"], "");
        if done { serde_json::from_str(&said).unwrap() } else { Value::Null }
    }

    /// The status of the resource.
    pub fn status(&self, namespace: &str) -> Status {
        Status(self.get(namespace, "kafkafeatures/kafka")["status"].clone())
    }

    /// Waits until something is so; where it never is, what there is to know is shown.
    pub async fn until<T>(&self, namespace: &str, what: &str, mut so: impl FnMut() -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(seen) = tokio::task::block_in_place(&mut so) {
                println!("{what} after {:.1?}", begun.elapsed());
                return seen;
            }
            if begun.elapsed() > PATIENCE {
                self.show(namespace);
                panic!("it was never so: {what}");
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Waits until the resource's status is as wanted.
    pub async fn until_status(
        &self,
        namespace: &str,
        what: &str,
        wanted: impl Fn(&Status) -> bool,
    ) -> Status {
        self.until(namespace, what, || {
            Some(self.status(namespace)).filter(|status| !status.0.is_null() && wanted(status))
        })
        .await
    }

    fn show(&self, namespace: &str) {
        eprintln!("{:#}", self.status(namespace).0);
        let show = |args: &[&str]| eprintln!("{}", self.kubectl_with(args, "").1);
        show(&["-n", namespace, "get", "pods", "-o", "wide"]);
        show(&["-n", namespace, "get", "events", "--sort-by=.lastTimestamp"]);
        let pods = self.get(namespace, "pods");
        for pod in pods["items"].as_array().into_iter().flatten() {
            let name = pod["metadata"]["name"].as_str().unwrap();
            eprintln!("--- {name}: {}", pod["status"]["initContainerStatuses"]);
            show(&["-n", namespace, "logs", name, "--all-containers", "--tail=15"]);
        }
        show(&["-n", "kafka-features-operator", "logs", "deployment/kafka-features-operator", "--tail=40"]);
    }

    /// The names of the pods that are ready.
    pub fn ready(&self, namespace: &str) -> Vec<String> {
        let pods = self.get(namespace, "pods");
        let is_ready = |pod: &&Value| {
            let conditions = pod["status"]["conditions"].as_array();
            conditions.into_iter().flatten().any(|c| c["type"] == "Ready" && c["status"] == "True")
        };
        let names = pods["items"].as_array().into_iter().flatten().filter(is_ready);
        names.map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Scales the operator; waits until its pods are gone where there shall be none.
    pub async fn operator(&self, replicas: u32) {
        let name = "kafka-features-operator";
        self.node.kubectl_ok(&["-n", name, "scale", "deployment", name, &format!("--replicas={replicas}")]);
        self.until(name, &format!("{replicas} operators run"), || {
            let pods = self.get(name, "pods");
            let all = pods["items"].as_array().map_or(0, Vec::len);
            (all == replicas as usize && self.ready(name).len() == all).then_some(())
        })
        .await;
    }

    /// Scales a StatefulSet; waits until the pods that shall go are gone.
    pub async fn scale(&self, namespace: &str, name: &str, replicas: u32) {
        self.node.kubectl_ok(&[
            "-n",
            namespace,
            "scale",
            "statefulset",
            name,
            &format!("--replicas={replicas}"),
        ]);
        self.until(namespace, &format!("{name} has no more than {replicas} pods"), || {
            let pods = self.get(namespace, "pods");
            let names =
                pods["items"].as_array().into_iter().flatten().filter_map(|p| p["metadata"]["name"].as_str());
            let ordinals =
                names.filter_map(|pod| pod.strip_prefix(name)?.strip_prefix('-')?.parse::<u32>().ok());
            ordinals.into_iter().all(|ordinal| ordinal < replicas).then_some(())
        })
        .await;
    }

    /// Deletes a pod and waits until another one of its name is there.
    pub async fn replace_pod(&self, namespace: &str, name: &str) {
        let uid = self.uid(namespace, name);
        self.node.kubectl_ok(&["-n", namespace, "delete", "pod", name, "--wait=false"]);
        self.until(namespace, &format!("{name} was replaced"), || {
            let now = self.uid(namespace, name);
            (!now.is_null() && now != uid).then_some(())
        })
        .await;
    }

    fn uid(&self, namespace: &str, pod: &str) -> Value {
        self.get(namespace, &format!("pod/{pod}"))["metadata"]["uid"].clone()
    }

    /// Waits until all of these pods are ready.
    pub async fn until_ready(&self, namespace: &str, pods: &[&str]) {
        self.until(namespace, &format!("{} are ready", pods.join(", ")), || {
            let ready = self.ready(namespace);
            pods.iter().all(|pod| ready.iter().any(|name| name == pod)).then_some(())
        })
        .await;
    }

    /// Waits until a pod stands as wanted in status, and says more about it.
    pub async fn until_pod(&self, namespace: &str, pod: &str, state: &str) -> Value {
        let status = self
            .until_status(namespace, &format!("{pod} is {state}"), |status| status.pod(pod)["state"] == state)
            .await;
        status.pod(pod).clone()
    }

    /// Waits until status says of a pod what it waits for, or what is to be done about it; the whole of it.
    pub async fn until_pod_told(&self, namespace: &str, pod: &str, word: &str) -> String {
        self.until(namespace, &format!("status tells of {pod}: {word}"), || {
            let status = self.status(namespace);
            let view = status.pod(pod);
            let told = view["waitsFor"].as_str().or(view["message"].as_str())?.to_owned();
            Some(told).filter(|told| told.contains(word))
        })
        .await
    }

    /// Waits until a pod's second init container runs, which is where it waits.
    pub async fn until_waiting(&self, namespace: &str, pod: &str) {
        self.until(namespace, &format!("{pod} waits"), || {
            let pod = self.get(namespace, &format!("pod/{pod}"));
            let inits = pod["status"]["initContainerStatuses"].as_array();
            let waits = |c: &&Value| c["name"] == "kafka-features-format" && !c["state"]["running"].is_null();
            inits.into_iter().flatten().find(waits).map(|_| ())
        })
        .await;
    }

    /// The finalized level of a feature, as Kafka's own tool reads it.
    pub fn finalized(&self, namespace: &str, pod: &str, feature: &str) -> Option<String> {
        let args = ["--bootstrap-server", "localhost:9092", "describe"];
        let features = self.tool(namespace, pod, "org.apache.kafka.tools.FeatureCommand", &args);
        let line = features.lines().find(|line| line.contains(feature))?;
        line.split("FinalizedVersionLevel:").nth(1)?.split_whitespace().next().map(str::to_owned)
    }

    /// The members of the quorum as Kafka's own tool lists them: id, directory id, and Leader, Follower or Observer.
    pub fn quorum(&self, namespace: &str, pod: &str) -> Vec<(i32, String, String)> {
        let args = ["--bootstrap-server", "localhost:9092", "describe", "--replication"];
        let text = self.tool(namespace, pod, "org.apache.kafka.tools.MetadataQuorumCommand", &args);
        let row = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            Some((words.first()?.parse().ok()?, (*words.get(1)?).to_owned(), (*words.last()?).to_owned()))
        };
        text.lines().filter_map(row).collect()
    }

    /// How many requests of the operator the API server has seen that read the resource, and that were to change anything but
    /// its lease.
    pub fn requests(&self) -> (usize, usize) {
        let account = "system:serviceaccount:kafka-features-operator:kafka-features-operator";
        let audit = self.node.audit();
        let own = audit.iter().filter(|event| event["user"]["username"] == account);
        let (mut reads, mut writes) = (0, 0);
        for event in own {
            let (verb, resource) = (event["verb"].as_str(), event["objectRef"]["resource"].as_str());
            let looks = verb.is_some_and(|verb| ["get", "list", "watch"].contains(&verb));
            reads += usize::from(verb == Some("get") && resource == Some("kafkafeatures"));
            writes += usize::from(!looks && resource != Some("leases"));
        }
        (reads, writes)
    }

    /// Runs Kafka's own tool in a pod.
    pub fn tool(&self, namespace: &str, pod: &str, class: &str, args: &[&str]) -> String {
        let java = [
            "java",
            "-Xmx128m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            "/opt/kafka/libs/*",
            class,
        ];
        let exec = ["-n", namespace, "exec", pod, "-c", "kafka", "--"];
        self.kubectl_with(&[&exec[..], &java, args].concat(), "").1
    }
}

/// Removes everything in a folder.
pub fn wipe(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            std::fs::remove_dir_all(path).unwrap()
        } else {
            std::fs::remove_file(path).unwrap()
        }
    }
}

/// What a directory's `meta.properties` says, and which file that is.
pub fn meta(folder: &Path) -> (String, std::time::SystemTime) {
    let path = folder.join("kraft/meta.properties");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    (text, std::fs::metadata(path).unwrap().modified().unwrap())
}

/// The status of a resource.
#[derive(Clone, Debug)]
pub struct Status(pub Value);

impl Status {
    pub fn condition(&self, kind: &str) -> &Value {
        let conditions = self.0["conditions"].as_array().into_iter().flatten();
        conditions.into_iter().find(|condition| condition["type"] == kind).unwrap_or(&Value::Null)
    }

    pub fn is(&self, kind: &str, reason: &str) -> bool {
        let condition = self.condition(kind);
        condition["status"] == "True" && condition["reason"] == reason
    }

    pub fn reached(&self) -> bool {
        self.condition("Ready")["status"] == "True"
    }

    pub fn pod(&self, name: &str) -> &Value {
        let pods = self.0["pods"].as_array().into_iter().flatten();
        pods.into_iter().find(|pod| pod["name"] == name).unwrap_or(&Value::Null)
    }

    /// Name, state and part of every pod.
    pub fn pods(&self) -> Vec<(String, String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let pods = self.0["pods"].as_array().into_iter().flatten();
        pods.map(|pod| (text(&pod["name"]), text(&pod["state"]), text(&pod["part"]))).collect()
    }
}
