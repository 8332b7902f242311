//! What errors say, and what can be told from them.

use super::*;

fn api(code: i16, message: &str) -> Error {
    Error::at("kafka:9092", Cause::Api { api: "UpdateFeatures", code, message: message.to_owned() })
}

#[test]
fn an_answer_of_kafka_is_shown_with_peer_name_code_and_text() {
    assert_eq!(
        api(95, "no").to_string(),
        "kafka:9092: UpdateFeatures was answered with INVALID_UPDATE_VERSION (95): no"
    );
    assert!(api(1234, "").to_string().contains("error 1234"));
}

#[test]
fn a_refusal_that_names_the_active_controller_is_certain_and_losing_office_is_not() {
    assert!(!api(41, "The active controller appears to be node 3.").of_a_change().outcome_unknown());
    assert!(api(41, "No controller appears to be active.").of_a_change().outcome_unknown());
    assert!(!api(95, "").of_a_change().outcome_unknown());
    assert!(api(7, "").of_a_change().outcome_unknown());
    assert!(api(-1, "").of_a_change().outcome_unknown());
}

#[test]
fn a_servers_text_becomes_one_bounded_line() {
    assert_eq!(tidy("a\r\nb\u{2028}c\u{7}"), "a  b c ");
    let long = tidy(&"ä".repeat(5000));
    assert_eq!(long.chars().count(), MAX_SERVER_TEXT + 1);
}

#[test]
fn the_active_controller_is_read_from_the_refusal_only() {
    assert_eq!(active_controller_in("The active controller appears to be node 3001."), Some(NodeId(3001)));
    for other in ["No controller appears to be active.", "", "The active controller appears to be node x."] {
        assert_eq!(active_controller_in(other), None, "{other}");
    }
}
