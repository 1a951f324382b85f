//! Merges one defect in many positions into one finding: the first position, and the names of the others.

use std::collections::{BTreeMap, HashSet};

use super::Finding;

/// Maximum number of the other positions that are named.
const NAMED: usize = 5;

/// Messages with this number of equal words at their ends are considered equal.
const ENOUGH: usize = 3;

/// Maximum length of a name in bytes: an image with its digest.
const LONGEST_NAME: usize = 150;

/// Folds repeated findings into the first one: findings of one rule with the same fix, whose messages differ in a few
/// words or not at all. For text output. Machine-readable formats list each with its position.
#[must_use]
pub fn fold_repeated(findings: Vec<Finding>) -> Vec<Finding> {
    let mut latest: BTreeMap<(&'static str, Option<String>), usize> = BTreeMap::new();
    let mut kept: Vec<(Finding, Vec<Finding>)> = Vec::new();
    for finding in findings {
        let key = (finding.rule, finding.hint.clone());
        match latest.get(&key).and_then(|at| kept.get_mut(*at)) {
            Some((first, others)) if repeats(first, &finding) => others.push(finding),
            _ => {
                latest.insert(key, kept.len());
                kept.push((finding, Vec::new()));
            }
        }
    }
    kept.into_iter().map(|(first, others)| folded(first, &others)).collect()
}

fn repeats(first: &Finding, other: &Finding) -> bool {
    // Without a fix, the message must not be shortened.
    if first.hint.is_none() || first.severity != other.severity {
        return false;
    }
    let differing = differing_words(&first.message, &other.message);
    let words = |text: &str| text.split(' ').filter(|word| !word.is_empty()).count();
    let equal = words(&other.message) - words(&differing);
    differing.len() <= LONGEST_NAME && (2 * differing.len() <= other.message.len() || equal >= ENOUGH)
}

/// The first finding with the names of the others.
pub fn folded(mut first: Finding, others: &[Finding]) -> Finding {
    if others.is_empty() {
        return first;
    }
    let mut named = HashSet::new();
    let mut names: Vec<Name> = others.iter().map(|other| name_beside(&first, other)).collect();
    names.retain(|name| named.insert(name.clone()));
    first.message.push_str(&format!(" ({})", list(&names)));
    first
}

/// A position that is not the first.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Name {
    /// The counted noun, such as `example`.
    of: Option<String>,
    text: String,
}

/// Names places: `also Gadget and 2 more`, `the same in examples 15 and 16`.
fn list(names: &[Name]) -> String {
    let rest = names.len().saturating_sub(NAMED);
    let shown = names.get(..NAMED).unwrap_or(names);
    let counted = shown.first().and_then(|name| name.of.as_ref());
    let are_numbers = |name: &Name| name.of.as_ref() == counted && name.text.bytes().all(|byte| byte.is_ascii_digit());
    match counted {
        Some(word) if shown.iter().all(are_numbers) => {
            let mut numbers: Vec<&str> = shown.iter().map(|name| name.text.as_str()).collect();
            let more = format!("{rest} more");
            if rest > 0 {
                numbers.push(&more);
            }
            match numbers.as_slice() {
                [others @ .., last] if !others.is_empty() => {
                    format!("the same in {word}s {} and {last}", others.join(", "))
                }
                _ => format!("the same in {word} {}", numbers.join(", ")),
            }
        }
        _ => {
            let texts: Vec<String> = shown
                .iter()
                .map(|Name { of, text }| of.iter().map(|word| format!("{word} ")).collect::<String>() + text)
                .collect();
            let more = if rest > 0 {
                format!(" and {rest} more")
            } else {
                String::new()
            };
            let have_commas = texts.iter().any(|text| text.contains(", "));
            format!("also {}{more}", texts.join(if have_commas { "; " } else { ", " }))
        }
    }
}

/// The distinguishing part of a finding: the different part of the message, else the object, else the path.
fn name_beside(first: &Finding, other: &Finding) -> Name {
    let differing = differing_words(&first.message, &other.message);
    let differing = differing.trim_end_matches([',', ';', ':']);
    if !differing.is_empty() && differing.len() <= LONGEST_NAME {
        return Name {
            of: word_before(&other.message, differing),
            text: differing.to_owned(),
        };
    }
    let text = match (&other.object, &other.path, &other.file) {
        (Some(object), _, _) if other.object != first.object => object.clone(),
        (_, Some(path), _) if other.path != first.path => path.clone(),
        (_, _, Some(file)) if other.file != first.file => file.display().to_string(),
        (_, Some(path), _) => path.clone(),
        (_, None, Some(file)) => file.display().to_string(),
        (_, None, None) => other.message.clone(),
    };
    Name { of: None, text }
}

/// The word before a number in a message, which gives the number its meaning.
fn word_before(message: &str, name: &str) -> Option<String> {
    if !name.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let (before, _) = message.split_once(&format!(" {name}"))?;
    let word = before.rsplit(' ').next()?;
    let is_word = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
    is_word.then(|| word.to_owned())
}

/// The words of `other` between its common start and end with `first`.
fn differing_words(first: &str, other: &str) -> String {
    let (first, other): (Vec<&str>, Vec<&str>) = (first.split(' ').collect(), other.split(' ').collect());
    let same = |(a, b): &(&&str, &&str)| a == b;
    let start = first.iter().zip(&other).take_while(same).count();
    let shorter = first.len().min(other.len()) - start;
    let end = first
        .iter()
        .rev()
        .zip(other.iter().rev())
        .take(shorter)
        .take_while(same)
        .count();
    other.get(start..other.len() - end).unwrap_or_default().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Origin, Rule, Severity};

    fn finding(id: &'static str, message: &str, object: &str, hint: Option<&str>) -> Finding {
        let rule = Box::leak(Box::new(Rule::of_tool(id, Severity::Error, Origin::Opm, "")));
        let finding = Finding::new(rule, rule.severity, message).object(object);
        match hint {
            Some(hint) => finding.hint(hint),
            None => finding,
        }
    }

    fn shown(findings: &[(&'static str, &str, &str, Option<&str>)]) -> Vec<String> {
        let findings = findings
            .iter()
            .map(|(rule, message, object, hint)| finding(rule, message, object, *hint));
        let folded = fold_repeated(findings.collect());
        folded.into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn repeated_messages_appear_once() {
        let add = Some("add an example");
        assert_eq!(
            shown(&[
                ("CSV-10", "a/v1, Kind=Widget has no example", "CSV/a", add),
                ("CRD-14", "cannot set to true", "CRD/a", Some("write v1")),
                ("CSV-10", "a/v1, Kind=Gadget has no example", "CSV/a", add),
                ("CRD-14", "cannot set to true", "CRD/b", Some("write v1")),
            ]),
            [
                "a/v1, Kind=Widget has no example (also Kind=Gadget)",
                "cannot set to true (also CRD/b)",
            ]
        );
    }

    #[test]
    fn one_place_in_several_files_is_named_by_the_file() {
        let in_file = |file: &str| {
            finding("FMT-6", "the key is missing", "A/a", Some("add it"))
                .path("a")
                .file(file)
        };
        let folded = fold_repeated(vec![in_file("1/a.yaml"), in_file("2/a.yaml")]);
        assert_eq!(folded[0].message, "the key is missing (also 2/a.yaml)");
    }

    #[test]
    fn long_names_repeat_too() {
        let add = Some("add an example");
        assert_eq!(
            shown(&[
                (
                    "CSV-10",
                    "alpha.example.com/v1, Kind=Widget has no example",
                    "CSV/a",
                    add
                ),
                (
                    "CSV-10",
                    "alpha.example.com/v1, Kind=Gadget has no example",
                    "CSV/a",
                    add
                ),
                (
                    "CSV-10",
                    "beta.example.com/v1alpha1, Kind=Gear has no example",
                    "CSV/a",
                    add
                ),
            ]),
            [
                "alpha.example.com/v1, Kind=Widget has no example (also Kind=Gadget; beta.example.com/v1alpha1, Kind=Gear)"
            ]
        );
    }

    #[test]
    fn different_findings_are_not_folded() {
        let add = Some("add an example");
        let different = [
            ("CSV-10", "Widget has no example", "CSV/a", add),
            ("CSV-10", "Gadget has no example", "CSV/a", Some("another fix")),
            ("CSV-6", "Gadget has no example", "CSV/a", add),
            ("CSV-10", "nothing of this sort was ever said before", "CSV/a", add),
            ("LOAD-7", "cannot read a", "CSV/a", None),
            ("LOAD-7", "cannot read b", "CSV/a", None),
        ];
        assert_eq!(shown(&different).len(), different.len());
    }

    #[test]
    fn a_number_is_named_with_the_word_before_it() {
        let repair = Some("repair the schema");
        let of = |what: &str| format!("the API server rejects example {what}: spec.size has no value that fits");
        let shown_of = |others: &[&str]| {
            let texts: Vec<String> = others.iter().map(|what| of(what)).collect();
            let all: Vec<_> = texts
                .iter()
                .map(|text| ("EX-1", text.as_str(), "CSV/a", repair))
                .collect();
            shown(&all)
        };
        let the_same = |text: &str| [format!("{} ({text})", of("14 of Widget"))];
        assert_eq!(
            shown_of(&["14 of Widget", "15 of Widget"]),
            the_same("the same in example 15")
        );
        assert_eq!(
            shown_of(&["14 of Widget", "15 of Widget", "16 of Widget", "20 of Widget"]),
            the_same("the same in examples 15, 16 and 20")
        );
        assert_eq!(
            shown_of(&["14 of Widget", "15 of Widget", "16 of Gadget"]),
            the_same("also example 15, example 16 of Gadget")
        );
    }
}
