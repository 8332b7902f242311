//! Kafka as people run it without an operator of its own: plain StatefulSets with volume claims.

#![allow(dead_code, unreachable_pub, missing_docs)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::PathBuf;

use kafka_features_operator::injection::{Settings, inject};
use serde_json::{Value, json};

use super::stage::{Form, Stage};

/// A StatefulSet of Kafka nodes.
#[derive(Clone, Debug)]
pub struct Workload {
    pub namespace: String,
    /// The StatefulSet's name and its Service's.
    pub name: String,
    pub roles: &'static str,
    pub replicas: u32,
    pub version: String,
    /// What is added to the ordinal for the node's id.
    pub offset: u32,
    /// The lines of the configuration about the quorum.
    pub quorum: String,
    pub more: Vec<String>,
    pub annotations: Vec<(String, String)>,
    /// Where Kafka's directories are below the volume.
    pub folder: &'static str,
    /// Whether the volume is mounted so that nothing can be written to it.
    pub read_only: bool,
}

impl Workload {
    pub fn new(namespace: &str, name: &str, roles: &'static str, offset: u32, quorum: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            roles,
            replicas: 3,
            version: "4.4.0".into(),
            offset,
            quorum: quorum.into(),
            more: Vec::new(),
            annotations: Vec::new(),
            folder: "kraft",
            read_only: false,
        }
    }

    pub fn host(&self, ordinal: u32) -> String {
        format!("{0}-{ordinal}.{0}.{1}.svc.cluster.local", self.name, self.namespace)
    }

    pub fn address(&self, ordinal: u32) -> String {
        let port = if self.roles.contains("broker") { 9092 } else { 9093 };
        format!("{}:{port}", self.host(ordinal))
    }

    /// As `controller.quorum.voters` names the first so many.
    pub fn static_voters(&self, count: u32) -> String {
        let voter = |ordinal| format!("{}@{}:9093", ordinal + self.offset, self.host(ordinal));
        let voters: Vec<String> = (0..count).map(voter).collect();
        format!("controller.quorum.voters={}", voters.join(","))
    }

    /// As `controller.quorum.bootstrap.servers` names them.
    pub fn bootstrap_servers(&self, count: u32) -> String {
        let servers: Vec<String> = (0..count).map(|ordinal| format!("{}:9093", self.host(ordinal))).collect();
        format!("controller.quorum.bootstrap.servers={}", servers.join(","))
    }

    pub fn initial_controllers(&self, count: u32) -> Value {
        let controller =
            |ordinal| json!({ "nodeId": ordinal + self.offset, "host": self.host(ordinal), "port": 9093 });
        (0..count).map(controller).collect()
    }

    /// Makes the volumes of pods; their folders on the node, by ordinal.
    pub async fn volumes(&self, stage: &Stage, ordinals: std::ops::Range<u32>) -> Vec<PathBuf> {
        let mut folders = Vec::new();
        for ordinal in ordinals {
            let name = format!("{}-{}-{ordinal}", self.namespace, self.name);
            let claim = format!("data-{}-{ordinal}", self.name);
            folders.push(stage.node.pv(&name, Some((&self.namespace, &claim))).await);
        }
        folders
    }

    fn properties(&self) -> String {
        let listeners = match self.roles {
            "broker" => "PLAINTEXT://:9092",
            "controller" => "CONTROLLER://:9093",
            _ => "PLAINTEXT://:9092,CONTROLLER://:9093",
        };
        let mut lines = vec![
            format!("process.roles={}", self.roles),
            format!("listeners={listeners}"),
            "controller.listener.names=CONTROLLER".to_owned(),
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT".to_owned(),
            format!("log.dirs=/data/{}", self.folder),
            self.quorum.clone(),
        ];
        // small, and quick to start
        lines.extend(
            [
                "offsets.topic.num.partitions=1",
                "offsets.topic.replication.factor=1",
                "transaction.state.log.num.partitions=1",
                "transaction.state.log.replication.factor=1",
                "transaction.state.log.min.isr=1",
                "group.initial.rebalance.delay.ms=0",
                "broker.heartbeat.interval.ms=500",
                "broker.session.timeout.ms=3000",
            ]
            .map(str::to_owned),
        );
        lines.extend(self.more.iter().cloned());
        lines.join("\n") + "\n"
    }

    /// The Kubernetes objects.
    pub fn objects(&self, stage: &Stage) -> Vec<Value> {
        let (namespace, name) = (&self.namespace, &self.name);
        let port = if self.roles.contains("broker") { 9092 } else { 9093 };
        let advertised = if self.roles.contains("broker") {
            format!(
                "--override advertised.listeners=PLAINTEXT://$HOSTNAME.{name}.{namespace}.svc.cluster.local:9092"
            )
        } else {
            String::new()
        };
        let start = format!(
            "exec java -Xms96m -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp '/opt/kafka/libs/*' kafka.Kafka \
             /config/server.properties --override node.id=$((${{HOSTNAME##*-}}+{})) {advertised}",
            self.offset
        );
        let mut annotations = json!({
            "kafkafeatures.dev/properties": "/config/server.properties",
            "kafkafeatures.dev/node-id": format!("ordinal+{}", self.offset),
        });
        for (annotation, value) in &self.annotations {
            annotations[annotation] = json!(value);
        }
        let mut template = json!({
            "metadata": {
                "labels": { "app": name, "kafkafeatures.dev/cluster": "kafka" },
                "annotations": annotations,
            },
            "spec": {
                "terminationGracePeriodSeconds": 10,
                "securityContext": {
                    "runAsNonRoot": true, "runAsUser": 1000, "fsGroup": 1000,
                    "seccompProfile": { "type": "RuntimeDefault" },
                },
                "containers": [{
                    "name": "kafka",
                    "image": format!("localhost/kafka:{}", self.version),
                    "imagePullPolicy": "Never",
                    "command": ["sh", "-c", start],
                    "securityContext": { "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } },
                    "readinessProbe": { "tcpSocket": { "port": port }, "periodSeconds": 1 },
                    "volumeMounts": [
                        { "name": "data", "mountPath": "/data", "readOnly": self.read_only },
                        { "name": "config", "mountPath": "/config" },
                    ],
                }],
                "volumes": [{ "name": "config", "configMap": { "name": name } }],
            },
        });
        if stage.form == Form::ByHand {
            template = by_hand(template);
        }
        vec![
            json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "namespace": namespace },
                "data": { "server.properties": self.properties() },
            }),
            json!({
                "apiVersion": "v1", "kind": "Service", "metadata": { "name": name, "namespace": namespace },
                "spec": {
                    "clusterIP": "None", "publishNotReadyAddresses": true, "selector": { "app": name },
                    "ports": [{ "name": "client", "port": 9092 }, { "name": "controller", "port": 9093 }],
                },
            }),
            json!({
                "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": { "name": name, "namespace": namespace },
                "spec": {
                    "serviceName": name,
                    "replicas": self.replicas,
                    "podManagementPolicy": "Parallel",
                    "selector": { "matchLabels": { "app": name } },
                    "template": template,
                    "volumeClaimTemplates": [{
                        "metadata": { "name": "data" },
                        "spec": {
                            "accessModes": ["ReadWriteOnce"], "storageClassName": "local",
                            "resources": { "requests": { "storage": "1Gi" } },
                        },
                    }],
                },
            }),
        ]
    }
}

/// What Kafka's own image does at its start: its program writes the configuration from the variables and formats, with an id
/// of its own where none is given; then Kafka starts.
const IMAGE_START: &str = r#"
set -f
export CLUSTER_ID="${CLUSTER_ID:-5L6g3nShT-eMCtK--X86sw}"
mkdir -p /tmp/defaults && touch /tmp/defaults/server.properties /tmp/defaults/log4j2.yaml /tmp/defaults/tools-log4j2.yaml
J="java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp /opt/kafka/libs/*"
said=$($J kafka.docker.KafkaDockerWrapper setup --default-configs-dir /tmp/defaults \
  --mounted-configs-dir /mnt/shared/config --final-configs-dir /opt/kafka/config 2>&1) \
  || case $said in *"already formatted"*) ;; *) echo "$said"; exit 1 ;; esac
exec $J kafka.Kafka /opt/kafka/config/server.properties
"#;

/// One combined node, laid out like Kafka's own image: all of its configuration is in variables.
pub fn like_the_image(stage: &Stage, namespace: &str) -> Vec<Value> {
    let host = format!("img-0.img.{namespace}.svc.cluster.local");
    let variable = |name: &str, value: &str| json!({ "name": name, "value": value });
    let ordinal = json!({ "fieldRef": { "fieldPath": "metadata.labels['apps.kubernetes.io/pod-index']" } });
    let mut template = json!({
        "metadata": {
            "labels": { "app": "img", "kafkafeatures.dev/cluster": "kafka" },
            "annotations": { "kafkafeatures.dev/cluster-id-env": "CLUSTER_ID" },
        },
        "spec": {
            "terminationGracePeriodSeconds": 10,
            "securityContext": {
                "runAsNonRoot": true, "runAsUser": 1000, "fsGroup": 1000,
                "seccompProfile": { "type": "RuntimeDefault" },
            },
            "containers": [{
                "name": "kafka",
                "image": "localhost/kafka:4.4.0",
                "imagePullPolicy": "Never",
                "command": ["sh", "-c", IMAGE_START],
                "env": [
                    { "name": "KAFKA_NODE_ID", "valueFrom": ordinal },
                    variable("KAFKA_PROCESS_ROLES", "broker,controller"),
                    variable("KAFKA_LISTENERS", "PLAINTEXT://:9092,CONTROLLER://:9093"),
                    variable("KAFKA_ADVERTISED_LISTENERS", &format!("PLAINTEXT://{host}:9092")),
                    variable("KAFKA_CONTROLLER_LISTENER_NAMES", "CONTROLLER"),
                    variable("KAFKA_LISTENER_SECURITY_PROTOCOL_MAP", "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT"),
                    variable("KAFKA_CONTROLLER_QUORUM_VOTERS", &format!("0@{host}:9093")),
                    variable("KAFKA_LOG_DIRS", "/data/kraft"),
                ],
                "securityContext": { "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } },
                "readinessProbe": { "tcpSocket": { "port": 9092 }, "periodSeconds": 1 },
                "volumeMounts": [
                    { "name": "data", "mountPath": "/data" },
                    { "name": "config", "mountPath": "/opt/kafka/config" },
                    { "name": "tmp", "mountPath": "/tmp" },
                    { "name": "shared", "mountPath": "/mnt/shared/config" },
                ],
            }],
            "volumes": [
                { "name": "config", "emptyDir": {} },
                { "name": "tmp", "emptyDir": {} },
                { "name": "shared", "emptyDir": {} },
            ],
        },
    });
    if stage.form == Form::ByHand {
        template = by_hand(template);
    }
    let workload = Workload::new(namespace, "img", "broker,controller", 0, "");
    let mut objects = workload.objects(stage);
    objects.remove(0);
    objects[1]["spec"]["replicas"] = json!(1);
    objects[1]["spec"]["template"] = template;
    objects
}

/// A template as people get it who write the containers into the manifest.
fn by_hand(template: Value) -> Value {
    let settings =
        Settings { image: "localhost/kafka-features-operator:test".into(), pull_policy: "Never".into() };
    let pod = serde_json::from_value(template).unwrap();
    let pod = serde_json::to_value(inject(&pod, &settings).unwrap()).unwrap();
    json!({ "metadata": pod["metadata"], "spec": pod["spec"] })
}

/// The resource.
pub fn resource(namespace: &str, servers: &[String], spec: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "kafkafeatures.dev/v1alpha1",
        "kind": "KafkaFeatures",
        "metadata": { "name": "kafka", "namespace": namespace },
        "spec": { "cluster": { "bootstrapServers": servers } },
    });
    object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    object
}
