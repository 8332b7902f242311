//! What a person sees while the demo runs: a line for each thing that became another, and none twice.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Instant;

use kafka_features_operator::api::{KafkaFeatures, KafkaFeaturesStatus, conditions};

/// What was shown so far.
pub(crate) struct Progress {
    begun: Instant,
    shown: BTreeMap<String, String>,
}

impl Progress {
    pub(crate) fn begin() -> Self {
        Self { begun: Instant::now(), shown: BTreeMap::new() }
    }

    /// Prints a line with the time since the beginning.
    pub(crate) fn say(&self, line: impl Display) {
        println!("[{:>3} s] {line}", self.begun.elapsed().as_secs());
    }

    /// Prints what a resource's status says anew.
    pub(crate) fn show(&mut self, resource: &KafkaFeatures) {
        for (about, line) in resource.status.iter().flat_map(lines) {
            if self.shown.get(&about) != Some(&line) {
                self.say(format!("  {line}"));
                self.shown.insert(about, line);
            }
        }
    }
}

/// What there is to tell, each with what it is about.
fn lines(status: &KafkaFeaturesStatus) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    let main = [conditions::READY, conditions::RECONCILING, conditions::STALLED];
    let (three, more): (Vec<_>, Vec<_>) =
        status.conditions.iter().partition(|c| main.contains(&c.type_.as_str()));
    if let Some(ready) = three.iter().find(|c| c.type_ == conditions::READY) {
        let states: Vec<String> = three.iter().map(|c| format!("{}={}", c.type_, c.status)).collect();
        lines.push(("state".to_owned(), format!("{} {}: {}", states.join(" "), ready.reason, ready.message)));
    }
    for condition in more {
        let line = format!("{}={}: {}", condition.type_, condition.status, condition.message);
        lines.push((condition.type_.clone(), line));
    }
    for pod in &status.pods {
        let node = pod.node_id.map_or_else(String::new, |id| format!(" (node {id})"));
        let part = pod.part.as_ref().map_or_else(String::new, |part| format!(" as {part}"));
        let why = pod.message.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        lines.push((
            format!("pod {}", pod.name),
            format!("pod {}{node}: {:?}{part}{why}", pod.name, pod.state),
        ));
    }
    for step in &status.plan {
        let way = if step.one_way { ", one way" } else { "" };
        let when = step.request.map_or_else(|| "held".to_owned(), |number| format!("request {number}"));
        let line = format!("plan: {when}: {} {} -> {}{way}", step.feature, step.from, step.to);
        lines.push((format!("plan {}", step.feature), line));
    }
    for change in status.history.iter().rev() {
        let line = format!("done: {} {} -> {}", change.feature, change.from, change.to);
        lines.push((format!("change {} {:?}", change.feature, change.time), line));
    }
    for blocker in &status.blockers {
        let supports = blocker.supported.as_deref().unwrap_or("could not be asked");
        let line = format!(
            "held back by {} {}: {} {supports}, needed {}",
            blocker.role, blocker.node_id, blocker.feature, blocker.needed
        );
        lines.push((format!("blocker {} {}", blocker.node_id, blocker.feature), line));
    }
    lines
}
