//! The operator's binary.

mod webhook;

use std::io::{IsTerminal as _, Read as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use kafka_features_operator::telemetry::{self, Telemetry};
use kafka_features_operator::{api, controller, injection};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// Keeps the feature levels of Kafka clusters as declared in KafkaFeatures resources.
#[derive(Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: Run,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the operator, which is also what is done without a command.
    Run(Run),
    /// Print the definition of the KafkaFeatures resource.
    Crd,
    /// Print the policy by which the API server adds the init containers to labelled pods.
    Policy(Injected),
    /// Print the configuration that has the API server ask the operator's webhook.
    WebhookConfiguration(Configured),
    /// Add the init containers to the pods of a manifest that have the label.
    Inject {
        #[command(flatten)]
        injected: Injected,
        /// The manifest; standard input if left out.
        #[arg(long, short, value_name = "FILE")]
        file: Option<PathBuf>,
    },
}

#[derive(Args, Debug)]
struct Configured {
    /// The Service that the API server reaches the webhook by.
    #[arg(long, default_value = "kafka-features-operator")]
    service: String,
    /// Its namespace.
    #[arg(long, default_value = "kafka-features-operator")]
    namespace: String,
}

#[derive(Args, Debug)]
struct Injected {
    /// The operator's image, which the init containers run.
    #[arg(long)]
    image: String,
    /// When the kubelet pulls it.
    #[arg(long, default_value = "IfNotPresent", value_parser = ["Always", "IfNotPresent", "Never"])]
    image_pull_policy: String,
}

impl Injected {
    fn settings(self) -> injection::Settings {
        injection::Settings { image: self.image, pull_policy: self.image_pull_policy }
    }
}

#[derive(Args, Debug)]
struct Run {
    /// The one namespace whose resources are looked after; all, if left out.
    #[arg(long)]
    namespace: Option<String>,
    /// Where /livez, /readyz and /metrics are served.
    #[arg(long, default_value = "0.0.0.0:8080", value_name = "ADDRESS:PORT")]
    listen: SocketAddr,
    #[command(flatten)]
    lease: Lease,
    #[command(flatten)]
    webhook: webhook::Options,
}

#[derive(Args, Debug)]
struct Lease {
    /// The Lease that decides which of several replicas acts.
    #[arg(long, default_value = "kafka-features-operator", value_name = "NAME")]
    lease_name: String,
    /// The Lease's namespace; the pod's own if left out, and "default" outside a pod.
    #[arg(long, value_name = "NAMESPACE")]
    lease_namespace: Option<String>,
    /// How long a replica that fell silent keeps the others waiting.
    #[arg(long, default_value_t = 15, value_name = "SECONDS", value_parser = clap::value_parser!(u16).range(3..=3600))]
    lease_seconds: u16,
    /// Take no lease: only where there is one replica.
    #[arg(long, conflicts_with_all = ["lease_name", "lease_namespace", "lease_seconds"])]
    no_lease: bool,
}

impl Lease {
    fn terms(self) -> Option<controller::Terms> {
        if self.no_lease {
            return None;
        }
        let namespace = self.lease_namespace.or_else(own_namespace).unwrap_or_else(|| "default".to_owned());
        // a replica that starts again in the same pod is another holder
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let holder = format!("{host}_{:016x}", rand::random::<u64>());
        let duration = Duration::from_secs(self.lease_seconds.into());
        Some(controller::Terms { namespace, name: self.lease_name, holder, duration })
    }
}

/// The namespace of the pod that this runs in, if it does.
fn own_namespace() -> Option<String> {
    let text = std::fs::read_to_string("/var/run/secrets/kubernetes.io/serviceaccount/namespace").ok()?;
    Some(text.trim().to_owned()).filter(|namespace| !namespace.is_empty())
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.command.unwrap_or(Command::Run(arguments.run)) {
        Command::Run(arguments) => run(arguments),
        Command::Policy(injected) => {
            injection::policy_yaml(&injected.settings()).map(|yaml| print!("{yaml}")).map_err(Into::into)
        }
        Command::WebhookConfiguration(Configured { service, namespace }) => {
            injection::webhook::configuration_yaml(&namespace, &service)
                .map(|yaml| print!("{yaml}"))
                .map_err(Into::into)
        }
        Command::Inject { injected, file } => inject(&injected.settings(), file.as_deref()),
        Command::Crd => api::definition_yaml().map(|yaml| print!("{yaml}")).map_err(Into::into),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kafka-features-operator: {error}");
            ExitCode::FAILURE
        }
    }
}

fn inject(settings: &injection::Settings, file: Option<&Path>) -> Result<(), Box<dyn std::error::Error>> {
    let text = match file {
        Some(path) => {
            std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?
        }
        None => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text)?;
            text
        }
    };
    print!("{}", injection::manifest::inject_manifest(&text, settings)?);
    Ok(())
}

#[tokio::main]
async fn run(arguments: Run) -> Result<(), Box<dyn std::error::Error>> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let colours = std::io::stderr().is_terminal();
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colours).with_writer(std::io::stderr).init();
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let shutdown = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("shutting down once the passes under way have ended");
    };
    let listener = TcpListener::bind(arguments.listen).await.map_err(|error| {
        format!("can't listen on {}: {error}; give another address with --listen", arguments.listen)
    })?;
    tracing::info!(address = %listener.local_addr()?, "serving /livez, /readyz and /metrics");
    let telemetry = Arc::new(Telemetry::default());
    let client = kube::Client::try_default().await?;
    let settings = controller::Settings {
        namespace: arguments.namespace,
        lease: arguments.lease.terms(),
        ..Default::default()
    };
    let namespace = own_namespace().unwrap_or_else(|| "default".to_owned());
    let webhook = arguments.webhook.webhook(namespace);
    let injecting = {
        let client = client.clone();
        async move {
            match webhook {
                Some(webhook) => injection::webhook::serve(client, webhook).await,
                None => std::future::pending().await,
            }
        }
    };
    tokio::select! {
        failed = injecting => Ok(failed?),
        ended = controller::run(client, settings, Arc::clone(&telemetry), shutdown) => Ok(ended?),
        failed = telemetry::serve(listener, telemetry) => Ok(failed?),
    }
}
