//! What to do next: from what one pass saw, what is declared and the time to one decision.
//!
//! Says the state, why, what blocks it, and at most one request to send. Never sends, asks, waits or remembers
//! anything: whoever acts on a decision observes again before the next one.

mod blockers;
mod claims;
mod judge;
mod refusal;
mod soak;
mod spec;
mod state;
#[cfg(test)]
mod tests;
mod view;
mod words;

use jiff::Timestamp;

pub use blockers::{Blocker, BlockerWhy};
pub use claims::{Claim, Claimed, Seniority};
pub use refusal::{Refusal, RefusalKind};
pub use spec::{Accepted, Mode, Remembered, SoakState, Spec};
pub use state::{Recheck, Stall, State};
pub use view::{FeatureState, FeatureView};

use super::catalog::Catalog;
use super::observed::{ClusterId, Observed};
use super::plan::{Batching, Plan, Request};
use super::target::resolve;

/// Why a cluster could not be read, as far as a decision depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It did not answer as it should; it may by itself.
    NoAnswer,
    /// It was reached and did not let the operator's user in.
    NotAuthorized,
    /// The addresses lead to different clusters.
    TwoClusters,
}

/// That a cluster could not be read, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreachable {
    /// What kind of failure it is.
    pub failure: Failure,
    /// What failed, with the phase and the peer, in one line.
    pub message: String,
}

/// Everything that a decision is made from.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    /// The catalog.
    pub catalog: &'a Catalog,
    /// The declaration.
    pub spec: &'a Spec,
    /// The declaration's place among others.
    pub seniority: &'a Seniority,
    /// What other declarations claim of the same cluster.
    pub claims: &'a [Claim],
    /// What earlier passes left behind.
    pub remembered: &'a Remembered,
    /// The cluster, as this pass saw it.
    pub observed: Result<&'a Observed, &'a Unreachable>,
    /// The cluster's answer to a request of this very pass.
    pub refusal: Option<&'a Refusal>,
    /// The time.
    pub now: Timestamp,
}

/// What a decision shows of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Every feature.
    pub features: Vec<FeatureView>,
    /// The way to the target.
    pub plan: Plan,
    /// The nodes that keep it from being carried out.
    pub blockers: Vec<Blocker>,
}

/// What to do, and what to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The state.
    pub state: State,
    /// Why, and what can be done about it, in one line.
    pub message: String,
    /// What is held back or kept above the target, in one line; `None`: nothing is.
    pub consent: Option<String>,
    /// The target in a few words.
    pub target: String,
    /// The cluster that this is about from now on.
    pub cluster_id: Option<ClusterId>,
    /// What is seen of the cluster; `None`: nothing could be seen of it, what was seen last still stands.
    pub view: Option<View>,
    /// The one request to send now.
    pub next: Option<Request>,
    /// How that request was put together.
    pub batching: Batching,
    /// The soak to go on with.
    pub soak: Option<SoakState>,
    /// While paused, whether the cluster is as declared; `None`: it could not be seen, or is not paused.
    pub as_declared: Option<bool>,
    /// What keeps pods from being formatted: the reason in one word, and a line. `None`: nothing does.
    pub format_failed: Option<(String, String)>,
    /// When to look again.
    pub recheck: Recheck,
}

impl Decision {
    /// The decision on a declaration that can't be read as one at all.
    #[must_use]
    pub fn invalid_spec(remembered: &Remembered, message: String) -> Self {
        let state = State::Stalled(Stall::InvalidSpec);
        Self {
            state,
            message,
            consent: None,
            target: String::new(),
            cluster_id: remembered.cluster_id.clone(),
            view: None,
            next: None,
            batching: Batching::default(),
            soak: None,
            as_declared: None,
            format_failed: None,
            recheck: state.recheck(None),
        }
    }
}

impl Decision {
    /// Goes over to a state that the levels alone don't show.
    pub fn show(&mut self, state: State, message: String) {
        (self.state, self.message, self.recheck) = (state, message, state.recheck(None));
    }
}

/// Whether a node could not be asked, and may be back soon.
fn has_node_away(observed: &Observed) -> bool {
    observed.nodes.values().any(|node| node.supported.value().is_none())
}

/// Decides what to do next.
#[must_use]
pub fn decide(situation: &Situation<'_>) -> Decision {
    let target = resolve(situation.catalog, &situation.spec.target);
    let mismatch = situation.observed.ok().and_then(|observed| judge::mismatch(situation, observed));
    let verdict = judge::judge(situation, &target, mismatch.as_deref());
    let seen = situation.observed.ok().filter(|_| mismatch.is_none());
    let recheck = match situation.refusal {
        Some(_) if verdict.next.is_none() => Recheck::Backoff,
        // what is held may be held only because nobody could say what a node that is away would lose by it
        _ if verdict.state == State::ReachedButHeld && seen.is_some_and(has_node_away) => Recheck::Soon,
        _ => verdict.state.recheck(verdict.soaked),
    };
    let target = target.ok().flatten();
    Decision {
        consent: words::consent(situation.catalog, &verdict.plan),
        target: words::target(situation, target.as_ref()),
        cluster_id: seen
            .map(|observed| observed.cluster_id.clone())
            .or_else(|| situation.remembered.cluster_id.clone()),
        view: seen.map(|observed| View {
            features: view::features(observed, target.as_ref(), &verdict.plan, &verdict.blockers),
            plan: verdict.plan,
            blockers: verdict.blockers,
        }),
        state: verdict.state,
        message: verdict.message,
        next: verdict.next,
        batching: verdict.batching,
        soak: verdict.soak,
        as_declared: verdict.as_declared,
        format_failed: None,
        recheck,
    }
}
