//! BND-9 of the profile api-0.45: image references as the Go library of the container tools reads them.

use std::sync::LazyLock;

use regex::Regex;

static REFERENCE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let label = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])";
    let component = "[a-z0-9]+(?:(?:[._]|__|[-]+)[a-z0-9]+)*";
    let pattern = format!(
        r"^(?P<name>(?:{label}(?:\.{label})*(?::[0-9]+)?/)?{component}(?:/{component})*)(?::[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}})?(?:@(?P<digest>[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{{32,}}))?$"
    );
    Regex::new(&pattern).ok()
});

/// Checks a reference.
///
/// # Errors
/// The reason.
pub fn check(image: &str) -> Result<(), &'static str> {
    const FORMAT: &str = "invalid reference format";
    if image.len() == 64 && image.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)) {
        return Err("invalid repository name, cannot specify 64-byte hexadecimal strings");
    }
    let captures = REFERENCE.as_ref().and_then(|pattern| pattern.captures(image));
    let Some(captures) = captures else {
        let lower = image.to_lowercase();
        let only_case = REFERENCE.as_ref().is_some_and(|pattern| pattern.is_match(&lower));
        return Err(if only_case { "invalid reference format: repository name must be lowercase" } else { FORMAT });
    };
    if captures.name("name").is_some_and(|name| name.as_str().len() > 255) {
        return Err("repository name must not be more than 255 characters");
    }
    let Some(digest) = captures.name("digest") else { return Ok(()) };
    let (algorithm, hex) = digest.as_str().split_once(':').unwrap_or_default();
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return Err("unsupported digest algorithm"),
    };
    if hex.len() != length {
        return Err("invalid checksum digest length");
    }
    if hex.bytes().any(|byte| byte.is_ascii_uppercase()) { Err("invalid checksum digest format") } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_as_the_go_library_reads_them() {
        let digest = "a".repeat(64);
        for good in ["nginx", "localhost:5000/a/b:1", "quay.io/x/y@sha256:D".replace('D', &digest).as_str(), "REG.io/a__b"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in ["", " nginx", "https://x/y", "$(IMAGE)", "x:", "x@", &digest, "quay.io/X/y", "x@sha256:abc"] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
