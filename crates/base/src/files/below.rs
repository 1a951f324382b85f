//! Files below a directory of untrusted content.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::limits::{self, Limit};

/// A directory that may come from an untrusted author. Its files are opened relative to it. A symbolic link may point
/// to another path below the directory, and is an error if it points outside. So are pipes, sockets and devices, which
/// may never end.
///
/// Linux opens each path in one step (`openat2` with `RESOLVE_BENEATH`). Elsewhere, and if that call is not allowed, the resolved path
/// is compared first.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    real: PathBuf,
    handle: File,
}

/// How a path is opened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Only for its kind and size.
    Look,
    /// To read it.
    Read,
}

impl Directory {
    /// Opens a directory. The path itself may be a link.
    ///
    /// # Errors
    /// It does not exist, is no directory, or cannot be read.
    pub fn open(path: &Path) -> io::Result<Self> {
        let real = path.canonicalize()?;
        if !fs::metadata(&real)?.is_dir() {
            return Err(rustix::io::Errno::NOTDIR.into());
        }
        Ok(Self {
            path: path.to_path_buf(),
            handle: File::open(&real)?,
            real,
        })
    }

    /// The path that it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The target of a path.
    ///
    /// # Errors
    /// It leads nowhere, or out of the directory: see [`leads_out`].
    pub fn metadata(&self, relative: &Path) -> io::Result<Metadata> {
        self.resolve(relative, Mode::Look)?.metadata()
    }

    /// Opens a regular file.
    ///
    /// # Errors
    /// It cannot be opened, is not a regular file, or is not below the directory.
    pub fn file(&self, relative: &Path) -> io::Result<File> {
        // Opening a device can have effects, so the kind is checked first, and again for the opened file.
        let check = |metadata: Metadata| match metadata {
            found if found.is_file() => Ok(()),
            found if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
        };
        check(self.metadata(relative)?)?;
        let file = self.resolve(relative, Mode::Read)?;
        check(file.metadata()?)?;
        Ok(file)
    }

    /// Reads a regular file up to a limit.
    ///
    /// # Errors
    /// As of [`Self::file`]. [`io::ErrorKind::FileTooLarge`] for a larger file.
    pub fn read(&self, relative: &Path, limit: &Limit) -> io::Result<Vec<u8>> {
        limits::read_opened(self.file(relative)?, limit)
    }

    /// The names in a directory below this one, sorted.
    ///
    /// # Errors
    /// It cannot be listed, or is not below the directory.
    pub fn names(&self, relative: &Path) -> io::Result<Vec<std::ffi::OsString>> {
        if !self.metadata(relative)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        let entries = fs::read_dir(self.real.join(relative))?;
        let mut names = entries
            .map(|entry| Ok(entry?.file_name()))
            .collect::<io::Result<Vec<_>>>()?;
        names.sort();
        Ok(names)
    }

    /// Checks that no symbolic link below leads out of the directory, and that there is nothing else than files, directories and links.
    ///
    /// # Errors
    /// The first such entry, named, or a directory that cannot be listed.
    pub fn check(&self) -> io::Result<()> {
        let named =
            |path: &Path, error: &io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        for entry in walkdir::WalkDir::new(&self.path).follow_root_links(true) {
            let entry = entry.map_err(io::Error::from)?;
            let (path, kind) = (entry.path(), entry.file_type());
            if kind.is_symlink() {
                let relative = path.strip_prefix(&self.path).unwrap_or(path);
                if let Err(error) = self.metadata(relative)
                    && leads_out(&error)
                {
                    return Err(named(path, &error));
                }
            } else if !kind.is_file() && !kind.is_dir() {
                let error = io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
                return Err(named(path, &error));
            }
        }
        Ok(())
    }

    fn resolve(&self, relative: &Path, mode: Mode) -> io::Result<File> {
        let normal = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if !relative.components().all(normal) {
            return Err(outside());
        }
        let relative = if relative.as_os_str().is_empty() {
            Path::new(".")
        } else {
            relative
        };
        #[cfg(target_os = "linux")]
        if let Some(opened) = beneath(&self.handle, relative, mode) {
            return opened;
        }
        self.compared(relative, mode)
    }

    /// Without `openat2`: resolves the path, and opens it if it is below the directory.
    fn compared(&self, relative: &Path, mode: Mode) -> io::Result<File> {
        use rustix::fs::{Mode as Permissions, OFlags};
        let real = self.real.join(relative).canonicalize()?;
        if !real.starts_with(&self.real) {
            return Err(outside());
        }
        let metadata = fs::symlink_metadata(&real)?;
        // Special files are not opened, unless the system can open them for metadata only.
        let looks = mode == Mode::Look && !(metadata.is_file() || metadata.is_dir());
        if looks && !cfg!(target_os = "linux") {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        Ok(rustix::fs::openat(
            &self.handle,
            &real,
            flags(mode) | OFlags::NOFOLLOW,
            Permissions::empty(),
        )?
        .into())
    }
}

fn flags(mode: Mode) -> rustix::fs::OFlags {
    use rustix::fs::OFlags;
    let common = OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    match mode {
        #[cfg(target_os = "linux")]
        Mode::Look => OFlags::CLOEXEC | OFlags::PATH,
        _ => common | OFlags::RDONLY,
    }
}

/// `None` if the system has no such call, or forbids it.
#[cfg(target_os = "linux")]
fn beneath(directory: &File, relative: &Path, mode: Mode) -> Option<io::Result<File>> {
    use rustix::fs::{Mode as Permissions, ResolveFlags, openat2};
    use rustix::io::Errno;
    // A concurrent rename can make the kernel fail with EAGAIN.
    for _ in 0..100 {
        match openat2(
            directory,
            relative,
            flags(mode),
            Permissions::empty(),
            ResolveFlags::BENEATH,
        ) {
            Ok(file) => return Some(Ok(file.into())),
            Err(Errno::AGAIN) => {}
            Err(Errno::XDEV) => return Some(Err(outside())),
            Err(Errno::NOSYS | Errno::PERM) => return None,
            Err(error) => return Some(Err(error.into())),
        }
    }
    Some(Err(Errno::AGAIN.into()))
}

const OUTSIDE: &str = "a symbolic link leads out of the directory; replace it with a file";

fn outside() -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, OUTSIDE)
}

/// Returns true if an error of a [`Directory`] is about a link that points outside.
pub fn leads_out(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied && error.get_ref().is_some_and(|inner| inner.to_string() == OUTSIDE)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A directory with a file, and a secret outside.
    fn directory() -> (tempfile::TempDir, Directory) {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("inside");
        fs::create_dir_all(inside.join("a/b")).unwrap();
        fs::write(folder.path().join("secret"), "secret").unwrap();
        fs::write(inside.join("a/file"), "text").unwrap();
        let directory = Directory::open(&inside).unwrap();
        (folder, directory)
    }

    #[test]
    fn links_may_lead_elsewhere_below_the_directory_only() {
        let (folder, directory) = directory();
        let inside = folder.path().join("inside");
        let link = |target: &str, name: &str| symlink(target, inside.join(name)).unwrap();
        link("a/file", "fine");
        link("../file", "a/b/fine");
        link("a", "folder");
        link("../secret", "relative");
        link(folder.path().join("secret").to_str().unwrap(), "absolute");
        link("/proc/self/environ", "environment");
        link("..", "parent");
        link("relative", "chain");
        link("../inside/a/file", "round");
        for path in ["a/file", "fine", "a/b/fine", "folder/file", "./a/./file"] {
            let path = Path::new(path);
            assert_eq!(
                directory.read(path, &limits::SETTINGS_FILE).unwrap(),
                b"text",
                "{path:?}"
            );
            assert!(directory.compared(path, Mode::Read).is_ok(), "{path:?}");
        }
        for path in [
            "relative",
            "absolute",
            "environment",
            "parent",
            "parent/secret",
            "chain",
            "../secret",
            "/etc/passwd",
        ] {
            let path = Path::new(path);
            assert!(leads_out(&directory.metadata(path).unwrap_err()), "{path:?}");
            assert!(leads_out(&directory.file(path).unwrap_err()), "{path:?}");
            assert!(
                directory
                    .compared(path, Mode::Read)
                    .is_err_and(|error| leads_out(&error)),
                "{path:?}"
            );
        }
        let error = directory.check().unwrap_err();
        assert!(error.to_string().contains("leads out of the directory"), "{error}");
        assert!(leads_out(&directory.names(Path::new("parent")).unwrap_err()));
        assert_eq!(directory.names(Path::new("folder")).unwrap(), ["b", "file"]);
        let error = directory.file(Path::new("absent")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn only_regular_files_are_opened() {
        let (folder, directory) = directory();
        let inside = folder.path().join("inside");
        let made = std::process::Command::new("mkfifo").arg(inside.join("pipe")).status();
        assert!(made.unwrap().success());
        let _socket = std::os::unix::net::UnixListener::bind(inside.join("socket")).unwrap();
        symlink("pipe", inside.join("link")).unwrap();
        for path in ["pipe", "socket", "link", "a"] {
            assert!(directory.file(Path::new(path)).is_err(), "{path}");
        }
        assert!(
            directory
                .check()
                .unwrap_err()
                .to_string()
                .contains("not a regular file")
        );
    }

    #[test]
    fn a_directory_is_opened_through_a_link_to_it() {
        let (folder, _) = directory();
        let link = folder.path().join("link");
        symlink("inside", &link).unwrap();
        let directory = Directory::open(&link).unwrap();
        assert!(directory.file(Path::new("a/file")).is_ok());
        assert!(Directory::open(&folder.path().join("secret")).is_err());
    }
}
