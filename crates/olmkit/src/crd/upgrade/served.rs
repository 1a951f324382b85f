//! Versions that are served together: an object of one is read as the other, so they must not differ more than before.

use std::cmp::Ordering;
use std::collections::HashMap;

use serde_json::Value;

use super::flatten::Flat;
use super::property::{self, PropertyResult};
use super::{Problems, TooMuchToCompare, Version};

/// The versions of a definition with their properties.
type Versions<'a, 'v> = (&'a [Version<'v>], &'a [Flat<'v>]);

/// Differences between two served versions that are new. A conversion webhook makes all of them acceptable.
pub(super) fn check(
    new: &Value,
    before: Versions<'_, '_>,
    now: Versions<'_, '_>,
    problems: &mut Problems<'_>,
) -> Result<(), TooMuchToCompare> {
    let strategy = new.pointer("/spec/conversion/strategy").and_then(Value::as_str);
    if strategy == Some("Webhook") {
        return Ok(());
    }
    let mut known: HashMap<(&str, &str), Pair<'_, '_>> = HashMap::new();
    for pair in pairs(before) {
        known.entry((pair.0.0.name, pair.1.0.name)).or_insert(pair);
    }
    for ((first, first_flat), (second, second_flat)) in pairs(now) {
        let found = property::compare(first_flat, second_flat);
        if found.is_empty() {
            continue;
        }
        let known = known.get(&(first.name, second.name));
        let known = known.map(|((_, one), (_, other))| property::compare(one, other));
        let name = format!("{} -> {}", first.name, second.name);
        for (path, found) in found {
            let known = known.as_ref().and_then(|known| known.get(&path));
            let is_new = |found: &PropertyResult| known.is_none_or(|known| !known.contains(found));
            let news = found.into_iter().filter(is_new);
            problems.extend(news.map(|found| found.problem(&name, &path, first_flat, second_flat)))?;
        }
    }
    Ok(())
}

/// A version with its properties.
type Served<'a, 'v> = (&'a Version<'v>, &'a Flat<'v>);
type Pair<'a, 'v> = (Served<'a, 'v>, Served<'a, 'v>);

/// Each two of the served versions, the lower one first.
fn pairs<'a, 'v>((versions, flat): Versions<'a, 'v>) -> impl Iterator<Item = Pair<'a, 'v>> {
    let mut served: Vec<Served<'a, 'v>> = versions
        .iter()
        .zip(flat)
        .filter(|(version, _)| version.served)
        .collect();
    served.sort_by(|one, other| compare(one.0.name, other.0.name));
    let mut ends = (0, 0);
    std::iter::from_fn(move || {
        ends.1 += 1;
        if ends.1 >= served.len() {
            ends = (ends.0 + 1, ends.0 + 2);
        }
        Some((*served.get(ends.0)?, *served.get(ends.1)?))
    })
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
