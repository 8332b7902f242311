//! The small web server that the kubelet and Prometheus ask. It answers reads only and knows nothing but `Telemetry`.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;

use super::Telemetry;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Answers for as long as it is polled.
///
/// # Errors
/// If the listener fails for good.
pub async fn serve(listener: TcpListener, telemetry: Arc<Telemetry>) -> io::Result<()> {
    let routes = Router::new()
        .route("/livez", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .with_state(telemetry);
    axum::serve(listener, routes).await
}

async fn ready(State(telemetry): State<Arc<Telemetry>>) -> impl IntoResponse {
    let phase = telemetry.phase();
    let code = if phase.is_ready() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (code, format!("{phase}\n"))
}

async fn metrics(State(telemetry): State<Arc<Telemetry>>) -> impl IntoResponse {
    let text = telemetry.metrics.write().map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok::<_, StatusCode>(([(CONTENT_TYPE, OPEN_METRICS)], text))
}
