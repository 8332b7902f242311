//! The arguments of `kafka-storage`: those of Kafka 4.4's own tool, and a few of ours. Long options and commands may be cut
//! short where that is unambiguous, and of an option that is repeated the last counts.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use secrecy::SecretString;

use crate::storage::software::NEWEST;

/// Formats the directories of a Kafka node, and tells what they hold.
#[derive(Debug, Parser)]
#[command(
    name = "kafka-storage",
    version,
    infer_subcommands = true,
    infer_long_args = true,
    args_override_self = true
)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Show what the node's directories hold.
    #[command(infer_long_args = true, args_override_self = true)]
    Info(Info),
    /// Format the node's directories.
    #[command(infer_long_args = true, args_override_self = true)]
    Format(Box<Format>),
    /// Show the levels that a release stands for.
    #[command(infer_long_args = true, args_override_self = true)]
    VersionMapping(VersionMapping),
    /// Show what levels of features need.
    #[command(alias = "dependencies", infer_long_args = true)]
    FeatureDependencies(FeatureDependencies),
    /// Print a new random id.
    RandomUuid,
    /// What the operator's init containers run.
    #[command(subcommand, hide = true)]
    Pod(Pod),
}

/// What the operator's init containers run. Both end with a report, as the container's termination message.
#[derive(Debug, Subcommand)]
pub(super) enum Pod {
    /// Look at the node's directories.
    Look(InPod),
    /// Format them once there is a grant, if that is necessary.
    Format(InPod),
}

/// Where an init container finds what it needs.
#[derive(Args, Debug)]
pub(super) struct InPod {
    /// Where the report is written.
    #[arg(long, value_name = "FILE", default_value = "/dev/termination-log")]
    pub(super) report: PathBuf,
    /// Where the grant appears.
    #[arg(long, value_name = "FILE", default_value = "/run/kafka-features/grant/grant")]
    pub(super) grant: PathBuf,
    /// The folder with SCRAM users, if there are any.
    #[arg(long, value_name = "FOLDER", default_value = "/run/kafka-features/scram")]
    pub(super) scram: PathBuf,
    /// The properties file that Kafka's own image puts its variables after, if there is one.
    #[arg(long, value_name = "FILE", default_value = "/mnt/shared/config/server.properties")]
    pub(super) image_properties: PathBuf,
}

impl Command {
    pub(super) fn output(&self) -> Output {
        match self {
            Self::Format(format) => format.output,
            Self::Info(info) => info.output,
            _ => Output::Text,
        }
    }
}

/// Who the output is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Output {
    /// People, and scripts that read what Kafka's tool prints.
    #[default]
    Text,
    /// Machines: one JSON object.
    Json,
}

/// Where the node's configuration comes from.
#[derive(Args, Debug)]
pub(super) struct Configuration {
    /// The node's properties file.
    #[arg(long, short, value_name = "FILE", required_unless_present = "environment")]
    pub(super) config: Option<PathBuf>,
    /// Take the configuration from the KAFKA_… variables of Kafka's own container image, on top of --config if that is
    /// given.
    #[arg(long)]
    pub(super) environment: bool,
}

#[derive(Args, Debug)]
pub(super) struct Info {
    #[command(flatten)]
    pub(super) configuration: Configuration,
    /// The Kafka software that is to start on the directories.
    #[arg(long, value_name = "VERSION", default_value = NEWEST)]
    pub(super) kafka_version: String,
    /// Who the output is for.
    #[arg(long, value_enum, default_value_t)]
    pub(super) output: Output,
}

#[derive(Args, Debug)]
pub(super) struct Format {
    #[command(flatten)]
    pub(super) configuration: Configuration,
    /// The cluster's id.
    #[arg(long, short = 't', value_name = "ID", allow_hyphen_values = true, value_parser = cluster_id)]
    pub(super) cluster_id: Option<String>,
    /// A SCRAM user, such as 'SCRAM-SHA-256=[name=alice,password=…]'. Others on this machine can read arguments: prefer
    /// --add-scram-file. Can be repeated.
    #[arg(
        long,
        short = 'S',
        value_name = "USER",
        aliases = ["a", "ad", "add", "add-", "add-s", "add-sc", "add-scr", "add-scra"]
    )]
    pub(super) add_scram: Vec<SecretString>,
    /// A file with SCRAM users, one a line. Can be repeated.
    #[arg(long, value_name = "FILE")]
    pub(super) add_scram_file: Vec<PathBuf>,
    /// Leave directories that are formatted already alone, and format the others.
    #[arg(long, short = 'g')]
    pub(super) ignore_formatted: bool,
    /// The release whose levels the cluster begins with, such as 4.3 or 4.3-IV0; the lowest is 3.3-IV3, and the default the
    /// latest stable one of --kafka-version.
    #[arg(long, short, value_name = "RELEASE")]
    pub(super) release_version: Option<String>,
    /// A feature's level, as name=level. Can be repeated.
    #[arg(long, short, value_name = "NAME=LEVEL")]
    pub(super) feature: Vec<String>,
    #[command(flatten)]
    pub(super) quorum: Quorum,
    /// The Kafka software that is to start on the directories: it decides how they are laid out.
    #[arg(long, value_name = "VERSION", default_value = NEWEST)]
    pub(super) kafka_version: String,
    /// Brokers of the running cluster, as host:port, separated by commas: the cluster's id is taken from there.
    #[arg(long, value_name = "ADDRESSES", value_delimiter = ',')]
    pub(super) bootstrap_server: Vec<String>,
    /// Controllers of the running cluster, the same way.
    #[arg(long, value_name = "ADDRESSES", value_delimiter = ',')]
    pub(super) bootstrap_controller: Vec<String>,
    /// Who the output is for.
    #[arg(long, value_enum, default_value_t)]
    pub(super) output: Output,
}

/// How the quorum of a dynamic cluster begins.
#[derive(Args, Debug)]
#[group(multiple = false)]
pub(super) struct Quorum {
    /// This controller is the only voter.
    #[arg(long, short)]
    pub(super) standalone: bool,
    /// This node joins a quorum that begins elsewhere.
    #[arg(long, short = 'N')]
    pub(super) no_initial_controllers: bool,
    /// The voters that the quorum begins with, each as id@host:port:directory-id, separated by commas; the same for all
    /// nodes.
    #[arg(long, short = 'I', value_name = "VOTERS")]
    pub(super) initial_controllers: Option<String>,
}

#[derive(Args, Debug)]
pub(super) struct VersionMapping {
    /// The release; the latest stable one if left out.
    #[arg(long, short, value_name = "RELEASE")]
    pub(super) release_version: Option<String>,
}

#[derive(Args, Debug)]
pub(super) struct FeatureDependencies {
    /// A feature's level, as name=level. Can be repeated.
    #[arg(long, short, value_name = "NAME=LEVEL", required = true)]
    pub(super) feature: Vec<String>,
}

/// Any text is a cluster's id, one that begins with a dash included; but not an option whose value was forgotten.
fn cluster_id(text: &str) -> Result<String, String> {
    use clap::CommandFactory as _;
    let command = Arguments::command();
    let format = command.find_subcommand("format");
    let options: Vec<&clap::Arg> = format.into_iter().flat_map(clap::Command::get_arguments).collect();
    let is_option = |option: &&clap::Arg| {
        let long = option.get_long().map(|long| format!("--{long}"));
        let short = option.get_short().map(|short| format!("-{short}"));
        let name = text.split('=').next();
        long.as_deref() == name || short.as_deref() == Some(text)
    };
    if options.iter().any(is_option) {
        return Err(format!(
            "the id is missing: {text} is an option; an id of that text is given as --cluster-id={text}"
        ));
    }
    Ok(text.to_owned())
}
