//! Real Kafka clusters on loopback: any mix of brokers, controllers and combined nodes, each of its own version.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::ports::Port;
use super::process::Process;
use super::{Oracle, parts};

const READY: Duration = Duration::from_secs(90);

/// A node to be.
#[derive(Clone, Debug)]
pub struct NodeSpec {
    pub id: i32,
    pub version: String,
    pub broker: bool,
    pub controller: bool,
}

impl NodeSpec {
    pub fn broker(id: i32, version: &str) -> Self {
        Self { id, version: version.to_owned(), broker: true, controller: false }
    }

    pub fn controller(id: i32, version: &str) -> Self {
        Self { id, version: version.to_owned(), broker: false, controller: true }
    }

    pub fn combined(id: i32, version: &str) -> Self {
        Self { id, version: version.to_owned(), broker: true, controller: true }
    }
}

/// How the controllers form their quorum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quorum {
    /// `controller.quorum.voters`: kraft.version 0.
    Static,
    /// `--standalone` or `--initial-controllers`: kraft.version 1 (Kafka 3.9 and later).
    Dynamic,
}

/// Whose `kafka-storage` formats nodes.
#[derive(Clone, Copy, Debug)]
pub enum Formatter {
    /// That of the node's own Kafka version.
    Kafkas,
    /// Ours, by the path of the binary.
    Ours(&'static str),
}

struct Node {
    spec: NodeSpec,
    client: Port,
    control: Port,
    folder: PathBuf,
    process: Option<Process>,
}

/// A cluster; its nodes end with it.
pub struct Kafka {
    pub cluster_id: String,
    quorum: Quorum,
    format: Vec<String>,
    properties: Vec<String>,
    nodes: BTreeMap<i32, Node>,
    initial_controllers: String,
    logs_requests: bool,
    formatter: Formatter,
    _folder: tempfile::TempDir,
}

impl Kafka {
    /// Formats and starts a cluster, and waits until every node is ready. `format` goes to Kafka's own tool, such as
    /// `["--release-version", "3.9"]`; `properties` into each node's configuration.
    pub fn start(nodes: &[NodeSpec], quorum: Quorum, format: &[&str], properties: &[&str]) -> Self {
        Self::prepare(nodes, quorum, format, properties).started()
    }

    /// Starts the nodes that [`Kafka::prepare`] or [`Kafka::prepare_with`] has formatted.
    pub fn started(mut self) -> Self {
        let ids: Vec<i32> = self.nodes.keys().copied().collect();
        for id in &ids {
            self.launch(*id);
        }
        for id in &ids {
            self.wait_ready(*id);
        }
        self
    }

    /// One combined node.
    pub fn single(version: &str, format: &[&str]) -> Self {
        Self::start(&[NodeSpec::combined(1, version)], Quorum::Static, format, &[])
    }

    /// One combined node that logs every request that it answers.
    pub fn single_that_logs_requests(version: &str, format: &[&str]) -> Self {
        let kafka = Self::prepare(&[NodeSpec::combined(1, version)], Quorum::Static, format, &[]);
        Self { logs_requests: true, ..kafka }.started()
    }

    /// Formats the nodes without starting them.
    pub fn prepare(nodes: &[NodeSpec], quorum: Quorum, format: &[&str], properties: &[&str]) -> Self {
        Self::prepare_with(Formatter::Kafkas, nodes, quorum, format, properties)
    }

    /// Formats the nodes by one of the two tools, without starting them.
    pub fn prepare_with(
        formatter: Formatter,
        nodes: &[NodeSpec],
        quorum: Quorum,
        format: &[&str],
        properties: &[&str],
    ) -> Self {
        let folder = tempfile::Builder::new().prefix("kafka-").tempdir().expect("a folder");
        let version = &nodes.first().expect("a node").version;
        let cluster_id = Oracle::of(version).run("kafka-storage", &["random-uuid"]).ok().trim().to_owned();
        let mut kafka = Self {
            cluster_id,
            quorum,
            format: format.iter().map(ToString::to_string).collect(),
            properties: properties.iter().map(ToString::to_string).collect(),
            nodes: BTreeMap::new(),
            initial_controllers: String::new(),
            logs_requests: false,
            formatter,
            _folder: folder,
        };
        for spec in nodes {
            kafka.reserve(spec.clone());
        }
        if quorum == Quorum::Dynamic {
            kafka.initial_controllers = kafka.draw_initial_controllers(version);
        }
        let ids: Vec<i32> = kafka.nodes.keys().copied().collect();
        for id in ids {
            kafka.format_node(id);
        }
        kafka
    }

    fn reserve(&mut self, spec: NodeSpec) {
        let folder = self._folder.path().join(spec.id.to_string());
        std::fs::create_dir(&folder).expect("a folder");
        let node = Node { client: Port::lease(), control: Port::lease(), folder, process: None, spec };
        self.nodes.insert(node.spec.id, node);
    }

    fn draw_initial_controllers(&self, version: &str) -> String {
        let voter = |node: &Node| {
            let directory = Oracle::of(version).run("kafka-storage", &["random-uuid"]).ok();
            format!("{}@{}:{}", node.spec.id, node.control.address(), directory.trim())
        };
        self.nodes.values().filter(|node| node.spec.controller).map(voter).collect::<Vec<_>>().join(",")
    }

    /// Adds a node to the running cluster: a broker, or an observer controller of a dynamic quorum.
    pub fn add(&mut self, spec: NodeSpec) {
        let id = spec.id;
        self.reserve(spec);
        self.format_node(id);
        self.launch(id);
        self.wait_ready(id);
    }

    fn node(&self, id: i32) -> &Node {
        self.nodes.get(&id).unwrap_or_else(|| panic!("no node {id}"))
    }

    fn process(&mut self, id: i32) -> &mut Process {
        let node = self.nodes.get_mut(&id).unwrap_or_else(|| panic!("no node {id}"));
        node.process.as_mut().unwrap_or_else(|| panic!("node {id} was not started"))
    }

    fn write_properties(&self, node: &Node) -> PathBuf {
        let (client, control) = (node.client.address(), node.control.address());
        let controllers = || self.nodes.values().filter(|node| node.spec.controller);
        let mut lines = vec![
            format!("node.id={}", node.spec.id),
            format!("log.dirs={}", node.folder.join("data").display()),
            "controller.listener.names=CONTROLLER".to_owned(),
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT".to_owned(),
        ];
        lines.push(match (node.spec.broker, node.spec.controller) {
            (true, true) => {
                format!(
                    "process.roles=broker,controller\nlisteners=PLAINTEXT://{client},CONTROLLER://{control}"
                )
            }
            (true, false) => format!("process.roles=broker\nlisteners=PLAINTEXT://{client}"),
            _ => format!("process.roles=controller\nlisteners=CONTROLLER://{control}"),
        });
        let addresses: Vec<String> = match self.quorum {
            Quorum::Static => {
                controllers().map(|n| format!("{}@{}", n.spec.id, n.control.address())).collect()
            }
            Quorum::Dynamic => controllers().map(|n| n.control.address()).collect(),
        };
        lines.push(match self.quorum {
            Quorum::Static => format!("controller.quorum.voters={}", addresses.join(",")),
            Quorum::Dynamic => format!("controller.quorum.bootstrap.servers={}", addresses.join(",")),
        });
        for small in [
            "offsets.topic.num.partitions=1",
            "offsets.topic.replication.factor=1",
            "transaction.state.log.num.partitions=1",
            "transaction.state.log.replication.factor=1",
            "transaction.state.log.min.isr=1",
            "group.initial.rebalance.delay.ms=0",
            "broker.heartbeat.interval.ms=500",
            "broker.session.timeout.ms=3000",
            "controlled.shutdown.enable=false",
            "log.cleaner.enable=false",
        ] {
            lines.push(small.to_owned());
        }
        lines.extend(self.properties.iter().cloned());
        let path = node.folder.join("server.properties");
        std::fs::write(&path, lines.join("\n") + "\n").expect("a file");
        path
    }

    /// The arguments that a node is formatted with.
    pub fn format_arguments(&self, id: i32) -> Vec<String> {
        let node = self.node(id);
        let path = self.write_properties(node);
        let path = path.to_str().expect("UTF-8");
        let mut args = vec!["format", "--cluster-id", &self.cluster_id, "--config", path];
        args.extend(self.format.iter().map(String::as_str));
        if self.quorum == Quorum::Dynamic && node.spec.controller {
            let initial =
                self.initial_controllers.split(',').any(|voter| voter.starts_with(&format!("{id}@")));
            if initial {
                args.extend(["--initial-controllers", &self.initial_controllers]);
            } else {
                args.push("--no-initial-controllers");
            }
        }
        let mut args: Vec<String> = args.into_iter().map(str::to_owned).collect();
        if matches!(self.formatter, Formatter::Ours(_)) {
            args.extend(["--kafka-version".to_owned(), node.spec.version.clone()]);
        }
        args
    }

    fn format_node(&self, id: i32) {
        let args = self.format_arguments(id);
        let version = &self.node(id).spec.version;
        match self.formatter {
            Formatter::Kafkas => {
                let args: Vec<&str> = args.iter().map(String::as_str).collect();
                Oracle::of(version).run("kafka-storage", &args).ok();
            }
            Formatter::Ours(tool) => {
                let output = std::process::Command::new(tool).args(&args).output().expect("it starts");
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            }
        }
    }

    fn launch(&mut self, id: i32) {
        let node = self.nodes.get_mut(&id).unwrap_or_else(|| panic!("no node {id}"));
        let jars = parts::kafka(&node.spec.version);
        let name = format!("Kafka node {id} ({})", node.spec.version);
        // a log of its own for each start, since readiness is read from it
        let starts = (0..).find(|n| !node.folder.join(format!("{n}.log")).exists()).expect("a number");
        let log = node.folder.join(format!("{starts}.log"));
        let properties = node.folder.join("server.properties");
        node.process = Some(Process::start(&name, "java", log, |command| {
            command.args([
                "-Xms64m",
                "-Xmx256m",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                "-Xshare:auto",
            ]);
            if self.logs_requests {
                command.arg("-Dorg.slf4j.simpleLogger.log.kafka.request.logger=debug");
            }
            command.arg("-cp").arg(format!("{}/*", jars.display())).arg("kafka.Kafka").arg(properties);
        }));
    }

    /// Waits until a node says that it has started; for a broker that is once it is unfenced.
    pub fn wait_ready(&mut self, id: i32) {
        self.process(id).wait_until("ready", READY, |process| {
            let log = std::fs::read(&process.log).unwrap_or_default();
            String::from_utf8_lossy(&log).contains("Kafka Server started")
        });
    }

    /// Shuts a node down; it stays registered.
    pub fn stop(&mut self, id: i32) {
        self.process(id).stop();
    }

    /// Kills a node.
    pub fn kill(&mut self, id: i32) {
        self.process(id).kill();
    }

    /// Starts a stopped node again on its directory, with another Kafka version if one is given.
    pub fn restart(&mut self, id: i32, version: Option<&str>) {
        self.process(id).stop();
        let node = self.nodes.get_mut(&id).unwrap_or_else(|| panic!("no node {id}"));
        if let Some(version) = version {
            version.clone_into(&mut node.spec.version);
        }
        self.launch(id);
        self.wait_ready(id);
    }

    /// Makes the cluster forget a stopped broker.
    pub fn unregister(&self, id: i32) {
        let bootstrap = self.brokers().join(",");
        let id = id.to_string();
        let args = ["unregister", "--bootstrap-server", &bootstrap, "--id", &id];
        Oracle::of("4.4.0").run("kafka-cluster", &args).ok();
    }

    /// The address of one node's client listener.
    pub fn broker(&self, id: i32) -> String {
        self.node(id).client.address()
    }

    /// The address of one node's controller listener.
    pub fn controller(&self, id: i32) -> String {
        self.node(id).control.address()
    }

    /// All brokers' addresses.
    pub fn brokers(&self) -> Vec<String> {
        self.nodes.values().filter(|node| node.spec.broker).map(|node| node.client.address()).collect()
    }

    /// All controllers' addresses.
    pub fn controllers(&self) -> Vec<String> {
        self.nodes.values().filter(|node| node.spec.controller).map(|node| node.control.address()).collect()
    }

    /// A node's data directory.
    pub fn data(&self, id: i32) -> PathBuf {
        self.node(id).folder.join("data")
    }

    /// The finalized levels as Kafka 4.4.0's own tool reads them from a broker.
    pub fn finalized(&self) -> BTreeMap<String, String> {
        let bootstrap = self.brokers().join(",");
        Oracle::of("4.4.0").finalized(["--bootstrap-server", &bootstrap])
    }

    /// Runs `kafka-features` of 4.4.0 against the brokers.
    pub fn features(&self, args: &[&str]) -> super::oracle::Answer {
        let bootstrap = self.brokers().join(",");
        let mut all = vec!["--bootstrap-server", bootstrap.as_str()];
        all.extend(args);
        Oracle::of("4.4.0").run("kafka-features", &all)
    }

    /// Every level that was ever finalized, in order, as a node's copy of the metadata log has it.
    pub fn recorded(&self, id: i32) -> Vec<(String, i64)> {
        let log = self.data(id).join("__cluster_metadata-0/00000000000000000000.log");
        let args = ["--cluster-metadata-decoder", "--files", log.to_str().expect("UTF-8")];
        let dumped = Oracle::of("4.4.0").run("kafka-dump-log", &args).ok();
        let payloads = dumped.lines().filter_map(|line| line.split_once("payload: "));
        let records = payloads.filter_map(|(_, json)| serde_json::from_str::<Value>(json).ok());
        let levels = records.filter(|record| record["type"] == "FEATURE_LEVEL_RECORD");
        let level = |record: Value| {
            let data = &record["data"];
            let name = data["name"].as_str().expect("a name").to_owned();
            (name, data["featureLevel"].as_i64().expect("a level"))
        };
        levels.map(level).collect()
    }

    /// How many requests of a kind a node has answered, by Kafka's own request log.
    pub fn answered(&self, id: i32, request: &str) -> usize {
        let log = std::fs::read(&self.node(id).process.as_ref().expect("started").log).expect("a log");
        let name = format!("\"requestApiKeyName\":\"{request}\"");
        String::from_utf8_lossy(&log).lines().filter(|line| line.contains(&name)).count()
    }

    /// Where all of the cluster's files are.
    pub fn folder(&self) -> &Path {
        self._folder.path()
    }
}
