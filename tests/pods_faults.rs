//! Pods that can't be formatted as they are: each fails with one line, the resource shows the same reason, and nothing is
//! written; the others go on.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "pods/stage.rs"]
mod stage;
mod testbed;
#[path = "pods/workload.rs"]
mod workload;

use std::path::Path;

use serde_json::{Value, json};
use stage::{Stage, Status, meta, wipe};
use workload::{Workload, like_the_image, resource};

const OTHER: &str = "5L6g3nShTgeMCtKhhX86sw";

/// Everything in a folder, with the times at which it was written.
fn content(folder: &Path) -> Vec<String> {
    let output = std::process::Command::new("find")
        .arg(folder)
        .args(["-mindepth", "1", "-printf", "%P %T@\n"])
        .output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn put_meta(folder: &Path, cluster: &str, node: u32) {
    std::fs::create_dir_all(folder).unwrap();
    let text = format!("version=1\ncluster.id={cluster}\nnode.id={node}\n");
    std::fs::write(folder.join("meta.properties"), text).unwrap();
}

impl Stage {
    /// The last line that either of a pod's init containers ended with, and its report.
    fn ended(&self, namespace: &str, pod: &str) -> Option<(String, Value)> {
        let status = &self.get(namespace, &format!("pod/{pod}"))["status"]["initContainerStatuses"];
        for container in status.as_array()?.iter().rev() {
            for state in ["state", "lastState"] {
                let message = container[state]["terminated"]["message"].as_str().unwrap_or_default();
                let Ok(report) = serde_json::from_str::<Value>(message) else { continue };
                if report["verdict"] == "Failed" {
                    let name = container["name"].as_str()?;
                    let logs = ["-n", namespace, "logs", pod, "-c", name, "--previous"];
                    let last = |args: &[&str]| {
                        let text = self.kubectl_with(args, "").1;
                        // between two runs there may be no log to read
                        text.lines()
                            .last()
                            .filter(|line| line.starts_with("kafka-storage: "))
                            .map(str::to_owned)
                    };
                    let said = report["message"].as_str().unwrap_or_default();
                    let lines = [last(&logs), last(&logs[..6])].into_iter().flatten();
                    return lines.into_iter().find(|line| line.ends_with(said)).map(|line| (line, report));
                }
            }
        }
        None
    }

    /// Waits until a pod has failed for a reason, in its own words and in the resource's.
    async fn until_failed(&self, namespace: &str, pod: &str, reason: &str, words: &[&str]) {
        let (line, report) = self
            .until(namespace, &format!("{pod} fails with {reason}"), || {
                self.ended(namespace, pod).filter(|(_, report)| report["reason"] == reason)
            })
            .await;
        let message = report["message"].as_str().unwrap();
        assert_eq!(line, format!("kafka-storage: {message}"));
        for word in words {
            assert!(message.contains(word), "{message}: {word}");
        }
        let shown = self.until_pod(namespace, pod, "Failed").await;
        assert_eq!((shown["reason"].as_str(), shown["message"].as_str()), (Some(reason), Some(message)));
        let status = self.status(namespace);
        // of several that fail, the condition has one
        let failed = status.condition("FormatFailed");
        let mut pods = status.0["pods"].as_array().into_iter().flatten();
        let is_of = |pod: &Value| {
            let said = failed["message"].as_str().unwrap_or_default();
            pod["reason"] == failed["reason"] && said.contains(pod["name"].as_str().unwrap_or_default())
        };
        assert!(failed["status"] == "True" && pods.any(is_of), "{failed}");
        assert_eq!((status.condition("Stalled")["status"].as_str(), status.reached()), (Some("True"), false));
    }
}

/// A standalone cluster, and around it every pod that can't be formatted.
#[tokio::test(flavor = "multi_thread")]
async fn what_can_not_be_formatted_fails_with_its_reason_and_the_others_go_on() {
    let stage = Stage::set(&["4.4.0"]).await;
    let namespace = "faults";
    stage.namespace(namespace);
    let mut one = Workload::new(namespace, "one", "broker,controller", 0, "");
    (one.quorum, one.replicas) = (one.bootstrap_servers(1), 1);
    let spec = json!({
        "features": { "metadata.version": "4.4", "share.version": 1 },
        "format": { "quorum": "Standalone", "initialControllers": one.initial_controllers(1) },
    });
    one.volumes(&stage, 0..1).await;
    stage.apply(&[resource(namespace, &[one.address(0)], &spec)]);
    stage.apply(&one.objects(&stage));
    let status = stage.until_status(namespace, "the cluster is as declared", Status::reached).await;
    assert_eq!(status.pod("one-0")["part"], "Voter");
    stage.until_ready(namespace, &["one-0"]).await;
    assert_eq!(stage.finalized(namespace, "one-0", "share.version").as_deref(), Some("1"));

    let brokers = |name: &str, offset| {
        let mut workload = Workload::new(namespace, name, "broker", offset, &one.quorum);
        workload.replicas = 1;
        workload
    };
    let set = async |workload: &Workload, prepare: &dyn Fn(&Path)| {
        let folder = workload.volumes(&stage, 0..1).await.remove(0);
        prepare(&folder);
        // Kafka's user, as any volume that was used before
        let owned = std::process::Command::new("chown").args(["-R", "1000:1000"]).arg(&folder).status();
        assert!(owned.unwrap().success());
        let before = content(&folder);
        stage.apply(&workload.objects(&stage));
        (folder, before)
    };
    let node = set(&brokers("node", 10), &|folder| put_meta(&folder.join("kraft"), OTHER, 7)).await;
    let other = set(&brokers("other", 20), &|folder| put_meta(&folder.join("kraft"), OTHER, 20)).await;
    let mut both = brokers("both", 30);
    both.more.push("log.dirs=/data/kraft,/data/more".into());
    let both = set(&both, &|folder| {
        put_meta(&folder.join("kraft"), OTHER, 30);
        put_meta(&folder.join("more"), "another", 30);
    })
    .await;
    let mut locked = brokers("locked", 40);
    locked.read_only = true;
    let locked = set(&locked, &|_| {}).await;
    let mut root = brokers("root", 50);
    root.folder = "";
    let root = set(&root, &|folder| std::fs::create_dir(folder.join("lost+found")).unwrap()).await;
    let mut fixed = brokers("fixed", 60);
    fixed.quorum = one.static_voters(1);
    let fixed = set(&fixed, &|_| {}).await;
    let twin = set(&brokers("twin", 0), &|_| {}).await;

    let wait = async |pod: &str, reason: &str, words: &[&str]| {
        stage.until_failed(namespace, pod, reason, words).await;
    };
    wait("node-0", "NodeIdMismatch", &["node 7", "node 10:"]).await;
    wait("other-0", "ClusterIdMismatch", &[OTHER, status.0["clusterId"].as_str().unwrap()]).await;
    wait("both-0", "ClusterIdMismatch", &[OTHER, "another"]).await;
    wait("locked-0", "DirectoryNotUsable", &["Read-only file system"]).await;
    wait("root-0", "DirectoryNotEmpty", &["lost+found", "a folder below it"]).await;
    wait("fixed-0", "QuorumKindMismatch", &["controller.quorum.voters", "Standalone"]).await;
    wait("twin-0", "DuplicateNodeId", &["one-0, twin-0", "node 0"]).await;
    for (folder, before) in [&node, &other, &both, &locked, &root, &fixed, &twin] {
        assert_eq!(&content(folder), before, "nothing was written to {}", folder.display());
    }
    // what is put right on a volume is found at the next try
    wipe(&other.0);
    assert!(stage.ready(namespace).contains(&"one-0".to_owned()), "the cluster runs on");

    // a pod that is right is formatted beside them
    let right = brokers("right", 70);
    right.volumes(&stage, 0..1).await;
    stage.apply(&right.objects(&stage));
    stage.until_ready(namespace, &["right-0"]).await;
    // and one that is put right, once its pod is another
    let mut fixed = brokers("fixed", 60);
    fixed.more.push("broker.rack=a".into());
    stage.apply(&fixed.objects(&stage));
    stage.node.kubectl_ok(&["-n", namespace, "delete", "pod", "fixed-0"]);
    stage.until_ready(namespace, &["fixed-0", "other-0"]).await;
}

/// Kafka's own image formats by itself at every start; it is given the id and finds everything done.
#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_formats_by_itself_is_given_the_id() {
    let stage = Stage::set(&["4.4.0"]).await;
    let namespace = "image";
    stage.namespace(namespace);
    let workload = Workload::new(namespace, "img", "broker,controller", 0, "");
    let folder = workload.volumes(&stage, 0..1).await.remove(0);
    let spec = json!({
        "releaseVersion": "4.3",
        "format": { "quorum": "Static", "clusterIdEnv": "CLUSTER_ID" },
    });
    stage.apply(&like_the_image(&stage, namespace));
    stage.apply(&[resource(namespace, &[workload.address(0)], &spec)]);
    let status = stage.until_status(namespace, "the cluster is as declared", Status::reached).await;
    assert_eq!(status.pod("img-0")["part"], "Voter");
    assert_ne!(status.0["clusterId"], "5L6g3nShT-eMCtK--X86sw", "not the one that everybody has");
    stage.until_ready(namespace, &["img-0"]).await;
    assert_eq!(stage.finalized(namespace, "img-0", "metadata.version").as_deref(), Some("4.3-IV0"));
    // it starts again without the operator and without the resource
    let before = meta(&folder);
    stage.operator(0).await;
    stage.node.kubectl_ok(&["-n", namespace, "delete", "kafkafeatures", "kafka"]);
    stage.replace_pod(namespace, "img-0").await;
    stage.until_ready(namespace, &["img-0"]).await;
    assert_eq!(meta(&folder), before);
}
