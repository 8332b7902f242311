//! The plan's policies one by one: what is refused, held, kept and noted, by release and by levels.

mod consent;
mod downgrade;
mod order;

use super::*;
use crate::features::catalog::{FeatureEntry, LevelEntry};
use crate::features::target::{DeclaredLevel, TargetSpec, resolve};

const ELR: &str = FeatureName::ELIGIBLE_LEADER_REPLICAS_VERSION;

fn name(text: &str) -> FeatureName {
    FeatureName::new(text).unwrap()
}

/// A planning case on Kafka's own catalog unless said otherwise; every method changes one thing of it.
struct Case {
    catalog: Catalog,
    finalized: FinalizedFeatures,
    target: Target,
    downgrade: DowngradePolicy,
    allow_one_way: BTreeSet<FeatureName>,
    min_insync_overrides: Known<BTreeSet<NodeId>>,
    batching: Batching,
}

impl Case {
    fn new(finalized: &[(&str, i16)], target: &TargetSpec) -> Self {
        Self {
            catalog: Catalog::kafka().clone(),
            finalized: finalized.iter().map(|(feature, level)| (name(feature), Level(*level))).collect(),
            target: resolve(Catalog::kafka(), target).unwrap().unwrap(),
            downgrade: DowngradePolicy::Never,
            allow_one_way: BTreeSet::new(),
            min_insync_overrides: Known::Yes(BTreeSet::new()),
            batching: Batching::Together,
        }
    }

    fn release(finalized: &[(&str, i16)], release: &str) -> Self {
        Self::new(finalized, &TargetSpec::Release(release.to_owned()))
    }

    fn levels(finalized: &[(&str, i16)], levels: &[(&str, i16)]) -> Self {
        let declared = |(feature, level): &(&str, i16)| (name(feature), DeclaredLevel::Number(Level(*level)));
        Self::new(finalized, &TargetSpec::Levels(levels.iter().map(declared).collect()))
    }

    fn safe(mut self) -> Self {
        self.downgrade = DowngradePolicy::Safe;
        self
    }

    fn ordered(mut self) -> Self {
        self.batching = Batching::Ordered;
        self
    }

    fn allow(mut self, feature: &str) -> Self {
        self.allow_one_way.insert(name(feature));
        self
    }

    fn overrides(mut self, overrides: Known<BTreeSet<NodeId>>) -> Self {
        self.min_insync_overrides = overrides;
        self
    }

    fn try_plan(&self) -> Result<Plan, PlanError> {
        plan(&PlanInput {
            catalog: &self.catalog,
            finalized: &self.finalized,
            target: &self.target,
            downgrade: self.downgrade,
            allow_one_way: &self.allow_one_way,
            min_insync_overrides: &self.min_insync_overrides,
            batching: self.batching,
        })
    }

    fn plan(&self) -> Plan {
        self.try_plan().unwrap()
    }

    fn refusal(&self) -> PlanError {
        self.try_plan().unwrap_err()
    }
}

fn requests(plan: &Plan) -> Vec<String> {
    plan.requests.iter().map(ToString::to_string).collect()
}

fn held(plan: &Plan) -> Vec<String> {
    plan.held.iter().map(|held| held.step.to_string()).collect()
}

fn kept(plan: &Plan) -> Vec<String> {
    plan.above_target
        .iter()
        .map(|kept| format!("{} {} > {}", kept.feature, kept.finalized, kept.target))
        .collect()
}

fn step<'a>(plan: &'a Plan, feature: &str) -> &'a Step {
    let steps = plan.requests.iter().flat_map(|request| &request.steps);
    steps.into_iter().find(|step| step.feature.as_str() == feature).unwrap()
}

/// The levels of a cluster that was formatted with a release's defaults.
const AT_3_9: &[(&str, i16)] = &[("metadata.version", 21), ("kraft.version", 1)];
const AT_4_4: &[(&str, i16)] = &[
    ("metadata.version", 33),
    ("kraft.version", 1),
    ("transaction.version", 2),
    ("group.version", 1),
    (ELR, 1),
    ("share.version", 2),
    ("streams.version", 1),
];

/// A catalog where one feature's level 1 needs another's level 2. In the real one `metadata.version` can't be lowered
/// below what a feature needs, since 23 changed the metadata; so the way down is shown on this.
fn dependent(feature: &str, needs: &str) -> Catalog {
    let level = |level, needs| LevelEntry { level: Level(level), default_from: Level(7), needs };
    Catalog::new(
        Vec::new(),
        vec![
            FeatureEntry { name: name(needs), levels: vec![level(1, vec![]), level(2, vec![])] },
            FeatureEntry { name: name(feature), levels: vec![level(1, vec![(name(needs), Level(2))])] },
        ],
    )
}
