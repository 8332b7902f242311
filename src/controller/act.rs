//! Carries out a decision: one request, asked about first and sent then. Every decision that is acted on was made from
//! what this very pass observed; after anything was sent the pass ends, since only the cluster knows how it came out.

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
pub(super) async fn act(cluster: &impl Cluster, situation: Situation<'_>) -> Outcome {
    let mut decision = decide(&situation);
    while let (Some(request), Some(id)) = (decision.next.clone(), decision.cluster_id.clone()) {
        decision = match send(cluster, &id, &request).await {
            Ok(()) => return Outcome { decision, accepted: Some(request) },
            Err(Setback::Refused { kind, message }) => {
                let refusal = Refusal { request, batching: decision.batching, kind, message };
                decide(&Situation { refusal: Some(&refusal), ..situation })
            }
            Err(Setback::Unreachable(unreachable)) => {
                decide(&Situation { observed: Err(&unreachable), ..situation })
            }
        };
    }
    Outcome { decision, accepted: None }
}

/// Kafka checks a request as a whole before it applies it, but for `kraft.version`, and not everything: the dry run
/// costs little and finds refusals before anything could have moved.
async fn send(cluster: &impl Cluster, id: &ClusterId, request: &Request) -> Result<(), Setback> {
    cluster.change(id, request, true).await?;
    cluster.change(id, request, false).await
}
