//! One defect in many places is one finding: the first place, and the names of the others.

use std::collections::BTreeMap;

use super::super::checked::Checked;

/// At most this many of the other places are named.
const NAMED: usize = 5;

/// Longest name of a place, in bytes.
const LONGEST_NAME: usize = 100;

/// Rules whose findings each need a change of its own, so that each is shown.
const EACH_SHOWN: [&str; 4] = ["CRD-30", "EX-1", "EX-2", "EX-3"];

/// Folds findings of one rule with one way out into the first of them.
pub fn fold(findings: Vec<Checked>) -> Vec<Checked> {
    let mut groups: BTreeMap<(&'static str, Option<String>), usize> = BTreeMap::new();
    let mut kept: Vec<(Checked, Vec<Checked>)> = Vec::new();
    for checked in findings {
        let key = (checked.finding.rule, checked.finding.hint.clone());
        match groups.get(&key).and_then(|at| kept.get_mut(*at)) {
            Some((_, others)) if !EACH_SHOWN.contains(&key.0) => others.push(checked),
            _ => {
                groups.insert(key, kept.len());
                kept.push((checked, Vec::new()));
            }
        }
    }
    kept.into_iter().map(|(first, others)| folded(first, &others)).collect()
}

fn folded(mut first: Checked, others: &[Checked]) -> Checked {
    if others.is_empty() {
        return first;
    }
    let mut names: Vec<String> = others.iter().map(|other| name_beside(&first, other)).collect();
    names.dedup();
    let rest = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    let mut also = names.join(", ");
    if rest > 0 {
        also.push_str(&format!(" and {rest} more"));
    }
    first.finding.message.push_str(&format!(" (also {also})"));
    first
}

/// What distinguishes a finding from another one: the part of the message that differs, else the object, else the path.
fn name_beside(first: &Checked, other: &Checked) -> String {
    let (first, other) = (&first.finding, &other.finding);
    let differing = differing_words(&first.message, &other.message);
    if !differing.is_empty() && differing.len() <= LONGEST_NAME {
        return differing;
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
    use super::super::webhooks::CERT_2;
    use super::*;

    fn finding(message: &str, object: &str) -> Checked {
        let mut checked = Checked::new(&CERT_2, message).hint("remove it");
        checked.finding.object = Some(object.to_string());
        checked
    }

    #[test]
    fn one_defect_is_shown_once_with_its_places() {
        let images: Vec<Checked> = (1..=8)
            .map(|n| finding(&format!("r/a:{n} uses a tag"), "CSV/a"))
            .collect();
        let shown = fold(images);
        assert_eq!(shown.len(), 1);
        assert_eq!(
            shown[0].finding.message,
            "r/a:1 uses a tag (also r/a:2, r/a:3, r/a:4, r/a:5, r/a:6 and 2 more)"
        );
    }

    #[test]
    fn equal_messages_are_distinguished_by_their_objects() {
        let shown = fold(vec![
            finding("asks cert-manager", "CRD/a"),
            finding("asks cert-manager", "CRD/b"),
        ]);
        assert_eq!(shown[0].finding.message, "asks cert-manager (also CRD/b)");
    }

    #[test]
    fn another_way_out_is_another_finding() {
        let other = finding("x", "CRD/b").hint("keep it");
        assert_eq!(fold(vec![finding("x", "CRD/a"), other]).len(), 2);
    }
}
