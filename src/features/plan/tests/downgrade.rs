//! What is lowered, kept or refused by policy, and where Kafka has no way back.

use super::*;

#[test]
fn anything_declared_below_its_level_is_refused_under_never() {
    for (feature, level) in [("metadata.version", 32), ("group.version", 0), (ELR, 0)] {
        let refusal = Case::levels(AT_4_4, &[(feature, level)]).refusal();
        assert!(matches!(&refusal, PlanError::DowngradeForbidden { .. }), "{refusal}");
        let text = refusal.to_string();
        assert!(
            text.contains(feature) && text.contains(&level.to_string()) && text.contains("Safe"),
            "{text}"
        );
    }
}

#[test]
fn metadata_version_above_a_release_is_refused_under_never() {
    let refusal = Case::release(&[("metadata.version", 29)], "4.1").refusal();
    assert_eq!(
        refusal.to_string(),
        "metadata.version is finalized at 29 (4.2-IV1), above the declared 27 (4.1-IV1), and downgrade is Never: \
         declare 29 (4.2-IV1), or set downgrade to Safe"
    );
}

#[test]
fn other_features_above_a_release_are_kept_under_never_and_lowered_under_safe() {
    let finalized =
        [("metadata.version", 25), ("kraft.version", 1), ("group.version", 1), ("share.version", 1)];
    let case = Case::release(&finalized, "4.0");
    let plan = case.plan();
    assert_eq!(requests(&plan), ["transaction.version 0 -> 2"]);
    assert_eq!(kept(&plan), ["share.version 1 > 0"]);
    let plan = case.safe().plan();
    assert_eq!(requests(&plan), ["share.version 1 -> 0, transaction.version 0 -> 2"]);
    assert_eq!(kept(&plan), [""; 0]);
}

#[test]
fn a_release_never_lowers_kraft_version() {
    let finalized = [("metadata.version", 20), ("kraft.version", 1)];
    for case in
        [Case::release(&finalized, "3.8"), Case::release(&finalized, "3.8").safe().allow("kraft.version")]
    {
        let plan = case.plan();
        assert_eq!((requests(&plan).len(), kept(&plan)), (0, vec!["kraft.version 1 > 0".to_owned()]));
    }
}

#[test]
fn kraft_version_declared_below_its_level_is_refused_whatever_the_policy() {
    let case = Case::levels(AT_4_4, &[("kraft.version", 0)]).allow("kraft.version");
    for case in [case, Case::levels(AT_4_4, &[("kraft.version", 0)]).safe()] {
        let refusal = case.refusal();
        assert!(matches!(&refusal, PlanError::KraftVersionDowngrade { .. }), "{refusal}");
        assert!(refusal.to_string().contains("declare 1"), "{refusal}");
    }
}

#[test]
fn a_lossy_downgrade_refuses_everything_and_names_the_level_that_can_be_reached() {
    let refusal = Case::release(AT_4_4, "4.3").safe().refusal();
    assert_eq!(
        refusal,
        PlanError::LossyDowngrade {
            from: "33 (4.4-IV2)".to_owned(),
            to: "30 (4.3-IV0)".to_owned(),
            changed: "33 (4.4-IV2)".to_owned(),
        }
    );
    let refusal =
        Case::levels(&[("metadata.version", 29)], &[("metadata.version", 22), ("group.version", 1)])
            .safe()
            .refusal();
    assert!(
        refusal.to_string().contains("the lowest level that can be reached is 23 (4.0-IV1)"),
        "{refusal}"
    );
}

/// For every pair of known levels: refused where Kafka 4.4.0 calls it lossy, else planned.
#[test]
fn metadata_version_goes_down_to_the_lowest_lossless_level_and_no_further() {
    for from in 7..=34 {
        let lowest = Catalog::kafka().lowest_lossless(Level(from)).unwrap().level.0;
        for to in 7..from {
            let case = Case::levels(&[("metadata.version", from)], &[("metadata.version", to)]).safe();
            assert_eq!(case.try_plan().is_ok(), to >= lowest, "{from} -> {to}");
        }
    }
}

#[test]
fn levels_of_metadata_version_that_the_catalog_does_not_know_are_left_to_the_cluster() {
    let plan = Case::levels(&[("metadata.version", 41)], &[("metadata.version", 40)]).safe().plan();
    assert_eq!(requests(&plan), ["metadata.version 41 -> 40"]);
    let plan = Case::levels(&[("metadata.version", 33)], &[("metadata.version", 40)]).plan();
    assert_eq!(requests(&plan), ["metadata.version 33 (4.4-IV2) -> 40"]);
    let step = step(&plan, "metadata.version");
    assert!(step.one_way && step.note.as_ref().unwrap().contains("40"), "{step:?}");
}
