//! Kafka's own command-line tools, as the oracle that ours are compared with: many calls in one JVM.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{parts, process};

const CALL_TIMEOUT: Duration = Duration::from_secs(120);

#[derive(Serialize)]
struct Call<'a> {
    tool: &'a str,
    args: &'a [String],
}

/// What a tool answered.
#[derive(Clone, Debug, Deserialize)]
pub struct Answer {
    pub exit: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Answer {
    /// The standard output of a call that had to succeed.
    pub fn ok(self) -> String {
        assert_eq!(self.exit, 0, "{}{}", self.stdout, self.stderr);
        self.stdout
    }
}

struct Jvm {
    child: Child,
    calls: ChildStdin,
    answers: mpsc::Receiver<String>,
}

impl Drop for Jvm {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The tools of one Kafka version. Clones share one JVM.
#[derive(Clone)]
pub struct Oracle {
    version: String,
    jvm: Arc<Mutex<Option<Jvm>>>,
}

impl Oracle {
    /// The tools of a Kafka version; one JVM a version and process, started at the first call.
    pub fn of(version: &str) -> Self {
        static ORACLES: OnceLock<Mutex<BTreeMap<String, Oracle>>> = OnceLock::new();
        let oracles = ORACLES.get_or_init(Mutex::default);
        let mut oracles = oracles.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Self { version: version.to_owned(), jvm: Arc::default() };
        oracles.entry(version.to_owned()).or_insert_with(new).clone()
    }

    /// Runs `tool` with its arguments, as its script would.
    pub fn run(&self, tool: &str, args: &[&str]) -> Answer {
        let args: Vec<String> = args.iter().map(ToString::to_string).collect();
        let call = serde_json::to_string(&Call { tool, args: &args }).expect("JSON");
        let mut slot = self.jvm.lock().unwrap_or_else(PoisonError::into_inner);
        let jvm = slot.get_or_insert_with(|| start(&self.version));
        let written = writeln!(jvm.calls, "{call}");
        let answer = jvm.answers.recv_timeout(CALL_TIMEOUT);
        match (written, answer) {
            (Ok(()), Ok(line)) => serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}")),
            (written, answer) => {
                *slot = None;
                panic!("no answer from Kafka {}'s {tool} {args:?}: {written:?} {answer:?}", self.version)
            }
        }
    }

    /// The finalized level of every feature that the cluster supports, by Kafka's own `kafka-features describe`;
    /// levels of `metadata.version` come as their names.
    pub fn finalized(&self, bootstrap: [&str; 2]) -> BTreeMap<String, String> {
        let described = self.run("kafka-features", &[bootstrap[0], bootstrap[1], "describe"]).ok();
        let field = |line: &str, key: &str| -> String {
            let rest = line.split_once(key).unwrap_or_else(|| panic!("{key} in {line}")).1;
            rest.split_whitespace().next().unwrap_or_default().to_owned()
        };
        let lines = described.lines().filter(|line| line.starts_with("Feature:"));
        lines.map(|line| (field(line, "Feature:"), field(line, "FinalizedVersionLevel:"))).collect()
    }
}

fn start(version: &str) -> Jvm {
    let (classes, jars) = (parts::oracle(version), parts::kafka(version));
    let child = process::spawn("java", |command| {
        command.args(["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]);
        command.args([
            "-Djava.security.manager=allow",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
            "-cp",
        ]);
        command.arg(format!("{}:{}/*", classes.display(), jars.display())).arg("Oracle");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    });
    let mut child = child.expect("java starts");
    let calls = child.stdin.take().expect("a pipe");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let (sender, answers) = mpsc::channel();
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    Jvm { child, calls, answers }
}
