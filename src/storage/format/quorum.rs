//! The part that a node plays in the quorum of a new cluster, as configuration and arguments say it.

use std::collections::BTreeMap;

use super::{Fault, FormatRequest, InitialQuorum};
use crate::storage::Uuid;
use crate::storage::voters::{self, Voter};

/// The voters that a dynamic quorum begins with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Quorum {
    /// The name of the controllers' listener, and the voters; `None` for a static quorum, or where they are not known.
    pub(super) voters: Option<(String, BTreeMap<i32, Voter>)>,
}

impl Quorum {
    pub(super) fn of(request: &FormatRequest, faults: &mut Vec<Fault>) -> Self {
        let config = &request.config;
        let is_static = !config.static_voters.is_empty();
        if !is_static && !request.software.dynamic_quorums {
            faults.push(Fault::NoDynamicQuorums(request.software.release));
        }
        let flag = match &request.quorum {
            InitialQuorum::Standalone => "--standalone",
            InitialQuorum::InitialControllers(_) => "--initial-controllers",
            InitialQuorum::RunningVoters(_) => "the voters of a running quorum",
            InitialQuorum::Unsaid | InitialQuorum::NoInitialControllers => {
                if request.quorum == InitialQuorum::Unsaid && config.roles.controller && !is_static {
                    faults.push(Fault::QuorumUnsaid);
                }
                return Self::default();
            }
        };
        if is_static && request.begins_cluster() {
            faults.push(Fault::StaticAndDynamic(flag));
        }
        let endpoint = config.controller_endpoint();
        let voters = match &request.quorum {
            InitialQuorum::InitialControllers(text) | InitialQuorum::RunningVoters(text) => {
                voters::parse(text).map_err(Fault::Voters)
            }
            _ if !config.roles.controller => Err(Fault::StandaloneBroker),
            _ => match &endpoint {
                None => Err(Fault::NoControllerListener),
                Some((_, host, port)) => Ok(only_voter(config.node_id, host, *port)),
            },
        };
        let listener = match endpoint {
            Some((listener, ..)) => listener,
            None => {
                config.controller_listener_names.first().map(|name| name.to_uppercase()).unwrap_or_default()
            }
        };
        match voters {
            Ok(voters) => Self { voters: Some((listener, voters)) },
            Err(fault) => {
                faults.push(fault);
                Self::default()
            }
        }
    }

    /// The id of a directory: the one that the voters are told, or a new one.
    pub(super) fn directory_id(&self, request: &FormatRequest, is_metadata: bool) -> Uuid {
        let own = self.own(request).map(|voter| voter.directory_id);
        request.directory_id.or(own).filter(|_| is_metadata).unwrap_or_else(Uuid::random)
    }

    /// What Kafka's tool calls such a directory.
    pub(super) fn kind(&self, request: &FormatRequest, is_metadata: bool) -> &'static str {
        match (is_metadata, &self.voters, self.own(request)) {
            (false, ..) => "data directory",
            (true, None, _) => "metadata directory",
            (true, Some(_), Some(_)) => "dynamic metadata voter directory",
            (true, Some(_), None) => "dynamic metadata directory",
        }
    }

    /// The node as one of the voters; an observer is none of them, even where one has its number.
    fn own(&self, request: &FormatRequest) -> Option<&Voter> {
        if matches!(request.quorum, InitialQuorum::RunningVoters(_)) {
            return None;
        }
        self.voters.as_ref().and_then(|(_, voters)| voters.get(&request.config.node_id))
    }
}

fn only_voter(node_id: i32, host: &str, port: u16) -> BTreeMap<i32, Voter> {
    let voter = Voter { node_id, directory_id: Uuid::random(), host: voters::host_in_records(host), port };
    BTreeMap::from([(node_id, voter)])
}
