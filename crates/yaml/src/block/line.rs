//! Movement over the lines of a document.

use memchr::{memchr, memchr3_iter};

use super::{Build, Line, Reader};

/// Returns true if the input contains only characters with a certain meaning: no control characters except tab and line
/// feed, no byte order marks, none of Unicode's further line breaks, no noncharacters.
pub(super) fn only_known_characters(text: &str) -> bool {
    let bytes = text.as_bytes();
    // No early exit, so that the compiler can vectorize the loop.
    let control = |byte: u8| (byte < 0x20 && byte != b'\n' && byte != b'\t') || byte == 0x7f;
    if bytes.iter().fold(false, |found, &byte| found | control(byte)) {
        return false;
    }
    if bytes.is_ascii() {
        return true;
    }
    let character_at = |at: usize| text.get(at..).and_then(|rest| rest.chars().next());
    // The first UTF-8 bytes of those characters.
    !memchr3_iter(0xc2, 0xe2, 0xef, bytes)
        .filter_map(character_at)
        .any(|character| {
            matches!(
                character,
                '\u{80}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
            )
        })
}

impl<'a, B: Build<'a>> Reader<'a, B> {
    /// The byte at an offset; 0 at the end, which occurs nowhere in the document.
    pub(super) fn byte(&self, at: usize) -> u8 {
        self.text.as_bytes().get(at).copied().unwrap_or_default()
    }

    /// The offset of the first byte from `at` on that is not a space.
    pub(super) fn skip_spaces(&self, mut at: usize) -> usize {
        while self.byte(at) == b' ' {
            at += 1;
        }
        at
    }

    /// The end of the current line: offset of its line feed.
    pub(super) fn line_end(&self) -> usize {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        self.at + memchr(b'\n', rest).unwrap_or(rest.len())
    }

    /// Moves after the line feed at an offset.
    pub(super) fn end_line(&mut self, line_feed: usize) {
        self.at = line_feed + 1;
        self.line = self.line.saturating_add(1);
        self.line_start = self.at;
    }

    /// Moves to the next line. The rest of this one may only be spaces and a comment.
    pub(super) fn finish_line(&mut self) -> Option<()> {
        let rest = self.skip_spaces(self.at);
        match self.byte(rest) {
            b'\n' => self.end_line(rest),
            b'#' if rest > self.at || self.byte(rest.checked_sub(1)?) == b' ' => {
                let end = self.line_end();
                self.end_line(end);
            }
            _ => return None,
        }
        Some(())
    }

    /// The next line with content, from a position at the start of a line. Skips empty lines and comments, and leaves
    /// the position at the start of the line found.
    pub(super) fn next_line(&mut self) -> Option<Option<Line>> {
        while self.at < self.text.len() {
            let start = self.skip_spaces(self.at);
            match self.byte(start) {
                b'\n' => self.end_line(start),
                b'#' => {
                    let end = self.line_end();
                    self.end_line(end);
                }
                b'\t' => return None,
                b'.' | b'-' | b'%' if start == self.at && self.at_marker() => return None,
                _ => {
                    let indent = start - self.at;
                    return Some(Some(Line { indent, start }));
                }
            }
        }
        Some(None)
    }

    /// Returns true if a line begins like the start or the end of a document, or a directive.
    pub(super) fn at_marker(&self) -> bool {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        rest.starts_with(b"---") || rest.starts_with(b"...") || rest.starts_with(b"%")
    }

    /// Skips empty lines: returns their number, and the indentation of the next line.
    pub(super) fn blank_lines(&mut self) -> Option<(usize, usize)> {
        let mut blank = 0;
        loop {
            let at = self.skip_spaces(self.at);
            match self.byte(at) {
                b'\n' => {
                    blank += 1;
                    self.end_line(at);
                }
                b'\t' => return None,
                _ if at == self.at && self.at_marker() => return None,
                _ => return Some((blank, at - self.at)),
            }
        }
    }
}

/// Joins two lines of a scalar: a single break becomes a space, further ones are kept.
pub(super) fn fold(out: &mut String, blank: usize) {
    if blank == 0 {
        out.push(' ');
    }
    out.extend(std::iter::repeat_n('\n', blank));
}
