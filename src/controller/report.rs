//! What a pass leaves behind in status, and the events that tell of it. Pure: the same outcome on the same status
//! gives the same status, so that a pass that finds nothing new writes nothing.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::runtime::events::{Event, EventType};

use super::act::Outcome;
use crate::api::conditions::{self, READY};
use crate::api::{self, HISTORY, KafkaFeaturesStatus};
use crate::features::decide::{self, View};
use crate::features::plan;

/// A status has room for so many; the message says how many nodes there are in all.
const MOST_BLOCKERS: usize = 500;

/// The status after a pass.
pub(super) fn status(
    outcome: &Outcome,
    previous: &KafkaFeaturesStatus,
    generation: Option<i64>,
    now: &Time,
) -> KafkaFeaturesStatus {
    let decision = &outcome.decision;
    let mut status = KafkaFeaturesStatus {
        observed_generation: generation,
        cluster_id: decision.cluster_id.as_ref().map(ToString::to_string),
        target: Some(decision.target.clone()).filter(|target| !target.is_empty()),
        conditions: conditions::conditions(decision, &previous.conditions, generation, now),
        soak: decision.soak.as_ref().map(soak),
        ..previous.clone()
    };
    if decision.view.is_none() && previous.observed_generation != generation {
        // what was planned, and what stood in its way, was for another spec
        status.plan.clear();
        status.blockers.clear();
        status.blocking = None;
        for feature in &mut status.features {
            (feature.target, feature.state) = (None, api::FeatureState::NotDeclared);
        }
    }
    if let Some(view) = &decision.view {
        status.features = view.features.iter().map(feature).collect();
        status.blockers = view.blockers.iter().take(MOST_BLOCKERS).map(blocker).collect();
        status.blocking = blocking(view);
        status.plan = steps(view);
    }
    if let Some(request) = &outcome.accepted {
        let changes = request.steps.iter().map(|step| api::Change {
            time: now.clone(),
            feature: step.feature.to_string(),
            from: step.from.0.into(),
            to: step.to.0.into(),
        });
        status.history = changes.chain(previous.history.iter().cloned()).take(HISTORY).collect();
    }
    status
}

/// The events of a pass: one for each change that the cluster accepted, else one when the state became another.
pub(super) fn events(outcome: &Outcome, previous: &KafkaFeaturesStatus) -> Vec<Event> {
    if let Some(request) = &outcome.accepted {
        return vec![event(
            EventType::Normal,
            "UpdateFeatures",
            "LevelsChanged",
            &format!("The cluster accepted {request}."),
        )];
    }
    let reason = conditions::reason(outcome.decision.state);
    let before = previous.conditions.iter().find(|condition| condition.type_ == READY);
    if before.is_some_and(|condition| condition.reason == reason) {
        return Vec::new();
    }
    let type_ =
        if conditions::is_stalled(outcome.decision.state) { EventType::Warning } else { EventType::Normal };
    vec![event(type_, "Observe", reason, &outcome.decision.message)]
}

/// The API server takes notes of up to 1024 bytes.
const LONGEST_NOTE: usize = 1024;

fn event(type_: EventType, action: &str, reason: &str, note: &str) -> Event {
    let note = Some(conditions::cut(note, LONGEST_NOTE));
    Event { type_, reason: reason.to_owned(), note, action: action.to_owned(), secondary: None }
}

fn feature(view: &decide::FeatureView) -> api::Feature {
    api::Feature {
        name: view.name.to_string(),
        finalized: view.finalized.0.into(),
        target: view.target.map(|level| level.0.into()),
        supported_min: view.supported.map(|range| range.min.0.into()),
        supported_max: view.supported.map(|range| range.max.0.into()),
        state: match view.state {
            decide::FeatureState::NotDeclared => api::FeatureState::NotDeclared,
            decide::FeatureState::AtTarget => api::FeatureState::AtTarget,
            decide::FeatureState::Pending => api::FeatureState::Pending,
            decide::FeatureState::Blocked => api::FeatureState::Blocked,
            decide::FeatureState::Held => api::FeatureState::Held,
            decide::FeatureState::AboveTarget => api::FeatureState::AboveTarget,
            decide::FeatureState::Differs => api::FeatureState::Differs,
        },
    }
}

fn blocker(blocker: &decide::Blocker) -> api::Blocker {
    api::Blocker {
        node_id: blocker.node.0,
        role: blocker.roles.to_string(),
        registered: blocker.registered,
        fenced: blocker.fenced,
        voter: blocker.voter,
        feature: blocker.feature.to_string(),
        supported: blocker.supported.map(|range| range.to_string()),
        needed: blocker.needed.0.into(),
        why: match blocker.why {
            decide::BlockerWhy::Unsupported => api::BlockerWhy::Unsupported,
            decide::BlockerWhy::NotRegistered => api::BlockerWhy::NotRegistered,
            decide::BlockerWhy::KraftVersionNotMoved => api::BlockerWhy::KraftVersionNotMoved,
            decide::BlockerWhy::Ghost => api::BlockerWhy::Ghost,
        },
    }
}

/// A column has room for so many ids.
const MOST_IDS: usize = 20;

/// The ids of the nodes among the blockers, for people.
fn blocking(view: &View) -> Option<String> {
    let ids: BTreeSet<i32> = view.blockers.iter().map(|blocker| blocker.node.0).collect();
    let shown: Vec<String> = ids.iter().take(MOST_IDS).map(ToString::to_string).collect();
    let more = ids.len() - shown.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!shown.is_empty()).then(|| format!("{}{more}", shown.join(", ")))
}

fn soak(soak: &decide::SoakState) -> api::Soak {
    api::Soak {
        target: soak.target.iter().map(|(feature, level)| (feature.to_string(), level.0.into())).collect(),
        since: Time(soak.since),
        nodes: soak.nodes.iter().map(|node| node.0).collect(),
    }
}

fn steps(view: &View) -> Vec<api::PlanStep> {
    let pending = (1..).zip(&view.plan.requests).flat_map(|(number, request)| {
        request.steps.iter().map(move |step| planned(step, Some(number), api::StepState::Pending))
    });
    let held = view.plan.held.iter().map(|held| planned(&held.step, None, api::StepState::Held));
    pending.chain(held).collect()
}

fn planned(step: &plan::Step, request: Option<i32>, state: api::StepState) -> api::PlanStep {
    api::PlanStep {
        request,
        feature: step.feature.to_string(),
        from: step.from.0.into(),
        to: step.to.0.into(),
        direction: match step.direction {
            plan::Direction::Up => api::Direction::Up,
            plan::Direction::Down => api::Direction::Down,
        },
        one_way: step.one_way,
        note: step.note.clone(),
        state,
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::features::decide::{Decision, FeatureView, Recheck, Stall, State};
    use crate::features::observed::ClusterId;
    use crate::features::plan::{Batching, Direction, Plan, Request, Step};
    use crate::features::{FeatureName, Level};

    fn time(second: i64) -> Time {
        Time(Timestamp::from_second(second).unwrap())
    }

    fn request(from: i16, to: i16) -> Request {
        let step = Step {
            feature: FeatureName::new("group.version").unwrap(),
            from: Level(from),
            to: Level(to),
            direction: Direction::Up,
            one_way: false,
            note: None,
        };
        Request { steps: vec![step] }
    }

    fn outcome(state: State, requests: Vec<Request>) -> Outcome {
        let view = View {
            features: vec![FeatureView {
                name: FeatureName::new("group.version").unwrap(),
                finalized: Level(0),
                target: Some(Level(1)),
                supported: None,
                state: decide::FeatureState::Pending,
            }],
            plan: Plan { requests, ..Plan::default() },
            blockers: Vec::new(),
        };
        let decision = Decision {
            state,
            message: "as it is".into(),
            consent: None,
            target: "4.4".into(),
            cluster_id: Some(ClusterId("cluster-a".into())),
            view: Some(view),
            next: None,
            batching: Batching::default(),
            soak: None,
            as_declared: None,
            format_failed: None,
            recheck: Recheck::Slow,
        };
        Outcome { decision, accepted: None }
    }

    #[test]
    fn the_same_outcome_changes_nothing_and_tells_nothing() {
        let outcome = outcome(State::WaitingForNodes, vec![request(0, 1)]);
        let first = status(&outcome, &KafkaFeaturesStatus::default(), Some(1), &time(1));
        assert_eq!(status(&outcome, &first, Some(1), &time(2)), first);
        assert!(events(&outcome, &first).is_empty());
        assert_eq!(first.plan.len(), 1);
        assert_eq!((first.plan[0].request, first.plan[0].state), (Some(1), api::StepState::Pending));
    }

    #[test]
    fn what_could_not_be_seen_stays_as_it_was_seen_last() {
        let seen = outcome(State::WaitingForNodes, vec![request(0, 1)]);
        let before = status(&seen, &KafkaFeaturesStatus::default(), Some(1), &time(1));
        let mut blind = outcome(State::ClusterUnreachable, Vec::new());
        blind.decision.view = None;
        let after = status(&blind, &before, Some(1), &time(2));
        assert_eq!((&after.features, &after.plan), (&before.features, &before.plan));
        let after = status(&blind, &before, Some(2), &time(2));
        assert_eq!((after.observed_generation, after.features[0].finalized), (Some(2), 0));
        assert!(after.plan.is_empty(), "it was for another spec");
        assert_eq!(after.features[0].target, None);
    }

    #[test]
    fn the_last_changes_are_kept_newest_first() {
        let mut before = KafkaFeaturesStatus::default();
        for level in 0..15 {
            let mut acted = outcome(State::Acting, Vec::new());
            acted.accepted = Some(request(level, level + 1));
            before = status(&acted, &before, Some(1), &time(level.into()));
        }
        let to: Vec<i32> = before.history.iter().map(|change| change.to).collect();
        assert_eq!(to, [15, 14, 13, 12, 11, 10, 9, 8, 7, 6]);
    }

    #[test]
    fn a_new_state_and_an_accepted_change_are_told_once() {
        let waiting = outcome(State::WaitingForNodes, Vec::new());
        let before = status(&waiting, &KafkaFeaturesStatus::default(), Some(1), &time(1));
        let stalled = outcome(State::Stalled(Stall::Conflict), Vec::new());
        let told = events(&stalled, &before);
        assert_eq!(told.len(), 1);
        assert_eq!((told[0].type_, told[0].reason.as_str()), (EventType::Warning, "Conflict"));

        let mut acted = outcome(State::Acting, Vec::new());
        acted.accepted = Some(request(0, 1));
        let told = events(&acted, &before);
        assert_eq!((told.len(), told[0].reason.as_str()), (1, "LevelsChanged"));
        assert!(told[0].note.as_deref().unwrap().contains("group.version 0 -> 1"));
    }

    #[test]
    fn a_note_is_cut_to_what_the_api_server_takes() {
        let mut long = outcome(State::Reached, Vec::new());
        long.decision.message = "ä".repeat(5_000);
        let told = events(&long, &KafkaFeaturesStatus::default());
        assert_eq!(told[0].note.as_ref().unwrap().len(), LONGEST_NOTE);
    }
}
