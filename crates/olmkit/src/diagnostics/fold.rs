//! One defect in many places is one finding: the first place, and the names of the others.

use std::collections::{BTreeMap, HashSet};

use super::Finding;

/// At most this many of the other places are named.
const NAMED: usize = 5;

/// Longest name of a place, in bytes: an image with its digest.
const LONGEST_NAME: usize = 150;

/// Folds what repeats into the first finding that says it: findings of one rule with one way out, whose messages differ in a few words
/// or not at all. For people; programs want each with its place.
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
    // Without a way out, what a message says is all there is.
    if first.hint.is_none() || first.severity != other.severity {
        return false;
    }
    let differing = differing_words(&first.message, &other.message);
    differing.len() <= LONGEST_NAME && 2 * differing.len() <= other.message.len()
}

/// The first finding with the names of the others.
pub(crate) fn folded(mut first: Finding, others: &[Finding]) -> Finding {
    if others.is_empty() {
        return first;
    }
    let mut named = HashSet::new();
    let mut names: Vec<String> = others.iter().map(|other| name_beside(&first, other)).collect();
    names.retain(|name| named.insert(name.clone()));
    let rest = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    let mut also = names.join(", ");
    if rest > 0 {
        also.push_str(&format!(" and {rest} more"));
    }
    first.message.push_str(&format!(" (also {also})"));
    first
}

/// What distinguishes a finding from another one: the part of the message that differs, else the object, else the path.
fn name_beside(first: &Finding, other: &Finding) -> String {
    let differing = differing_words(&first.message, &other.message);
    let differing = differing.trim_end_matches([',', ';', ':']);
    if !differing.is_empty() && differing.len() <= LONGEST_NAME {
        return differing.to_owned();
    }
    match (&other.object, &other.path, &other.file) {
        (Some(object), _, _) if other.object != first.object => object.clone(),
        (_, Some(path), _) => path.clone(),
        (_, None, Some(file)) => file.display().to_string(),
        (_, None, None) => other.message.clone(),
    }
}

/// The words of `other` between those that it begins and ends with as `first` does.
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
    use crate::rules;

    fn finding(rule: &str, message: &str, object: &str, hint: Option<&str>) -> Finding {
        let rule = rules::find(rule).unwrap();
        let finding = Finding::new(rule, rule.severity, message).object(object);
        match hint {
            Some(hint) => finding.hint(hint),
            None => finding,
        }
    }

    fn shown(findings: &[(&str, &str, &str, Option<&str>)]) -> Vec<String> {
        let findings = findings
            .iter()
            .map(|(rule, message, object, hint)| finding(rule, message, object, *hint));
        let folded = fold_repeated(findings.collect());
        folded.into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn what_repeats_is_said_once() {
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
    fn what_differs_is_said_each_time() {
        let add = Some("add an example");
        let different = [
            ("CSV-10", "Widget has no example", "CSV/a", add),
            ("CSV-10", "Gadget has no example", "CSV/a", Some("another way out")),
            ("CSV-6", "Gadget has no example", "CSV/a", add),
            ("CSV-10", "nothing of this sort was ever said before", "CSV/a", add),
            ("LOAD-7", "cannot read a", "CSV/a", None),
            ("LOAD-7", "cannot read b", "CSV/a", None),
        ];
        assert_eq!(shown(&different).len(), different.len());
    }
}
