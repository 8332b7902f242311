//! What a pass leaves behind in status, and the events that tell of it. Pure: the same outcome on the same status
//! gives the same status, so that a pass that finds nothing new writes nothing.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::runtime::events::{Event, EventType};

use super::act::Outcome;
use crate::api::conditions::{self, READY};
use crate::api::{self, HISTORY, KafkaFeaturesStatus};
use crate::features::decide::{self, View};
use crate::features::plan;

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
        ..previous.clone()
    };
    if let Some(view) = &decision.view {
        status.features = view.features.iter().map(feature).collect();
        status.blockers = view.blockers.iter().map(blocker).collect();
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
            decide::BlockerWhy::Ghost => api::BlockerWhy::Ghost,
        },
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
