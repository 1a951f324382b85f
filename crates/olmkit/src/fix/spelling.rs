//! Capabilities and categories that differ from a known one in case, spaces and punctuation, or by one or two
//! characters.

use super::facts::Facts;
use super::{Action, Proposal, proposal};
use crate::validate::{CAPABILITIES, CATEGORIES};

/// Required similarity of another word (Jaro-Winkler).
const SIMILAR: f64 = 0.92;

pub(super) fn propose(facts: &Facts) -> Vec<Proposal> {
    let Some(csv) = facts.csv() else { return Vec::new() };
    let mut proposals = Vec::new();
    let mut replace = |key: &str, old: &str, new: String, is_safe: bool| {
        if new != old {
            let action = Action::Replace {
                at: format!("/metadata/annotations/{key}"),
                text: new.clone(),
            };
            let title = format!("spell {key} as in {new:?}");
            proposals.push(proposal(&csv.object.path, title, is_safe, key, vec![action]));
        }
    };
    if let Some(level) = csv.annotation("capabilities")
        && let Some((known, is_safe)) = nearest(level, &CAPABILITIES)
    {
        replace("capabilities", level, known.to_owned(), is_safe);
    }
    if let Some(list) = csv.annotation("categories") {
        let mut all_safe = true;
        let parts: Vec<&str> = list
            .split(',')
            .map(|part| match nearest(part.trim(), &CATEGORIES) {
                Some((known, is_safe)) if known != part.trim() => {
                    all_safe &= is_safe;
                    known
                }
                _ => part.trim(),
            })
            .collect();
        let is_same = list.split(',').map(str::trim).eq(parts.iter().copied());
        if !is_same {
            replace("categories", list, parts.join(", "), all_safe);
        }
    }
    proposals
}

/// The most similar known word, and whether it is certain.
fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<(&'k str, bool)> {
    // Longer than any known word. Comparing it with each would be slow.
    if word.len() > 100 {
        return None;
    }
    let letters = |text: &str| -> String {
        let words = text.to_lowercase().replace(" and ", "&");
        words.chars().filter(|c| c.is_alphanumeric()).collect()
    };
    if let Some(same) = known.iter().find(|known| letters(known) == letters(word)) {
        return Some((same, true));
    }
    let distance = |known: &str| strsim::jaro_winkler(&letters(known), &letters(word));
    let best = known
        .iter()
        .max_by(|one, other| distance(one).total_cmp(&distance(other)))?;
    (distance(best) >= SIMILAR).then_some((best, false))
}
