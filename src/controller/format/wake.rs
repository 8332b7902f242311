//! Which changes of pods are worth a pass: those of what formatting depends on, and of whether a pod is ready.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Mutex, PoisonError};

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;

/// What pods were like when they last changed, by uid.
#[derive(Debug, Default)]
pub(in crate::controller) struct Seen(Mutex<HashMap<String, u64>>);

/// More pods than this are not remembered, and each of their changes counts.
const MOST: usize = 20_000;

impl Seen {
    /// Whether a pod has changed in what matters.
    pub(in crate::controller) fn changed(&self, pod: &Pod) -> bool {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let uid = pod.uid().unwrap_or_default();
        let gone = pod.metadata.deletion_grace_period_seconds == Some(0);
        if gone {
            seen.remove(&uid);
            return true;
        }
        if seen.len() >= MOST {
            seen.clear();
        }
        let now = digest(pod);
        seen.insert(uid, now) != Some(now)
    }
}

fn digest(pod: &Pod) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (name, value) in pod.annotations().iter().chain(pod.labels()) {
        if name.starts_with("kafkafeatures.dev/") {
            (name, value).hash(&mut hasher);
        }
    }
    pod.metadata.deletion_timestamp.is_some().hash(&mut hasher);
    if let Some(status) = &pod.status {
        status.phase.hash(&mut hasher);
        for container in status.init_container_statuses.iter().flatten() {
            format!("{:?}{:?}", container.state, container.last_state).hash(&mut hasher);
        }
        let ready = status.conditions.iter().flatten().filter(|condition| condition.type_ == "Ready");
        ready.for_each(|condition| condition.status.hash(&mut hasher));
    }
    hasher.finish()
}
