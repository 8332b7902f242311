//! Carries out a decision: one request, asked about first and sent then. Every decision that is acted on was made from
//! what this very pass observed; after anything was sent the pass ends, since only the cluster knows how it came out.

use super::Error;
use super::cluster::{Cluster, Setback};
use crate::features::decide::{Decision, Refusal, Situation, decide};
use crate::features::observed::ClusterId;
use crate::features::plan::Request;

/// How a pass came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    /// The last decision, which the cluster's answers are part of.
    pub(super) decision: Decision,
    /// The request that the cluster accepted.
    pub(super) accepted: Option<Request>,
}

/// Decides, and sends at most one request for real.
///
/// Ends, since a decision on a refusal either tries feature by feature, once, or sends nothing.
///
/// # Errors
/// If the lease does not last for a change that was to be sent: there is nothing to tell of the cluster then.
pub(super) async fn act(cluster: &impl Cluster, situation: Situation<'_>) -> Result<Outcome, Error> {
    let mut decision = decide(&situation);
    while let (Some(request), Some(id)) = (decision.next.clone(), decision.cluster_id.clone()) {
        decision = match send(cluster, &id, &request).await {
            Ok(()) => return Ok(Outcome { decision, accepted: Some(request) }),
            Err(Setback::NotPermitted) => return Err(Error::LeaseRanOut),
            Err(Setback::Refused { kind, message }) => {
                let refusal = Refusal { request, batching: decision.batching, kind, message };
                decide(&Situation { refusal: Some(&refusal), ..situation })
            }
            Err(Setback::Unreachable(unreachable)) => {
                decide(&Situation { observed: Err(&unreachable), ..situation })
            }
        };
    }
    Ok(Outcome { decision, accepted: None })
}

/// Kafka checks a request as a whole before it applies it, but for `kraft.version`, and not everything: the dry run
/// costs little and finds refusals before anything could have moved.
async fn send(cluster: &impl Cluster, id: &ClusterId, request: &Request) -> Result<(), Setback> {
    cluster.change(id, request, true).await?;
    cluster.change(id, request, false).await
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet, VecDeque};
    use std::sync::Mutex;
    use std::time::Duration;

    use jiff::Timestamp;

    use super::*;
    use crate::features::catalog::Catalog;
    use crate::features::decide::{
        Failure, Mode, RefusalKind, Remembered, Seniority, Spec, Stall, State, Unreachable,
    };
    use crate::features::observed::{Known, Observed};
    use crate::features::plan::DowngradePolicy;
    use crate::features::target::TargetSpec;
    use crate::features::{FeatureName, Level};

    /// A cluster that answers as it is told, and keeps what it was asked: how many steps, and whether for real.
    #[derive(Default)]
    struct Scripted {
        answers: Mutex<VecDeque<Result<(), Setback>>>,
        asked: Mutex<Vec<(usize, bool)>>,
    }

    impl Cluster for Scripted {
        async fn observe(&self) -> Result<Observed, Unreachable> {
            panic!("an action observes nothing by itself")
        }

        async fn change(&self, id: &ClusterId, request: &Request, dry_run: bool) -> Result<(), Setback> {
            assert_eq!(id.0, "cluster-a");
            self.asked.lock().unwrap().push((request.steps.len(), !dry_run));
            self.answers.lock().unwrap().pop_front().expect("an answer for each request")
        }
    }

    fn refused(message: &str) -> Result<(), Setback> {
        Err(Setback::Refused { kind: RefusalKind::Levels, message: message.into() })
    }

    async fn acted(
        remembered: Option<&str>,
        answers: impl IntoIterator<Item = Result<(), Setback>>,
    ) -> (Outcome, Vec<(usize, bool)>) {
        let (outcome, asked) = tried(remembered, answers).await;
        (outcome.unwrap(), asked)
    }

    async fn tried(
        remembered: Option<&str>,
        answers: impl IntoIterator<Item = Result<(), Setback>>,
    ) -> (Result<Outcome, Error>, Vec<(usize, bool)>) {
        let spec = Spec {
            cluster_id: None,
            target: TargetSpec::Release("4.4".into()),
            downgrade: DowngradePolicy::Never,
            allow_one_way: BTreeSet::new(),
            mode: Mode::Apply,
            paused: false,
            soak: Duration::ZERO,
        };
        let observed = Observed {
            cluster_id: ClusterId("cluster-a".into()),
            nodes: BTreeMap::new(),
            fenced_brokers_listed: true,
            finalized: [(FeatureName::metadata_version(), Level(21))].into_iter().collect(),
            finalized_epoch: None,
            quorum: Known::No("not asked".into()),
            min_insync_overrides: Known::Yes(BTreeSet::new()),
        };
        let remembered = Remembered {
            cluster_id: remembered.map(|id| ClusterId(id.into())),
            accepted: Vec::new(),
            soak: None,
        };
        let situation = Situation {
            catalog: Catalog::kafka(),
            spec: &spec,
            seniority: &Seniority { created: Timestamp::UNIX_EPOCH, uid: "uid".into() },
            claims: &[],
            remembered: &remembered,
            observed: Ok(&observed),
            refusal: None,
            now: Timestamp::UNIX_EPOCH,
        };
        let cluster =
            Scripted { answers: Mutex::new(answers.into_iter().collect()), asked: Mutex::default() };
        let outcome = act(&cluster, situation).await;
        assert!(cluster.answers.lock().unwrap().is_empty(), "more was expected to be asked");
        (outcome, cluster.asked.into_inner().unwrap())
    }

    #[tokio::test]
    async fn a_request_is_asked_about_before_it_is_sent_once() {
        let (outcome, asked) = acted(Some("cluster-a"), [Ok(()), Ok(())]).await;
        assert_eq!(asked, [(6, false), (6, true)]);
        assert_eq!(outcome.decision.state, State::Acting);
        assert_eq!(outcome.accepted.unwrap().steps.len(), 6);
    }

    #[tokio::test]
    async fn nothing_is_sent_before_the_cluster_is_on_record_nor_to_another() {
        let (outcome, asked) = acted(None, []).await;
        assert_eq!((outcome.decision.state, asked.len()), (State::AdoptingCluster, 0));
        let (outcome, asked) = acted(Some("cluster-b"), []).await;
        assert_eq!((outcome.decision.state, asked.len()), (State::Stalled(Stall::ClusterIdMismatch), 0));
    }

    #[tokio::test]
    async fn a_refused_dry_run_is_followed_by_nothing_for_real() {
        let text =
            "Invalid update version 33 for feature metadata.version. Broker 4 only supports versions 7-30";
        let (outcome, asked) = acted(Some("cluster-a"), [refused(text)]).await;
        assert_eq!(asked, [(6, false)]);
        assert_eq!((outcome.decision.state, outcome.accepted), (State::WaitingForNodes, None));
    }

    #[tokio::test]
    async fn a_joint_request_that_is_refused_is_tried_feature_by_feature_in_the_same_pass() {
        let (outcome, asked) = acted(Some("cluster-a"), [refused("no"), Ok(()), Ok(())]).await;
        assert_eq!(asked, [(6, false), (1, false), (1, true)]);
        assert_eq!(outcome.accepted.unwrap().steps.len(), 1);
        let (outcome, asked) = acted(Some("cluster-a"), [refused("no"), refused("no")]).await;
        assert_eq!(asked, [(6, false), (1, false)]);
        assert_eq!(outcome.decision.state, State::Stalled(Stall::RefusedByCluster));
    }

    #[tokio::test]
    async fn after_a_lost_answer_nothing_is_assumed_and_nothing_more_is_sent() {
        let lost =
            || Err(Setback::Unreachable(Unreachable { failure: Failure::NoAnswer, message: "lost".into() }));
        for answers in [vec![lost()], vec![Ok(()), lost()]] {
            let (outcome, _) = acted(Some("cluster-a"), answers).await;
            assert_eq!((outcome.decision.state, outcome.accepted), (State::ClusterUnreachable, None));
            assert_eq!(outcome.decision.view, None, "what was seen before may no longer be so");
        }
    }

    #[tokio::test]
    async fn a_refusal_for_real_after_a_dry_run_that_went_well_is_told() {
        let text = "Invalid upgrade of kraft.version because not all of the voters support it";
        let (outcome, asked) = acted(Some("cluster-a"), [Ok(()), refused(text)]).await;
        assert_eq!(asked, [(6, false), (6, true)]);
        assert_eq!((outcome.decision.state, outcome.accepted), (State::WaitingForNodes, None));
    }

    #[tokio::test]
    async fn a_lease_that_does_not_last_breaks_the_pass_off_and_tells_nothing_of_the_cluster() {
        let (outcome, asked) = tried(Some("cluster-a"), [Ok(()), Err(Setback::NotPermitted)]).await;
        assert!(matches!(outcome, Err(Error::LeaseRanOut)), "{outcome:?}");
        assert_eq!(asked, [(6, false), (6, true)]);
    }
}
