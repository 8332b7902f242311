//! The environment of Kafka's own container image as configuration: `KAFKA_NODE_ID` is `node.id`. As in the image, the
//! variables come after the file that is mounted, and what they say counts.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use super::properties::{Properties, PropertiesError};

const PREFIX: &str = "KAFKA_";

/// Variables that have the prefix and mean something else.
const OTHERS: [&str; 11] = [
    "KAFKA_VERSION",
    "KAFKA_HEAP_OPTS",
    "KAFKA_LOG4J_OPTS",
    "KAFKA_OPTS",
    "KAFKA_JMX_OPTS",
    "KAFKA_JVM_PERFORMANCE_OPTS",
    "KAFKA_GC_LOG_OPTS",
    "KAFKA_LOG4J_ROOT_LOGLEVEL",
    "KAFKA_LOG4J_LOGGERS",
    "KAFKA_TOOLS_LOG4J_LOGLEVEL",
    "KAFKA_JMX_HOSTNAME",
];

/// Reads a file's content, and the variables after it. The image writes both to one file, so a variable's value is read
/// with the escapes of properties files.
///
/// # Errors
/// If an escape is malformed.
pub fn read(
    file: &[u8],
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Properties, PropertiesError> {
    let mut text = file.to_vec();
    for (name, value) in variables {
        if let Some(key) = key(&name) {
            text.push(b'\n');
            text.extend_from_slice(key.as_bytes());
            text.push(b'=');
            text.extend_from_slice(value.as_bytes());
        }
    }
    Properties::parse(&text)
}

/// The key that a variable sets: three underscores are a dash, two one underscore, one a dot.
fn key(name: &OsStr) -> Option<String> {
    let name = name.to_str()?;
    let key = name.strip_prefix(PREFIX).filter(|_| !OTHERS.contains(&name))?;
    Some(key.to_lowercase().replace('_', ".").replace("...", "-").replace("..", "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_keys_as_in_kafkas_image() {
        // seen: what the image's own program makes of these
        let names = [
            ("KAFKA_NODE_ID", Some("node.id")),
            ("KAFKA_A___B__C_D", Some("a-b_c.d")),
            ("KAFKA_A____B", Some("a-.b")),
            ("KAFKA_KAFKA_X", Some("kafka.x")),
            ("KAFKA_", Some("")),
            ("KAFKA_JMX_PORT", Some("jmx.port")),
            ("KAFKA_HEAP_OPTS", None),
            ("KAFKA_VERSION", None),
            ("kafka_y", None),
            ("CLUSTER_ID", None),
        ];
        for (name, expected) in names {
            assert_eq!(key(OsStr::new(name)).as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn they_come_after_the_file_and_their_values_are_read_like_its_own() {
        let variables = [("KAFKA_NODE_ID", "2"), ("KAFKA_LOG_DIRS", "/a\\tb"), ("PATH", "/bin")];
        let read = read(b"node.id=1\nbroker.rack=r", variables.map(|(k, v)| (k.into(), v.into()))).unwrap();
        let read: Vec<(&str, &str)> = read.iter().collect();
        assert_eq!(read, [("broker.rack", "r"), ("log.dirs", "/a\tb"), ("node.id", "2")]);
    }
}
