//! A node that speaks Kafka's protocol as a test tells it to, for what real nodes can't be made to do. It listens on
//! loopback, remembers every request, and ends with the test.

// each test binary uses its own share
#![allow(dead_code, unreachable_pub, missing_docs)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod clients;
mod script;

use std::sync::{Arc, Mutex};

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::{ApiKey, RequestHeader, ResponseHeader};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

pub use script::{Script, refusal};

/// A request as the node got it.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The number of the connection that it came on, from 0.
    pub connection: usize,
    pub api: ApiKey,
    pub version: i16,
    pub correlation_id: i32,
    body: Bytes,
}

impl Ask {
    /// The request itself.
    pub fn read<R: Request>(&self) -> R {
        assert_eq!(R::KEY, self.api as i16);
        R::decode(&mut self.body.clone(), self.version).expect("a request")
    }

    /// The frame that answers it, as a real node would write it.
    pub fn answer<A: Encodable + HeaderVersion>(&self, answer: &A) -> Reply {
        self.answer_in(self.version, answer)
    }

    /// The same in another version than was asked for.
    pub fn answer_in<A: Encodable + HeaderVersion>(&self, version: i16, answer: &A) -> Reply {
        let mut body = BytesMut::new();
        let header = ResponseHeader::default().with_correlation_id(self.correlation_id);
        header.encode(&mut body, A::header_version(version)).expect("a header");
        answer.encode(&mut body, version).expect("an answer");
        Reply::Frame(body.to_vec())
    }

    /// A frame with this body after a header that fits the request.
    pub fn answer_raw(&self, body: &[u8]) -> Reply {
        let mut frame = BytesMut::new();
        frame.put_i32(self.correlation_id);
        if self.api != ApiKey::ApiVersions {
            frame.put_u8(0);
        }
        frame.put_slice(body);
        Reply::Frame(frame.to_vec())
    }
}

/// What the node does with a request.
#[derive(Clone, Debug)]
pub enum Reply {
    /// Sends these bytes as one frame.
    Frame(Vec<u8>),
    /// Sends these bytes as they are, and keeps silent from then on.
    Bytes(Vec<u8>),
    /// Sends these bytes as they are, and closes.
    BytesThenClose(Vec<u8>),
    /// Closes.
    Close,
    /// Keeps silent.
    Silence,
}

/// A node that listens and is not told yet what to say, so that others can name its address.
pub struct Bound {
    listener: TcpListener,
    pub port: u16,
}

impl Bound {
    pub async fn new() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        Self { listener, port }
    }

    /// Answers every request as `reply` says.
    pub fn serve(self, reply: impl Fn(&Ask) -> Reply + Send + Sync + 'static) -> FakeBroker {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (reply, log) = (Arc::new(reply), seen.clone());
        let task = tokio::spawn(async move {
            for connection in 0.. {
                let (stream, _) = self.listener.accept().await.expect("a connection");
                let (reply, log) = (reply.clone(), log.clone());
                // a connection ends when the client goes, also within a frame
                tokio::spawn(async move { drop(converse(stream, connection, &*reply, &log).await) });
            }
        });
        FakeBroker { port: self.port, seen, task }
    }
}

/// A port that refuses connections, and that nobody else gets meanwhile.
pub struct ClosedPort {
    _socket: TcpSocket,
    pub port: u16,
}

impl ClosedPort {
    pub fn new() -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind(([127, 0, 0, 1], 0).into()).expect("a port");
        let port = socket.local_addr().expect("an address").port();
        Self { _socket: socket, port }
    }
}

/// A node that answers.
pub struct FakeBroker {
    pub port: u16,
    seen: Arc<Mutex<Vec<Ask>>>,
    task: tokio::task::JoinHandle<()>,
}

impl FakeBroker {
    pub async fn start(reply: impl Fn(&Ask) -> Reply + Send + Sync + 'static) -> Self {
        Bound::new().await.serve(reply)
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The requests of one kind so far.
    pub fn seen(&self, api: ApiKey) -> Vec<Ask> {
        self.seen.lock().expect("the log").iter().filter(|ask| ask.api == api).cloned().collect()
    }

    /// All requests so far.
    pub fn count(&self) -> usize {
        self.seen.lock().expect("the log").len()
    }
}

impl Drop for FakeBroker {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn converse(
    mut stream: TcpStream,
    connection: usize,
    reply: &(impl Fn(&Ask) -> Reply + ?Sized),
    log: &Mutex<Vec<Ask>>,
) -> std::io::Result<()> {
    loop {
        let length = stream.read_u32().await?;
        let mut frame = vec![0; length as usize];
        stream.read_exact(&mut frame).await?;
        let ask = parse(connection, frame.into());
        log.lock().expect("the log").push(ask.clone());
        match reply(&ask) {
            Reply::Frame(body) => {
                stream.write_u32(u32::try_from(body.len()).expect("a length")).await?;
                stream.write_all(&body).await?;
            }
            Reply::Bytes(bytes) => stream.write_all(&bytes).await?,
            Reply::BytesThenClose(bytes) => return stream.write_all(&bytes).await,
            Reply::Close => return Ok(()),
            Reply::Silence => {}
        }
    }
}

fn parse(connection: usize, mut frame: Bytes) -> Ask {
    let number = |at: usize| i16::from_be_bytes([frame[at], frame[at + 1]]);
    let (key, version) = (number(0), number(2));
    let api = ApiKey::try_from(key).expect("a request that the library knows");
    let header = RequestHeader::decode(&mut frame, api.request_header_version(version)).expect("a header");
    Ask { connection, api, version, correlation_id: header.correlation_id, body: frame }
}
