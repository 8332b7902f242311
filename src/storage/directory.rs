//! The directories of a node as they are found: formatted, not yet, or unreadable; and whether they can be written to.
//! Looks only: nothing on the disk is changed here.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};

use super::meta_properties::{META_PROPERTIES, MetaProperties};

/// No `meta.properties` is longer.
const LONGEST_META_PROPERTIES: u64 = 1 << 20;

/// A directory's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It is not there.
    Missing,
    /// It is there, and not formatted.
    Unformatted,
    /// It is formatted.
    Formatted(MetaProperties),
    /// It can't be told: why.
    Unreadable(String),
}

/// A directory of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    /// The path as the configuration has it, without slashes at the end.
    pub path: PathBuf,
    /// Where that is, links followed: two paths to one place are one directory.
    pub place: PathBuf,
    /// Its state.
    pub state: State,
}

/// Looks at directories; each place once, by path.
#[must_use]
pub fn survey<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Vec<Directory> {
    let mut places = BTreeSet::new();
    let mut directories: Vec<Directory> = paths
        .into_iter()
        .map(|path| Directory { path: without_slashes(path), place: place(path), state: look(path) })
        .filter(|directory| places.insert(directory.place.clone()))
        .collect();
    directories.sort_by(|a, b| a.path.cmp(&b.path));
    directories
}

fn without_slashes(path: &Path) -> PathBuf {
    path.components().collect()
}

/// Where a path leads, whether it is there yet or not.
pub fn place(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut missing = Vec::new();
    for ancestor in path.ancestors() {
        if let Ok(mut place) = fs::canonicalize(ancestor) {
            for part in missing.into_iter().rev() {
                match part {
                    Component::ParentDir => {
                        place.pop();
                    }
                    part => place.push(part),
                }
            }
            return place;
        }
        missing.extend(ancestor.components().next_back());
    }
    path
}

fn look(path: &Path) -> State {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) => return State::Unreadable("it is not a directory".to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return State::Missing,
        Err(error) => return State::Unreadable(forbidden(&error, path)),
    }
    let file = path.join(META_PROPERTIES);
    match read_bounded(&file, LONGEST_META_PROPERTIES) {
        Ok(bytes) => match MetaProperties::parse(&bytes) {
            Ok(meta) => State::Formatted(meta),
            Err(error) => State::Unreadable(format!("{}: {error}", file.display())),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => State::Unformatted,
        Err(error) => State::Unreadable(format!("{}: {}", file.display(), forbidden(&error, path))),
    }
}

/// What kept a directory from being read; whose it is, where that is the reason.
fn forbidden(error: &io::Error, path: &Path) -> String {
    let whose = if error.kind() == io::ErrorKind::PermissionDenied { whose(path) } else { String::new() };
    format!("{error}{whose}")
}

/// A file's content, unless there is too much of it.
pub fn read_bounded(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    // looked at before it is opened: opening a pipe waits for a writer
    let metadata = fs::metadata(path)?;
    if metadata.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
    }
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file"));
    }
    let file = File::open(path)?;
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is longer than {most} bytes")));
    }
    Ok(bytes)
}

impl Directory {
    /// Why nothing can be written to it, in words that name owner, mode and who we are; `None` where it can.
    #[must_use]
    pub fn unwritable(&self) -> Option<String> {
        let (place, missing) = match self.state {
            State::Missing => (self.place.ancestors().find(|ancestor| ancestor.exists())?, true),
            _ => (self.place.as_path(), false),
        };
        let error = access(place).err()?;
        let what = if missing {
            format!("can't be made in {}", place.display())
        } else {
            "can't be written to".to_owned()
        };
        Some(format!("{} {what}: {error}{}", self.path.display(), whose(place)))
    }

    /// What in it Kafka, or the next format, would stumble over.
    #[must_use]
    pub fn leftovers(&self, broker: bool) -> Vec<String> {
        let path = self.path.display();
        let entries = match fs::read_dir(&self.place) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
            Err(error) => return vec![format!("{path} can't be listed: {error}")],
        };
        let mut leftovers = Vec::new();
        if self.state == State::Unformatted && has_log(&self.place) {
            leftovers.push(format!(
                "{path} has a metadata log and no {META_PROPERTIES}, which may have been lost: formatting gives it a new \
                 directory id, under which the voters of a dynamic quorum don't know it"
            ));
        }
        for entry in entries {
            let Ok(entry) = entry else {
                leftovers.push(format!("{path} can't be listed to its end"));
                break;
            };
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if broker && is_directory && !is_partition(&name) {
                leftovers.push(format!(
                    "{path} holds {name:?}, and a broker refuses to start on a directory that holds folders other than \
                     partitions: use a folder below it, or remove {name:?}"
                ));
            }
        }
        leftovers.sort();
        leftovers
    }
}

/// Whether the metadata log has begun in a directory: a segment of it is not empty. From then on nothing of what a node
/// starts from is read any more.
#[must_use]
pub fn has_log(directory: &Path) -> bool {
    let Ok(entries) = fs::read_dir(directory.join("__cluster_metadata-0")) else { return false };
    entries.flatten().any(|entry| {
        let is_segment = entry.path().extension().is_some_and(|extension| extension == "log");
        is_segment && entry.metadata().is_ok_and(|metadata| metadata.len() > 0)
    })
}

/// Folders of Kafka's own that are no partitions.
const KAFKAS_OWN: [&str; 1] = ["remote-log-index-cache"];

/// Whether a folder has the name of a partition, or of one that is on its way out or in.
fn is_partition(name: &str) -> bool {
    if KAFKAS_OWN.contains(&name) {
        return true;
    }
    let stem = ["-delete", "-future", "-stray"].iter().find_map(|suffix| name.strip_suffix(suffix));
    let name = match stem {
        Some(stem) => stem.rsplit_once('.').map_or(stem, |(partition, _unique)| partition),
        None => name,
    };
    name.rsplit_once('-').is_some_and(|(topic, number)| !topic.is_empty() && number.parse::<u32>().is_ok())
}

/// Whether files can be made in a directory.
fn access(place: &Path) -> io::Result<()> {
    if !place.is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotADirectory, "it is not a directory"));
    }
    match accessat(CWD, place, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS) {
        // a kernel that can't be asked: writing will show
        Err(rustix::io::Errno::NOSYS) | Ok(()) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn whose(place: &Path) -> String {
    let ours =
        format!("we are {}:{}", rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    match fs::metadata(place) {
        Ok(of) => {
            format!("; it belongs to {}:{}, mode {:04o}; {ours}", of.uid(), of.gid(), of.mode() & 0o7777)
        }
        Err(_) => format!("; {ours}"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn one_place_is_one_directory_however_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        fs::create_dir(&data).unwrap();
        let link = folder.path().join("link");
        symlink(&data, &link).unwrap();
        let slash = folder.path().join("data/");
        let dots = folder.path().join("other/../data");
        let new = [folder.path().join("new/one"), folder.path().join("new//one/"), link.join("in")];
        let paths: Vec<&Path> =
            [&data, &link, &slash, &dots].into_iter().chain(&new).map(PathBuf::as_path).collect();
        let found = survey(paths);
        let told: Vec<(&Path, &State)> = found.iter().map(|d| (d.path.as_path(), &d.state)).collect();
        let unformatted = State::Unformatted;
        let expected = [
            (data.as_path(), &unformatted),
            (&link.join("in"), &State::Missing),
            (&folder.path().join("new/one"), &State::Missing),
        ];
        assert_eq!(told, expected);
        assert_eq!(found[1].place, fs::canonicalize(&data).unwrap().join("in"));
    }

    #[test]
    fn what_can_not_be_read_is_told_and_not_taken_for_empty() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str, content: Option<&str>| {
            let path = folder.path().join(name);
            fs::create_dir(&path).unwrap();
            let meta = path.join(META_PROPERTIES);
            match content {
                Some(content) => fs::write(meta, content).unwrap(),
                None => fs::create_dir(meta).unwrap(),
            }
            path
        };
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let wrong = [
            (make("version", Some("version=9")), "\"9\""),
            (make("directory", None), "directory"),
            (file, "not a directory"),
        ];
        for (path, expected) in wrong {
            let State::Unreadable(why) = look(&path) else { panic!("{}", path.display()) };
            assert!(why.contains(expected), "{why}");
        }
        let long = "#".repeat(usize::try_from(LONGEST_META_PROPERTIES).unwrap() + 1);
        let State::Unreadable(why) = look(&make("long", Some(&long))) else { panic!() };
        assert!(why.contains("longer"), "{why}");
        assert_eq!(look(&make("empty", Some(""))), State::Formatted(MetaProperties::default()));
    }

    #[test]
    fn what_a_broker_would_refuse_is_told_with_the_way_out() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["lost+found", "topic-0", "a.topic-1.0123abcd-delete", "remote-log-index-cache", "-5"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join("a file"), "").unwrap();
        let found = survey([folder.path()]);
        let told = found[0].leftovers(true);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[1].contains("\"lost+found\"") && told[1].contains("a folder below it"), "{told:?}");
        assert_eq!(found[0].leftovers(false), Vec::<String>::new());
    }

    #[test]
    fn a_place_under_a_file_can_not_be_made() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let below = file.join("data");
        let directory = Directory { path: below.clone(), place: below, state: State::Missing };
        let why = directory.unwritable().unwrap();
        assert!(why.contains("not a directory") && why.contains("mode 0") && why.contains("we are"), "{why}");
        assert_eq!(survey([folder.path()])[0].unwritable(), None);
    }
}
