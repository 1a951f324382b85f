//! Image references by the grammar of distribution/reference.

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use regex::Regex;

/// What Docker prefixes to names without a registry.
const DEFAULT_REGISTRY: &str = "docker.io";

/// Where Docker Hub keeps images without a namespace.
const OFFICIAL: &str = "library/";

/// Longest repository path.
const LONGEST_PATH: usize = 255;

/// An image reference with its short forms filled in: `busybox` is `docker.io/library/busybox`.
///
/// ```
/// use olmkit::object::Reference;
///
/// let reference: Reference = "quay.io/example/operator:v1".parse()?;
/// assert_eq!(reference.registry(), "quay.io");
/// assert_eq!(reference.repository(), "example/operator");
/// assert_eq!(reference.tag(), Some("v1"));
/// # Ok::<(), olmkit::object::ReferenceError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    registry: String,
    repository: String,
    tag: Option<String>,
    digest: Option<String>,
}

/// Why a text is no image reference, in distribution/reference's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
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
    /// The digest is no digest.
    #[error("invalid checksum digest format")]
    DigestFormat,
}

impl Reference {
    /// Reads a reference.
    ///
    /// # Errors
    ///
    /// [`ReferenceError`] with distribution/reference's text.
    pub fn parse(text: &str) -> Result<Self, ReferenceError> {
        let is_id = text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if is_id {
            return Err(ReferenceError::ImageId(text.to_owned()));
        }
        let (registry, rest) = split_registry(text);
        let name = rest.split(':').next().unwrap_or_default();
        if name.to_lowercase() != name {
            return Err(ReferenceError::NotLowerCase(name.to_owned()));
        }
        Self::from_full(&format!("{registry}/{rest}"))
    }

    fn from_full(text: &str) -> Result<Self, ReferenceError> {
        let Some(Some(found)) = GRAMMAR.as_ref().map(|grammar| grammar.captures(text)) else {
            let lower = text.to_lowercase();
            let only_case = GRAMMAR.as_ref().is_some_and(|grammar| grammar.is_match(&lower));
            let name = text.split_once('/').map_or(text, |(_, rest)| rest);
            return Err(if only_case {
                ReferenceError::NotLowerCase(name.to_owned())
            } else {
                ReferenceError::Format
            });
        };
        let group = |name: &str| found.name(name).map(|part| part.as_str().to_owned());
        let repository = group("repository").unwrap_or_default();
        if repository.len() > LONGEST_PATH {
            return Err(ReferenceError::TooLong);
        }
        let digest = group("digest");
        if let Some(digest) = &digest {
            check_digest(digest)?;
        }
        Ok(Self {
            registry: group("registry").unwrap_or_default(),
            repository,
            tag: group("tag"),
            digest,
        })
    }

    /// Host and optional port: `docker.io`, `localhost:5000`. It is empty for the few texts whose first part looks
    /// like a host but is none (`a_b.com/c`).
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// Path inside the registry: `library/busybox`.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// The tag, if the text has one.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// The digest with its algorithm (`sha256:…`), if the text has one.
    pub fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    /// Registry and repository: `docker.io/library/busybox`.
    pub fn name(&self) -> String {
        if self.registry.is_empty() {
            return self.repository.clone();
        }
        format!("{}/{}", self.registry, self.repository)
    }

    /// The short form that Docker shows: `busybox:latest`.
    pub fn familiar(&self) -> String {
        let name = if self.registry == DEFAULT_REGISTRY {
            let short = self
                .repository
                .strip_prefix(OFFICIAL)
                .filter(|rest| !rest.contains('/'));
            short.unwrap_or(&self.repository).to_owned()
        } else {
            self.name()
        };
        self.with_suffixes(name)
    }

    /// The same image with a tag instead of tag and digest.
    #[must_use]
    pub fn with_tag(&self, tag: impl Into<String>) -> Self {
        Self {
            tag: Some(tag.into()),
            digest: None,
            ..self.clone()
        }
    }

    /// The same repository with a digest; the tag stays.
    #[must_use]
    pub fn with_digest(&self, digest: impl Into<String>) -> Self {
        Self {
            digest: Some(digest.into()),
            ..self.clone()
        }
    }

    fn with_suffixes(&self, mut name: String) -> String {
        for (mark, part) in [(':', &self.tag), ('@', &self.digest)] {
            if let Some(part) = part {
                name.push(mark);
                name.push_str(part);
            }
        }
        name
    }
}

impl FromStr for Reference {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.with_suffixes(self.name()))
    }
}

static GRAMMAR: LazyLock<Option<Regex>> = LazyLock::new(|| {
    const LABEL: &str = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])";
    const WORD: &str = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*";
    let host = format!(r"(?:{LABEL}(?:\.{LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?");
    let tag = "[0-9A-Za-z_][0-9A-Za-z_.-]{0,127}";
    let digest = "[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9A-Fa-f]{32,}";
    let whole = format!(
        r"\A(?:(?P<registry>{host})/)?(?P<repository>{WORD}(?:/{WORD})*)(?::(?P<tag>{tag}))?(?:@(?P<digest>{digest}))?\z"
    );
    Regex::new(&whole).ok()
});

/// Splits off the registry the way Docker guesses it: the first part is one if it is `localhost`, holds a dot or a
/// colon, or has upper-case letters.
fn split_registry(text: &str) -> (&str, String) {
    let (registry, rest) = match text.split_once('/') {
        None => return (DEFAULT_REGISTRY, format!("{OFFICIAL}{text}")),
        Some(("index.docker.io", rest)) => (DEFAULT_REGISTRY, rest),
        Some((first, rest)) if first == "localhost" || first.contains(['.', ':']) || first.to_lowercase() != first => {
            (first, rest)
        }
        Some(_) => (DEFAULT_REGISTRY, text),
    };
    if registry == DEFAULT_REGISTRY && !rest.contains('/') {
        return (DEFAULT_REGISTRY, format!("{OFFICIAL}{rest}"));
    }
    (registry, rest.to_owned())
}

fn check_digest(digest: &str) -> Result<(), ReferenceError> {
    let (algorithm, hex) = digest.split_once(':').ok_or(ReferenceError::DigestFormat)?;
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return Err(ReferenceError::DigestAlgorithm),
    };
    if hex.len() != length {
        return Err(ReferenceError::DigestLength);
    }
    if !hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return Err(ReferenceError::DigestFormat);
    }
    Ok(())
}
