//! Merges one defect in many positions into one finding: the first position, and the names of the others.

use std::collections::BTreeMap;

use crate::diagnostics::{Finding, folded};
use crate::validate::checked::Checked;

/// Rules whose findings each need a separate change, so that each is shown.
const EACH_SHOWN: [&str; 7] = ["CRD-30", "CSV-23", "EX-1", "EX-2", "EX-3", "OBJ-3", "POD-5"];

/// Folds findings of one rule with the same fix into the first of them.
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
    kept.into_iter()
        .map(|(mut first, others)| {
            let others: Vec<Finding> = others.into_iter().map(|other| other.finding).collect();
            first.finding = folded(first.finding, &others);
            first
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::lints::certificates::CERT_2;

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
