//! Escapes untrusted text for display.

use std::fmt::{self, Write as _};

/// Text from a bundle, a catalog, an image, a registry or a cluster. It displays on one line, with terminal control
/// characters and text direction marks as escapes.
///
/// The escapes are those of JSON, so JSON that is written through this type keeps its meaning.
///
/// ```
/// use olmkit_base::object::UntrustedText;
///
/// let name = "memcached\u{1b}[2J\n::error::forged";
/// assert_eq!(UntrustedText::new(name).to_string(), r"memcached\u001b[2J\n::error::forged");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UntrustedText<'t> {
    text: &'t str,
    lines: bool,
}

impl<'t> UntrustedText<'t> {
    /// A text for one line: line ends and tabs become `\n` and `\t`.
    pub fn new(text: &'t str) -> Self {
        Self { text, lines: false }
    }

    /// A text that may have several lines. Line ends and tabs are displayed unchanged.
    pub fn lines(text: &'t str) -> Self {
        Self { text, lines: true }
    }

    /// Returns true if a character of untrusted text must not reach a terminal: control characters (C0, DEL, C1),
    /// bidirectional controls, line and paragraph separators, and interlinear annotation controls. Line ends and tabs
    /// too.
    pub fn is_unsafe(c: char) -> bool {
        c.is_control()
            || matches!(
                c,
                '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fff9}'..='\u{fffb}'
            )
    }
}

impl fmt::Display for UntrustedText<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_escaped = |c: char| Self::is_unsafe(c) && !(self.lines && matches!(c, '\n' | '\t'));
        if !self.text.contains(is_escaped) {
            return formatter.pad(self.text);
        }
        let mut shown = String::with_capacity(self.text.len() + 16);
        for c in self.text.chars() {
            match c {
                c if !is_escaped(c) => shown.push(c),
                '\n' => shown.push_str("\\n"),
                '\t' => shown.push_str("\\t"),
                '\r' => shown.push_str("\\r"),
                c => write!(shown, "\\u{:04x}", u32::from(c))?,
            }
        }
        formatter.pad(&shown)
    }
}

#[cfg(test)]
mod tests {
    use super::UntrustedText;

    #[test]
    fn control_characters_are_never_displayed() {
        let all: String = ('\0'..='\u{ffff}').collect();
        let shown = UntrustedText::new(&all).to_string();
        assert!(!shown.contains(UntrustedText::is_unsafe));
        let shown = UntrustedText::lines(&all).to_string();
        assert!(!shown.contains(|c: char| UntrustedText::is_unsafe(c) && !matches!(c, '\n' | '\t')));
        assert!(shown.contains('\n') && shown.contains('\t'));
        for text in ["plain", "ünïcödé 例え", "emoji 👩‍💻", "back\\slash"] {
            assert_eq!(UntrustedText::new(text).to_string(), text);
        }
    }

    #[test]
    fn json_keeps_its_meaning() {
        let value = serde_json::json!({"a\u{9b}": "\u{7f}\u{202e}\u{1b}\n"});
        let text = UntrustedText::lines(&serde_json::to_string_pretty(&value).unwrap()).to_string();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }

    #[test]
    fn it_pads_like_text() {
        assert_eq!(format!("{:5}|", UntrustedText::new("a")), "a    |");
        assert_eq!(format!("{:8}|", UntrustedText::new("\u{1b}")), "\\u001b  |");
    }
}
