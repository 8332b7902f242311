//! Formats the directories of a Kafka node, and tells what they hold.

use std::process::ExitCode;

use kafka_features_operator::cli;

fn main() -> ExitCode {
    cli::storage::main(std::env::args_os())
}
