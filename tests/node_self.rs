//! The testbed's node: that its pods are real, and that it leaves nothing behind, not even when the test is killed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod testbed;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Namespace, PersistentVolumeClaim, Pod, Service};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use rustix::process::{Pid, Signal, kill_process};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use testbed::{Node, node};

/// Held by the test whose node runs, so that none takes another's traces for its own.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
/// Set for the process that is to be killed.
const HOLD: &str = "TESTBED_HOLD";
const RESTRICTED: &str = "restricted";
const GRANT: &str = "example.org/grant";

fn object<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// A pod whose init container waits for an annotation and tells it in its termination message, and whose container
/// then writes what the annotation said and what DNS says into a volume.
fn pod(image: &str) -> Pod {
    let security = json!({
        "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": { "drop": ["ALL"] },
    });
    let waits = "until [ -s /pod/grant ]; do sleep 0.1; done; cat /pod/grant >/dev/termination-log";
    let writes = "until nslookup -type=a peers.restricted.svc.cluster.local >/data/names; do sleep 0.2; done; \
                  java -version 2>/data/java; \
                  dd if=/dev/zero of=/disk/zeros bs=64k count=32 2>/data/full; \
                  cat /pod/grant >/data/made && mv /data/made /data/grant && sleep 600";
    let container = |name: &str, script: &str| {
        json!({
            "name": name, "image": image, "imagePullPolicy": "Never", "command": ["sh", "-c", script],
            "securityContext": security,
            "volumeMounts": [
                { "name": "pod", "mountPath": "/pod" }, { "name": "data", "mountPath": "/data" },
                { "name": "disk", "mountPath": "/disk" },
            ],
        })
    };
    let grant =
        json!({ "path": "grant", "fieldRef": { "fieldPath": format!("metadata.annotations['{GRANT}']") } });
    object(json!({
        "metadata": { "name": "one", "labels": { "app": "peers" } },
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "securityContext": {
                "runAsNonRoot": true, "runAsUser": 1000, "fsGroup": 1000,
                "seccompProfile": { "type": "RuntimeDefault" },
            },
            "initContainers": [container("waits", waits)],
            "containers": [container("writes", writes)],
            "volumes": [
                { "name": "pod", "downwardAPI": { "items": [grant] } },
                { "name": "data", "persistentVolumeClaim": { "claimName": "data" } },
                { "name": "disk", "persistentVolumeClaim": { "claimName": "disk" } },
            ],
        },
    }))
}

async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "it took too long until {what}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Makes the namespace, the headless Service, two volumes and the pod, and returns the volumes' folders; the second
/// has one MiB.
async fn run_pod(node: &Node) -> [PathBuf; 2] {
    let client = node.client().await;
    let params = PostParams::default();
    let label = json!({ "pod-security.kubernetes.io/enforce": RESTRICTED });
    let namespace: Namespace = object(json!({ "metadata": { "name": RESTRICTED, "labels": label } }));
    Api::all(client.clone()).create(&params, &namespace).await.unwrap();
    let service: Service = object(json!({
        "metadata": { "name": "peers" },
        "spec": {
            "clusterIP": "None", "publishNotReadyAddresses": true, "selector": { "app": "peers" },
            "ports": [{ "port": 9092 }],
        },
    }));
    Api::namespaced(client.clone(), RESTRICTED).create(&params, &service).await.unwrap();
    let folder = node.pv("data", Some((RESTRICTED, "data"))).await;
    let disk = node.pv_of_size("disk", Some((RESTRICTED, "disk")), "1m").await;
    for name in ["data", "disk"] {
        let claim: PersistentVolumeClaim = object(json!({
            "metadata": { "name": name },
            "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": "local",
                "resources": { "requests": { "storage": "1Gi" } },
            },
        }));
        Api::namespaced(client.clone(), RESTRICTED).create(&params, &claim).await.unwrap();
    }
    let image = node.import_kafka("4.4.0");
    let pods = Api::<Pod>::namespaced(client, RESTRICTED);
    eventually("the namespace has its ServiceAccount", async || {
        pods.create(&params, &pod(&image)).await.ok()
    })
    .await;
    [folder, disk]
}

fn named_traces() -> Vec<String> {
    let mut found = Vec::new();
    let mut note = |path: PathBuf| {
        if path.exists() {
            found.push(path.display().to_string());
        }
    };
    note(Path::new("/run/netns").join(node::NETWORK_NAMESPACE));
    note(Path::new("/sys/class/net").join(node::LINK));
    note(Path::new("/sys/fs/cgroup").join(node::CGROUP));
    for hierarchy in std::fs::read_dir("/sys/fs/cgroup").unwrap() {
        note(hierarchy.unwrap().path().join(node::CGROUP));
    }
    found
}

/// What of a node is on this machine; the names that all nodes have don't count while they are another test's.
fn traces(folder: &Path) -> Vec<String> {
    let mut found = named_traces();
    let current = std::fs::read_to_string(node::CURRENT).unwrap_or_default();
    if !current.is_empty() && Path::new(current.trim()) != folder {
        found.clear();
    }
    found.extend(folder.exists().then(|| folder.display().to_string()));
    let text = folder.display().to_string();
    for process in std::fs::read_dir("/proc").unwrap() {
        let process = process.unwrap().path();
        let read = |file: &str| std::fs::read(process.join(file)).unwrap_or_default();
        for file in ["cmdline", "mountinfo"] {
            if String::from_utf8_lossy(&read(file)).contains(&text) {
                found.push(process.join(file).display().to_string());
            }
        }
    }
    found
}

#[tokio::test]
async fn pods_run_and_nothing_is_left_of_them() {
    let _alone = ALONE.lock().await;
    let kernel = |setting: &str| std::fs::read_to_string(Path::new("/proc/sys").join(setting)).unwrap();
    let settings = ["vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops", "net/ipv4/ip_forward"];
    let before = settings.map(kernel);
    let begun = Instant::now();
    let mut node = Node::start().await;
    println!("the node is ready after {:.1?}", begun.elapsed());

    let begun = Instant::now();
    let [folder, disk] = run_pod(&node).await;
    let pods = Api::<Pod>::namespaced(node.client().await, RESTRICTED);
    let status = async || pods.get("one").await.unwrap().status.unwrap();
    eventually("the init container runs", async || {
        let init = status().await.init_container_statuses?.pop()?;
        init.state?.running
    })
    .await;
    println!("its init container runs after {:.1?}", begun.elapsed());
    assert!(!folder.join("grant").exists());

    let begun = Instant::now();
    let patch = Patch::Merge(json!({ "metadata": { "annotations": { GRANT: "go ahead" } } }));
    pods.patch("one", &PatchParams::default(), &patch).await.unwrap();
    let message = eventually("the init container has ended", async || {
        let init = status().await.init_container_statuses?.pop()?;
        init.state?.terminated?.message
    })
    .await;
    assert_eq!(message, "go ahead");
    println!("it has seen its annotation and ended after {:.1?}", begun.elapsed());

    eventually("the volume is written", async || folder.join("grant").exists().then_some(())).await;
    assert_eq!(std::fs::read_to_string(folder.join("grant")).unwrap(), "go ahead");
    let address = status().await.pod_ip.unwrap();
    let names = std::fs::read_to_string(folder.join("names")).unwrap();
    assert!(names.contains(&address), "{address} is not in {names}");
    let java = std::fs::read_to_string(folder.join("java")).unwrap();
    assert!(java.contains("version \"17"), "{java}");
    let full = std::fs::read_to_string(folder.join("full")).unwrap();
    assert!(full.contains("No space left on device"), "{full}");
    assert_eq!(std::fs::metadata(disk.join("zeros")).unwrap().len(), 1 << 20);
    node.set_read_only("disk", true);
    let refused = std::fs::remove_file(disk.join("zeros")).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
    node.set_read_only("disk", false);
    std::fs::remove_file(disk.join("zeros")).unwrap();
    println!("the pod has done its work after {:.1?}", begun.elapsed());

    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("file"), "text").unwrap();
    node.build_image("localhost/file:1", root.path(), &["/file"], &[("NAME", "a \"value\"")], "1000");
    let images = node.ctr().args(["images", "list", "--quiet"]).output().unwrap();
    assert!(String::from_utf8(images.stdout).unwrap().contains("localhost/file:1"));
    assert!(node.audit().iter().any(|event| event["objectRef"]["resource"] == "pods"));
    let inside =
        node.kubectl_ok(&["-n", RESTRICTED, "exec", "one", "-c", "writes", "--", "cat", "/pod/grant"]);
    assert_eq!(inside, "go ahead");
    pods.delete("one", &DeleteParams::default()).await.unwrap();
    let begun = Instant::now();
    eventually("the pod is gone", async || pods.get_opt("one").await.unwrap().is_none().then_some(())).await;
    println!("the pod is gone after {:.1?}", begun.elapsed());

    node.daemon_named("kube-apiserver").kill();
    assert!(pods.get_opt("one").await.is_err());
    node.start_again("kube-apiserver").await;
    assert!(pods.get_opt("one").await.unwrap().is_none());

    let folder = node.folder().to_owned();
    assert!(!traces(&folder).is_empty());
    let begun = Instant::now();
    node.stop();
    println!("the node is gone after {:.1?}", begun.elapsed());
    assert_eq!(traces(&folder), Vec::<String>::new());
    assert_eq!(settings.map(kernel), before);
}

/// Starts this test binary anew, with a node on which a pod runs; returns it with the node's folder and its guard.
fn hold() -> (Child, PathBuf, Pid) {
    let configure = |command: &mut Command| {
        command.args(["--exact", "--nocapture", "nothing_outlives_a_killed_test"]).env(HOLD, "1");
        command.stdout(Stdio::piped());
    };
    let mut test = testbed::process::spawn(std::env::current_exe().unwrap(), configure).unwrap();
    let mut lines = BufReader::new(test.stdout.take().unwrap()).lines().map_while(Result::ok);
    let line = lines.find_map(|line| line.strip_prefix("node ").map(str::to_owned)).unwrap();
    let (folder, guard) = line.split_once(" guard ").unwrap();
    (test, PathBuf::from(folder), Pid::from_raw(guard.parse().unwrap()).unwrap())
}

async fn be_held() {
    let node = Node::start().await;
    run_pod(&node).await;
    let pods = Api::<Pod>::namespaced(node.client().await, RESTRICTED);
    eventually("the init container runs", async || {
        pods.get("one").await.unwrap().status?.init_container_statuses?.pop()?.state?.running
    })
    .await;
    println!("\nnode {} guard {}", node.folder().display(), node.guard());
    std::thread::sleep(Duration::from_secs(600));
}

/// A test that is killed while a pod runs leaves nothing either, though the pod is no child of its. If its guard is
/// killed as well, the next node removes what is left.
#[tokio::test]
async fn nothing_outlives_a_killed_test() {
    if std::env::var_os(HOLD).is_some() {
        return be_held().await;
    }
    let _alone = ALONE.lock().await;
    let (mut test, folder, _) = hold();
    assert!(!traces(&folder).is_empty());
    test.kill().unwrap();
    test.wait().unwrap();
    let begun = Instant::now();
    while !traces(&folder).is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(30), "still there: {:?}", traces(&folder));
        std::thread::sleep(Duration::from_millis(100));
    }
    println!("nothing is left {:.1?} after the kill", begun.elapsed());

    let (mut test, folder, guard) = hold();
    kill_process(guard, Signal::KILL).unwrap();
    test.kill().unwrap();
    test.wait().unwrap();
    assert!(!traces(&folder).is_empty());
    let node = Node::start().await;
    let next = node.folder().to_owned();
    node.stop();
    assert_eq!([traces(&folder), traces(&next)].concat(), Vec::<String>::new());
}
