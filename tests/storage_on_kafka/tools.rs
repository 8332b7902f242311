//! Runs both tools on a case, each in a folder of its own, and tells the first difference.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::case::Case;
use crate::disk;
use crate::testbed::Oracle;

struct Run {
    succeeded: bool,
    stdout: String,
    stderr: String,
}

/// Compares the two tools on a case.
///
/// # Errors
/// The difference, with all that is needed to see it again.
pub fn compare(version: &str, case: &Case) -> Result<(), String> {
    let (theirs, ours) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for folder in [theirs.path(), ours.path()] {
        case.lay_out(folder);
    }
    if case.formatted {
        let first = kafkas(version, case, theirs.path());
        assert!(first.succeeded, "{case:?}: {}", first.stderr);
        for removed in &case.removed {
            fs::remove_dir_all(theirs.path().join(removed)).unwrap();
        }
        copy(theirs.path(), theirs.path(), ours.path());
    }
    let kafkas = kafkas(version, case, theirs.path());
    let our = our(version, case, ours.path());
    let tell = |what: &str, kafkas_part: &str, our_part: &str| {
        format!(
            "{:?}\n{}{what}: Kafka's: {kafkas_part}\n{what}: ours:    {our_part}\nKafka's errors: {}\nour errors: {}",
            case.arguments,
            case.properties,
            kafkas.stderr.lines().next().unwrap_or_default(),
            our.stderr
        )
    };
    if kafkas.succeeded != our.succeeded {
        return Err(tell("succeeded", &kafkas.succeeded.to_string(), &our.succeeded.to_string()));
    }
    let (their_lines, our_lines) =
        (lines(version, case, &kafkas.stdout, theirs.path()), lines(version, case, &our.stdout, ours.path()));
    if their_lines != our_lines {
        return Err(tell("said", &their_lines.join("\n"), &our_lines.join("\n")));
    }
    // where both fail, Kafka's may have begun to write, which ours never has
    if !kafkas.succeeded {
        return Ok(());
    }
    let (theirs, ours) = (disk::contents(theirs.path()), disk::contents(ours.path()));
    for path in theirs.keys().chain(ours.keys()) {
        let part =
            |contents: &disk::Contents| contents.get(path).cloned().unwrap_or_else(|| "nothing".to_owned());
        if theirs.get(path) != ours.get(path) {
            return Err(tell(path, &part(&theirs), &part(&ours)));
        }
    }
    Ok(())
}

fn kafkas(version: &str, case: &Case, folder: &Path) -> Run {
    let arguments = case.arguments_in(folder);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let answer = Oracle::of(version).run("kafka-storage", &arguments);
    Run { succeeded: answer.exit == 0, stdout: answer.stdout, stderr: answer.stderr }
}

fn our(version: &str, case: &Case, folder: &Path) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kafka-storage"));
    command.args(case.arguments_in(folder));
    // what Kafka's tool takes from itself, ours is told
    if ["format", "info"].contains(&case.command()) {
        command.args(["--kafka-version", version]);
    }
    let output = command.env_remove("RUST_BACKTRACE").output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    assert!(output.status.code().is_some(), "{case:?} ended by a signal");
    Run { succeeded: output.status.success(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// What a script would read of the output.
fn lines(version: &str, case: &Case, stdout: &str, folder: &Path) -> Vec<String> {
    let stdout = stdout.replace(folder.to_str().unwrap(), "{DIR}");
    match case.command() {
        "format" => {
            let told = |line: &&str| line.starts_with("Formatting ") || line.starts_with("All of the log");
            let tells_kinds = !["3.7.2", "3.8.1"].contains(&version);
            let line = |line: &str| if tells_kinds { line.to_owned() } else { without_kind(line) };
            let mut lines: Vec<String> = stdout.lines().filter(told).map(line).collect();
            lines.sort();
            if !tells_kinds {
                lines.dedup();
            }
            lines
        }
        "info" => {
            let ours = ["Found bootstrap state", "Found note"];
            let told = |paragraph: &&str| {
                let paragraph = paragraph.trim_start();
                paragraph.starts_with("Found ") && !ours.iter().any(|ours| paragraph.starts_with(ours))
            };
            // why a file can't be read is told in words of our own
            let loading = |line: &str| {
                line.split_once("meta.properties: ").map_or(line.to_owned(), |(head, _)| head.to_owned())
            };
            // Kafka's prints stack traces before it begins
            let begun: Vec<&str> = stdout.lines().skip_while(|line| !line.starts_with("Found ")).collect();
            let begun = begun.join("\n");
            let paragraphs = begun.split("\n\n").filter(told);
            paragraphs
                .flat_map(|paragraph| paragraph.trim().lines().map(loading).collect::<Vec<_>>())
                .collect()
        }
        "random-uuid" => Vec::new(),
        _ => stdout.lines().map(str::to_owned).collect(),
    }
}

/// The line that tells of a directory, without the directory's kind: before Kafka 3.9 the tool did not tell it, and told of
/// each directory as often as there are directories.
fn without_kind(line: &str) -> String {
    match line.split_once("{DIR}") {
        Some((_kind, rest)) => format!("Formatting {{DIR}}{rest}"),
        None => line.to_owned(),
    }
}

/// Copies what was formatted, with the paths in the configuration made those of the new place.
fn copy(from: &Path, root: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.strip_prefix(root).unwrap());
        if path.is_dir() {
            fs::create_dir_all(&target).unwrap();
            copy(&path, root, to);
        } else if path.file_name().unwrap() != "server.properties" {
            fs::copy(&path, &target).unwrap();
        }
    }
}
