//! stub
#![allow(missing_docs)]
use std::collections::BTreeMap;
#[derive(Clone, Debug, Default)]
pub struct Properties(BTreeMap<String, String>);
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("x")]
pub struct PropertiesError;
impl Properties {
    pub fn parse(bytes: &[u8]) -> Result<Self, PropertiesError> {
        let text = String::from_utf8_lossy(bytes);
        Ok(Self(
            text.lines()
                .filter(|l| !l.starts_with('#'))
                .filter_map(|l| l.split_once('='))
                .map(|(a, b)| (a.into(), b.into()))
                .collect(),
        ))
    }
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }
}
pub fn escape_value(value: &str) -> String {
    let mut out = String::new();
    for (at, c) in value.chars().enumerate() {
        if c == ' ' && at == 0 || "=:#!\\".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
