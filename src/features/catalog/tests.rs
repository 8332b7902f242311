//! The catalog beside what was seen in Kafka 3.7 to 4.4.

use super::*;

fn name(text: &str) -> FeatureName {
    FeatureName::new(text).unwrap()
}

/// What Kafka 4.4.0 says of each level: level, name, whether it changed the metadata, and the defaults of the
/// other features in Kafka's order.
const SEEN_IN_4_4_0: &str = "
    7 3.3-IV3 changed 0/0/0/0/0/0
    8 3.4-IV0 changed 0/0/0/0/0/0
    9 3.5-IV0 same 0/0/0/0/0/0
    10 3.5-IV1 same 0/0/0/0/0/0
    11 3.5-IV2 changed 0/0/0/0/0/0
    12 3.6-IV0 same 0/0/0/0/0/0
    13 3.6-IV1 changed 0/0/0/0/0/0
    14 3.6-IV2 changed 0/0/0/0/0/0
    15 3.7-IV0 changed 0/0/0/0/0/0
    16 3.7-IV1 same 0/0/0/0/0/0
    17 3.7-IV2 changed 0/0/0/0/0/0
    18 3.7-IV3 same 0/0/0/0/0/0
    19 3.7-IV4 same 0/0/0/0/0/0
    20 3.8-IV0 same 0/0/0/0/0/0
    21 3.9-IV0 same 1/0/0/0/0/0
    22 4.0-IV0 same 1/0/1/0/0/0
    23 4.0-IV1 changed 1/0/1/0/0/0
    24 4.0-IV2 same 1/2/1/0/0/0
    25 4.0-IV3 same 1/2/1/0/0/0
    26 4.1-IV0 same 1/2/1/1/0/0
    27 4.1-IV1 same 1/2/1/1/0/0
    28 4.2-IV0 same 1/2/1/1/1/0
    29 4.2-IV1 same 1/2/1/1/1/1
    30 4.3-IV0 changed 1/2/1/1/1/1
    31 4.4-IV0 same 1/2/1/1/2/1
    32 4.4-IV1 changed 1/2/1/1/2/1
    33 4.4-IV2 changed 1/2/1/1/2/1
    34 4.5-IV0 same 1/2/1/1/2/1";

#[test]
fn every_level_of_metadata_version_is_as_kafka_has_it() {
    let catalog = Catalog::kafka();
    let row = |version: &MetadataVersion| {
        let defaults = catalog.defaults_at(version.level);
        let defaults: Vec<_> = catalog.features().iter().map(|f| defaults[&f.name].to_string()).collect();
        let changed = if version.changed_metadata { "changed" } else { "same" };
        format!("{} {} {changed} {}", version.level, version.name, defaults.join("/"))
    };
    let rows: Vec<String> = catalog.metadata_versions().iter().map(row).collect();
    let seen: Vec<&str> = SEEN_IN_4_4_0.lines().map(str::trim).filter(|row| !row.is_empty()).collect();
    assert_eq!(rows, seen);
    let unstable: Vec<_> = catalog.metadata_versions().iter().filter(|v| !v.stable).collect();
    assert_eq!(unstable.iter().map(|v| v.level.0).collect::<Vec<_>>(), [34]);
}

#[test]
fn each_software_release_supports_what_its_nodes_advertise() {
    let seen = [
        ("3.7", "metadata.version 1-19"),
        ("3.8", "metadata.version 1-20"),
        ("3.9", "kraft.version 0-1, metadata.version 1-21"),
        (
            "4.0",
            "eligible.leader.replicas.version 0-1, group.version 0-1, kraft.version 0-1, \
             metadata.version 7-25, transaction.version 0-2",
        ),
        (
            "4.1",
            "eligible.leader.replicas.version 0-1, group.version 0-1, kraft.version 0-1, \
             metadata.version 7-27, share.version 0-1, transaction.version 0-2",
        ),
        (
            "4.2",
            "eligible.leader.replicas.version 0-1, group.version 0-1, kraft.version 0-1, \
             metadata.version 7-29, share.version 0-1, streams.version 0-1, transaction.version 0-2",
        ),
        (
            "4.3",
            "eligible.leader.replicas.version 0-1, group.version 0-1, kraft.version 0-1, \
             metadata.version 7-30, share.version 0-1, streams.version 0-1, transaction.version 0-2",
        ),
        (
            "4.4",
            "eligible.leader.replicas.version 0-1, group.version 0-1, kraft.version 0-1, \
             metadata.version 7-33, share.version 0-2, streams.version 0-1, transaction.version 0-2",
        ),
    ];
    let software = Catalog::kafka().software().iter().map(|software| {
        let ranges = software.supported.iter().map(|(feature, range)| format!("{feature} {range}"));
        (software.release.clone(), ranges.collect::<Vec<_>>().join(", "))
    });
    let seen = seen.map(|(release, ranges)| (release.to_owned(), ranges.to_owned()));
    assert_eq!(software.collect::<Vec<_>>(), seen);
}

#[test]
fn the_lowest_lossless_level_is_the_last_that_changed_metadata() {
    let expected = |from: i16| match from {
        33.. => 33,
        32 => 32,
        30..=31 => 30,
        23..=29 => 23,
        17..=22 => 17,
        15..=16 => 15,
        14 => 14,
        13 => 13,
        11..=12 => 11,
        8..=10 => 8,
        _ => 7,
    };
    for from in 7..=34 {
        let lowest = Catalog::kafka().lowest_lossless(Level(from)).unwrap();
        assert_eq!(lowest.level.0, expected(from), "from {from}");
    }
    assert_eq!(Catalog::kafka().lowest_lossless(Level(35)), None);
}

#[test]
fn eligible_leader_replicas_is_the_one_level_with_a_dependency() {
    let catalog = Catalog::kafka();
    let dependent: Vec<String> = catalog
        .features()
        .iter()
        .flat_map(|f| f.levels.iter().map(move |l| (f, l)))
        .filter(|(_, l)| !l.needs.is_empty())
        .map(|(f, l)| format!("{}={} needs {:?}", f.name, l.level, l.needs[0].1.0))
        .collect();
    assert_eq!(dependent, ["eligible.leader.replicas.version=1 needs 23"]);
}

#[test]
fn every_default_of_a_release_is_supported_by_the_software_of_that_release() {
    let catalog = Catalog::kafka();
    for software in catalog.software() {
        let release = catalog.release(&software.release).unwrap();
        assert_eq!(software.supported["metadata.version"].max, release.level, "{}", software.release);
        for (feature, level) in catalog.defaults_at(release.level) {
            let range = software.supported.get(&feature).copied().unwrap_or(LevelRange::ABSENT);
            assert!(range.contains(level), "{} {feature} {level}", software.release);
        }
    }
}

#[test]
fn what_the_catalog_does_not_know_is_handled_by_number() {
    let catalog = Catalog::kafka();
    assert_eq!(catalog.level_text(&name("metadata.version"), Level(33)), "33 (4.4-IV2)");
    assert_eq!(catalog.level_text(&name("metadata.version"), Level(99)), "99");
    assert_eq!(catalog.level_text(&name("future.version"), Level(3)), "3");
    assert!(catalog.needs(&name("future.version"), Level(3)).is_empty());
    assert!(catalog.needs(&name("group.version"), Level(9)).is_empty());
    assert!(!catalog.knows(&name("future.version")));
}

#[test]
fn names_of_the_proposal_lead_to_the_released_ones() {
    let released = |text: &str| Catalog::kafka().released_name(&name(text)).map(|n| n.to_string());
    assert_eq!(released("transaction.protocol.version").as_deref(), Some("transaction.version"));
    assert_eq!(released("group.coordinator.version").as_deref(), Some("group.version"));
    assert_eq!(released("group.version"), None);
}
