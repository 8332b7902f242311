//! What decisions say, in one line each: names, values and the way out.

use super::{Situation, view};
use crate::features::FeatureName;
use crate::features::catalog::Catalog;
use crate::features::observed::Observed;
use crate::features::plan::{HeldWhy, Plan};
use crate::features::target::{Target, TargetSpec};

/// That nothing is declared, and what could be.
pub(super) fn not_set(catalog: &Catalog, observed: &Observed) -> String {
    let metadata = FeatureName::metadata_version();
    let finalized = observed.finalized.get(metadata.as_str());
    let mut message = format!(
        "Neither releaseVersion nor features is declared, so nothing is changed; {metadata} is {}",
        catalog.level_text(&metadata, finalized)
    );
    if let Some(supported) = view::supported_by_all(observed, &metadata)
        && supported.max > finalized
    {
        message +=
            &format!(", and every node supports up to {}", catalog.level_text(&metadata, supported.max));
    }
    message + "."
}

/// What is held back or kept above the target; `None`: nothing is.
pub(super) fn consent(catalog: &Catalog, plan: &Plan) -> Option<String> {
    let held = plan.held.iter().map(|held| {
        let feature = &held.step.feature;
        let why = match &held.why {
            HeldWhy::Consent(reason) => format!("{reason}; consent by allowOneWay: [{feature}]"),
            HeldWhy::DependsOnHeld(other) => format!("it depends on {other}, which is held"),
        };
        format!("{} is held: {why}", held.step)
    });
    let above = plan.above_target.iter().map(|above| {
        let level = |level| catalog.level_text(&above.feature, level);
        let feature = &above.feature;
        let why = if feature.is_kraft_version() { "it is never lowered" } else { "downgrade is Never" };
        let (finalized, target) = (level(above.finalized), level(above.target));
        format!("{feature} {finalized} is above the target {target} and kept, since {why}")
    });
    let all: Vec<String> = held.chain(above).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// The target in a few words: `4.4`, or `group.version=1`.
pub(super) fn target(situation: &Situation<'_>, target: Option<&Target>) -> String {
    match (&situation.spec.target, target) {
        (TargetSpec::Nothing, _) => String::new(),
        (TargetSpec::Release(release), _) => release.clone(),
        (TargetSpec::Levels(_), Some(target)) => {
            let levels = target.levels.iter().map(|(feature, level)| format!("{feature}={level}"));
            levels.collect::<Vec<_>>().join(",")
        }
        (TargetSpec::Levels(levels), None) => {
            levels.keys().map(FeatureName::as_str).collect::<Vec<_>>().join(",")
        }
    }
}
