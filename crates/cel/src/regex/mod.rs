//! Go's regular expressions on the `regex` crate. The pattern is parsed as Go's `regexp/syntax` parses it and rewritten
//! in the crate's syntax, so that both mean the same.

mod class;
mod translate;

use std::collections::HashMap;

use regex::{Regex, RegexBuilder};

use crate::budget::{Budget, Failure};
use crate::limits;

/// Go's error of that kind.
fn refused(kind: &str) -> Failure {
    Failure::error(format!("error parsing regexp: {kind}"))
}

/// Compiled expressions.
#[derive(Default)]
pub(crate) struct Cache {
    known: HashMap<String, Pattern>,
}

/// A compiled expression.
pub(crate) struct Pattern {
    pub(crate) regex: Regex,
    /// Number of states of the compiled expression, with repetitions expanded.
    states: u64,
}

impl Pattern {
    /// The steps of a search over this number of bytes, if it must follow every state.
    pub(crate) fn steps(&self, bytes: usize) -> u64 {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        bytes.saturating_mul(self.states) / 32 + 1
    }
}

impl Cache {
    /// The compiled expression, which is counted when it is compiled.
    pub(crate) fn get(&mut self, pattern: &str, budget: &mut Budget) -> Result<&Pattern, Failure> {
        if !self.known.contains_key(pattern) {
            budget.step(limits::REGEX_STEPS)?;
            budget.read(pattern.len().saturating_mul(10))?;
            let compiled = compile(pattern)?;
            if self.known.len() >= limits::REGEX_CACHE {
                self.known.clear();
            }
            self.known.insert(pattern.to_owned(), compiled);
        }
        self.known.get(pattern).ok_or(Failure::Exhausted)
    }
}

fn compile(pattern: &str) -> Result<Pattern, Failure> {
    let (translated, states) = translate::translate(pattern)?;
    let built = RegexBuilder::new(&translated)
        .size_limit(limits::REGEX_BYTES)
        .dfa_size_limit(limits::REGEX_BYTES)
        .nest_limit(100)
        .build();
    let regex = built.map_err(|_| unclear())?;
    Ok(Pattern { regex, states })
}

/// Go and we may read such an expression in different ways, or only one of us may read it.
fn unclear() -> Failure {
    Failure::undecided("a regular expression that only Go can judge")
}

/// A regular expression as Go reads it: a pattern of a schema.
#[derive(Debug, Clone)]
pub struct GoRegex {
    regex: Regex,
    states: u64,
}

impl GoRegex {
    /// Compiles an expression.
    ///
    /// # Errors
    /// [`Failure::Error`] with Go's reason if Go rejects the expression. [`Failure::Undecided`] if Go's result is
    /// unknown.
    pub fn new(pattern: &str) -> Result<Self, Failure> {
        let Pattern { regex, states } = compile(pattern)?;
        Ok(Self { regex, states })
    }

    /// As [`GoRegex::new`], for an untrusted expression: takes the compilation cost from a budget first.
    ///
    /// # Errors
    /// As [`GoRegex::new`]. [`Failure::Exhausted`].
    pub fn within(pattern: &str, budget: &mut Budget) -> Result<Self, Failure> {
        /// Compiling a state takes as long as some steps of the evaluator.
        const STATE: u64 = 16;
        budget.read(pattern.len())?;
        let (_, states) = translate::translate(pattern)?;
        budget.step(states.saturating_mul(STATE))?;
        Self::new(pattern)
    }

    /// As [`GoRegex::is_match`], within a budget.
    ///
    /// # Errors
    /// [`Failure::Exhausted`].
    pub fn is_match_within(&self, text: &str, budget: &mut Budget) -> Result<bool, Failure> {
        let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
        budget.step(bytes.saturating_mul(self.states) / 32 + 1)?;
        Ok(self.is_match(text))
    }

    /// Only reads an expression, which costs a small part of compiling it.
    ///
    /// # Errors
    /// As [`GoRegex::new`].
    pub fn check(pattern: &str) -> Result<(), Failure> {
        translate::translate(pattern).map(drop)
    }

    /// Returns true if the expression matches some part of a string.
    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Input strings, and patterns with Go's error and the indices of the strings that match.
    type Vectors = (Vec<String>, Vec<(String, Option<String>, Vec<usize>)>);

    /// Expected results of Go's regexp package, printed by dev/go-vectors.
    #[test]
    fn expressions_are_those_of_go() {
        let (texts, vectors): Vectors =
            serde_json::from_str(include_str!("../../tests/patterns.json")).expect("vectors");
        assert!(vectors.len() >= 100, "{}", vectors.len());
        let (mut wrong, mut undecided) = (Vec::new(), Vec::new());
        for (pattern, error, matching) in &vectors {
            match (compile(pattern), error) {
                (Err(Failure::Undecided(_)), _) => undecided.push(pattern.as_str()),
                (Err(Failure::Error(ours)), Some(theirs)) if theirs.starts_with(&ours) => {}
                (Ok(compiled), None) => {
                    let differs =
                        |(at, text): &(usize, &String)| compiled.regex.is_match(text) != matching.contains(at);
                    let first = texts.iter().enumerate().find(differs);
                    wrong.extend(first.map(|(_, text)| format!("{pattern} on {text:?}")));
                }
                (ours, theirs) => wrong.push(format!("{pattern}: {:?} instead of {theirs:?}", ours.map(|_| ()))),
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert_eq!(undecided, ["(?ii)a", "a(?i)*", "a\\B", "\\p{Foo}"], "undecided");
    }

    #[test]
    fn states_are_counted_with_their_repetitions() {
        for (pattern, states) in [
            ("abc", 3),
            ("a{10}", 10),
            ("(ab){2,5}c", 11),
            ("((a{10}){10}){10}", 1_000),
            ("[a-z]{1,63}\\.[a-z]+", 65),
        ] {
            let counted = translate::translate(pattern).map(|(_, states)| states);
            assert_eq!(counted, Ok(states), "{pattern}");
        }
    }
}
