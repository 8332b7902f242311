//! `kafka-storage` beside Kafka's own tool, on the same arguments: the same verdict, the same lines for scripts, the same
//! files with the same modes, and the same records in them, batch by batch. For each Kafka version its own tool is asked.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, unreachable_pub)]

#[path = "storage_on_kafka/case.rs"]
mod case;
#[path = "storage_on_kafka/disk.rs"]
mod disk;
#[path = "storage_on_kafka/matrix.rs"]
mod matrix;
#[path = "storage_on_kafka/tools.rs"]
mod tools;

mod testbed;

use case::Case;
use tools::compare;

const NEWEST: &str = "4.4.0";
/// The versions whose layout is Kafka 4.3's and before.
const OLDER: [&str; 5] = ["3.9.2", "4.0.2", "4.1.2", "4.2.2", "4.3.1"];

fn differences(version: &str, cases: &[Case]) -> Vec<String> {
    println!("{version}: {} cases compared", cases.len());
    cases.iter().filter_map(|case| compare(version, case).err()).collect()
}

/// Those that know static quorums only, and whose tool has neither flags for others nor single features.
const OLDEST: [&str; 2] = ["3.7.2", "3.8.1"];

/// Compares all cases with the tool of one version, and tells every difference at once.
fn compare_all(version: &str, cases: &[Case]) {
    let differences = differences(version, cases);
    let all = cases.len();
    assert!(
        differences.is_empty(),
        "{} of {all} differ from Kafka {version}:\n{}",
        differences.len(),
        differences.join("\n")
    );
}

#[test]
fn every_release_quorum_and_role_on_the_newest() {
    compare_all(NEWEST, &matrix::releases(NEWEST));
}

#[test]
fn every_level_of_every_feature_on_the_newest() {
    compare_all(NEWEST, &matrix::levels(NEWEST));
}

#[test]
fn users_directories_and_everything_that_is_wrong_on_the_newest() {
    compare_all(NEWEST, &matrix::users());
    compare_all(NEWEST, &matrix::directories());
    compare_all(NEWEST, &matrix::wrong());
    compare_all(NEWEST, &matrix::syntax());
}

#[test]
fn info_mappings_and_dependencies_on_the_newest() {
    compare_all(NEWEST, &matrix::info());
    compare_all(NEWEST, &matrix::mappings());
}

#[test]
fn the_layouts_of_older_versions() {
    let mut all = Vec::new();
    for version in OLDER {
        let mut cases = matrix::releases(version);
        cases.extend(matrix::levels(version));
        cases.extend(matrix::users());
        cases.extend(matrix::directories());
        cases.retain(|case| !matrix::is_stricter(case, version));
        let differences = differences(version, &matrix::sample(cases, version));
        all.extend(differences.into_iter().map(|difference| format!("Kafka {version}: {difference}")));
    }
    assert!(all.is_empty(), "{} cases differ from older versions:\n{}", all.len(), all.join("\n"));
}

#[test]
fn the_layout_of_the_oldest_versions() {
    for version in OLDEST {
        let mut cases = matrix::releases(version);
        cases.extend(matrix::directories());
        cases.retain(|case| case.properties.contains("controller.quorum.voters="));
        cases.retain(|case| !matrix::is_stricter(case, version));
        compare_all(version, &matrix::sample(cases, version));
    }
}
