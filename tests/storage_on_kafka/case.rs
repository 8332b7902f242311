//! One call of the tool, and what is on the disk before it. `{DIR}` stands for the folder that it is about.

use std::fs;
use std::path::Path;

/// A call.
#[derive(Clone, Debug, Default)]
pub struct Case {
    pub properties: String,
    pub arguments: Vec<String>,
    /// Files that are there before, with their content; a folder where there is none.
    pub before: Vec<(String, Option<String>)>,
    /// Whether Kafka's tool has formatted everything with the same arguments before.
    pub formatted: bool,
    /// Directories that have been removed since.
    pub removed: Vec<String>,
}

pub const CLUSTER: &str = "5L6g3nShT-eMCtK--X86sw";

/// How a node takes part.
#[derive(Clone, Copy, Debug)]
pub enum Role {
    Broker,
    Controller,
    Both,
}

/// How the quorum begins.
#[derive(Clone, Copy, Debug)]
pub enum Quorum {
    Static,
    Standalone,
    InitialControllers,
    NoInitialControllers,
}

pub const ROLES: [Role; 3] = [Role::Broker, Role::Controller, Role::Both];
pub const QUORUMS: [Quorum; 4] =
    [Quorum::Static, Quorum::Standalone, Quorum::InitialControllers, Quorum::NoInitialControllers];

const INITIAL_CONTROLLERS: &str = "1@localhost:9093:JEXY6aqzQY-32P5TStzaFg,2@host2:9094:MvDxzVmcRsaTz33bUuRU6A,\
                                   3@[::1]:9095:07R5amHmR32VDA6jHkGbTA";

impl Case {
    /// A call that formats a node, `more` being arguments beyond those that it needs.
    pub fn format(role: Role, quorum: Quorum, more: &[&str]) -> Self {
        let properties = match role {
            Role::Broker => "process.roles=broker\nnode.id=7\nlisteners=PLAINTEXT://localhost:9092\n",
            Role::Controller => {
                "process.roles=controller\nnode.id=1\nlisteners=CONTROLLER://localhost:9093\n"
            }
            Role::Both => {
                "process.roles=broker,controller\nnode.id=1\n\
                 listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093\n"
            }
        };
        let servers = match quorum {
            Quorum::Static => "controller.quorum.voters=1@localhost:9093\n",
            _ => "controller.quorum.bootstrap.servers=localhost:9093\n",
        };
        let flags: &[&str] = match quorum {
            Quorum::Static => &[],
            Quorum::Standalone => &["--standalone"],
            Quorum::InitialControllers => &["--initial-controllers", INITIAL_CONTROLLERS],
            Quorum::NoInitialControllers => &["--no-initial-controllers"],
        };
        let mut arguments = vec!["format", "-c", "{DIR}/server.properties", "-t", CLUSTER];
        arguments.extend(flags);
        arguments.extend(more);
        Self {
            properties: format!(
                "{properties}{servers}controller.listener.names=CONTROLLER\nlog.dirs={{DIR}}/data\n"
            ),
            arguments: arguments.into_iter().map(str::to_owned).collect(),
            ..Self::default()
        }
    }

    /// A call of any kind.
    pub fn call(arguments: &[&str]) -> Self {
        Self { arguments: arguments.iter().map(ToString::to_string).collect(), ..Self::default() }
    }

    /// The command, which may be cut short.
    pub fn command(&self) -> &'static str {
        let given = self.arguments[0].as_str();
        let commands = ["format", "info", "random-uuid", "version-mapping", "feature-dependencies"];
        commands.into_iter().find(|command| command.starts_with(given)).unwrap_or("none")
    }

    /// With more lines of configuration, which come last and count.
    pub fn with(mut self, line: &str) -> Self {
        self.properties += line;
        self.properties.push('\n');
        self
    }

    /// Without a key of the configuration.
    pub fn without(mut self, key: &str) -> Self {
        let kept = self.properties.lines().filter(|line| !line.starts_with(&format!("{key}=")));
        self.properties = kept.map(|line| format!("{line}\n")).collect();
        self
    }

    pub fn file(mut self, path: &str, content: &str) -> Self {
        self.before.push((path.to_owned(), Some(content.to_owned())));
        self
    }

    pub fn folder(mut self, path: &str) -> Self {
        self.before.push((path.to_owned(), None));
        self
    }

    pub fn once_formatted(mut self, removed: &[&str]) -> Self {
        self.formatted = true;
        self.removed = removed.iter().map(ToString::to_string).collect();
        self
    }

    pub fn arguments_in(&self, folder: &Path) -> Vec<String> {
        self.arguments.iter().map(|argument| within(argument, folder)).collect()
    }

    /// Puts everything there that is there before.
    pub fn lay_out(&self, folder: &Path) {
        fs::write(folder.join("server.properties"), within(&self.properties, folder)).unwrap();
        for (path, content) in &self.before {
            let path = folder.join(path);
            match content {
                Some(content) => {
                    fs::create_dir_all(path.parent().unwrap()).unwrap();
                    fs::write(path, within(content, folder)).unwrap();
                }
                None => fs::create_dir_all(path).unwrap(),
            }
        }
    }
}

fn within(text: &str, folder: &Path) -> String {
    text.replace("{DIR}", folder.to_str().unwrap())
}
