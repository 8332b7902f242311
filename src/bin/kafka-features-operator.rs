//! The operator's binary.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use kafka_features_operator::{api, controller};
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
}

#[derive(Args, Debug)]
struct Run {
    /// The one namespace whose resources are looked after; all, if left out.
    #[arg(long)]
    namespace: Option<String>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.command.unwrap_or(Command::Run(arguments.run)) {
        Command::Run(arguments) => run(arguments),
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
    let client = kube::Client::try_default().await?;
    let settings = controller::Settings { namespace: arguments.namespace, ..Default::default() };
    controller::run(client, settings, shutdown).await;
    Ok(())
}
