//! The options of the webhook.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use kafka_features_operator::injection::Settings;
use kafka_features_operator::injection::webhook::{Certificates, Webhook};

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Serve the webhook that adds the init containers to labelled pods, where the API server has no policies for it.
    #[arg(long, value_name = "ADDRESS:PORT", requires = "webhook_image")]
    webhook: Option<SocketAddr>,
    /// The operator's image, which the init containers run.
    #[arg(long, value_name = "IMAGE", requires = "webhook")]
    webhook_image: Option<String>,
    /// When the kubelet pulls it.
    #[arg(long, value_name = "POLICY", default_value = "IfNotPresent", value_parser = ["Always", "IfNotPresent", "Never"])]
    webhook_image_pull_policy: String,
    /// A folder with tls.crt and tls.key, such as a mounted Secret of cert-manager's; left out, the operator makes and
    /// renews its certificates itself.
    #[arg(long, value_name = "FOLDER", requires = "webhook")]
    webhook_certificates: Option<PathBuf>,
    /// The Service that the API server reaches the webhook by.
    #[arg(long, value_name = "NAME", default_value = "kafka-features-operator")]
    webhook_service: String,
    /// The Secret that the operator's own certificates are kept in.
    #[arg(long, value_name = "NAME", default_value = "kafka-features-operator-webhook")]
    webhook_secret: String,
    /// How long the operator's own certificates are valid; they are renewed after two thirds of that.
    #[arg(long, value_name = "SECONDS", default_value_t = 90 * 24 * 3600, hide = true, value_parser = clap::value_parser!(u64).range(3..))]
    webhook_lifetime_seconds: u64,
}

impl Options {
    /// The webhook, if one is asked for.
    pub(crate) fn webhook(self, namespace: String) -> Option<Webhook> {
        let (listen, image) = (self.webhook?, self.webhook_image?);
        let certificates = match self.webhook_certificates {
            Some(folder) => Certificates::Folder(folder),
            None => Certificates::Own {
                namespace,
                secret: self.webhook_secret,
                service: self.webhook_service,
                lifetime: Duration::from_secs(self.webhook_lifetime_seconds),
            },
        };
        let injection = Settings { image, pull_policy: self.webhook_image_pull_policy };
        Some(Webhook { listen, injection, certificates })
    }
}
