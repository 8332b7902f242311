//! The files and the documented overlays that the forms of injection are installed from.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod testbed;

use std::path::{Path, PathBuf};
use std::process::Command;

use k8s_openapi::api::core::v1::Pod;
use kafka_features_operator::injection::{Settings, inject};

const OPERATOR: &str = env!("CARGO_BIN_EXE_kafka-features-operator");

fn project() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn file(path: &str) -> String {
    std::fs::read_to_string(project().join(path)).unwrap()
}

fn print(arguments: &[&str]) -> String {
    let output = Command::new(OPERATOR).args(arguments).current_dir(project()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// An image that no file has; its registry has a port.
const IMAGE: &str = "registry.example:5000/kafka-features-operator:0.1.0";

#[test]
fn the_files_are_what_the_commands_print() {
    let by_hand = [
        "inject",
        "--image",
        "registry.example/kafka-features-operator:0.1.0",
        "-f",
        "deploy/samples/pod.yaml",
    ];
    for (arguments, path) in [
        (&["policy", "--image", "kafka-features-operator:dev"][..], "deploy/policy/policy.yaml"),
        (&["webhook-configuration"], "deploy/webhook/configuration.yaml"),
        (&by_hand, "deploy/samples/pod-with-containers.yaml"),
    ] {
        assert_eq!(print(arguments), file(path), "{path}: run `make generated`");
    }
}

#[test]
fn a_manifest_goes_through_the_command() {
    let sample = "deploy/samples/pod.yaml";
    let arguments = ["inject", "--image", IMAGE, "--image-pull-policy", "Never", "-f"];
    let pod: Pod = serde_saphyr::from_str(&print(&[&arguments[..], &[sample]].concat())).unwrap();
    let settings = Settings { image: IMAGE.into(), pull_policy: "Never".into() };
    assert_eq!(pod, inject(&serde_saphyr::from_str(&file(sample)).unwrap(), &settings).unwrap());
    let output = Command::new(OPERATOR).args(arguments).arg(project().join("no")).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.lines().count() == 1 && said.contains("No such file"), "{said}");
}

/// The documented overlays name the image once, and Deployment and init containers both have it.
#[test]
fn the_documented_overlays_set_both_images() {
    let text = file("docs/injection.md");
    let overlays: Vec<&str> = text
        .split("```yaml\n")
        .skip(1)
        .map(|block| block.split("```").next().unwrap())
        .filter(|block| block.starts_with("# kustomization.yaml"))
        .collect();
    assert_eq!(overlays.len(), 2);
    let folder = tempfile::tempdir().unwrap();
    for part in ["crds", "deploy"] {
        copy(&project().join(part), &folder.path().join(part));
    }
    let mine = folder.path().join("mine");
    std::fs::create_dir(&mine).unwrap();
    let of_inits = [format!("'''{IMAGE}'''"), format!("--webhook-image={IMAGE}")];
    for (overlay, of_inits) in overlays.iter().zip(of_inits) {
        std::fs::write(mine.join("kustomization.yaml"), overlay).unwrap();
        let mut kubectl = Command::new(testbed::parts::kubernetes().join("kubectl"));
        let output = kubectl.arg("kustomize").arg(&mine).output().unwrap();
        let rendered = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(rendered.matches(&format!("image: {IMAGE}\n")).count(), 1, "{overlay}");
        assert_eq!(rendered.matches(&of_inits).count(), 1, "{overlay}");
        assert!(!rendered.contains("kafka-features-operator:dev"), "{overlay}");
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &to);
        } else {
            std::fs::copy(&path, &to).unwrap();
        }
    }
}
