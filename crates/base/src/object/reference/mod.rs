//! Image references: `registry.example.com:5000/team/operator:v1@sha256:…`.
//!
//! The grammar is the distribution project's, which every container tool shares. Container engines also prepend
//! `docker.io/library/`, which is deliberately not done silently: [`Reference::registry`] rejects a short name and
//! mentions the full one, because the same short name means different images on machines with different configurations.
//! [`Reference::parse_normalized`] prepends it, for checks that follow tools which do.

mod grammar;
mod normalized;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::digest::{Digest, InvalidDigest};

/// A parsed image reference. A tag, a digest, both or neither may be present; with both, the digest selects the image
/// and the tag is informational.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    registry: Option<String>,
    repository: String,
    tag: Option<String>,
    digest: Option<Digest>,
}

/// Why a string is not a usable image reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidReference {
    /// The input is empty.
    #[error("the image reference is empty: give one like registry.example.com/team/operator:v1")]
    Empty,
    /// The name part breaks the grammar.
    #[error("{text:?} is not an image reference: {reason}")]
    Name {
        /// The input.
        text: String,
        /// The violated rule.
        reason: String,
    },
    /// The tag breaks the grammar.
    #[error(
        "{text:?} is not an image reference: the tag {tag:?} must start with a letter, digit or '_' and hold at most \
         128 letters, digits, '_', '.' and '-'"
    )]
    Tag {
        /// The input.
        text: String,
        /// The tag in it.
        tag: String,
    },
    /// The digest breaks the grammar.
    #[error("{text:?} is not an image reference: {source}")]
    Digest {
        /// The input.
        text: String,
        /// The digest's error.
        source: InvalidDigest,
    },
    /// A name without a registry where one is needed.
    #[error("{text:?} does not name its registry; write {suggestion:?} if that is the image you mean")]
    Short {
        /// The input.
        text: String,
        /// The name that most container engines would use.
        suggestion: String,
    },
}

/// Why a string is not an image reference, with distribution/reference's messages.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReferenceError {
    /// It is a bare image id.
    #[error("invalid repository name ({0}), cannot specify 64-byte hexadecimal strings")]
    ImageId(String),
    /// The repository has upper-case letters.
    #[error("invalid reference format: repository name ({0}) must be lowercase")]
    NotLowerCase(String),
    /// It does not follow the grammar.
    #[error("invalid reference format")]
    Format,
    /// The repository path has more than 255 characters.
    #[error("repository name must not be more than 255 characters")]
    TooLong,
    /// The digest names an algorithm other than sha256, sha384 and sha512.
    #[error("unsupported digest algorithm")]
    DigestAlgorithm,
    /// The digest has the wrong length for its algorithm.
    #[error("invalid checksum digest length")]
    DigestLength,
    /// The digest is malformed.
    #[error("invalid checksum digest format")]
    DigestFormat,
}

impl Reference {
    /// Parses a reference. The same as `text.parse()`.
    ///
    /// ```
    /// use olmkit_base::object::Reference;
    /// let reference = Reference::parse("localhost:5000/memcached-operator-bundle:v0.0.1")?;
    /// assert_eq!(reference.registry()?, "localhost:5000");
    /// assert_eq!(reference.repository(), "memcached-operator-bundle");
    /// assert_eq!(reference.tag(), Some("v0.0.1"));
    /// # Ok::<(), olmkit_base::object::InvalidReference>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidReference`] with the rule that the string breaks.
    pub fn parse(text: &str) -> Result<Self, InvalidReference> {
        if text.is_empty() {
            return Err(InvalidReference::Empty);
        }
        let (rest, digest) = match text.split_once('@') {
            None => (text, None),
            Some((rest, digest)) => {
                let parsed = digest.parse().map_err(|source| InvalidReference::Digest {
                    text: text.into(),
                    source,
                })?;
                (rest, Some(parsed))
            }
        };
        // A colon after the last slash starts the tag. A colon before it belongs to the registry's port.
        let (name, tag) = match rest.rsplit_once(':') {
            Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
            _ => (rest, None),
        };
        if let Some(tag) = tag
            && !grammar::is_tag(tag)
        {
            return Err(InvalidReference::Tag {
                text: text.into(),
                tag: tag.into(),
            });
        }
        let (registry, repository) = grammar::split_registry(name);
        grammar::check_name(name, registry, repository).map_err(|reason| InvalidReference::Name {
            text: text.into(),
            reason,
        })?;
        Ok(Self {
            registry: registry.map(str::to_owned),
            repository: repository.to_owned(),
            tag: tag.map(str::to_owned),
            digest,
        })
    }

    /// Parses a reference as container engines do: `busybox` is `docker.io/library/busybox`. Grammar and messages are
    /// those of distribution/reference's `ParseNormalizedNamed`.
    ///
    /// ```
    /// use olmkit_base::object::Reference;
    /// let reference = Reference::parse_normalized("busybox:1")?;
    /// assert_eq!(reference.name(), "docker.io/library/busybox");
    /// assert_eq!(reference.familiar(), "busybox:1");
    /// # Ok::<(), olmkit_base::object::ReferenceError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ReferenceError`] with distribution/reference's message.
    pub fn parse_normalized(text: &str) -> Result<Self, ReferenceError> {
        normalized::parse(text)
    }

    /// The registry's host and port. A short name has none: the error mentions the full name that engines would use.
    ///
    /// # Errors
    ///
    /// [`InvalidReference::Short`].
    pub fn registry(&self) -> Result<&str, InvalidReference> {
        self.registry.as_deref().ok_or_else(|| InvalidReference::Short {
            text: self.to_string(),
            suggestion: self.with_registry(normalized::DEFAULT_REGISTRY).to_string(),
        })
    }

    /// Returns true if the reference names no registry.
    pub fn is_short(&self) -> bool {
        self.registry.is_none()
    }

    /// The repository below the registry, such as `team/operator`.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// Registry and repository without tag and digest.
    pub fn name(&self) -> String {
        match &self.registry {
            Some(registry) => format!("{registry}/{}", self.repository),
            None => self.repository.clone(),
        }
    }

    /// The short form that Docker shows: `busybox:latest` for `docker.io/library/busybox:latest`.
    pub fn familiar(&self) -> String {
        let name = match self.registry.as_deref() {
            Some(normalized::DEFAULT_REGISTRY) => {
                let short = self.repository.strip_prefix(normalized::OFFICIAL);
                short
                    .filter(|rest| !rest.contains('/'))
                    .unwrap_or(&self.repository)
                    .to_owned()
            }
            _ => self.name(),
        };
        self.with_suffixes(name)
    }

    /// The tag, if one is written.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// The digest, if one is written.
    pub fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }

    /// The identifier of the manifest in its repository: the digest, else the tag, else `latest`.
    pub fn version(&self) -> String {
        match (&self.digest, &self.tag) {
            (Some(digest), _) => digest.to_string(),
            (None, Some(tag)) => tag.clone(),
            (None, None) => "latest".to_owned(),
        }
    }

    /// The same image by digest only: the reference can never mean another image.
    pub fn pinned(&self, digest: Digest) -> Self {
        Self {
            tag: None,
            digest: Some(digest),
            ..self.clone()
        }
    }

    /// The same reference with `latest` written out if it names neither tag nor digest.
    pub fn with_default_tag(&self) -> Self {
        match (&self.tag, &self.digest) {
            (None, None) => Self {
                tag: Some("latest".to_owned()),
                ..self.clone()
            },
            _ => self.clone(),
        }
    }

    /// A short name completed with a registry. Docker Hub has single-word names below `library/`.
    pub fn with_registry(&self, registry: &str) -> Self {
        let repository = match registry {
            normalized::DEFAULT_REGISTRY if !self.repository.contains('/') => {
                format!("{}{}", normalized::OFFICIAL, self.repository)
            }
            _ => self.repository.clone(),
        };
        Self {
            registry: Some(registry.to_owned()),
            repository,
            ..self.clone()
        }
    }

    fn with_suffixes(&self, mut name: String) -> String {
        if let Some(tag) = &self.tag {
            name.push(':');
            name.push_str(tag);
        }
        if let Some(digest) = &self.digest {
            name.push('@');
            name.push_str(&digest.to_string());
        }
        name
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.with_suffixes(self.name()))
    }
}

impl FromStr for Reference {
    type Err = InvalidReference;

    fn from_str(text: &str) -> Result<Self, InvalidReference> {
        Self::parse(text)
    }
}

impl Serialize for Reference {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Reference {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn references_split_as_the_distribution_grammar_says() {
        // (text, registry, repository, tag, has digest)
        let cases = [
            (
                "quay.io/team/operator:v1".to_owned(),
                Some("quay.io"),
                "team/operator",
                Some("v1"),
                false,
            ),
            ("localhost:5000/a".to_owned(), Some("localhost:5000"), "a", None, false),
            (
                "localhost/a/b__c.d-e---f:X_1.2-3".to_owned(),
                Some("localhost"),
                "a/b__c.d-e---f",
                Some("X_1.2-3"),
                false,
            ),
            (format!("r.io/a:v1@{DIGEST}"), Some("r.io"), "a", Some("v1"), true),
            (format!("r.io/a@{DIGEST}"), Some("r.io"), "a", None, true),
            (
                "[2001:db8::1]:5000/a:b".to_owned(),
                Some("[2001:db8::1]:5000"),
                "a",
                Some("b"),
                false,
            ),
            ("Host/a".to_owned(), Some("Host"), "a", None, false),
            ("nginx:1.27".to_owned(), None, "nginx", Some("1.27"), false),
            ("team/nginx".to_owned(), None, "team/nginx", None, false),
        ];
        for (text, registry, repository, tag, digest) in cases {
            let parsed = Reference::parse(&text).unwrap();
            assert_eq!(parsed.registry().ok(), registry, "{text}");
            assert_eq!(parsed.repository(), repository, "{text}");
            assert_eq!(parsed.tag(), tag, "{text}");
            assert_eq!(parsed.digest().is_some(), digest, "{text}");
            assert_eq!(parsed.to_string(), text);
        }
    }

    #[test]
    fn invalid_syntax_is_rejected() {
        let long = format!("r.io/{}", "a".repeat(255));
        for text in [
            "",
            "r.io/",
            "r.io//a",
            "r.io/A",
            "r.io/a_",
            "r.io/a___b",
            "r.io/a..b",
            "r.io/a:",
            "r.io/a:-x",
            "r.io/a@sha256:12",
            "r.io/../a",
            "-r.io/a",
            "r.io:x/a",
            "r.io/a b",
            " r.io/a",
            &long,
        ] {
            assert!(Reference::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn short_names_are_refused_with_the_full_name() {
        let message = |text: &str| Reference::parse(text).unwrap().registry().unwrap_err().to_string();
        assert!(
            message("nginx:1").contains("\"docker.io/library/nginx:1\""),
            "{}",
            message("nginx:1")
        );
        assert!(message("team/nginx").contains("\"docker.io/team/nginx\""));
    }
}
