//! Content digests: `sha256:<hex>` and `sha512:<hex>`, and readers and writers that compute them on the way.

use std::fmt;
use std::io::{self, Read, Write};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256, Sha512};

/// A digest as the OCI image specification spells it. Only the two registered algorithms exist here; content named
/// by any other could not be verified and is refused while parsing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest {
    algorithm: Algorithm,
    hex: String,
}

/// A registered digest algorithm (OCI image specification, "Registered algorithms").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// SHA-256, what everything uses by default.
    Sha256,
    /// SHA-512, optional in the specification.
    Sha512,
}

/// Why a text is not a usable digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a digest: want sha256:<64 lower-case hex digits> or sha512:<128>")]
pub struct InvalidDigest {
    text: String,
}

impl Algorithm {
    fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    fn hex_length(self) -> usize {
        match self {
            Self::Sha256 => 64,
            Self::Sha512 => 128,
        }
    }
}

impl Digest {
    /// The SHA-256 digest of bytes in memory.
    pub fn of(bytes: &[u8]) -> Self {
        let mut hasher = Hasher::new(Algorithm::Sha256);
        hasher.update(bytes);
        hasher.finish()
    }

    /// The algorithm, which is also the folder below `blobs/` in an OCI layout.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The algorithm's name: `sha256` or `sha512`.
    pub fn algorithm_name(&self) -> &'static str {
        self.algorithm.name()
    }

    /// The lower-case hexadecimal part.
    pub fn hex(&self) -> &str {
        &self.hex
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.algorithm.name(), self.hex)
    }
}

impl FromStr for Digest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        let invalid = || InvalidDigest {
            text: text.chars().take(200).collect(),
        };
        let (name, hex) = text.split_once(':').ok_or_else(invalid)?;
        let algorithm = match name {
            "sha256" => Algorithm::Sha256,
            "sha512" => Algorithm::Sha512,
            _ => return Err(invalid()),
        };
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if hex.len() != algorithm.hex_length() || !hex.bytes().all(is_hex) {
            return Err(invalid());
        }
        Ok(Self {
            algorithm,
            hex: hex.to_owned(),
        })
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// Computes a digest piece by piece.
#[derive(Clone)]
pub struct Hasher(State);

#[derive(Clone)]
enum State {
    Sha256(Box<Sha256>),
    Sha512(Box<Sha512>),
}

impl Hasher {
    /// A fresh state.
    pub fn new(algorithm: Algorithm) -> Self {
        Self(match algorithm {
            Algorithm::Sha256 => State::Sha256(Box::default()),
            Algorithm::Sha512 => State::Sha512(Box::default()),
        })
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            State::Sha256(hasher) => hasher.update(bytes),
            State::Sha512(hasher) => hasher.update(bytes),
        }
    }

    /// The digest of everything that was added.
    pub fn finish(self) -> Digest {
        match self.0 {
            State::Sha256(hasher) => Digest {
                algorithm: Algorithm::Sha256,
                hex: hex(&hasher.finalize()),
            },
            State::Sha512(hasher) => Digest {
                algorithm: Algorithm::Sha512,
                hex: hex(&hasher.finalize()),
            },
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// Passes bytes on to another writer and computes their digest and count.
pub struct DigestWriter<W> {
    inner: W,
    hasher: Hasher,
    size: u64,
}

impl<W: Write> DigestWriter<W> {
    /// Wraps a writer; the digest is SHA-256.
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
        assert_eq!(Digest::of(b"").to_string(), EMPTY);
        assert_eq!(EMPTY.parse::<Digest>().unwrap(), Digest::of(b""));
    }

    #[test]
    fn other_spellings_are_refused() {
        for text in [
            "",
            "sha256:",
            "sha256:abc",
            "md5:d41d8cd98f00b204e9800998ecf8427e",
            &EMPTY.to_uppercase(),
            &EMPTY[1..],
        ] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
        // A path must not come in through the hexadecimal part.
        assert!(format!("sha256:../{}", "a".repeat(61)).parse::<Digest>().is_err());
    }

    #[test]
    fn readers_and_writers_compute_the_same_digest() {
        let mut writer = DigestWriter::new(Vec::new());
        writer.write_all(b"memcached").unwrap();
        let (bytes, digest, size) = writer.finish();
        let mut reader = DigestReader::new(bytes.as_slice(), Algorithm::Sha256);
        io::copy(&mut reader, &mut io::sink()).unwrap();
        assert_eq!(reader.finish(), (digest.clone(), 9));
        assert_eq!(digest, Digest::of(b"memcached"));
        assert_eq!(size, 9);
    }
}
