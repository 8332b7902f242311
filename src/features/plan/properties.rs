//! What holds of every plan, on the real catalog and on synthetic ones: chains, diamonds, whatever has no circle.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::features::catalog::{FeatureEntry, LevelEntry, MetadataVersion};

/// The features of synthetic catalogs; each may depend only on those before it. Those that need consent are among
/// them, `kraft.version` in the middle so that others can depend on it.
const NAMES: [&str; 7] = [
    "metadata.version",
    "a.version",
    "transaction.version",
    "kraft.version",
    "b.version",
    "eligible.leader.replicas.version",
    "c.version",
];

type Levels = BTreeMap<FeatureName, Level>;
/// What a level needs: which of the features that it may depend on, and how far above that one's lowest level.
type Needs = Vec<(Index, i16)>;

fn name(at: usize) -> FeatureName {
    FeatureName::new(NAMES[at]).unwrap()
}

/// The lowest and the highest level of a feature.
fn range(at: usize) -> (i16, i16) {
    if at == 0 { (7, 9) } else { (0, 2) }
}

/// Which features a feature may depend on.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// Each on the one before it.
    Chain,
    /// One at the bottom, two on it, one on both, and again above that.
    Diamonds,
    /// Each on any before it.
    Any,
}

impl Shape {
    fn below(self, at: usize) -> Vec<usize> {
        match self {
            Self::Chain => vec![at - 1],
            Self::Diamonds if at.is_multiple_of(3) => vec![at - 1, at - 2],
            Self::Diamonds => vec![(at - 1) / 3 * 3],
            Self::Any => (0..at).collect(),
        }
    }
}

/// A random catalog without circles, in which some levels need up to two levels of other features, and some levels
/// of `metadata.version` changed the metadata.
fn catalogs() -> impl Strategy<Value = Catalog> {
    let shape = prop::sample::select(vec![Shape::Chain, Shape::Diamonds, Shape::Any]);
    let needs = || prop::collection::vec((any::<Index>(), 0..=2_i16), 0..=2);
    let features = prop::collection::vec((needs(), needs()), NAMES.len() - 1);
    (shape, features, any::<[bool; 3]>()).prop_map(|(shape, features, changed)| {
        let entry = |(below, (one, two)): (usize, (Needs, Needs))| {
            let at = below + 1;
            let need = |(on, above): (Index, i16)| {
                let on = shape.below(at)[on.index(shape.below(at).len())];
                (name(on), Level((range(on).0 + above).max(1)))
            };
            let level = |level, needs: Vec<_>| LevelEntry {
                level: Level(level),
                default_from: Level(7),
                needs: needs.into_iter().map(need).collect(),
            };
            FeatureEntry { name: name(at), levels: vec![level(1, one), level(2, two)] }
        };
        let version = |(level, changed_metadata)| MetadataVersion {
            level: Level(level),
            name: format!("1.{level}-IV0"),
            stable: true,
            changed_metadata,
        };
        Catalog::new(
            (7..).zip(changed).map(version).collect(),
            features.into_iter().enumerate().map(entry).collect(),
        )
    })
}

fn consistent(catalog: &Catalog, levels: &Levels) -> bool {
    let has = |feature: &FeatureName| levels.get(feature).copied().unwrap_or_default();
    levels.iter().all(|(f, level)| catalog.needs(f, *level).iter().all(|(on, lowest)| has(on) >= *lowest))
}

/// Lowers levels until nothing lacks what it depends on.
fn settle(catalog: &Catalog, levels: &Levels) -> Levels {
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
    prop::collection::vec(0..=2_i16, NAMES.len()).prop_map(|levels| {
        let level = |(at, above)| (name(at), Level(range(at).0 + above));
        levels.into_iter().enumerate().map(level).collect()
    })
}

#[derive(Clone, Debug)]
struct Case {
    catalog: Catalog,
    finalized: Levels,
    target: Target,
    downgrade: DowngradePolicy,
    batching: Batching,
    allow_one_way: BTreeSet<FeatureName>,
    min_insync_overrides: Known<BTreeSet<NodeId>>,
}

/// A case: a cluster without broken dependencies, and a target for some features, or by release for all.
fn cases(by_release: bool) -> impl Strategy<Value = Case> {
    let owned = prop::collection::vec(any::<bool>(), NAMES.len());
    let consents = prop::collection::vec(any::<bool>(), NAMES.len());
    let overrides = prop::sample::select(vec![
        Known::No("not asked".to_owned()),
        Known::Yes(BTreeSet::new()),
        Known::Yes(BTreeSet::from([NodeId(4)])),
    ]);
    let downgrade =
        prop::sample::select(vec![DowngradePolicy::Safe, DowngradePolicy::Safe, DowngradePolicy::Never]);
    let batching = prop::sample::select(vec![Batching::Together, Batching::Ordered]);
    let policy = (downgrade, batching, owned, consents, overrides);
    (catalogs(), level_sets(), level_sets(), policy).prop_map(
        move |(catalog, finalized, wanted, (downgrade, batching, owned, consents, min_insync_overrides))| {
            let finalized = settle(&catalog, &finalized);
            let wanted = if by_release { settle(&catalog, &wanted) } else { wanted };
            let owned: BTreeSet<_> =
                (0..NAMES.len()).filter(|at| by_release || owned[*at]).map(name).collect();
            let release = by_release.then(|| wanted["metadata.version"]);
            let levels = wanted.into_iter().filter(|(feature, _)| owned.contains(feature)).collect();
            Case {
                finalized,
                target: Target { levels, release },
                downgrade,
                batching,
                allow_one_way: (0..NAMES.len()).filter(|at| consents[*at]).map(name).collect(),
                min_insync_overrides,
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
        downgrade: case.downgrade,
        allow_one_way: &case.allow_one_way,
        min_insync_overrides: &case.min_insync_overrides,
        batching: case.batching,
    })
}

/// Whether policy and Kafka let one feature go from one level to another, whatever depends on it.
fn allowed(case: &Case, feature: &FeatureName, from: Level, to: Level) -> bool {
    let lossy = || {
        case.catalog.metadata_versions().iter().any(|v| v.changed_metadata && to < v.level && v.level <= from)
    };
    to >= from
        || (case.downgrade == DowngradePolicy::Safe
            && !feature.is_kraft_version()
            && !(feature.is_metadata_version() && lossy()))
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
            prop_assert!(allowed(case, &step.feature, step.from, step.to), "not allowed: {}", step);
            levels.insert(step.feature.clone(), step.to);
        }
        prop_assert!(consistent(&case.catalog, &levels), "broken after {}", request);
    }
    Ok(levels)
}

/// Whether any order of single moves of owned features, each to any level, leads to the goal without ever breaking a
/// dependency or doing what is not allowed.
fn reachable(case: &Case, goal: &Levels) -> bool {
    let mut seen = BTreeSet::from([case.finalized.clone()]);
    let mut queue = VecDeque::from([case.finalized.clone()]);
    while let Some(levels) = queue.pop_front() {
        if levels == *goal {
            return true;
        }
        for at in (0..NAMES.len()).filter(|at| case.target.owns(&name(*at))) {
            let feature = name(at);
            for level in (range(at).0..=range(at).1).map(Level) {
                if !allowed(case, &feature, levels[&feature], level) {
                    continue;
                }
                let mut moved = levels.clone();
                moved.insert(feature.clone(), level);
                if consistent(&case.catalog, &moved) && seen.insert(moved.clone()) {
                    queue.push_back(moved);
                }
            }
        }
    }
    false
}

/// Where a release leads when every consent is given: its levels, but for those that are kept above them.
fn goal_of_release(case: &Case) -> Levels {
    let kept = |feature: &FeatureName| {
        let never = case.downgrade == DowngradePolicy::Never && !feature.is_metadata_version();
        never || feature.is_kraft_version()
    };
    let levels = case.target.levels.iter().map(|(feature, &level)| {
        let above = if kept(feature) { case.finalized[feature] } else { Level::ZERO };
        (feature.clone(), level.max(above))
    });
    levels.collect()
}

/// Whether some of the steps held for want of others could have been done all the same.
fn held_in_vain(case: &Case, plan: &Plan, after: &Levels) -> bool {
    let held = plan.held.iter().filter(|held| matches!(held.why, HeldWhy::DependsOnHeld(_)));
    let steps: Vec<&Step> = held.map(|held| &held.step).collect();
    (1_u32..1 << steps.len()).any(|chosen| {
        let mut levels = after.clone();
        for (_, step) in steps.iter().enumerate().filter(|(at, _)| chosen & (1 << at) != 0) {
            levels.insert(step.feature.clone(), step.to);
        }
        consistent(&case.catalog, &levels)
    })
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
        let goal = goal_of_release(&case);
        match plan_of(&case) {
            Ok(plan) => {
                let after = walk(&case, &plan)?;
                for (feature, level) in &goal {
                    let held = plan.held.iter().any(|held| held.step.feature == *feature);
                    let expected = if held { case.finalized[feature] } else { *level };
                    prop_assert_eq!(after[feature], expected, "{}", feature);
                    let kept = plan.above_target.iter().any(|kept| kept.feature == *feature);
                    prop_assert_eq!(kept, *level > case.target.levels[feature], "{}", feature);
                }
                for held in &plan.held {
                    match &held.why {
                        HeldWhy::Consent(_) => prop_assert!(!case.allow_one_way.contains(&held.step.feature)),
                        HeldWhy::DependsOnHeld(on) => {
                            prop_assert!(plan.held.iter().any(|other| other.step.feature == *on));
                        }
                    }
                }
                prop_assert!(!held_in_vain(&case, &plan, &after));
            }
            Err(error) => prop_assert!(!reachable(&case, &goal), "there is a way, but: {}", error),
        }
    }

    #[test]
    fn batching_changes_neither_the_steps_nor_the_verdict(case in cases(true), by_levels in cases(false)) {
        for case in [case, by_levels] {
            let both = [Batching::Together, Batching::Ordered].map(|batching| {
                plan_of(&Case { batching, ..case.clone() }).map(|plan| {
                    let steps: Vec<Step> = plan.requests.into_iter().flat_map(|request| request.steps).collect();
                    (steps, plan.held, plan.above_target)
                })
            });
            prop_assert_eq!(&both[0], &both[1]);
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
    #![proptest_config(ProptestConfig::with_cases(
        if std::env::var_os("KAFKA_FEATURES_FULL").is_some() { 40_000 } else { 4_000 }
    ))]

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
