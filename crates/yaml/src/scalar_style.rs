//! Selects the YAML scalar style as go-yaml does for a string.

use super::resolve::{Kind, resolve_plain};

/// A style for a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScalarStyle {
    Plain,
    Single,
    Double,
    Literal,
}

/// Properties of a string's characters that decide its style.
#[derive(Debug, Default, Clone, Copy)]
struct Traits {
    indicators: bool,
    line_breaks: bool,
    special: bool,
    leading_blank: bool,
    trailing_space: bool,
    trailing_break: bool,
    break_space: bool,
    space_break: bool,
}

/// The style of a string value or key. A key is written before its colon on one line (`simple_key`).
pub(super) fn of_string(text: &str, simple_key: bool) -> ScalarStyle {
    let wanted = if text.contains('\n') {
        ScalarStyle::Literal
    } else if resolve_plain(text).0 == Kind::Str && !is_base60(text) {
        ScalarStyle::Plain
    } else {
        ScalarStyle::Double
    };
    allowed(wanted, text, simple_key)
}

/// Returns true if a string contains a line break of any kind, so that it cannot be a simple key.
pub(super) fn is_multiline(text: &str) -> bool {
    text.chars().any(is_break)
}

fn allowed(wanted: ScalarStyle, text: &str, simple_key: bool) -> ScalarStyle {
    let traits = Traits::new(text);
    let mut style = wanted;
    if simple_key && traits.line_breaks {
        style = ScalarStyle::Double;
    }
    if style == ScalarStyle::Plain && (!traits.plain_allowed() || (text.is_empty() && simple_key)) {
        style = ScalarStyle::Single;
    }
    if style == ScalarStyle::Single && !traits.single_allowed() {
        style = ScalarStyle::Double;
    }
    if style == ScalarStyle::Literal && (!traits.literal_allowed() || simple_key) {
        style = ScalarStyle::Double;
    }
    style
}

impl Traits {
    fn new(text: &str) -> Self {
        let mut traits = Self {
            indicators: text.starts_with("---") || text.starts_with("..."),
            ..Self::default()
        };
        let mut previous = None;
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            let next = characters.peek().copied();
            let followed_by_blank = next.is_none_or(|next| matches!(next, ' ' | '\t'));
            traits.indicators |= is_indicator(character, previous, followed_by_blank);
            traits.special |= !is_printable(character);
            if character == ' ' {
                traits.leading_blank |= previous.is_none();
                traits.trailing_space |= next.is_none();
                traits.break_space |= previous.is_some_and(is_break);
            } else if is_break(character) {
                traits.line_breaks = true;
                traits.leading_blank |= previous.is_none();
                traits.trailing_break |= next.is_none();
                traits.space_break |= previous == Some(' ');
            }
            previous = Some(character);
        }
        traits
    }

    fn plain_allowed(self) -> bool {
        let blanks = self.leading_blank || self.trailing_space || self.trailing_break;
        !(blanks || self.break_space || self.space_break || self.special || self.line_breaks || self.indicators)
    }

    fn single_allowed(self) -> bool {
        !(self.break_space || self.space_break || self.special)
    }

    fn literal_allowed(self) -> bool {
        !(self.trailing_space || self.space_break || self.special)
    }
}

/// Returns true if a character would mean something to a YAML reader at this place of a plain scalar.
fn is_indicator(character: char, previous: Option<char>, followed_by_blank: bool) -> bool {
    match (character, previous) {
        ('#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`', None) => true,
        ('?' | '-', None) | (':', _) => followed_by_blank,
        ('#', Some(previous)) => is_break(previous) || matches!(previous, ' ' | '\t'),
        _ => false,
    }
}

/// The line breaks of YAML 1.1.
pub(super) fn is_break(character: char) -> bool {
    matches!(character, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Characters that go-yaml v2 writes without an escape. It supports none beyond the basic plane.
pub(super) fn is_printable(character: char) -> bool {
    matches!(character, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}') && character != '\u{feff}'
}

/// Numbers in base 60 (`12:30`), which go-yaml reads as text but quotes for the sake of other readers:
/// `[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?`.
fn is_base60(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = whole.split(':');
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let Some(first) = parts.next() else { return false };
    let mut sixties = parts.peekable();
    sixties.peek().is_some()
        && first.starts_with(|c: char| c.is_ascii_digit())
        && digits(first)
        && digits(fraction)
        && sixties.all(|part| match part.as_bytes() {
            [low] => low.is_ascii_digit(),
            [b'0'..=b'5', low] => low.is_ascii_digit(),
            _ => false,
        })
}
