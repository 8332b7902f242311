//! What people write: the spec of the resource, and how it is read into the domain's terms. Checks again whatever
//! the API server's rules would have refused, since a resource may be older than the rules.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::SignedDuration;
use kube::CustomResource;
use kube::core::Rule;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::format::Format;
use super::rules;
use super::status::KafkaFeaturesStatus;
use crate::features::decide::{self, Mode};
use crate::features::observed::ClusterId;
use crate::features::plan::DowngradePolicy;
use crate::features::target::{DeclaredLevel, TargetSpec};
use crate::features::{FeatureName, InvalidFeatureName, Level};

/// The feature levels that one Kafka cluster shall have.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kafkafeatures.dev",
    version = "v1alpha1",
    kind = "KafkaFeatures",
    plural = "kafkafeatures",
    singular = "kafkafeatures",
    namespaced,
    shortname = "kfeat",
    category = "kafka",
    status = "KafkaFeaturesStatus",
    derive = "PartialEq",
    doc = "The feature levels that one Kafka cluster shall have, and how far it is from them.",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "Target", type_ = "string", json_path = ".status.target"),
    printcolumn(
        name = "Metadata",
        type_ = "integer",
        json_path = r#".status.features[?(@.name=="metadata.version")].finalized"#
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#
    ),
    printcolumn(name = "Blockers", type_ = "string", json_path = ".status.blocking", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
// clippy takes the columns for one attribute given several times
#[allow(clippy::duplicated_attributes)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::spec()))]
pub struct KafkaFeaturesSpec {
    /// How to reach the cluster.
    pub cluster: Cluster,
    /// The only cluster that this may change, by its id. Can be added at any time, and not be changed or removed once
    /// it is there. Left out: the first cluster that is seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 128))]
    pub cluster_id: Option<String>,
    /// The release whose default levels the cluster shall have, such as "4.4", or a metadata version by name, such
    /// as "4.4-IV2". Owns every feature. Always a quoted string. At most one of releaseVersion and features; with
    /// neither, the cluster is only observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        with = "String",
        length(max = 32),
        extend("x-kubernetes-validations" = rules::release())
    )]
    pub release_version: Option<String>,
    /// The levels that the cluster shall have, by feature. Only the features named here are owned. A level is a
    /// number, or for metadata.version also a release name such as 4.4-IV2.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "levels_schema")]
    pub features: BTreeMap<String, LevelOrName>,
    /// Whether finalized levels may be lowered: Never, or Safe: where Kafka can do it without losing metadata.
    #[serde(default)]
    pub downgrade: Downgrade,
    /// The features whose steps without a way back, or with far-reaching effects, are consented to. Needed under
    /// releaseVersion only: naming a feature under features is consent.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    #[schemars(schema_with = "names_schema")]
    pub allow_one_way: BTreeSet<String>,
    /// Whether the plan is carried out: Apply, or Plan: it is only worked out and shown.
    #[serde(default)]
    pub mode: RunMode,
    /// While true, the cluster is observed and nothing is changed.
    #[serde(default)]
    pub paused: bool,
    /// How long every node must have supported the target before levels are raised, such as 30s, 10m or 1h30m. A node
    /// that is seen not to support it, a new node or another target begins the time anew.
    #[serde(default = "no_soak")]
    #[schemars(length(min = 2, max = 24), extend("x-kubernetes-validations" = rules::soak()))]
    pub soak: String,
    /// Present: the storage of pods with the label kafkafeatures.dev/cluster is formatted by an init container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Format")]
    pub format: Option<Format>,
}

fn no_soak() -> String {
    "0s".to_owned()
}

/// How to reach a cluster. Brokers, controllers, or both: with brokers alone, controllers are found through them
/// where they can be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::cluster()))]
pub struct Cluster {
    /// Addresses of brokers, as host:port.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "addresses_schema")]
    pub bootstrap_servers: Vec<String>,
    /// Addresses of controllers, as host:port.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "addresses_schema")]
    pub bootstrap_controllers: Vec<String>,
}

/// A feature's level as it is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum LevelOrName {
    /// A number.
    Level(i64),
    /// A name, which only levels of metadata.version have.
    Name(String),
}

/// Whether finalized levels may be lowered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Downgrade {
    /// Never.
    #[default]
    Never,
    /// Where Kafka can do it without losing metadata.
    Safe,
}

/// Whether a plan is carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RunMode {
    /// It is.
    #[default]
    Apply,
    /// It is worked out and shown, and nothing is changed.
    Plan,
}

/// Why a spec can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSpec {
    /// Two ways to say the target.
    #[error("releaseVersion {0:?} owns every feature, so features must be left out: give one of the two")]
    TwoTargets(String),
    /// No way to the cluster.
    #[error("spec.cluster names no address: give bootstrapServers, bootstrapControllers, or both")]
    NoAddress,
    /// No feature can have such a name.
    #[error(transparent)]
    FeatureName(#[from] InvalidFeatureName),
    /// No level can be that number.
    #[error("{feature}: {level} can't be a level: levels are numbers from 0 to {}", i16::MAX)]
    Level {
        /// The feature.
        feature: FeatureName,
        /// The number given.
        level: i64,
    },
    /// No length of time.
    #[error("soak {0:?} is no length of time: give one such as 30s, 10m or 1h30m")]
    Soak(String),
    /// No cluster has such an id.
    #[error("clusterId is empty: give the cluster's id, or leave it out")]
    EmptyClusterId,
}

impl KafkaFeaturesSpec {
    /// Reads the spec into the domain's terms.
    ///
    /// # Errors
    /// If it is out of form. What it means for a cluster is not looked at here.
    pub fn declared(&self) -> Result<decide::Spec, InvalidSpec> {
        if self.cluster.bootstrap_servers.is_empty() && self.cluster.bootstrap_controllers.is_empty() {
            return Err(InvalidSpec::NoAddress);
        }
        let target = match &self.release_version {
            Some(release) if !self.features.is_empty() => {
                return Err(InvalidSpec::TwoTargets(release.clone()));
            }
            Some(release) => TargetSpec::Release(release.clone()),
            None if self.features.is_empty() => TargetSpec::Nothing,
            None => TargetSpec::Levels(self.levels()?),
        };
        if self.cluster_id.as_deref() == Some("") {
            return Err(InvalidSpec::EmptyClusterId);
        }
        let allow_one_way = self.allow_one_way.iter().map(FeatureName::new).collect::<Result<_, _>>()?;
        Ok(decide::Spec {
            cluster_id: self.cluster_id.clone().map(ClusterId),
            target,
            downgrade: match self.downgrade {
                Downgrade::Never => DowngradePolicy::Never,
                Downgrade::Safe => DowngradePolicy::Safe,
            },
            allow_one_way,
            mode: match self.mode {
                RunMode::Apply => Mode::Apply,
                RunMode::Plan => Mode::Plan,
            },
            paused: self.paused,
            soak: self.soaking()?,
        })
    }

    fn soaking(&self) -> Result<Duration, InvalidSpec> {
        let length = self.soak.parse::<SignedDuration>().ok();
        length
            .and_then(|length| Duration::try_from(length).ok())
            .ok_or_else(|| InvalidSpec::Soak(self.soak.clone()))
    }

    fn levels(&self) -> Result<BTreeMap<FeatureName, DeclaredLevel>, InvalidSpec> {
        let mut levels = BTreeMap::new();
        for (name, level) in &self.features {
            let feature = FeatureName::new(name)?;
            let declared = match level {
                LevelOrName::Name(name) => DeclaredLevel::Name(name.clone()),
                LevelOrName::Level(level) => match i16::try_from(*level) {
                    Ok(number) => DeclaredLevel::Number(Level(number)),
                    Err(_) => return Err(InvalidSpec::Level { feature, level: *level }),
                },
            };
            levels.insert(feature, declared);
        }
        Ok(levels)
    }
}

fn levels_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 32,
        "additionalProperties": { "x-kubernetes-int-or-string": true },
        "x-kubernetes-validations": rules::levels(),
    })
}

fn names_schema(_: &mut SchemaGenerator) -> Schema {
    set_of_texts(32, 249, &rules::name())
}

fn addresses_schema(_: &mut SchemaGenerator) -> Schema {
    set_of_texts(64, 280, &rules::address())
}

/// A list without duplicates, bounded in length and in the length of its items.
fn set_of_texts(most: u32, longest: u32, rules: &[Rule]) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": most,
        "x-kubernetes-list-type": "set",
        "items": {
            "type": "string",
            "minLength": 1,
            "maxLength": longest,
            "x-kubernetes-validations": rules,
        },
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(spec: serde_json::Value) -> Result<decide::Spec, String> {
        let mut whole = json!({ "cluster": { "bootstrapServers": ["kafka:9092"] } });
        whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let spec: KafkaFeaturesSpec = serde_json::from_value(whole).map_err(|error| error.to_string())?;
        spec.declared().map_err(|error| error.to_string())
    }

    #[test]
    fn a_target_is_a_release_levels_or_nothing() {
        assert_eq!(read(json!({})).unwrap().target, TargetSpec::Nothing);
        assert_eq!(read(json!({ "features": {} })).unwrap().target, TargetSpec::Nothing);
        let release = read(json!({ "releaseVersion": "4.4", "features": {} })).unwrap();
        assert_eq!(release.target, TargetSpec::Release("4.4".into()));
        let levels = read(json!({ "features": { "group.version": 1, "metadata.version": "4.3" } })).unwrap();
        let expected = [
            (FeatureName::new("group.version").unwrap(), DeclaredLevel::Number(Level(1))),
            (FeatureName::metadata_version(), DeclaredLevel::Name("4.3".into())),
        ];
        assert_eq!(levels.target, TargetSpec::Levels(expected.into()));
    }

    #[test]
    fn policy_and_consent_are_taken_over() {
        let spec = read(json!({ "downgrade": "Safe", "allowOneWay": ["kraft.version"] })).unwrap();
        assert_eq!(spec.downgrade, DowngradePolicy::Safe);
        assert!(spec.allow_one_way.contains("kraft.version"));
        assert_eq!(read(json!({})).unwrap().downgrade, DowngradePolicy::Never);
    }

    #[test]
    fn what_may_be_done_and_when_is_taken_over() {
        let spec = read(json!({})).unwrap();
        assert_eq!(
            (spec.cluster_id, spec.mode, spec.paused, spec.soak),
            (None, Mode::Apply, false, Duration::ZERO)
        );
        let spec =
            read(json!({ "clusterId": "a", "mode": "Plan", "paused": true, "soak": "1h30m5s" })).unwrap();
        assert_eq!((spec.mode, spec.paused, spec.soak.as_secs()), (Mode::Plan, true, 5405));
        assert_eq!(spec.cluster_id, Some(ClusterId("a".into())));
    }

    #[test]
    fn what_older_rules_may_have_let_in_is_refused_with_the_value() {
        let wrong = [
            (json!({ "releaseVersion": "4.4", "features": { "group.version": 1 } }), "\"4.4\""),
            (json!({ "features": { "group.version": 40000 } }), "group.version: 40000"),
            (json!({ "features": { "group.version": -40000 } }), "group.version: -40000"),
            (json!({ "features": { "group version": 1 } }), "\"group version\""),
            (json!({ "allowOneWay": ["a b"] }), "\"a b\""),
            (json!({ "cluster": {} }), "bootstrapServers"),
            (json!({ "releaseVersion": 4.1 }), "expected a string"),
            (json!({ "clusterId": "" }), "clusterId is empty"),
            (json!({ "soak": "soon" }), "\"soon\""),
            (json!({ "soak": "-5s" }), "\"-5s\""),
            (json!({ "soak": "99999999999999999999h" }), "\"99999999999999999999h\""),
            (json!({ "mode": "Dry" }), "Dry"),
        ];
        for (spec, expected) in wrong {
            let error = read(spec.clone()).unwrap_err();
            assert!(error.contains(expected), "{spec}: {error}");
        }
    }
}
