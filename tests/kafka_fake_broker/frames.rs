//! Bytes that are no answer.

use kafka_features_operator::kafka::{Error, Phase};
use kafka_protocol::messages::ApiKey;

use crate::fake_broker::clients::{SHORT, broker, patient_client};
use crate::fake_broker::{Ask, Reply, Script};

/// What observing comes to when this one API is answered so.
pub(crate) async fn observe_with(
    api: ApiKey,
    reply: impl Fn(&Ask) -> Reply + Send + Sync + 'static,
) -> Error {
    let node = broker(move |_, ask| (ask.api == api).then(|| reply(ask))).await;
    patient_client(&[&node], &[], SHORT).observe().await.expect_err("the only node breaks the protocol")
}

#[tokio::test]
async fn frames_that_end_early_or_never_are_errors_of_their_phase() {
    let cut = |bytes: &'static [u8]| move |_: &Ask| Reply::BytesThenClose(bytes.to_vec());
    let stuck = |bytes: &'static [u8]| move |_: &Ask| Reply::Bytes(bytes.to_vec());
    let half = &[0, 0, 0, 9, 0, 0][..];

    let error = observe_with(ApiKey::ApiVersions, cut(half)).await;
    assert_eq!(error.phase(), Phase::Handshake, "{error}");
    assert!(error.to_string().contains("after 2 of 9 bytes"), "{error}");
    let error = observe_with(ApiKey::DescribeCluster, cut(half)).await;
    assert_eq!(error.phase(), Phase::Protocol, "{error}");
    assert!(error.to_string().contains("after 2 of 9 bytes") && error.is_retryable(), "{error}");
    let error = observe_with(ApiKey::DescribeCluster, |_| Reply::Close).await;
    assert!(error.to_string().contains("the peer closed the connection"), "{error}");

    let error = observe_with(ApiKey::ApiVersions, stuck(half)).await;
    assert_eq!(error.phase(), Phase::Handshake, "{error}");
    let error = observe_with(ApiKey::DescribeCluster, stuck(half)).await;
    assert!(error.to_string().contains("no answer to DescribeCluster within 0.7 s"), "{error}");
    let error = observe_with(ApiKey::ApiVersions, |_| Reply::Silence).await;
    assert_eq!(error.phase(), Phase::Handshake, "{error}");
}

#[tokio::test]
async fn sizes_that_no_answer_has_are_refused_by_their_head() {
    for (announced, shown) in [(i32::MAX, "2147483647"), (-1, "-1"), (i32::MIN, "-2147483648")] {
        let head = announced.to_be_bytes();
        let error = observe_with(ApiKey::DescribeCluster, move |_| Reply::Bytes(head.to_vec())).await;
        assert_eq!(error.phase(), Phase::Protocol, "{error}");
        assert!(error.to_string().contains(&format!("a frame of {shown} bytes")), "{error}");
    }
    let alert = [0x15, 3, 3, 0, 2, 2, 40];
    let error = observe_with(ApiKey::ApiVersions, move |_| Reply::BytesThenClose(alert.to_vec())).await;
    assert!(error.to_string().contains("looks like TLS"), "{error}");
}

#[tokio::test]
async fn counts_inside_an_answer_that_nothing_could_fill_end_the_exchange_and_not_the_process() {
    let endless = [0xff, 0xff, 0xff, 0xff, 0x0f];
    let cluster = [&[0, 0, 0, 0, 0, 0, 0, 1, 2, b'c', 0, 0, 0, 1][..], &endless].concat();
    let error = observe_with(ApiKey::DescribeCluster, move |ask| ask.answer_raw(&cluster)).await;
    assert!(error.to_string().contains("DescribeCluster can't be read"), "{error}");

    let apis = [&[0, 0][..], &endless].concat();
    let error = observe_with(ApiKey::ApiVersions, move |ask| ask.answer_raw(&apis)).await;
    assert!(error.to_string().contains("ApiVersions can't be read"), "{error}");

    // a tagged field that is longer than its content, which hides the count behind it from who trusts lengths
    let hidden = [&[0, 0, 1, 0, 0, 0, 0, 2, 0, 12, 1, 0, 9][..], &endless, &[0, 0, 0, 0, 5, 1, 0]].concat();
    let error = observe_with(ApiKey::ApiVersions, move |ask| ask.answer_raw(&hidden)).await;
    assert!(error.to_string().contains("ApiVersions can't be read"), "{error}");

    // the refusal of a version comes in the old encoding, with a count of its own
    let refusal = [0, 35, 0x7f, 0xff, 0xff, 0xff];
    let error = observe_with(ApiKey::ApiVersions, move |ask| ask.answer_raw(&refusal)).await;
    assert!(error.to_string().contains("offered in versions none"), "{error}");
}

#[tokio::test]
async fn an_answer_to_another_request_is_not_taken() {
    let error = observe_with(ApiKey::DescribeCluster, |ask| {
        let Reply::Frame(mut frame) = Script::broker(1).reply(ask) else { unreachable!("a frame") };
        frame[..4].copy_from_slice(&(ask.correlation_id + 1).to_be_bytes());
        Reply::Frame(frame)
    })
    .await;
    assert_eq!(error.phase(), Phase::Protocol, "{error}");
    assert!(error.to_string().contains("carries number 3 instead of 2"), "{error}");
}
