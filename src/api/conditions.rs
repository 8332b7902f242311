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

/// The condition that says why pods can't be formatted.
pub const FORMAT_FAILED: &str = "FormatFailed";

/// All of these, in the order in which they are written.
pub const TYPES: [&str; 6] = [READY, RECONCILING, STALLED, CONSENT_REQUIRED, PAUSED, FORMAT_FAILED];

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
        State::Bootstrapping => under_way("Bootstrapping"),
        State::ClusterUnreachable => under_way("ClusterUnreachable"),
        State::QuorumUnavailable => under_way("QuorumUnavailable"),
        State::WaitingForNodes => under_way("WaitingForNodes"),
        State::Soaking => under_way("Soaking"),
        State::AdoptingCluster => under_way("AdoptingCluster"),
        // for people it is one and the same, and not worth a write
        State::Acting | State::Settling => under_way("Acting"),
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
            Stall::FormatFailed => "FormatFailed",
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
        // what was true of one declaration says nothing of another
        (Ready::AsLastSeen, Some(last)) if last.status == "True" => match decision.as_declared {
            Some(true) => make(READY, &last.status, &last.reason, &last.message),
            None if last.observed_generation == generation => {
                make(READY, &last.status, &last.reason, &last.message)
            }
            Some(false) => make(READY, "False", row.reason, &decision.message),
            None => make(READY, "Unknown", row.reason, &decision.message),
        },
        (Ready::AsLastSeen, Some(last)) if last.status == "False" => {
            make(READY, "False", &last.reason, &last.message)
        }
        (Ready::AsLastSeen, _) => make(READY, "Unknown", row.reason, &decision.message),
    };
    let mut conditions = vec![ready, of(RECONCILING, row.reconciling), of(STALLED, row.stalled)];
    if let Some(consent) = &decision.consent {
        conditions.push(make(CONSENT_REQUIRED, "True", "HeldOrKept", consent));
    }
    if decision.state == State::Paused {
        conditions.push(make(PAUSED, "True", row.reason, &decision.message));
    }
    if let Some((reason, message)) = &decision.format_failed {
        conditions.push(make(FORMAT_FAILED, "True", reason, message));
    }
    conditions
}

/// The beginning of a text, up to a number of bytes.
#[must_use]
pub fn cut(text: &str, longest: usize) -> String {
    let end = (0..=longest.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    end.and_then(|end| text.get(..end)).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::jiff::Timestamp;

    use super::*;
    use crate::features::decide::Remembered;

    const STALLS: [Stall; 14] = [
        Stall::DowngradeForbidden,
        Stall::LossyDowngrade,
        Stall::KraftVersionDowngrade,
        Stall::DependencyNotOwned,
        Stall::DependencyWouldBreak,
        Stall::UnknownRelease,
        Stall::UnstableRelease,
        Stall::InvalidSpec,
        Stall::ClusterIdMismatch,
        Stall::Conflict,
        Stall::GhostController,
        Stall::NotAuthorized,
        Stall::RefusedByCluster,
        Stall::FormatFailed,
    ];

    fn time(second: i64) -> Time {
        Time(Timestamp::from_second(second).unwrap())
    }

    fn decision(state: State) -> Decision {
        let message = "as it is".to_owned();
        Decision { state, ..Decision::invalid_spec(&Remembered::default(), message) }
    }

    fn status_of(conditions: &[Condition], type_: &str) -> Option<String> {
        conditions.iter().find(|condition| condition.type_ == type_).map(|condition| condition.status.clone())
    }

    /// What kstatus makes of conditions, by its rules: `Reconciling` and `Stalled` first, then `Ready`.
    fn kstatus(conditions: &[Condition]) -> &'static str {
        let is = |type_: &str, status: &str| status_of(conditions, type_).as_deref() == Some(status);
        if is(RECONCILING, "True") {
            "InProgress"
        } else if is(STALLED, "True") {
            "Failed"
        } else if is(READY, "False") || is(READY, "Unknown") {
            "InProgress"
        } else {
            "Current"
        }
    }

    fn after(state: State, previous: &[Condition]) -> Vec<Condition> {
        conditions(&decision(state), previous, Some(1), &time(1))
    }

    #[test]
    fn only_what_is_done_is_current_and_only_what_needs_a_person_has_failed() {
        let done = [State::TargetNotSet, State::Reached, State::ReachedButHeld, State::PlanOnly];
        let under_way = [
            State::Bootstrapping,
            State::ClusterUnreachable,
            State::QuorumUnavailable,
            State::WaitingForNodes,
            State::Soaking,
            State::AdoptingCluster,
            State::Acting,
            State::Settling,
        ];
        for state in done {
            assert_eq!(kstatus(&after(state, &[])), "Current", "{state:?}");
        }
        for state in under_way {
            assert_eq!(kstatus(&after(state, &[])), "InProgress", "{state:?}");
        }
        for state in STALLS.map(State::Stalled) {
            let conditions = after(state, &[]);
            assert_eq!(kstatus(&conditions), "Failed", "{state:?}");
            assert_eq!(status_of(&conditions, READY).as_deref(), Some("False"), "{state:?}");
        }
        assert_eq!(kstatus(&fresh(time(0))), "InProgress");
    }

    #[test]
    fn every_state_has_a_reason_of_its_own() {
        let mut reasons: Vec<&str> = STALLS.map(|why| reason(State::Stalled(why))).to_vec();
        reasons.extend([reason(State::Reached), reason(State::Paused), reason(State::Acting)]);
        let all = reasons.len();
        reasons.sort_unstable();
        reasons.dedup();
        assert_eq!(reasons.len(), all);
    }

    #[test]
    fn the_readme_explains_every_reason() {
        let readme = include_str!("../../README.md");
        let others = [
            State::TargetNotSet,
            State::Reached,
            State::ReachedButHeld,
            State::PlanOnly,
            State::Paused,
            State::Bootstrapping,
            State::ClusterUnreachable,
            State::QuorumUnavailable,
            State::WaitingForNodes,
            State::Soaking,
            State::AdoptingCluster,
            State::Acting,
        ];
        for state in STALLS.map(State::Stalled).into_iter().chain(others) {
            let reason = reason(state);
            assert!(readme.contains(&format!("`{reason}`")), "{reason}");
        }
    }

    #[test]
    fn paused_leaves_ready_as_it_was_seen_last() {
        let before = after(State::Reached, &[]);
        let paused = after(State::Paused, &before);
        assert_eq!(status_of(&paused, READY).as_deref(), Some("True"));
        assert_eq!(status_of(&paused, PAUSED).as_deref(), Some("True"));
        let before = after(State::Stalled(Stall::Conflict), &[]);
        assert_eq!(status_of(&after(State::Paused, &before), READY).as_deref(), Some("False"));
        assert_eq!(status_of(&after(State::Paused, &[]), READY).as_deref(), Some("Unknown"));
        assert_eq!(status_of(&after(State::Reached, &paused), PAUSED), None);
    }

    #[test]
    fn paused_calls_nothing_ready_that_is_not_as_declared() {
        let ready = after(State::Reached, &[]);
        let pause = |as_declared: Option<bool>, generation: i64| {
            let paused = Decision { as_declared, ..decision(State::Paused) };
            let conditions = conditions(&paused, &ready, Some(generation), &time(2));
            status_of(&conditions, READY).unwrap()
        };
        assert_eq!(pause(Some(true), 2), "True");
        assert_eq!(pause(Some(false), 2), "False");
        assert_eq!(pause(None, 1), "True", "as it was seen last, since it can't be seen now");
        assert_eq!(pause(None, 2), "Unknown", "another declaration, and nobody could look yet");
    }

    #[test]
    fn a_transition_time_moves_only_with_its_status() {
        let first = conditions(&decision(State::WaitingForNodes), &[], Some(1), &time(1));
        let second = conditions(&decision(State::Acting), &first, Some(2), &time(2));
        let third = conditions(&decision(State::Reached), &second, Some(2), &time(3));
        let at = |conditions: &[Condition], type_: &str| {
            let condition = conditions.iter().find(|condition| condition.type_ == type_).unwrap();
            condition.last_transition_time.0.as_second()
        };
        assert_eq!((at(&second, READY), at(&second, RECONCILING)), (1, 1));
        assert_eq!((at(&third, READY), at(&third, RECONCILING), at(&third, STALLED)), (3, 3, 1));
        assert_eq!(second[0].observed_generation, Some(2));
        assert_eq!(second[0].reason, "Acting");
    }

    #[test]
    fn consent_is_asked_for_while_it_is_missing() {
        let mut held = decision(State::ReachedButHeld);
        held.consent = Some("kraft.version 0 -> 1 is held".into());
        let with = conditions(&held, &[], Some(1), &time(1));
        assert_eq!(status_of(&with, CONSENT_REQUIRED).as_deref(), Some("True"));
        assert_eq!(status_of(&after(State::Reached, &with), CONSENT_REQUIRED), None);
    }

    #[test]
    fn a_message_is_cut_between_characters() {
        assert_eq!(cut("aä", 2), "a");
        assert_eq!(cut("aä", 3), "aä");
        assert_eq!(cut("", 3), "");
    }
}
