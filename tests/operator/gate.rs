//! A way to the API server that a test can shut: it sees each request of the operator, and lets it pass, holds it, or
//! keeps its answer back. What passes is asked of and answered by the real API server, with the operator's own rights.

// each test binary uses its own share
#![allow(dead_code, unreachable_pub, missing_docs)]

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONNECTION, TRANSFER_ENCODING};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use kube::Client;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

const PATIENCE: Duration = Duration::from_secs(60);

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    /// It waits before it reaches the API server.
    Hold,
    /// The API server answers, and the answer waits.
    HoldAnswer,
    /// It does not reach the API server, and fails.
    Fail,
    /// The API server answers, and the asker is told of a failure.
    FailAnswer,
}

/// A request that comes by.
pub struct Asked {
    pub method: Method,
    pub path: String,
    pub body: Bytes,
}

impl Asked {
    /// Whether this is the write of a status that has a change in its history.
    pub fn tells_of_a_change(&self) -> bool {
        let body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        let ours = self.method == Method::PATCH && self.path.ends_with("/status");
        ours && body["status"]["history"].as_array().is_some_and(|history| !history.is_empty())
    }
}

/// One that the client does not try again by itself.
const FAILURE: StatusCode = StatusCode::INTERNAL_SERVER_ERROR;

type Rule = Box<dyn FnMut(&Asked) -> Verdict + Send>;

struct Doorman {
    upstream: Client,
    rule: Mutex<Rule>,
    /// How many were held so far.
    held: watch::Sender<usize>,
    /// How often the gate was opened so far.
    opened: watch::Sender<usize>,
}

pub struct Gate {
    pub kubeconfig: PathBuf,
    doorman: Arc<Doorman>,
    serving: JoinHandle<()>,
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Gate {
    /// A gate that lets everything pass. `kubeconfig` makes the file that leads to it.
    pub async fn build(upstream: Client, kubeconfig: impl FnOnce(&str) -> PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let kubeconfig = kubeconfig(&format!("http://{}", listener.local_addr().unwrap()));
        let doorman = Arc::new(Doorman {
            upstream,
            rule: Mutex::new(Box::new(|_| Verdict::Pass)),
            held: watch::Sender::new(0),
            opened: watch::Sender::new(0),
        });
        let routes = Router::new().fallback(forward).with_state(Arc::clone(&doorman));
        let serving = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self { kubeconfig, doorman, serving }
    }

    /// Decides by a rule from now on.
    pub fn decide(&self, rule: impl FnMut(&Asked) -> Verdict + Send + 'static) {
        *self.doorman.rule.lock().unwrap_or_else(PoisonError::into_inner) = Box::new(rule);
    }

    /// Waits until a request, or an answer, is held that was not when this was called last.
    pub async fn wait_for_held(&self, before: usize) -> usize {
        let mut held = self.doorman.held.subscribe();
        let held = tokio::time::timeout(PATIENCE, held.wait_for(|held| *held > before)).await;
        *held.expect("a request to hold").unwrap()
    }

    /// Lets everything pass, and what was held go on.
    pub fn open(&self) {
        self.decide(|_| Verdict::Pass);
        self.doorman.opened.send_modify(|opened| *opened += 1);
    }
}

impl Doorman {
    async fn hold(&self) {
        let mut opened = self.opened.subscribe();
        opened.mark_unchanged();
        self.held.send_modify(|held| *held += 1);
        let _ = opened.changed().await;
    }

    async fn ask(&self, request: Request<Bytes>) -> Response {
        let request = request.map(|body| kube::client::Body::from(body.to_vec()));
        match self.upstream.send(request).await {
            Ok(answer) => {
                let mut answer = answer.map(Body::new);
                // these are about the connection on the other side
                answer.headers_mut().remove(CONNECTION);
                answer.headers_mut().remove(TRANSFER_ENCODING);
                answer
            }
            Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
        }
    }
}

async fn forward(State(doorman): State<Arc<Doorman>>, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    parts.headers.remove(AUTHORIZATION);
    let body = to_bytes(body, usize::MAX).await.unwrap();
    let asked = Asked { method: parts.method.clone(), path: parts.uri.path().to_owned(), body: body.clone() };
    let verdict = (*doorman.rule.lock().unwrap_or_else(PoisonError::into_inner))(&asked);
    let request = Request::from_parts(parts, body);
    match verdict {
        Verdict::Pass => doorman.ask(request).await,
        Verdict::Hold => {
            doorman.hold().await;
            doorman.ask(request).await
        }
        Verdict::HoldAnswer => {
            let answer = doorman.ask(request).await;
            doorman.hold().await;
            answer
        }
        Verdict::Fail => FAILURE.into_response(),
        Verdict::FailAnswer => {
            doorman.ask(request).await;
            FAILURE.into_response()
        }
    }
}
