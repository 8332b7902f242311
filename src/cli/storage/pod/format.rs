//! The second init container: waits for a grant where a directory is not formatted, and formats as it says.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use secrecy::SecretString;
use tokio::signal::unix::{SignalKind, signal};

use super::Refused;
use super::node::Node;
use super::refusal::Refusal;
use crate::api::pods::{Answer, Grant, GrantedVoter, Part, Report, Verdict};
use crate::cli::Status;
use crate::cli::arguments as files;
use crate::cli::storage::arguments::InPod;
use crate::features::FeatureName;
use crate::kafka::{Address, Client, Endpoints, Timeouts};
use crate::storage::Uuid;
use crate::storage::directory::read_bounded;
use crate::storage::format::{FormatRequest, InitialQuorum};
use crate::storage::software::Software;

/// How often the grant is looked for.
const POLL: Duration = Duration::from_millis(100);
/// Annotations of a pod have room for 256 KiB in all.
const LONGEST_GRANT: u64 = 256 << 10;
/// How long the other voters have to tell of a leader. Addresses that nobody answers on cost no more than this.
const PATIENCE: Timeouts = Timeouts { request: Duration::from_millis(1500), pass: Duration::from_secs(3) };

pub(super) fn run(files: &InPod) -> Result<Report, Box<Refused>> {
    let node = Node::find(files)?;
    let report = node.survey()?;
    if report.verdict == Verdict::Formatted {
        return Ok(report);
    }
    let refused = |refusal| Refused::new(report.clone(), refusal);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| refused(Refusal::disk(error.to_string())))?;
    let grant = runtime.block_on(wait(&files.grant, &report.pod)).map_err(refused)?;
    // what was found before may have changed while nobody looked
    let report = node.survey()?;
    if report.verdict == Verdict::Formatted {
        return Ok(report);
    }
    let refused = |refusal| Refused::new(report.clone(), refusal);
    check(&node, &report, &grant).map_err(refused)?;
    let leader = runtime.block_on(leader(&node, &grant)).map_err(refused)?;
    if let Some(leader) = leader {
        let message = format!(
            "the other voters have a leader already, node {leader}: a voter that begins the cluster once more could undo \
             what it has written; nothing was formatted"
        );
        return Err(refused(Refusal::new("LeaderFound", Status::Identity, message)));
    }
    let request = request(&node, &grant, &files.scram).map_err(refused)?;
    let format = request.prepare().map_err(|faults| refused(Refusal::of_faults(&faults)))?;
    format.write().map_err(|fault| refused(Refusal::of_faults(&[fault])))?;
    let report = node.survey()?;
    Ok(Report { verdict: Verdict::FormattedNow, ..report })
}

/// Waits for a grant for this pod. Ends early where the pod is to go: the first process of a container has to see to that
/// by itself.
async fn wait(path: &Path, pod: &str) -> Result<Grant, Refusal> {
    let failed = |error: std::io::Error| Refusal::disk(format!("signals can't be waited for: {error}"));
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut told = String::new();
    loop {
        let waits_for = match look_for(path, pod) {
            Ok(Answer::Granted(grant)) => return Ok(*grant),
            Ok(Answer::Denied(denial)) => {
                return Err(Refusal::denied(denial.reason, &denial.message));
            }
            Err(waits_for) => waits_for,
        };
        if waits_for != told {
            let _ = writeln!(std::io::stderr(), "kafka-storage: {waits_for}");
            told = waits_for;
        }
        tokio::select! {
            () = tokio::time::sleep(POLL) => {}
            _ = terminate.recv() => return Err(ended()),
            _ = interrupt.recv() => return Err(ended()),
        }
    }
}

fn ended() -> Refusal {
    Refusal::new("Terminated", Status::Problems, "ended before there was a grant; nothing was formatted")
}

/// The operator's answer to this pod, or what is waited for.
fn look_for(path: &Path, pod: &str) -> Result<Answer, String> {
    let text = read_bounded(path, LONGEST_GRANT).unwrap_or_default();
    if text.iter().all(u8::is_ascii_whitespace) {
        return Err(
            "waiting for the operator's grant; `kubectl describe kafkafeatures` says what it waits for"
                .to_owned(),
        );
    }
    match serde_json::from_slice::<Answer>(&text) {
        Ok(answer) if answer.pod() == pod => Ok(answer),
        Ok(answer) => {
            Err(format!("waiting for a grant: the one that is there is for pod {:?}", answer.pod()))
        }
        Err(_) => Err("waiting for a grant: what is there in its place can't be read".to_owned()),
    }
}

/// Whether the grant is for what was found.
fn check(node: &Node, report: &Report, grant: &Grant) -> Result<(), Refusal> {
    let own = node.config.node_id;
    if grant.node_id != own {
        return Err(Refusal::node_id(format!(
            "the grant is for node {}, and this is node {own}: the configuration has changed since the operator looked",
            grant.node_id
        )));
    }
    match &report.cluster_id {
        Some(found) if *found != grant.cluster_id => Err(Refusal::cluster_id(format!(
            "directories of this pod belong to cluster {found:?}, and the resource's cluster is {:?}: give the pod the \
             volume of its own cluster, or empty it",
            grant.cluster_id
        ))),
        _ => Ok(()),
    }
}

/// The leader that the other voters have. Only asked for by one that would begin the cluster.
async fn leader(node: &Node, grant: &Grant) -> Result<Option<i32>, Refusal> {
    if grant.part != Part::Voter {
        return Ok(None);
    }
    let granted = grant.voters.iter().map(|voter| (voter.node_id, voter.host.clone(), voter.port));
    let configured = node.config.static_voters.iter().map(|v| (v.node_id, v.host.clone(), v.port));
    let others = granted.chain(configured).filter(|(id, ..)| *id != node.config.node_id);
    let mut controllers = Vec::new();
    for (_, host, port) in others {
        let host = if host.contains(':') { format!("[{host}]") } else { host };
        let address = format!("{host}:{port}");
        controllers.push(address.parse::<Address>().map_err(|e| Refusal::configuration(e.to_string()))?);
    }
    let endpoints = Endpoints { brokers: Vec::new(), controllers };
    let found = tokio::time::timeout(PATIENCE.pass, Client::new(endpoints, PATIENCE).find_leader()).await;
    Ok(found.ok().flatten().map(|leader| leader.0))
}

fn request(node: &Node, grant: &Grant, scram: &Path) -> Result<FormatRequest, Refusal> {
    let software = Software::of(&grant.kafka_version)
        .map_err(|error| Refusal::new("UnknownKafkaVersion", Status::Configuration, error.to_string()))?;
    let directory_id = grant.directory_id.as_deref().map(str::parse::<Uuid>).transpose();
    let directory_id =
        directory_id.map_err(|error| Refusal::configuration(format!("the grant's {error}")))?;
    Ok(FormatRequest {
        features: features(&software, &grant.levels),
        config: node.config.clone(),
        software,
        cluster_id: Some(grant.cluster_id.clone()),
        release: None,
        quorum: quorum(node, grant),
        directory_id,
        scram: if grant.part == Part::Voter { users(scram)? } else { Vec::new() },
        ignore_formatted: true,
    })
}

/// The levels as the format takes them. What the grant does not name is 0; `kraft.version` follows from the quorum.
fn features(software: &Software, levels: &BTreeMap<String, i16>) -> Vec<String> {
    let zero = software.features().map(|feature| (feature.to_string(), 0));
    let mut all: BTreeMap<String, i16> = zero.collect();
    // a level 0 of what the software does not know says nothing
    let known = levels.iter().filter(|(feature, level)| **level != 0 || all.contains_key(*feature));
    let known: Vec<(String, i16)> = known.map(|(feature, level)| (feature.clone(), *level)).collect();
    all.extend(known);
    all.remove(FeatureName::KRAFT_VERSION);
    all.into_iter().map(|(feature, level)| format!("{feature}={level}")).collect()
}

fn quorum(node: &Node, grant: &Grant) -> InitialQuorum {
    let config = &node.config;
    let voters = grant.voters.iter().map(voter).collect::<Vec<_>>().join(",");
    match grant.part {
        Part::Broker | Part::ReturningVoter => InitialQuorum::Unsaid,
        Part::Voter if voters.is_empty() => InitialQuorum::Unsaid,
        Part::Voter => InitialQuorum::InitialControllers(voters),
        Part::Observer if !voters.is_empty() => InitialQuorum::RunningVoters(voters),
        Part::Observer if config.static_voters.is_empty() => InitialQuorum::NoInitialControllers,
        Part::Observer => InitialQuorum::Unsaid,
    }
}

fn voter(voter: &GrantedVoter) -> String {
    let host = if voter.host.contains(':') { format!("[{}]", voter.host) } else { voter.host.clone() };
    let directory = voter.directory_id.as_deref().unwrap_or_default();
    format!("{}@{host}:{}:{directory}", voter.node_id, voter.port)
}

/// The SCRAM users of a mounted Secret, one a line of each of its entries.
fn users(folder: &Path) -> Result<Vec<SecretString>, Refusal> {
    let wrong = |path: &Path, why: &str| {
        Refusal::new("InvalidScram", Status::Configuration, format!("{}: {why}", path.display()))
    };
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(wrong(folder, &error.to_string())),
    };
    // what begins with two dots is how a volume is brought up to date in one go
    let shown = |path: &std::path::PathBuf| {
        !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".."))
    };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).filter(shown).collect();
    paths.sort();
    let mut users = Vec::new();
    for path in paths {
        let bytes = files::read(&path).map_err(|error| wrong(&path, &error))?;
        for line in files::lines(&bytes) {
            let line = std::str::from_utf8(line).map_err(|_| wrong(&path, "it is not UTF-8"))?.trim();
            if !line.is_empty() && !line.starts_with('#') {
                users.push(SecretString::from(line));
            }
        }
    }
    Ok(users)
}
