//! Checks the free space of a disk.

use std::path::Path;

use super::error::Error;
use super::limits::SPARE_BYTES;

/// Refuses to write `bytes` bytes of `what` where they do not fit. Where the system does not say how much is free, writing
/// will show it.
pub fn check(folder: &Path, bytes: u64, what: &str) -> Result<(), Error> {
    let Ok(disk) = rustix::fs::statvfs(folder) else {
        return Ok(());
    };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    if bytes.saturating_add(SPARE_BYTES) <= free {
        return Ok(());
    }
    Err(Error::Refused {
        what: what.to_owned(),
        reason: format!(
            "it has {bytes} bytes, and {} has room for {}; make room, or choose another place (temporary files: TMPDIR)",
            folder.display(),
            free.saturating_sub(SPARE_BYTES)
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_fits_is_written() {
        let folder = tempfile::tempdir().unwrap();
        check(folder.path(), 1000, "a").unwrap();
        let error = check(folder.path(), 1 << 50, "layer x").unwrap_err().to_string();
        assert!(
            error.starts_with("layer x is refused: it has 1125899906842624 bytes"),
            "{error}"
        );
    }
}
