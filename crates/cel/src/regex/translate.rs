//! From Go's syntax to that of the `regex` crate.

use super::{refused, unclear};
use crate::budget::Failure;

/// Most repetitions that Go counts out, all nested ones multiplied.
const MOST_REPETITIONS: u64 = 1_000;

/// Rewrites an expression; also counts the states.
///
/// # Errors
/// Fails with Go's error message if Go rejects the pattern, or if its result is unknown.
pub(super) fn translate(pattern: &str) -> Result<(String, u64), Failure> {
    let mut translator = Translator {
        rest: pattern,
        out: String::with_capacity(pattern.len() + 16),
        after_repetition: false,
        outer: Vec::new(),
        level: Level::default(),
    };
    while let Some(next) = translator.take() {
        translator.item(next)?;
    }
    if !translator.outer.is_empty() {
        return Err(refused("missing closing )"));
    }
    let states = translator.level.states().max(1);
    Ok((translator.out, states))
}

/// The open group so far.
#[derive(Default)]
struct Level {
    /// States before the last item.
    before: u64,
    /// States of the last item, which a repetition multiplies.
    last: u64,
    /// True if there is an item that can be repeated.
    has_item: bool,
    /// How often the last item repeats a part of itself.
    repeats: u64,
    /// The same for the items before it.
    repeats_before: u64,
}

impl Level {
    fn states(&self) -> u64 {
        self.before.saturating_add(self.last)
    }

    fn item(&mut self, states: u64, repeats: u64) {
        self.before = self.states();
        self.last = states;
        self.has_item = true;
        self.repeats_before = self.most_repeats();
        self.repeats = repeats;
    }

    fn most_repeats(&self) -> u64 {
        self.repeats_before.max(self.repeats)
    }
}

struct Translator<'p> {
    rest: &'p str,
    out: String,
    /// Go rejects two repetitions in a row.
    after_repetition: bool,
    outer: Vec<Level>,
    level: Level,
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
        match next {
            '*' | '+' | '?' => return self.repetition(&next.to_string(), None, was_repetition),
            '{' => {
                if let Some((least, most, rest)) = counts(self.rest) {
                    self.rest = rest;
                    return self.counted(least, most, was_repetition);
                }
                self.literal('{');
            }
            '|' => {
                self.out.push('|');
                self.level.has_item = false;
            }
            '(' => self.group()?,
            ')' => {
                let inner = std::mem::replace(
                    &mut self.level,
                    self.outer.pop().ok_or_else(|| refused("unexpected )"))?,
                );
                self.level.item(inner.states(), inner.most_repeats());
                self.out.push(')');
            }
            '[' => {
                let (class, rest) = super::class::translate(self.rest)?;
                self.rest = rest;
                self.atom(&class);
            }
            '\\' => self.escape()?,
            '^' | '$' | '.' => self.atom(&next.to_string()),
            other => self.literal(other),
        }
        Ok(())
    }

    fn literal(&mut self, next: char) {
        self.atom(&regex::escape(next.encode_utf8(&mut [0; 4])));
    }

    fn atom(&mut self, text: &str) {
        self.out.push_str(text);
        self.level.item(1, 1);
    }

    /// `{2}`, `{2,}` or `{2,3}`.
    fn counted(&mut self, least: u64, most: Option<u64>, was_repetition: bool) -> Result<(), Failure> {
        let is_bad = least > MOST_REPETITIONS || most.is_some_and(|most| most > MOST_REPETITIONS || most < least);
        if is_bad {
            return Err(refused("invalid repeat count"));
        }
        let text = match most {
            Some(most) if most == least => format!("{{{least}}}"),
            Some(most) => format!("{{{least},{most}}}"),
            None => format!("{{{least},}}"),
        };
        self.repetition(&text, Some((least, most)), was_repetition)
    }

    fn repetition(
        &mut self,
        text: &str,
        counts: Option<(u64, Option<u64>)>,
        was_repetition: bool,
    ) -> Result<(), Failure> {
        let lazy = if self.skip("?") { "?" } else { "" };
        if was_repetition {
            return Err(refused("invalid nested repetition operator"));
        }
        if !self.level.has_item {
            return Err(refused("missing argument to repetition operator"));
        }
        if let Some((least, most)) = counts {
            let times = most.unwrap_or(least);
            self.level.last = self.level.last.saturating_mul(times.max(1));
            self.level.repeats = if times == 0 {
                1
            } else {
                self.level.repeats.saturating_mul(times)
            };
            if (least >= 2 || most.is_some_and(|most| most >= 2)) && self.level.repeats > MOST_REPETITIONS {
                return Err(refused("invalid repeat count"));
            }
        }
        self.out.push_str(text);
        self.out.push_str(lazy);
        self.after_repetition = true;
        Ok(())
    }

    /// A group after its opening parenthesis. Names are dropped, because no caller reads captured groups.
    fn group(&mut self) -> Result<(), Failure> {
        if !self.rest.starts_with('?') {
            self.open("(");
            return Ok(());
        }
        let rest = self.rest.get(1..).unwrap_or_default();
        if let Some(name) = rest.strip_prefix("P<").or_else(|| rest.strip_prefix('<')) {
            let (name, behind) = name.split_once('>').ok_or_else(|| refused("invalid named capture"))?;
            let is_word = |c: char| c == '_' || c.is_ascii_alphanumeric();
            if name.is_empty() || !name.chars().all(is_word) {
                return Err(refused("invalid named capture"));
            }
            self.rest = behind;
            self.open("(");
            return Ok(());
        }
        let perl = || refused("invalid or unsupported Perl syntax");
        let (mut at, mut is_off, mut saw_flag) = (0, false, false);
        for c in rest.chars() {
            at += c.len_utf8();
            match c {
                'i' | 'm' | 's' | 'U' => saw_flag = true,
                '-' if !is_off => (is_off, saw_flag) = (true, false),
                ':' | ')' if !is_off || saw_flag => {
                    let flags = rest.get(..at).unwrap_or_default();
                    self.rest = rest.get(at..).unwrap_or_default();
                    match c {
                        ':' => self.open(&format!("(?{flags}")),
                        _ if flags == ")" => self.out.push_str("(?:)"),
                        _ => self.out.push_str(&format!("(?{flags}")),
                    }
                    return Ok(());
                }
                _ => return Err(perl()),
            }
        }
        Err(perl())
    }

    fn open(&mut self, text: &str) {
        self.out.push_str(text);
        self.outer.push(std::mem::take(&mut self.level));
    }

    /// An escape sequence after its backslash.
    fn escape(&mut self) -> Result<(), Failure> {
        if let Some(rest) = self.rest.strip_prefix('Q') {
            let (text, behind) = rest.split_once("\\E").unwrap_or((rest, ""));
            self.rest = behind;
            text.chars().for_each(|c| self.literal(c));
            return Ok(());
        }
        for (name, text) in [("A", "\\A"), ("z", "\\z"), ("b", "(?-u:\\b)")] {
            if self.skip(name) {
                self.atom(text);
                return Ok(());
            }
        }
        if self.rest.starts_with('B') {
            return Err(unclear());
        }
        if let Some((class, rest)) = super::class::named(self.rest)? {
            self.rest = rest;
            self.atom(&format!("[{class}]"));
            return Ok(());
        }
        let (c, rest) = super::class::escape(self.rest)?;
        self.rest = rest;
        self.literal(c);
        Ok(())
    }
}

/// The counts after a brace, and the rest. Other braces are plain characters.
fn counts(rest: &str) -> Option<(u64, Option<u64>, &str)> {
    let (least, rest) = number(rest)?;
    let (most, rest) = match rest.strip_prefix(',') {
        None => (Some(least), rest),
        Some(rest) if rest.starts_with('}') => (None, rest),
        Some(rest) => {
            let (most, rest) = number(rest)?;
            (Some(most), rest)
        }
    };
    Some((least, most, rest.strip_prefix('}')?))
}

/// A number without leading zeros. A number that is too large saturates.
fn number(rest: &str) -> Option<(u64, &str)> {
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, rest) = rest.split_at(end);
    if digits.is_empty() || (digits.len() > 1 && digits.starts_with('0')) {
        return None;
    }
    Some((digits.parse().unwrap_or(u64::MAX), rest))
}
