//! Pods formatted for real: a kubelet runs them, the API server adds the init containers, and the operator, itself a pod,
//! grants what may be formatted.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "pods/stage.rs"]
mod stage;
mod testbed;
#[path = "pods/workload.rs"]
mod workload;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use stage::{Form, Stage, Status, meta, wipe};
use workload::{Workload, resource};

fn all_formatted(pods: usize) -> impl Fn(&Status) -> bool {
    move |status| {
        let all = status.pods();
        all.len() == pods && all.iter().all(|(_, state, _)| state == "Formatted")
    }
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().next().is_none()
}

/// The directory's id in a `meta.properties`.
fn directory_id(text: &str) -> String {
    text.lines().find_map(|line| line.strip_prefix("directory.id=")).unwrap().to_owned()
}

/// Controllers that a dynamic quorum begins with, and brokers, as StatefulSets; the resource is there first. Then what
/// happens to such a cluster over the years.
#[tokio::test(flavor = "multi_thread")]
async fn a_dynamic_quorum_is_formatted_and_lives_on() {
    let stage = Stage::set(&["4.4.0"]).await;
    let namespace = "dynamic";
    stage.namespace(namespace);
    let mut controllers = Workload::new(namespace, "ctl", "controller", 0, "");
    controllers.quorum = controllers.bootstrap_servers(3);
    let brokers = Workload::new(namespace, "brk", "broker", 100, &controllers.quorum);
    controllers.annotations.push(("kafkafeatures.dev/scram-secret".into(), "users".into()));
    let spec = json!({
        "releaseVersion": "4.3",
        "allowOneWay": ["kraft.version"],
        "format": { "quorum": "InitialControllers", "initialControllers": controllers.initial_controllers(3) },
    });
    let declared = resource(namespace, &[brokers.address(0)], &spec);
    let users = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "users", "namespace": namespace },
        "stringData": {
            "alice": "SCRAM-SHA-256=[name=alice,password=alice-secret]\nSCRAM-SHA-512=[name=alice,password=alice-secret]",
            "bob": "SCRAM-SHA-512=[name=bob,password=bob-secret]",
        },
    });
    stage.apply(&[declared.clone(), users]);
    let folders = controllers.volumes(&stage, 0..4).await;
    let broker_folders = brokers.volumes(&stage, 0..5).await;
    let begun = Instant::now();
    stage.apply(&[controllers.objects(&stage), brokers.objects(&stage)].concat());
    let formatted = stage.until_status(namespace, "all pods are formatted", all_formatted(6)).await;
    println!("formatted {:.1?} after the workload was applied", begun.elapsed());
    let parts: Vec<String> = formatted.pods().into_iter().map(|(_, _, part)| part).collect();
    assert_eq!(parts, ["Broker", "Broker", "Broker", "Voter", "Voter", "Voter"]);

    // right after the first format the operator goes, and a volume is lost: that controller never votes again by itself
    stage.operator(0).await;
    stage.scale(namespace, "ctl", 2).await;
    let lost = meta(&folders[2]).0;
    wipe(&folders[2]);
    stage.scale(namespace, "ctl", 3).await;
    stage.until_waiting(namespace, "ctl-2").await;
    stage.until_ready(namespace, &["ctl-0", "ctl-1", "brk-0", "brk-1", "brk-2"]).await;
    assert!(is_empty(&folders[2]), "nothing was written");
    stage.operator(2).await;
    assert_eq!(stage.until_pod(namespace, "ctl-2", "Formatted").await["part"], "Observer");
    let status = stage.until_status(namespace, "the cluster is as declared", Status::reached).await;
    assert_eq!(status.0["bootstrapped"], true);
    assert_eq!(status.0["history"], serde_json::Value::Null, "nothing had to be moved");
    stage.until_ready(namespace, &["brk-0", "brk-1", "brk-2", "ctl-0", "ctl-1", "ctl-2"]).await;
    assert_eq!(stage.finalized(namespace, "brk-0", "metadata.version").as_deref(), Some("4.3-IV0"));
    assert_eq!(stage.finalized(namespace, "brk-0", "kraft.version").as_deref(), Some("1"));
    assert_eq!(stage.finalized(namespace, "brk-0", "share.version").as_deref(), Some("1"));
    let args = ["--bootstrap-server", "localhost:9092", "--describe", "--entity-type", "users"];
    let users = stage.tool(namespace, "brk-0", "org.apache.kafka.tools.ConfigCommand", &args);
    let users = if users.contains("alice") {
        users
    } else {
        stage.tool(namespace, "brk-0", "kafka.admin.ConfigCommand", &args)
    };
    for user in ["alice", "bob", "SCRAM-SHA-256", "SCRAM-SHA-512"] {
        assert!(users.contains(user), "{user}: {users}");
    }

    // status says what is to be done so that it votes again, and so it does
    let (old, new) = (directory_id(&lost), directory_id(&meta(&folders[2]).0));
    assert_ne!(old, new);
    let told = stage.until_pod_told(namespace, "ctl-2", "remove-controller").await;
    assert!(told.contains(&old) && told.contains(&new) && told.contains("add-controller"), "{told}");
    let quorum_tool = "org.apache.kafka.tools.MetadataQuorumCommand";
    let server = ["--bootstrap-server", "brk-0.brk:9092"];
    let remove = ["remove-controller", "--controller-id", "2", "--controller-directory-id", &old];
    let said = stage.tool(namespace, "brk-0", quorum_tool, &[&server[..], &remove].concat());
    assert!(said.contains("Removed"), "{said}");
    // the tool reads id and directory of the node that it runs on; the id is not in the file here
    let file = "cp /config/server.properties /tmp/own.properties && echo node.id=2 >> /tmp/own.properties";
    let exec = ["-n", namespace, "exec", "ctl-2", "-c", "kafka", "--", "sh", "-c", file];
    stage.node.kubectl_ok(&exec);
    let add = ["--command-config", "/tmp/own.properties", "add-controller"];
    let said = stage.tool(namespace, "ctl-2", quorum_tool, &[&server[..], &add].concat());
    assert!(said.contains("Added"), "{said}");
    let place = |id: i32| -> Vec<(String, String)> {
        let members = stage.quorum(namespace, "brk-0");
        members.into_iter().filter(|member| member.0 == id).map(|member| (member.1, member.2)).collect()
    };
    let votes = |places: &Vec<(String, String)>| {
        places.len() == 1 && places[0].0 == new && ["Follower", "Leader"].contains(&places[0].1.as_str())
    };
    stage.until(namespace, "controller 2 votes again", || Some(place(2)).filter(votes)).await;
    stage
        .until_status(namespace, "nothing more is told of it", |status| {
            status.pod("ctl-2")["message"].is_null()
        })
        .await;

    // a pass that finds nothing to do writes nothing
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = stage.requests();
    for touch in 0..5 {
        let touched = format!("kafkafeatures.dev/touched={touch}");
        stage.node.kubectl_ok(&["-n", namespace, "annotate", "--overwrite", "pod", "brk-1", &touched]);
        tokio::time::sleep(Duration::from_millis(1500)).await;
    }
    let after = stage.requests();
    assert!(after.0 >= before.0 + 5, "{before:?} {after:?}");
    assert_eq!(after.1, before.1, "writes at rest");

    // restarts need nobody: the operator is up or down, and for some of them the resource is gone
    let (broker, controller) = (meta(&broker_folders[0]), meta(&folders[1]));
    let others = (meta(&broker_folders[1]), meta(&broker_folders[2]));
    stage.replace_pod(namespace, "brk-1").await;
    stage.until_ready(namespace, &["brk-1"]).await;
    stage.operator(0).await;
    stage.replace_pod(namespace, "brk-0").await;
    stage.node.kubectl_ok(&["-n", namespace, "delete", "kafkafeatures", "kafka"]);
    stage.replace_pod(namespace, "ctl-1").await;
    stage.until_ready(namespace, &["brk-0", "ctl-1"]).await;
    assert_eq!((meta(&broker_folders[0]), meta(&folders[1])), (broker, controller), "untouched");
    // one that has to be formatted waits; a pod without the label starts as ever
    stage.scale(namespace, "brk", 4).await;
    stage.until_waiting(namespace, "brk-3").await;
    let plain = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "plain", "namespace": "default" },
        "spec": { "containers": [{
            "name": "c", "image": "localhost/kafka:4.4.0", "imagePullPolicy": "Never", "command": ["sleep", "600"],
        }], "terminationGracePeriodSeconds": 1 },
    });
    stage.apply(&[plain]);
    stage.until_ready("default", &["plain"]).await;
    stage.operator(2).await;
    stage.replace_pod(namespace, "brk-2").await;
    stage.until_ready(namespace, &["brk-2"]).await;
    assert_eq!((meta(&broker_folders[1]), meta(&broker_folders[2])), others, "untouched");
    assert!(is_empty(&broker_folders[3]), "nothing was written");

    // the resource is made again: the same cluster
    stage.apply(&[declared]);
    let again = stage.until_status(namespace, "the cluster is as declared again", Status::reached).await;
    assert_eq!(again.0["clusterId"], status.0["clusterId"]);
    stage.until_ready(namespace, &["brk-3"]).await;
    stage.scale(namespace, "brk", 5).await;
    stage.until_ready(namespace, &["brk-4"]).await;

    // a fourth controller joins without a vote
    stage.scale(namespace, "ctl", 4).await;
    stage.until_ready(namespace, &["ctl-3"]).await;
    assert_eq!(stage.until_pod(namespace, "ctl-3", "Formatted").await["part"], "Observer");
    assert_eq!(place(3).iter().map(|place| place.1.as_str()).collect::<Vec<_>>(), ["Observer"]);

    // a controller's volume is lost: it comes back as another replica, without a vote
    let before = place(2);
    assert!(["Follower", "Leader"].contains(&before[0].1.as_str()), "{before:?}");
    stage.scale(namespace, "ctl", 2).await;
    wipe(&folders[2]);
    stage.scale(namespace, "ctl", 4).await;
    let pod = stage.until_pod(namespace, "ctl-2", "Formatted").await;
    assert_eq!(pod["part"], "Observer");
    stage.until_ready(namespace, &["ctl-2", "ctl-3"]).await;
    let after = stage
        .until(namespace, "controller 2 observes", || {
            Some(place(2)).filter(|places| places.iter().any(|place| place.1 == "Observer"))
        })
        .await;
    assert!(
        after.iter().any(|place| place.0 != before[0].0 && place.1 == "Observer"),
        "{before:?} {after:?}"
    );
    stage.until_pod_told(namespace, "ctl-2", "remove-controller").await;

    // then another one's is: of the directories that vote only one is left, whatever came back
    stage.scale(namespace, "ctl", 1).await;
    wipe(&folders[1]);
    stage.scale(namespace, "ctl", 4).await;
    let stalled = stage
        .until_status(namespace, "it is stalled", |status| status.is("FormatFailed", "VotersLost"))
        .await;
    let message = stalled.condition("Stalled")["message"].as_str().unwrap();
    assert!(message.contains("2 of the 3 voters") && message.contains("(1, 2)"), "{message}");
    assert!(is_empty(&folders[1]), "nothing was written");
}

/// A static quorum; the workload is there first. Its voters come back only where they can do no harm.
#[tokio::test(flavor = "multi_thread")]
async fn a_static_quorum_is_formatted_and_its_lost_voters_wait() {
    let stage = Stage::set(&["4.4.0"]).await;
    let namespace = "static";
    stage.namespace(namespace);
    let mut nodes = Workload::new(namespace, "mix", "broker,controller", 0, "");
    nodes.quorum = nodes.static_voters(3);
    let folders = nodes.volumes(&stage, 0..3).await;
    let begun = Instant::now();
    stage.apply(&nodes.objects(&stage));
    for pod in ["mix-0", "mix-1", "mix-2"] {
        stage.until_waiting(namespace, pod).await;
    }
    let servers: Vec<String> = (0..3).map(|ordinal| nodes.address(ordinal)).collect();
    let declared = |spec: serde_json::Value| resource(namespace, &servers, &spec);
    let format = json!({ "quorum": "Static" });
    stage.apply(&[declared(json!({ "releaseVersion": "4.3", "format": format }))]);
    stage.until_status(namespace, "all pods are formatted", all_formatted(3)).await;
    println!("formatted {:.1?} after the workload was applied", begun.elapsed());

    // right after the first format the operator goes, and a volume is lost: nobody votes twice
    stage.operator(0).await;
    stage.scale(namespace, "mix", 2).await;
    wipe(&folders[2]);
    stage.scale(namespace, "mix", 3).await;
    stage.until_waiting(namespace, "mix-2").await;
    stage.until_ready(namespace, &["mix-0", "mix-1"]).await;
    assert!(is_empty(&folders[2]), "nothing was written");
    stage.operator(2).await;
    let pod = stage.until_pod(namespace, "mix-2", "Formatted").await;
    assert_eq!(pod["part"], "ReturningVoter", "the others were seen to be a healthy majority");
    stage.until_ready(namespace, &["mix-2"]).await;
    let status = stage.until_status(namespace, "the cluster is as declared", Status::reached).await;
    assert_eq!(stage.finalized(namespace, "mix-0", "metadata.version").as_deref(), Some("4.3-IV0"));

    // one is lost while another is down: it waits, though the operator sees all that there is to see
    stage.scale(namespace, "mix", 1).await;
    wipe(&folders[1]);
    stage.scale(namespace, "mix", 2).await;
    stage.until_pod_told(namespace, "mix-1", "healthy majority").await;
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert_eq!(stage.status(namespace).pod("mix-1")["state"], "Waiting");
    assert!(is_empty(&folders[1]), "nothing was written");
    stage.scale(namespace, "mix", 3).await;
    assert_eq!(stage.until_pod(namespace, "mix-1", "Formatted").await["part"], "ReturningVoter");
    stage.until_ready(namespace, &["mix-0", "mix-1", "mix-2"]).await;

    // most of the voters are lost: nothing is formatted, and a person is asked
    stage.scale(namespace, "mix", 0).await;
    let kept = meta(&folders[0]);
    wipe(&folders[1]);
    wipe(&folders[2]);
    stage.scale(namespace, "mix", 3).await;
    let stalled = stage
        .until_status(namespace, "it is stalled", |status| status.is("FormatFailed", "VotersLost"))
        .await;
    let message = stalled.condition("Stalled")["message"].as_str().unwrap();
    for word in ["2 of the 3", "backup", "kafka-kafka-identity"] {
        assert!(message.contains(word), "{message}");
    }
    assert_eq!(stalled.condition("Stalled")["status"], "True");
    assert_eq!(stalled.0["clusterId"], status.0["clusterId"]);
    for folder in &folders[1..] {
        assert!(is_empty(folder), "nothing was written");
    }
    assert_eq!(meta(&folders[0]), kept);
}

/// A quorum that began static and has become dynamic, with the voters still in its files. The webhook adds the containers.
#[tokio::test(flavor = "multi_thread")]
async fn after_kraft_version_has_moved_a_lost_controller_observes() {
    let stage = Stage::set_with(&["4.4.0"], Form::Webhook).await;
    let namespace = "moved";
    stage.namespace(namespace);
    let mut controllers = Workload::new(namespace, "ctl", "controller", 0, "");
    controllers.quorum = controllers.static_voters(3);
    let brokers = Workload::new(namespace, "brk", "broker", 100, &controllers.quorum);
    let folders = controllers.volumes(&stage, 0..3).await;
    brokers.volumes(&stage, 0..3).await;
    let servers: Vec<String> = (0..3).map(|ordinal| brokers.address(ordinal)).collect();
    let spec = json!({ "features": { "kraft.version": 1 }, "format": { "quorum": "Static" } });
    stage.apply(&[resource(namespace, &servers, &spec)]);
    stage.apply(&[controllers.objects(&stage), brokers.objects(&stage)].concat());
    stage
        .until_status(namespace, "kraft.version has moved", |status| {
            status.reached() && !status.0["history"].is_null()
        })
        .await;
    stage.until_ready(namespace, &["ctl-0", "ctl-1", "ctl-2", "brk-0", "brk-1", "brk-2"]).await;
    assert_eq!(stage.finalized(namespace, "brk-0", "kraft.version").as_deref(), Some("1"));
    stage.scale(namespace, "ctl", 2).await;
    let lost = directory_id(&meta(&folders[2]).0);
    wipe(&folders[2]);
    stage.scale(namespace, "ctl", 3).await;
    assert_eq!(stage.until_pod(namespace, "ctl-2", "Formatted").await["part"], "Observer");
    stage.until_ready(namespace, &["ctl-2"]).await;
    let own = directory_id(&meta(&folders[2]).0);
    assert_ne!(own, lost);
    stage
        .until(namespace, "controller 2 observes", || {
            let members = stage.quorum(namespace, "brk-0");
            let now = members.into_iter().find(|member| member.0 == 2 && member.1 == own)?;
            (now.2 == "Observer").then_some(())
        })
        .await;
    // each replica serves, and has taken up certificate after certificate in mid-run
    let name = "kafka-features-operator";
    let selector = format!("app.kubernetes.io/name={name}");
    let log = stage.node.kubectl_ok(&["-n", name, "logs", "-l", &selector, "--prefix", "--tail=-1"]);
    let mut taken_up = BTreeMap::<&str, usize>::new();
    for line in log.lines().filter(|line| line.contains("the webhook's certificate was taken up")) {
        *taken_up.entry(line.split(']').next().unwrap()).or_default() += 1;
    }
    assert!(taken_up.len() == 2 && taken_up.values().all(|count| *count > 3), "{taken_up:?}");
}
