//! What can go wrong between us and a cluster, by phase, and what follows from it.

use kafka_protocol::ResponseError;
use kafka_protocol::error::ParseResponseErrorCode;

use crate::features::observed::ClusterId;

/// The phase of an exchange in which it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// The host's name has no address.
    Resolve,
    /// No connection came about.
    Connect,
    /// The host answered that nothing listens there.
    Refused,
    /// The connection came about, the first exchange on it did not.
    Handshake,
    /// The peer broke the protocol, fell silent, or is not what it should be.
    Protocol,
    /// The cluster does not allow us what we asked.
    Authorization,
    /// The cluster answered with an error.
    Api,
}

impl Phase {
    /// A short name, for metrics and messages.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Resolve => "resolve",
            Self::Connect => "connect",
            Self::Refused => "refused",
            Self::Handshake => "handshake",
            Self::Protocol => "protocol",
            Self::Authorization => "authorization",
            Self::Api => "api",
        }
    }
}

/// A failed exchange. Its text is one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{peer}: {what}")]
pub struct Error {
    /// The address that it was about.
    pub peer: String,
    what: What,
    outcome_unknown: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum What {
    #[error("the name can't be resolved: {0}")]
    Resolve(String),
    #[error("can't connect: {0}")]
    Connect(String),
    #[error("connection refused: nothing listens there")]
    Refused,
    #[error("the connection was made, but no handshake came about: {0}")]
    Handshake(Box<What>),
    #[error("no answer to {api} within {seconds} s")]
    Silent { api: &'static str, seconds: u64 },
    #[error("the connection was lost during {api}: {why}")]
    Lost { api: &'static str, why: String },
    #[error("the answer to {api} breaks the protocol: {why}")]
    Malformed { api: &'static str, why: String },
    #[error("it does not offer {api} in a version that is known here; {way_out}")]
    Unsupported { api: &'static str, way_out: &'static str },
    #[error("this is a {is}, but the address stands under {declared}: move it to the other list")]
    WrongKind { is: &'static str, declared: &'static str },
    #[error("it answers for cluster {found:?}, not for {expected:?}; nothing was sent")]
    OtherCluster { expected: ClusterId, found: ClusterId },
    #[error("not authorized: {needs} ({answer})")]
    Unauthorized { needs: &'static str, answer: String },
    #[error("{api} was answered with {name} ({code}): {message}")]
    Api { api: &'static str, code: i16, name: String, message: String },
    #[error("this request is never sent: {0}")]
    NeverSent(&'static str),
    #[error("no node told the finalized features")]
    NoFinalizedFeatures,
    #[error("the pass took longer than {0} s")]
    PassTimeout(u64),
}

/// What the cluster said when it refused something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApiError<'a> {
    /// Kafka's error code.
    pub code: i16,
    /// The server's message, cleaned and cut.
    pub message: &'a str,
}

const MESSAGE_LIMIT: usize = 1_000;

/// A server's text, made fit for one line of bounded length.
pub(crate) fn clean(text: &str) -> String {
    let line: String =
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MESSAGE_LIMIT).collect();
    line.trim().to_owned()
}

impl Error {
    pub(crate) fn new(peer: impl ToString, what: What) -> Self {
        Self { peer: peer.to_string(), what, outcome_unknown: false }
    }

    /// An error code of an answer, with the server's own message if there is one. `needs` says which right an
    /// authorization error is about.
    pub(crate) fn of_code(
        peer: impl ToString,
        api: &'static str,
        needs: &'static str,
        code: i16,
        message: Option<&str>,
    ) -> Self {
        let error = code.err().unwrap_or(ResponseError::Unknown(code));
        let message = message.filter(|text| !text.is_empty()).map_or_else(|| error.to_string(), clean);
        let what = match error {
            ResponseError::ClusterAuthorizationFailed | ResponseError::TopicAuthorizationFailed => {
                What::Unauthorized { needs, answer: message }
            }
            _ => What::Api { api, code, name: format!("{error:?}"), message },
        };
        Self::new(peer, what)
    }

    pub(crate) fn with_unknown_outcome(mut self) -> Self {
        self.outcome_unknown = true;
        self
    }

    pub(crate) fn without_unknown_outcome(mut self) -> Self {
        self.outcome_unknown = false;
        self
    }

    pub(crate) fn what(&self) -> &What {
        &self.what
    }

    /// The phase that failed.
    #[must_use]
    pub fn phase(&self) -> Phase {
        match &self.what {
            What::Resolve(_) => Phase::Resolve,
            What::Connect(_) => Phase::Connect,
            What::Refused => Phase::Refused,
            What::Handshake(_) => Phase::Handshake,
            What::Silent { .. }
            | What::Lost { .. }
            | What::Malformed { .. }
            | What::Unsupported { .. }
            | What::WrongKind { .. }
            | What::OtherCluster { .. }
            | What::NeverSent(_)
            | What::NoFinalizedFeatures
            | What::PassTimeout(_) => Phase::Protocol,
            What::Unauthorized { .. } => Phase::Authorization,
            What::Api { .. } => Phase::Api,
        }
    }

    /// Whether the same exchange may succeed a little later without anybody changing anything.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match &self.what {
            What::Resolve(_)
            | What::Connect(_)
            | What::Refused
            | What::Handshake(_)
            | What::Silent { .. }
            | What::Lost { .. }
            | What::NoFinalizedFeatures
            | What::PassTimeout(_) => true,
            What::Malformed { .. }
            | What::Unsupported { .. }
            | What::WrongKind { .. }
            | What::OtherCluster { .. }
            | What::NeverSent(_)
            | What::Unauthorized { .. } => false,
            What::Api { code, .. } => code.err().is_some_and(|error| error.is_retriable()),
        }
    }

    /// Whether a change that was asked for may have been made all the same: it was sent, and no clear answer came.
    #[must_use]
    pub fn outcome_unknown(&self) -> bool {
        self.outcome_unknown
    }

    /// The cluster ids, expected and found, where another cluster answered.
    #[must_use]
    pub fn other_cluster(&self) -> Option<(&ClusterId, &ClusterId)> {
        match &self.what {
            What::OtherCluster { expected, found } => Some((expected, found)),
            _ => None,
        }
    }

    /// The cluster's refusal, where it answered with an error of its own other than a missing right.
    #[must_use]
    pub fn api_error(&self) -> Option<ApiError<'_>> {
        match &self.what {
            What::Api { code, message, .. } => Some(ApiError { code: *code, message }),
            _ => None,
        }
    }

    /// The error without the address, for where that is told already.
    #[must_use]
    pub fn reason(&self) -> String {
        self.what.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_message_becomes_one_bounded_line() {
        let error =
            Error::of_code("k:1", "UpdateFeatures", "", 95, Some(&format!("a\nb\u{7}{}", "x".repeat(5_000))));
        let text = error.to_string();
        assert!(
            text.starts_with("k:1: UpdateFeatures was answered with InvalidUpdateVersion (95): a b x"),
            "{text}"
        );
        assert!(!text.contains('\n') && text.len() < 1_200);
        assert_eq!(error.api_error().unwrap().code, 95);
    }

    #[test]
    fn codes_lead_to_phases() {
        let of = |code| Error::of_code("k:1", "UpdateFeatures", "needs ALTER on CLUSTER", code, None);
        assert_eq!(of(31).phase(), Phase::Authorization);
        assert!(of(31).to_string().contains("needs ALTER on CLUSTER"));
        assert_eq!((of(41).phase(), of(41).is_retryable()), (Phase::Api, true));
        assert_eq!((of(95).phase(), of(95).is_retryable()), (Phase::Api, false));
        assert!(of(31_000).to_string().contains("31000"));
    }
}
