//! The state table as code: which state a situation is in, and what may be sent in it. Says nothing about how a
//! state is shown.

use jiff::{SignedDuration, Timestamp};

use super::blockers::{self, Blocker, BlockerWhy};
use super::refusal::{Refusal, RefusalKind};
use super::spec::{Mode, SoakState};
use super::state::{Stall, State};
use super::{Failure, Situation, claims, soak, words};
use crate::features::FeatureName;
use crate::features::catalog::Catalog;
use crate::features::observed::{Known, Observed, Quorum};
use crate::features::plan::{Batching, Direction, Plan, PlanError, PlanInput, Request, Step, plan};
use crate::features::target::{Target, TargetError};

/// What is made of a situation, before it is put together with what people read.
pub(super) struct Verdict {
    pub(super) state: State,
    pub(super) message: String,
    pub(super) plan: Plan,
    pub(super) blockers: Vec<Blocker>,
    pub(super) next: Option<Request>,
    pub(super) batching: Batching,
    pub(super) soak: Option<SoakState>,
    pub(super) soaked: Option<Timestamp>,
    pub(super) as_declared: Option<bool>,
}

impl Verdict {
    fn new(state: State, message: impl Into<String>) -> Self {
        Self {
            state,
            message: message.into(),
            plan: Plan::default(),
            blockers: Vec::new(),
            next: None,
            batching: Batching::default(),
            soak: None,
            soaked: None,
            as_declared: None,
        }
    }

    fn stalled(why: Stall, message: impl Into<String>) -> Self {
        Self::new(State::Stalled(why), message)
    }
}

/// The rows of the state table that need no plan.
pub(super) fn judge(
    situation: &Situation<'_>,
    target: &Result<Option<Target>, TargetError>,
    mismatch: Option<&str>,
) -> Verdict {
    if situation.spec.paused {
        return paused(situation, target, mismatch);
    }
    let target = match target {
        Ok(target) => target.as_ref(),
        Err(error) => return Verdict::stalled(stall_of_target(error), error.to_string()),
    };
    let observed = match situation.observed {
        Ok(observed) => observed,
        Err(unreachable) => {
            let state = match unreachable.failure {
                Failure::NoAnswer => State::ClusterUnreachable,
                Failure::NotAuthorized => State::Stalled(Stall::NotAuthorized),
                Failure::TwoClusters => State::Stalled(Stall::ClusterIdMismatch),
            };
            let soak = situation.remembered.soak.clone();
            return Verdict { soak, ..Verdict::new(state, unreachable.message.clone()) };
        }
    };
    if let Some(message) = mismatch {
        return Verdict::stalled(Stall::ClusterIdMismatch, message);
    }
    match target {
        None => Verdict::new(State::TargetNotSet, words::not_set(situation.catalog, observed)),
        Some(target) => judge_way(situation, observed, target),
    }
}

/// The verdict on a declaration that is paused: what would be done is worked out and shown as far as it can be.
fn paused(
    situation: &Situation<'_>,
    target: &Result<Option<Target>, TargetError>,
    mismatch: Option<&str>,
) -> Verdict {
    let mut message = "Nothing is changed while spec.paused is true.".to_owned();
    let verdict = Verdict { soak: situation.remembered.soak.clone(), ..Verdict::new(State::Paused, "") };
    let verdict = match (target, situation.observed, mismatch) {
        (Ok(None), ..) => Verdict { as_declared: Some(true), ..verdict },
        (Ok(Some(target)), Ok(observed), None) => {
            match plan_for(situation, observed, target, Batching::Together) {
                Ok(plan) => {
                    let steps = plan.requests.iter().map(|request| request.steps.len()).sum::<usize>();
                    if steps > 0 {
                        message += &format!(" Steps to the target that are pending: {steps}.");
                    }
                    let blockers = blockers::against(situation.catalog, &plan, observed);
                    Verdict { as_declared: Some(steps == 0), plan, blockers, ..verdict }
                }
                Err(error) => {
                    message += &format!(" Once it is not: {error}");
                    Verdict { as_declared: Some(false), ..verdict }
                }
            }
        }
        (Err(error), ..) => {
            message += &format!(" Once it is not: {error}");
            Verdict { as_declared: Some(false), ..verdict }
        }
        (Ok(Some(_)), _, Some(mismatch)) => {
            message += &format!(" {mismatch}");
            Verdict { as_declared: Some(false), ..verdict }
        }
        (Ok(Some(_)), Err(unreachable), None) => {
            message += &format!(" The cluster could not be read: {}", unreachable.message);
            verdict
        }
    };
    Verdict { message, ..verdict }
}

fn plan_for(
    situation: &Situation<'_>,
    observed: &Observed,
    target: &Target,
    batching: Batching,
) -> Result<Plan, PlanError> {
    plan(&PlanInput {
        catalog: situation.catalog,
        finalized: &observed.finalized,
        target,
        downgrade: situation.spec.downgrade,
        allow_one_way: &situation.spec.allow_one_way,
        min_insync_overrides: &observed.min_insync_overrides,
        batching,
    })
}

/// The rows of the state table about the way to a target.
fn judge_way(situation: &Situation<'_>, observed: &Observed, target: &Target) -> Verdict {
    let spec = situation.spec;
    if spec.mode == Mode::Apply
        && let Some(message) = conflict(situation, target)
    {
        return Verdict::stalled(Stall::Conflict, message);
    }
    if let Known::Yes(Quorum { leader: Known::No(why), .. }) = &observed.quorum {
        let message = format!(
            "The controllers have no leader that could be asked, so nothing is sent: {why}. It goes on by itself \
             once a majority of the voters is back."
        );
        return Verdict {
            soak: situation.remembered.soak.clone(),
            ..Verdict::new(State::QuorumUnavailable, message)
        };
    }

    // Kafka takes or refuses a request as a whole. What it refuses for a reason that lies in one feature is tried
    // feature by feature: those that come before that one in order move, and the answer tells which one it is.
    let batching = match situation.refusal {
        Some(refusal) if splits(refusal) => Batching::Ordered,
        _ => Batching::Together,
    };
    let plan = match plan_for(situation, observed, target, batching) {
        Ok(plan) => plan,
        Err(error) => return Verdict::stalled(stall_of_plan(&error), error.to_string()),
    };
    // what every node has supported for long needs no second wait, should somebody lower a level again
    let soaked = situation.remembered.soak.clone().filter(|soak| soak.target == target.levels);
    let Some(request) = plan.requests.first() else {
        return Verdict { soak: soaked, ..reached(situation.catalog, plan) };
    };

    let checks =
        situation.catalog.kafka_checks_controllers(observed.finalized.get(FeatureName::METADATA_VERSION));
    if let (Known::No(why), false, Mode::Apply) = (&observed.quorum, checks, spec.mode) {
        let message = format!(
            "The quorum could not be read, and below metadata.version 15 Kafka does not ask controllers what they \
             support, so nothing is sent: {why}"
        );
        let soak = situation.remembered.soak.clone();
        return Verdict { plan, soak, ..Verdict::new(State::QuorumUnavailable, message) };
    }

    let blockers = blockers::against(situation.catalog, &plan, observed);
    if spec.mode == Mode::Plan {
        let steps: usize = plan.requests.iter().map(|request| request.steps.len()).sum();
        let message = format!("{steps} steps are planned and, since spec.mode is Plan, not carried out.");
        let soak = soaked.filter(|_| blockers.is_empty());
        return Verdict { plan, blockers, soak, ..Verdict::new(State::PlanOnly, message) };
    }
    if !blockers.is_empty() {
        return Verdict { plan, ..blocked(situation.catalog, observed, blockers, None) };
    }
    if let Some(refusal) = situation.refusal
        && batching == Batching::Together
    {
        return Verdict { plan, ..refused(situation.catalog, observed, refusal) };
    }

    let mut soak = None;
    if !spec.soak.is_zero() && request.steps.iter().any(|step| step.direction == Direction::Up) {
        let state = soak::carry_on(situation.remembered.soak.as_ref(), target, observed, situation.now);
        let end = soak::end(&state, spec.soak);
        if situation.now < end {
            let message = format!(
                "Every node that could be asked has supported the target since {}; the levels are raised at {end}, \
                 as spec.soak asks.",
                state.since
            );
            return Verdict {
                plan,
                soak: Some(state),
                soaked: Some(end),
                ..Verdict::new(State::Soaking, message)
            };
        }
        soak = Some(state);
    }

    if spec.cluster_id.is_none() && situation.remembered.cluster_id.is_none() {
        let message =
            format!("Cluster {} is put on record before anything is sent: {request}.", observed.cluster_id);
        return Verdict { plan, soak, ..Verdict::new(State::AdoptingCluster, message) };
    }
    let message = format!("Changing {request}.");
    if settles(situation, request) {
        return Verdict { plan, soak, ..Verdict::new(State::Settling, message) };
    }
    let next = Some(request.clone());
    Verdict { plan, next, batching, soak, ..Verdict::new(State::Acting, message) }
}

/// How long a cluster may take to show a change that it accepted.
const SETTLING: SignedDuration = SignedDuration::from_secs(10);

/// Whether a step of the request was accepted just now. Even the active controller shows a change only once it has
/// published what it has committed, some time after the answer; sent again in between, nothing would move, but every
/// level would be recorded twice.
fn settles(situation: &Situation<'_>, request: &Request) -> bool {
    let accepted = |step: &Step| {
        situation.remembered.accepted.iter().any(|accepted| {
            (&accepted.feature, accepted.from, accepted.to) == (&step.feature, step.from, step.to)
                && situation.now.duration_since(accepted.at).abs() < SETTLING
        })
    };
    request.steps.iter().any(accepted)
}

/// Whether a refused request is to be tried feature by feature.
fn splits(refusal: &Refusal) -> bool {
    refusal.batching == Batching::Together
        && refusal.request.steps.len() > 1
        && refusal.kind == RefusalKind::Levels
        && refusal.about_nodes().is_none()
}

/// Both ids, if the observed cluster is not the one that this is about. A pin is a person's word and comes before
/// what was once adopted.
pub(super) fn mismatch(situation: &Situation<'_>, observed: &Observed) -> Option<String> {
    let seen = &observed.cluster_id;
    let (expected, from, remedy) = match (&situation.spec.cluster_id, &situation.remembered.cluster_id) {
        (Some(pinned), _) => (pinned, "spec.clusterId", "correct it or the addresses"),
        (None, Some(adopted)) => (
            adopted,
            "status.clusterId",
            "correct the addresses, or declare the other cluster in a resource of its own",
        ),
        (None, None) => return None,
    };
    (expected != seen).then(|| {
        format!("The addresses lead to cluster {seen}, but {from} is {expected}; nothing is sent: {remedy}.")
    })
}

fn conflict(situation: &Situation<'_>, target: &Target) -> Option<String> {
    let owned = claims::owned_by_others(situation.seniority, target.levels.keys(), situation.claims);
    let owned: Vec<String> = owned
        .into_iter()
        .map(|(owner, features)| {
            let features: Vec<&str> = features.into_iter().map(FeatureName::as_str).collect();
            format!("{owner} owns {}", features.join(", "))
        })
        .collect();
    (!owned.is_empty()).then(|| {
        let owned = owned.join("; ");
        format!("Older resources own features of this cluster: {owned}. Declare each feature in one resource only.")
    })
}

fn reached(catalog: &Catalog, plan: Plan) -> Verdict {
    let verdict = match words::consent(catalog, &plan) {
        None => Verdict::new(State::Reached, "The cluster has every declared level."),
        Some(consent) => {
            let message = format!("The cluster has every declared level, but: {consent}.");
            Verdict::new(State::ReachedButHeld, message)
        }
    };
    Verdict { plan, ..verdict }
}

/// The verdict on nodes that don't support the plan, `answer` being the cluster's own words if it gave some.
fn blocked(
    catalog: &Catalog,
    observed: &Observed,
    mut blockers: Vec<Blocker>,
    answer: Option<&str>,
) -> Verdict {
    blockers.sort_by(|a, b| (a.node, &a.feature).cmp(&(b.node, &b.feature)));
    let unasked: Vec<String> = blockers::unasked(observed)
        .into_iter()
        .filter(|id| blockers.iter().all(|blocker| blocker.node != *id))
        .map(|id| id.to_string())
        .collect();
    let words = blockers::InWords { catalog, blockers: &blockers };
    let ghost = blockers.iter().any(|blocker| blocker.why == BlockerWhy::Ghost);
    let mut message = match (ghost, blockers.is_empty(), answer) {
        (true, ..) => format!(
            "Controllers that are registered, but neither voters nor observers, hold the change up: {words}. Start \
             each once with software that supports the level, or unregister it if the cluster can do that."
        ),
        (false, false, _) => {
            format!("Waiting for nodes to support the target: {words}. It goes on by itself once they do.")
        }
        (false, true, answer) => {
            format!(
                "Waiting for nodes to support the target; the cluster says: {}.",
                answer.unwrap_or_default().trim_end_matches('.')
            )
        }
    };
    for feature in blockers::known_to_nobody(catalog, &blockers, observed) {
        message += &format!(" No node knows {feature}: is that its name?");
    }
    if !unasked.is_empty() {
        message += &format!(" Nodes that could not be asked: {}.", unasked.join(", "));
    }
    if !observed.fenced_brokers_listed {
        message += " Stopped brokers that are still registered can hold it up too; this cluster's brokers, from \
                    before Kafka 4.0, don't list them.";
    }
    let state = if ghost { State::Stalled(Stall::GhostController) } else { State::WaitingForNodes };
    Verdict { blockers, ..Verdict::new(state, message) }
}

/// The verdict on a refusal that trying feature by feature would not change.
fn refused(catalog: &Catalog, observed: &Observed, refusal: &Refusal) -> Verdict {
    let answer = refusal.message.trim();
    if refusal.kind == RefusalKind::NotAuthorized {
        let message = format!(
            "The cluster does not let the operator's user change levels, which needs ALTER on the cluster: {answer}"
        );
        return Verdict::stalled(Stall::NotAuthorized, message);
    }
    if let Some(about) = refusal.about_nodes() {
        return blocked(catalog, observed, blockers::named(&about, observed), Some(answer));
    }
    let message = format!("The cluster refuses {}: {answer}", refusal.request);
    Verdict::stalled(Stall::RefusedByCluster, message)
}

fn stall_of_target(error: &TargetError) -> Stall {
    match error {
        TargetError::UnknownRelease { .. } => Stall::UnknownRelease,
        TargetError::UnstableRelease { .. } => Stall::UnstableRelease,
        _ => Stall::InvalidSpec,
    }
}

fn stall_of_plan(error: &PlanError) -> Stall {
    match error {
        PlanError::DowngradeForbidden { .. } => Stall::DowngradeForbidden,
        PlanError::LossyDowngrade { .. } => Stall::LossyDowngrade,
        PlanError::KraftVersionDowngrade { .. } => Stall::KraftVersionDowngrade,
        PlanError::DependencyNotOwned { .. } => Stall::DependencyNotOwned,
        PlanError::DependencyWouldBreak { .. } => Stall::DependencyWouldBreak,
    }
}
