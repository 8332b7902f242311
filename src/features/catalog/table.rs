//! Every level that Kafka has released, as data: the one place to edit when Kafka adds a feature or a level.
//! `tests/catalog_on_kafka.rs` compares it with what Kafka's own tools print.

use super::super::FeatureName;

/// One level of `metadata.version`: level, name, whether it is stable (what Kafka calls a production level), and
/// whether it changed the metadata, so that going back below it loses some.
pub(super) type MetadataVersionRow = (i16, &'static str, bool, bool);

const STABLE: bool = true;
const UNSTABLE: bool = false;
const CHANGED: bool = true;
const SAME: bool = false;

/// All levels of `metadata.version` from the lowest that Kafka 4 can start on.
pub(super) const METADATA_VERSIONS: &[MetadataVersionRow] = &[
    (7, "3.3-IV3", STABLE, CHANGED),
    (8, "3.4-IV0", STABLE, CHANGED),
    (9, "3.5-IV0", STABLE, SAME),
    (10, "3.5-IV1", STABLE, SAME),
    (11, "3.5-IV2", STABLE, CHANGED),
    (12, "3.6-IV0", STABLE, SAME),
    (13, "3.6-IV1", STABLE, CHANGED),
    (14, "3.6-IV2", STABLE, CHANGED),
    (15, "3.7-IV0", STABLE, CHANGED),
    (16, "3.7-IV1", STABLE, SAME),
    (17, "3.7-IV2", STABLE, CHANGED),
    (18, "3.7-IV3", STABLE, SAME),
    (19, "3.7-IV4", STABLE, SAME),
    (20, "3.8-IV0", STABLE, SAME),
    (21, "3.9-IV0", STABLE, SAME),
    (22, "4.0-IV0", STABLE, SAME),
    (23, "4.0-IV1", STABLE, CHANGED),
    (24, "4.0-IV2", STABLE, SAME),
    (25, "4.0-IV3", STABLE, SAME),
    (26, "4.1-IV0", STABLE, SAME),
    (27, "4.1-IV1", STABLE, SAME),
    (28, "4.2-IV0", STABLE, SAME),
    (29, "4.2-IV1", STABLE, SAME),
    (30, "4.3-IV0", STABLE, CHANGED),
    (31, "4.4-IV0", STABLE, SAME),
    (32, "4.4-IV1", STABLE, CHANGED),
    (33, "4.4-IV2", STABLE, CHANGED),
    (34, "4.5-IV0", UNSTABLE, SAME),
];

/// One level of a feature above 0: the level, the lowest `metadata.version` at which it is the default, and what it
/// depends on.
pub(super) type LevelRow = (i16, i16, &'static [(&'static str, i16)]);

/// The features besides `metadata.version`, in the order of Kafka's own listings. Where several levels become the
/// default at once, the highest is the default.
pub(super) const FEATURES: &[(&str, &[LevelRow])] = &[
    (FeatureName::KRAFT_VERSION, &[(1, 21, &[])]),
    (FeatureName::TRANSACTION_VERSION, &[(1, 24, &[]), (2, 24, &[])]),
    (FeatureName::GROUP_VERSION, &[(1, 22, &[])]),
    (FeatureName::ELIGIBLE_LEADER_REPLICAS_VERSION, &[(1, 26, &[(FeatureName::METADATA_VERSION, 23)])]),
    (FeatureName::SHARE_VERSION, &[(1, 28, &[]), (2, 31, &[])]),
    (FeatureName::STREAMS_VERSION, &[(1, 29, &[])]),
];

/// Names that KIP-1022 gave to features which were released under others.
pub(super) const RENAMED: &[(&str, &str)] = &[
    ("transaction.protocol.version", FeatureName::TRANSACTION_VERSION),
    ("group.coordinator.version", FeatureName::GROUP_VERSION),
];

/// One feature's supported range: name, lowest and highest level.
pub(super) type RangeRow = (&'static str, i16, i16);

const KRAFT: RangeRow = (FeatureName::KRAFT_VERSION, 0, 1);
const TRANSACTION: RangeRow = (FeatureName::TRANSACTION_VERSION, 0, 2);
const GROUP: RangeRow = (FeatureName::GROUP_VERSION, 0, 1);
const ELR: RangeRow = (FeatureName::ELIGIBLE_LEADER_REPLICAS_VERSION, 0, 1);
const STREAMS: RangeRow = (FeatureName::STREAMS_VERSION, 0, 1);

const fn metadata(min: i16, max: i16) -> RangeRow {
    (FeatureName::METADATA_VERSION, min, max)
}

const fn share(max: i16) -> RangeRow {
    (FeatureName::SHARE_VERSION, 0, max)
}

/// The `metadata.version` from which on controllers register, and Kafka's own check of levels includes them (KIP-919).
pub(super) const CONTROLLERS_REGISTER: i16 = 15;

/// The lowest `metadata.version` that software must support for its controllers to move `kraft.version`. Seen: a 3.9
/// controller answers with success and only writes the level down, while the quorum stays static; 4.0 answers with
/// success and does nothing; 4.1 and later move it. All of them advertise 0 to 1.
pub(super) const MOVES_KRAFT_VERSION: i16 = 26;

/// What each release of the Kafka software supports, by its first two numbers, without unstable levels.
pub(super) const SOFTWARE: &[(&str, &[RangeRow])] = &[
    ("3.7", &[metadata(1, 19)]),
    ("3.8", &[metadata(1, 20)]),
    ("3.9", &[metadata(1, 21), KRAFT]),
    ("4.0", &[metadata(7, 25), KRAFT, TRANSACTION, GROUP, ELR]),
    ("4.1", &[metadata(7, 27), KRAFT, TRANSACTION, GROUP, ELR, share(1)]),
    ("4.2", &[metadata(7, 29), KRAFT, TRANSACTION, GROUP, ELR, share(1), STREAMS]),
    ("4.3", &[metadata(7, 30), KRAFT, TRANSACTION, GROUP, ELR, share(1), STREAMS]),
    ("4.4", &[metadata(7, 33), KRAFT, TRANSACTION, GROUP, ELR, share(2), STREAMS]),
];
