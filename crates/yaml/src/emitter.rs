//! Lays out values as go-yaml's emitter does: block style, two spaces a level, lists not indented under their key, long
//! plain and quoted strings folded after column 80.

use super::scalar_style::{ScalarStyle, is_break, is_multiline, is_printable, of_string};

/// Spaces for each level.
const INDENT: usize = 2;

/// A string is folded at the first space beyond this column.
const WIDTH: usize = 80;

/// Longest key that is written as `key:`. A longer one is introduced by `?`.
const LONGEST_SIMPLE_KEY: usize = 128;

/// Position of a string: foldable or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Value,
    SimpleKey,
}

/// Writes values. It keeps the state that decides about line breaks: the column, and whether the line so far has only
/// indentation.
#[derive(Debug)]
pub(super) struct Emitter {
    out: String,
    column: usize,
    /// Column of the current level. `None` before the first collection.
    indent: Option<usize>,
    /// The last character written was a space.
    whitespace: bool,
    /// The line so far has only spaces and `-`, `?`, `:`.
    indention: bool,
}

impl Emitter {
    pub(super) fn new() -> Self {
        Self {
            out: String::new(),
            column: 0,
            indent: None,
            whitespace: true,
            indention: true,
        }
    }

    /// Ends the document and returns it.
    pub(super) fn finish(mut self) -> String {
        self.write_indent(0);
        self.out
    }

    /// Writes `[]` or `{}`.
    pub(super) fn empty_collection(&mut self, brackets: [&str; 2]) {
        let [open, close] = brackets;
        self.indicator(open, true, true, false);
        self.indicator(close, false, false, false);
    }

    /// Writes a sequence: `item` is called for each entry. `after_key` is set for the value of a mapping key, so that
    /// its dashes align with the key.
    pub(super) fn sequence<T>(&mut self, items: &[T], after_key: bool, mut item: impl FnMut(&mut Self, &T)) {
        let outer = self.indent;
        let level = match outer {
            None => 0,
            Some(indent) if after_key && !self.indention => indent,
            Some(indent) => indent + INDENT,
        };
        self.indent = Some(level);
        for entry in items {
            self.write_indent(level);
            self.indicator("-", true, false, true);
            item(self, entry);
        }
        self.indent = outer;
    }

    /// Writes a mapping: `value` is called for each entry after its key.
    pub(super) fn mapping<T>(&mut self, entries: &[(&str, T)], mut value: impl FnMut(&mut Self, &T)) {
        let outer = self.indent;
        let level = outer.map_or(0, |indent| indent + INDENT);
        self.indent = Some(level);
        for (key, entry) in entries {
            self.write_indent(level);
            if key.len() <= LONGEST_SIMPLE_KEY && !is_multiline(key) {
                self.text(key, Place::SimpleKey);
                self.indicator(":", false, false, false);
            } else {
                self.indicator("?", true, false, true);
                self.text(key, Place::Value);
                self.write_indent(level);
                self.indicator(":", true, false, true);
            }
            value(self, entry);
        }
        self.indent = outer;
    }

    /// Writes a string value.
    pub(super) fn string(&mut self, text: &str) {
        self.text(text, Place::Value);
    }

    /// Writes a number, a boolean or null.
    pub(super) fn word(&mut self, text: &str) {
        self.plain(text, Place::SimpleKey, 0);
    }

    fn text(&mut self, text: &str, place: Place) {
        let level = self.indent.map_or(INDENT, |indent| indent + INDENT);
        match of_string(text, place == Place::SimpleKey) {
            ScalarStyle::Plain => self.plain(text, place, level),
            ScalarStyle::Single => self.single_quoted(text, place, level),
            ScalarStyle::Double => self.double_quoted(text, place, level),
            ScalarStyle::Literal => self.literal(text, level),
        }
    }

    fn plain(&mut self, text: &str, place: Place, level: usize) {
        if !self.whitespace {
            self.put(' ');
        }
        let mut spaces = false;
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            if character == ' ' {
                let folds = place == Place::Value && !spaces && self.column > WIDTH && characters.peek() != Some(&' ');
                if folds {
                    self.write_indent(level)
                } else {
                    self.put(' ')
                }
                spaces = true;
            } else {
                self.put(character);
                self.indention = false;
                spaces = false;
            }
        }
        self.whitespace = false;
        self.indention = false;
    }

    fn single_quoted(&mut self, text: &str, place: Place, level: usize) {
        self.indicator("'", true, false, false);
        let (mut spaces, mut breaks) = (false, false);
        for (at, character) in text.char_indices() {
            let rest = text.get(at + character.len_utf8()..).unwrap_or_default();
            if character == ' ' {
                let inside = at > 0 && !rest.is_empty() && !rest.starts_with(' ');
                let folds = place == Place::Value && !spaces && self.column > WIDTH && inside;
                if folds {
                    self.write_indent(level)
                } else {
                    self.put(' ')
                }
                spaces = true;
            } else if is_break(character) {
                if !breaks && character == '\n' {
                    self.line_end();
                }
                self.write_break(character);
                breaks = true;
            } else {
                if breaks {
                    self.write_indent(level);
                }
                if character == '\'' {
                    self.put('\'');
                }
                self.put(character);
                self.indention = false;
                (spaces, breaks) = (false, false);
            }
        }
        self.indicator("'", false, false, false);
    }

    fn double_quoted(&mut self, text: &str, place: Place, level: usize) {
        self.indicator("\"", true, false, false);
        // go-yaml tests for a byte order mark at the start of the string at each character, and then escapes all.
        let escape_all = text.starts_with('\u{feff}');
        let mut spaces = false;
        for (at, character) in text.char_indices() {
            if escape_all || !is_printable(character) || is_break(character) || matches!(character, '"' | '\\') {
                self.escape(character);
                spaces = false;
            } else if character == ' ' {
                let rest = text.get(at + 1..).unwrap_or_default();
                if place == Place::Value && !spaces && self.column > WIDTH && at > 0 && !rest.is_empty() {
                    self.write_indent(level);
                    if rest.starts_with(' ') {
                        self.put('\\');
                    }
                } else {
                    self.put(' ');
                }
                spaces = true;
            } else {
                self.put(character);
                spaces = false;
            }
        }
        self.indicator("\"", false, false, false);
    }

    fn escape(&mut self, character: char) {
        let letter = match character {
            '\0' => '0',
            '\u{7}' => 'a',
            '\u{8}' => 'b',
            '\t' => 't',
            '\n' => 'n',
            '\u{b}' => 'v',
            '\u{c}' => 'f',
            '\r' => 'r',
            '\u{1b}' => 'e',
            '"' | '\\' => character,
            '\u{85}' => 'N',
            '\u{a0}' => '_',
            '\u{2028}' => 'L',
            '\u{2029}' => 'P',
            _ => {
                let code = u32::from(character);
                let escaped = match code {
                    0..=0xff => format!("\\x{code:02X}"),
                    0x100..=0xffff => format!("\\u{code:04X}"),
                    _ => format!("\\U{code:08X}"),
                };
                escaped.chars().for_each(|character| self.put(character));
                return;
            }
        };
        self.put('\\');
        self.put(letter);
    }

    fn literal(&mut self, text: &str, level: usize) {
        self.indicator("|", true, false, false);
        if text.starts_with(|first| first == ' ' || is_break(first)) {
            self.indicator("2", false, false, false);
        }
        let mut from_end = text.chars().rev();
        match (from_end.next().is_some_and(is_break), from_end.next()) {
            (false, _) => self.indicator("-", false, false, false),
            (true, None) => self.indicator("+", false, false, false),
            (true, Some(before)) if is_break(before) => self.indicator("+", false, false, false),
            (true, Some(_)) => {}
        }
        self.line_end();
        self.indention = true;
        self.whitespace = true;
        let mut breaks = true;
        for character in text.chars() {
            if is_break(character) {
                self.write_break(character);
                breaks = true;
            } else {
                if breaks {
                    self.write_indent(level);
                }
                self.put(character);
                self.indention = false;
                breaks = false;
            }
        }
    }

    /// Starts a line at `level`, unless the line so far is only indentation up to there.
    fn write_indent(&mut self, level: usize) {
        if !self.indention || self.column > level || (self.column == level && !self.whitespace) {
            self.line_end();
        }
        while self.column < level {
            self.put(' ');
        }
        self.whitespace = true;
        self.indention = true;
    }

    fn indicator(&mut self, text: &str, needs_whitespace: bool, is_whitespace: bool, is_indention: bool) {
        if needs_whitespace && !self.whitespace {
            self.put(' ');
        }
        self.out.push_str(text);
        self.column += text.len();
        self.whitespace = is_whitespace;
        self.indention = self.indention && is_indention;
    }

    fn write_break(&mut self, character: char) {
        if character == '\n' {
            self.line_end();
        } else {
            self.out.push(character);
            self.column = 0;
        }
        self.indention = true;
    }

    fn line_end(&mut self) {
        self.out.push('\n');
        self.column = 0;
    }

    fn put(&mut self, character: char) {
        self.out.push(character);
        self.column += 1;
    }
}
