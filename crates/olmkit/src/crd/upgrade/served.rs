//! Versions that are served side by side: an object of one is read as the other, so they may not differ more than before.

use std::cmp::Ordering;

use serde_json::Value;

use super::property::{self, Found};
use super::{Problem, Version};

/// What differs between two served versions now and did not before. A webhook that converts makes all of it fine.
pub(super) fn check(new: &Value, before: &[Version<'_>], now: &[Version<'_>]) -> Vec<Problem> {
    let strategy = new.pointer("/spec/conversion/strategy").and_then(Value::as_str);
    if strategy == Some("Webhook") {
        return Vec::new();
    }
    let mut problems = Vec::new();
    for (first, second) in pairs(now) {
        let known = pairs(before)
            .into_iter()
            .find(|(one, other)| one.name == first.name && other.name == second.name);
        let known = known.map(|(one, other)| property::compare(&one.flat(), &other.flat()));
        let name = format!("{} -> {}", first.name, second.name);
        let (first, second) = (first.flat(), second.flat());
        for (path, found) in property::compare(&first, &second) {
            let known = known.as_ref().and_then(|known| known.get(&path));
            let is_new = |found: &Found| known.is_none_or(|known| !known.contains(found));
            let news = found.into_iter().filter(is_new);
            problems.extend(news.map(|found| found.problem(&name, &path, &first, &second)));
        }
    }
    problems
}

/// Each two of the served versions, the lower one first.
fn pairs<'v>(versions: &[Version<'v>]) -> Vec<(Version<'v>, Version<'v>)> {
    let mut served: Vec<Version<'v>> = versions.iter().copied().filter(|version| version.served).collect();
    served.sort_by(|one, other| compare(one.name, other.name));
    let mut pairs = Vec::new();
    for (at, first) in served.iter().enumerate() {
        pairs.extend(served.iter().skip(at + 1).map(|second| (*first, *second)));
    }
    pairs
}

/// The order of versions as Kubernetes has it: `foo`, `v1alpha1`, `v1beta1`, `v1`, `v2`.
fn compare(one: &str, other: &str) -> Ordering {
    match (parse(one), parse(other)) {
        (None, None) => other.cmp(one),
        (one, other) => one.cmp(&other),
    }
}

/// Maturity, major and minor number.
fn parse(version: &str) -> Option<(u8, u64, u64)> {
    let number = |text: &str| -> Option<u64> {
        let sound = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        sound.then(|| text.parse().ok()).flatten()
    };
    let rest = version.strip_prefix('v')?;
    for (word, maturity) in [("alpha", 0), ("beta", 1)] {
        if let Some((major, minor)) = rest.split_once(word) {
            return Some((maturity, number(major)?, number(minor)?));
        }
    }
    Some((2, number(rest)?, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_the_order_of_kubernetes() {
        let mut names = [
            "v2", "v1beta1", "v10", "foo", "v1alpha2", "v1", "v1alpha1", "bar", "v1x",
        ];
        names.sort_by(|one, other| compare(one, other));
        assert_eq!(
            names,
            [
                "v1x", "foo", "bar", "v1alpha1", "v1alpha2", "v1beta1", "v1", "v2", "v10"
            ]
        );
    }
}
