//! The operator's binary.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use kafka_features_operator::api;

/// Keeps the feature levels of Kafka clusters as declared in KafkaFeatures resources.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print the definition of the KafkaFeatures resource.
    Crd,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match arguments.command {
        Some(Command::Crd) | None => match api::definition_yaml() {
            Ok(yaml) => {
                print!("{yaml}");
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("kafka-features-operator: {error}");
                ExitCode::FAILURE
            }
        },
    }
}
