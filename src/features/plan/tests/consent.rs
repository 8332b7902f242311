//! What waits for consent, what waits with it, and what goes on.

use super::*;

#[test]
fn lowering_transaction_version_by_release_needs_consent_by_levels_it_is_given_by_naming() {
    let finalized =
        [("metadata.version", 23), ("kraft.version", 1), ("group.version", 1), ("transaction.version", 2)];
    let mut case = Case::release(&finalized, "4.0").safe();
    case.target =
        Target { levels: [(name("transaction.version"), Level(0))].into(), release: Some(Level(23)) };
    let plan = case.plan();
    assert_eq!((requests(&plan).len(), held(&plan)), (0, vec!["transaction.version 2 -> 0".to_owned()]));
    assert!(
        matches!(&plan.held[0].why, HeldWhy::Consent(why) if why.contains("producers")),
        "{:?}",
        plan.held
    );
    let consented = case.allow("transaction.version").plan();
    let named = Case::levels(&finalized, &[("transaction.version", 0)]).safe().plan();
    for plan in [consented, named] {
        assert_eq!(requests(&plan), ["transaction.version 2 -> 0"]);
        assert!(step(&plan, "transaction.version").note.as_ref().unwrap().contains("producers"));
    }
}

#[test]
fn raising_transaction_version_needs_no_consent() {
    assert!(Case::release(AT_3_9, "4.0").plan().held.is_empty());
}

/// A cluster where only `eligible.leader.replicas.version` is missing from 4.1.
const BEFORE_ELR: &[(&str, i16)] =
    &[("metadata.version", 27), ("kraft.version", 1), ("group.version", 1), ("transaction.version", 2)];

#[test]
fn raising_elr_by_release_needs_consent_where_brokers_have_or_may_have_a_min_insync_of_their_own() {
    let brokers = Known::Yes(BTreeSet::from([NodeId(2), NodeId(5)]));
    let unknown = Known::No("not authorized".to_owned());
    for (overrides, told) in [(brokers, "2, 5"), (unknown, "not authorized")] {
        let case = Case::release(BEFORE_ELR, "4.1").overrides(overrides);
        let plan = case.plan();
        assert_eq!((requests(&plan).len(), held(&plan)), (0, vec![format!("{ELR} 0 -> 1")]));
        assert!(matches!(&plan.held[0].why, HeldWhy::Consent(why) if why.contains(told)), "{:?}", plan.held);
        let plan = case.allow(ELR).plan();
        assert!(step(&plan, ELR).note.as_ref().unwrap().contains(told) && plan.held.is_empty());
    }
    let plan = Case::release(BEFORE_ELR, "4.1").plan();
    assert_eq!(requests(&plan), [format!("{ELR} 0 -> 1")]);
    assert_eq!(step(&plan, ELR).note, None);
}

#[test]
fn raising_elr_by_levels_is_consented_by_naming_and_noted() {
    let case = Case::levels(BEFORE_ELR, &[(ELR, 1)]).overrides(Known::Yes(BTreeSet::from([NodeId(2)])));
    let plan = case.plan();
    assert!(plan.held.is_empty());
    assert!(step(&plan, ELR).note.as_ref().unwrap().contains("broker 2 "), "{:?}", step(&plan, ELR));
}

#[test]
fn elr_that_is_already_there_is_never_sent_again() {
    let case = Case::release(AT_4_4, "4.4").overrides(Known::Yes(BTreeSet::from([NodeId(2)])));
    assert_eq!(case.plan(), Plan::default());
}

#[test]
fn consent_for_one_feature_is_none_for_another() {
    let case = Case::release(&[("metadata.version", 25)], "4.0").allow("transaction.version").allow(ELR);
    assert_eq!(held(&case.plan()), ["kraft.version 0 -> 1"]);
}

#[test]
fn what_depends_on_a_held_step_is_held_and_the_rest_goes_on() {
    let mut case = Case::levels(&[], &[("kraft.version", 2), ("b.version", 1), ("c.version", 1)]);
    case.catalog = dependent("b.version", "kraft.version");
    case.target.release = Some(Level(7));
    let plan = case.plan();
    assert_eq!(requests(&plan), ["c.version 0 -> 1"]);
    assert_eq!(held(&plan), ["b.version 0 -> 1", "kraft.version 0 -> 2"]);
    assert_eq!(plan.held[0].why, HeldWhy::DependsOnHeld(name("kraft.version")));
}

#[test]
fn what_a_held_step_still_needs_is_not_lowered() {
    let finalized = [("a.version", 2), ("transaction.version", 1)];
    let mut case = Case::levels(&finalized, &[("a.version", 0), ("transaction.version", 0)]).safe();
    case.catalog = dependent("transaction.version", "a.version");
    case.target.release = Some(Level(7));
    let plan = case.plan();
    assert_eq!(held(&plan), ["a.version 2 -> 0", "transaction.version 1 -> 0"]);
    assert_eq!(plan.held[0].why, HeldWhy::DependsOnHeld(name("transaction.version")));
}

#[test]
fn a_held_step_whose_dependency_was_broken_before_does_not_hold_the_remedy() {
    let finalized = [("a.version", 0), ("transaction.version", 1)];
    let mut case = Case::levels(&finalized, &[("a.version", 1), ("transaction.version", 0)]).safe();
    case.catalog = dependent("transaction.version", "a.version");
    case.target.release = Some(Level(7));
    let plan = case.plan();
    assert_eq!(requests(&plan), ["a.version 0 -> 1"]);
    assert_eq!(held(&plan), ["transaction.version 1 -> 0"]);
}

#[test]
fn a_hold_that_takes_an_obstacle_away_leaves_nothing_to_refuse() {
    let level = |needs| LevelEntry { level: Level(1), default_from: Level(7), needs };
    let entry = |feature, needs| FeatureEntry { name: name(feature), levels: vec![level(needs)] };
    let on_a = || vec![(name("a.version"), Level(1))];
    let levels = ["a.version", "kraft.version", "transaction.version"];
    let mut case = Case::levels(&levels.map(|f| (f, 1)), &levels.map(|f| (f, 0))).safe();
    case.target.release = Some(Level(7));
    case.catalog = Catalog::new(
        Vec::new(),
        vec![entry(levels[0], vec![]), entry(levels[1], on_a()), entry(levels[2], on_a())],
    );
    // transaction.version keeps what it needs, which kraft.version, that stays, needs too
    let plan = case.plan();
    assert_eq!((requests(&plan).len(), kept(&plan)), (0, vec!["kraft.version 1 > 0".to_owned()]));
    assert_eq!(held(&plan), ["a.version 1 -> 0", "transaction.version 1 -> 0"]);
    // with consent, only kraft.version stands in the way
    assert!(matches!(case.allow("transaction.version").refusal(), PlanError::DependencyWouldBreak { .. }));
}
