//! What a real API server makes of the resource's definition: it takes it as it is, refuses what is out of form with a
//! message that names the value, and calls nothing current that nobody has looked at.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod kstatus;
mod testbed;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kafka_features_operator::api::{self, KafkaFeatures};
use kstatus::{Kstatus, kstatus};
use kube::api::{Api, DeleteParams, DynamicObject, PostParams};
use kube::core::ApiResource;
use kube::runtime::wait::{await_condition, conditions};
use serde_json::{Value, json};
use testbed::ApiServer;

const FILE: &str = include_str!("../crds/kafkafeatures.dev_kafkafeatures.yaml");

#[test]
fn the_file_is_what_the_command_prints() {
    assert_eq!(
        FILE,
        api::definition_yaml().unwrap(),
        "run `kafka-features-operator crd` and keep what it prints"
    );
}

#[test]
fn optional_enums_and_numbers_have_plain_schemas() {
    for odd in ["anyOf", "oneOf", "uint", "nullable", "uniqueItems"] {
        assert!(!FILE.contains(odd), "{odd}");
    }
}

#[test]
fn every_field_says_what_it_is() {
    fn look(path: &str, schema: &Value, bare: &mut Vec<String>) {
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}.{name}");
            if field["description"].as_str().is_none_or(str::is_empty) {
                bare.push(path.clone());
            }
            look(&path, field, bare);
            look(&path, &field["items"], bare);
        }
    }
    let definition = serde_json::to_value(api::definition()).unwrap();
    let mut bare = Vec::new();
    look("", &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"], &mut bare);
    assert_eq!(bare, Vec::<String>::new());
}

/// A server with the definition installed from the file, as `kubectl` would.
async fn server() -> (ApiServer, kube::Client) {
    let server = ApiServer::start().await;
    let client = server.client().await;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let definition: CustomResourceDefinition = serde_saphyr::from_str(FILE).unwrap();
    definitions.create(&PostParams::default(), &definition).await.unwrap();
    let name = "kafkafeatures.kafkafeatures.dev";
    await_condition(definitions, name, conditions::is_crd_established()).await.unwrap();
    (server, client)
}

/// The resource as untyped JSON, so that what is wrong can be written at all.
fn resource(client: &kube::Client) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), "default", &ApiResource::erase::<KafkaFeatures>(&()))
}

fn object(name: &str, spec: Value) -> DynamicObject {
    serde_json::from_value(json!({
        "apiVersion": "kafkafeatures.dev/v1alpha1",
        "kind": "KafkaFeatures",
        "metadata": { "name": name },
        "spec": spec,
    }))
    .unwrap()
}

#[tokio::test]
async fn the_definition_comes_back_as_it_was_given() {
    let (_server, client) = server().await;
    let definitions: Api<DynamicObject> =
        Api::all_with(client, &ApiResource::erase::<CustomResourceDefinition>(&()));
    let stored = definitions.get("kafkafeatures.kafkafeatures.dev").await.unwrap();
    let given: Value = serde_saphyr::from_str(FILE).unwrap();
    // what is compared is all that can be written by hand: metadata and status are the server's
    assert_eq!(stored.data["spec"], given["spec"]);
    let conditions = stored.data["status"]["conditions"].as_array().unwrap();
    let complaints: Vec<&Value> = conditions.iter().filter(|c| c["type"] == "NonStructuralSchema").collect();
    assert_eq!(complaints, Vec::<&Value>::new());
}

#[tokio::test]
async fn what_is_out_of_form_is_refused_with_the_value_and_the_way_out() {
    let (_server, client) = server().await;
    let resources = resource(&client);
    let cluster = json!({ "bootstrapServers": ["kafka:9092"] });
    let format = |format: Value| json!({ "cluster": cluster, "format": format });
    let controller = |id: i32| json!({ "nodeId": id, "host": "c-0.c", "port": 9093 });
    let many: Vec<String> = (0..65).map(|n| format!("kafka-{n}:9092")).collect();
    let wrong = [
        (json!({}), vec!["spec.cluster", "Required value"]),
        (json!({ "cluster": {} }), vec!["give an address at least"]),
        (json!({ "cluster": { "bootstrapServers": [] } }), vec!["give an address at least"]),
        (json!({ "cluster": { "bootstrapServers": ["kafka"] } }), vec!["\"kafka\" is no address"]),
        (
            json!({ "cluster": { "bootstrapControllers": ["http://k:1"] } }),
            vec!["\"http://k:1\" is no address", "host:port"],
        ),
        (json!({ "cluster": { "bootstrapServers": ["k:1", "k:1"] } }), vec!["Duplicate value", "k:1"]),
        (json!({ "cluster": { "bootstrapServers": many } }), vec!["bootstrapServers", "Too many", "64"]),
        (
            json!({ "cluster": cluster, "releaseVersion": "4.4", "features": { "group.version": 1 } }),
            vec!["releaseVersion \"4.4\" owns every feature", "one of the two"],
        ),
        (json!({ "cluster": cluster, "releaseVersion": 4.10 }), vec!["spec.releaseVersion", "string"]),
        (json!({ "cluster": cluster, "releaseVersion": 4 }), vec!["spec.releaseVersion", "string"]),
        (
            json!({ "cluster": cluster, "releaseVersion": "latest" }),
            vec!["\"latest\" is no release", "\"4.4\""],
        ),
        (json!({ "cluster": cluster, "releaseVersion": "4.4-iv2" }), vec!["\"4.4-iv2\" is no release"]),
        (json!({ "cluster": cluster, "releaseVersion": "" }), vec!["is no release"]),
        (
            json!({ "cluster": cluster, "features": { "group version": 1 } }),
            vec!["group version is no feature"],
        ),
        (
            json!({ "cluster": cluster, "features": { "group.version": "1" } }),
            vec!["group.version: only metadata.version has levels by name"],
        ),
        (
            json!({ "cluster": cluster, "features": { "metadata.version": "latest" } }),
            vec!["metadata.version \"latest\" is no metadata version"],
        ),
        (
            json!({ "cluster": cluster, "features": { "group.version": -1, "share.version": 1 } }),
            vec!["group.version: a level is at least 0"],
        ),
        (
            json!({ "cluster": cluster, "features": { "metadata.version": 6 } }),
            vec!["metadata.version 6: the lowest level is 7"],
        ),
        (json!({ "cluster": cluster, "features": { "group.version": 1.5 } }), vec!["features.group.version"]),
        (
            json!({
                "cluster": cluster,
                "features": { "eligible.leader.replicas.version": 1, "metadata.version": 22 },
            }),
            vec!["eligible.leader.replicas.version 1 needs metadata.version 23 (4.0-IV1)", "22 is declared"],
        ),
        (json!({ "cluster": cluster, "downgrade": "Unsafe" }), vec!["spec.downgrade", "Never", "Safe"]),
        (json!({ "cluster": cluster, "allowOneWay": ["a b"] }), vec!["\"a b\" is no feature"]),
        (
            json!({ "cluster": cluster, "allowOneWay": ["kraft.version", "kraft.version"] }),
            vec!["Duplicate value", "kraft.version"],
        ),
        (json!({ "cluster": cluster, "clusterId": "" }), vec!["spec.clusterId", "at least 1"]),
        (json!({ "cluster": cluster, "mode": "Dry" }), vec!["spec.mode", "Apply", "Plan"]),
        (json!({ "cluster": cluster, "paused": "yes" }), vec!["spec.paused", "boolean"]),
        (json!({ "cluster": cluster, "soak": 30 }), vec!["spec.soak", "string"]),
        (json!({ "cluster": cluster, "soak": "soon" }), vec!["\"soon\" is no length of time", "1h30m"]),
        (json!({ "cluster": cluster, "soak": "-5s" }), vec!["\"-5s\" is no length of time"]),
        (json!({ "cluster": cluster, "soak": "30" }), vec!["\"30\" is no length of time"]),
        (json!({ "cluster": cluster, "format": {} }), vec!["spec.format.quorum", "Required value"]),
        (format(json!({ "quorum": "Dynamic" })), vec!["spec.format.quorum", "Standalone"]),
        (
            format(json!({ "quorum": "Static", "initialControllers": [controller(1)] })),
            vec!["quorum Static", "controller.quorum.voters", "leave initialControllers out"],
        ),
        (format(json!({ "quorum": "Standalone" })), vec!["quorum Standalone", "exactly one"]),
        (
            format(json!({ "quorum": "Standalone", "initialControllers": [controller(1), controller(2)] })),
            vec!["quorum Standalone", "exactly one"],
        ),
        (
            format(json!({ "quorum": "InitialControllers", "initialControllers": [] })),
            vec!["quorum InitialControllers", "give initialControllers"],
        ),
        (
            format(json!({
                "quorum": "InitialControllers",
                "initialControllers": [controller(1), controller(1)],
            })),
            vec!["Duplicate value", "nodeId"],
        ),
        (
            format(json!({
                "quorum": "Standalone",
                "initialControllers": [{ "nodeId": -1, "host": "a b", "port": 0 }],
            })),
            vec!["nodeId", "port", "\"a b\" is no host"],
        ),
        (
            format(json!({ "quorum": "Static", "kafkaVersion": "latest" })),
            vec!["\"latest\" is no version of Kafka"],
        ),
        (format(json!({ "quorum": "Static", "kafkaVersion": 4.4 })), vec!["kafkaVersion", "string"]),
        (
            format(json!({ "quorum": "Static", "clusterIdEnv": "CLUSTER-ID" })),
            vec!["\"CLUSTER-ID\" is no name of a variable"],
        ),
    ];
    for (spec, expected) in wrong {
        let error =
            resources.create(&PostParams::default(), &object("wrong", spec.clone())).await.unwrap_err();
        let kube::Error::Api(status) = error else { panic!("{spec}: {error}") };
        for part in expected {
            assert!(status.message.contains(part), "{spec}\n{part:?} is not in: {}", status.message);
        }
    }
}

#[tokio::test]
async fn what_the_catalog_does_not_know_is_taken_and_nothing_fresh_is_current() {
    let (_server, client) = server().await;
    let resources = resource(&client);
    let cluster = json!({ "bootstrapServers": ["kafka-0.kafka:9092", "[fd00::1]:9092"] });
    let right = [
        json!({ "cluster": cluster }),
        json!({ "cluster": cluster, "releaseVersion": "99.9" }),
        json!({ "cluster": cluster, "clusterId": "my-kafka", "mode": "Plan", "paused": true, "soak": "1h30m" }),
        json!({ "cluster": cluster, "soak": "999999h" }),
        json!({ "cluster": cluster, "releaseVersion": "4.3-IV0", "features": {} }),
        json!({ "cluster": cluster, "releaseVersion": "4.10", "allowOneWay": ["kraft.version"] }),
        json!({ "cluster": cluster, "features": { "metadata.version": "4.3-IV0", "group.version": 1 } }),
        json!({ "cluster": cluster, "features": { "future.version": 99, "metadata.version": 1000 } }),
        json!({
            "cluster": { "bootstrapControllers": ["c:9093"] },
            "features": { "eligible.leader.replicas.version": 1 },
            "downgrade": "Safe",
        }),
        json!({
            "cluster": cluster,
            "format": {
                "quorum": "InitialControllers",
                "initialControllers": [
                    { "nodeId": 0, "host": "c-0.c.ns.svc", "port": 9093 },
                    { "nodeId": 1, "host": "fd00::1", "port": 9093 },
                ],
                "kafkaVersion": "4.4.0",
                "clusterIdEnv": "CLUSTER_ID",
            },
        }),
        json!({ "cluster": cluster, "format": { "quorum": "Static", "kafkaVersion": "4.3" } }),
    ];
    for spec in right {
        let created = resources.create(&PostParams::default(), &object("right", spec.clone())).await;
        let created = created.unwrap_or_else(|error| panic!("{spec}: {error}"));
        let status = &created.data["status"];
        assert_eq!(status["observedGeneration"], -1, "{spec}");
        let condition = |kind: &str| {
            let all = status["conditions"].as_array().unwrap();
            all.iter().find(|c| c["type"] == kind).unwrap()["status"].clone()
        };
        assert_eq!((condition("Ready"), condition("Reconciling")), (json!("Unknown"), json!("True")));
        assert_eq!(kstatus(&serde_json::to_value(&created).unwrap()), Kstatus::InProgress);
        // and it is one that the operator can read
        let typed: KafkaFeatures = serde_json::from_value(serde_json::to_value(&created).unwrap()).unwrap();
        typed.spec.declared().unwrap_or_else(|error| panic!("{spec}: {error}"));
        resources.delete("right", &DeleteParams::default()).await.unwrap();
    }
}

#[tokio::test]
async fn a_pinned_cluster_stays_pinned() {
    let (_server, client) = server().await;
    let resources = resource(&client);
    let with = |pin: Option<&str>| {
        let mut spec = json!({ "cluster": { "bootstrapServers": ["kafka:9092"] } });
        if let Some(pin) = pin {
            spec["clusterId"] = json!(pin);
        }
        spec
    };
    resources.create(&PostParams::default(), &object("kafka", with(None))).await.unwrap();
    let replace = async |pin: Option<&str>| {
        let mut object = object("kafka", with(pin));
        object.metadata.resource_version = resources.get("kafka").await.unwrap().metadata.resource_version;
        resources.replace("kafka", &PostParams::default(), &object).await
    };
    replace(Some("cluster-a")).await.unwrap();
    for pin in [Some("cluster-b"), None] {
        let error = replace(pin).await.unwrap_err();
        let kube::Error::Api(status) = error else { panic!("{pin:?}: {error}") };
        let expected = "clusterId \"cluster-a\" can be neither changed nor removed";
        assert!(status.message.contains(expected), "{pin:?}: {}", status.message);
    }
    replace(Some("cluster-a")).await.unwrap();
}

#[tokio::test]
async fn how_a_cluster_began_stays_once_it_has_begun() {
    let (_server, client) = server().await;
    let resources = resource(&client);
    let with = |quorum: &str, host: &str| {
        let controllers = json!([{ "nodeId": 1, "host": host, "port": 9093 }]);
        json!({
            "cluster": { "bootstrapServers": ["kafka:9092"] },
            "format": { "quorum": quorum, "initialControllers": controllers },
        })
    };
    let bare = json!({ "cluster": { "bootstrapServers": ["kafka:9092"] } });
    resources.create(&PostParams::default(), &object("kafka", with("Standalone", "a"))).await.unwrap();
    let replace = async |spec: Value| {
        let mut object = object("kafka", spec);
        object.metadata.resource_version = resources.get("kafka").await.unwrap().metadata.resource_version;
        resources.replace("kafka", &PostParams::default(), &object).await
    };
    replace(bare.clone()).await.unwrap();
    replace(with("InitialControllers", "b")).await.unwrap();
    let begun = json!({ "status": { "bootstrapped": true } });
    let (params, begun) = (kube::api::PatchParams::default(), kube::api::Patch::Merge(&begun));
    resources.patch_status("kafka", &params, &begun).await.unwrap();
    for spec in [bare, with("Standalone", "b"), with("InitialControllers", "a")] {
        let error = replace(spec.clone()).await.unwrap_err();
        let kube::Error::Api(status) = error else { panic!("{spec}: {error}") };
        assert!(status.message.contains("it has begun"), "{spec}: {}", status.message);
    }
    let mut spec = with("InitialControllers", "b");
    spec["format"]["kafkaVersion"] = json!("4.4.0");
    replace(spec).await.unwrap();
}

#[tokio::test]
async fn the_sample_is_taken() {
    let (server, _client) = server().await;
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/samples/kafkafeatures.yaml");
    let output = server.kubectl().args(["apply", "--validate=strict", "-f", sample]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test]
async fn the_columns_show_what_matters() {
    let (server, client) = server().await;
    let spec = json!({ "cluster": { "bootstrapServers": ["kafka:9092"] } });
    resource(&client).create(&PostParams::default(), &object("kafka", spec)).await.unwrap();
    let output = server.kubectl().args(["get", "kfeat"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let header: Vec<&str> = text.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(header, ["NAME", "READY", "TARGET", "METADATA", "REASON", "AGE"]);
    assert!(text.contains("Unknown") && text.contains("NotLookedAtYet"), "{text}");
    let output = server.kubectl().args(["get", "kfeat", "-o", "wide"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.lines().next().unwrap().contains("BLOCKERS"), "{text}");
}
