//! One connection to one node: bounded frames, matched answers, a deadline for each exchange, and the versions that
//! the two sides have in common. The stream is made in one place, [`open`].

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::{SinkExt, StreamExt};
use kafka_protocol::messages::{ApiVersionsRequest, ApiVersionsResponse, RequestHeader, ResponseHeader};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_util::codec::{Framed, LengthDelimitedCodec};

use super::address::Address;
use super::error::{Error, What};
use super::shape::{self, Shape};

/// How much an answer may hold. The largest in a cluster of ten thousand nodes is about a tenth of it.
const MAX_FRAME: usize = 8 * 1024 * 1024;
const CLIENT: &str = "kafka-features-operator";
const UNSUPPORTED_VERSION: i16 = 35;
/// The API that every broker has and no controller.
const METADATA: i16 = 3;

/// An exchange that the client knows: its name for people, the versions that we speak, and the answer's shape, which
/// is checked before the answer is taken apart.
pub(super) trait Api: Request {
    const NAME: &'static str;
    const MIN: i16;
    const MAX: i16;

    fn shape(version: i16) -> Vec<Shape>;
}

/// A connection whose handshake is done.
pub(super) struct Connection {
    pub(super) peer: Address,
    stream: Framed<TcpStream, LengthDelimitedCodec>,
    offered: BTreeMap<i16, (i16, i16)>,
    correlation_id: i32,
    request_timeout: Duration,
}

/// Makes the stream to a node: every address that its name has is tried.
async fn open(peer: &Address, deadline: Instant) -> Result<TcpStream, What> {
    let addresses = timeout_at(deadline, tokio::net::lookup_host((peer.host.as_str(), peer.port)))
        .await
        .map_err(|_| What::Resolve("no answer in time".to_owned()))?
        .map_err(|error| What::Resolve(error.to_string()))?;
    let mut failure = What::Resolve("the name has no address".to_owned());
    for address in addresses {
        failure = match timeout_at(deadline, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => What::Refused,
            Ok(Err(error)) => What::Connect(error.to_string()),
            Err(_) => return Err(What::Connect("no answer in time".to_owned())),
        };
    }
    Err(failure)
}

impl Connection {
    /// Connects and shakes hands; also returns the node's answer to ApiVersions, with its features. `complete` of the
    /// answer tells whether it lists every feature.
    pub(super) async fn connect(
        peer: &Address,
        request_timeout: Duration,
    ) -> Result<(Self, Versions), Error> {
        let deadline = Instant::now() + request_timeout;
        let stream = open(peer, deadline).await.map_err(|what| Error::new(peer, what))?;
        let codec = LengthDelimitedCodec::builder().max_frame_length(MAX_FRAME).new_codec();
        let mut connection = Self {
            peer: peer.clone(),
            stream: Framed::new(stream, codec),
            offered: BTreeMap::new(),
            correlation_id: 0,
            request_timeout,
        };
        match connection.shake_hands(deadline).await {
            Ok(versions) => Ok((connection, versions)),
            Err(what) => Err(Error::new(peer, What::Handshake(Box::new(what)))),
        }
    }

    async fn shake_hands(&mut self, deadline: Instant) -> Result<Versions, What> {
        let mut version = ApiVersionsRequest::MAX;
        let mut response = self.ask_versions(version, deadline).await?;
        if response.error_code == UNSUPPORTED_VERSION {
            // the refusal comes in version 0 and says which versions the node has (KIP-511)
            let own = response.api_keys.iter().find(|api| api.api_key == ApiVersionsRequest::KEY);
            version = own.map_or(0, |api| api.max_version.clamp(0, ApiVersionsRequest::MAX - 1));
            response = self.ask_versions(version, deadline).await?;
        }
        if response.error_code != 0 {
            let why = format!("error code {}", response.error_code);
            return Err(What::Malformed { api: ApiVersionsRequest::NAME, why });
        }
        self.offered =
            response.api_keys.iter().map(|api| (api.api_key, (api.min_version, api.max_version))).collect();
        Ok(Versions { complete: version >= 4, response })
    }

    async fn ask_versions(&mut self, version: i16, deadline: Instant) -> Result<ApiVersionsResponse, What> {
        let request = ApiVersionsRequest::default()
            .with_client_software_name(StrBytes::from_static_str(CLIENT))
            .with_client_software_version(StrBytes::from_static_str(env!("CARGO_PKG_VERSION")));
        let body = self.exchange(&request, version, deadline).await?;
        let refused = body.get(..2) == Some(&UNSUPPORTED_VERSION.to_be_bytes());
        decode::<ApiVersionsRequest>(body, if refused { 0 } else { version })
    }

    /// Whether the node at the other end is a controller's endpoint.
    pub(super) fn is_controller(&self) -> bool {
        !self.offered.contains_key(&METADATA)
    }

    /// The highest version of an exchange that both sides speak.
    pub(super) fn version_of<R: Api>(&self) -> Option<i16> {
        let (min, max) = *self.offered.get(&R::KEY)?;
        let version = R::MAX.min(max);
        (version >= R::MIN && version >= min).then_some(version)
    }

    /// Sends a request in the highest common version and waits for its answer.
    pub(super) async fn call<R: Api>(&mut self, request: &R) -> Result<R::Response, Error> {
        let Some(version) = self.version_of::<R>() else {
            let way_out = "the cluster's Kafka may be older than 3.7, or newer than this program knows";
            return Err(Error::new(&self.peer, What::Unsupported { api: R::NAME, way_out }));
        };
        let deadline = Instant::now() + self.request_timeout;
        let answer =
            self.exchange(request, version, deadline).await.and_then(|body| decode::<R>(body, version));
        answer.map_err(|what| Error::new(&self.peer, what))
    }

    /// Sends a request and returns the answer's body.
    async fn exchange<R: Api>(
        &mut self,
        request: &R,
        version: i16,
        deadline: Instant,
    ) -> Result<Bytes, What> {
        self.correlation_id = self.correlation_id.wrapping_add(1);
        let frame = encode(request, version, self.correlation_id)?;
        let lost = |why: String| What::Lost { api: R::NAME, why };
        let conversation = async {
            self.stream.send(frame).await.map_err(|error| lost(error.to_string()))?;
            match self.stream.next().await {
                Some(Ok(frame)) => Ok(frame.freeze()),
                Some(Err(error)) if error.kind() == io::ErrorKind::InvalidData => Err(What::Malformed {
                    api: R::NAME,
                    why: format!("a frame of more than {MAX_FRAME} bytes"),
                }),
                Some(Err(error)) => Err(lost(error.to_string())),
                None => Err(lost("the peer closed it".to_owned())),
            }
        };
        let silent = || What::Silent { api: R::NAME, seconds: self.request_timeout.as_secs() };
        let mut frame = timeout_at(deadline, conversation).await.map_err(|_| silent())??;
        let header_version = R::Response::header_version(version);
        let header = ResponseHeader::decode(&mut frame, header_version)
            .map_err(|error| What::Malformed { api: R::NAME, why: error.to_string() })?;
        if header.correlation_id != self.correlation_id {
            let why = format!("correlation id {} instead of {}", header.correlation_id, self.correlation_id);
            return Err(What::Malformed { api: R::NAME, why });
        }
        Ok(frame)
    }
}

/// A node's answer to ApiVersions.
pub(super) struct Versions {
    /// Whether it lists every feature: before version 4, those whose lowest level is 0 are left out.
    pub(super) complete: bool,
    pub(super) response: ApiVersionsResponse,
}

fn encode<R: Api>(request: &R, version: i16, correlation_id: i32) -> Result<Bytes, What> {
    let header = RequestHeader::default()
        .with_request_api_key(R::KEY)
        .with_request_api_version(version)
        .with_correlation_id(correlation_id)
        .with_client_id(Some(StrBytes::from_static_str(CLIENT)));
    let mut frame = BytesMut::new();
    let encoded = header
        .encode(&mut frame, R::header_version(version))
        .and_then(|()| request.encode(&mut frame, version));
    match encoded {
        Ok(()) => Ok(frame.freeze()),
        Err(error) => {
            Err(What::Malformed { api: R::NAME, why: format!("the request can't be written: {error}") })
        }
    }
}

fn decode<R: Api>(mut body: Bytes, version: i16) -> Result<R::Response, What> {
    let malformed = |why: String| What::Malformed { api: R::NAME, why };
    shape::check(&body, &R::shape(version)).map_err(malformed)?;
    R::Response::decode(&mut body, version).map_err(|error| malformed(error.to_string()))
}
