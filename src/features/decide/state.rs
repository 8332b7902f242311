//! The states that a declaration can be in. What each means for conditions is said in one other place,
//! `api::conditions`; what each means for the next pass is said here.

use jiff::Timestamp;

/// Why nothing more is done until a person, or another declaration, changes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stall {
    /// A level is above its target and `downgrade` is `Never`.
    DowngradeForbidden,
    /// `metadata.version` can't be lowered that far without loss.
    LossyDowngrade,
    /// `kraft.version` is never lowered.
    KraftVersionDowngrade,
    /// A level needs another feature, which is not declared, at a higher level.
    DependencyNotOwned,
    /// Lowering a level would break what another finalized feature needs.
    DependencyWouldBreak,
    /// The declared release is not in the catalog.
    UnknownRelease,
    /// The declared release is not stable.
    UnstableRelease,
    /// The declaration contradicts itself, or is out of form.
    InvalidSpec,
    /// The addresses lead to another cluster than the one this is about.
    ClusterIdMismatch,
    /// An older declaration owns a feature of this one.
    Conflict,
    /// Registered controllers that are no longer in the quorum are held against the change.
    GhostController,
    /// The operator's user may not do what is needed.
    NotAuthorized,
    /// The cluster refuses the change for a reason of its own.
    RefusedByCluster,
    /// The storage of a pod can't be formatted.
    FormatFailed,
}

/// Where a declaration stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Nothing is declared: the cluster is only shown.
    TargetNotSet,
    /// The cluster has every declared level.
    Reached,
    /// The cluster has every declared level but for steps that are held, or features kept above the target.
    ReachedButHeld,
    /// Steps are pending and the mode is `Plan`.
    PlanOnly,
    /// Paused: nothing is touched.
    Paused,
    /// The cluster is not up for the first time yet, and pods are being formatted.
    Bootstrapping,
    /// The cluster could not be read.
    ClusterUnreachable,
    /// The quorum has no leader, so nobody could carry out a change.
    QuorumUnavailable,
    /// Nodes don't support the target yet.
    WaitingForNodes,
    /// Every node supports the target, but not for long enough yet.
    Soaking,
    /// The cluster's id is put on record first; nothing is sent before that.
    AdoptingCluster,
    /// A request is to be sent.
    Acting,
    /// A request was accepted just now, and the cluster does not show it yet.
    Settling,
    /// Nothing more is done.
    Stalled(Stall),
}

/// When to look again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recheck {
    /// At once.
    Now,
    /// Soon: something is expected to change by itself.
    Soon,
    /// After a delay that grows each time the same thing fails.
    Backoff,
    /// In the slow rhythm that finds changes made by others.
    Slow,
    /// At a known time.
    At(Timestamp),
}

impl State {
    /// When a declaration in this state is looked at again, `soaked` being the end of a soak.
    pub(crate) fn recheck(self, soaked: Option<Timestamp>) -> Recheck {
        match self {
            Self::TargetNotSet | Self::Reached | Self::ReachedButHeld | Self::PlanOnly | Self::Paused => {
                Recheck::Slow
            }
            Self::ClusterUnreachable | Self::QuorumUnavailable | Self::Settling => Recheck::Backoff,
            Self::WaitingForNodes | Self::Bootstrapping => Recheck::Soon,
            Self::Soaking => soaked.map_or(Recheck::Soon, Recheck::At),
            Self::AdoptingCluster | Self::Acting => Recheck::Now,
            Self::Stalled(
                Stall::GhostController
                | Stall::NotAuthorized
                | Stall::RefusedByCluster
                | Stall::ClusterIdMismatch,
            ) => Recheck::Backoff,
            Self::Stalled(Stall::FormatFailed) => Recheck::Soon,
            Self::Stalled(_) => Recheck::Slow,
        }
    }
}
