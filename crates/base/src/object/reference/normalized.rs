//! References as distribution/reference reads them, with Docker's registry filled in.

use std::sync::LazyLock;

use regex::Regex;

use super::{Reference, ReferenceError};
use crate::object::Digest;

/// Docker's prefix for names without a registry.
pub(super) const DEFAULT_REGISTRY: &str = "docker.io";

/// Docker Hub's namespace for images without one.
pub(super) const OFFICIAL: &str = "library/";

/// Longest repository path.
const LONGEST_PATH: usize = 255;

pub(super) fn parse(text: &str) -> Result<Reference, ReferenceError> {
    let is_id = text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if is_id {
        return Err(ReferenceError::ImageId(text.to_owned()));
    }
    let (registry, rest) = split_registry(text);
    let name = rest.split(':').next().unwrap_or_default();
    if name.to_lowercase() != name {
        return Err(ReferenceError::NotLowerCase(name.to_owned()));
    }
    from_full(&format!("{registry}/{rest}"))
}

fn from_full(text: &str) -> Result<Reference, ReferenceError> {
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
    let digest = group("digest")
        .map(|digest| Digest::parse_normalized(&digest))
        .transpose()?;
    Ok(Reference {
        registry: group("registry"),
        repository,
        tag: group("tag"),
        digest,
    })
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

/// Splits off the registry as Docker does: the first part is one if it is `localhost`, contains a dot or a colon, or
/// has uppercase letters.
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
