//! One connection to one node: made here and nowhere else, then asked one request at a time. Every wait has an
//! end, and an answer is taken only for the request that it belongs to.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{
    ApiKey, ApiVersionsRequest, ApiVersionsResponse, RequestHeader, ResponseHeader,
};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, StrBytes, VersionRange};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout_at};

use super::address::Address;
use super::error::{Cause, EndpointKind, Error, tidy};
use super::features::NodeFeatures;
use super::frame::{self, FrameError};
use super::pass::Pass;
use super::rpc::Rpc;

/// The name that Kafka's logs and request metrics show for us.
const CLIENT: &str = "kafka-features-operator";

const UNSUPPORTED_VERSION: i16 = 35;
const CLUSTER_AUTHORIZATION_FAILED: i16 = 31;

/// A connection on which versions are agreed on.
pub(super) struct Connection {
    wire: Wire,
    offered: BTreeMap<i16, VersionRange>,
    features: NodeFeatures,
}

/// The largest answer that is read. The list of 10 000 nodes with the longest host names takes less.
const MAX_FRAME: usize = 4 * 1024 * 1024;

/// A stream of frames, and the number of the last request on it.
struct Wire {
    stream: TcpStream,
    peer: String,
    last_id: i32,
}

/// Makes the stream to a node: the one place where TLS and SASL come in.
async fn connect(address: &Address, deadline: Instant) -> Result<TcpStream, Error> {
    let failed = |cause| Error::at(address, cause);
    let addresses = match timeout_at(deadline, lookup_host(address.parts())).await {
        Ok(Ok(addresses)) => addresses.collect::<Vec<_>>(),
        Ok(Err(error)) => return Err(failed(Cause::Resolve(tidy(&error.to_string())))),
        Err(_) => return Err(failed(Cause::Resolve("no answer in time".to_owned()))),
    };
    let mut last = Cause::Resolve("it has no address".to_owned());
    for (position, socket) in addresses.iter().enumerate() {
        // An address that swallows packets may take its share of the time, not all of it.
        let shares = u32::try_from(addresses.len() - position).unwrap_or(u32::MAX);
        let share = deadline.saturating_duration_since(Instant::now()) / shares;
        last = match timeout_at(Instant::now() + share, TcpStream::connect(socket)).await {
            Ok(Ok(stream)) => match stream.set_nodelay(true) {
                Ok(()) => return Ok(stream),
                Err(error) => Cause::Connect(error.to_string()),
            },
            Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => Cause::Refused,
            Ok(Err(error)) => Cause::Connect(error.to_string()),
            Err(_) => Cause::Connect("no answer in time".to_owned()),
        };
    }
    Err(failed(last))
}

impl Connection {
    /// Connects and agrees on versions, which also tells the node's features.
    pub(super) async fn open(address: &Address, pass: &Pass) -> Result<Self, Error> {
        let deadline = pass.next_deadline();
        let stream = connect(address, deadline).await?;
        let mut wire = Wire { stream, peer: address.to_string(), last_id: 0 };
        let (answer, version) =
            wire.agree_on_versions(deadline).await.map_err(|error| match error.cause() {
                Cause::Silent { .. } => Error::at(address, Cause::Handshake("no answer in time".to_owned())),
                Cause::Lost { how, .. } => Error::at(address, Cause::Handshake(how.clone())),
                _ => error,
            })?;
        let range = |min, max| VersionRange { min, max };
        let offered =
            answer.api_keys.iter().map(|api| (api.api_key, range(api.min_version, api.max_version)));
        Ok(Self { wire, offered: offered.collect(), features: NodeFeatures::read(&answer, version) })
    }

    /// The address that was connected to.
    pub(super) fn peer(&self) -> &str {
        &self.wire.peer
    }

    /// What the node said about features.
    pub(super) fn features(&self) -> &NodeFeatures {
        &self.features
    }

    /// Which kind of listener this is: topics are found on brokers only, registration on controllers only.
    pub(super) fn kind(&self) -> EndpointKind {
        let offers = |key: ApiKey| self.offered.contains_key(&(key as i16));
        if offers(ApiKey::BrokerRegistration) && !offers(ApiKey::Metadata) {
            EndpointKind::Controller
        } else {
            EndpointKind::Broker
        }
    }

    /// The highest version of a request that both sides speak.
    pub(super) fn version<R: Rpc>(&self) -> Result<i16, Error> {
        let theirs = self.offered.get(&(R::KEY as i16));
        match theirs.map(|theirs| R::VERSIONS.intersect(theirs)) {
            Some(common) if !common.is_empty() => Ok(common.max),
            _ => Err(Error::at(self.peer(), no_common_version::<R>(theirs))),
        }
    }

    /// Sends a request and waits for its answer. The caller looks for errors inside the answer.
    pub(super) async fn ask<R: Rpc>(&mut self, request: &R, pass: &Pass) -> Result<R::Answer, Error> {
        let version = self.version::<R>()?;
        let body = self.wire.exchange(request, version, pass.next_deadline()).await?;
        self.wire.decode::<R>(body, version)
    }

    /// Turns an error code in an answer into an error.
    pub(super) fn refuse<R: Rpc>(&self, code: i16, message: Option<&str>) -> Result<(), Error> {
        let cause = match code {
            0 => return Ok(()),
            // The text of a refused UpdateFeatures is the server's dump of the whole request: not for people.
            CLUSTER_AUTHORIZATION_FAILED => Cause::Unauthorized { api: R::NAME, needs: R::NEEDS, code },
            _ => Cause::Api { api: R::NAME, code, message: message.map(tidy).unwrap_or_default() },
        };
        Err(Error::at(self.peer(), cause))
    }

    /// An error of this peer.
    pub(super) fn failed(&self, cause: Cause) -> Error {
        Error::at(self.peer(), cause)
    }
}

fn no_common_version<R: Rpc>(theirs: Option<&VersionRange>) -> Cause {
    let span = |range: &VersionRange| format!("{} to {}", range.min, range.max);
    let theirs = theirs.map_or("none".to_owned(), span);
    Cause::NoCommonVersion { api: R::NAME, ours: span(&R::VERSIONS), theirs }
}

impl Wire {
    /// Asks for ApiVersions in our highest version, and where the node does not know it, in its own highest.
    async fn agree_on_versions(&mut self, deadline: Instant) -> Result<(ApiVersionsResponse, i16), Error> {
        let request = ApiVersionsRequest::default()
            .with_client_software_name(StrBytes::from_static_str(CLIENT))
            .with_client_software_version(StrBytes::from_static_str(env!("CARGO_PKG_VERSION")));
        let ours = ApiVersionsRequest::VERSIONS;
        let mut version = ours.max;
        let mut body = self.exchange(&request, version, deadline).await?;
        if error_code(&body) == Some(UNSUPPORTED_VERSION) {
            // Whatever was asked, this refusal comes in version 0 (KIP-511), with what is offered inside.
            let theirs = offered_in_refusal(body);
            version = theirs
                .map(|theirs| ours.intersect(&theirs))
                .filter(|common| !common.is_empty())
                .ok_or_else(|| {
                    Error::at(&self.peer, no_common_version::<ApiVersionsRequest>(theirs.as_ref()))
                })?
                .max;
            body = self.exchange(&request, version, deadline).await?;
        }
        let code = error_code(&body).unwrap_or_default();
        if code != 0 {
            return Err(Error::at(
                &self.peer,
                Cause::Api { api: ApiVersionsRequest::NAME, code, message: String::new() },
            ));
        }
        Ok((self.decode::<ApiVersionsRequest>(body, version)?, version))
    }

    /// Sends one request and gives the body of the answer that carries its number.
    async fn exchange<R: Rpc>(
        &mut self,
        request: &R,
        version: i16,
        deadline: Instant,
    ) -> Result<Bytes, Error> {
        let begun = Instant::now();
        self.last_id = self.last_id.wrapping_add(1);
        let frame = encode(request, version, self.last_id).map_err(|error| {
            Error::at(&self.peer, Cause::NotEncodable { api: R::NAME, why: tidy(&error.to_string()) })
        })?;
        let answer = timeout_at(deadline, async {
            self.stream.write_all(&frame).await?;
            frame::read(&mut self.stream, MAX_FRAME).await
        });
        let cause = match answer.await {
            Ok(Ok(answer)) => return self.strip_header::<R>(answer, version),
            Ok(Err(error @ FrameError::Size { .. })) => Cause::Garbled(error.to_string()),
            Ok(Err(error)) => Cause::Lost { api: R::NAME, how: tidy(&error.to_string()) },
            Err(_) => Cause::Silent { api: R::NAME, after: deadline.saturating_duration_since(begun) },
        };
        Err(Error::at(&self.peer, cause))
    }

    fn strip_header<R: Rpc>(&self, answer: Bytes, version: i16) -> Result<Bytes, Error> {
        let mut answer = frame::Guarded::new(answer);
        let header = ResponseHeader::decode(&mut answer, R::Answer::header_version(version))
            .map_err(|error| self.garbled::<R>(&error))?;
        if header.correlation_id == self.last_id {
            return Ok(answer.into_rest());
        }
        let (got, expected) = (header.correlation_id, self.last_id);
        let cause = format!("the answer to {} carries number {got} instead of {expected}", R::NAME);
        Err(Error::at(&self.peer, Cause::Garbled(cause)))
    }

    fn decode<R: Rpc>(&self, body: Bytes, version: i16) -> Result<R::Answer, Error> {
        R::Answer::decode(&mut frame::Guarded::new(body), version).map_err(|error| self.garbled::<R>(&error))
    }

    fn garbled<R: Rpc>(&self, error: &impl std::fmt::Display) -> Error {
        let text = format!("the answer to {} can't be read ({})", R::NAME, tidy(error.to_string().trim()));
        Error::at(&self.peer, Cause::Garbled(text))
    }
}

fn encode<R: Rpc>(
    request: &R,
    version: i16,
    id: i32,
) -> Result<BytesMut, Box<dyn std::error::Error + Send + Sync>> {
    let header = RequestHeader::default()
        .with_request_api_key(R::KEY as i16)
        .with_request_api_version(version)
        .with_correlation_id(id)
        .with_client_id(Some(StrBytes::from_static_str(CLIENT)));
    let mut message = BytesMut::new();
    header.encode(&mut message, R::header_version(version))?;
    request.encode(&mut message, version)?;
    let mut frame = BytesMut::with_capacity(message.len() + 4);
    frame.put_i32(i32::try_from(message.len())?);
    frame.put(message);
    Ok(frame)
}

fn error_code(body: &Bytes) -> Option<i16> {
    body.clone().try_get_i16().ok()
}

/// The versions of ApiVersions that its own refusal offers. A node that says nothing about it, as very old ones
/// do, offers 0.
fn offered_in_refusal(mut body: Bytes) -> Option<VersionRange> {
    body.try_get_i16().ok()?;
    let count = body.try_get_i32().ok()?;
    for _ in 0..count {
        let key = body.try_get_i16().ok()?;
        let range = VersionRange { min: body.try_get_i16().ok()?, max: body.try_get_i16().ok()? };
        if key == ApiKey::ApiVersions as i16 {
            return Some(range);
        }
    }
    None
}

/// A time-out as requests carry it, never 0.
pub(super) fn milliseconds(duration: Duration) -> i32 {
    i32::try_from(duration.as_millis()).unwrap_or(i32::MAX).max(1)
}
