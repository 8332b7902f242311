//! The script that holds what a node is outside its processes, and removes it however the test ends.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use super::NETWORK_NAMESPACE;

/// A running `guard.sh`.
#[derive(Debug)]
pub(super) struct Guard {
    child: Child,
    stdin: Option<ChildStdin>,
    folder: PathBuf,
    /// The process that keeps the node's mounts.
    mounts: String,
    /// The cgroup of the node's daemons.
    cgroup: PathBuf,
}

impl Guard {
    /// Waits until no other node runs on this machine, and sets up.
    pub(super) fn start() -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/testbed/node/guard.sh");
        let mut command = Command::new(script);
        // in a group of its own, so that an interrupt from the terminal doesn't end it before its work
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut child = command.spawn().expect("bash is there");
        let stdin = child.stdin.take();
        let mut line = String::new();
        let stdout = child.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut line).expect("UTF-8");
        let mut words = line.split_whitespace().map(str::to_owned);
        assert_eq!(words.next().as_deref(), Some("ready"), "the node's guard failed; it says why above");
        let mut next = || words.next().expect("a word");
        let (folder, mounts, cgroup) = (PathBuf::from(next()), next(), PathBuf::from(next()));
        Self { child, stdin, folder, mounts, cgroup }
    }

    /// The arguments for `nsenter` that come before a command that is to run on the node.
    pub(super) fn enter(&self) -> Vec<String> {
        let join = format!(r#"echo $$ >{}/cgroup.procs; exec "$0" "$@""#, self.cgroup.display());
        vec![
            format!("--mount=/proc/{}/ns/mnt", self.mounts),
            format!("--net=/run/netns/{NETWORK_NAMESPACE}"),
            "sh".to_owned(),
            "-c".to_owned(),
            join,
        ]
    }

    /// The file system as the node sees it.
    pub(super) fn root(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root", self.mounts))
    }

    /// Ends all that still runs on the node, and removes it.
    pub(super) fn stop(&mut self) {
        drop(self.stdin.take());
        let _ = self.child.wait();
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.stop();
    }
}
