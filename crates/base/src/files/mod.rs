//! Writes files atomically: a reader, also after a crash, sees the old ones or the new ones, never a mixture.
//!
//! All files are first written to a temporary directory and synced, and replace their destination by renaming. The
//! directory contains no untrusted files, and paths with `..` or a root are rejected, so a name from a bundle or
//! catalog cannot lead elsewhere.

mod below;
mod stage;

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};

use crate::temporary;

pub use below::{Directory, leads_out};
pub use stage::{Stage, is_stage_in_use};

/// Name prefix of temporary directories. Readers of directories skip those in use: see [`is_stage_in_use`].
pub const PREFIX: &str = ".olmkit-";

pub use stage::{list, remove_abandoned_below};

/// A file or directory that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}: {source}; {state}", path = path.display(), state = state(unrestored.as_deref()))]
pub struct WriteError {
    /// The path.
    pub path: PathBuf,
    /// The system's error.
    pub source: io::Error,
    /// Set if the former files could not be restored either.
    pub unrestored: Option<Box<Unrestored>>,
}

/// Former files that a failed write could not restore.
#[derive(Debug)]
pub struct Unrestored {
    /// The system's error.
    pub error: io::Error,
    /// The directory with the former files.
    pub kept: PathBuf,
}

fn state(unrestored: Option<&Unrestored>) -> String {
    match unrestored {
        None => "the former content is unchanged".to_owned(),
        Some(Unrestored { error, kept }) => {
            let kept = kept.display();
            format!("and cannot restore the former files: {error}. They are in {kept}")
        }
    }
}

/// A path relative to a directory, in its shortest form: `config` and `../icon.svg` give `icon.svg`. Reads no files, so links count as
/// ordinary directories.
#[must_use]
pub fn join(directory: &Path, path: &Path) -> PathBuf {
    let mut joined = directory.to_owned();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if joined.file_name().is_some() => {
                joined.pop();
            }
            part => joined.push(part),
        }
    }
    joined
}

/// Writes one file by renaming a synced temporary one. Its permissions are kept. A file with this content is not
/// touched.
///
/// # Errors
/// When it cannot be written. It is as it was then.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    if holds(path, bytes) {
        tidy(path);
        return Ok(());
    }
    let parent = parent(path);
    create_folders(parent).map_err(at(parent))?;
    let stage = Stage::beside(path)?;
    let named = |error: WriteError| at(path)(error.source);
    let fresh = stage.write(Path::new("file"), bytes).map_err(named)?;
    let _held = stage.hold()?;
    let permissions = fs::metadata(path).ok().map(|present| present.permissions());
    if let Some(permissions) = permissions {
        fs::set_permissions(&fresh, permissions).map_err(at(&fresh))?;
    }
    step().and_then(|()| fs::rename(&fresh, path)).map_err(at(path))?;
    sync_folder(parent).map_err(at(parent))
}

/// Removes the leftovers of killed processes in the parent directory. Called if there is nothing to write.
pub fn tidy(path: &Path) {
    stage::remove_abandoned(parent(path));
}

/// Returns true if a path is a regular file of this content. No more is read than that.
pub fn holds(path: &Path, bytes: &[u8]) -> bool {
    let has_length = |metadata: fs::Metadata| metadata.is_file() && usize::try_from(metadata.len()) == Ok(bytes.len());
    fs::metadata(path).is_ok_and(has_length) && fs::read(path).is_ok_and(|own| own == bytes)
}

/// The parent directory of a path.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn at(path: &Path) -> impl Fn(io::Error) -> WriteError + '_ {
    move |source| WriteError {
        path: path.to_owned(),
        source,
        unrestored: None,
    }
}

fn create_folders(path: &Path) -> io::Result<()> {
    step()?;
    fs::create_dir_all(path)
}

/// Creates a file with a content and syncs it.
fn create_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    step()?;
    let mut file = File::create_new(path)?;
    step()?;
    file.write_all(bytes)?;
    step()?;
    file.sync_all()
}

/// Syncs a directory after a creation or a renaming.
fn sync_folder(path: &Path) -> io::Result<()> {
    step()?;
    temporary::sync_directory(path)
}

/// Called before every change of a file or directory, so that tests can make each of them fail.
#[cfg(not(test))]
#[inline]
fn step() -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
use test_support::steps::step;

#[cfg(test)]
mod tests {
    use test_support::steps::with_each_step_failing;

    use super::*;

    #[test]
    fn a_file_is_old_or_new_whichever_step_fails() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "old").unwrap();
        let steps = with_each_step_failing(|_| {
            let done = write(&path, b"new");
            let text = fs::read_to_string(&path).unwrap();
            assert!(text == "new" || done.is_err() && text == "old");
            assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "something is left behind");
            done.is_ok() && {
                assert_eq!(text, "new");
                true
            }
        });
        assert!(steps > 0 || fs::read(&path).unwrap() == b"new");
    }

    #[test]
    fn the_permissions_of_a_file_stay() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        write(&path, b"new").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }
}
