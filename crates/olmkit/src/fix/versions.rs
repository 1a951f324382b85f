//! `minKubeVersion` as three numbers.

use super::facts::Facts;
use super::{Action, Proposal, proposal};
use crate::object::Version;

pub(super) fn propose(facts: &Facts) -> Option<Proposal> {
    let pointer = "/spec/minKubeVersion";
    let csv = facts.csv()?;
    let fixed = three_numbers(csv.text(pointer))?;
    let title = format!("write minKubeVersion as {fixed}");
    let action = Action::Replace {
        at: pointer.to_owned(),
        text: fixed,
    };
    Some(proposal(&csv.object.path, title, true, "minKubeVersion", vec![action]))
}

/// Converts `v1.25` to `1.25.0`. `None` for a valid version, or one that is invalid in another way.
fn three_numbers(version: &str) -> Option<String> {
    if version.trim().is_empty() || Version::parse(version).is_ok() {
        return None;
    }
    let plain = version.trim().trim_start_matches(['v', 'V']);
    let numbers: Vec<u64> = plain.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    match numbers.as_slice() {
        [major, minor] => Some(format!("{major}.{minor}.0")),
        [major, minor, patch] => Some(format!("{major}.{minor}.{patch}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::three_numbers;

    #[test]
    fn a_leading_v_and_a_missing_number_are_repaired() {
        for (version, fixed) in [
            ("v1.25.0", Some("1.25.0")),
            ("1.25", Some("1.25.0")),
            (" v1.25", Some("1.25.0")),
            ("1.25.0", None),
            ("", None),
            ("1.x", None),
            ("1", None),
            ("v1.2.3.4", None),
        ] {
            assert_eq!(three_numbers(version).as_deref(), fixed, "{version:?}");
        }
    }
}
