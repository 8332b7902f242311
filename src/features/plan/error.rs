use crate::features::FeatureName;

/// Why there is no way to a target. Levels are rendered with their names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A level would have to be lowered, and the policy is never to.
    #[error(
        "{feature} is finalized at {finalized}, above the declared {target}, and downgrade is Never: declare \
         {finalized}, or set downgrade to Safe"
    )]
    DowngradeForbidden {
        /// The feature.
        feature: FeatureName,
        /// Its finalized level.
        finalized: String,
        /// Its declared level.
        target: String,
    },
    /// Lowering `metadata.version` that far would lose metadata, which Kafka refuses.
    #[error(
        "metadata.version can't go from {from} to {to}: {changed} changed the metadata, and Kafka has no way back \
         below it; the lowest level that can be reached is {changed}"
    )]
    LossyDowngrade {
        /// The finalized level.
        from: String,
        /// The declared level.
        to: String,
        /// The level that changed the metadata, which is also the lowest that can be reached.
        changed: String,
    },
    /// `kraft.version` would have to be lowered, which Kafka never does (KIP-853).
    #[error(
        "kraft.version is finalized at {finalized} and can never be lowered to {target}: declare {finalized}"
    )]
    KraftVersionDowngrade {
        /// Its finalized level.
        finalized: String,
        /// Its declared level.
        target: String,
    },
    /// A declared level needs more of a feature than that has, and the target does not raise it.
    #[error(
        "{feature} {level} needs {needs} {needs_level} or higher; the cluster has {has}, and this resource does not \
         raise it: declare {needs} too"
    )]
    DependencyNotOwned {
        /// The feature.
        feature: FeatureName,
        /// Its declared level.
        level: String,
        /// What it depends on.
        needs: FeatureName,
        /// The lowest level of that.
        needs_level: String,
        /// The finalized level of that.
        has: String,
    },
    /// Lowering a feature would take from another, which stays, what it depends on.
    #[error(
        "{lowered} can't be lowered to {to}: {feature} is finalized at {level} and needs {lowered} {needs_level} or \
         higher; declare a lower {feature} too"
    )]
    DependencyWouldBreak {
        /// The feature to be lowered.
        lowered: FeatureName,
        /// Its declared level.
        to: String,
        /// The feature that depends on it.
        feature: FeatureName,
        /// The level which that keeps.
        level: String,
        /// The lowest level that it needs.
        needs_level: String,
    },
}
