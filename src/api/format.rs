//! `spec.format`: how the operator has pods' storage formatted.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::rules;

/// How pods that are labelled for this resource are formatted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::format()))]
pub struct Format {
    /// How the quorum begins: Static: the configuration has controller.quorum.voters. Standalone: with the one controller
    /// that initialControllers names; all others are observers. InitialControllers: with those that it names.
    pub quorum: QuorumKind,
    /// The controllers that a dynamic quorum begins with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "controllers_schema")]
    pub initial_controllers: Vec<InitialController>,
    /// The version of Kafka of pods that say none themselves, such as "4.4.0". Always a quoted string.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 32), extend("x-kubernetes-validations" = rules::kafka_version()))]
    pub kafka_version: Option<String>,
    /// The variable in which an image that formats by itself takes the cluster's id, such as CLUSTER_ID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(max = 64), extend("x-kubernetes-validations" = rules::variable()))]
    pub cluster_id_env: Option<String>,
}

/// How a quorum begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum QuorumKind {
    /// The configuration of every node names the voters.
    Static,
    /// With one controller.
    Standalone,
    /// With several controllers.
    InitialControllers,
}

/// A controller that a dynamic quorum begins with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitialController {
    /// Its node id.
    pub node_id: i32,
    /// The host that the others reach it by.
    pub host: String,
    /// Its port there.
    pub port: i32,
}

fn controllers_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 32,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["nodeId"],
        "items": {
            "description": "A controller that a dynamic quorum begins with.",
            "type": "object",
            "required": ["host", "nodeId", "port"],
            "properties": {
                "nodeId": {
                    "description": "Its node id.",
                    "type": "integer",
                    "format": "int32",
                    "x-kubernetes-validations": rules::node_id(),
                },
                "host": {
                    "description": "The host that the others reach it by.",
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 253,
                    "x-kubernetes-validations": rules::host(),
                },
                "port": {
                    "description": "Its port there.",
                    "type": "integer",
                    "format": "int32",
                    "x-kubernetes-validations": rules::port(),
                },
            },
        },
    })
}
