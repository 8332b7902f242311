//! Which features move, which are held, which are kept: policy, loss, consent and dependencies, in this order.

use std::collections::BTreeMap;

use super::{AboveTarget, Direction, DowngradePolicy, Held, HeldWhy, PlanError, PlanInput, Step};
use crate::features::observed::Known;
use crate::features::{FeatureName, Level};

/// What becomes of each feature whose finalized level is not the target's.
pub(super) struct Steps {
    pub(super) moving: Vec<Step>,
    pub(super) held: Vec<Held>,
    pub(super) above_target: Vec<AboveTarget>,
}

pub(super) fn choose(input: &PlanInput<'_>) -> Result<Steps, PlanError> {
    let mut steps = Steps { moving: Vec::new(), held: Vec::new(), above_target: Vec::new() };
    for (feature, &to) in &input.target.levels {
        let from = input.finalized.get(feature.as_str());
        if to > from {
            steps.add(input, upgrade(input, feature, from, to));
        } else if to < from {
            match downgrade(input, feature, from, to)? {
                Some(step) => steps.add(input, step),
                None => steps.above_target.push(AboveTarget {
                    feature: feature.clone(),
                    finalized: from,
                    target: to,
                }),
            }
        }
    }
    steps.hold_dependents(input)?;
    Ok(steps)
}

fn upgrade(input: &PlanInput<'_>, feature: &FeatureName, from: Level, to: Level) -> Step {
    let (one_way, note) = match feature.as_str() {
        FeatureName::METADATA_VERSION => metadata_upgrade(input, from, to),
        FeatureName::KRAFT_VERSION => (true, Some("can never be lowered again".to_owned())),
        FeatureName::ELIGIBLE_LEADER_REPLICAS_VERSION if from == Level::ZERO => {
            (false, min_insync_note(input))
        }
        _ => (false, None),
    };
    Step { feature: feature.clone(), from, to, direction: Direction::Up, one_way, note }
}

fn metadata_upgrade(input: &PlanInput<'_>, from: Level, to: Level) -> (bool, Option<String>) {
    match input.catalog.lowest_lossless(to) {
        Some(lowest) if lowest.level > from => {
            let versions = input.catalog.metadata_versions().iter();
            let changed: Vec<String> = versions
                .filter(|v| v.level > from && v.level <= lowest.level)
                .filter(|v| v.changed_metadata || v.level == lowest.level)
                .map(|v| format!("{} ({})", v.level, v.name))
                .collect();
            let note = format!(
                "no way back below {} ({}): the metadata changes with {}",
                lowest.level,
                lowest.name,
                changed.join(", ")
            );
            (true, Some(note))
        }
        Some(_) => (false, None),
        None => (true, Some(format!("whether there is a way back from {to} is not known to this version"))),
    }
}

/// What raising `eligible.leader.replicas.version` does to `min.insync.replicas`: Kafka removes what was set for single
/// brokers, and sets the active controller's value for the whole cluster where none is set, which comes before what
/// stands in a broker's file. `None` where no broker has its own.
fn min_insync_note(input: &PlanInput<'_>) -> Option<String> {
    match input.min_insync_overrides {
        Known::Yes(brokers) if brokers.is_empty() => None,
        Known::Yes(brokers) => {
            let ids: Vec<String> = brokers.iter().map(ToString::to_string).collect();
            Some(format!(
                "the min.insync.replicas that broker {} has of its own no longer counts: one for all takes its place",
                ids.join(", ")
            ))
        }
        Known::No(why) => Some(format!(
            "any min.insync.replicas that a broker has of its own no longer counts, one for all takes its place; not \
             known here: {why}"
        )),
    }
}

/// The step down, or `None` where the finalized level is kept above the target.
fn downgrade(
    input: &PlanInput<'_>,
    feature: &FeatureName,
    from: Level,
    to: Level,
) -> Result<Option<Step>, PlanError> {
    let text = |level| input.catalog.level_text(feature, level);
    let by_release = input.target.release.is_some();
    if feature.is_kraft_version() {
        if by_release {
            return Ok(None);
        }
        return Err(PlanError::KraftVersionDowngrade { finalized: text(from), target: text(to) });
    }
    if input.downgrade == DowngradePolicy::Never {
        if by_release && !feature.is_metadata_version() {
            return Ok(None);
        }
        let feature = feature.clone();
        return Err(PlanError::DowngradeForbidden { finalized: text(from), target: text(to), feature });
    }
    if feature.is_metadata_version()
        && let Some(lowest) = input.catalog.lowest_lossless(from)
        && to < lowest.level
    {
        return Err(PlanError::LossyDowngrade {
            from: text(from),
            to: text(to),
            changed: text(lowest.level),
        });
    }
    let note = (feature.as_str() == FeatureName::TRANSACTION_VERSION)
        .then(|| "fatal for producers with a transaction under way".to_owned());
    Ok(Some(Step { feature: feature.clone(), from, to, direction: Direction::Down, one_way: false, note }))
}

/// Why a step of a release target needs consent, if it does.
fn needs_consent(step: &Step) -> Option<String> {
    match (step.feature.as_str(), step.direction) {
        (FeatureName::KRAFT_VERSION, Direction::Up)
        | (FeatureName::TRANSACTION_VERSION, Direction::Down)
        | (FeatureName::ELIGIBLE_LEADER_REPLICAS_VERSION, Direction::Up) => step.note.clone(),
        _ => None,
    }
}

impl Steps {
    fn add(&mut self, input: &PlanInput<'_>, step: Step) {
        let consented = input.target.release.is_none() || input.allow_one_way.contains(&step.feature);
        match needs_consent(&step).filter(|_| !consented) {
            Some(why) => self.held.push(Held { step, why: HeldWhy::Consent(why) }),
            None => self.moving.push(step),
        }
    }

    /// Holds what depends on held steps, until nothing changes; refuses what depends on anything else that doesn't
    /// move as it would have to.
    fn hold_dependents(&mut self, input: &PlanInput<'_>) -> Result<(), PlanError> {
        while let Some((at, on)) = self.first_to_hold(input)? {
            let step = self.moving.remove(at);
            self.held.push(Held { step, why: HeldWhy::DependsOnHeld(on) });
        }
        self.held.sort_by(|a, b| a.step.feature.cmp(&b.step.feature));
        Ok(())
    }

    fn first_to_hold(&self, input: &PlanInput<'_>) -> Result<Option<(usize, FeatureName)>, PlanError> {
        let after = self.levels_after(input);
        let level_after = |feature: &FeatureName| after.get(feature).copied().unwrap_or_default();
        let goes_down = |at: usize| self.moving.get(at).is_some_and(|step| step.direction == Direction::Down);
        // a hold may take away what stands in the way, so nothing is refused while something is still to be held
        let mut refusal = None;
        for (feature, &level) in &after {
            for (needs, lowest) in input.catalog.needs(feature, level) {
                if level_after(needs) >= *lowest {
                    continue;
                }
                let held = |name: &FeatureName| self.held.iter().any(|held| held.step.feature == *name);
                let moving = |name: &FeatureName| self.moving.iter().position(|step| step.feature == *name);
                match (moving(feature), moving(needs)) {
                    (Some(at), _) if held(needs) => return Ok(Some((at, needs.clone()))),
                    (None, Some(at)) if held(feature) && goes_down(at) => {
                        return Ok(Some((at, feature.clone())));
                    }
                    (Some(_), _) => {
                        refusal.get_or_insert_with(|| not_owned(input, feature, level, needs, *lowest));
                    }
                    (None, Some(at)) if goes_down(at) => {
                        let to = level_after(needs);
                        refusal.get_or_insert_with(|| would_break(input, feature, level, needs, *lowest, to));
                    }
                    // broken before, and not made worse
                    (None, _) => {}
                }
            }
        }
        refusal.map_or(Ok(None), Err)
    }

    /// The levels of all features that the cluster or the target names, once everything moving has moved.
    fn levels_after(&self, input: &PlanInput<'_>) -> BTreeMap<FeatureName, Level> {
        let mut after: BTreeMap<_, _> = input.finalized.iter().map(|(f, level)| (f.clone(), level)).collect();
        after.extend(self.moving.iter().map(|step| (step.feature.clone(), step.to)));
        after
    }
}

fn not_owned(
    input: &PlanInput<'_>,
    feature: &FeatureName,
    level: Level,
    needs: &FeatureName,
    lowest: Level,
) -> PlanError {
    PlanError::DependencyNotOwned {
        feature: feature.clone(),
        level: input.catalog.level_text(feature, level),
        needs: needs.clone(),
        needs_level: input.catalog.level_text(needs, lowest),
        has: input.catalog.level_text(needs, input.finalized.get(needs.as_str())),
    }
}

fn would_break(
    input: &PlanInput<'_>,
    feature: &FeatureName,
    level: Level,
    lowered: &FeatureName,
    lowest: Level,
    to: Level,
) -> PlanError {
    PlanError::DependencyWouldBreak {
        lowered: lowered.clone(),
        to: input.catalog.level_text(lowered, to),
        feature: feature.clone(),
        level: input.catalog.level_text(feature, level),
        needs_level: input.catalog.level_text(lowered, lowest),
    }
}
