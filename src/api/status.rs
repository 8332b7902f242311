//! What the operator writes: the status of the resource. Nothing here changes while nothing changes: no epochs,
//! offsets or times seen.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::conditions;

/// How many entries `status.history` keeps.
pub const HISTORY: usize = 10;

/// How far a cluster is from the declared levels, and why.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = default_to_fresh)]
pub struct KafkaFeaturesStatus {
    /// The generation of the spec that this status is about; -1 before the first look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64")]
    pub observed_generation: Option<i64>,
    /// The id of the cluster that this resource is about: the first that was seen. Nothing is sent to another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub cluster_id: Option<String>,
    /// Whether the cluster was once seen up. From then on no controller is formatted as one that the cluster begins with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub bootstrapped: Option<bool>,
    /// The target in a few words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub target: Option<String>,
    /// Ready, Reconciling and Stalled always; ConsentRequired and Paused while they are true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
    /// Every feature of the cluster, as it was seen last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub features: Vec<Feature>,
    /// The nodes that hold the change up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub blockers: Vec<Blocker>,
    /// The nodes among the blockers, by id, in a few words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub blocking: Option<String>,
    /// The soak under way, which an operator that starts anew goes on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Soak")]
    pub soak: Option<Soak>,
    /// The steps from the finalized levels to the target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub plan: Vec<PlanStep>,
    /// The pods that are labelled for this resource: what was formatted, how, what waits and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub pods: Vec<PodStatus>,
    /// The last changes that were made, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub history: Vec<Change>,
}

/// One pod that is labelled for the resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodStatus {
    /// Its name.
    pub name: String,
    /// Its node's id, once that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32")]
    pub node_id: Option<i32>,
    /// What the node does, once that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub role: Option<String>,
    /// Where it stands: NotInjected, Starting, Waiting, Granted, Formatted or Failed.
    pub state: PodState,
    /// How it was formatted, or is to be: Voter, ReturningVoter, Observer or Broker. Left out where it was found formatted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub part: Option<String>,
    /// The reason in one word, where it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub reason: Option<String>,
    /// What it waits for, or why it failed, and the way out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub message: Option<String>,
}

/// Where a pod stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PodState {
    /// It has the label, and not the init containers.
    NotInjected,
    /// Its init containers have not looked yet.
    Starting,
    /// It waits for a grant.
    Waiting,
    /// It has a grant.
    Granted,
    /// Its directories are formatted.
    Formatted,
    /// It could not be formatted.
    Failed,
}

/// One feature of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Feature {
    /// Its name.
    pub name: String,
    /// Its finalized level; 0: none.
    pub finalized: i32,
    /// The declared level, if one is declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32")]
    pub target: Option<i32>,
    /// The lowest level that every node that could be asked supports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32")]
    pub supported_min: Option<i32>,
    /// The highest level that every node that could be asked supports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32")]
    pub supported_max: Option<i32>,
    /// Where it stands: NotDeclared, AtTarget, Pending, Blocked, Held, AboveTarget or Differs.
    pub state: FeatureState,
}

/// Where a feature stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FeatureState {
    /// Not declared here, only shown.
    NotDeclared,
    /// It has the declared level.
    AtTarget,
    /// A step of the plan moves it.
    Pending,
    /// A node does not support the level.
    Blocked,
    /// Its step waits for consent.
    Held,
    /// It is above the release's default and kept.
    AboveTarget,
    /// It differs from the target and no plan moves it.
    Differs,
}

/// One node that keeps one feature from one level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Blocker {
    /// The node's id.
    pub node_id: i32,
    /// What it does in the cluster.
    pub role: String,
    /// Whether it is registered, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub registered: Option<bool>,
    /// Whether it is a fenced broker, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub fenced: Option<bool>,
    /// Whether it votes in the controller quorum, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub voter: Option<bool>,
    /// The feature.
    pub feature: String,
    /// The levels that it supports, as min-max; left out where they could not be found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub supported: Option<String>,
    /// The level that it would have to support.
    pub needed: i32,
    /// Why it blocks: Unsupported, NotRegistered, KraftVersionNotMoved or Ghost.
    pub why: BlockerWhy,
}

/// Why a node blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum BlockerWhy {
    /// It does not support the level.
    Unsupported,
    /// It is a voter that is not registered.
    NotRegistered,
    /// It is a controller of Kafka before 4.1, which claims to support a kraft.version and does not move it.
    KraftVersionNotMoved,
    /// It is a registered controller that is neither voter nor observer.
    Ghost,
}

/// Since when every node has supported the target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Soak {
    /// The levels that are waited for, by feature.
    pub target: BTreeMap<String, i32>,
    /// When the last node was first seen to support them.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub since: Time,
    /// The nodes that were seen to support them. One that joins begins the soak anew.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub nodes: Vec<i32>,
}

/// One feature's step to its target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanStep {
    /// The number of the request that it is part of, from 1; left out while it is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32")]
    pub request: Option<i32>,
    /// The feature.
    pub feature: String,
    /// Its finalized level.
    pub from: i32,
    /// The level it moves to.
    pub to: i32,
    /// Up or Down.
    pub direction: Direction,
    /// Whether there is no way back.
    pub one_way: bool,
    /// What should be known about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub note: Option<String>,
    /// Whether it is Pending or Held.
    pub state: StepState,
}

/// Which way a level moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Direction {
    /// To a higher level.
    Up,
    /// To a lower level.
    Down,
}

/// Whether a step is part of what is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum StepState {
    /// It is.
    Pending,
    /// It waits for consent, or for a step that does.
    Held,
}

/// One change of a level that the cluster accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// When it was accepted.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub time: Time,
    /// The feature.
    pub feature: String,
    /// Its level before.
    pub from: i32,
    /// Its level after.
    pub to: i32,
}

/// What a resource's status is before the operator has looked at it: tools that wait for readiness must not take
/// silence for success.
fn default_to_fresh(schema: &mut Schema) {
    let fresh = KafkaFeaturesStatus {
        observed_generation: Some(-1),
        conditions: conditions::fresh(Time(Timestamp::UNIX_EPOCH)),
        ..KafkaFeaturesStatus::default()
    };
    if let Ok(fresh) = serde_json::to_value(fresh) {
        schema.insert("default".to_owned(), fresh);
    }
}

/// The standard shape of conditions, which k8s-openapi's type has no schema for.
fn conditions_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "description": "One condition.",
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "lastTransitionTime": {
                    "description": "When the status last changed from one value to another.",
                    "type": "string",
                    "format": "date-time",
                },
                "message": {
                    "description": "What there is to know, and the way out where there is one.",
                    "type": "string",
                    "maxLength": 32768,
                },
                "observedGeneration": {
                    "description": "The generation of the spec that the condition is about.",
                    "type": "integer",
                    "format": "int64",
                },
                "reason": {
                    "description": "The state in one word.",
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                },
                "status": {
                    "description": "Whether the condition holds.",
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                },
                "type": {
                    "description": "The condition's name.",
                    "type": "string",
                    "maxLength": 316,
                },
            },
        },
    })
}
