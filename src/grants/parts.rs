//! The part that each waiting node plays, and what it waits for where it plays none yet.

use std::collections::{BTreeMap, BTreeSet};

use super::record::is_up;
use super::{Decision, Failure, Pod, Record, Situation, ToGrant, VoterState, levels};
use crate::api::PodState;
use crate::api::pods::{Grant, GrantedVoter, Part, Report};
use crate::features::observed::{Known, Quorum};

/// What comes of a node that waits.
enum Outcome {
    /// It is formatted so.
    Format { part: Part, directory_id: Option<String>, voters: Vec<GrantedVoter> },
    /// It may be a controller that the cluster begins with, once all of these are here.
    Begins,
    /// It waits.
    Waits(String),
    /// It can't be.
    Fails(Failure),
}

impl Outcome {
    fn format(part: Part) -> Self {
        Self::Format { part, directory_id: None, voters: Vec::new() }
    }
}

/// The reason of a container that found the others led already. It has written nothing, and may play another part.
const LEADER_FOUND: &str = "LeaderFound";

/// Assigns parts, and puts into the record which controllers are granted to which pod.
pub(super) fn assign(situation: &Situation<'_>, record: &mut Record, decision: &mut Decision) {
    let up = situation.observed.filter(|observed| is_up(observed));
    if record.levels.is_empty() || record.voters.iter().all(|voter| voter.state == VoterState::Ungranted) {
        match levels::declared(situation, record) {
            Ok(levels) => record.levels = levels,
            Err(failure) if up.is_none() => {
                decision.failure = Some(failure);
                return;
            }
            Err(_) => {}
        }
    }
    let waiting: Vec<(&Pod, &Report)> = situation
        .pods
        .iter()
        .filter(|pod| !pod.going && pod.injected)
        .filter_map(|pod| Some((pod, pod.latest()?)))
        .filter(|(pod, _)| {
            decision.pods.iter().any(|view| {
                let led = view.failure.as_ref().is_some_and(|failure| failure.reason == LEADER_FOUND);
                view.name == pod.name && (view.state == PodState::Waiting || led)
            })
        })
        .collect();
    if let Some(failure) = lost(situation, record, &waiting) {
        decision.failure = Some(failure);
        return;
    }
    let mut outcomes: Vec<(&Pod, Outcome)> =
        waiting.iter().map(|(pod, report)| (*pod, outcome(situation, record, pod, report))).collect();
    let begins: BTreeSet<i32> = outcomes
        .iter()
        .filter(|(_, outcome)| matches!(outcome, Outcome::Begins))
        .filter_map(|(pod, _)| pod.latest()?.node_id)
        .collect();
    let missing: Vec<String> = record
        .voters
        .iter()
        .filter(|voter| voter.state == VoterState::Ungranted && !begins.contains(&voter.node_id))
        .map(|voter| voter.node_id.to_string())
        .collect();
    for (pod, outcome) in &mut outcomes {
        if !matches!(outcome, Outcome::Begins) {
            continue;
        }
        *outcome = if missing.is_empty() {
            begin(record, pod, situation.held.is_none())
        } else {
            Outcome::Waits(format!(
                "the pods of the controllers {}: those that the cluster begins with start together, so their StatefulSet \
                 needs podManagementPolicy: Parallel",
                missing.join(", ")
            ))
        };
    }
    for (pod, outcome) in outcomes {
        let returns = matches!(outcome, Outcome::Format { part: Part::ReturningVoter, .. });
        let granted = put(situation, record, decision, pod, outcome);
        let report = pod.latest().filter(|report| report.directory_id.is_none());
        if let Some(voter) = report.and_then(|report| report.node_id).and_then(|id| record.voter_mut(id))
            && (returns && granted)
        {
            voter.returned_at = Some(situation.now.as_second());
        }
    }
}

/// Grants a pod the format as a controller that the cluster begins with.
fn begin(record: &mut Record, pod: &Pod, granted: bool) -> Outcome {
    let Some(node_id) = pod.latest().and_then(|report| report.node_id) else {
        return Outcome::Waits("its node's id".to_owned());
    };
    if granted && let Some(voter) = record.voter_mut(node_id) {
        voter.state = VoterState::Granted(pod.uid.clone());
    }
    Outcome::Format {
        part: Part::Voter,
        directory_id: None,
        voters: if record.dynamic { granted_voters(record) } else { Vec::new() },
    }
}

fn granted_voters(record: &Record) -> Vec<GrantedVoter> {
    let voter = |voter: &super::RecordedVoter| GrantedVoter {
        node_id: voter.node_id,
        host: voter.host.clone(),
        port: voter.port,
        directory_id: voter.directory_id.clone(),
    };
    record.voters.iter().map(voter).collect()
}

/// What comes of a node by the record and the cluster.
fn outcome(situation: &Situation<'_>, record: &Record, pod: &Pod, report: &Report) -> Outcome {
    let Some(node_id) = report.node_id else { return Outcome::Waits("its node's id".to_owned()) };
    if !report.controller {
        return Outcome::format(Part::Broker);
    }
    // the metadata log is there: what is added beside it says nothing about votes
    if report.directory_id.is_some() {
        return Outcome::format(if record.dynamic { Part::Observer } else { Part::ReturningVoter });
    }
    let Some(voter) = record.voter(node_id) else {
        return if record.dynamic {
            observer(situation, report, None)
        } else {
            Outcome::Fails(Failure::new(
                "NotAVoter",
                format!(
                    "controller {node_id} is not among controller.quorum.voters, and a static quorum has no observers: add \
                     it there, or make the quorum dynamic first (kraft.version 1)"
                ),
            ))
        };
    };
    match &voter.state {
        // what can't be granted in the end must not be on record as granted
        VoterState::Ungranted if !record.seen_up => match suits(situation, pod, &record.levels) {
            Ok(_) => Outcome::Begins,
            Err(failure) => Outcome::Fails(failure),
        },
        VoterState::Granted(uid) if *uid == pod.uid && !found_leader(pod) => Outcome::Format {
            part: Part::Voter,
            directory_id: None,
            voters: if record.dynamic { granted_voters(record) } else { Vec::new() },
        },
        // nothing was written under this id, so it is still the voter's own
        VoterState::Granted(uid) if *uid == pod.uid && record.dynamic => {
            observer(situation, report, voter.directory_id.clone())
        }
        VoterState::Ungranted if record.dynamic => observer(situation, report, voter.directory_id.clone()),
        _ => lost_voter(situation, record, report, node_id),
    }
}

/// The pod's Kafka, where it can start on the levels.
fn suits(situation: &Situation<'_>, pod: &Pod, levels: &BTreeMap<String, i16>) -> Result<String, Failure> {
    let (text, software) = levels::software(situation, pod)?;
    levels::check(&text, &software, levels)?;
    Ok(text)
}

fn found_leader(pod: &Pod) -> bool {
    pod.format.as_ref().and_then(|report| report.reason.as_deref()) == Some(LEADER_FOUND)
}

/// A voter that may have voted before, and comes back with nothing.
fn lost_voter(situation: &Situation<'_>, record: &Record, report: &Report, node_id: i32) -> Outcome {
    let quorum = quorum(situation);
    if record.dynamic {
        return match quorum {
            Some(Quorum { leader: Known::Yes(_), .. }) => observer(situation, report, None),
            _ => Outcome::Waits(format!(
                "the cluster to be seen up: controller {node_id} was formatted before and came back empty, so it must not \
                 vote again; it joins as an observer"
            )),
        };
    }
    let healthy = quorum.is_some_and(|quorum| has_healthy_majority(situation, record, quorum, node_id));
    if healthy {
        Outcome::format(Part::ReturningVoter)
    } else {
        Outcome::Waits(format!(
            "the other voters to be seen as a healthy majority: controller {node_id} was formatted before and came back \
             empty, and its vote alone could undo what it has forgotten"
        ))
    }
}

fn quorum<'a>(situation: &Situation<'a>) -> Option<&'a Quorum> {
    situation.observed?.quorum.value()
}

/// So many seconds after a voter was let back, a leader that calls it caught up means what it has now: several times as long
/// as a leader goes on calling one so that it has not heard from.
const SETTLED: i64 = 60;

/// Whether enough voters besides one have what the leader has. A leader goes on counting one that has just lost its volume:
/// of those that are pods, only one whose directories were found formatted counts.
fn has_healthy_majority(situation: &Situation<'_>, record: &Record, quorum: &Quorum, besides: i32) -> bool {
    let Known::Yes(leader) = &quorum.leader else { return false };
    let now = situation.now.as_second();
    let sound = |id: i32| {
        let voter = record.voter(id);
        let back = voter.and_then(|voter| voter.returned_at).is_some_and(|at| now - at < SETTLED);
        let in_pods = voter.is_none_or(|voter| voter.in_pods);
        !back && (!in_pods || situation.pods.iter().any(|pod| !pod.going && pod.is_formatted_as(id)))
    };
    let others: BTreeSet<i32> =
        quorum.details.caught_up.iter().chain([leader]).map(|id| id.0).filter(|id| *id != besides).collect();
    let healthy = others.iter().filter(|id| sound(**id)).count();
    leader.0 != besides && sound(leader.0) && healthy * 2 > record.voters.len().max(quorum.voters.len())
}

/// Tells of controllers that came back as observers, whom Kafka still lists as voters under the directory that was lost.
pub(super) fn tell_of_old_voters(situation: &Situation<'_>, decision: &mut Decision) {
    let Some(quorum) = quorum(situation) else { return };
    for view in decision.pods.iter_mut().filter(|view| view.state == PodState::Formatted) {
        let pod = situation.pods.iter().find(|pod| pod.name == view.name && !pod.going);
        let Some(report) = pod.and_then(Pod::latest).filter(|report| report.controller) else { continue };
        let old = quorum.details.voters.iter().find(|voter| {
            Some(voter.id.0) == report.node_id && Some(&voter.directory_id) != report.directory_id.as_ref()
        });
        if let (Some(old), Some(own)) = (old, &report.directory_id) {
            view.waits_for = Some(format!(
                "it observes: the quorum still lists controller {} as a voter with the directory {}, which was lost; to let it \
                 vote again, remove that one (kafka-metadata-quorum remove-controller), and add the one that it has now, {own} \
                 (add-controller)",
                old.id, old.directory_id
            ));
        }
    }
}

/// A controller that joins without a vote. One whose file still names static voters must be told the real ones, or it would
/// take itself for one of them.
fn observer(situation: &Situation<'_>, report: &Report, directory_id: Option<String>) -> Outcome {
    if report.static_voters.is_empty() {
        return Outcome::Format { part: Part::Observer, directory_id, voters: Vec::new() };
    }
    let Some(quorum) = quorum(situation).filter(|quorum| !quorum.details.voters.is_empty()) else {
        return Outcome::Waits(
            "the cluster to be seen up: the quorum is dynamic, and its voters have to be asked for"
                .to_owned(),
        );
    };
    let voter = |voter: &crate::features::observed::QuorumVoter| GrantedVoter {
        node_id: voter.id.0,
        host: voter.host.clone(),
        port: voter.port,
        directory_id: Some(voter.directory_id.clone()),
    };
    let voters = quorum.details.voters.iter().map(voter).collect();
    Outcome::Format { part: Part::Observer, directory_id, voters }
}

/// Whether so many voters have lost what they voted with that the rest is no majority, and no leader is seen.
fn lost(situation: &Situation<'_>, record: &Record, waiting: &[(&Pod, &Report)]) -> Option<Failure> {
    if quorum(situation).is_some_and(|quorum| matches!(quorum.leader, Known::Yes(_))) {
        return None;
    }
    let is_empty = |node_id: i32| {
        let of_node = |report: &Report| {
            report.controller && report.node_id == Some(node_id) && report.directory_id.is_none()
        };
        let mut pods = waiting.iter().filter(|(_, report)| of_node(report));
        pods.any(|(pod, _)| match record.voter(node_id).map(|voter| &voter.state) {
            Some(VoterState::Ungranted) => record.seen_up,
            Some(VoterState::Granted(uid)) => *uid != pod.uid,
            Some(VoterState::Formatted) | None => true,
        })
    };
    // one that came back as an observer has another directory
    let observes = |node_id: i32, voted_with: Option<&str>| {
        let mut pods = situation.pods.iter().filter(|pod| !pod.going && pod.is_formatted_as(node_id));
        pods.any(|pod| {
            pod.latest().is_some_and(|report| {
                report.cluster_id.as_ref() == Some(&record.cluster_id)
                    && voted_with
                        .is_some_and(|id| report.directory_id.as_deref().is_some_and(|has| has != id))
            })
        })
    };
    let votes = record.votes();
    let lost: BTreeSet<i32> = votes
        .iter()
        .filter(|(node_id, voted_with)| is_empty(*node_id) || observes(*node_id, *voted_with))
        .map(|(node_id, _)| *node_id)
        .collect();
    if lost.is_empty() || (votes.len() - lost.len()) * 2 > votes.len() {
        return None;
    }
    let ids: Vec<String> = lost.iter().map(ToString::to_string).collect();
    Some(Failure::new(
        "VotersLost",
        format!(
            "{} of the {} voters of cluster {} ({}) have lost the volumes that they voted with, and have empty or new ones; \
             without them there is no majority, and to format them anew would begin another cluster under the same id. \
             Give them their volumes back, or restore these from a backup. If all of the cluster's data may be lost: delete \
             this resource, the ConfigMap {} and all of the cluster's volumes, and apply the resource again",
            lost.len(),
            votes.len(),
            record.cluster_id,
            ids.join(", "),
            crate::api::pods::identity_name(situation.resource)
        ),
    ))
}

/// Writes an outcome down; whether the pod is granted something that it was not before.
fn put(
    situation: &Situation<'_>,
    record: &Record,
    decision: &mut Decision,
    pod: &Pod,
    outcome: Outcome,
) -> bool {
    let levels = match situation.observed.filter(|observed| is_up(observed)) {
        Some(observed) => levels::finalized(observed),
        None => record.levels.clone(),
    };
    let granted = |part, directory_id, voters| {
        let text = suits(situation, pod, &levels)?;
        Ok::<_, Failure>(Grant {
            pod: pod.uid.clone(),
            node_id: pod.latest().and_then(|report| report.node_id).unwrap_or_default(),
            cluster_id: record.cluster_id.clone(),
            kafka_version: text,
            part,
            directory_id,
            voters,
            levels: levels.clone(),
        })
    };
    let Some(view) = decision.pods.iter_mut().find(|view| view.name == pod.name) else { return false };
    view.state = PodState::Waiting;
    view.failure = None;
    match outcome {
        Outcome::Begins => {}
        Outcome::Waits(what) => view.waits_for = Some(what),
        Outcome::Fails(failure) => {
            view.state = PodState::Failed;
            view.failure = Some(failure);
        }
        Outcome::Format { part, directory_id, voters } => match granted(part, directory_id, voters) {
            Err(failure) => {
                view.state = PodState::Failed;
                view.failure = Some(failure);
            }
            Ok(_) if situation.held.is_some() => view.waits_for = situation.held.map(str::to_owned),
            Ok(grant) => {
                view.state = PodState::Granted;
                view.part = Some(part);
                // what the running cluster finalizes meanwhile changes nothing for a pod that is granted already
                let same = pod.grant.as_ref().is_some_and(|has| {
                    (&has.pod, has.part, &has.directory_id, &has.cluster_id)
                        == (&grant.pod, grant.part, &grant.directory_id, &grant.cluster_id)
                        && has.levels == grant.levels
                });
                if !same {
                    decision.grants.push(ToGrant { pod: pod.name.clone(), grant });
                }
                return !same;
            }
        },
    }
    false
}
