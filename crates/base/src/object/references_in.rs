//! Image references inside other strings.

use std::sync::LazyLock;

use regex::Regex;

static CANDIDATE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"[a-zA-Z0-9/\-._@:]+").ok());

/// Registry with a dot, any namespaces, repository, tag or digest.
static REFERENCE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let name = "(?:[a-zA-Z0-9][a-zA-Z0-9._-]*[a-zA-Z0-9]|[a-zA-Z0-9])";
    let registry = r"[a-zA-Z0-9][a-zA-Z0-9._-]*\.[a-zA-Z0-9._-]*[a-zA-Z0-9](?::\d+)?";
    Regex::new(&format!(
        "^{registry}/(?:{name}/)*{name}(?::{name}|@sha256:[a-fA-F0-9]{{64}})$"
    ))
    .ok()
});

/// The image references that a text contains, such as the JSON of an annotation. It finds the same references as
/// operator-manifest-tools, with which operator-sdk, preflight and the hosted pipelines pin digests: the registry must contain a
/// dot, and a tag or digest must follow.
pub fn references_in(text: &str) -> impl Iterator<Item = &str> {
    located(text).map(|(_, reference)| reference)
}

/// The string with some of its image references replaced.
pub fn replace_references(text: &str, mut replace: impl FnMut(&str) -> Option<String>) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut rest = 0;
    for (start, reference) in located(text) {
        if let Some(new) = replace(reference) {
            replaced.push_str(text.get(rest..start).unwrap_or_default());
            replaced.push_str(&new);
            rest = start + reference.len();
        }
    }
    replaced.push_str(text.get(rest..).unwrap_or_default());
    replaced
}

/// The references with their offsets.
fn located(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let candidates = CANDIDATE.iter().flat_map(|pattern| pattern.find_iter(text));
    candidates
        .map(|candidate| {
            let edge = |character: char| !character.is_ascii_alphanumeric();
            let tail = candidate.as_str().trim_start_matches(edge);
            (candidate.end() - tail.len(), tail.trim_end_matches(edge))
        })
        .filter(|(_, candidate)| REFERENCE.as_ref().is_some_and(|pattern| pattern.is_match(candidate)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_need_a_registry_with_a_dot_and_a_tag_or_digest() {
        let digest = "0".repeat(64);
        let text = format!(
            "see https://quay.io/a/b, (quay.io/c/d:v2). {{\"image\":\"registry.example.com:5000/e/f/g:1\"}} quay.io/x \
             name:tag docker/name:tag r.io/a@sha256:{digest}, r.io/a@sha256:00"
        );
        let found: Vec<&str> = references_in(&text).collect();
        assert_eq!(
            found,
            [
                "quay.io/c/d:v2",
                "registry.example.com:5000/e/f/g:1",
                &format!("r.io/a@sha256:{digest}"),
            ]
        );
    }

    #[test]
    fn only_whole_references_are_replaced() {
        let text = "xr.io/a:1 (r.io/a:1), --image=r.io/a:1-rc --image=r.io/a:1";
        let replaced = replace_references(text, |reference| {
            (reference == "r.io/a:1").then(|| "r.io/b:2".to_owned())
        });
        assert_eq!(replaced, "xr.io/a:1 (r.io/b:2), --image=r.io/a:1-rc --image=r.io/b:2");
    }
}
