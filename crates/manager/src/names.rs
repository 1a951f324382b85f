//! Names of children and values of labels that stay within Kubernetes' limits.
use serde_json::json;

use crate::drift::fingerprint;

/// The longest name of most objects.
const NAME: usize = 253;

/// The longest value of a label, and the longest name of a Service.
const LABEL: usize = 63;

/// `parent` and `suffix`, joined by a hyphen. A name that is too long is shortened and ends in a hash of the whole name, so
/// that two parents whose names differ at the end have different children.
///
/// ```
/// use kube_manager::names;
///
/// assert_eq!(names::child("web", "backup"), "web-backup");
/// assert!(names::child(&"w".repeat(253), "backup").len() <= 253);
/// ```
pub fn child(parent: &str, suffix: &str) -> String {
    shorten(&format!("{parent}-{suffix}"), NAME)
}

/// `text` as the value of a label: unchanged, or shortened with a hash.
pub fn label(text: &str) -> String {
    shorten(text, LABEL)
}

/// As [`child`], for kinds whose names are labels of the DNS, such as Services.
pub fn dns_label(parent: &str, suffix: &str) -> String {
    shorten(&format!("{parent}-{suffix}").replace('.', "-"), LABEL)
}

fn shorten(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let hash = fingerprint(&json!(text));
    let room = most.saturating_sub(hash.len() + 1);
    let end = (0..=room).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    let (start, _) = text.split_at_checked(end).unwrap_or((text, ""));
    format!("{}-{hash}", start.trim_end_matches(['-', '.', '_']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_stay_different_and_within_the_limits() {
        let parent = |end: &str| format!("{}{end}", "p".repeat(70));
        let (one, two) = (label(&parent("one")), label(&parent("two")));
        assert_ne!(one, two);
        assert!(one.len() <= 63 && two.len() <= 63);
        assert_ne!(dns_label(&parent("a"), "x"), dns_label(&parent("b"), "x"));
        assert_eq!(child(&"a".repeat(300), "b").len(), 253);
        assert_eq!(label("short"), "short");
    }
}
