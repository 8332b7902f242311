//! One pass over one resource: observe, decide, act, report. Reads the resource anew, so that what an earlier pass
//! wrote is seen, and writes its status at most once.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Resource as _;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::ApiResource;
use kube::runtime::events::{Event, Recorder};
use serde_json::json;

use super::act::{Outcome, act};
use super::cluster::{Cluster, Counted};
use super::resource::{Resource, seniority};
use super::{Context, Error, NAME, claims, format, in_time, report};
use crate::api::{KafkaFeatures, KafkaFeaturesStatus, conditions};
use crate::features::catalog::Catalog;
use crate::features::decide::{Decision, Recheck, Situation, Spec, Unreachable};
use crate::features::observed::Observed;
use crate::kafka::{self, Address, Endpoints, Permit as _};

/// What a pass came to.
pub(super) struct Passed {
    pub(super) generation: Option<i64>,
    /// When the next one is due.
    pub(super) recheck: Recheck,
    /// The reason that conditions give.
    pub(super) reason: &'static str,
}

/// Makes one pass; `None` where the resource is gone.
pub(super) async fn pass(context: &Context, namespace: &str, name: &str) -> Result<Option<Passed>, Error> {
    let kind = ApiResource::erase::<KafkaFeatures>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(context.client.clone(), namespace, &kind);
    let object = in_time("read the resource", api.get_opt(name)).await?;
    let Some(object) = object.filter(|object| object.metadata.deletion_timestamp.is_none()) else {
        return Ok(None);
    };
    let mut resource = Resource::read(&object);
    let uid = resource.metadata.uid.clone().unwrap_or_default();
    let written = resource.status.clone();
    let mut untold = context.untold.of(&uid);
    resource.status = untold.onto(resource.status);
    let (outcome, formatting) = match declared(context, &resource) {
        Ok((spec, client)) => {
            let cluster = Counted { client, metrics: &context.telemetry.metrics };
            let observed = cluster.observe().await;
            let formatting = format::tend(context, &resource, &spec, observed.as_ref().ok()).await?;
            let mut outcome = decide_and_act(context, &resource, &spec, &cluster, observed).await?;
            if let Some(formatting) = &formatting {
                format::onto(&mut outcome.decision, formatting);
            }
            (outcome, formatting)
        }
        Err(message) => {
            let decision = Decision::invalid_spec(&resource.remembered(), message);
            (Outcome { decision, accepted: None }, None)
        }
    };
    let now = Time(Timestamp::now());
    let mut status = report::status(&outcome, &resource.status, resource.metadata.generation, &now);
    format::status(&mut status, formatting.as_ref());
    let mut events = report::events(&outcome, &resource.status);
    if let Some(formatting) = &formatting {
        events.extend(format::events(formatting, &resource.status));
    }
    if let Some(request) = &outcome.accepted {
        untold.add(&status, request.steps.len(), std::mem::take(&mut events));
        context.untold.remember(&uid, untold.clone());
    }
    if !context.tenure.holds() {
        return Err(Error::LeaseRanOut);
    }
    if status != written {
        write(&api, &resource, &status).await?;
    }
    context.untold.forget(&uid);
    tell(context, &resource, untold.events.into_iter().chain(events.into_iter().map(Arc::new))).await;
    let reason = conditions::reason(outcome.decision.state);
    Ok(Some(Passed { generation: resource.metadata.generation, recheck: outcome.decision.recheck, reason }))
}

/// What the resource declares, and the cluster it declares it of.
fn declared(context: &Context, resource: &Resource) -> Result<(Spec, kafka::Client), String> {
    let spec = resource.spec.as_ref().map_err(|error| format!("The spec can't be read: {error}"))?;
    let declared = spec.declared().map_err(|error| error.to_string())?;
    let endpoints = Endpoints {
        brokers: addresses(&spec.cluster.bootstrap_servers)?,
        controllers: addresses(&spec.cluster.bootstrap_controllers)?,
    };
    let client = kafka::Client::new(endpoints, context.settings.kafka).under(context.tenure.clone());
    Ok((declared, client))
}

fn addresses(texts: &[String]) -> Result<Vec<Address>, String> {
    texts.iter().map(|text| text.parse::<Address>().map_err(|error| error.to_string())).collect()
}

async fn decide_and_act(
    context: &Context,
    resource: &Resource,
    spec: &Spec,
    cluster: &impl Cluster,
    observed: Result<Observed, Unreachable>,
) -> Result<Outcome, Error> {
    let claims = match &observed {
        Ok(observed) => {
            let resources = context.resources.state();
            claims::of_others(&resources, resource.metadata.uid.as_deref(), &observed.cluster_id)
        }
        Err(_) => Vec::new(),
    };
    let situation = Situation {
        catalog: Catalog::kafka(),
        spec,
        seniority: &seniority(&resource.metadata),
        claims: &claims,
        remembered: &resource.remembered(),
        observed: observed.as_ref(),
        refusal: None,
        now: Timestamp::now(),
    };
    act(cluster, situation).await
}

/// Writes the status, by server-side apply, so that what others keep in it stays.
async fn write(
    api: &Api<DynamicObject>,
    resource: &Resource,
    status: &KafkaFeaturesStatus,
) -> Result<(), Error> {
    let name = resource.metadata.name.clone().unwrap_or_default();
    let patch = json!({
        "apiVersion": KafkaFeatures::api_version(&()),
        "kind": KafkaFeatures::kind(&()),
        // a resource of the same name that came in between is another
        "metadata": { "name": name, "uid": resource.metadata.uid },
        "status": status,
    });
    let params = PatchParams::apply(NAME).force();
    in_time("write the status", api.patch_status(&name, &params, &Patch::Apply(&patch))).await?;
    Ok(())
}

/// Tells of what status says by now.
async fn tell(context: &Context, resource: &Resource, events: impl Iterator<Item = Arc<Event>>) {
    for event in events {
        tracing::info!(reason = event.reason, "{}", event.note.as_deref().unwrap_or_default());
        // a recorder of its own for each: one that remembers would repeat the first note under the same reason
        let recorder = Recorder::new(context.client.clone(), context.reporter.clone());
        let published = in_time("take an event", recorder.publish(&event, &resource.reference)).await;
        if let Err(error) = published {
            tracing::warn!(%error, reason = event.reason, "an event could not be published");
        }
    }
}
