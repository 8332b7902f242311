//! Who may format what: from the pods that wait, what they found, the identity record and the cluster to grants. Pure: asks
//! nobody, and writes nothing by itself.
//!
//! It fails closed. A controller is formatted as one that the cluster begins with only where it was never formatted before
//! and the cluster was never seen up; whoever can't know that waits.

mod identity;
mod levels;
mod parts;
#[cfg(test)]
mod properties;
mod record;
#[cfg(test)]
mod tests;

pub use record::{Record, RecordedVoter, VoterState};

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::api::pods::{Denial, Grant, Part, Report, Verdict};
use crate::api::{Format, PodState};
use crate::features::observed::Observed;
use crate::features::target::TargetSpec;

/// The variable that an image which formats by itself takes the cluster's id from, as a pod's manifest has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum GivenId {
    /// The resource names none.
    #[default]
    NotAsked,
    /// It is taken from the identity record.
    FromRecord,
    /// The manifest has a value of its own.
    Value(String),
    /// It is not in the manifest, or comes from elsewhere.
    Missing,
}

/// A pod that is labelled for the resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pod {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Whether it is about to go.
    pub going: bool,
    /// Whether it has the init containers.
    pub injected: bool,
    /// The version of its Kafka, as it says itself; or how it contradicts itself.
    pub kafka_version: Option<Result<String, String>>,
    /// The cluster's id that its image will be given.
    pub given_id: GivenId,
    /// What the first init container reported last.
    pub look: Option<Report>,
    /// What the second one reported last.
    pub format: Option<Report>,
    /// The grant that it has.
    pub grant: Option<Grant>,
    /// The denial that it has.
    pub denied: Option<Denial>,
}

impl Pod {
    /// What its containers reported last; the second one knows better, once it has ended.
    fn latest(&self) -> Option<&Report> {
        self.format.as_ref().or(self.look.as_ref())
    }

    /// Whether its directories were found formatted, and it is this controller.
    fn is_formatted_as(&self, node_id: i32) -> bool {
        self.latest().is_some_and(|report| {
            report.controller
                && report.node_id == Some(node_id)
                && matches!(report.verdict, Verdict::Formatted | Verdict::FormattedNow)
        })
    }

    /// Why its containers failed by themselves. What they only repeat of a denial is judged anew.
    fn failed_by_itself(&self) -> Option<Failure> {
        let report = self.latest().filter(|report| report.verdict == Verdict::Failed && !report.denied)?;
        Some(Failure {
            reason: report.reason.clone().unwrap_or_else(|| "FormatFailed".to_owned()),
            message: report.message.clone().unwrap_or_default(),
        })
    }
}

/// Everything that a decision is made from.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    /// The resource's name.
    pub resource: &'a str,
    /// How pods are to be formatted.
    pub format: &'a Format,
    /// The declared levels.
    pub target: &'a TargetSpec,
    /// The cluster's id as declared.
    pub pinned: Option<&'a str>,
    /// The cluster's id as status has it.
    pub remembered: Option<&'a str>,
    /// The identity record, if there is one.
    pub record: Option<&'a Record>,
    /// The cluster, where it could be seen.
    pub observed: Option<&'a Observed>,
    /// The pods.
    pub pods: &'a [Pod],
    /// The time.
    pub now: Timestamp,
    /// An older resource that formats for the same cluster.
    pub owner: Option<&'a str>,
    /// Why nothing may be granted for now; `None` where it may.
    pub held: Option<&'a str>,
}

/// Why a pod, or all of them, can't be formatted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// In one word.
    pub reason: String,
    /// In one line, with the way out.
    pub message: String,
}

impl Failure {
    fn new(reason: &str, message: impl Into<String>) -> Self {
        Self { reason: reason.to_owned(), message: message.into() }
    }
}

/// A pod as people see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodView {
    /// Its name.
    pub name: String,
    /// Its node's id.
    pub node_id: Option<i32>,
    /// Whether the node is a broker, and a controller.
    pub roles: Option<(bool, bool)>,
    /// Where it stands.
    pub state: PodState,
    /// How it was formatted, or is to be.
    pub part: Option<Part>,
    /// Why it failed.
    pub failure: Option<Failure>,
    /// What it waits for.
    pub waits_for: Option<String>,
}

/// A grant that a pod is to be given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToGrant {
    /// The pod's name.
    pub pod: String,
    /// The grant, which names its uid.
    pub grant: Grant,
}

/// A denial that a pod is to be given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToDeny {
    /// The pod's name.
    pub pod: String,
    /// The denial, which names its uid.
    pub denial: Denial,
}

/// What to do, and what to say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// The identity record as it shall be, before anything is granted. `None`: there is none yet.
    pub record: Option<Record>,
    /// What is granted then.
    pub grants: Vec<ToGrant>,
    /// The pods that are told that they can't be formatted as they are, so that their containers end with the reason.
    pub denials: Vec<ToDeny>,
    /// The pods, by name.
    pub pods: Vec<PodView>,
    /// What keeps all pods from being formatted.
    pub failure: Option<Failure>,
}

impl Decision {
    /// The first thing that needs a person, with the pod it is about.
    #[must_use]
    pub fn first_failure(&self) -> Option<Failure> {
        let of_pod = |pod: &PodView| {
            let failure = pod.failure.as_ref()?;
            Some(Failure::new(&failure.reason, format!("Pod {}: {}", pod.name, failure.message)))
        };
        self.failure.clone().or_else(|| self.pods.iter().find_map(of_pod))
    }

    /// What the pods that wait are waiting for, in a few words; `None` where none waits.
    #[must_use]
    pub fn waiting(&self) -> Option<String> {
        let mut by_cause: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for pod in &self.pods {
            let cause = match pod.state {
                PodState::Starting => "the init containers to begin",
                PodState::Granted => "the format to be done",
                PodState::Waiting => pod.waits_for.as_deref().unwrap_or("a grant"),
                PodState::NotInjected => {
                    "the init containers, which only a new pod is given: delete it once the injection is installed"
                }
                PodState::Formatted | PodState::Failed => continue,
            };
            by_cause.entry(cause).or_default().push(&pod.name);
        }
        let causes: Vec<String> = by_cause
            .iter()
            .map(|(cause, pods)| {
                let waits = if pods.len() == 1 { "waits" } else { "wait" };
                format!("{} {waits} for {cause}", pods.join(", "))
            })
            .collect();
        (!causes.is_empty()).then(|| format!("{}.", causes.join("; ")))
    }
}

/// Decides what is granted now. `fresh` makes new random ids.
#[must_use]
pub fn decide(situation: &Situation<'_>, fresh: &mut dyn FnMut() -> String) -> Decision {
    let mut views: Vec<PodView> = situation.pods.iter().filter(|pod| !pod.going).map(view).collect();
    views.sort_by(|a, b| a.name.cmp(&b.name));
    let looked = situation.pods.iter().any(|pod| pod.injected && pod.look.is_some());
    let found = identity::cluster_id(situation).and_then(|id| {
        identity::check_owner(situation)?;
        match situation.record {
            Some(record) if record.is_untouched() => record::begin(situation, Some(record), id, fresh),
            Some(record) => record.check_declared(situation.format).map(|()| Some(record.clone())),
            None if looked => record::begin(situation, None, id, fresh),
            None => Ok(None),
        }
    });
    let record = match found {
        Ok(record) => record,
        Err(failure) => {
            let (record, failure) = (situation.record.cloned(), Some(failure));
            return Decision { record, pods: views, failure, ..Decision::default() };
        }
    };
    let Some(mut record) = record else { return Decision { pods: views, ..Decision::default() } };
    record.learn(situation);
    let mut decision = Decision { pods: views, ..Decision::default() };
    identity::check_pods(situation, &record, &mut decision.pods);
    parts::assign(situation, &mut record, &mut decision);
    parts::tell_of_old_voters(situation, &mut decision);
    if situation.held.is_none() {
        decision.denials = denials(situation, &decision.pods);
    }
    decision.record = Some(record);
    decision
}

/// The pods that have to be told why they can't be formatted. One that has a grant may be using it.
fn denials(situation: &Situation<'_>, views: &[PodView]) -> Vec<ToDeny> {
    let deny = |view: &PodView| {
        let failure = view.failure.as_ref()?;
        let pod = situation.pods.iter().find(|pod| pod.name == view.name && !pod.going && pod.injected)?;
        let formatted = matches!(pod.latest()?.verdict, Verdict::Formatted | Verdict::FormattedNow);
        let granted = pod.grant.as_ref().is_some_and(|grant| grant.pod == pod.uid);
        if formatted || granted || pod.failed_by_itself().is_some() {
            return None;
        }
        let denial =
            Denial { pod: pod.uid.clone(), reason: failure.reason.clone(), message: failure.message.clone() };
        (pod.denied.as_ref() != Some(&denial)).then(|| ToDeny { pod: pod.name.clone(), denial })
    };
    views.iter().filter_map(deny).collect()
}

/// A pod as it says itself that it stands.
fn view(pod: &Pod) -> PodView {
    let last = pod.latest();
    let failure = pod.failed_by_itself();
    let state = match last.map(|report| report.verdict) {
        _ if !pod.injected => PodState::NotInjected,
        None => PodState::Starting,
        Some(Verdict::Formatted | Verdict::FormattedNow) => PodState::Formatted,
        Some(Verdict::Failed) if failure.is_some() => PodState::Failed,
        Some(Verdict::Unformatted | Verdict::Failed) => PodState::Waiting,
    };
    let known = last.filter(|report| report.node_id.is_some());
    PodView {
        name: pod.name.clone(),
        node_id: known.and_then(|report| report.node_id),
        roles: known.map(|report| (report.broker, report.controller)),
        part: pod.grant.as_ref().filter(|grant| grant.pod == pod.uid).map(|grant| grant.part),
        waits_for: (state == PodState::NotInjected).then(|| {
            format!(
                "it has no init container {}, so nothing is formatted for it: delete the pod once the injection is \
                 installed, or add the containers to its manifest",
                crate::api::pods::FORMAT_CONTAINER
            )
        }),
        state,
        failure,
    }
}
