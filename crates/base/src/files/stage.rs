//! A temporary directory that becomes the destination.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::temporary::Registration;

use super::{PREFIX, Unrestored, WriteError, at, create_file, create_folders, parent, step, sync_folder};

/// The file that is locked while the directory is in use.
const LOCK: &str = "lock";
/// The replaced directory or files that could not be restored.
const OLD: &str = "old";
/// The replaced files while others are moved.
const FORMER: &str = "former";
/// Directories that are written to the disk at the same time.
const SYNCS: usize = 8;
/// Age at which a directory without a lock counts as abandoned.
const ABANDONED: Duration = Duration::from_secs(3600);

/// Files in a temporary directory next to their goal. It is removed when it is dropped and when the program is
/// terminated. The leftover of a killed process is removed by the next process that writes in the same parent
/// directory.
#[derive(Debug)]
pub struct Stage {
    folder: tempfile::TempDir,
    registration: Registration,
    /// The replacement of the goal.
    fresh: PathBuf,
    goal: PathBuf,
    _lock: File,
}

impl Stage {
    /// An empty stage for the destination `goal`. The parent directory of `goal` is created.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub fn beside(goal: &Path) -> Result<Self, WriteError> {
        // A link remains a link: its target is replaced.
        let goal = match fs::symlink_metadata(goal) {
            Ok(metadata) if metadata.is_symlink() => fs::canonicalize(goal).map_err(at(goal))?,
            _ => goal.to_owned(),
        };
        let parent = parent(&goal).to_owned();
        Self::create(&parent, goal)
    }

    /// An empty stage in the directory `goal`, for [`Stage::merge`]. The directory is created.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub fn inside(goal: &Path) -> Result<Self, WriteError> {
        Self::create(goal, goal.to_owned())
    }

    fn create(parent: &Path, goal: PathBuf) -> Result<Self, WriteError> {
        create_folders(parent).map_err(at(parent))?;
        remove_abandoned(parent);
        let fail = at(parent);
        let (folder, lock, registration) = Registration::of(|| locked_folder(parent)).map_err(&fail)?;
        let fresh = folder.path().join("new");
        let held = registration.hold().map_err(&fail)?;
        create_folders(&fresh).map_err(&fail)?;
        drop(held);
        Ok(Self {
            folder,
            registration,
            fresh,
            goal,
            _lock: lock,
        })
    }

    /// Writes a file at a path relative to the goal, and returns its temporary path.
    ///
    /// # Errors
    /// The path leaves the goal or is in use, or the file cannot be written.
    pub fn write(&self, path: &Path, bytes: &[u8]) -> Result<PathBuf, WriteError> {
        let _held = self.hold()?;
        let to = self.place(path)?;
        create_file(&to, bytes).map_err(at(&self.goal.join(path)))?;
        Ok(to)
    }

    /// Keeps an existing file below the goal unchanged.
    ///
    /// # Errors
    /// The file cannot be linked or copied.
    pub fn keep(&self, path: &Path) -> Result<(), WriteError> {
        let _held = self.hold()?;
        let (from, to) = (self.goal.join(path), self.place(path)?);
        if step().and_then(|()| fs::hard_link(&from, &to)).is_ok() {
            return Ok(());
        }
        step().and_then(|()| copy_file(&from, &to)).map_err(at(&from))
    }

    /// Moves the written files into the goal, and removes `removed` from it. Other files are untouched. If one cannot be
    /// moved or removed, the former files are restored.
    ///
    /// # Errors
    /// Something cannot be synced, renamed or removed.
    pub fn merge(self, removed: &[PathBuf]) -> Result<(), WriteError> {
        let files = list(&self.fresh).map_err(at(&self.goal))?;
        let _held = self.hold()?;
        // The directory is deleted before the program may end.
        let stage = self;
        stage.move_files(&files, removed)
    }

    /// Replaces the goal by the written files. Everything that was not kept is deleted.
    ///
    /// The replacement is atomic. If the goal cannot be renamed (the working directory, a mount point), each file is
    /// renamed into it instead, and `removed` are removed from it.
    ///
    /// # Errors
    /// Something cannot be synced or renamed.
    pub fn take_place(self, removed: &[PathBuf]) -> Result<(), WriteError> {
        let files = list(&self.fresh).map_err(at(&self.goal))?;
        sync_folders(&self.fresh, &files).map_err(at(&self.goal))?;
        let _held = self.hold()?;
        // The directory is deleted before the program may end.
        let stage = self;
        let goal = stage.goal.clone();
        // A path such as `.` or `a/..` has no last component that could be renamed.
        if goal.file_name().is_none() || stage.swap().is_err() {
            stage.move_files(&files, removed)?;
        }
        sync_folder(parent(&goal)).map_err(at(&goal))
    }

    /// Keeps the program from ending between two steps, while the result lives. Must not be called while another result
    /// is held.
    pub(super) fn hold(&self) -> Result<impl Drop + use<>, WriteError> {
        self.registration.hold().map_err(at(&self.goal))
    }

    fn swap(&self) -> io::Result<()> {
        step()?;
        if fs::symlink_metadata(&self.goal).is_err() {
            return fs::rename(&self.fresh, &self.goal);
        }
        if renameat_with(CWD, &self.fresh, CWD, &self.goal, RenameFlags::EXCHANGE).is_ok() {
            return Ok(());
        }
        // The file system does not support exchange. Between these two calls the goal does not exist.
        let old = self.folder.path().join(OLD);
        fs::rename(&self.goal, &old)?;
        fs::rename(&self.fresh, &self.goal).inspect_err(|_| {
            let _ = fs::rename(&old, &self.goal);
        })
    }

    fn move_files(self, files: &BTreeSet<PathBuf>, removed: &[PathBuf]) -> Result<(), WriteError> {
        let mut undo = Undo::default();
        let moved = files.iter().map(|path| (path, true));
        for (path, is_new) in moved.chain(removed.iter().map(|path| (path, false))) {
            let to = self.goal.join(path);
            let done = self
                .refuse_links(path)
                .and_then(|()| self.move_file(path, is_new, &mut undo).map_err(at(&to)));
            let Err(failed) = done else { continue };
            let Err(error) = undo.run() else { return Err(failed) };
            // The next process does not delete a directory with this name in it.
            let _ = fs::rename(self.folder.path().join(FORMER), self.folder.path().join(OLD));
            drop(self.registration);
            let kept = self.folder.keep();
            return Err(WriteError {
                unrestored: Some(Box::new(Unrestored { error, kept })),
                ..failed
            });
        }
        Ok(())
    }

    /// Moves a new file to its place, or removes a file.
    fn move_file(&self, path: &Path, is_new: bool, undo: &mut Undo) -> io::Result<()> {
        let (new, to) = (self.fresh.join(path), self.goal.join(path));
        if let Ok(present) = fs::symlink_metadata(&to) {
            let former = self.folder.path().join(FORMER).join(undo.0.len().to_string());
            create_folders(parent(&former))?;
            step()?;
            if is_new {
                // The file always exists for others: a second name for the old one, then an atomic replacement.
                fs::hard_link(&to, &former).or_else(|_| copy_file(&to, &former))?;
                if let Ok(followed) = fs::metadata(&to) {
                    fs::set_permissions(&new, followed.permissions())?;
                }
            } else if present.is_dir() {
                return Err(io::ErrorKind::IsADirectory.into());
            } else {
                fs::rename(&to, &former)?;
            }
            undo.0.push(Done::Saved {
                former,
                path: to.clone(),
            });
        } else if is_new {
            let missing: Vec<&Path> = to.ancestors().skip(1).take_while(|folder| !folder.exists()).collect();
            for folder in missing.into_iter().rev() {
                step()?;
                fs::create_dir(folder)?;
                undo.0.push(Done::Folder(folder.to_owned()));
            }
        } else {
            return Err(io::ErrorKind::NotFound.into());
        }
        if is_new {
            step()?;
            let is_created = fs::symlink_metadata(&to).is_err();
            fs::rename(&new, &to)?;
            undo.0.extend(is_created.then(|| Done::Created(to.clone())));
        }
        sync_folder(parent(&to))
    }

    /// A link to a directory below the goal could lead anywhere.
    fn refuse_links(&self, path: &Path) -> Result<(), WriteError> {
        for folder in path.ancestors().skip(1) {
            let folder = self.goal.join(folder);
            if folder != self.goal && folder.is_symlink() {
                return Err(at(&folder)(io::Error::other("it is a link")));
            }
        }
        Ok(())
    }

    /// Temporary location of a path relative to the goal. Its directory is created.
    fn place(&self, path: &Path) -> Result<PathBuf, WriteError> {
        let stays = path.components().all(|part| matches!(part, Component::Normal(_)));
        if !stays || path.as_os_str().is_empty() {
            let reason = "the path leaves its directory";
            return Err(at(path)(io::Error::new(io::ErrorKind::InvalidInput, reason)));
        }
        let to = self.fresh.join(path);
        create_folders(parent(&to)).map_err(at(&self.goal.join(path)))?;
        Ok(to)
    }
}

/// Copies a regular file. Reading a pipe or a device would not end.
fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(from)?.is_file() {
        return Err(io::Error::other("not a regular file, and cannot be linked"));
    }
    fs::copy(from, to).map(drop)
}

/// The completed steps of a move, to be undone in reverse.
#[derive(Default)]
struct Undo(Vec<Done>);

enum Done {
    Folder(PathBuf),
    Created(PathBuf),
    Saved { former: PathBuf, path: PathBuf },
}

impl Undo {
    fn run(self) -> io::Result<()> {
        for done in self.0.into_iter().rev() {
            match done {
                Done::Folder(path) => fs::remove_dir(path)?,
                Done::Created(path) => fs::remove_file(path)?,
                // Does nothing if both names are still the same file.
                Done::Saved { former, path } => fs::rename(former, path)?,
            }
        }
        Ok(())
    }
}

/// A temporary directory in another one, with its lock.
fn locked_folder(parent: &Path) -> io::Result<(tempfile::TempDir, File)> {
    loop {
        step()?;
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
        step()?;
        let lock = File::create(folder.path().join(LOCK))?;
        // A file system without locks has no other process that could look.
        let _ = lock.lock();
        // Before the lock was held, another process may have considered the directory abandoned. It held the lock until
        // everything was deleted.
        if folder.path().join(LOCK).exists() {
            return Ok((folder, lock));
        }
    }
}

/// Relative paths of everything except directories below a directory. Empty if it does not exist. Links are not
/// followed.
pub fn list(folder: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    let mut open = vec![PathBuf::new()];
    while let Some(relative) = open.pop() {
        let entries = match fs::read_dir(folder.join(&relative)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            other => other?,
        };
        for entry in entries {
            let entry = entry?;
            let relative = relative.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                open.push(relative);
            } else {
                found.insert(relative);
            }
        }
    }
    Ok(found)
}

fn sync_folders(root: &Path, files: &BTreeSet<PathBuf>) -> io::Result<()> {
    let folders: BTreeSet<&Path> = files.iter().flat_map(|path| path.ancestors().skip(1)).collect();
    let folders: Vec<&Path> = folders.into_iter().collect();
    step()?;
    // The disk does several at a time.
    std::thread::scope(|scope| {
        let chunks = folders.chunks(folders.len().div_ceil(SYNCS).max(1));
        let threads: Vec<_> = chunks
            .map(|chunk| scope.spawn(|| chunk.iter().try_for_each(|folder| sync_folder(&root.join(folder)))))
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// Removes stages of killed processes from the directories of these files. Returns true if there were stages.
pub fn remove_abandoned_below(files: &[PathBuf]) -> bool {
    let is_stage = |folder: &&Path| {
        let name = folder.file_name().and_then(std::ffi::OsStr::to_str);
        name.is_some_and(|name| name.starts_with(PREFIX))
    };
    let stages = files.iter().filter_map(|file| file.ancestors().skip(1).find(is_stage));
    let parents: BTreeSet<PathBuf> = stages.map(|stage| parent(stage).to_owned()).collect();
    parents.iter().for_each(|parent| remove_abandoned(parent));
    !parents.is_empty()
}

/// Removes the directories that killed processes left. Errors are ignored.
pub(super) fn remove_abandoned(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if ours
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
            && let Some(_lock) = abandoned(&entry.path())
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Returns true if a path is a stage of a process that still writes. Anything else with such a name is content like other files.
pub fn is_stage_in_use(path: &Path) -> bool {
    let is_named = path
        .file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
    let is_directory = || fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir());
    let lock = path.join(LOCK);
    let is_file = || fs::symlink_metadata(&lock).is_ok_and(|metadata| metadata.is_file());
    is_named
        && is_directory()
        && is_file()
        && File::open(&lock).is_ok_and(|lock| matches!(lock.try_lock(), Err(TryLockError::WouldBlock)))
}

/// The lock of an abandoned directory, if it has one.
fn abandoned(folder: &Path) -> Option<Option<File>> {
    // Files that could not be restored are the only copies.
    if folder.join(OLD).exists() {
        return None;
    }
    match File::open(folder.join(LOCK)) {
        Ok(lock) => (!matches!(lock.try_lock(), Err(TryLockError::WouldBlock))).then_some(Some(lock)),
        Err(_) => {
            let modified = fs::metadata(folder).and_then(|metadata| metadata.modified()).ok()?;
            let age = SystemTime::now().duration_since(modified).unwrap_or_default();
            (age > ABANDONED).then_some(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use test_support::steps::with_each_step_failing;

    use super::*;

    fn texts(folder: &Path) -> Vec<(PathBuf, String)> {
        let paths = list(folder).unwrap().into_iter();
        paths
            .map(|path| {
                let text = fs::read_to_string(folder.join(&path)).unwrap();
                (path, text)
            })
            .collect()
    }

    fn old_or_new(goal: impl Fn(&Path) -> PathBuf) {
        with_each_step_failing(|steps| {
            let root = tempfile::tempdir().unwrap();
            let real = root.path().join("out");
            fs::create_dir_all(real.join("d")).unwrap();
            for path in ["a", "d/b", "mine"] {
                fs::write(real.join(path), "old").unwrap();
            }
            let old = texts(&real);
            let stage = || -> Result<(), WriteError> {
                let stage = Stage::beside(&goal(root.path()))?;
                stage.write(Path::new("a"), b"new")?;
                stage.write(Path::new("e/c"), b"new")?;
                stage.keep(Path::new("mine"))?;
                stage.take_place(&[PathBuf::from("d/b")])
            };
            let done = stage();
            let now = texts(&real);
            let new: Vec<(PathBuf, String)> = [("a", "new"), ("e/c", "new"), ("mine", "old")]
                .map(|(path, text)| (path.into(), text.into()))
                .into();
            assert!(now == new || done.is_err() && now == old, "{steps}: {done:?}: {now:?}");
            let left: Vec<_> = fs::read_dir(root.path()).unwrap().flatten().collect();
            assert!(
                left.iter()
                    .all(|entry| !entry.file_name().to_string_lossy().starts_with(PREFIX)),
                "{steps}: {left:?}"
            );
            done.is_ok()
        });
    }

    #[test]
    fn a_folder_is_old_or_new_whichever_step_fails() {
        old_or_new(|root| root.join("out"));
    }

    #[test]
    fn merged_files_are_all_old_or_all_new_whichever_step_fails() {
        let steps = with_each_step_failing(|steps| {
            let root = tempfile::tempdir().unwrap();
            let goal = root.path().join("out");
            fs::create_dir_all(goal.join("a")).unwrap();
            for path in ["a/changed", "a/removed", "mine"] {
                fs::write(goal.join(path), "old").unwrap();
            }
            let old = texts(&goal);
            let merge = || -> Result<(), WriteError> {
                let stage = Stage::inside(&goal)?;
                stage.write(Path::new("a/changed"), b"new")?;
                stage.write(Path::new("b/c/created"), b"new")?;
                stage.merge(&[PathBuf::from("a/removed")])
            };
            let done = merge();
            let now = texts(&goal);
            let new = [("a/changed", "new"), ("b/c/created", "new"), ("mine", "old")];
            let new: Vec<(PathBuf, String)> = new.map(|(path, text)| (path.into(), text.into())).into();
            assert!(
                done.is_ok() && now == new || done.is_err() && now == old,
                "{steps}: {done:?}: {now:?}"
            );
            let folders = fs::read_dir(&goal).unwrap().count();
            assert_eq!(
                folders,
                if done.is_ok() { 3 } else { 2 },
                "{steps}: something is left behind"
            );
            done.is_ok()
        });
        assert!(steps > 8, "only {steps} steps");
    }

    #[test]
    fn a_link_to_a_folder_stays_a_link() {
        old_or_new(|root| {
            let link = root.join("link");
            std::os::unix::fs::symlink("out", &link).unwrap();
            link
        });
    }

    #[test]
    fn paths_stay_below_the_goal() {
        let root = tempfile::tempdir().unwrap();
        let stage = Stage::beside(&root.path().join("out")).unwrap();
        for path in ["/abs", "../x", "a/../../x", ".", "", "a/./../b"] {
            assert!(stage.write(Path::new(path), b"x").is_err(), "{path}");
        }
        // Nor does a file replace another.
        stage.write(Path::new("a"), b"x").unwrap();
        assert!(stage.write(Path::new("a"), b"y").is_err());
    }

    #[test]
    fn only_what_nobody_uses_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let used = Stage::beside(&root.path().join("out")).unwrap();
        let left = Stage::beside(&root.path().join("out")).unwrap();
        // As after a kill: the directory remains, the process's lock is released.
        let Stage { folder, _lock, .. } = left;
        let abandoned = folder.keep();
        drop(_lock);
        let other = Stage::beside(&root.path().join("out")).unwrap();
        assert!(!abandoned.exists());
        assert!(used.folder.path().exists() && other.folder.path().exists());
    }

    #[test]
    fn files_are_not_moved_through_links() {
        let root = tempfile::tempdir().unwrap();
        let (out, elsewhere) = (root.path().join("out"), root.path().join("elsewhere"));
        fs::create_dir(&out).unwrap();
        fs::create_dir(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, out.join("manifests")).unwrap();
        let stage = Stage::beside(&out).unwrap();
        stage.write(Path::new("manifests/a"), b"x").unwrap();
        assert!(stage.merge(&[]).is_err());
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    }
}
