//! What kstatus, which Flux and `kubectl` plugins wait by, makes of an object. Its rules, in their order: an object that
//! is going is terminating; one whose newest generation nobody has looked at is in progress; then `Reconciling` and
//! `Stalled` where they are true; then `Ready`; and what says nothing is current.

// each test binary uses its own share
#![allow(dead_code, unreachable_pub, missing_docs)]

use serde_json::Value;

/// What a tool that waits would make of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kstatus {
    InProgress,
    Failed,
    Current,
    Terminating,
}

pub fn kstatus(object: &Value) -> Kstatus {
    if !object["metadata"]["deletionTimestamp"].is_null() {
        return Kstatus::Terminating;
    }
    let observed = &object["status"]["observedGeneration"];
    let generation = &object["metadata"]["generation"];
    if !observed.is_null() && !generation.is_null() && observed != generation {
        return Kstatus::InProgress;
    }
    let conditions = object["status"]["conditions"].as_array();
    let is = |kind: &str, status: &str| {
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|condition| condition["type"] == kind && condition["status"] == status)
    };
    if is("Reconciling", "True") {
        Kstatus::InProgress
    } else if is("Stalled", "True") {
        Kstatus::Failed
    } else if is("Ready", "False") || is("Ready", "Unknown") {
        Kstatus::InProgress
    } else {
        Kstatus::Current
    }
}

/// Fails if a resource looks current while levels that it declares are still to be moved.
pub fn assert_honest(resource: &Value) {
    if kstatus(resource) != Kstatus::Current {
        return;
    }
    let (spec, status) = (&resource["spec"], &resource["status"]);
    assert_eq!(status["observedGeneration"], resource["metadata"]["generation"], "{resource:#}");
    if spec["mode"] == "Plan" {
        return;
    }
    let open: Vec<&Value> = status["features"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|feature| !feature["target"].is_null())
        .filter(|feature| {
            !["AtTarget", "Held", "AboveTarget"].contains(&feature["state"].as_str().unwrap_or(""))
        })
        .collect();
    assert!(open.is_empty(), "current, though these are not as declared: {open:?}\n{resource:#}");
    let declared =
        !spec["releaseVersion"].is_null() || spec["features"].as_object().is_some_and(|f| !f.is_empty());
    let shown = status["features"].as_array().is_some_and(|features| !features.is_empty());
    assert!(!declared || shown, "current, though nobody has seen the cluster: {resource:#}");
}
