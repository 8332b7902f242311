//! Every key that Kafka 4.4 knows, with the kind and the limits of its value: Kafka's tool refuses to format with a
//! configuration that Kafka would not start with, however little the key has to do with formatting. The table is
//! generated from Kafka's own definition, and a test compares it with that.

use crate::storage::properties::Properties;

use super::ConfigError;

/// Name, kind and limits of each key.
pub const TABLE: &str = include_str!("keys.tsv");

/// What a value must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Boolean,
    Short,
    Int,
    Long,
    Double,
    List,
    Class,
    Text,
}

impl Kind {
    fn of(name: &str) -> Self {
        match name {
            "boolean" => Self::Boolean,
            "short" => Self::Short,
            "int" => Self::Int,
            "long" => Self::Long,
            "double" => Self::Double,
            "list" => Self::List,
            "class" => Self::Class,
            _ => Self::Text,
        }
    }
}

/// Finds every value that is not what its key takes. Keys that Kafka does not know mean nothing to it.
pub(super) fn check(properties: &Properties, errors: &mut Vec<ConfigError>) {
    for line in TABLE.lines() {
        let mut columns = line.split('\t');
        let (Some(key), Some(kind)) = (columns.next(), columns.next()) else { continue };
        let limits = columns.next().unwrap_or_default();
        if let Some(value) = properties.get(key)
            && let Err(wanted) = check_value(Kind::of(kind), limits, value.trim())
        {
            errors.push(ConfigError::value(key, value, wanted));
        }
    }
}

fn check_value(kind: Kind, limits: &str, value: &str) -> Result<(), String> {
    match kind {
        Kind::Boolean => {
            let known = ["true", "false"].iter().any(|known| value.eq_ignore_ascii_case(known));
            known.then_some(()).ok_or_else(|| "true or false is wanted".to_owned())
        }
        Kind::Short => number(value, i64::from(i16::MIN), i64::from(i16::MAX), limits),
        Kind::Int => number(value, i64::from(i32::MIN), i64::from(i32::MAX), limits),
        Kind::Long => number(value, i64::MIN, i64::MAX, limits),
        Kind::Double => double(value, limits),
        Kind::Class if !is_class_name(value) => Err("a class is wanted".to_owned()),
        // whether there is such a class only a JVM can tell
        Kind::Class => Ok(()),
        Kind::List => list(value, limits),
        Kind::Text => text(value, limits),
    }
}

/// Whether a class can have such a name.
pub(super) fn is_class_name(text: &str) -> bool {
    text.split('.').all(|part| {
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        part.starts_with(|c: char| is_part(c) && !c.is_numeric()) && part.chars().all(is_part)
    })
}

fn number(value: &str, least: i64, most: i64, limits: &str) -> Result<(), String> {
    let (low, high) = limits.split_once("..").unwrap_or_default();
    let bound = |text: &str, otherwise: i64| text.parse().unwrap_or(otherwise);
    let (low, high) = (bound(low, least), bound(high, most));
    match value.parse::<i64>() {
        Ok(number) if (low..=high).contains(&number) => Ok(()),
        _ => Err(format!("a whole number from {low} to {high} is wanted")),
    }
}

fn double(value: &str, limits: &str) -> Result<(), String> {
    let (low, high) = limits.split_once("..").unwrap_or_default();
    let bound = |text: &str, otherwise: f64| text.parse().unwrap_or(otherwise);
    let (low, high) = (bound(low, f64::NEG_INFINITY), bound(high, f64::INFINITY));
    // Java takes a suffix that says which kind of number it is
    let digits = value.strip_suffix(['d', 'D', 'f', 'F']).unwrap_or(value);
    match digits.parse::<f64>() {
        Ok(number) if low <= number && number <= high => Ok(()),
        _ => Err(format!("a number from {low} to {high} is wanted")),
    }
}

fn list(value: &str, limits: &str) -> Result<(), String> {
    let (rule, known) = limits.split_once(' ').unwrap_or((limits, ""));
    let items = super::items(value);
    if items.is_empty() && rule == "not-empty" {
        return Err("it must not be empty".to_owned());
    }
    // the lists without limits check their items by themselves
    if !rule.is_empty() && items.iter().any(|item| item.is_empty()) {
        return Err("none of its items may be empty".to_owned());
    }
    let known: Vec<&str> = known.split(',').filter(|known| !known.is_empty()).collect();
    if !known.is_empty() && items.iter().any(|item| !known.contains(item)) {
        return Err(format!("known are {}", known.join(", ")));
    }
    Ok(())
}

fn text(value: &str, limits: &str) -> Result<(), String> {
    let (rule, known) = limits.split_once(' ').unwrap_or((limits, ""));
    let is = |known: &str| match rule {
        "any-case" => value.eq_ignore_ascii_case(known),
        _ => value == known,
    };
    match rule {
        "not-empty" if value.is_empty() => Err("it must not be empty".to_owned()),
        "one-of" | "any-case" if !known.split(',').any(is) => {
            Err(format!("known are {}", known.replace(',', ", ")))
        }
        _ => Ok(()),
    }
}
