//! One replica of the operator: the real binary, with a port where it tells of itself.

// each test binary uses its own share
#![allow(dead_code, unreachable_pub, missing_docs)]

use std::path::Path;
use std::time::{Duration, Instant};

use crate::stage::{ACCOUNT, Stage};
use crate::testbed::ports::Port;
use crate::testbed::process::Process;

pub const PATIENCE: Duration = Duration::from_secs(60);

/// A lease that another replica takes over soon.
pub const SHORT_LEASE: [&str; 4] = ["--lease-namespace", ACCOUNT, "--lease-seconds", "3"];

pub struct Replica {
    pub process: Process,
    port: Port,
}

impl Replica {
    pub fn start(kubeconfig: &Path, args: &[&str]) -> Self {
        let port = Port::lease();
        let log = kubeconfig.with_file_name(format!("replica-{}.log", port.number));
        let binary = env!("CARGO_BIN_EXE_kafka-features-operator");
        let process = Process::start("kafka-features-operator", binary, log, |command| {
            command.env("KUBECONFIG", kubeconfig).args(["run", "--listen", &port.address()]).args(args);
        });
        Self { process, port }
    }

    pub fn with_lease(stage: &Stage) -> Self {
        Self::start(&stage.kubeconfig(), &SHORT_LEASE)
    }

    /// The code and the text that a path answers with; nothing while it can't be reached.
    async fn get(&self, path: &str) -> Option<(u16, String)> {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let mut stream = tokio::net::TcpStream::connect(self.port.address()).await.ok()?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await.ok()?;
        let (head, body) = text.split_once("\r\n\r\n")?;
        Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
    }

    pub async fn wait_for(&self, path: &str, code: u16, text: &str) {
        let begun = Instant::now();
        loop {
            let answer = self.get(path).await;
            if answer.as_ref().is_some_and(|(is, body)| *is == code && body.contains(text)) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{path} is {answer:?}, not {code} with {text:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until it looks after resources.
    pub async fn wait_until_acting(&self) {
        self.wait_for("/readyz", 200, "looking after resources").await;
    }
}
