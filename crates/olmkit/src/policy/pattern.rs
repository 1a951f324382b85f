//! Rules that a setting selects.

use std::fmt;

use crate::diagnostics::Rule;

/// A rule by its id (`CSV-17`), the rules of a family (`CSV`, `pipeline`), or `all`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(String);

/// About the length of the longest id.
const LONGEST: usize = 50;

/// A pattern that means no rule.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("no rule {pattern:?}{}; `olmkit explain` lists all", suggestion(.nearest))]
pub struct UnknownRule {
    /// As it was written.
    pub pattern: String,
    /// The most similar rule or family.
    pub nearest: Option<String>,
}

fn suggestion(nearest: &Option<String>) -> String {
    nearest
        .as_ref()
        .map(|near| format!(", did you mean {near:?}?"))
        .unwrap_or_default()
}

impl Pattern {
    /// Reads a pattern, in any case.
    ///
    /// # Errors
    /// When it means none of the rules.
    pub fn parse(text: &str, rules: &[&Rule]) -> Result<Self, UnknownRule> {
        let pattern = Pattern(text.trim().to_owned());
        if pattern.is_all() || rules.iter().any(|rule| pattern.matches(rule.id)) {
            return Ok(pattern);
        }
        let families = rules.iter().filter_map(|rule| family(rule.id));
        let wanted = pattern.0.to_lowercase();
        // The distance takes memory and time proportional to both lengths, and the pattern may be of any length.
        let is_short = wanted.len() <= 2 * LONGEST;
        let nearest = rules
            .iter()
            .map(|rule| rule.id)
            .chain(families)
            .filter(|_| is_short)
            .map(|id| (strsim::damerau_levenshtein(&id.to_lowercase(), &wanted), id))
            .filter(|(distance, _)| *distance <= 2 && distance * 2 < wanted.len())
            .min();
        Err(UnknownRule {
            pattern: text.to_owned(),
            nearest: nearest.map(|(_, id)| id.to_owned()),
        })
    }

    /// Returns true if a rule is meant.
    pub fn matches(&self, rule: &str) -> bool {
        self.is_all()
            || self.is_exactly(rule)
            || family(rule).is_some_and(|family| family.eq_ignore_ascii_case(&self.0))
    }

    /// Returns true if a rule is meant by its id.
    pub fn is_exactly(&self, rule: &str) -> bool {
        self.0.eq_ignore_ascii_case(rule)
    }

    /// Its precision: an id is more precise than a family, and a family than all.
    pub(super) fn precision(&self) -> u8 {
        match (self.is_all(), self.0.contains(['-', '/'])) {
            (true, _) => 0,
            (false, false) => 1,
            (false, true) => 2,
        }
    }

    fn is_all(&self) -> bool {
        self.0.eq_ignore_ascii_case("all")
    }
}

/// The part before the number, or before the name of a check: `CSV` of `CSV-17`, `pipeline` of `pipeline/check_icon`.
fn family(rule: &str) -> Option<&str> {
    rule.split_once('/')
        .or_else(|| rule.rsplit_once('-'))
        .map(|(family, _)| family)
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
