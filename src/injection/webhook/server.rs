//! The web server that the API server asks: TLS with whatever certificate is current, and bounds on size and time.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use std::{future, io};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use axum::serve::Listener;
use rustls::ServerConfig;
use rustls::server::ResolvesServerCert;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::certificates::Current;
use super::review;
use crate::injection::Settings;

/// The API server takes no larger objects.
const LONGEST_REVIEW: usize = 3 << 20;
/// How long a connection may take to shake hands.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// So many connections may shake hands at once.
const HANDSHAKES: usize = 64;

/// Answers for as long as it is polled.
pub(super) async fn serve(
    listener: TcpListener,
    current: Arc<Current>,
    settings: Settings,
) -> io::Result<()> {
    let routes = Router::new()
        .route("/inject", post(inject))
        .route("/healthz", get(async || "ok\n"))
        .layer(DefaultBodyLimit::max(LONGEST_REVIEW))
        .with_state(Arc::new(settings));
    let local = listener.local_addr()?;
    let resolver: Arc<dyn ResolvesServerCert> = current;
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_cert_resolver(resolver);
    let (ready, shaken) = mpsc::channel(HANDSHAKES);
    let accepting = accept(listener, TlsAcceptor::from(Arc::new(config)), ready);
    tokio::select! {
        served = axum::serve(Shaken { shaken, local }, routes) => served,
        () = accepting => Ok(()),
    }
}

async fn inject(State(settings): State<Arc<Settings>>, review: Bytes) -> impl IntoResponse {
    match review::answer(&review, &settings) {
        Ok(answer) => (StatusCode::OK, [(CONTENT_TYPE, "application/json")], answer.to_string()),
        Err(error) => (StatusCode::BAD_REQUEST, [(CONTENT_TYPE, "text/plain")], format!("{error}\n")),
    }
}

type Connection = (TlsStream<TcpStream>, SocketAddr);

/// Takes connections, and passes them on once they have shaken hands: a slow one keeps none of the others.
async fn accept(listener: TcpListener, acceptor: TlsAcceptor, ready: mpsc::Sender<Connection>) {
    let room = Arc::new(Semaphore::new(HANDSHAKES));
    let mut listener = listener;
    loop {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else { return };
        let (stream, peer) = Listener::accept(&mut listener).await;
        let (acceptor, ready) = (acceptor.clone(), ready.clone());
        tokio::spawn(async move {
            let _place = place;
            match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
                Ok(Ok(stream)) => _ = ready.send((stream, peer)).await,
                Ok(Err(error)) => tracing::debug!(%peer, %error, "a connection to the webhook failed"),
                Err(_) => tracing::debug!(%peer, "a connection to the webhook was too slow"),
            }
        });
    }
}

/// Connections that have shaken hands.
struct Shaken {
    shaken: mpsc::Receiver<Connection>,
    local: SocketAddr,
}

impl Listener for Shaken {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.shaken.recv().await {
            Some(connection) => connection,
            // nobody takes any more
            None => future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.local)
    }
}
