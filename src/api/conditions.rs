//! The one table from states to conditions. Tools that compute health from a resource (kstatus, Argo CD, Flux)
//! see nothing else of a state, so no state may look current before its work is done.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::features::decide::{Decision, Stall, State};

/// The condition that says whether the cluster is as declared.
pub const READY: &str = "Ready";
/// The condition that says whether something is still expected to happen by itself.
pub const RECONCILING: &str = "Reconciling";
/// The condition that says whether a person has to do something.
pub const STALLED: &str = "Stalled";
/// The condition that lists what is held back for want of consent, or kept above the target.
pub const CONSENT_REQUIRED: &str = "ConsentRequired";
/// The condition that says that nothing is touched for now.
pub const PAUSED: &str = "Paused";

/// The status of `Ready` in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ready {
    True,
    False,
    AsLastSeen,
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    reason: &'static str,
    ready: Ready,
    reconciling: bool,
    stalled: bool,
}

/// The table.
fn row(state: State) -> Row {
    let done = |reason| Row { reason, ready: Ready::True, reconciling: false, stalled: false };
    let under_way = |reason| Row { reason, ready: Ready::False, reconciling: true, stalled: false };
    let stalled = |reason| Row { reason, ready: Ready::False, reconciling: false, stalled: true };
    match state {
        State::TargetNotSet => done("TargetNotSet"),
        State::Reached => done("Reached"),
        State::ReachedButHeld => done("ReachedButHeld"),
        State::PlanOnly => done("PlanOnly"),
        State::Paused => {
            Row { reason: "Paused", ready: Ready::AsLastSeen, reconciling: false, stalled: false }
        }
        State::ClusterUnreachable => under_way("ClusterUnreachable"),
        State::QuorumUnavailable => under_way("QuorumUnavailable"),
        State::WaitingForNodes => under_way("WaitingForNodes"),
        State::Soaking => under_way("Soaking"),
        State::AdoptingCluster => under_way("AdoptingCluster"),
        State::Acting => under_way("Acting"),
        State::Stalled(why) => stalled(match why {
            Stall::DowngradeForbidden => "DowngradeForbidden",
            Stall::LossyDowngrade => "LossyDowngrade",
            Stall::KraftVersionDowngrade => "KraftVersionDowngrade",
            Stall::DependencyNotOwned => "DependencyNotOwned",
            Stall::DependencyWouldBreak => "DependencyWouldBreak",
            Stall::UnknownRelease => "UnknownRelease",
            Stall::UnstableRelease => "UnstableRelease",
            Stall::InvalidSpec => "InvalidSpec",
            Stall::ClusterIdMismatch => "ClusterIdMismatch",
            Stall::Conflict => "Conflict",
            Stall::GhostController => "GhostController",
            Stall::NotAuthorized => "NotAuthorized",
            Stall::RefusedByCluster => "RefusedByCluster",
        }),
    }
}

/// The state in one word.
#[must_use]
pub fn reason(state: State) -> &'static str {
    row(state).reason
}

/// Whether a state asks a person to do something.
#[must_use]
pub fn is_stalled(state: State) -> bool {
    row(state).stalled
}

/// A message longer than this is cut off; the API server takes no more.
const LONGEST_MESSAGE: usize = 32 * 1024;

/// The conditions of a resource that nobody has looked at yet.
pub(super) fn fresh(time: Time) -> Vec<Condition> {
    let condition = |type_: &str, status: &str| Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: "NotLookedAtYet".to_owned(),
        message: "The operator has not looked at this resource yet.".to_owned(),
        observed_generation: None,
        last_transition_time: time.clone(),
    };
    vec![condition(READY, "Unknown"), condition(RECONCILING, "True")]
}

/// The conditions after a decision. A condition whose status stays the same keeps its transition time.
#[must_use]
pub fn conditions(
    decision: &Decision,
    previous: &[Condition],
    generation: Option<i64>,
    now: &Time,
) -> Vec<Condition> {
    let row = row(decision.state);
    let before = |type_: &str| previous.iter().find(|condition| condition.type_ == type_);
    let make = |type_: &str, status: &str, reason: &str, message: &str| Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: cut(message, LONGEST_MESSAGE),
        observed_generation: generation,
        last_transition_time: before(type_)
            .filter(|condition| condition.status == status)
            .map_or_else(|| now.clone(), |condition| condition.last_transition_time.clone()),
    };
    let of = |type_: &str, holds: bool| {
        let (status, message) = if holds { ("True", decision.message.as_str()) } else { ("False", "") };
        make(type_, status, row.reason, message)
    };
    let ready = match (row.ready, before(READY)) {
        (Ready::True, _) => make(READY, "True", row.reason, &decision.message),
        (Ready::False, _) => make(READY, "False", row.reason, &decision.message),
        (Ready::AsLastSeen, Some(last)) => make(READY, &last.status, &last.reason, &last.message),
        (Ready::AsLastSeen, None) => make(READY, "Unknown", row.reason, &decision.message),
    };
    let mut conditions = vec![ready, of(RECONCILING, row.reconciling), of(STALLED, row.stalled)];
    if let Some(consent) = &decision.consent {
        conditions.push(make(CONSENT_REQUIRED, "True", "StepsHeld", consent));
    }
    if decision.state == State::Paused {
        conditions.push(make(PAUSED, "True", row.reason, &decision.message));
    }
    conditions
}

/// The beginning of a text, up to a number of bytes.
#[must_use]
pub fn cut(text: &str, longest: usize) -> String {
    let end = (0..=longest.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    end.and_then(|end| text.get(..end)).unwrap_or_default().to_owned()
}
