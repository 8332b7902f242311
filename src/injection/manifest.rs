//! The injection in manifests: what is applied has the containers already, and nothing in the cluster has to add them.

use k8s_openapi::api::core::v1::{PodSpec, PodTemplateSpec};
use serde_json::{Value, json};

use super::{NotInjectable, Settings, inject_spec};
use crate::api::pods::CLUSTER_LABEL;

/// Why a manifest can't be read, or nothing can be added to it.
#[derive(Debug, thiserror::Error)]
pub enum InvalidManifest {
    /// It is no YAML.
    #[error("the manifest can't be read as YAML: {0}")]
    Yaml(String),
    /// What pods are made from is out of form.
    #[error("{name}: its pods can't be read: {why}")]
    Pod {
        /// Kind and name of the object.
        name: String,
        /// Why.
        why: String,
    },
    /// Kafka's container can't be told.
    #[error("{name}: {why}")]
    NotInjectable {
        /// Kind and name of the object.
        name: String,
        /// Why.
        why: NotInjectable,
    },
    /// It can't be written.
    #[error("the manifest can't be written as YAML: {0}")]
    Written(String),
}

/// The manifest with what is added to pods that have the label, and to what such pods are made from. Other documents are
/// as they were, but for comments.
///
/// # Errors
/// If it can't be read, or Kafka's container can't be told.
pub fn inject_manifest(text: &str, settings: &Settings) -> Result<String, InvalidManifest> {
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(text).map_err(|error| InvalidManifest::Yaml(error.to_string()))?;
    let mut written = Vec::new();
    for mut document in documents.into_iter().filter(|document| !document.is_null()) {
        let name = format!(
            "{} {}",
            document["kind"].as_str().unwrap_or("an object"),
            document["metadata"]["name"].as_str().unwrap_or("without a name")
        );
        if document["kind"] == "List" {
            for item in document["items"].as_array_mut().into_iter().flatten() {
                inject_document(item, &name, settings)?;
            }
        } else {
            inject_document(&mut document, &name, settings)?;
        }
        let yaml = serde_saphyr::to_string(&document);
        written.push(yaml.map_err(|error| InvalidManifest::Written(error.to_string()))?);
    }
    Ok(written.join("---\n"))
}

fn inject_document(document: &mut Value, name: &str, settings: &Settings) -> Result<(), InvalidManifest> {
    let template = if document["kind"] == "Pod" { Some(document) } else { template(document) };
    let Some(template) = template else { return Ok(()) };
    let label = template["metadata"]["labels"][CLUSTER_LABEL].as_str().filter(|label| !label.is_empty());
    let Some(resource) = label.map(str::to_owned) else { return Ok(()) };
    let read: PodTemplateSpec = serde_json::from_value(json!({
        "metadata": template["metadata"], "spec": template["spec"],
    }))
    .map_err(|error| InvalidManifest::Pod { name: name.to_owned(), why: error.to_string() })?;
    let annotations = read.metadata.and_then(|metadata| metadata.annotations).unwrap_or_default();
    let before: PodSpec = read.spec.unwrap_or_default();
    let after = inject_spec(before, &annotations, &resource, settings)
        .map_err(|why| InvalidManifest::NotInjectable { name: name.to_owned(), why })?;
    let after = serde_json::to_value(after).map_err(|error| InvalidManifest::Written(error.to_string()))?;
    // fields that this version does not know stay
    for (field, value) in after.as_object().into_iter().flatten() {
        if ["initContainers", "volumes", "containers"].contains(&field.as_str()) {
            template["spec"][field] = value.clone();
        }
    }
    Ok(())
}

/// What an object makes pods from.
fn template(document: &mut Value) -> Option<&mut Value> {
    for path in ["/spec/template", "/spec/jobTemplate/spec/template"] {
        if document.pointer(path).is_some() {
            return document.pointer_mut(path);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings { image: "operator:1".into(), pull_policy: "IfNotPresent".into() }
    }

    const MANIFEST: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
data: {a: '01', b: 'yes'}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: kafka}
spec:
  replicas: 3
  fromTheFuture: 1
  template:
    metadata: {labels: {kafkafeatures.dev/cluster: kafka}}
    spec:
      fromTheFuture: 2
      containers: [{name: kafka, image: 'k:4.4.0', volumeMounts: [{name: d, mountPath: /d}]}]
---
apiVersion: v1
kind: Pod
metadata: {name: other}
spec: {containers: [{name: c}]}
";

    fn read(text: &str) -> Vec<Value> {
        serde_saphyr::from_multiple(text).unwrap()
    }

    #[test]
    fn what_has_the_label_gets_the_containers_and_the_rest_stays() {
        let written = inject_manifest(MANIFEST, &settings()).unwrap();
        let (before, after) = (read(MANIFEST), read(&written));
        assert_eq!((&after[0], &after[2]), (&before[0], &before[2]));
        let spec = &after[1]["spec"]["template"]["spec"];
        let inits: Vec<&str> =
            spec["initContainers"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
        assert_eq!(inits, ["kafka-features-look", "kafka-features-format"]);
        assert_eq!((&spec["fromTheFuture"], &after[1]["spec"]["fromTheFuture"]), (&json!(2), &json!(1)));
        assert_eq!(inject_manifest(&written, &settings()).unwrap(), written, "once");
    }

    #[test]
    fn what_is_out_of_form_is_refused_with_the_object() {
        let wrong = MANIFEST.replace(
            "{kafkafeatures.dev/cluster: kafka}}",
            "{kafkafeatures.dev/cluster: kafka}, annotations: {kafkafeatures.dev/container: x}}",
        );
        let error = inject_manifest(&wrong, &settings()).unwrap_err().to_string();
        assert!(error.starts_with("StatefulSet kafka: ") && error.contains("\"x\""), "{error}");
        let error = inject_manifest("a: [", &settings()).unwrap_err().to_string();
        assert!(error.contains("YAML"), "{error}");
        let wrong = MANIFEST.replace("[{name: kafka", "5 #[{name: kafka");
        let error = inject_manifest(&wrong, &settings()).unwrap_err().to_string();
        assert!(error.starts_with("StatefulSet kafka: "), "{error}");
    }
}
