//! Several replicas, each the real binary: one acts, and what happens to it.

use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::Api;
use rustix::process::Signal;
use serde_json::json;

use crate::brokers;
use crate::stage::{ACCOUNT, BASE, Stage};
use crate::testbed::ports::Port;
use crate::testbed::process::Process;
use crate::testbed::{ApiServer, Kafka};

const PATIENCE: Duration = Duration::from_secs(60);

struct Replica {
    process: Process,
    port: Port,
}

impl Replica {
    fn start(stage: &Stage, args: &[&str]) -> Self {
        let (kubeconfig, port) = (stage.kubeconfig(), Port::lease());
        let log = kubeconfig.with_file_name(format!("replica-{}.log", port.number));
        let binary = env!("CARGO_BIN_EXE_kafka-features-operator");
        let process = Process::start("kafka-features-operator", binary, log, |command| {
            command.env("KUBECONFIG", kubeconfig).args(["run", "--listen", &port.address()]).args(args);
        });
        Self { process, port }
    }

    fn with_lease(stage: &Stage) -> Self {
        Self::start(stage, &["--lease-namespace", ACCOUNT, "--lease-seconds", "3"])
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

    async fn wait_for(&self, path: &str, code: u16, text: &str) {
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
}

async fn holder(stage: &Stage) -> Option<String> {
    let leases: Api<Lease> = Api::namespaced(stage.client(), ACCOUNT);
    leases.get(ACCOUNT).await.unwrap().spec.and_then(|spec| spec.holder_identity)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_stood_still_past_its_lease_ends_and_the_other_acts() {
    let kafka = Kafka::single("4.4.0", &["--release-version", "3.9"]);
    let stage = Stage::without_operator().await;
    let mut first = Replica::with_lease(&stage);
    first.wait_for("/readyz", 503, "waiting for the CustomResourceDefinition").await;
    first.wait_for("/livez", 200, "ok").await;
    stage.install().await;
    first.wait_for("/readyz", 200, "looking after resources").await;
    first.wait_for("/metrics", 200, "kafka_features_lease_held 1\n").await;
    let mut second = Replica::with_lease(&stage);
    second.wait_for("/readyz", 200, "standing by").await;
    second.wait_for("/metrics", 200, "kafka_features_lease_held 0\n").await;
    let held_by_first = holder(&stage).await;

    first.process.signal(Signal::STOP);
    second.wait_for("/readyz", 200, "looking after resources").await;
    assert_ne!(holder(&stage).await, held_by_first);
    stage.apply("kafka", json!({ "cluster": brokers(&kafka), "features": { "group.version": 1 } })).await;
    first.process.signal(Signal::CONT);
    let ended = tokio::task::block_in_place(|| first.process.wait(PATIENCE)).expect("it ends by itself");
    assert!(!ended.success());
    assert!(first.process.tail(3).contains("kafka-features-operator/kafka-features-operator"));
    stage.wait_for("kafka", "Ready", "Reached").await;
    assert_eq!(kafka.finalized()["group.version"], "1");
    second
        .wait_for("/metrics", 200, "kafka_features_updates_total{dry_run=\"false\",outcome=\"Accepted\"} 1\n")
        .await;

    // told to end, a replica leaves the lease to whoever comes
    second.process.signal(Signal::TERM);
    assert!(tokio::task::block_in_place(|| second.process.wait(PATIENCE)).expect("it ends").success());
    assert_eq!(holder(&stage).await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_replicas_without_a_lease_do_no_harm() {
    let kafka = Kafka::single("4.4.0", &["--release-version", "3.9"]);
    let stage = Stage::without_operator().await;
    stage.install().await;
    let replicas = [(); 2].map(|()| Replica::start(&stage, &["--no-lease"]));
    for replica in &replicas {
        replica.wait_for("/readyz", 200, "looking after resources").await;
    }
    stage.apply("kafka", json!({ "cluster": brokers(&kafka), "releaseVersion": "4.4" })).await;
    stage.wait_for("kafka", "Ready", "True").await;
    assert_eq!(kafka.finalized(), crate::of_4_4());
    assert_eq!(stage.requests(|_, resource| resource == "leases"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_deploy_holds_is_taken_by_an_api_server_as_a_whole() {
    let server = ApiServer::start().await;
    let run = |args: &[&str]| {
        let output = server.kubectl().args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    tokio::task::block_in_place(|| {
        let applied = run(&["apply", "--server-side", "-k", BASE]);
        assert!(applied.contains("deployment.apps/kafka-features-operator"), "{applied}");
        let again = run(&["diff", "--server-side", "-k", BASE]);
        assert_eq!(again, "", "what is stored is what was applied");
    });
}
