//! The arrows between the rooms of `docs/architecture.md` point one way, and the pure rooms stay pure.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};

/// A room, the rooms below that it may use, and outside crates that it must not name.
struct Room {
    name: &'static str,
    may_use: &'static [&'static str],
    never: &'static [&'static str],
}

const KUBERNETES: [&str; 2] = ["kube", "k8s_openapi"];

const ROOMS: &[Room] = &[
    Room {
        name: "features",
        may_use: &[],
        never: &[
            "kube",
            "k8s_openapi",
            "kafka_protocol",
            "tokio",
            "futures",
            "serde",
            "schemars",
            "tracing",
            "rand",
        ],
    },
    Room { name: "kafka", may_use: &["features"], never: &KUBERNETES },
    Room {
        name: "storage",
        may_use: &["features"],
        never: &["kube", "k8s_openapi", "tokio", "futures", "clap", "tracing"],
    },
    Room { name: "api", may_use: &["features"], never: &["kafka_protocol", "tokio"] },
    Room {
        name: "grants",
        may_use: &["features", "storage", "api"],
        never: &["kube", "k8s_openapi", "kafka_protocol", "tokio", "futures", "rand"],
    },
    Room { name: "injection", may_use: &["api"], never: &["kafka_protocol"] },
    Room { name: "telemetry", may_use: &[], never: &["kube", "k8s_openapi", "kafka_protocol"] },
    Room {
        name: "controller",
        may_use: &["features", "kafka", "api", "grants", "storage", "telemetry"],
        never: &["kafka_protocol", "axum", "prometheus_client"],
    },
    Room {
        name: "cli",
        may_use: &["features", "storage", "kafka", "api"],
        never: &["kube", "k8s_openapi", "kafka_protocol"],
    },
];

/// The room that must not reach for the world and the clock.
const PURE: &str = "features";

/// What the world and the clock are reached by.
const IMPURE: &[(&str, &str)] = &[
    ("std", "fs"),
    ("std", "io"),
    ("std", "net"),
    ("std", "process"),
    ("std", "thread"),
    ("Instant", "now"),
    ("SystemTime", "now"),
    ("Timestamp", "now"),
    ("Zoned", "now"),
];

/// Every `first::second` pair of a token stream, macros' arguments included, with `use a::{b, c}` spread out.
fn path_pairs(tokens: TokenStream, pairs: &mut BTreeSet<(String, String)>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        if let TokenTree::Group(group) = token {
            path_pairs(group.stream(), pairs);
        }
        let TokenTree::Ident(first) = token else { continue };
        let colon = |n: usize| matches!(tokens.get(at + n), Some(TokenTree::Punct(p)) if p.as_char() == ':');
        if !(colon(1) && colon(2)) {
            continue;
        }
        match tokens.get(at + 3) {
            Some(TokenTree::Ident(second)) => {
                pairs.insert((first.to_string(), second.to_string()));
            }
            Some(TokenTree::Group(group)) => {
                let mut start = true;
                for inner in group.stream() {
                    if let (true, TokenTree::Ident(second)) = (start, &inner) {
                        pairs.insert((first.to_string(), second.to_string()));
                    }
                    start = matches!(&inner, TokenTree::Punct(p) if p.as_char() == ',');
                }
            }
            _ => {}
        }
    }
}

fn pairs_of(text: &str) -> BTreeSet<(String, String)> {
    let mut pairs = BTreeSet::new();
    path_pairs(text.parse().expect("Rust source"), &mut pairs);
    pairs
}

/// What one source text of a room names that it must not.
fn trespasses(room: &Room, text: &str) -> Vec<String> {
    let pairs = pairs_of(text);
    let mut found = Vec::new();
    for (first, second) in &pairs {
        let other_room = ROOMS.iter().any(|other| other.name == second && other.name != room.name);
        let upwards = first == "crate" || first == "super";
        if upwards && other_room && !room.may_use.contains(&second.as_str()) {
            found.push(format!("{} uses {second}", room.name));
        }
        if room.name == PURE && IMPURE.contains(&(first, second)) {
            found.push(format!("{} reaches for {first}::{second}", room.name));
        }
        if room.never.contains(&first.as_str()) {
            found.push(format!("{} names the crate {first}", room.name));
        }
    }
    found
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

#[test]
fn rooms_use_only_the_rooms_below_them() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wrong = Vec::new();
    for room in ROOMS {
        for file in sources(&src.join(room.name)) {
            let text = std::fs::read_to_string(&file).unwrap();
            wrong.extend(
                trespasses(room, &text).into_iter().map(|what| format!("{}: {what}", file.display())),
            );
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_folder_of_the_library_is_a_room_with_rules() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for entry in std::fs::read_dir(src).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let known = ROOMS.iter().any(|room| room.name == name) || ["bin", "lib.rs"].contains(&name.as_str());
        assert!(known, "{name} is no room of this test: add it with what it may use");
    }
}

#[test]
fn the_check_sees_a_room_named_in_any_way() {
    let features = &ROOMS[0];
    for text in [
        "use crate::kafka::Client;",
        "use crate::{plan, kafka};",
        "fn f() { crate::controller::run() }",
        "fn f() { println!(\"{}\", crate::api::GROUP) }",
        "use super::super::kafka;",
        "use tokio::time;",
        "fn f() -> jiff::Timestamp { jiff::Timestamp::now() }",
        "use std::{fs, fmt};",
    ] {
        assert!(!trespasses(features, text).is_empty(), "{text}");
    }
    assert!(trespasses(features, "use crate::features::Level; use std::fmt;").is_empty());
}
