//! Temporary files and directories: they are deleted when they are dropped, when the process is terminated
//! ([`remove_all`]), and at the next start if the process was killed.
//!
//! Directories are created in one directory of the process below the system's (`TMPDIR`), which is locked while the
//! process lives. Directories without a lock are abandoned, and are deleted. A [`File`] is created in the directory of
//! its destination, and is locked in the same way. So is a stage ([`crate::files::Stage`]), which is registered here.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use tempfile::{NamedTempFile, TempDir};

/// Name prefix of a process's directory.
const ROOT_PREFIX: &str = "olmkit-";
/// Name prefix of our unfinished files. Other tools use shorter names, such as `.partial-`.
pub const PARTIAL: &str = ".olmkit-partial-";
/// File in it that is locked while the process lives.
const LOCK_FILE: &str = ".olmkit-temporary.lock";
/// Something this young may belong to a process that has not locked it yet.
const YOUNG: Duration = Duration::from_secs(10);

#[derive(Default)]
struct State {
    root: Option<Root>,
    /// Directories in use.
    directories: usize,
    /// Files that have not got their name yet.
    files: BTreeSet<PathBuf>,
    /// Directories elsewhere.
    registered: BTreeSet<PathBuf>,
    /// Directories already searched for abandoned files.
    looked: BTreeSet<PathBuf>,
    first_use: Option<fn()>,
}

struct Root {
    directory: TempDir,
    // Held for its lock, which is released with it.
    _lock: fs::File,
}

static STATE: Mutex<State> = Mutex::new(State {
    root: None,
    directories: 0,
    files: BTreeSet::new(),
    registered: BTreeSet::new(),
    looked: BTreeSet::new(),
    first_use: None,
});

/// Locked for reading while a thread creates or writes a temporary file or moves it to its destination, which must not
/// be interrupted; for writing by [`remove_all`]. Locked before [`STATE`], and never twice by one thread.
static GATE: RwLock<()> = RwLock::new(());
/// Time limit for deleting a directory to which threads still write.
const REMOVAL: Duration = Duration::from_secs(1);

fn at_work() -> RwLockReadGuard<'static, ()> {
    GATE.read().unwrap_or_else(PoisonError::into_inner)
}

/// The state, before a temporary file is created.
fn state_for_use() -> MutexGuard<'static, State> {
    let mut state = state();
    if let Some(begin) = state.first_use.take() {
        begin();
    }
    state
}

fn state() -> MutexGuard<'static, State> {
    // The set of names remains consistent if a thread panics.
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Action before the first temporary file is created: a program then starts to watch for signals. The action must not
/// use this module before it returns, and must return only after it watches, or a signal could come in between.
pub fn on_first_use(action: fn()) {
    state().first_use = Some(action);
}

/// Blocks threads that want to create or write a temporary file or move it to its destination.
#[derive(Debug)]
#[must_use = "without it, threads that still run leave new files"]
pub struct Ended(#[expect(dead_code, reason = "held for its lock")] RwLockWriteGuard<'static, ()>);

/// Deletes all temporary files of this process, for a process that ends without dropping its values. Writes and moves
/// in progress finish first. No new file is created until the result is dropped.
pub fn remove_all() -> Ended {
    let ended = Ended(GATE.write().unwrap_or_else(PoisonError::into_inner));
    let mut state = state();
    for directory in std::mem::take(&mut state.registered) {
        remove_directory(&directory);
    }
    for file in std::mem::take(&mut state.files) {
        let _ = fs::remove_file(file);
    }
    if let Some(root) = state.root.take() {
        remove_directory(&root.directory.keep());
    }
    ended
}

fn remove_directory(path: &Path) {
    let begin = Instant::now();
    // Threads that still run may add to it while it is being deleted.
    while fs::remove_dir_all(path).is_err() && path.exists() && begin.elapsed() < REMOVAL {}
}

/// A directory elsewhere, which [`remove_all`] deletes as well, until this is dropped.
#[derive(Debug)]
pub struct Registration(PathBuf);

impl Registration {
    /// Creates and registers a directory: no signal comes in between. Returns the other result of `make` too.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn of<T>(make: impl FnOnce() -> io::Result<(TempDir, T)>) -> io::Result<(TempDir, T, Self)> {
        let _at_work = at_work();
        let mut state = state_for_use();
        let (directory, other) = make()?;
        let path = directory.path().to_owned();
        state.registered.insert(path.clone());
        Ok((directory, other, Registration(path)))
    }

    /// Delays [`remove_all`] while the result lives.
    ///
    /// # Errors
    /// The directory has been deleted already.
    pub fn hold(&self) -> io::Result<RwLockReadGuard<'static, ()>> {
        let held = at_work();
        if state().registered.contains(&self.0) {
            return Ok(held);
        }
        Err(asked_to_end())
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        state().registered.remove(&self.0);
    }
}

/// A directory that only this user can access, with all its contents.
#[derive(Debug)]
pub struct Directory {
    // None only while it is dropped.
    directory: Option<TempDir>,
}

impl Directory {
    /// Makes an empty directory. `purpose` begins its name.
    ///
    /// # Errors
    /// The system's directory for temporary files (`TMPDIR`, else `/tmp`) cannot be written.
    pub fn new(purpose: &str) -> io::Result<Self> {
        let _at_work = at_work();
        let mut state = state_for_use();
        if state.root.is_none() {
            state.root = Some(root().map_err(explain)?);
        }
        let directory = match &state.root {
            Some(root) => tempfile::Builder::new()
                .prefix(&format!("{purpose}-"))
                .permissions(private())
                .tempdir_in(root.directory.path())
                .map_err(explain)?,
            None => return Err(io::ErrorKind::NotFound.into()),
        };
        state.directories += 1;
        Ok(Directory {
            directory: Some(directory),
        })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.directory.as_ref().map_or(Path::new(""), TempDir::path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        drop(self.directory.take());
        let mut state = state();
        state.directories -= 1;
        if state.directories == 0 {
            state.root = None;
        }
    }
}

fn explain(error: io::Error) -> io::Error {
    let folder = std::env::temp_dir();
    let text = format!(
        "no temporary directory can be made in {}: {error}; name another with TMPDIR",
        folder.display()
    );
    io::Error::new(error.kind(), text)
}

/// The permissions of a directory that only this user can access.
fn private() -> fs::Permissions {
    use std::os::unix::fs::PermissionsExt as _;
    fs::Permissions::from_mode(0o700)
}

/// The directory of this process. Those of processes that were killed are deleted.
fn root() -> io::Result<Root> {
    let place = std::env::temp_dir();
    let directory = tempfile::Builder::new()
        .prefix(ROOT_PREFIX)
        .permissions(private())
        .tempdir_in(&place)?;
    let lock = fs::File::create(directory.path().join(LOCK_FILE))?;
    lock.lock()?;
    let owner = directory.path().metadata()?.uid();
    for entry in fs::read_dir(&place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let ours = name.as_encoded_bytes().starts_with(ROOT_PREFIX.as_bytes())
            // Metadata of the entry itself: links are not followed.
            && entry.metadata().is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == owner);
        if ours && let Some(_lock) = abandoned(&entry.path().join(LOCK_FILE)) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    Ok(Root { directory, _lock: lock })
}

/// The file with its lock, if no process has locked it.
fn abandoned(path: &Path) -> Option<fs::File> {
    let metadata = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
    let age = metadata.modified().ok()?.elapsed().ok()?;
    // Another user's file is not ours, whatever its name is.
    let is_ours = metadata.uid() == rustix::process::geteuid().as_raw();
    let file = fs::File::open(path).ok().filter(|_| is_ours && age > YOUNG)?;
    file.try_lock().is_ok().then_some(file)
}

/// A file that appears under its name only when it is complete.
#[derive(Debug)]
pub struct File {
    // None only while it is dropped or gets its name.
    file: Option<NamedTempFile>,
}

impl File {
    /// Creates an empty file that only this user can access, in the directory of its destination. Leftovers of killed
    /// processes with the same prefix are deleted there.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub fn within(directory: &Path, prefix: &str) -> io::Result<Self> {
        let _at_work = at_work();
        let mut state = state_for_use();
        if state.looked.insert(directory.to_owned()) {
            remove_abandoned(directory, prefix);
        }
        let file = tempfile::Builder::new().prefix(prefix).tempfile_in(directory)?;
        // If locks are not supported, abandoned files are kept.
        let _ = file.as_file().try_lock();
        state.files.insert(file.path().to_owned());
        Ok(File { file: Some(file) })
    }

    fn open(&mut self) -> io::Result<&mut fs::File> {
        self.file.as_mut().map(NamedTempFile::as_file_mut).ok_or_else(gone)
    }

    /// A function that copies one file to another cannot distinguish which of the two failed.
    fn explain(&self, error: io::Error) -> io::Error {
        let folder = self.path().parent().unwrap_or(Path::new(""));
        io::Error::new(error.kind(), format!("cannot write to {}: {error}", folder.display()))
    }

    /// Its temporary path.
    pub fn path(&self) -> &Path {
        self.file.as_ref().map_or(Path::new(""), NamedTempFile::path)
    }

    /// Renames the file, replacing an existing one. All users may read it then.
    ///
    /// # Errors
    /// The file cannot be written to disk, or renamed. Nothing has changed then.
    pub fn persist(mut self, path: &Path, durability: Durability) -> io::Result<fs::File> {
        use std::os::unix::fs::PermissionsExt as _;
        let Some(file) = self.file.take() else {
            return Err(gone());
        };
        let temporary = file.path().to_owned();
        let _at_work = at_work();
        if !state().files.contains(&temporary) {
            return Err(asked_to_end());
        }
        let named = name(file, path, durability, fs::Permissions::from_mode(0o644));
        state().files.remove(&temporary);
        named
    }
}

fn name(
    file: NamedTempFile,
    path: &Path,
    durability: Durability,
    permissions: fs::Permissions,
) -> io::Result<fs::File> {
    // Temporary files are private. Some file systems have no modes.
    let _ = file.as_file().set_permissions(permissions);
    if durability == Durability::Synced {
        file.as_file().sync_all()?;
    }
    let file = file.persist(path).map_err(|error| error.error)?;
    if durability == Durability::Synced {
        sync_directory(path.parent().unwrap_or(Path::new("")))?;
    }
    Ok(file)
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.open()?.write(bytes);
        written.map_err(|error| self.explain(error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.open()?.flush()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            state().files.remove(file.path());
        }
    }
}

/// True if a file must still be there after a crash of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// File and directory are written to disk before its name counts.
    Synced,
    /// It can be regenerated.
    Unsynced,
}

/// Writes the names in a directory to disk. `""` is the current directory.
///
/// # Errors
/// The directory cannot be opened or written.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    let directory = if directory.as_os_str().is_empty() {
        Path::new(".")
    } else {
        directory
    };
    match fs::File::open(directory)?.sync_all() {
        // Some file systems cannot, and need not.
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
        result => result,
    }
}

fn asked_to_end() -> io::Error {
    io::Error::new(io::ErrorKind::Interrupted, "the program was asked to end")
}

fn gone() -> io::Error {
    io::ErrorKind::NotFound.into()
}

/// Deletes files with a prefix that killed processes left in a directory.
pub fn remove_abandoned(directory: &Path, prefix: &str) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let begins = |name: &OsStr| name.as_encoded_bytes().starts_with(prefix.as_bytes());
        if begins(&entry.file_name()) && abandoned(&entry.path()).is_some() {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn age(path: &Path) {
        let file = fs::File::options().append(true).open(path).unwrap();
        file.set_modified(SystemTime::now() - YOUNG * 2).unwrap();
    }

    #[test]
    fn a_directory_goes_with_its_owner_and_abandoned_ones_go_at_the_next_start() {
        let place = std::env::temp_dir();
        let left = tempfile::Builder::new().prefix(ROOT_PREFIX).tempdir_in(&place).unwrap();
        let other = tempfile::Builder::new().prefix(ROOT_PREFIX).tempdir_in(&place).unwrap();
        let held = tempfile::Builder::new().prefix(ROOT_PREFIX).tempdir_in(&place).unwrap();
        for folder in [&left, &held] {
            let lock = folder.path().join(LOCK_FILE);
            fs::write(&lock, "").unwrap();
            fs::write(folder.path().join("content"), "x").unwrap();
            age(&lock);
        }
        let _lock = fs::File::open(held.path().join(LOCK_FILE)).unwrap();
        _lock.lock().unwrap();
        let path = {
            let _alone = root().unwrap();
            let directory = Directory::new("test").unwrap();
            fs::write(directory.path().join("file"), "x").unwrap();
            for private in [directory.path(), directory.path().parent().unwrap()] {
                assert_eq!(private.metadata().unwrap().mode() & 0o777, 0o700);
            }
            directory.path().to_owned()
        };
        assert!(!path.exists());
        assert!(!left.path().exists(), "no process has locked it");
        assert!(other.path().exists(), "it is not ours: it has no lock");
        assert!(held.path().exists(), "its process lives");
    }

    #[test]
    fn a_file_appears_whole_and_abandoned_ones_go() {
        let folder = tempfile::tempdir().unwrap();
        let names = || {
            let mut names: Vec<_> = fs::read_dir(folder.path())
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        };
        let left = folder.path().join(".olmkit-partial-left");
        fs::write(&left, "half").unwrap();
        age(&left);
        fs::write(folder.path().join(".olmkit-partial-young"), "half").unwrap();
        let of_another_tool = folder.path().join(".partial-download");
        fs::write(&of_another_tool, "half").unwrap();
        age(&of_another_tool);
        let mut file = File::within(folder.path(), ".olmkit-partial-").unwrap();
        assert!(!left.exists());
        file.write_all(b"whole").unwrap();
        assert!(!folder.path().join("name").exists());
        age(file.path());
        remove_abandoned(folder.path(), ".olmkit-partial-");
        file.persist(&folder.path().join("name"), Durability::Synced).unwrap();
        drop(File::within(folder.path(), ".olmkit-partial-").unwrap());
        assert_eq!(names(), [".olmkit-partial-young", ".partial-download", "name"]);
        assert_eq!(fs::read_to_string(folder.path().join("name")).unwrap(), "whole");
    }
}
