//! Shortens input in messages. The input contains a name of a megabyte once, but findings would repeat it each time.

use std::borrow::Cow;

use super::{Limit, MESSAGE, QUOTED_TEXT};

/// Room for the note about the omission.
const NOTE: usize = 48;

/// Shortens the long words of a text, each to its beginning and its end: names, values and paths, quoted or not.
/// [`QUOTED_TEXT`] is the limit.
///
/// ```
/// use olmkit_base::limits;
///
/// let name = "x".repeat(1 << 20);
/// let text = limits::quoted(&format!("channel {name:?} has no head")).into_owned();
/// assert!(text.starts_with("channel \"xxx") && text.ends_with("xxx\" has no head"));
/// assert!(text.len() < 2000);
/// ```
pub fn quoted(text: &str) -> Cow<'_, str> {
    let longest = QUOTED_TEXT.count();
    if text.len() <= longest {
        return Cow::Borrowed(text);
    }
    let mut short = String::new();
    // The input up to here is in `short`.
    let mut copied = 0;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let words = Words::new(if line.len() > longest { line } else { "" });
        for word in words.filter(|word| word.len() > longest) {
            let (from, to) = (start + word.start, start + word.end);
            short.push_str(text.get(copied..from).unwrap_or_default());
            short.push_str(&without_middle(text.get(from..to).unwrap_or_default(), longest));
            copied = to;
        }
        start += line.len();
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    short.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(short)
}

/// A message of a finding or an error: its long words are shortened as by [`quoted`], and if it is still longer than
/// [`MESSAGE`], its middle is omitted. A shortened message is not changed again.
pub fn message(text: impl Into<String>) -> String {
    let text = text.into();
    let text = match quoted(&text) {
        Cow::Owned(short) => short,
        Cow::Borrowed(_) => text,
    };
    within(text, &MESSAGE)
}

/// A name or another single value, shortened to at most [`QUOTED_TEXT`] regardless of its contents.
pub fn name(text: impl Into<String>) -> String {
    within(text.into(), &QUOTED_TEXT)
}

/// A path inside an object, of at most [`MESSAGE`]: legitimate ones are longer than names.
pub fn path(text: impl Into<String>) -> String {
    within(text.into(), &MESSAGE)
}

fn within(text: String, limit: &Limit) -> String {
    if text.len() > limit.count() {
        without_middle(&text, limit.count())
    } else {
        text
    }
}

/// The beginning and the end of a string that is longer than a limit.
fn without_middle(text: &str, longest: usize) -> String {
    let room = longest.saturating_sub(NOTE);
    let end = text.floor_char_boundary(room - room / 3);
    let start = text.ceil_char_boundary(text.len() - room / 3);
    let (head, tail) = (
        text.get(..end).unwrap_or_default(),
        text.get(start..).unwrap_or_default(),
    );
    format!("{head}…[{} bytes left out]…{tail}", start - end)
}

/// The words of a line: separated by spaces and commas, because a list of short names is not one long word, or enclosed
/// in quotation marks as written by Go, Rust and JSON.
struct Words<'t> {
    text: &'t str,
    at: usize,
    /// True if a closing quotation mark may still follow.
    quotes: bool,
}

impl<'t> Words<'t> {
    fn new(text: &'t str) -> Self {
        Self {
            text,
            at: 0,
            quotes: true,
        }
    }

    /// End of the quotation that begins here.
    fn end_of_quotation(&mut self) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let mut at = self.at + 1;
        while let Some(next) = memchr::memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) {
            if bytes.get(at + next) == Some(&b'"') {
                return Some(at + next + 1);
            }
            at += next + 2;
        }
        self.quotes = false;
        None
    }
}

impl Iterator for Words<'_> {
    type Item = std::ops::Range<usize>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.text.as_bytes();
        while matches!(bytes.get(self.at), Some(b' ' | b',' | b'\t' | b'\n')) {
            self.at += 1;
        }
        let start = self.at;
        let quotation = match bytes.get(start)? {
            b'"' if self.quotes => self.end_of_quotation(),
            _ => None,
        };
        self.at = quotation.unwrap_or_else(|| {
            let rest = bytes.get(start + 1..).unwrap_or_default();
            // A quotation mark that has no second one is a letter as any other.
            let end = if self.quotes {
                memchr::memchr3(b' ', b',', b'"', rest)
            } else {
                memchr::memchr2(b' ', b',', rest)
            };
            end.map_or(bytes.len(), |length| start + 1 + length)
        });
        Some(start..self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_with_short_words_are_unchanged() {
        for text in ["", "a \"b\" c", "one \" two", " \t\n", "\"", "a\\\"b"] {
            assert_eq!(quoted(text), text);
            assert_eq!(message(text), text);
        }
        // Long, but with short words.
        for list in ["name, ".repeat(1000), "demo.v1.2.3,".repeat(1000)] {
            assert_eq!(quoted(&list), list);
        }
    }

    #[test]
    fn long_names_are_shortened_where_they_stand() {
        let long = "x".repeat(1 << 20);
        let blanks = "x y ".repeat(1 << 18);
        for text in [
            format!("invalid channel {long}: it has no head"),
            format!("invalid channel \"{long}\": it has no head"),
            format!("invalid channel {:?}: it has no head", format!("{blanks}\"{long}")),
            format!("invalid channel ({long}): it has no head"),
            format!("invalid channel \"a\":\"{long}\" and \"{long}\": it has no head"),
        ] {
            let short = message(text.as_str());
            assert!(short.starts_with("invalid channel "), "{short:.60}");
            assert!(short.ends_with(": it has no head"), "{short}");
            assert!(short.contains(" bytes left out]"), "{short}");
            assert!(short.len() < 4096, "{}", short.len());
            assert_eq!(message(short.as_str()), short);
        }
    }

    #[test]
    fn messages_are_bounded_whatever_they_repeat() {
        for text in [
            "a, ".repeat(1 << 18),
            "\"".repeat(1 << 18) + &"é ".repeat(1 << 18),
            "\"\\".repeat(1 << 18),
            "\u{2003}é".repeat(1 << 18),
            "\"é\"".repeat(1 << 18),
        ] {
            let short = message(text.as_str());
            assert!(short.len() <= MESSAGE.count(), "{}", short.len());
            assert_eq!(message(short.as_str()), short);
            assert!(name(text.as_str()).len() <= QUOTED_TEXT.count());
            assert!(path(text).len() <= MESSAGE.count());
        }
    }

    #[test]
    fn words_are_what_people_take_for_words() {
        let text = "a \"b c\" d=\"e\\\" f\" \"g";
        let words: Vec<&str> = Words::new(text).map(|word| &text[word]).collect();
        assert_eq!(words, ["a", "\"b c\"", "d=", "\"e\\\" f\"", "\"g"]);
    }
}
