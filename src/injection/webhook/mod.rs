//! The injection as a mutating webhook, for API servers that have no policies. It fails closed for pods with the label, and
//! no other pod depends on it.

mod certificates;
mod configuration;
mod review;
mod secret;
mod server;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::net::TcpListener;

pub use configuration::configuration_yaml;

use super::Settings;
use certificates::{Current, Lifetimes};

/// How the webhook is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// Where it listens.
    pub listen: SocketAddr,
    /// What is added to pods.
    pub injection: Settings,
    /// Where its certificates come from.
    pub certificates: Certificates,
}

/// Where the webhook's certificates come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Certificates {
    /// A folder with `tls.crt` and `tls.key`, such as a mounted Secret of cert-manager's, which also sees to the
    /// configuration's `caBundle`.
    Folder(PathBuf),
    /// Made and renewed by the operator itself, and kept in a Secret that all replicas share.
    Own {
        /// The Secret's namespace.
        namespace: String,
        /// The Secret's name.
        secret: String,
        /// The name of the Service that the API server reaches the webhook by, in the same namespace.
        service: String,
        /// How long a certificate is valid; it is renewed after two thirds of that.
        lifetime: Duration,
    },
}

/// Why the webhook can't be served.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// The address can't be listened on.
    #[error("can't listen on {address}: {error}; give another address with --webhook")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        error: std::io::Error,
    },
    /// The server has ended.
    #[error("the webhook's server has ended: {0}")]
    Served(std::io::Error),
}

/// Serves the webhook for as long as it is polled. It takes connections once it has a certificate.
///
/// # Errors
/// If it can't listen, or the listener fails for good.
pub async fn serve(client: Client, webhook: Webhook) -> Result<(), WebhookError> {
    let address = webhook.listen;
    let listener =
        TcpListener::bind(address).await.map_err(|error| WebhookError::Listen { address, error })?;
    let current = Arc::new(Current::default());
    let keeping = {
        let current = Arc::clone(&current);
        async move {
            match webhook.certificates {
                Certificates::Folder(folder) => certificates::follow(&folder, &current).await,
                Certificates::Own { namespace, secret, service, lifetime } => {
                    let names = vec![format!("{service}.{namespace}.svc"), "localhost".to_owned()];
                    let keeper =
                        secret::Keeper::new(client, &namespace, &secret, names, Lifetimes::of(lifetime));
                    keeper.keep(&current).await;
                }
            }
        }
    };
    tracing::info!(%address, "serving the webhook");
    tokio::select! {
        served = server::serve(listener, current, webhook.injection) => served.map_err(WebhookError::Served),
        () = keeping => Ok(()),
    }
}
