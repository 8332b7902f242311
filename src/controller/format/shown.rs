//! What formatting leaves behind in the decision, in status and in events.

use kube::runtime::events::{Event, EventType};

use super::Formatting;
use crate::api::conditions::{self, FORMAT_FAILED};
use crate::api::{KafkaFeaturesStatus, PodState, PodStatus};
use crate::features::decide::{Decision, Recheck, Stall, State};
use crate::features::observed::ClusterId;
use crate::grants::PodView;

/// Shows in the decision on levels what formatting has to say: what keeps pods from being formatted needs a person, and a
/// cluster that is not up for the first time yet is not unreachable.
pub(in crate::controller) fn onto(decision: &mut Decision, formatting: &Formatting) {
    let of = &formatting.decision;
    let record = of.record.as_ref().filter(|_| formatting.recorded);
    if let (None, Some(record)) = (&decision.cluster_id, record) {
        decision.cluster_id = Some(ClusterId(record.cluster_id.clone()));
    }
    let failure = of.first_failure();
    decision.format_failed = failure.clone().map(|failure| (failure.reason, failure.message));
    if decision.state == State::Paused {
        return;
    }
    let away = matches!(decision.state, State::ClusterUnreachable | State::QuorumUnavailable);
    match (failure, decision.state) {
        (Some(_), State::Stalled(_)) => {}
        (Some(failure), _) => {
            decision.show(
                State::Stalled(Stall::FormatFailed),
                format!("{}: {}", failure.reason, failure.message),
            );
        }
        (None, _) if away && !of.pods.is_empty() => {
            let begun = record.is_some_and(|record| record.seen_up);
            if let Some(waiting) = of.waiting() {
                decision.show(State::Bootstrapping, waiting);
            } else if !begun {
                let why = decision.message.trim_end_matches('.');
                let message = format!(
                    "Every pod is formatted; waits for the cluster to be up for the first time: {why}."
                );
                decision.show(State::Bootstrapping, message);
            }
        }
        (None, _) => {}
    }
    if waits(formatting) && decision.recheck == Recheck::Slow {
        decision.recheck = Recheck::Soon;
    }
}

/// Whether a pod waits for something that may come about without any pod changing, or a person has to see to one.
fn waits(formatting: &Formatting) -> bool {
    let mut pods = formatting.decision.pods.iter();
    pods.any(|pod| pod.waits_for.is_some() && pod.state != PodState::NotInjected)
}

/// Shows pods in status.
pub(in crate::controller) fn status(status: &mut KafkaFeaturesStatus, formatting: Option<&Formatting>) {
    let Some(formatting) = formatting else {
        status.pods.clear();
        return;
    };
    status.pods = formatting.decision.pods.iter().take(MOST_PODS).map(pod).collect();
    let record = formatting.decision.record.as_ref().filter(|_| formatting.recorded);
    if record.is_some_and(|record| record.seen_up) {
        status.bootstrapped = Some(true);
    }
}

/// A status has room for so many.
const MOST_PODS: usize = 500;

/// A pod's message is cut to this many bytes.
const LONGEST_MESSAGE: usize = 1024;

fn pod(view: &PodView) -> PodStatus {
    let failure = view.failure.as_ref();
    let message = failure.map(|failure| failure.message.as_str()).or(view.waits_for.as_deref());
    PodStatus {
        name: view.name.clone(),
        node_id: view.node_id,
        role: view
            .roles
            .map(|(broker, controller)| crate::features::observed::Roles { broker, controller }.to_string()),
        state: view.state,
        part: view.part.map(|part| format!("{part:?}")),
        reason: failure.map(|failure| failure.reason.clone()),
        message: message.map(|message| conditions::cut(message, LONGEST_MESSAGE)),
    }
}

/// One event for the grants of a pass, and one when formatting begins to fail, or fails for another reason.
pub(in crate::controller) fn events(formatting: &Formatting, previous: &KafkaFeaturesStatus) -> Vec<Event> {
    let mut events = Vec::new();
    if !formatting.granted.is_empty() {
        let granted: Vec<String> = formatting
            .granted
            .iter()
            .map(|granted| {
                format!("{} (node {}, {:?})", granted.pod, granted.grant.node_id, granted.grant.part)
            })
            .collect();
        events.push(event(EventType::Normal, "FormatGranted", &format!("Granted: {}.", granted.join(", "))));
    }
    if let Some(failure) = formatting.decision.first_failure() {
        let before = previous.conditions.iter().find(|condition| condition.type_ == FORMAT_FAILED);
        if before.is_none_or(|condition| condition.reason != failure.reason) {
            events.push(event(EventType::Warning, &failure.reason, &failure.message));
        }
    }
    events
}

fn event(type_: EventType, reason: &str, note: &str) -> Event {
    Event {
        type_,
        reason: reason.to_owned(),
        note: Some(conditions::cut(note, LONGEST_MESSAGE)),
        action: "Format".to_owned(),
        secondary: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::decide::Remembered;
    use crate::grants;

    #[test]
    fn what_a_pod_waits_for_is_looked_for_soon() {
        let shown = |pod_state, waits_for: Option<&str>| {
            let mut decision = Decision::invalid_spec(&Remembered::default(), String::new());
            decision.show(State::Reached, "as declared".to_owned());
            assert_eq!(decision.recheck, Recheck::Slow);
            let pod = PodView {
                name: "ctl-2".to_owned(),
                node_id: Some(2),
                roles: Some((false, true)),
                state: pod_state,
                part: None,
                failure: None,
                waits_for: waits_for.map(str::to_owned),
            };
            let decided = grants::Decision { pods: vec![pod], ..grants::Decision::default() };
            let formatting = Formatting { decision: decided, granted: Vec::new(), recorded: false };
            onto(&mut decision, &formatting);
            assert_eq!((decision.state, decision.message.as_str()), (State::Reached, "as declared"));
            decision.recheck
        };
        assert_eq!(shown(PodState::Formatted, None), Recheck::Slow);
        assert_eq!(shown(PodState::Formatted, Some("a vote")), Recheck::Soon);
        assert_eq!(shown(PodState::Waiting, Some("a majority")), Recheck::Soon);
        assert_eq!(shown(PodState::NotInjected, Some("another pod")), Recheck::Slow);
    }
}
