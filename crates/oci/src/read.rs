//! Reads files of untrusted size.

use std::io::Read as _;
use std::path::Path;

use crate::Error;

/// Reads a regular file that must not be larger than `limit` bytes.
pub(crate) fn read_limited(path: &Path, limit: u64) -> Result<Vec<u8>, Error> {
    let file = olmkit::limits::open(path).map_err(Error::file("read", path))?;
    limit_read(path, file, limit)
}

/// As [`read_limited`], for a file that is open already.
pub(crate) fn limit_read(path: &Path, file: std::fs::File, limit: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    file.take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(Error::file("read", path))?;
    if bytes.len() as u64 > limit {
        let reason = format!("it has more than {limit} bytes");
        return Err(Error::Refused {
            what: path.display().to_string(),
            reason,
        });
    }
    Ok(bytes)
}
