//! The identity record of a cluster: its id, and which of the controllers that it begins with may have been formatted. It
//! outlives the resource, and is written before anything is granted from it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{Failure, Pod, Situation};
use crate::api::pods::{Report, Verdict};
use crate::api::{Format, QuorumKind};
use crate::features::FeatureName;
use crate::features::observed::{Known, Observed};
use crate::storage::Uuid;

/// Whether a controller that the cluster begins with may have been formatted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum VoterState {
    /// It was never granted: no such voter can have voted.
    Ungranted,
    /// It was granted to the pod of this uid. Once that pod is gone, nobody knows whether it was formatted.
    Granted(String),
    /// It was formatted, or may have been.
    Formatted,
}

/// A controller that the cluster begins with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedVoter {
    /// Its node id.
    pub node_id: i32,
    /// Its host.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The id of its metadata directory; `None` in a static quorum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory_id: Option<String>,
    /// Whether it may have been formatted.
    pub state: VoterState,
    /// Whether it was ever seen to be a pod of the resource: then it is known from there whether it has lost its volume.
    #[serde(default)]
    pub in_pods: bool,
    /// When it was last let back into a static quorum with nothing, in seconds since 1970. What the leader says of it may be
    /// from before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returned_at: Option<i64>,
}

/// The identity record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The cluster's id.
    pub cluster_id: String,
    /// How its quorum began.
    pub quorum: QuorumKind,
    /// Whether the quorum is dynamic by now, however it began.
    pub dynamic: bool,
    /// Whether the cluster was ever seen up.
    pub seen_up: bool,
    /// The levels that it begins with, once a controller was granted them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub levels: BTreeMap<String, i16>,
    /// The controllers that it begins with.
    pub voters: Vec<RecordedVoter>,
    /// The voters that a dynamic quorum was last seen to have; empty while it was not seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_seen: Vec<SeenVoter>,
}

/// A voter that a dynamic quorum was seen to have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeenVoter {
    /// Its node id.
    pub node_id: i32,
    /// The id of the metadata directory that it votes with.
    pub directory_id: String,
}

/// The record of a cluster that has none yet, or `prior`, of which nothing was granted yet; `None` while it is not known what
/// its quorum begins with. Where anything speaks for a cluster that exists already, no controller counts as never formatted.
///
/// # Errors
/// If the id of a new cluster is out of form.
pub(super) fn begin(
    situation: &Situation<'_>,
    prior: Option<&Record>,
    cluster_id: Option<String>,
    fresh: &mut dyn FnMut() -> String,
) -> Result<Option<Record>, Failure> {
    let reports = || situation.pods.iter().filter_map(|pod| pod.look.as_ref());
    // what status and brokers say of a cluster that has a record may come from there
    let known = || situation.remembered.is_some() || reports().any(|report| report.cluster_id.is_some());
    let exists = situation.observed.is_some() || (prior.is_none() && known());
    // clusters that exist have what ids they have
    let is_new = !exists && prior.is_none();
    if let Some(id) = cluster_id.as_ref().filter(|id| is_new && id.parse::<Uuid>().is_err()) {
        let message = format!(
            "{id:?} is to be the id of a new cluster, and clusters' ids are 22 characters of URL-safe base64: leave it out, or \
             give one such as `kafka-storage random-uuid` prints"
        );
        return Err(Failure::new("ClusterIdInvalid", message));
    }
    let state = if exists { VoterState::Formatted } else { VoterState::Ungranted };
    let kind = situation.format.quorum;
    let voters: Vec<RecordedVoter> = match kind {
        QuorumKind::Static => {
            let mut voters = reports().map(|report| &report.static_voters);
            let Some(voters) = voters.find(|voters| !voters.is_empty()) else { return Ok(prior.cloned()) };
            let voter = |text: &String| {
                let (node_id, host, port) = parse(text)?;
                Some(RecordedVoter {
                    node_id,
                    host,
                    port,
                    directory_id: None,
                    state: state.clone(),
                    in_pods: false,
                    returned_at: None,
                })
            };
            voters.iter().filter_map(voter).collect()
        }
        QuorumKind::Standalone | QuorumKind::InitialControllers => {
            let controllers = situation.format.initial_controllers.iter();
            let voter = |of: &crate::api::InitialController| RecordedVoter {
                node_id: of.node_id,
                host: of.host.clone(),
                port: u16::try_from(of.port).unwrap_or_default(),
                directory_id: Some(
                    found(situation.pods, of.node_id)
                        .or_else(|| prior?.voter(of.node_id)?.directory_id.clone())
                        .unwrap_or_else(&mut *fresh),
                ),
                state: state.clone(),
                in_pods: false,
                returned_at: None,
            };
            controllers.map(voter).collect()
        }
    };
    Ok(Some(Record {
        cluster_id: cluster_id.unwrap_or_else(fresh),
        quorum: kind,
        dynamic: kind != QuorumKind::Static,
        seen_up: situation.observed.is_some() || (prior.is_none() && situation.remembered.is_some()),
        levels: BTreeMap::new(),
        voters,
        last_seen: Vec::new(),
    }))
}

/// The id of the metadata directory that a controller has already.
fn found(pods: &[Pod], node_id: i32) -> Option<String> {
    let mut reports = pods.iter().filter_map(|pod| pod.look.as_ref());
    reports.find(|report| report.node_id == Some(node_id))?.directory_id.clone()
}

/// A voter as `controller.quorum.voters` has it.
pub(super) fn parse(text: &str) -> Option<(i32, String, u16)> {
    let (id, address) = text.split_once('@')?;
    let (host, port) = address.rsplit_once(':')?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    Some((id.parse().ok()?, host.to_owned(), port.parse().ok()?))
}

impl Record {
    /// Whether nothing was granted from it yet: until then it follows the declaration.
    pub(super) fn is_untouched(&self) -> bool {
        !self.seen_up && self.voters.iter().all(|voter| voter.state == VoterState::Ungranted)
    }

    /// Sees that the declaration still says how the cluster began.
    pub(super) fn check_declared(&self, format: &Format) -> Result<(), Failure> {
        let address = |id: i32, host: &str, port: i32| format!("{id}@{host}:{port}");
        let began: BTreeSet<String> =
            self.voters.iter().map(|v| address(v.node_id, &v.host, v.port.into())).collect();
        let declared: BTreeSet<String> =
            format.initial_controllers.iter().map(|c| address(c.node_id, &c.host, c.port)).collect();
        if self.quorum == format.quorum && (self.quorum == QuorumKind::Static || began == declared) {
            return Ok(());
        }
        let list = |of: &BTreeSet<String>| of.iter().cloned().collect::<Vec<_>>().join(", ");
        Err(Failure::new(
            "QuorumChanged",
            format!(
                "cluster {} began as {:?} with the controllers {}, and format declares {:?} with {}: put that back; where all of \
                 its data may be lost, delete this resource, its identity record and its volumes to begin anew",
                self.cluster_id,
                self.quorum,
                list(&began),
                format.quorum,
                if declared.is_empty() { "none".to_owned() } else { list(&declared) },
            ),
        ))
    }

    /// The record of a controller, if the cluster begins with it.
    #[must_use]
    pub fn voter(&self, node_id: i32) -> Option<&RecordedVoter> {
        self.voters.iter().find(|voter| voter.node_id == node_id)
    }

    pub(super) fn voter_mut(&mut self, node_id: i32) -> Option<&mut RecordedVoter> {
        self.voters.iter_mut().find(|voter| voter.node_id == node_id)
    }

    /// Takes back grants that were to be put on pods that were gone by then: nobody has seen them. One that was on record
    /// before may have been used. Whether anything was taken back.
    pub fn take_back(&mut self, earlier: Option<&Self>, gone: &[String]) -> bool {
        let mut any = false;
        for voter in &mut self.voters {
            let before = earlier.and_then(|earlier| earlier.voter(voter.node_id));
            let first = before.is_none_or(|before| before.state == VoterState::Ungranted);
            if first && matches!(&voter.state, VoterState::Granted(pod) if gone.contains(pod)) {
                voter.state = VoterState::Ungranted;
                any = true;
            }
        }
        any
    }

    /// The node ids of the controllers that vote, as far as is known, each with the id of the directory that it votes with.
    pub(super) fn votes(&self) -> Vec<(i32, Option<&str>)> {
        if self.last_seen.is_empty() {
            return self.voters.iter().map(|voter| (voter.node_id, voter.directory_id.as_deref())).collect();
        }
        self.last_seen.iter().map(|voter| (voter.node_id, Some(voter.directory_id.as_str()))).collect()
    }

    /// Takes in what pods report and what is seen of the cluster.
    pub(super) fn learn(&mut self, situation: &Situation<'_>) {
        for pod in situation.pods {
            for report in [&pod.look, &pod.format].into_iter().flatten() {
                self.learn_report(report);
            }
        }
        if let Some(observed) = situation.observed.filter(|observed| is_up(observed)) {
            self.seen_up = true;
            self.dynamic |= observed.finalized.get(FeatureName::KRAFT_VERSION).0 > 0;
            let voters =
                observed.quorum.value().map(|quorum| quorum.details.voters.as_slice()).unwrap_or_default();
            let mut seen: Vec<SeenVoter> = voters
                .iter()
                .map(|voter| SeenVoter { node_id: voter.id.0, directory_id: voter.directory_id.clone() })
                .collect();
            seen.sort_by_key(|voter| voter.node_id);
            // a leader that has just been elected may not know them yet
            if self.dynamic && !seen.is_empty() {
                self.last_seen = seen;
            }
        }
    }

    fn learn_report(&mut self, report: &Report) {
        if report.controller
            && let Some(voter) = report.node_id.and_then(|id| self.voter_mut(id))
        {
            voter.in_pods = true;
        }
        let formatted = matches!(report.verdict, Verdict::Formatted | Verdict::FormattedNow);
        if !(formatted || report.directory_id.is_some() || report.metadata_directory_missing)
            || !report.controller
            || report.cluster_id.as_deref() != Some(self.cluster_id.as_str())
        {
            return;
        }
        if let Some(voter) = report.node_id.and_then(|id| self.voter_mut(id)) {
            voter.state = VoterState::Formatted;
        }
    }
}

/// Whether the quorum has a leader.
pub(super) fn is_up(observed: &Observed) -> bool {
    let Known::Yes(quorum) = &observed.quorum else { return false };
    matches!(quorum.leader, Known::Yes(_))
}
