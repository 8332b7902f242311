//! What a cluster answers when it refuses an update, read as far as a decision depends on it. Kafka names one
//! node at a time, in prose; what can't be read stays prose.

use crate::features::observed::NodeId;
use crate::features::plan::{Batching, Request};
use crate::features::{FeatureName, Level, LevelRange};

/// What kind of answer a refusal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// The operator's user may not change levels.
    NotAuthorized,
    /// The levels are not acceptable to the cluster as it is.
    Levels,
    /// Anything else.
    Other,
}

/// The cluster's answer to a request of this very pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What was asked.
    pub request: Request,
    /// How the request was put together.
    pub batching: Batching,
    /// What kind of answer it is.
    pub kind: RefusalKind,
    /// The cluster's own words.
    pub message: String,
}

/// What a refusal says about nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NodeRefusal {
    /// One node does not support a level.
    Unsupported {
        /// The node.
        node: NodeId,
        /// Whether it was named as a broker; else as a controller.
        broker: bool,
        /// The feature.
        feature: FeatureName,
        /// The range it supports; `None`: the text doesn't say.
        supported: Option<LevelRange>,
        /// The level asked for.
        needed: Level,
    },
    /// One voter has not registered.
    NotRegistered {
        /// The node.
        node: NodeId,
        /// The feature.
        feature: FeatureName,
        /// The level asked for.
        needed: Level,
    },
    /// Not all voters support a kraft.version, or the leader has not heard from all since it was elected.
    SomeVoter,
}

impl Refusal {
    /// Reads what the refusal says about nodes.
    ///
    /// The texts, as 3.7 to 4.4 write them: `Invalid update version 33 for feature metadata.version. Broker 3
    /// only supports versions 7-30`, `... Local controller 1 does not support this feature.`, `... controller 5
    /// has not registered, and may not support this feature`, and for kraft.version `... because not all of the
    /// voters support it`.
    pub(super) fn about_nodes(&self) -> Option<NodeRefusal> {
        if self.message.contains("not all of the voters support it") {
            return Some(NodeRefusal::SomeVoter);
        }
        let (_, rest) = self.message.split_once("Invalid update version ")?;
        let (needed, rest) = rest.split_once(" for feature ")?;
        let needed = Level(needed.trim().parse().ok()?);
        let (feature, rest) = rest.split_once(". ")?;
        let feature = FeatureName::new(feature).ok()?;
        let (broker, rest) = ["Broker ", "Local controller ", "Controller ", "controller "]
            .iter()
            .find_map(|who| Some((*who == "Broker ", rest.strip_prefix(who)?)))?;
        let (node, what) = rest.split_once(' ')?;
        let node = NodeId(node.parse().ok()?);
        if what.starts_with("has not registered") {
            return Some(NodeRefusal::NotRegistered { node, feature, needed });
        }
        let supported = if what.starts_with("does not support this feature") {
            Some(LevelRange::ABSENT)
        } else {
            range(what.strip_prefix("only supports versions ")?)
        };
        Some(NodeRefusal::Unsupported { node, broker, feature, supported, needed })
    }
}

/// Reads a range as Kafka prints it: `7-30`, `7` for 7 to 7, `7+` for no upper end.
fn range(text: &str) -> Option<LevelRange> {
    let number = |text: &str| text.parse().ok().map(Level);
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>();
    let min = digits(text);
    let rest = text.get(min.len()..)?;
    let min = number(&min)?;
    let max = match rest.chars().next() {
        Some('-') => number(&digits(rest.get(1..)?))?,
        Some('+') => Level(i16::MAX),
        _ => min,
    };
    Some(LevelRange { min, max })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREFIX: &str = "The update failed for all features since the following feature had an error: ";

    fn about(text: &str) -> Option<NodeRefusal> {
        let request = Request { steps: vec![] };
        let message = format!("{PREFIX}{text}");
        Refusal { request, batching: Batching::Together, kind: RefusalKind::Levels, message }.about_nodes()
    }

    #[test]
    fn a_node_named_as_unsupporting_is_read_with_its_range() {
        for (who, broker) in [("Broker", true), ("Controller", false), ("Local controller", false)] {
            let text = format!(
                "Invalid update version 33 for feature metadata.version. {who} 3 only supports versions 7-30"
            );
            let expected = NodeRefusal::Unsupported {
                node: NodeId(3),
                broker,
                feature: FeatureName::metadata_version(),
                supported: Some(LevelRange { min: Level(7), max: Level(30) }),
                needed: Level(33),
            };
            assert_eq!(about(&text), Some(expected), "{text}");
        }
    }

    #[test]
    fn a_node_that_lacks_the_feature_counts_as_zero_to_zero() {
        let text =
            "Invalid update version 1 for feature share.version. Broker 12 does not support this feature.";
        let Some(NodeRefusal::Unsupported { node, supported, .. }) = about(text) else { panic!("{text}") };
        assert_eq!((node, supported), (NodeId(12), Some(LevelRange::ABSENT)));
    }

    #[test]
    fn ranges_are_read_in_every_form_that_kafka_prints() {
        let levels = |min, max| Some(LevelRange { min: Level(min), max: Level(max) });
        assert_eq!(range("7-30"), levels(7, 30));
        assert_eq!(range("7-30."), levels(7, 30));
        assert_eq!(range("7"), levels(7, 7));
        assert_eq!(range("7+"), levels(7, i16::MAX));
        assert_eq!(range("some"), None);
        assert_eq!(range("7-"), None);
    }

    #[test]
    fn a_voter_that_has_not_registered_is_read() {
        let text = "Invalid update version 33 for feature metadata.version. controller 5 has not registered, \
                    and may not support this feature";
        let expected = NodeRefusal::NotRegistered {
            node: NodeId(5),
            feature: FeatureName::metadata_version(),
            needed: Level(33),
        };
        assert_eq!(about(text), Some(expected));
    }

    #[test]
    fn voters_that_the_leader_has_not_heard_from_are_read() {
        let text =
            "Invalid upgrade of kraft.version to KRAFT_VERSION_1 because not all of the voters support it";
        assert_eq!(about(text), Some(NodeRefusal::SomeVoter));
    }

    #[test]
    fn other_refusals_are_not_about_nodes() {
        for text in [
            "Invalid update version 1 for feature eligible.leader.replicas.version. \
             eligible.leader.replicas.version could not be set to 1 because it depends on metadata.version level 23",
            "Invalid update version 30 for feature metadata.version. Unsupported metadata.version downgrade",
            "Invalid update version x for feature metadata.version. Broker 3 only supports versions 7-30",
            "",
        ] {
            assert_eq!(about(text), None, "{text}");
        }
    }
}
