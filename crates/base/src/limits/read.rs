//! Reading within limits.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Limit;

/// For [`bytes_read`].
static BYTES_READ: AtomicU64 = AtomicU64::new(0);

/// Number of bytes that this process has read within limits so far, for the progress display.
pub fn bytes_read() -> u64 {
    BYTES_READ.load(Ordering::Relaxed)
}

/// Opens a file that was found in a directory. Pipes, sockets and devices, which may never end, are rejected. A
/// directory causes an error when it is read.
///
/// # Errors
/// The file cannot be opened, or is neither a regular file nor a directory.
pub fn open(path: &Path) -> io::Result<File> {
    // Opening a pipe waits for a writer, so the kind is checked first, and again for the opened file.
    let check = |metadata: Metadata| {
        if metadata.is_file() || metadata.is_dir() {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
    };
    check(path.metadata()?)?;
    use std::os::unix::fs::OpenOptionsExt as _;
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    let file = File::options()
        .read(true)
        .custom_flags(i32::try_from(flags.bits()).unwrap_or_default())
        .open(path)?;
    check(file.metadata()?)?;
    Ok(file)
}

/// Reads a file that was found in a directory, up to a limit. Pipes, sockets and devices are rejected.
///
/// # Errors
/// The system's error. [`io::ErrorKind::FileTooLarge`] for a larger file, with the flag that raises the limit.
pub fn read_file(path: &Path, limit: &Limit) -> io::Result<Vec<u8>> {
    read_opened(open(path)?, limit)
}

/// As [`read_file`], for a file that is open already.
pub fn read_opened(file: File, limit: &Limit) -> io::Result<Vec<u8>> {
    let metadata = file.metadata()?;
    if metadata.len() > limit.get() && metadata.is_file() {
        return Err(limit.exceeded());
    }
    // Allocates the whole size: a growing vector is copied, and takes up to three times as much in between.
    let room = usize::try_from(metadata.len()).unwrap_or_default().saturating_add(1);
    read_into(Vec::with_capacity(room), file, limit)
}

/// Reads a file that the user named, up to a limit. It may be a pipe, such as a shell's `<(…)`.
///
/// # Errors
/// As of [`read_file`].
pub fn read_named(path: &Path, limit: &Limit) -> io::Result<Vec<u8>> {
    read(File::open(path)?, limit)
}

/// Reads the rest of a stream, up to a limit.
///
/// # Errors
/// As of [`read_file`].
pub fn read(from: impl Read, limit: &Limit) -> io::Result<Vec<u8>> {
    read_into(Vec::new(), from, limit)
}

fn read_into(mut bytes: Vec<u8>, from: impl Read, limit: &Limit) -> io::Result<Vec<u8>> {
    let read = from.take(limit.get().saturating_add(1)).read_to_end(&mut bytes)?;
    BYTES_READ.fetch_add(u64::try_from(read).unwrap_or_default(), Ordering::Relaxed);
    if u64::try_from(bytes.len()).is_ok_and(|length| length <= limit.get()) {
        Ok(bytes)
    } else {
        Err(limit.exceeded())
    }
}

/// Converts the read bytes to a string.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] if it is not UTF-8.
pub fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::limits::Unit;

    static SMALL: Limit = Limit::new("small", Unit::Bytes, 4, "a test");

    #[test]
    fn no_more_is_read_than_allowed() {
        assert_eq!(read(&b"1234"[..], &SMALL).unwrap(), b"1234");
        let error = read(io::repeat(0), &SMALL).unwrap_err();
        assert_eq!(
            error.to_string(),
            "larger than 4 (raise the limit with --limit small=VALUE)"
        );
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "12345").unwrap();
        assert!(read_file(&path, &SMALL).is_err());
        assert!(read_file(Path::new("/dev/zero"), &SMALL).is_err());
        assert_eq!(
            read_file(folder.path(), &SMALL).unwrap_err().kind(),
            io::ErrorKind::IsADirectory
        );
    }
}
