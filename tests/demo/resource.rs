//! The resource that the demo applies, as a person follows it: by its status.

use std::time::Duration;

use futures::TryStreamExt;
use kafka_features_operator::api::{KafkaFeatures, conditions};
use kube::Api;
use kube::runtime::{WatchStreamExt, watcher};

use crate::progress::Progress;
use crate::testbed::ApiServer;
use crate::testbed::process::Process;
use crate::told;

const PATIENCE: Duration = Duration::from_secs(120);

/// Shows what status tells until the resource is as wanted; returns it as it is then.
pub(crate) async fn follow(
    server: &ApiServer,
    operator: &mut Process,
    progress: &mut Progress,
    name: &str,
    wanted: impl Fn(&KafkaFeatures) -> bool,
) -> Result<KafkaFeatures, String> {
    let followed = tokio::time::timeout(PATIENCE, watch(server, operator, progress, name, wanted)).await;
    let followed =
        followed.unwrap_or_else(|_| Err(format!("{name} did not come so far in {} s", PATIENCE.as_secs())));
    followed.map_err(|reason| format!("{reason}\nthe last lines of the operator:\n{}", operator.tail(15)))
}

async fn watch(
    server: &ApiServer,
    operator: &mut Process,
    progress: &mut Progress,
    name: &str,
    wanted: impl Fn(&KafkaFeatures) -> bool,
) -> Result<KafkaFeatures, String> {
    let resources: Api<KafkaFeatures> = Api::namespaced(server.client().await, "default");
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let mut changes = Box::pin(watcher(resources, config).default_backoff().applied_objects());
    let mut tick = tokio::time::interval(Duration::from_millis(500));
    loop {
        tokio::select! {
            change = changes.try_next() => {
                let Some(now) = change.map_err(|e| told("watching the resource", e))? else { continue };
                progress.show(&now);
                if is(&now, conditions::STALLED) {
                    return Err(format!("{name} is Stalled"));
                }
                if wanted(&now) {
                    return Ok(now);
                }
            }
            _ = tick.tick() => {
                if !operator.runs() {
                    return Err("the operator ended".to_owned());
                }
            }
        }
    }
}

/// Whether a condition holds for the spec as it is now.
fn is(resource: &KafkaFeatures, kind: &str) -> bool {
    resource.status.as_ref().is_some_and(|status| {
        let holds = status.conditions.iter().any(|c| c.type_ == kind && c.status == "True");
        holds && status.observed_generation == resource.metadata.generation
    })
}

/// Whether the operator says that the cluster is as declared.
pub(crate) fn is_ready(resource: &KafkaFeatures) -> bool {
    is(resource, conditions::READY)
}

/// Whether one node, and no other, holds the target back.
pub(crate) fn waits_for(resource: &KafkaFeatures, node: i32) -> bool {
    let blockers = || resource.status.iter().flat_map(|status| &status.blockers);
    blockers().next().is_some() && blockers().all(|blocker| blocker.node_id == node)
}
