//! What goes in which request, in which order, and what is refused for want of a dependency.

use super::*;

#[test]
fn at_the_target_there_is_nothing_to_do() {
    assert_eq!(Case::release(AT_4_4, "4.4").plan(), Plan::default());
    assert_eq!(Case::levels(AT_4_4, &[("group.version", 1), ("future.version", 0)]).plan(), Plan::default());
}

#[test]
fn a_release_moves_every_feature_in_one_request_dependencies_first() {
    let plan = Case::release(AT_3_9, "4.4").plan();
    assert_eq!(
        requests(&plan),
        ["group.version 0 -> 1, metadata.version 21 (3.9-IV0) -> 33 (4.4-IV2), \
             eligible.leader.replicas.version 0 -> 1, share.version 0 -> 2, streams.version 0 -> 1, \
             transaction.version 0 -> 2"]
    );
    assert!(plan.held.is_empty() && plan.above_target.is_empty());
}

#[test]
fn features_left_behind_by_an_old_upgrade_are_raised_and_kraft_version_waits_for_consent() {
    let plan = Case::release(&[("metadata.version", 25)], "4.0").plan();
    assert_eq!(requests(&plan), ["group.version 0 -> 1, transaction.version 0 -> 2"]);
    assert_eq!(held(&plan), ["kraft.version 0 -> 1"]);
}

#[test]
fn kraft_version_with_consent_is_alone_and_last() {
    let case = Case::release(&[("metadata.version", 20)], "4.0").allow("kraft.version");
    let plan = case.plan();
    assert_eq!(
        requests(&plan),
        [
            "group.version 0 -> 1, metadata.version 20 (3.8-IV0) -> 25 (4.0-IV3), transaction.version 0 -> 2",
            "kraft.version 0 -> 1"
        ]
    );
    assert!(step(&plan, "kraft.version").one_way && step(&plan, "kraft.version").note.is_some());
    assert_eq!(requests(&case.ordered().plan()).last().unwrap(), "kraft.version 0 -> 1");
}

#[test]
fn ordered_puts_a_dependency_before_what_needs_it_one_feature_a_request() {
    let declared = [(ELR, 1), ("metadata.version", 25)];
    let plan = Case::levels(&[("metadata.version", 22)], &declared).ordered().plan();
    assert_eq!(
        requests(&plan),
        ["metadata.version 22 (4.0-IV0) -> 25 (4.0-IV3)", "eligible.leader.replicas.version 0 -> 1"]
    );
}

#[test]
fn ordered_puts_a_dependency_after_what_needs_it_on_the_way_down() {
    let mut case = Case::levels(&[("a.version", 2), ("b.version", 1)], &[("a.version", 1), ("b.version", 0)])
        .safe()
        .ordered();
    case.catalog = dependent("b.version", "a.version");
    assert_eq!(requests(&case.plan()), ["b.version 1 -> 0", "a.version 2 -> 1"]);
    case.batching = Batching::Together;
    assert_eq!(requests(&case.plan()), ["b.version 1 -> 0, a.version 2 -> 1"]);
}

#[test]
fn ups_and_downs_share_a_request() {
    let plan = Case::levels(AT_4_4, &[("streams.version", 0), ("share.version", 3)]).safe().plan();
    assert_eq!(requests(&plan), ["share.version 2 -> 3, streams.version 1 -> 0"]);
}

#[test]
fn features_that_the_catalog_does_not_know_are_planned_by_number() {
    let case = Case::levels(&[("gone.version", 4)], &[("future.version", 3), ("gone.version", 2)]).safe();
    assert_eq!(requests(&case.plan()), ["future.version 0 -> 3, gone.version 4 -> 2"]);
}

#[test]
fn features_that_nobody_declared_stay() {
    let plan =
        Case::release(&[("metadata.version", 21), ("kraft.version", 1), ("future.version", 5)], "3.9").plan();
    assert_eq!(plan, Plan::default());
    assert_eq!(
        plan.result(&[(name("future.version"), Level(5))].into_iter().collect()).get("future.version"),
        Level(5)
    );
}

#[test]
fn a_metadata_version_upgrade_is_one_way_where_a_level_between_changed_the_metadata() {
    let note = |from, to| {
        let plan = Case::levels(&[("metadata.version", from)], &[("metadata.version", to)]).plan();
        let step = step(&plan, "metadata.version").clone();
        assert_eq!(step.one_way, step.note.is_some());
        step.note
    };
    assert_eq!(note(23, 29), None);
    assert_eq!(note(30, 31), None);
    assert_eq!(
        note(29, 31).unwrap(),
        "no way back below 30 (4.3-IV0): the metadata changes with 30 (4.3-IV0)"
    );
    assert_eq!(
        note(21, 33).unwrap(),
        "no way back below 33 (4.4-IV2): the metadata changes with 23 (4.0-IV1), 30 (4.3-IV0), 32 (4.4-IV1), \
         33 (4.4-IV2)"
    );
    assert_eq!(note(5, 7).unwrap(), "no way back below 7 (3.3-IV3): the metadata changes with 7 (3.3-IV3)");
}

#[test]
fn a_dependency_that_the_target_does_not_own_is_named_with_what_the_cluster_has() {
    let refusal = Case::levels(&[("metadata.version", 22)], &[(ELR, 1)]).refusal();
    assert!(matches!(&refusal, PlanError::DependencyNotOwned { .. }));
    assert_eq!(
        refusal.to_string(),
        "eligible.leader.replicas.version 1 needs metadata.version 23 (4.0-IV1) or higher; the cluster has 22 \
         (4.0-IV0), and this resource does not raise it: declare metadata.version too"
    );
    assert!(Case::levels(&[("metadata.version", 23)], &[(ELR, 1)]).try_plan().is_ok());
}

#[test]
fn lowering_what_an_undeclared_feature_needs_is_refused_and_that_feature_named() {
    let mut case = Case::levels(&[("a.version", 2), ("b.version", 1)], &[("a.version", 1)]).safe();
    case.catalog = dependent("b.version", "a.version");
    let refusal = case.refusal();
    assert!(matches!(&refusal, PlanError::DependencyWouldBreak { .. }));
    assert_eq!(
        refusal.to_string(),
        "a.version can't be lowered to 1: b.version is finalized at 1 and needs a.version 2 or higher; declare a \
         lower b.version too"
    );
}

#[test]
fn a_dependency_that_somebody_else_broke_stands_in_the_way_of_nothing_else() {
    let finalized = [("metadata.version", 21), (ELR, 1)];
    let plan = Case::levels(&finalized, &[("group.version", 1)]).plan();
    assert_eq!(requests(&plan), ["group.version 0 -> 1"]);
    let plan = Case::levels(&finalized, &[("metadata.version", 25)]).plan();
    assert_eq!(requests(&plan), ["metadata.version 21 (3.9-IV0) -> 25 (4.0-IV3)"]);
}

#[test]
fn every_refusal_is_one_line() {
    let refusals = [
        Case::levels(AT_4_4, &[("group.version", 0)]).refusal(),
        Case::levels(AT_4_4, &[("kraft.version", 0)]).refusal(),
        Case::release(AT_4_4, "4.3").safe().refusal(),
        Case::levels(&[("metadata.version", 22)], &[(ELR, 1)]).refusal(),
    ];
    for refusal in refusals {
        assert!(!refusal.to_string().contains('\n'), "{refusal}");
    }
}
