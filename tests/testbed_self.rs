//! The testbed itself: that its parts are real, and that it leaves nothing behind.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod testbed;

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use kube::api::{Api, ListParams, ObjectMeta, PostParams};
use testbed::{ApiServer, Kafka, NodeSpec, Oracle, Quorum};

#[tokio::test]
async fn the_api_server_is_real_and_denies_whom_nobody_gave_rights() {
    let mut server = ApiServer::start().await;
    let admin = server.client().await;
    let version = admin.apiserver_version().await.unwrap();
    assert_eq!((version.major.as_str(), version.minor.as_str()), ("1", "36"));

    let accounts = Api::<ServiceAccount>::namespaced(admin.clone(), "default");
    let account = ServiceAccount {
        metadata: ObjectMeta { name: Some("nobody".into()), ..Default::default() },
        ..Default::default()
    };
    accounts.create(&PostParams::default(), &account).await.unwrap();
    let (params, request) = (PostParams::default(), TokenRequest::default());
    let answer = accounts.create_token_request("nobody", &params, &request).await.unwrap();
    let token = answer.status.unwrap().token.unwrap();
    let nobody = Api::<ConfigMap>::namespaced(server.client_with(&token).await, "default");
    let kube::Error::Api(denied) = nobody.list(&ListParams::default()).await.unwrap_err() else { panic!() };
    assert_eq!(denied.code, 403);

    server.restart().await;
    assert!(accounts.get("nobody").await.is_ok());
    assert!(server.audit().iter().any(|event| event["responseStatus"]["code"] == 403));
}

#[test]
fn a_cluster_of_two_versions_runs_and_its_nodes_stop_die_and_return() {
    let nodes =
        [NodeSpec::controller(1, "4.4.0"), NodeSpec::broker(2, "4.0.2"), NodeSpec::broker(3, "4.4.0")];
    let mut kafka = Kafka::start(&nodes, Quorum::Dynamic, &["--release-version", "4.0"], &[]);
    let levels = kafka.finalized();
    assert_eq!(levels["metadata.version"], "4.0-IV3");
    assert_eq!(levels["kraft.version"], "1");
    assert_eq!(levels["transaction.version"], "2");

    kafka.kill(2);
    let registered = |kafka: &Kafka| {
        let broker = kafka.broker(3);
        let args = ["--bootstrap-server", &broker, "describe", "--node-id", "2"];
        Oracle::of("4.4.0").run("kafka-features", &args).exit == 0
    };
    kafka.restart(2, Some("4.4.0"));
    assert!(registered(&kafka));
    kafka.stop(3);
    kafka.restart(3, None);
    assert_eq!(kafka.finalized()["metadata.version"], "4.0-IV3");
}

#[test]
fn nothing_outlives_a_cluster() {
    let kafka = Kafka::single("4.4.0", &[]);
    let (folder, broker) = (kafka.folder().to_owned(), kafka.broker(1));
    assert!(std::net::TcpStream::connect(&broker).is_ok());
    drop(kafka);
    assert!(!folder.exists());
    assert!(std::net::TcpStream::connect(&broker).is_err());
}
