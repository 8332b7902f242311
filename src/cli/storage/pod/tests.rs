//! How a pod's annotations are read. What the containers do is tried on the tool itself, in `tests/pod_containers.rs`.

use std::path::Path;

use super::node::{Node, Said};

const CONFIG: &str = "process.roles=broker,controller\ncontroller.listener.names=CONTROLLER\n\
                      listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093\nlog.dirs=/nowhere/data\n\
                      controller.quorum.bootstrap.servers=localhost:9093\n";

fn read(pod: &str, rule: &str, more: &str) -> Result<i32, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("server.properties");
    std::fs::write(&path, format!("{CONFIG}{more}")).unwrap();
    let said = Said {
        pod: pod.into(),
        properties: path.to_str().unwrap().into(),
        node_id: rule.into(),
        ..Said::default()
    };
    let node = Node::read(&said, Path::new("/nowhere")).map_err(|refusal| {
        assert!(!refusal.message.contains('\n'));
        format!("{}: {}", refusal.reason, refusal.message)
    })?;
    Ok(node.config.node_id)
}

#[test]
fn the_rule_gives_the_node_its_id() {
    assert_eq!(read("kafka-2", "ordinal", ""), Ok(2));
    assert_eq!(read("my-kafka-12", "ordinal+100", ""), Ok(112));
    assert_eq!(read("kafka-2", "ordinal", "node.id=2\n"), Ok(2));
    assert_eq!(read("kafka-2", "", "node.id=7\n"), Ok(7));
    assert_eq!(read("kafka-2", "properties", "node.id=7\n"), Ok(7));
}

#[test]
fn a_rule_that_gives_none_is_refused_with_the_rule() {
    let wrong = [
        ("kafka-2", "ordinal-1", "InvalidConfiguration"),
        ("kafka-2", "ordinal+", "InvalidConfiguration"),
        ("kafka-2", "ordinal+x", "InvalidConfiguration"),
        ("kafka-2", "2", "InvalidConfiguration"),
        ("kafka", "ordinal", "InvalidConfiguration"),
        ("kafka-7f9c", "ordinal", "InvalidConfiguration"),
    ];
    for (pod, rule, reason) in wrong {
        let error = read(pod, rule, "").unwrap_err();
        assert!(error.starts_with(reason) && error.contains(&format!("{rule:?}")), "{error}");
    }
    let error = read("kafka-2", "ordinal", "node.id=3\n").unwrap_err();
    assert!(
        error.starts_with("NodeIdMismatch") && error.contains("is 3") && error.contains("and 2"),
        "{error}"
    );
    let error = read("kafka-2", "", "").unwrap_err();
    assert!(error.contains("node.id is missing"), "{error}");
}
