//! Regular expressions of Go, run by the `regex` crate.

use std::collections::HashMap;

use regex::{Regex, RegexBuilder};

use crate::budget::{Budget, Failure};
use crate::limits;

/// Compiled expressions.
#[derive(Default)]
pub(crate) struct Cache {
    known: HashMap<String, Pattern>,
}

/// A compiled expression.
pub(crate) struct Pattern {
    pub(crate) regex: Regex,
    /// How many places of the expression a search may be at, repetitions counted out.
    states: u64,
}

impl Pattern {
    /// The steps of a search over so many bytes, if it must follow every state.
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
    let (translated, states) = translate(pattern)?;
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

/// Rewrites what Go and the `regex` crate read differently; also counts the states.
fn translate(pattern: &str) -> Result<(String, u64), Failure> {
    let mut translator = Translator {
        rest: pattern,
        out: String::with_capacity(pattern.len() + 16),
        after_repetition: false,
        outer: Vec::new(),
        before: 0,
        last: 0,
    };
    while let Some(next) = translator.take() {
        translator.item(next)?;
    }
    let states = translator.before.saturating_add(translator.last).max(1);
    Ok((translator.out, states))
}

struct Translator<'p> {
    rest: &'p str,
    out: String,
    /// Go refuses two repetitions in a row.
    after_repetition: bool,
    /// States before each open group.
    outer: Vec<u64>,
    /// States of this group before its last item.
    before: u64,
    /// States of the last item, which a repetition multiplies.
    last: u64,
}

impl Translator<'_> {
    fn take(&mut self) -> Option<char> {
        let next = self.rest.chars().next()?;
        self.rest = self.rest.get(next.len_utf8()..).unwrap_or_default();
        Some(next)
    }

    fn skip(&mut self, prefix: &str) -> bool {
        match self.rest.strip_prefix(prefix) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn item(&mut self, next: char) -> Result<(), Failure> {
        let was_repetition = std::mem::take(&mut self.after_repetition);
        if !matches!(next, '*' | '+' | '?' | '{' | '(' | ')') {
            self.before = self.before.saturating_add(self.last);
            self.last = 1;
        }
        match next {
            '*' | '+' | '?' => return self.repetition(&next.to_string(), was_repetition),
            ')' => {
                let inner = self.before.saturating_add(self.last);
                self.before = self.outer.pop().unwrap_or(0);
                self.last = inner;
                self.out.push(')');
            }
            '{' => {
                let Some(counts) = self.counts() else {
                    self.out.push_str("\\{");
                    return Ok(());
                };
                return self.repetition(&counts, was_repetition);
            }
            '}' => self.out.push_str("\\}"),
            ']' => self.out.push_str("\\]"),
            '\\' => self.escape(false)?,
            '[' => self.class()?,
            '(' => self.group()?,
            other => self.out.push(other),
        }
        Ok(())
    }

    fn repetition(&mut self, text: &str, was_repetition: bool) -> Result<(), Failure> {
        if was_repetition {
            return Err(unclear());
        }
        self.out.push_str(text);
        if self.skip("?") {
            self.out.push('?');
        }
        self.after_repetition = true;
        Ok(())
    }

    /// `{2}`, `{2,}` or `{2,3}` behind the brace, which is read. Other braces are plain text.
    fn counts(&mut self) -> Option<String> {
        let (inner, rest) = self.rest.split_once('}')?;
        let (least, most) = inner.split_once(',').unwrap_or((inner, inner));
        let is_number =
            |text: &str| !text.is_empty() && text.len() < 6 && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(least) || !(most.is_empty() || is_number(most)) {
            return None;
        }
        let times: u64 = if most.is_empty() { least } else { most }.parse().unwrap_or(u64::MAX);
        self.last = self.last.saturating_mul(times.max(1));
        let counts = format!("{{{inner}}}");
        self.rest = rest;
        Some(counts)
    }

    fn group(&mut self) -> Result<(), Failure> {
        self.out.push('(');
        self.outer.push(self.before.saturating_add(self.last));
        (self.before, self.last) = (0, 0);
        if !self.skip("?") {
            return Ok(());
        }
        let flags: String = self.rest.chars().take_while(|c| "imsU-".contains(*c)).collect();
        let after = self.rest.get(flags.len()..).unwrap_or_default();
        let is_name = self.rest.starts_with("P<")
            || (self.rest.starts_with('<') && !self.rest.starts_with("<=") && !self.rest.starts_with("<!"));
        if !is_name && !after.starts_with([':', ')']) {
            return Err(unclear());
        }
        self.out.push('?');
        Ok(())
    }

    /// What stands behind a backslash.
    fn escape(&mut self, in_class: bool) -> Result<(), Failure> {
        let next = self
            .take()
            .ok_or_else(|| Failure::error("trailing backslash at end of expression"))?;
        let ascii = match (next, in_class) {
            ('d', false) => "[0-9]",
            ('d', true) => "0-9",
            ('D', _) => "[^0-9]",
            ('w', false) => "[0-9A-Za-z_]",
            ('w', true) => "0-9A-Za-z_",
            ('W', _) => "[^0-9A-Za-z_]",
            ('s', false) => "[\\t\\n\\x0C\\r ]",
            ('s', true) => "\\t\\n\\x0C\\r ",
            ('S', _) => "[^\\t\\n\\x0C\\r ]",
            ('b', false) => "(?-u:\\b)",
            ('A' | 'z', false) | ('a' | 'f' | 'n' | 'r' | 't' | 'v' | 'x' | 'p' | 'P', _) => {
                self.out.push('\\');
                self.out.push(next);
                return Ok(());
            }
            (other, _) if other.is_ascii_punctuation() => {
                self.literal(other);
                return Ok(());
            }
            _ => return Err(unclear()),
        };
        self.out.push_str(ascii);
        Ok(())
    }

    fn literal(&mut self, next: char) {
        if next.is_ascii_punctuation() && next != '_' && next != '<' && next != '>' {
            self.out.push('\\');
        }
        self.out.push(next);
    }

    /// A class behind its bracket.
    fn class(&mut self) -> Result<(), Failure> {
        self.out.push('[');
        if self.skip("^") {
            self.out.push('^');
        }
        let mut is_first = true;
        loop {
            let next = self.take().ok_or_else(|| Failure::error("missing closing ]"))?;
            match next {
                ']' if !is_first => break,
                '[' if self.rest.starts_with(':') => {
                    let end = self.rest.find(":]").ok_or_else(unclear)? + 2;
                    let name = self.rest.get(..end).unwrap_or_default();
                    self.out.push('[');
                    self.out.push_str(name);
                    self.rest = self.rest.get(end..).unwrap_or_default();
                }
                '\\' => self.escape(true)?,
                '-' if self.rest.starts_with('-') => return Err(unclear()),
                '-' if is_first || self.rest.starts_with(']') => self.out.push_str("\\-"),
                '-' => self.out.push('-'),
                other => self.literal(other),
            }
            is_first = false;
        }
        self.out.push(']');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_mean_what_they_mean_to_go() {
        for (pattern, yes, no) in [
            ("^[0-9]{1-4}$", "0{1-4}", "12"),
            ("^\\d+$", "12", "٣"),
            ("^[a[]$", "[", "]"),
            ("^[]a]$", "]", "b"),
            ("^[a&&b]$", "&", "c"),
            ("^\\w[\\d-]$", "a-", "é1"),
            ("^a{2,3}$", "aa", "a"),
            ("^{$", "{", "a"),
            ("^[-a]$", "-", "b"),
            ("^[\\w.-]+$", "a.b-c", "a b"),
            ("^(?i)abc$", "ABC", "ab"),
            ("^\\/a\\-b$", "/a-b", "a"),
        ] {
            let compiled = compile(pattern).unwrap_or_else(|failure| panic!("{pattern}: {failure}"));
            assert!(compiled.regex.is_match(yes), "{pattern} on {yes}");
            assert!(!compiled.regex.is_match(no), "{pattern} on {no}");
        }
        for unclear in ["a**", "\\Qa\\E", "(?=a)", "(a{1000}){1000}", "\\1"] {
            assert!(matches!(compile(unclear), Err(Failure::Undecided(_))), "{unclear}");
        }
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
            assert_eq!(translate(pattern).map(|(_, states)| states), Ok(states), "{pattern}");
        }
    }
}
