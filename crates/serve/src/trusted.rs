//! Files that only this user or root can have written.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Opens a regular file that only this user or root can have written. A cache directory may be shared, `/tmp` for one.
///
/// # Errors
/// The file does not exist, or another user owns it. The error names the owner.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    let refuse = |reason: String| io::Error::new(io::ErrorKind::PermissionDenied, reason);
    if !metadata.is_file() {
        return Err(refuse(format!("{} is not a regular file", path.display())));
    }
    let own = rustix::process::geteuid().as_raw();
    if ![0, own].contains(&metadata.uid()) {
        let owner = metadata.uid();
        return Err(refuse(format!(
            "{} belongs to user {owner}, who is neither root nor this user ({own})",
            path.display()
        )));
    }
    // Images for arbitrary users let root's group write.
    let others = if metadata.gid() == 0 { 0o002 } else { 0o022 };
    if metadata.mode() & others != 0 {
        return Err(refuse(format!(
            "{} may be written by others (mode {:o})",
            path.display(),
            metadata.mode() & 0o7777
        )));
    }
    Ok(file)
}
