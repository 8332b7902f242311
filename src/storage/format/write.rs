//! Writes directories so that no moment can leave one half done for good.
//!
//! A directory counts as formatted once it has its `meta.properties`. Everything else is written first, and made to last,
//! in all directories; then each gets its `meta.properties` by a rename. What ends in between is either not formatted yet,
//! and written anew by the next format, or has a `meta.properties.tmp` left that says which format it was part of.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::Fault;
use crate::storage::directory;
use crate::storage::meta_properties::{META_PROPERTIES, MetaProperties};

/// The mode of a checkpoint that nobody may change any more.
pub(super) const READ_ONLY: u32 = 0o400;
/// The mode of any file, before the process's mask.
pub(super) const ORDINARY: u32 = 0o666;

/// The name that `meta.properties` has until it counts.
const STAGED: &str = "meta.properties.tmp";
/// What is added to a checkpoint's name until it is whole.
const PART: &str = ".part";

/// What is to be written to one directory.
#[derive(Clone, Debug)]
pub(super) struct DirectoryWrite {
    /// Where it is.
    pub(super) place: PathBuf,
    /// The files, below it: name, content, mode.
    pub(super) files: Vec<(&'static str, Bytes, u32)>,
    /// Files, below it, that must not be there.
    pub(super) stale: Vec<PathBuf>,
    /// The content of `meta.properties`.
    pub(super) meta: String,
}

/// Writes all directories.
pub(super) fn write(writes: &[DirectoryWrite]) -> Result<(), Fault> {
    let mut locks = Vec::new();
    for write in writes {
        make(&write.place)?;
        locks.push(lock(&write.place)?);
    }
    for write in writes {
        // what was found before the lock may be another's by now
        if write.place.join(META_PROPERTIES).exists() {
            return Err(Fault::Overtaken(write.place.clone()));
        }
    }
    for write in writes {
        stage(write)?;
    }
    for write in writes {
        commit(write)?;
    }
    Ok(())
}

/// The `meta.properties` that a format was about to give a directory when it ended; `None` if none was.
pub(super) fn staged(place: &Path) -> Option<MetaProperties> {
    let bytes = directory::read_bounded(&place.join(STAGED), 1 << 20).ok()?;
    // written by this tool, so in UTF-8, which Kafka would not read it as
    let text = std::str::from_utf8(&bytes).ok()?;
    MetaProperties::parse_text(text).ok().filter(|staged| staged.node_id.is_some())
}

fn failed<'a>(doing: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Fault + 'a {
    move |error| Fault::Disk { doing, path: path.to_owned(), error }
}

/// Makes a directory and those above it, each lasting before anything is put into it.
fn make(place: &Path) -> Result<(), Fault> {
    if place.is_dir() {
        return Ok(());
    }
    if let Some(parent) = place.parent() {
        make(parent)?;
        match fs::create_dir(place) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made.map_err(failed("made", place))?,
        }
        sync_directory(parent)?;
    }
    Ok(())
}

/// Keeps others from formatting a directory for as long as the file is held. Leaves no trace in it.
fn lock(place: &Path) -> Result<File, Fault> {
    let directory = File::open(place).map_err(failed("opened", place))?;
    match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Err(Fault::Busy(place.to_owned())),
        // file systems without locks (some network ones) are those of one machine's tool anyway
        Ok(()) | Err(Errno::NOLCK | Errno::NOSYS | Errno::OPNOTSUPP | Errno::BADF) => Ok(directory),
        Err(error) => Err(failed("locked", place)(error.into())),
    }
}

/// Writes everything but the mark of a formatted directory.
fn stage(write: &DirectoryWrite) -> Result<(), Fault> {
    // where the log has begun, its checkpoints are part of it
    if !directory::has_log(&write.place) {
        for stale in &write.stale {
            remove(&write.place.join(stale))?;
        }
    }
    for (name, content, mode) in &write.files {
        let path = write.place.join(name);
        let folder = path.parent().unwrap_or(&write.place);
        make(folder)?;
        let part = with_suffix(&path, PART);
        put(&part, content, *mode)?;
        fs::rename(&part, &path).map_err(failed("put in place", &path))?;
        sync_directory(folder)?;
    }
    put(&write.place.join(STAGED), write.meta.as_bytes(), ORDINARY)?;
    sync_directory(&write.place)
}

fn commit(write: &DirectoryWrite) -> Result<(), Fault> {
    let path = write.place.join(META_PROPERTIES);
    fs::rename(write.place.join(STAGED), &path).map_err(failed("put in place", &path))?;
    sync_directory(&write.place)
}

/// Writes a file anew, lasting and with its mode.
fn put(path: &Path, content: &[u8], mode: u32) -> Result<(), Fault> {
    // what an earlier run left may be nobody's to write to
    remove(path)?;
    let writable = if mode == ORDINARY { mode } else { 0o600 };
    let mut options = OpenOptions::new();
    let mut file =
        options.write(true).create_new(true).mode(writable).open(path).map_err(failed("made", path))?;
    file.write_all(content).map_err(failed("written", path))?;
    if writable != mode {
        file.set_permissions(fs::Permissions::from_mode(mode)).map_err(failed("made read-only", path))?;
    }
    file.sync_all().map_err(failed("made to last", path))
}

fn remove(path: &Path) -> Result<(), Fault> {
    match fs::remove_file(path) {
        Err(error) if [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind()) => {
            Ok(())
        }
        removed => removed.map_err(failed("removed", path)),
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn sync_directory(path: &Path) -> Result<(), Fault> {
    let synced = File::open(path).and_then(|directory| directory.sync_all());
    synced.map_err(failed("made to last", path))
}
