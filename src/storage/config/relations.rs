//! Rules between values: each is fine by itself, and Kafka refuses to start with both.

use std::path::PathBuf;

use super::keys::is_class_name;
use super::{ConfigError, Keys, Roles, items};

/// A value that must not be below another: the keys, and their defaults.
type AtLeast = (&'static str, i64, &'static str, i64);

const AT_LEAST: &[AtLeast] = &[
    ("replica.socket.timeout.ms", 30_000, "replica.fetch.wait.max.ms", 500),
    ("replica.lag.time.max.ms", 30_000, "replica.fetch.wait.max.ms", 500),
    ("group.consumer.max.heartbeat.interval.ms", 15_000, "group.consumer.min.heartbeat.interval.ms", 5_000),
    ("group.consumer.heartbeat.interval.ms", 5_000, "group.consumer.min.heartbeat.interval.ms", 5_000),
    ("group.consumer.max.heartbeat.interval.ms", 15_000, "group.consumer.heartbeat.interval.ms", 5_000),
    ("group.consumer.max.session.timeout.ms", 60_000, "group.consumer.min.session.timeout.ms", 45_000),
    ("group.consumer.session.timeout.ms", 45_000, "group.consumer.min.session.timeout.ms", 45_000),
    ("group.consumer.max.session.timeout.ms", 60_000, "group.consumer.session.timeout.ms", 45_000),
    ("group.consumer.max.assignment.interval.ms", 15_000, "group.consumer.min.assignment.interval.ms", 0),
    ("group.consumer.assignment.interval.ms", 1_000, "group.consumer.min.assignment.interval.ms", 0),
    ("group.consumer.max.assignment.interval.ms", 15_000, "group.consumer.assignment.interval.ms", 1_000),
    ("group.share.max.assignment.interval.ms", 15_000, "group.share.min.assignment.interval.ms", 0),
    ("group.share.assignment.interval.ms", 1_000, "group.share.min.assignment.interval.ms", 0),
    ("group.share.max.assignment.interval.ms", 15_000, "group.share.assignment.interval.ms", 1_000),
    ("group.streams.max.assignment.interval.ms", 15_000, "group.streams.min.assignment.interval.ms", 0),
    ("group.streams.assignment.interval.ms", 1_000, "group.streams.min.assignment.interval.ms", 0),
    ("group.streams.max.assignment.interval.ms", 15_000, "group.streams.assignment.interval.ms", 1_000),
    ("group.share.record.lock.duration.ms", 30_000, "group.share.min.record.lock.duration.ms", 15_000),
    ("group.share.max.record.lock.duration.ms", 60_000, "group.share.record.lock.duration.ms", 30_000),
    ("group.share.max.record.lock.duration.ms", 60_000, "group.share.min.record.lock.duration.ms", 15_000),
    ("group.share.partition.max.record.locks", 2_000, "group.share.min.partition.max.record.locks", 100),
    ("group.share.max.partition.max.record.locks", 4_000, "group.share.partition.max.record.locks", 2_000),
    ("group.share.delivery.count.limit", 5, "group.share.min.delivery.count.limit", 2),
    ("group.share.max.delivery.count.limit", 10, "group.share.delivery.count.limit", 5),
    ("group.share.max.share.sessions", 2_000, "group.share.max.size", 200),
    ("group.streams.task.offset.interval.ms", 60_000, "group.streams.min.task.offset.interval.ms", 15_000),
    ("group.streams.max.standby.replicas", 2, "group.streams.num.standby.replicas", 0),
    ("group.streams.max.warmup.replicas", 20, "group.streams.num.warmup.replicas", 2),
    ("group.share.max.heartbeat.interval.ms", 15_000, "group.share.min.heartbeat.interval.ms", 5_000),
    ("group.share.heartbeat.interval.ms", 5_000, "group.share.min.heartbeat.interval.ms", 5_000),
    ("group.share.max.heartbeat.interval.ms", 15_000, "group.share.heartbeat.interval.ms", 5_000),
    ("group.share.max.session.timeout.ms", 60_000, "group.share.min.session.timeout.ms", 45_000),
    ("group.share.session.timeout.ms", 45_000, "group.share.min.session.timeout.ms", 45_000),
    ("group.share.max.session.timeout.ms", 60_000, "group.share.session.timeout.ms", 45_000),
    ("group.streams.max.heartbeat.interval.ms", 15_000, "group.streams.min.heartbeat.interval.ms", 5_000),
    ("group.streams.heartbeat.interval.ms", 5_000, "group.streams.min.heartbeat.interval.ms", 5_000),
    ("group.streams.max.heartbeat.interval.ms", 15_000, "group.streams.heartbeat.interval.ms", 5_000),
    ("group.streams.max.session.timeout.ms", 60_000, "group.streams.min.session.timeout.ms", 45_000),
    ("group.streams.session.timeout.ms", 45_000, "group.streams.min.session.timeout.ms", 45_000),
    ("group.streams.max.session.timeout.ms", 60_000, "group.streams.session.timeout.ms", 45_000),
];

pub(super) fn check(keys: Keys<'_>, roles: Roles, log_dirs: &[PathBuf], errors: &mut Vec<ConfigError>) {
    for (key, default, other, others_default) in AT_LEAST {
        let (value, least) = (keys.number(key, *default), keys.number(other, *others_default));
        if value < least {
            let wanted = format!("it must not be below {other}, which is {least}");
            errors.push(ConfigError::value(key, &value.to_string(), wanted));
        }
    }
    check_heartbeats(keys, errors);
    check_log(keys, errors);
    check_cleaner(keys, errors);
    check_assignors(keys, errors);
    check_connections(keys, errors);
    let cordoned = keys.get("cordoned.log.dirs").map(items).unwrap_or_default();
    for directory in cordoned.into_iter().filter(|directory| roles.broker && *directory != "*") {
        if !log_dirs.iter().any(|log_dir| log_dir.as_os_str() == directory) {
            errors.push(ConfigError::value("cordoned.log.dirs", directory, "log.dirs has no such directory"));
        }
    }
}

/// A member of a group is heard from more often than it would be missed.
fn check_heartbeats(keys: Keys<'_>, errors: &mut Vec<ConfigError>) {
    for kind in ["consumer", "share", "streams"] {
        let (heartbeat, session) =
            (format!("group.{kind}.heartbeat.interval.ms"), format!("group.{kind}.session.timeout.ms"));
        let (interval, timeout) = (keys.number(&heartbeat, 5_000), keys.number(&session, 45_000));
        if interval >= timeout {
            let wanted = format!("it must be below {session}, which is {timeout}");
            errors.push(ConfigError::value(&heartbeat, &interval.to_string(), wanted));
        }
    }
}

/// The assignors that have names; all others are classes, which only Kafka can look for.
const ASSIGNORS: [(&str, &[&str]); 3] = [
    ("group.consumer.assignors", &["uniform", "range"]),
    ("group.share.assignors", &["simple"]),
    ("group.streams.assignors", &["sticky"]),
];

fn check_assignors(keys: Keys<'_>, errors: &mut Vec<ConfigError>) {
    for (key, known) in ASSIGNORS {
        for item in keys.get(key).map(items).unwrap_or_default() {
            let is_class = item.contains('.') && is_class_name(item);
            if !known.contains(&item) && !is_class {
                let wanted = format!("known are {}, and classes with their packages", known.join(", "));
                errors.push(ConfigError::value(key, item, wanted));
            }
        }
    }
}

fn check_log(keys: Keys<'_>, errors: &mut Vec<ConfigError>) {
    for (key, wanted) in [
        ("log.retention.ms", "it must be -1, for ever, or at least 1"),
        ("log.retention.minutes", "it must be -1, for ever, or at least 1"),
        ("log.retention.hours", "it must be -1, for ever, or at least 1"),
    ] {
        // the first that is set counts
        if let Some(text) = keys.get(key) {
            if text.parse() == Ok(0i64) {
                errors.push(ConfigError::value(key, text, wanted));
            }
            break;
        }
    }
    if let Some(text) = keys.get("log.roll.ms").filter(|text| text.parse::<i64>().is_ok_and(|ms| ms < 1)) {
        errors.push(ConfigError::value("log.roll.ms", text, "it must be at least 1"));
    }
    if let Some(text) =
        keys.get("log.roll.jitter.ms").filter(|text| text.parse::<i64>().is_ok_and(|ms| ms < 0))
    {
        errors.push(ConfigError::value("log.roll.jitter.ms", text, "it must be at least 0"));
    }
    for codec in ["offsets.topic.compression.codec", "share.coordinator.state.topic.compression.codec"] {
        if let Some(text) =
            keys.get(codec).filter(|text| text.parse::<i64>().is_ok_and(|id| !(0..=4).contains(&id)))
        {
            errors.push(ConfigError::value(codec, text, "known are 0 to 4"));
        }
    }
    let gzip = "compression.gzip.level";
    if let Some(text) = keys.get(gzip).filter(|text| text.parse() == Ok(0i64)) {
        errors.push(ConfigError::value(gzip, text, "it must be -1, or from 1 to 9"));
    }
}

/// The log cleaner's least memory a thread, in bytes.
const CLEANER_MEMORY: i64 = 1 << 20;

fn check_cleaner(keys: Keys<'_>, errors: &mut Vec<ConfigError>) {
    let (key, threads) = ("log.cleaner.threads", keys.number("log.cleaner.threads", 1));
    let memory = keys.number("log.cleaner.dedupe.buffer.size", 128 << 20);
    if threads < 1 {
        errors.push(ConfigError::value(key, &threads.to_string(), "it must be at least 1"));
    } else if memory / threads <= CLEANER_MEMORY {
        let wanted = format!("log.cleaner.dedupe.buffer.size, {memory}, must be more than 1 MiB a thread");
        errors.push(ConfigError::value(key, &threads.to_string(), wanted));
    }
}

fn check_connections(keys: Keys<'_>, errors: &mut Vec<ConfigError>) {
    let delay = keys.number("connection.failed.authentication.delay.ms", 100);
    let idle = keys.number("connections.max.idle.ms", 600_000);
    if delay >= idle && idle >= 0 {
        let wanted = format!("it must be below connections.max.idle.ms, which is {idle}");
        errors.push(ConfigError::value(
            "connection.failed.authentication.delay.ms",
            &delay.to_string(),
            wanted,
        ));
    }
    let key = "max.connections.per.ip.overrides";
    let overrides = keys.get(key).map(items).unwrap_or_default();
    for item in &overrides {
        let well_formed =
            item.rsplit_once(':').is_some_and(|(_, number)| number.trim().parse::<i32>().is_ok());
        if !well_formed {
            errors.push(ConfigError::value(key, item, "each is host:number"));
        }
    }
    if keys.number("max.connections.per.ip", 1) == 0 && overrides.is_empty() {
        let wanted = "0 is possible only where max.connections.per.ip.overrides is set";
        errors.push(ConfigError::value("max.connections.per.ip", "0", wanted));
    }
    let (queued, request) =
        (keys.number("queued.max.request.bytes", -1), keys.number("socket.request.max.bytes", 104_857_600));
    if queued > 0 && queued < request {
        let wanted = format!("it must not be below socket.request.max.bytes, which is {request}");
        errors.push(ConfigError::value("queued.max.request.bytes", &queued.to_string(), wanted));
    }
}
