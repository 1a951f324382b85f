//! Scalars in quotes.

use std::borrow::Cow;

use memchr::{memchr2, memchr3};

use super::line::fold;
use super::{Build, Place, Reader, Style};

impl<'a, B: Build<'a>> Reader<'a, B> {
    /// Reads the quoted scalar at the position and moves after its closing quote.
    pub(super) fn quoted(&mut self, quote: u8) -> Option<(Cow<'a, str>, Style, Place)> {
        let double = quote == b'"';
        self.at += 1;
        let mut out: Option<String> = None;
        let mut piece = self.at;
        // Escaped white space is not trimmed at a break: the length up to the last escape.
        let mut keep = 0;
        loop {
            let rest = self.text.as_bytes().get(self.at..)?;
            self.at += if double {
                memchr3(b'"', b'\\', b'\n', rest)?
            } else {
                memchr2(b'\'', b'\n', rest)?
            };
            let at = self.at;
            match self.byte(at) {
                b'\n' => {
                    let text = out.get_or_insert_default();
                    text.push_str(self.text.get(piece..at)?);
                    self.fold_break(text, keep)?;
                }
                b'\\' => {
                    let text = out.get_or_insert_default();
                    text.push_str(self.text.get(piece..at)?);
                    self.at += 1;
                    self.escape(text)?;
                    keep = text.len();
                }
                b'\'' if self.byte(at + 1) == b'\'' => {
                    let text = out.get_or_insert_default();
                    text.push_str(self.text.get(piece..=at)?);
                    self.at += 2;
                }
                _ => break,
            }
            piece = self.at;
        }
        let last = self.text.get(piece..self.at)?;
        self.at += 1;
        let text = match out {
            Some(mut text) => {
                text.push_str(last);
                text.shrink_to_fit();
                Cow::Owned(text)
            }
            None => Cow::Borrowed(last),
        };
        let style = if double {
            Style::DoubleQuoted
        } else {
            Style::SingleQuoted
        };
        Some((text, style, self.place(self.at)))
    }

    /// Folds the line feed at the position and moves to the text after it.
    fn fold_break(&mut self, out: &mut String, keep: usize) -> Option<()> {
        let trimmed = out.trim_end_matches(' ').len().max(keep);
        // A tab before or after a break is white space too.
        if out.get(keep..trimmed)?.ends_with('\t') {
            return None;
        }
        out.truncate(trimmed);
        self.end_line(self.at);
        let (blank, indent) = self.blank_lines()?;
        fold(out, blank);
        self.at += indent;
        Some(())
    }

    /// Reads an escape sequence after its backslash.
    fn escape(&mut self, out: &mut String) -> Option<()> {
        let at = self.at;
        let hexadecimal = |digits: usize| {
            let text = self.text.get(at + 1..at + 1 + digits)?;
            if !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return None;
            }
            char::from_u32(u32::from_str_radix(text, 16).ok()?)
        };
        let (character, length) = match self.byte(at) {
            b'n' => ('\n', 1),
            b't' => ('\t', 1),
            b'r' => ('\r', 1),
            b'"' => ('"', 1),
            b'\\' => ('\\', 1),
            b'x' => (hexadecimal(2)?, 3),
            b'u' => (hexadecimal(4)?, 5),
            b'U' => (hexadecimal(8)?, 9),
            b' ' => (' ', 1),
            b'\n' => {
                // The string continues on the next line. Its leading spaces do not count.
                self.end_line(at);
                if self.at_marker() {
                    return None;
                }
                self.at = self.skip_spaces(self.at);
                return (!matches!(self.byte(self.at), b'\n' | b'\t' | 0)).then_some(());
            }
            _ => return None,
        };
        out.push(character);
        self.at += length;
        Some(())
    }
}
