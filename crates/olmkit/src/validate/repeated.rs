//! One defect gives one finding: the most specific rule that reports it.

use std::collections::HashMap;
use std::path::Path;

use super::checked::Checked;
use crate::diagnostics::Severity;

/// Lints that report everything a decoder or the API server rejects, so that other rules may report the same defect
/// more clearly. With the rank of each: if two findings have one position, the one with the lower rank is kept.
const GENERAL: [(&str, usize); 5] = [("OPM-1", 1), ("CRD-30", 2), ("CSV-23", 2), ("OBJ-3", 2), ("POD-5", 2)];

/// The rank of a finding. Warnings of other rules have none: they may be about another problem at the same position.
fn rank(checked: &Checked) -> Option<usize> {
    let finding = &checked.finding;
    match GENERAL.iter().find(|(id, _)| *id == finding.rule) {
        Some((_, rank)) => Some(*rank),
        None => (finding.severity == Severity::Error).then_some(0),
    }
}

/// The file and the path in it that a finding is about.
fn place(checked: &Checked) -> Option<(&Path, &str)> {
    Some((checked.finding.file.as_deref()?, checked.finding.path.as_deref()?))
}

/// Removes findings of general lints where a more specific finding is about the same file and path.
pub(super) fn remove(checked: Vec<Checked>) -> Vec<Checked> {
    let mut best: HashMap<(&Path, &str), usize> = HashMap::new();
    for (place, rank) in checked
        .iter()
        .filter_map(|checked| Some((place(checked)?, rank(checked)?)))
    {
        let known = best.entry(place).or_insert(rank);
        *known = rank.min(*known);
    }
    let is_repeated = |checked: &Checked| {
        let known = place(checked).and_then(|place| best.get(&place));
        rank(checked).zip(known).is_some_and(|(rank, best)| rank > *best)
    };
    let repeated: Vec<bool> = checked.iter().map(is_repeated).collect();
    let pairs = checked.into_iter().zip(repeated);
    pairs
        .filter(|(_, is_repeated)| !is_repeated)
        .map(|(checked, _)| checked)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::Rule;
    use crate::validate::csv::{CSV_1, CSV_16};
    use crate::validate::lints::admission::{CSV_23, OPM_1};

    fn finding(rule: &'static Rule, file: &str, path: Option<&str>) -> Checked {
        let mut checked = Checked::new(rule, "m").in_file(file);
        checked.finding.path = path.map(str::to_owned);
        checked
    }

    fn kept(found: Vec<Checked>) -> Vec<&'static str> {
        remove(found).iter().map(|checked| checked.finding.rule).collect()
    }

    #[test]
    fn the_most_specific_finding_at_a_place_is_kept() {
        let name = Some("metadata.name");
        let all = [&CSV_23, &OPM_1, &CSV_1].map(|rule| finding(rule, "a", name));
        assert_eq!(kept(all.to_vec()), ["CSV-1"]);
        let general = [&OPM_1, &CSV_23].map(|rule| finding(rule, "a", name));
        assert_eq!(kept(general.to_vec()), ["OPM-1"]);
        let twice = [&CSV_23, &CSV_23].map(|rule| finding(rule, "a", name));
        assert_eq!(kept(twice.to_vec()), ["CSV-23", "CSV-23"]);
    }

    #[test]
    fn findings_at_other_places_and_warnings_remove_nothing() {
        let general = finding(&CSV_23, "a", Some("spec.minKubeVersion"));
        for other in [
            finding(&CSV_16, "a", Some("spec.minKubeVersion")),
            finding(&CSV_1, "b", Some("spec.minKubeVersion")),
            finding(&CSV_1, "a", Some("spec")),
            finding(&CSV_1, "a", None),
        ] {
            assert_eq!(kept(vec![other, general.clone()]).len(), 2);
        }
    }
}
