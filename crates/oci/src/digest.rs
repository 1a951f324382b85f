//! Readers and writers that compute digests on the way.

use std::io::{self, Read, Write};

pub use olmkit::object::{Algorithm, Digest};
use sha2::{Digest as _, Sha256, Sha384, Sha512};

/// The SHA-256 digest of bytes in memory.
#[must_use]
pub fn sha256(bytes: &[u8]) -> Digest {
    let mut hasher = Hasher::new(Algorithm::Sha256);
    hasher.update(bytes);
    hasher.finish()
}

/// Computes a digest piece by piece.
#[derive(Clone)]
pub struct Hasher(State);

#[derive(Clone)]
enum State {
    Sha256(Box<Sha256>),
    Sha384(Box<Sha384>),
    Sha512(Box<Sha512>),
}

impl Hasher {
    /// A fresh state.
    pub fn new(algorithm: Algorithm) -> Self {
        Self(match algorithm {
            Algorithm::Sha256 => State::Sha256(Box::default()),
            Algorithm::Sha384 => State::Sha384(Box::default()),
            Algorithm::Sha512 => State::Sha512(Box::default()),
        })
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            State::Sha256(hasher) => hasher.update(bytes),
            State::Sha384(hasher) => hasher.update(bytes),
            State::Sha512(hasher) => hasher.update(bytes),
        }
    }

    /// The digest of everything that was added.
    pub fn finish(self) -> Digest {
        match self.0 {
            State::Sha256(hasher) => Digest::from_hash(Algorithm::Sha256, &hasher.finalize()),
            State::Sha384(hasher) => Digest::from_hash(Algorithm::Sha384, &hasher.finalize()),
            State::Sha512(hasher) => Digest::from_hash(Algorithm::Sha512, &hasher.finalize()),
        }
    }
}

/// Passes bytes on to another writer and computes their digest and count.
pub struct DigestWriter<W> {
    inner: W,
    hasher: Hasher,
    size: u64,
}

impl<W: Write> DigestWriter<W> {
    /// Wraps a writer. The digest is SHA-256.
    pub fn new(inner: W) -> Self {
        Self {
            inner,
            hasher: Hasher::new(Algorithm::Sha256),
            size: 0,
        }
    }

    /// The writer, the digest of what went through, and its size in bytes.
    pub fn finish(self) -> (W, Digest, u64) {
        (self.inner, self.hasher.finish(), self.size)
    }
}

impl<W: Write> Write for DigestWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hasher.update(bytes.get(..written).unwrap_or(bytes));
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Passes bytes through from another reader and computes their digest and count.
pub struct DigestReader<R> {
    inner: R,
    hasher: Hasher,
    size: u64,
}

impl<R: Read> DigestReader<R> {
    /// Wraps a reader.
    pub fn new(inner: R, algorithm: Algorithm) -> Self {
        Self {
            inner,
            hasher: Hasher::new(algorithm),
            size: 0,
        }
    }

    /// The digest of what was read so far, and its size in bytes.
    pub fn finish(self) -> (Digest, u64) {
        (self.hasher.finish(), self.size)
    }
}

impl<R: Read> Read for DigestReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.hasher.update(buffer.get(..count).unwrap_or_default());
        self.size += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn digest_of_nothing_is_the_well_known_one() {
        assert_eq!(sha256(b"").to_string(), EMPTY);
        assert_eq!(EMPTY.parse::<Digest>().unwrap(), sha256(b""));
    }

    #[test]
    fn readers_and_writers_compute_the_same_digest() {
        let mut writer = DigestWriter::new(Vec::new());
        writer.write_all(b"memcached").unwrap();
        let (bytes, digest, size) = writer.finish();
        let mut reader = DigestReader::new(bytes.as_slice(), Algorithm::Sha256);
        io::copy(&mut reader, &mut io::sink()).unwrap();
        assert_eq!(reader.finish(), (digest.clone(), 9));
        assert_eq!(digest, sha256(b"memcached"));
        assert_eq!(size, 9);
    }
}
