//! Arguments as Kafka's tools take them, where the parser does not by itself: one that begins with `@` names a file that
//! holds arguments, one a line.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use super::{Failure, Status};

/// No file of arguments, or of SCRAM users, is longer.
const LONGEST_FILE: u64 = 1 << 20;
/// Files may name files, but not for ever.
const DEEPEST: u32 = 8;

/// The arguments with those of files in place of the files' names. The first, the tool's own name, stays.
pub(super) fn expand(arguments: impl IntoIterator<Item = OsString>) -> Result<Vec<OsString>, Failure> {
    let mut arguments = arguments.into_iter();
    let mut expanded: Vec<OsString> = arguments.next().into_iter().collect();
    for argument in arguments {
        expand_one(argument, DEEPEST, &mut expanded)?;
    }
    Ok(expanded)
}

fn expand_one(argument: OsString, deeper: u32, expanded: &mut Vec<OsString>) -> Result<(), Failure> {
    let Some(path) = argument.as_bytes().strip_prefix(b"@") else {
        expanded.push(argument);
        return Ok(());
    };
    let path = OsString::from_vec(path.to_vec());
    if deeper == 0 {
        let message =
            format!("@{}: files of arguments name each other more than {DEEPEST} deep", path.display());
        return Err(Failure::new(Status::Usage, message));
    }
    let text = read(Path::new(&path))
        .map_err(|error| Failure::new(Status::Usage, format!("@{}: {error}", path.display())))?;
    for line in lines(&text) {
        expand_one(OsString::from_vec(line.to_vec()), deeper - 1, expanded)?;
    }
    Ok(())
}

/// A file's content, unless there is too much of it.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    file.take(LONGEST_FILE + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > LONGEST_FILE {
        return Err(format!("it is longer than {LONGEST_FILE} bytes"));
    }
    Ok(bytes)
}

/// The lines of a text, without what ends them.
pub(super) fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let lines = text.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    lines.take(if text.is_empty() { 0 } else { usize::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand_texts(arguments: &[&str]) -> Result<Vec<String>, Failure> {
        let expanded = expand(arguments.iter().map(OsString::from))?;
        Ok(expanded.into_iter().map(|argument| argument.into_string().unwrap()).collect())
    }

    #[test]
    fn a_file_stands_for_its_lines() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        std::fs::write(&inner, "--feature\ngroup.version=1").unwrap();
        let outer = folder.path().join("outer");
        std::fs::write(&outer, format!("-t\r\nmy cluster\n@{}\n\n", inner.display())).unwrap();
        let expanded = expand_texts(&["tool", "format", &format!("@{}", outer.display()), "-s"]).unwrap();
        assert_eq!(
            expanded,
            ["tool", "format", "-t", "my cluster", "--feature", "group.version=1", "", "-s"]
        );
        assert_eq!(expand_texts(&["@tool", "a@b"]).unwrap(), ["@tool", "a@b"]);
    }

    #[test]
    fn a_file_that_is_missing_too_long_or_names_itself_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("own");
        std::fs::write(&own, format!("@{}", own.display())).unwrap();
        let long = folder.path().join("long");
        std::fs::write(&long, vec![b'x'; usize::try_from(LONGEST_FILE).unwrap() + 1]).unwrap();
        for (path, expected) in
            [(own, "name each other"), (long, "longer"), (folder.path().join("no"), "No such")]
        {
            let failure = expand_texts(&["tool", &format!("@{}", path.display())]).unwrap_err();
            assert_eq!(failure.status, Status::Usage);
            assert!(failure.messages[0].contains(expected), "{failure:?}");
        }
    }
}
