//! References as distribution/reference reads them, with Docker's registry filled in.

use super::{Reference, ReferenceError, grammar};
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
    let Some(parts) = parts(text) else {
        let only_case = parts(&text.to_lowercase()).is_some();
        let name = text.split_once('/').map_or(text, |(_, rest)| rest);
        return Err(if only_case {
            ReferenceError::NotLowerCase(name.to_owned())
        } else {
            ReferenceError::Format
        });
    };
    if parts.repository.len() > LONGEST_PATH {
        return Err(ReferenceError::TooLong);
    }
    Ok(Reference {
        registry: parts.registry.map(str::to_owned),
        repository: parts.repository.to_owned(),
        tag: parts.tag.map(str::to_owned),
        digest: parts.digest.map(Digest::parse_normalized).transpose()?,
    })
}

/// The parts of a text that follows the grammar.
#[derive(Debug, PartialEq)]
struct Parts<'t> {
    registry: Option<&'t str>,
    repository: &'t str,
    tag: Option<&'t str>,
    digest: Option<&'t str>,
}

/// A command that checks few references must not build a regular expression for them.
fn parts(text: &str) -> Option<Parts<'_>> {
    let (text, digest) = optional(text, '@');
    let (registry, text) = match text.split_once('/') {
        Some((registry, rest)) if grammar::is_registry(registry) => (Some(registry), rest),
        _ => (None, text),
    };
    let (repository, tag) = optional(text, ':');
    let is_sound = repository.split('/').all(grammar::is_component)
        && tag.is_none_or(grammar::is_tag)
        && digest.is_none_or(is_digest);
    is_sound.then_some(Parts {
        registry,
        repository,
        tag,
        digest,
    })
}

fn optional(text: &str, separator: char) -> (&str, Option<&str>) {
    match text.split_once(separator) {
        Some((text, rest)) => (text, Some(rest)),
        None => (text, None),
    }
}

fn is_digest(text: &str) -> bool {
    let word = |word: &str| {
        word.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    text.split_once(':').is_some_and(|(algorithm, hex)| {
        algorithm.split(['-', '_', '+', '.']).all(word)
            && hex.len() >= 32
            && hex.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

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

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::*;

    /// The grammar of distribution/reference as a regular expression.
    fn grammar() -> Regex {
        const LABEL: &str = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])";
        const WORD: &str = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*";
        let host = format!(r"(?:{LABEL}(?:\.{LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?");
        let tag = "[0-9A-Za-z_][0-9A-Za-z_.-]{0,127}";
        let digest = "[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9A-Fa-f]{32,}";
        let whole = format!(
            r"\A(?:(?P<registry>{host})/)?(?P<repository>{WORD}(?:/{WORD})*)(?::(?P<tag>{tag}))?(?:@(?P<digest>{digest}))?\z"
        );
        Regex::new(&whole).unwrap()
    }

    #[test]
    fn parts_are_those_of_the_grammar() {
        const PIECES: [&str; 24] = [
            "a",
            "b1",
            "Z",
            "0",
            ".",
            "..",
            "-",
            "--",
            "_",
            "__",
            "___",
            "/",
            "/",
            ":",
            ":5000",
            "@",
            "@sha256:",
            "[",
            "]",
            "[::1]",
            "é",
            " ",
            "0123456789abcdefABCDEF0123456789",
            "localhost/",
        ];
        let grammar = grammar();
        let (mut state, mut accepted) = (0x9e37_79b9_7f4a_7c15_u64, 0);
        let mut next = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state % 1_000_003).unwrap() % below
        };
        let mut random = || -> String {
            let length = next(9);
            (0..length).map(|_| PIECES[next(PIECES.len())]).collect()
        };
        let long = ["t", "/"].map(|separator| format!("a{separator}{}", "b".repeat(128)));
        let tags = [127, 128, 129].map(|length| format!("a/b:{}", "t".repeat(length)));
        let known = [
            "a/b:t@sha256:0123456789abcdefABCDEF0123456789",
            "[::1]:5/a",
            "a.b/c_d/e:f",
        ]
        .map(str::to_owned);
        let texts = (0..200_000).map(|_| random()).chain(long).chain(tags).chain(known);
        for text in texts {
            let wanted = grammar.captures(&text).map(|found| {
                let group = |name: &str| found.name(name).map(|part| part.as_str().to_owned());
                (group("registry"), group("repository"), group("tag"), group("digest"))
            });
            let found = parts(&text).map(|parts| {
                let owned = |part: Option<&str>| part.map(str::to_owned);
                (
                    owned(parts.registry),
                    owned(Some(parts.repository)),
                    owned(parts.tag),
                    owned(parts.digest),
                )
            });
            assert_eq!(found, wanted, "{text:?}");
            accepted += usize::from(found.is_some());
        }
        assert!(accepted > 2_000, "{accepted}");
    }
}
