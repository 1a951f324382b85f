//! The bytes of an index: a file, or memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// Backing storage of an index.
#[derive(Debug)]
pub enum Storage {
    /// A file, read by position. It is never mapped, so that a truncated file causes an error and not a signal.
    File(File),
    /// Memory.
    Memory(Vec<u8>),
}

impl Storage {
    /// Length in bytes.
    ///
    /// # Errors
    /// The file's metadata cannot be read.
    pub fn length(&self) -> io::Result<u64> {
        match self {
            Storage::File(file) => Ok(file.metadata()?.len()),
            Storage::Memory(bytes) => Ok(bytes.len() as u64),
        }
    }

    /// Reads `length` bytes from `offset`.
    ///
    /// # Errors
    /// The range is beyond the end, or the file cannot be read.
    pub fn read(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let end_of_file = || io::Error::from(io::ErrorKind::UnexpectedEof);
        match self {
            Storage::File(file) => {
                // A damaged length must not allocate more memory than the file can fill.
                if length > 1 << 20 && offset.saturating_add(length as u64) > self.length()? {
                    return Err(end_of_file());
                }
                let mut bytes = vec![0; length];
                file.read_exact_at(&mut bytes, offset)?;
                Ok(bytes)
            }
            Storage::Memory(bytes) => {
                let start = usize::try_from(offset).map_err(|_| end_of_file())?;
                let end = start.checked_add(length).ok_or_else(end_of_file)?;
                Ok(bytes.get(start..end).ok_or_else(end_of_file)?.to_vec())
            }
        }
    }
}
