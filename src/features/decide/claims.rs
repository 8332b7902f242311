//! Who may move a feature when several declarations are about the same cluster. The oldest keeps what it
//! claims; nothing is ever decided by chance or by who came first in a pass.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::spec::{Mode, Spec};
use crate::features::FeatureName;
use crate::features::target::TargetSpec;

/// Where a declaration stands among others: by age, then by id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seniority {
    /// When it was created.
    pub created: Timestamp,
    /// Its unique id, which breaks ties.
    pub uid: String,
}

/// The features that a declaration claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// Every feature, known or not: it declares a release.
    All,
    /// These.
    Only(BTreeSet<FeatureName>),
}

impl Claimed {
    fn includes(&self, feature: &FeatureName) -> bool {
        match self {
            Self::All => true,
            Self::Only(features) => features.contains(feature),
        }
    }
}

/// One declaration's claim on features of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Who claims, in words that a person can look up.
    pub owner: String,
    /// Its place among others.
    pub seniority: Seniority,
    /// What it claims.
    pub features: Claimed,
}

impl Claim {
    /// The claim that a declaration makes, if it makes one: what is paused or only planned owns nothing.
    #[must_use]
    pub fn of(spec: &Spec, owner: String, seniority: Seniority) -> Option<Self> {
        if spec.paused || spec.mode == Mode::Plan {
            return None;
        }
        let features = match &spec.target {
            TargetSpec::Nothing => return None,
            TargetSpec::Release(_) => Claimed::All,
            TargetSpec::Levels(levels) => Claimed::Only(levels.keys().cloned().collect()),
        };
        Some(Self { owner, seniority, features })
    }
}

/// The features of `wanted` that older claims own, by owner, oldest first.
pub(super) fn owned_by_others<'a>(
    own: &Seniority,
    wanted: impl Iterator<Item = &'a FeatureName>,
    others: &'a [Claim],
) -> Vec<(&'a str, Vec<&'a FeatureName>)> {
    let older: BTreeMap<&Seniority, &Claim> =
        others.iter().filter(|claim| claim.seniority < *own).map(|claim| (&claim.seniority, claim)).collect();
    let mut owned: BTreeMap<&Seniority, Vec<&FeatureName>> = BTreeMap::new();
    for feature in wanted {
        if let Some(claim) = older.values().find(|claim| claim.features.includes(feature)) {
            owned.entry(&claim.seniority).or_default().push(feature);
        }
    }
    owned
        .into_iter()
        .filter_map(|(seniority, features)| Some((older.get(seniority)?.owner.as_str(), features)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seniority(second: i64, uid: &str) -> Seniority {
        Seniority { created: Timestamp::from_second(second).unwrap(), uid: uid.into() }
    }

    fn claim(owner: &str, seniority: Seniority, features: Claimed) -> Claim {
        Claim { owner: owner.into(), seniority, features }
    }

    fn feature(name: &str) -> FeatureName {
        FeatureName::new(name).unwrap()
    }

    fn only(names: &[&str]) -> Claimed {
        Claimed::Only(names.iter().map(|name| feature(name)).collect())
    }

    #[test]
    fn the_oldest_claim_wins_and_a_younger_one_does_not_count() {
        let group = feature("group.version");
        let share = feature("share.version");
        let wanted = [group.clone(), share.clone()];
        let others = [
            claim("ns/younger", seniority(30, "c"), Claimed::All),
            claim("ns/second", seniority(10, "b"), only(&["group.version", "share.version"])),
            claim("ns/first", seniority(5, "z"), only(&["group.version"])),
        ];
        let owned = owned_by_others(&seniority(20, "x"), wanted.iter(), &others);
        assert_eq!(owned, [("ns/first", vec![&group]), ("ns/second", vec![&share])]);
    }

    #[test]
    fn the_same_second_is_settled_by_uid() {
        let wanted = [feature("group.version")];
        let others = [claim("ns/b", seniority(5, "b"), Claimed::All)];
        assert_eq!(owned_by_others(&seniority(5, "a"), wanted.iter(), &others), []);
        assert_eq!(owned_by_others(&seniority(5, "c"), wanted.iter(), &others).len(), 1);
    }
}
