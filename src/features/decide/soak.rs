//! Whether every node has supported a target for long enough. The wait begins when the last node is first seen to
//! support the target, and only what is seen can begin it anew: a node that is away proves nothing.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::spec::SoakState;
use crate::features::observed::Observed;
use crate::features::target::Target;

/// The soak as it stands once no node blocks the target: the remembered one if it is about this target and no
/// node has joined since, else one that begins now.
pub(super) fn carry_on(
    remembered: Option<&SoakState>,
    target: &Target,
    observed: &Observed,
    now: Timestamp,
) -> SoakState {
    let supporting =
        observed.nodes.values().filter(|node| node.supported.value().is_some()).map(|node| node.id);
    match remembered {
        Some(soak)
            if soak.target == target.levels && supporting.clone().all(|id| soak.nodes.contains(&id)) =>
        {
            soak.clone()
        }
        _ => {
            SoakState { target: target.levels.clone(), since: next_second(now), nodes: supporting.collect() }
        }
    }
}

/// The second that a time falls into, rounded up: a soak is kept in whole seconds, and must not be cut short.
fn next_second(time: Timestamp) -> Timestamp {
    let second = time.as_second() + i64::from(time.subsec_nanosecond() > 0);
    Timestamp::from_second(second).unwrap_or(time)
}

/// When a soak ends.
pub(super) fn end(soak: &SoakState, duration: Duration) -> Timestamp {
    SignedDuration::try_from(duration)
        .ok()
        .and_then(|duration| soak.since.checked_add(duration).ok())
        .unwrap_or(Timestamp::MAX)
}
