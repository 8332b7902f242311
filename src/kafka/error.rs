//! What can go wrong between us and a cluster, told by phase, with the peer and the way out. A text from a
//! server is never passed on raw: it is cut to a bounded single line.

#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use kafka_protocol::error::ResponseError;

use crate::features::FeatureName;
use crate::features::observed::{ClusterId, NodeId};

/// The longest text of a server that an error carries, in characters.
const MAX_SERVER_TEXT: usize = 1000;

/// A failure of one operation against a cluster. Its text is one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{peer}: {cause}")]
pub struct Error {
    /// The address that it was about.
    pub peer: String,
    cause: Box<Cause>,
    outcome_unknown: bool,
}

/// How far an operation came before it failed.
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
    /// The peer broke the protocol, fell silent, or is not what it should be; or we refused to send the request.
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

/// What the cluster said when it refused something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApiError<'a> {
    /// Kafka's error code.
    pub code: i16,
    /// The server's message as one bounded line; empty if it gave none.
    pub message: &'a str,
}

/// The two kinds of listeners that Kafka nodes have; a combined node has both, on two ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndpointKind {
    /// A broker's listener.
    Broker,
    /// A controller's listener.
    Controller,
}

impl EndpointKind {
    /// The field of the resource that takes such addresses.
    const fn field(self) -> &'static str {
        match self {
            Self::Broker => "bootstrapServers",
            Self::Controller => "bootstrapControllers",
        }
    }
}

impl fmt::Display for EndpointKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Broker => "broker",
            Self::Controller => "controller",
        })
    }
}

/// Why an operation failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Cause {
    /// The host name has no address.
    #[error("the host name can't be resolved ({0}); check the address and the DNS")]
    Resolve(String),
    /// No connection came about.
    #[error("no connection ({0}); check that the address can be reached from here")]
    Connect(String),
    /// The port is closed.
    #[error("connection refused; check that Kafka listens on this address")]
    Refused,
    /// The peer took the connection and then said nothing, or hung up, before versions were agreed on.
    #[error("{0} in the handshake; check that this is a Kafka listener without TLS and SASL")]
    Handshake(String),
    /// No answer in time.
    #[error("no answer to {api} within {}", Seconds(*.after))]
    Silent {
        /// The request.
        api: &'static str,
        /// How long we waited.
        after: Duration,
    },
    /// The connection broke while we waited.
    #[error("the connection was lost while waiting for the answer to {api} ({how})")]
    Lost {
        /// The request.
        api: &'static str,
        /// What the system said.
        how: String,
    },
    /// What came is not Kafka's protocol as we know it.
    #[error("{0}; check what listens on this address")]
    Garbled(String),
    /// Client and server have no version of a request in common.
    #[error(
        "{api} is offered in versions {theirs}, and {ours} are understood here; Kafka 3.7 to 4.4 is supported"
    )]
    NoCommonVersion {
        /// The request.
        api: &'static str,
        /// Our versions.
        ours: String,
        /// The versions that the peer offers.
        theirs: String,
    },
    /// The address was configured as the other kind.
    #[error("this is the address of a {found}; move it from {} to {}", .configured.field(), .found.field())]
    WrongKind {
        /// What it was configured as.
        configured: EndpointKind,
        /// What it is.
        found: EndpointKind,
    },
    /// The controllers don't talk to clients yet (KIP-919).
    #[error(
        "controllers answer no clients while they have no leader or metadata.version is below 3.7-IV0 (15); \
         give broker addresses in bootstrapServers as well"
    )]
    ControllersClosed,
    /// The peer belongs to another cluster.
    #[error(
        "this node belongs to cluster {found}, not to cluster {expected}; check the addresses and the cluster id"
    )]
    OtherCluster {
        /// The cluster that was expected.
        expected: ClusterId,
        /// The cluster that answered.
        found: ClusterId,
    },
    /// We may not do this.
    #[error("not authorized for {api} ({}); grant {needs}", CodeName(*.code))]
    Unauthorized {
        /// The request.
        api: &'static str,
        /// The right that it needs.
        needs: &'static str,
        /// Kafka's error code.
        code: i16,
    },
    /// Kafka answered with an error.
    #[error("{api} was answered with {}{}", CodeName(*.code), AfterColon(.message))]
    Api {
        /// The request.
        api: &'static str,
        /// Kafka's error code.
        code: i16,
        /// Kafka's text, as one bounded line; empty if there is none.
        message: String,
    },
    /// Another may be acting by now.
    #[error("nothing was sent: the lease of this replica has run out, or will before the change arrives")]
    NotPermitted,
    /// The quorum has no leader.
    #[error("the quorum has no leader at this moment; check that a majority of the controllers is up")]
    NoActiveController,
    /// Each controller named another one as active.
    #[error("the controllers named another active controller {0} times, the last time node {1}; try again")]
    Redirected(usize, NodeId),
    /// No node that answered knew the finalized levels.
    #[error("no node that answered knows the finalized levels yet; the nodes may still be starting")]
    NoFinalizedLevels,
    /// A request with `kraft.version` and something else.
    #[error(
        "kraft.version must be alone in its request and is never sent together with {0}: Kafka applies it even \
         when the request fails for another feature"
    )]
    KraftVersionNotAlone(FeatureName),
    /// A request to move `kraft.version` by a Kafka that does not.
    #[error(
        "kraft.version is not moved by Kafka before 4.1, which reports success all the same; update the \
         controllers first"
    )]
    KraftVersionNotHonoured,
    /// A request with a feature twice.
    #[error("{0} stands twice in one request, of which Kafka would take the last; ask for one level")]
    FeatureTwice(FeatureName),
    /// A request without a feature.
    #[error("a request without a single feature changes nothing and is not sent")]
    NothingToSend,
    /// No address was given.
    #[error("no address is known; give one in bootstrapServers or bootstrapControllers")]
    NoAddress,
    /// A request that the protocol can't express.
    #[error("{api} can't be encoded ({why})")]
    NotEncodable {
        /// The request.
        api: &'static str,
        /// What the encoder said.
        why: String,
    },
}

impl Cause {
    fn phase(&self) -> Phase {
        match self {
            Self::Resolve(_) => Phase::Resolve,
            Self::Connect(_) => Phase::Connect,
            Self::Refused => Phase::Refused,
            Self::Handshake(_) => Phase::Handshake,
            Self::Silent { .. }
            | Self::Lost { .. }
            | Self::Garbled(_)
            | Self::NoCommonVersion { .. }
            | Self::WrongKind { .. }
            | Self::OtherCluster { .. }
            | Self::KraftVersionNotAlone(_)
            | Self::KraftVersionNotHonoured
            | Self::FeatureTwice(_)
            | Self::NothingToSend
            | Self::NotPermitted
            | Self::NoAddress
            | Self::NotEncodable { .. } => Phase::Protocol,
            Self::Unauthorized { .. } => Phase::Authorization,
            Self::Api { .. }
            | Self::ControllersClosed
            | Self::NoActiveController
            | Self::Redirected(..)
            | Self::NoFinalizedLevels => Phase::Api,
        }
    }

    /// Whether the same operation may go well later with nobody changing anything.
    fn is_retryable(&self) -> bool {
        match self {
            Self::Resolve(_)
            | Self::Connect(_)
            | Self::Refused
            | Self::Handshake(_)
            | Self::Silent { .. }
            | Self::Lost { .. }
            | Self::Garbled(_)
            | Self::ControllersClosed
            | Self::NoActiveController
            | Self::Redirected(..)
            | Self::NotPermitted
            | Self::NoFinalizedLevels => true,
            Self::Api { code, .. } => {
                ResponseError::try_from_code(*code).is_some_and(|error| error.is_retriable())
            }
            Self::NoCommonVersion { .. }
            | Self::WrongKind { .. }
            | Self::OtherCluster { .. }
            | Self::Unauthorized { .. }
            | Self::KraftVersionNotAlone(_)
            | Self::KraftVersionNotHonoured
            | Self::FeatureTwice(_)
            | Self::NothingToSend
            | Self::NoAddress
            | Self::NotEncodable { .. } => false,
        }
    }

    /// Whether a request that was to change something may have been carried out, although this is how it ended.
    /// Only what Kafka is known to answer before it touches anything counts as certain.
    fn leaves_outcome_unknown(&self) -> bool {
        match self {
            Self::Silent { .. } | Self::Lost { .. } | Self::Garbled(_) => true,
            Self::Api { code, message, .. } => match ResponseError::try_from_code(*code) {
                Some(
                    ResponseError::InvalidUpdateVersion
                    | ResponseError::InvalidRequest
                    | ResponseError::UnsupportedVersion
                    | ResponseError::ThrottlingQuotaExceeded,
                ) => false,
                // A controller that never was active names the active one. One that loses its office with the
                // change in flight fails it with "No controller appears to be active.", and the change may stay.
                Some(ResponseError::NotController) => active_controller_in(message).is_none(),
                _ => true,
            },
            Self::Resolve(_)
            | Self::Connect(_)
            | Self::Refused
            | Self::Handshake(_)
            | Self::NoCommonVersion { .. }
            | Self::WrongKind { .. }
            | Self::ControllersClosed
            | Self::OtherCluster { .. }
            | Self::Unauthorized { .. }
            | Self::NoActiveController
            | Self::Redirected(..)
            | Self::NoFinalizedLevels
            | Self::KraftVersionNotAlone(_)
            | Self::KraftVersionNotHonoured
            | Self::FeatureTwice(_)
            | Self::NotPermitted
            | Self::NothingToSend
            | Self::NoAddress
            | Self::NotEncodable { .. } => false,
        }
    }
}

impl Error {
    /// A failure at a peer.
    pub(super) fn at(peer: impl fmt::Display, cause: Cause) -> Self {
        Self { peer: peer.to_string(), cause: Box::new(cause), outcome_unknown: false }
    }

    /// The same failure, of a request that was to change something and had been sent.
    pub(super) fn of_a_change(self) -> Self {
        Self { outcome_unknown: self.cause.leaves_outcome_unknown(), ..self }
    }

    pub(super) fn cause(&self) -> &Cause {
        &self.cause
    }

    /// How far the operation came.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.cause.phase()
    }

    /// Whether the same operation may go well a little later without anybody changing anything.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.cause.is_retryable()
    }

    /// Whether a change was sent and may have been made all the same: observe before anything else.
    #[must_use]
    pub fn outcome_unknown(&self) -> bool {
        self.outcome_unknown
    }

    /// Whether nothing was sent for want of a permit, which says nothing about the cluster.
    #[must_use]
    pub fn not_permitted(&self) -> bool {
        matches!(*self.cause, Cause::NotPermitted)
    }

    /// The cluster ids, expected and found, where another cluster answered.
    #[must_use]
    pub fn other_cluster(&self) -> Option<(&ClusterId, &ClusterId)> {
        match &*self.cause {
            Cause::OtherCluster { expected, found } => Some((expected, found)),
            _ => None,
        }
    }

    /// The cluster's refusal, where it answered with an error of its own other than a missing right.
    #[must_use]
    pub fn api_error(&self) -> Option<ApiError<'_>> {
        match &*self.cause {
            Cause::Api { code, message, .. } => Some(ApiError { code: *code, message }),
            _ => None,
        }
    }

    /// The error without the address, for where that is told already.
    #[must_use]
    pub fn reason(&self) -> String {
        self.cause.to_string()
    }

    /// Whether a second try within the same pass makes sense: the connection broke, or the server itself calls
    /// the error passing. Silence and closed ports cost time or stay, and wait for the next pass.
    pub(super) fn is_momentary(&self) -> bool {
        matches!(*self.cause, Cause::Lost { .. } | Cause::Api { .. }) && self.is_retryable()
    }
}

/// The node that a controller names as active in its refusal, if this is such a refusal.
pub(super) fn active_controller_in(message: &str) -> Option<NodeId> {
    let rest = message.split_once("The active controller appears to be node ")?.1;
    rest.trim_end().strip_suffix('.')?.parse().ok().map(NodeId)
}

/// A server's text as one bounded line without control characters.
pub(super) fn tidy(text: &str) -> String {
    let mut tidy: String = text
        .chars()
        .take(MAX_SERVER_TEXT)
        .map(|c| if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') { ' ' } else { c })
        .collect();
    if text.chars().nth(MAX_SERVER_TEXT).is_some() {
        tidy.push('…');
    }
    tidy
}

struct Seconds(Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} s", (self.0.as_secs_f64() * 10.0).round() / 10.0)
    }
}

struct AfterColon<'a>(&'a str);

impl fmt::Display for AfterColon<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, ": {}", self.0) }
    }
}

/// An error code under the name that Kafka's documentation gives it.
struct CodeName(i16);

impl fmt::Display for CodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match ResponseError::try_from_code(self.0) {
            Some(ResponseError::Unknown(code)) => write!(f, "error {code}"),
            Some(error) => {
                for (position, letter) in error.to_string().chars().enumerate() {
                    if letter.is_ascii_uppercase() && position > 0 {
                        f.write_str("_")?;
                    }
                    write!(f, "{}", letter.to_ascii_uppercase())?;
                }
                write!(f, " ({})", self.0)
            }
            None => f.write_str("no error (0)"),
        }
    }
}
