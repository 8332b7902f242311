//! What holds of every plan, on the real catalog and on synthetic ones: chains, diamonds, whatever has no circle.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;

use super::*;
use crate::features::catalog::{FeatureEntry, LevelEntry};

/// The features of synthetic catalogs; each may depend only on those before it. Those that need consent are among
/// them, `kraft.version` in the middle so that others can depend on it.
const NAMES: [&str; 6] = [
    "a.version",
    "transaction.version",
    "kraft.version",
    "b.version",
    "eligible.leader.replicas.version",
    "c.version",
];
const TOP: i16 = 3;

type Levels = BTreeMap<FeatureName, Level>;

fn name(at: usize) -> FeatureName {
    FeatureName::new(NAMES[at]).unwrap()
}

/// A random catalog without circles: level `l` of feature `i` needs up to two levels of features before `i`.
fn catalogs() -> impl Strategy<Value = Catalog> {
    let needs = || prop::collection::vec((any::<prop::sample::Index>(), 1..=TOP), 0..=2);
    let levels = || prop::collection::vec(needs(), TOP as usize);
    prop::collection::vec(levels(), NAMES.len()).prop_map(|features| {
        let entry = |(at, levels): (usize, Vec<Vec<(prop::sample::Index, i16)>>)| {
            let level = |(below, needs): (usize, Vec<(prop::sample::Index, i16)>)| LevelEntry {
                level: Level(i16::try_from(below).unwrap() + 1),
                default_from: Level(7),
                needs: needs
                    .into_iter()
                    .filter(|_| at > 0)
                    .map(|(on, lowest)| (name(on.index(at.max(1))), Level(lowest)))
                    .collect(),
            };
            FeatureEntry { name: name(at), levels: levels.into_iter().enumerate().map(level).collect() }
        };
        Catalog::new(Vec::new(), features.into_iter().enumerate().map(entry).collect())
    })
}

fn consistent(catalog: &Catalog, levels: &Levels) -> bool {
    let has = |feature: &FeatureName| levels.get(feature).copied().unwrap_or_default();
    levels.iter().all(|(f, level)| catalog.needs(f, *level).iter().all(|(on, lowest)| has(on) >= *lowest))
}

/// Lowers levels until nothing lacks what it depends on.
fn settle(catalog: &Catalog, levels: Levels) -> Levels {
    let mut settled = Levels::new();
    for at in 0..NAMES.len() {
        settled.insert(name(at), levels[&name(at)]);
        while !consistent(catalog, &settled) {
            let lower = Level(settled[&name(at)].0 - 1);
            settled.insert(name(at), lower);
        }
    }
    settled
}

fn level_sets() -> impl Strategy<Value = Levels> {
    prop::collection::vec(0..=TOP, NAMES.len()).prop_map(|levels| {
        levels.into_iter().enumerate().map(|(at, level)| (name(at), Level(level))).collect()
    })
}

#[derive(Debug)]
struct Case {
    catalog: Catalog,
    finalized: Levels,
    target: Target,
    batching: Batching,
    allow_one_way: BTreeSet<FeatureName>,
}

/// A case: a cluster without broken dependencies, and a target for some features, or by release for all.
fn cases(by_release: bool) -> impl Strategy<Value = Case> {
    let owned = prop::collection::vec(any::<bool>(), NAMES.len());
    let consents = prop::collection::vec(any::<bool>(), NAMES.len());
    (catalogs(), level_sets(), level_sets(), owned, consents, any::<bool>()).prop_map(
        move |(catalog, finalized, wanted, owned, consents, together)| {
            let finalized = settle(&catalog, finalized);
            let wanted = if by_release { settle(&catalog, wanted) } else { wanted };
            let levels =
                wanted.into_iter().enumerate().filter(|(at, _)| by_release || owned[*at]).map(|(_, l)| l);
            Case {
                finalized,
                target: Target { levels: levels.collect(), release: by_release.then_some(Level(7)) },
                batching: if together { Batching::Together } else { Batching::Ordered },
                allow_one_way: (0..NAMES.len()).filter(|at| consents[*at]).map(name).collect(),
                catalog,
            }
        },
    )
}

fn plan_of(case: &Case) -> Result<Plan, PlanError> {
    plan(&PlanInput {
        catalog: &case.catalog,
        finalized: &case.finalized.clone().into_iter().collect(),
        target: &case.target,
        downgrade: DowngradePolicy::Safe,
        allow_one_way: &case.allow_one_way,
        min_insync_overrides: &Known::No("not asked".to_owned()),
        batching: case.batching,
    })
}

/// Applies a plan request by request, holding each state to the dependencies and each request to its rules.
fn walk(case: &Case, plan: &Plan) -> Result<Levels, TestCaseError> {
    let mut levels = case.finalized.clone();
    for request in &plan.requests {
        prop_assert!(!request.steps.is_empty());
        let kraft = request.steps.iter().any(|step| step.feature.is_kraft_version());
        if kraft || case.batching == Batching::Ordered {
            prop_assert_eq!(request.steps.len(), 1, "alone: {}", request);
        }
        for step in &request.steps {
            prop_assert_eq!(levels[&step.feature], step.from);
            prop_assert_ne!(step.from, step.to);
            prop_assert_eq!(step.direction == Direction::Up, step.to > step.from);
            levels.insert(step.feature.clone(), step.to);
        }
        prop_assert!(consistent(&case.catalog, &levels), "broken after {}", request);
    }
    Ok(levels)
}

/// Whether any order of single moves of owned features, each to any level, leads to the goal without ever breaking a
/// dependency or lowering `kraft.version`.
fn reachable(case: &Case, goal: &Levels) -> bool {
    let mut seen = BTreeSet::from([case.finalized.clone().into_iter().collect::<Vec<_>>()]);
    let mut queue = VecDeque::from([case.finalized.clone()]);
    while let Some(levels) = queue.pop_front() {
        if levels == *goal {
            return true;
        }
        for feature in case.target.levels.keys() {
            for level in 0..=TOP {
                if feature.is_kraft_version() && Level(level) < levels[feature] {
                    continue;
                }
                let mut moved = levels.clone();
                moved.insert(feature.clone(), Level(level));
                if consistent(&case.catalog, &moved) && seen.insert(moved.clone().into_iter().collect()) {
                    queue.push_back(moved);
                }
            }
        }
    }
    false
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        if std::env::var_os("KAFKA_FEATURES_FULL").is_some() { 20_000 } else { 1_000 }
    ))]

    #[test]
    fn a_plan_for_levels_reaches_them_and_none_exists_only_where_none_can(case in cases(false)) {
        let mut goal = case.finalized.clone();
        goal.extend(case.target.levels.clone());
        match plan_of(&case) {
            Ok(plan) => {
                prop_assert!(plan.held.is_empty() && plan.above_target.is_empty());
                prop_assert_eq!(walk(&case, &plan)?, goal);
            }
            Err(error) => prop_assert!(!reachable(&case, &goal), "there is a way, but: {}", error),
        }
    }

    #[test]
    fn a_plan_for_a_release_goes_as_far_as_consent_lets_it(case in cases(true)) {
        match plan_of(&case) {
            Ok(plan) => {
                let after = walk(&case, &plan)?;
                let kept: BTreeSet<_> = plan.above_target.iter().map(|kept| &kept.feature).collect();
                let held: BTreeSet<_> = plan.held.iter().map(|held| &held.step.feature).collect();
                for (feature, level) in &case.target.levels {
                    let still = kept.contains(feature) || held.contains(feature);
                    let expected = if still { case.finalized[feature] } else { *level };
                    prop_assert_eq!(after[feature], expected, "{}", feature);
                }
                for held in &plan.held {
                    match &held.why {
                        HeldWhy::Consent(_) => prop_assert!(!case.allow_one_way.contains(&held.step.feature)),
                        HeldWhy::DependsOnHeld(on) => {
                            prop_assert!(plan.held.iter().any(|other| other.step.feature == *on));
                            let mut without = after.clone();
                            without.insert(held.step.feature.clone(), held.step.to);
                            prop_assert!(!consistent(&case.catalog, &without), "{} need not be held", held.step);
                        }
                    }
                }
            }
            Err(error) => {
                // only a kraft.version that stays above the release's default can stand in the way
                let mut goal = case.target.levels.clone();
                for (feature, level) in &mut goal {
                    if feature.is_kraft_version() {
                        *level = (*level).max(case.finalized[feature]);
                    }
                }
                prop_assert!(!reachable(&case, &goal), "there is a way, but: {}", error);
            }
        }
    }
}

fn real_case() -> impl Strategy<Value = (FinalizedFeatures, Target, DowngradePolicy, Batching)> {
    let catalog = Catalog::kafka();
    let metadata =
        prop::sample::select(catalog.metadata_versions().iter().map(|v| v.level).collect::<Vec<_>>());
    let others: Vec<_> = catalog
        .features()
        .iter()
        .map(|f| (Just(f.name.clone()), 0..=f.levels.last().map_or(0, |entry| entry.level.0)))
        .collect();
    let target = (metadata.clone(), others.clone(), prop::collection::vec(any::<bool>(), 7), any::<bool>());
    (metadata, others, target, any::<bool>(), any::<bool>()).prop_map(
        |(metadata, others, target, safe, together)| {
            let catalog = Catalog::kafka();
            let levels = |metadata: Level, others: Vec<(FeatureName, i16)>| {
                let mut levels: Levels = others.into_iter().map(|(f, level)| (f, Level(level))).collect();
                levels.insert(FeatureName::metadata_version(), metadata);
                if metadata < Level(23) {
                    levels.insert(FeatureName::new("eligible.leader.replicas.version").unwrap(), Level::ZERO);
                }
                levels
            };
            let (to, wanted, owned, by_release) = target;
            let target = if by_release {
                let mut levels = catalog.defaults_at(to);
                levels.insert(FeatureName::metadata_version(), to);
                Target { levels, release: Some(to) }
            } else {
                let wanted =
                    levels(to, wanted).into_iter().zip(owned).filter(|(_, owned)| *owned).map(|(l, _)| l);
                Target { levels: wanted.collect(), release: None }
            };
            (
                levels(metadata, others).into_iter().collect(),
                target,
                if safe { DowngradePolicy::Safe } else { DowngradePolicy::Never },
                if together { Batching::Together } else { Batching::Ordered },
            )
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn on_the_real_catalog_no_plan_breaks_a_dependency_a_policy_or_the_metadata(
        (finalized, target, downgrade, batching) in real_case()
    ) {
        let none = Known::Yes(BTreeSet::new());
        let all = target.levels.keys().cloned().collect();
        let input = PlanInput {
            catalog: Catalog::kafka(), finalized: &finalized, target: &target, downgrade,
            allow_one_way: &all, min_insync_overrides: &none, batching,
        };
        let Ok(plan) = plan(&input) else { return Ok(()) };
        let mut levels = finalized.clone();
        for request in &plan.requests {
            for step in &request.steps {
                if step.direction == Direction::Down {
                    prop_assert_eq!(downgrade, DowngradePolicy::Safe);
                    prop_assert!(!step.feature.is_kraft_version());
                    if step.feature.is_metadata_version() {
                        prop_assert!(Catalog::kafka().lowest_lossless(step.from).unwrap().level <= step.to);
                    }
                }
            }
            request.apply(&mut levels);
            let elr = levels.get("eligible.leader.replicas.version");
            prop_assert!(elr == Level::ZERO || levels.get("metadata.version") >= Level(23));
        }
        let kraft_last = plan.requests.iter().rev().skip(1)
            .all(|request| request.steps.iter().all(|step| !step.feature.is_kraft_version()));
        prop_assert!(kraft_last);
        for (feature, level) in &target.levels {
            let kept = plan.above_target.iter().any(|kept| kept.feature == *feature);
            prop_assert!(kept || levels.get(feature.as_str()) == *level);
        }
    }
}
