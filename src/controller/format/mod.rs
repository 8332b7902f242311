//! Formats the pods of a resource: reads them and the identity record, has `grants` decide, and writes the record before
//! the grants that come from it.

mod pods;
mod shown;
mod store;
pub(super) mod wake;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::json;

use super::resource::{Resource, full_name, seniority};
use super::{Context, Error, NAME, in_time};
use crate::api::pods::{Answer, CLUSTER_LABEL, GRANT};
use crate::api::{Format, KafkaFeaturesSpec, PodState};
use crate::features::decide::{Mode, Spec};
use crate::features::observed::Observed;
use crate::grants::{self, Decision, Failure, Situation, ToGrant, decide};
use crate::kafka::Permit as _;
use crate::storage::Uuid;
pub(super) use shown::{events, onto, status};
use store::Stored;

/// What came of formatting in one pass.
pub(super) struct Formatting {
    pub(super) decision: Decision,
    /// The grants that were put on pods just now.
    pub(super) granted: Vec<ToGrant>,
    /// Whether what the record says is on record: else its id may be another one next time.
    pub(super) recorded: bool,
}

/// Formats what can be formatted now; `None` where the resource has no `format`.
///
/// # Errors
/// If the API server could not be asked, somebody else has changed the record, or the lease does not hold. What it refuses
/// for good is no error but a failure to show.
pub(super) async fn tend(
    context: &Context,
    resource: &Resource,
    spec: &Spec,
    observed: Option<&Observed>,
) -> Result<Option<Formatting>, Error> {
    let Some(format) = format_of(resource) else { return Ok(None) };
    let namespace = resource.metadata.namespace.clone().unwrap_or_default();
    let name = resource.metadata.name.clone().unwrap_or_default();
    let api: Api<Pod> = Api::namespaced(context.client.clone(), &namespace);
    let store = store::Store::new(context.client.clone(), &namespace, &name);
    let read = async { Ok((list(&api, format, &name).await?, store.read().await?)) };
    let (pods, stored) = match read.await {
        Ok(read) => read,
        Err(error) => return Ok(Some(Formatting::failed(refused(error)?))),
    };
    let held = match (spec.paused, spec.mode) {
        (true, _) => Some("spec.paused to be false: nothing is formatted while it is true"),
        (false, Mode::Plan) => Some("spec.mode to be Apply: nothing is formatted while it is Plan"),
        (false, Mode::Apply) => None,
    };
    let record = match stored.record() {
        Ok(record) => record,
        Err(failure) => return Ok(Some(Formatting::failed(failure))),
    };
    let owner = owner(context, resource, record.map(|record| record.cluster_id.as_str()));
    let situation = Situation {
        resource: &name,
        now: Timestamp::now(),
        owner: owner.as_deref(),
        format,
        target: &spec.target,
        pinned: spec.cluster_id.as_ref().map(|id| id.0.as_str()),
        remembered: resource.status.cluster_id.as_deref(),
        record,
        observed,
        pods: &pods,
        held,
    };
    let decision = decide(&situation, &mut || Uuid::random().to_string());
    let changed = decision.record.as_ref() != record;
    let mut formatting = Formatting { recorded: !changed, granted: Vec::new(), decision };
    if held.is_some() {
        return Ok(Some(formatting));
    }
    let to_grant: Vec<String> =
        formatting.decision.grants.iter().map(|to_grant| to_grant.pod.clone()).collect();
    if let Err(error) = write(context, &api, &store, &stored, changed, &mut formatting).await {
        formatting.decision.failure = Some(refused(error)?);
        formatting.keep_waiting(&to_grant);
    }
    Ok(Some(formatting))
}

impl Formatting {
    fn failed(failure: Failure) -> Self {
        let decision = Decision { failure: Some(failure), ..Decision::default() };
        Self { decision, granted: Vec::new(), recorded: false }
    }

    /// Shows that the pods of these that have got no grant wait on.
    fn keep_waiting(&mut self, to_grant: &[String]) {
        let has_none = |pod: &String| !self.granted.iter().any(|granted| granted.pod == *pod);
        let wait: Vec<&String> = to_grant.iter().filter(|pod| has_none(pod)).collect();
        for view in self.decision.pods.iter_mut().filter(|view| wait.contains(&&view.name)) {
            view.state = PodState::Waiting;
            view.part = None;
            view.waits_for = Some("the API server to let the operator grant it".to_owned());
        }
    }
}

/// What a person has to see to where the API server refuses something for good; any other error as it is.
fn refused(error: Error) -> Result<Failure, Error> {
    let Some(refusal) = error.refusal() else { return Err(error) };
    let message = format!(
        "{refusal}: see to the operator's rights, and to quotas and admission policies of the namespace"
    );
    Ok(Failure { reason: "ApiRefused".to_owned(), message })
}

/// The pods that are labelled for the resource.
async fn list(api: &Api<Pod>, format: &Format, resource: &str) -> Result<Vec<grants::Pod>, Error> {
    // a name that no label can have is no pod's label either
    if resource.len() > LONGEST_LABEL {
        return Ok(Vec::new());
    }
    let of_this = ListParams::default().labels(&format!("{CLUSTER_LABEL}={resource}"));
    let pods = in_time("list the pods", api.list(&of_this)).await?.items;
    Ok(pods.iter().map(|pod| pods::read(pod, format, resource)).collect())
}

/// No label's value is longer.
const LONGEST_LABEL: usize = 63;

/// An older resource that formats for the same cluster.
fn owner(context: &Context, resource: &Resource, recorded: Option<&str>) -> Option<String> {
    let cluster = resource.status.cluster_id.as_deref().or(recorded)?;
    let own = seniority(&resource.metadata);
    context
        .resources
        .state()
        .iter()
        .filter_map(|guarded| guarded.0.as_ref().ok())
        .filter(|other| other.spec.format.is_some() && other.metadata.deletion_timestamp.is_none())
        .filter(|other| other.metadata.uid != resource.metadata.uid)
        .filter(|other| {
            other.status.as_ref().and_then(|status| status.cluster_id.as_deref()) == Some(cluster)
        })
        .filter(|other| seniority(&other.metadata) < own)
        .map(full_name)
        .next()
}

fn format_of(resource: &Resource) -> Option<&Format> {
    resource.spec.as_ref().ok().and_then(|spec: &KafkaFeaturesSpec| spec.format.as_ref())
}

async fn write(
    context: &Context,
    api: &Api<Pod>,
    store: &store::Store,
    stored: &Stored,
    changed: bool,
    formatting: &mut Formatting,
) -> Result<(), Error> {
    let mut written = None;
    if let Some(record) = formatting.decision.record.as_ref().filter(|_| changed) {
        if !context.tenure.holds() {
            return Err(Error::LeaseRanOut);
        }
        written = Some(store.write(stored, record).await?);
        formatting.recorded = true;
    }
    let (mut gone, mut failed) = (Vec::new(), None);
    for to_grant in std::mem::take(&mut formatting.decision.grants) {
        if !context.tenure.holds() {
            return Err(Error::LeaseRanOut);
        }
        let (pod, grant) = (&to_grant.pod, &to_grant.grant);
        match put(api, pod, Answer::Granted(Box::new(grant.clone()))).await {
            Ok(true) => {
                tracing::info!(pod, node = grant.node_id, part = ?grant.part, "granted");
                formatting.granted.push(to_grant);
            }
            Ok(false) => gone.push(grant.pod.clone()),
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
    }
    take_back(store, stored, written, &gone, formatting).await?;
    if let Some(error) = failed {
        return Err(error);
    }
    for to_deny in &formatting.decision.denials {
        if !context.tenure.holds() {
            return Err(Error::LeaseRanOut);
        }
        put(api, &to_deny.pod, Answer::Denied(to_deny.denial.clone())).await?;
    }
    Ok(())
}

/// Takes grants off the record that were to be put on pods that were gone.
async fn take_back(
    store: &store::Store,
    stored: &Stored,
    written: Option<Stored>,
    gone: &[String],
    formatting: &mut Formatting,
) -> Result<(), Error> {
    let (Some(written), Some(record)) = (written, &mut formatting.decision.record) else { return Ok(()) };
    if record.take_back(stored.record().ok().flatten(), gone) {
        store.write(&written, record).await?;
    }
    Ok(())
}

/// Puts an answer on its pod; false where that pod is gone.
async fn put(api: &Api<Pod>, pod: &str, answer: Answer) -> Result<bool, Error> {
    let doing = "put an answer on a pod";
    let text = serde_json::to_string(&answer)
        .map_err(|error| Error::Api { doing, source: kube::Error::SerdeError(error) })?;
    // a pod of the same name that came in between is another, and has another uid
    let patch = json!({ "metadata": { "uid": answer.pod(), "annotations": { GRANT: text } } });
    let params = PatchParams { field_manager: Some(NAME.to_owned()), ..PatchParams::default() };
    let Err(error) = in_time(doing, api.patch_metadata(pod, &params, &Patch::Merge(&patch))).await else {
        return Ok(true);
    };
    match &error {
        Error::Api { source: kube::Error::Api(status), .. } if [404, 409, 422].contains(&status.code) => {}
        _ => return Err(error),
    }
    let by_name = ListParams::default().fields(&format!("metadata.name={pod}"));
    let there = in_time("list the pods", api.list_metadata(&by_name)).await?.items;
    let same = there.iter().any(|there| there.metadata.uid.as_deref() == Some(answer.pod()));
    if same { Err(error) } else { Ok(false) }
}
