//! The requests that we make of Kafka, with the versions that we speak and the right that each needs.

use kafka_protocol::messages::{
    ApiKey, ApiVersionsRequest, ApiVersionsResponse, DescribeClusterRequest, DescribeClusterResponse,
    DescribeConfigsRequest, DescribeConfigsResponse, DescribeQuorumRequest, DescribeQuorumResponse,
    UpdateFeaturesRequest, UpdateFeaturesResponse,
};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, VersionRange};

/// A request and its answer. All versions are flexible ones (KIP-482), as the guard against counts needs it.
pub(super) trait Rpc: Encodable + HeaderVersion {
    /// Its number.
    const KEY: ApiKey;
    /// Its name in Kafka's documentation.
    const NAME: &'static str;
    /// The right that it needs, as a person would grant it.
    const NEEDS: &'static str;
    /// The versions that we speak.
    const VERSIONS: VersionRange;
    /// What comes back.
    type Answer: Decodable + HeaderVersion;
}

macro_rules! rpc {
    ($request:ty, $answer:ty, $key:ident, $min:literal..=$max:literal, $needs:literal) => {
        impl Rpc for $request {
            const KEY: ApiKey = ApiKey::$key;
            const NAME: &'static str = stringify!($key);
            const NEEDS: &'static str = $needs;
            const VERSIONS: VersionRange = VersionRange { min: $min, max: $max };
            type Answer = $answer;
        }
    };
}

rpc!(ApiVersionsRequest, ApiVersionsResponse, ApiVersions, 3..=4, "nothing");
// Brokers give it to everybody; controllers ask for ALTER (KIP-919).
rpc!(DescribeClusterRequest, DescribeClusterResponse, DescribeCluster, 0..=2, "ALTER on the cluster");
rpc!(DescribeQuorumRequest, DescribeQuorumResponse, DescribeQuorum, 0..=2, "DESCRIBE on the cluster");
rpc!(
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeConfigs,
    4..=4,
    "DESCRIBE_CONFIGS on the cluster"
);
// Version 0 has neither a dry run nor a safe downgrade, and Kafka ignores its AllowDowngrade.
rpc!(UpdateFeaturesRequest, UpdateFeaturesResponse, UpdateFeatures, 1..=2, "ALTER on the cluster");
