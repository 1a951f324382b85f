//! Content digests: `sha256:<hex>` and `sha512:<hex>`.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::ReferenceError;

/// A digest as the OCI image specification spells it. Parsing accepts the two registered algorithms, SHA-256 and SHA-512.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest {
    algorithm: Algorithm,
    hex: String,
}

/// A digest algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// SHA-256, what everything uses by default.
    Sha256,
    /// SHA-384: distribution/reference accepts it in references, the OCI image specification does not register it.
    Sha384,
    /// SHA-512, optional in the specification.
    Sha512,
}

/// Why a string is not a usable digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a digest: want sha256:<64 lower-case hex digits> or sha512:<128>")]
pub struct InvalidDigest {
    text: String,
}

impl Algorithm {
    fn named(name: &str) -> Option<Self> {
        [Self::Sha256, Self::Sha384, Self::Sha512]
            .into_iter()
            .find(|algorithm| algorithm.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha384 => "sha384",
            Self::Sha512 => "sha512",
        }
    }

    fn hex_length(self) -> usize {
        match self {
            Self::Sha256 => 64,
            Self::Sha384 => 96,
            Self::Sha512 => 128,
        }
    }
}

impl Digest {
    /// The digest that a hash function has computed.
    #[must_use]
    pub fn from_hash(algorithm: Algorithm, hash: &[u8]) -> Self {
        let hex = hash
            .iter()
            .fold(String::with_capacity(hash.len() * 2), |mut text, byte| {
                // Writing to a String cannot fail.
                let _ = write!(text, "{byte:02x}");
                text
            });
        Self { algorithm, hex }
    }

    /// Parses a digest as distribution/reference does, which also accepts SHA-384 and has other error messages.
    pub(super) fn parse_normalized(text: &str) -> Result<Self, ReferenceError> {
        let (name, hex) = text.split_once(':').ok_or(ReferenceError::DigestFormat)?;
        let algorithm = Algorithm::named(name).ok_or(ReferenceError::DigestAlgorithm)?;
        if hex.len() != algorithm.hex_length() {
            return Err(ReferenceError::DigestLength);
        }
        if !is_hex(hex) {
            return Err(ReferenceError::DigestFormat);
        }
        Ok(Self {
            algorithm,
            hex: hex.to_owned(),
        })
    }

    /// The algorithm, which is also the directory below `blobs/` in an OCI layout.
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
        let algorithm = Algorithm::named(name)
            .filter(|algorithm| *algorithm != Algorithm::Sha384)
            .ok_or_else(invalid)?;
        if hex.len() != algorithm.hex_length() || !is_hex(hex) {
            return Err(invalid());
        }
        Ok(Self {
            algorithm,
            hex: hex.to_owned(),
        })
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
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

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

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
        // A path must not be accepted in the hexadecimal part.
        assert!(format!("sha256:../{}", "a".repeat(61)).parse::<Digest>().is_err());
    }

    #[test]
    fn sha384_is_read_in_references_only() {
        let text = format!("sha384:{}", "0".repeat(96));
        assert!(text.parse::<Digest>().is_err());
        assert_eq!(Digest::parse_normalized(&text).unwrap().to_string(), text);
    }
}
