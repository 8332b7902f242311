//! Which cluster this is about, and whether every pod is of it.

use std::collections::BTreeMap;

use super::{Failure, GivenId, Pod, PodView, Record, Situation};
use crate::api::pods::{CLUSTER_ID_ENV, Report};
use crate::api::{PodState, QuorumKind};

/// The cluster's id, from the first that knows one; `None` where none does.
///
/// # Errors
/// If two know different ones: both are named.
pub(super) fn cluster_id(situation: &Situation<'_>) -> Result<Option<String>, Failure> {
    let record = situation.record.map(|record| record.cluster_id.as_str());
    let given = situation.pods.iter().find_map(|pod| match &pod.given_id {
        GivenId::Value(id) => Some((id.as_str(), pod)),
        _ => None,
    });
    let running = situation.observed.map(|observed| observed.cluster_id.0.as_str());
    let sources = [
        ("spec.clusterId".to_owned(), situation.pinned),
        ("status.clusterId".to_owned(), situation.remembered),
        (format!("the ConfigMap {}", crate::api::pods::identity_name(situation.resource)), record),
        (
            format!("the variable {} of pod {}", variable(situation), given.map_or("", |(_, pod)| &pod.name)),
            given.map(|(id, _)| id),
        ),
        ("the running cluster".to_owned(), running),
    ];
    let mut known: Vec<(String, String)> =
        sources.into_iter().filter_map(|(from, id)| Some((from, id?.to_owned()))).collect();
    if known.is_empty() {
        let found = |pod: &Pod| {
            let report = pod.latest()?;
            Some((format!("the directories of pod {}", pod.name), report.cluster_id.clone()?))
        };
        known = situation.pods.iter().filter_map(found).collect();
    }
    let Some((from, id)) = known.first() else { return Ok(None) };
    match known.iter().find(|(_, other)| other != id) {
        Some((elsewhere, other)) => Err(Failure::new(
            "ClusterIdMismatch",
            format!(
                "{from} is cluster {id:?} and {elsewhere} is cluster {other:?}: nothing is formatted until they are one and \
                 the same"
            ),
        )),
        None => Ok(Some(id.clone())),
    }
}

/// Sees that no older resource formats for the same cluster.
pub(super) fn check_owner(situation: &Situation<'_>) -> Result<(), Failure> {
    let Some(owner) = situation.owner else { return Ok(()) };
    Err(Failure::new(
        "FormatConflict",
        format!("the older resource {owner} formats for this cluster already: only one may have format"),
    ))
}

fn variable<'a>(situation: &Situation<'a>) -> &'a str {
    situation.format.cluster_id_env.as_deref().unwrap_or_default()
}

/// Sees whether the pods are of this cluster, and whether their configuration is what the resource says. A pod that is not
/// fails, and the others go on.
pub(super) fn check_pods(situation: &Situation<'_>, record: &Record, views: &mut [PodView]) {
    let mut by_node: BTreeMap<i32, Vec<String>> = BTreeMap::new();
    for view in views.iter() {
        if let Some(id) = view.node_id {
            by_node.entry(id).or_default().push(view.name.clone());
        }
    }
    for view in views.iter_mut() {
        let pod = situation.pods.iter().find(|pod| pod.name == view.name && !pod.going);
        let Some((pod, report)) = pod.and_then(|pod| Some((pod, pod.latest()?))) else { continue };
        if view.state == PodState::Failed {
            continue;
        }
        let twins = view.node_id.and_then(|id| by_node.get(&id)).filter(|pods| pods.len() > 1);
        let failure = twins
            .map(|pods| {
                let message = format!(
                    "pods {} are all node {}: each node has an id of its own; correct node.id, or the annotation {}",
                    pods.join(", "),
                    view.node_id.unwrap_or_default(),
                    crate::api::pods::NODE_ID
                );
                Failure::new("DuplicateNodeId", message)
            })
            .or_else(|| other_cluster(situation, record, pod, report))
            .or_else(|| other_quorum(situation, record, report));
        if let Some(failure) = failure {
            view.state = PodState::Failed;
            view.failure = Some(failure);
        }
    }
}

fn other_cluster(situation: &Situation<'_>, record: &Record, pod: &Pod, report: &Report) -> Option<Failure> {
    let id = &record.cluster_id;
    if let Some(found) = report.cluster_id.as_ref().filter(|found| *found != id) {
        let message = format!(
            "its directories belong to cluster {found:?}, and this is cluster {id:?}: give the pod the volume of its own \
             cluster, or an empty one"
        );
        return Some(Failure::new("ClusterIdMismatch", message));
    }
    let name = variable(situation);
    match &pod.given_id {
        GivenId::Value(given) if given != id => Some(Failure::new(
            "ClusterIdMismatch",
            format!("its manifest sets {name} to {given:?}, and this is cluster {id:?}: correct the value"),
        )),
        GivenId::Missing => Some(Failure::new(
            "ClusterIdEnvMissing",
            format!(
                "format.clusterIdEnv is {name:?}, and its Kafka container is not given that variable: add the annotation \
                 {CLUSTER_ID_ENV}: {name} to the pod"
            ),
        )),
        _ => None,
    }
}

/// How a pod's configuration contradicts the declared quorum.
fn other_quorum(situation: &Situation<'_>, record: &Record, report: &Report) -> Option<Failure> {
    let declared = situation.format.quorum;
    let is_static = !report.static_voters.is_empty();
    let message = match (declared, is_static) {
        (QuorumKind::Static, false) if !record.dynamic => {
            "format.quorum is Static, and its configuration has no controller.quorum.voters: set them, or declare \
             Standalone or InitialControllers"
                .to_owned()
        }
        (QuorumKind::Static, true) => {
            let ids = |voters: Vec<(i32, String, u16)>| {
                let mut voters = voters;
                voters.sort();
                voters
            };
            let found = ids(report.static_voters.iter().filter_map(|text| super::record::parse(text)).collect());
            let recorded = record.voters.iter().map(|v| (v.node_id, v.host.clone(), v.port)).collect();
            if found.iter().map(|v| v.0).eq(ids(recorded).iter().map(|v| v.0)) {
                return None;
            }
            format!(
                "its controller.quorum.voters is {}, and other nodes of the cluster have {}: all nodes have the same voters",
                report.static_voters.join(","),
                record
                    .voters
                    .iter()
                    .map(|v| format!("{}@{}:{}", v.node_id, v.host, v.port))
                    .collect::<Vec<_>>()
                    .join(",")
            )
        }
        (QuorumKind::Standalone | QuorumKind::InitialControllers, true) => format!(
            "its configuration has controller.quorum.voters, which makes the quorum static, and format.quorum is {declared:?}: \
             set controller.quorum.bootstrap.servers instead, or declare Static"
        ),
        _ => return None,
    };
    Some(Failure::new("QuorumKindMismatch", message))
}
