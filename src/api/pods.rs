//! What pods, the operator and the init containers say to each other: labels and annotations, the grant that the operator
//! puts on a pod, and the report that a container ends with. No secret is in any of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The label by which a pod opts in; its value is the name of a `KafkaFeatures` in the pod's namespace.
pub const CLUSTER_LABEL: &str = "kafkafeatures.dev/cluster";

/// The annotation with the name of Kafka's container; left out: the first container.
pub const CONTAINER: &str = "kafkafeatures.dev/container";
/// The annotation with the path of the properties file, as Kafka's container sees it; left out: the configuration is in
/// the `KAFKA_…` variables of Kafka's own image.
pub const PROPERTIES: &str = "kafkafeatures.dev/properties";
/// The annotation with the rule for the node's id: `ordinal` or `ordinal+N`; left out: the configuration has it.
pub const NODE_ID: &str = "kafkafeatures.dev/node-id";
/// The annotation with the version of the pod's Kafka; left out: the image's tag, or `format.kafkaVersion`.
pub const KAFKA_VERSION: &str = "kafkafeatures.dev/kafka-version";
/// The annotation with the name of the Secret that holds SCRAM users.
pub const SCRAM_SECRET: &str = "kafkafeatures.dev/scram-secret";
/// The annotation with the name of the variable in which Kafka's container shall be given the cluster's id.
pub const CLUSTER_ID_ENV: &str = "kafkafeatures.dev/cluster-id-env";
/// The annotation that the operator puts its answer in: a grant, or a denial.
pub const GRANT: &str = "kafkafeatures.dev/grant";

/// The init container that looks at the directories.
pub const LOOK_CONTAINER: &str = "kafka-features-look";
/// The init container that formats them, once it has a grant.
pub const FORMAT_CONTAINER: &str = "kafka-features-format";

/// The volume that shows the pod's grant to the format container.
pub const GRANT_VOLUME: &str = "kafka-features-grant";
/// Where that is mounted.
pub const GRANT_FOLDER: &str = "/run/kafka-features/grant";
/// The file below it.
pub const GRANT_FILE: &str = "grant";
/// The volume with the SCRAM users.
pub const SCRAM_VOLUME: &str = "kafka-features-scram";
/// Where that is mounted.
pub const SCRAM_FOLDER: &str = "/run/kafka-features/scram";

/// The variable with the pod's name.
pub const POD_NAME_ENV: &str = "KFEAT_POD_NAME";
/// The variable with the pod's uid.
pub const POD_UID_ENV: &str = "KFEAT_POD_UID";
/// The variable with the annotation [`PROPERTIES`].
pub const PROPERTIES_ENV: &str = "KFEAT_PROPERTIES";
/// The variable with the annotation [`NODE_ID`].
pub const NODE_ID_ENV: &str = "KFEAT_NODE_ID";
/// The variable with the cluster's id from the identity record, where there is one yet.
pub const CLUSTER_ID_VARIABLE: &str = "KFEAT_CLUSTER_ID";

/// The name of the `ConfigMap` that keeps who a resource's cluster is; it outlives the resource.
#[must_use]
pub fn identity_name(resource: &str) -> String {
    format!("{resource}-kafka-identity")
}
/// The entry of that `ConfigMap` with the cluster's id.
pub const IDENTITY_CLUSTER_ID: &str = "clusterId";

/// A voter of the quorum that a cluster begins with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GrantedVoter {
    /// Its node id.
    pub node_id: i32,
    /// Its host.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The id of its metadata directory; `None` in a static quorum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory_id: Option<String>,
}

/// The part that a node plays in the quorum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Part {
    /// A voter that the cluster begins with.
    Voter,
    /// A static voter that lost its directories and may join the others again, who have a leader.
    ReturningVoter,
    /// A controller that joins as an observer.
    Observer,
    /// A broker only.
    Broker,
}

/// What one pod may format, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Grant {
    /// The uid of the pod that it is for.
    pub pod: String,
    /// The node that it is for.
    pub node_id: i32,
    /// The cluster's id.
    pub cluster_id: String,
    /// The Kafka software that is to start on the directories; it decides how they are laid out.
    pub kafka_version: String,
    /// The part that the node plays.
    pub part: Part,
    /// The id of its metadata directory; `None`: a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory_id: Option<String>,
    /// The voters that a dynamic quorum begins with, or those that a running one has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub voters: Vec<GrantedVoter>,
    /// The levels that are written, by feature.
    pub levels: BTreeMap<String, i16>,
}

/// That one pod may not be formatted as it is, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Denial {
    /// The uid of the pod that it is for.
    pub pod: String,
    /// In one word.
    pub reason: String,
    /// In one line, with the way out.
    pub message: String,
}

/// What the operator answers to a pod that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Answer {
    /// It may be formatted.
    Granted(Box<Grant>),
    /// It may not.
    Denied(Denial),
}

impl Answer {
    /// The uid of the pod that it is for.
    #[must_use]
    pub fn pod(&self) -> &str {
        match self {
            Self::Granted(grant) => &grant.pod,
            Self::Denied(denial) => &denial.pod,
        }
    }
}

/// How an init container ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// Every directory is formatted, and they are consistent.
    Formatted,
    /// A directory is not formatted yet.
    #[default]
    Unformatted,
    /// The directories were formatted just now.
    FormattedNow,
    /// It could not be done; `reason` and `message` say why. Nothing was written.
    Failed,
}

/// What an init container says when it ends, as its termination message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// How it ended.
    pub verdict: Verdict,
    /// The reason in one word, where it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The reason in one line, where it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Whether it only repeats what the operator has denied.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub denied: bool,
    /// The node's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<i32>,
    /// Whether the node is a broker.
    #[serde(default)]
    pub broker: bool,
    /// Whether the node is a controller.
    #[serde(default)]
    pub controller: bool,
    /// The cluster that the directories belong to, or were formatted for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// The id of the metadata directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory_id: Option<String>,
    /// `controller.quorum.voters`, as `id@host:port`; empty where the quorum is dynamic.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub static_voters: Vec<String>,
    /// Where this controller is reached, as `host:port`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Whether the metadata directory has lost its format while others kept theirs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub metadata_directory_missing: bool,
    /// The uid of the pod.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pod: String,
}
