//! Scalars and keys.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter, memchr2_iter};

use super::line::fold;
use super::{Build, FoundKey, Place, Reader, Scalar, Span, Style};

/// The full reader accepts 1024 characters for a key, and its line.
pub(super) const MAX_KEY: usize = 1000;

impl<'a, B: Build<'a>> Reader<'a, B> {
    /// The key at the position, if this line begins with one. `None` ends the quick reader, `Some(None)` means no key.
    #[allow(clippy::option_option)]
    pub(super) fn find_key(&self) -> Option<Option<FoundKey<'a>>> {
        let colon_at = |at: usize| self.byte(at) == b':' && matches!(self.byte(at + 1), b' ' | b'\n');
        let key = |text: &'a str, style: Style, end: usize| {
            let span = Span {
                start: self.place(self.at),
                end: self.place(end),
            };
            let text = Cow::Borrowed(text);
            let scalar = Scalar { text, style, span };
            (end - self.at <= MAX_KEY).then_some(Some(FoundKey { scalar, colon: end }))
        };
        let line = self.text.get(self.at..self.line_end())?;
        match line.as_bytes().first()? {
            quote @ (b'"' | b'\'') => {
                let inner = line.get(1..)?;
                let Some(length) = memchr(*quote, inner.as_bytes()) else {
                    return Some(None);
                };
                let text = inner.get(..length)?;
                let behind = self.at + length + 2;
                if text.contains('\\') || (*quote == b'\'' && self.byte(behind) == b'\'') {
                    // Keys with escapes are rare: the full reader handles them.
                    return (!line.contains(": ") && !line.ends_with(':')).then_some(None);
                }
                if !colon_at(behind) {
                    return Some(None);
                }
                let style = if *quote == b'"' {
                    Style::DoubleQuoted
                } else {
                    Style::SingleQuoted
                };
                key(text, style, behind)
            }
            b'?' | b':' | b'-' if matches!(line.as_bytes().get(1), None | Some(b' ' | b'\t')) => None,
            b'[' | b']' | b'{' | b'}' | b',' | b'&' | b'*' | b'!' | b'|' | b'>' | b'@' | b'`' | b'%' | b'#' => {
                Some(None)
            }
            _ => {
                for offset in memchr_iter(b':', line.as_bytes()) {
                    let colon = self.at + offset;
                    if colon_at(colon) {
                        let text = line.get(..offset)?;
                        let doubtful = text.ends_with(' ') || text.contains(" #") || text.contains('\t');
                        return if doubtful { None } else { key(text, Style::Plain, colon) };
                    }
                    if self.byte(colon + 1) == b'\t' {
                        return None;
                    }
                }
                Some(None)
            }
        }
    }

    /// Reads the scalar at the position and moves to the line after it.
    pub(super) fn scalar(&mut self, parent: Option<usize>) -> Option<Scalar<'a>> {
        let start = self.place(self.at);
        let (text, style, end) = match self.byte(self.at) {
            quote @ (b'"' | b'\'') => {
                let (text, style, end) = self.quoted(quote)?;
                self.finish_line()?;
                (text, style, end)
            }
            b'|' => self.block_scalar(parent?, false)?,
            b'>' => self.block_scalar(parent?, true)?,
            b'[' | b'{' | b'&' | b'*' | b'!' | b'@' | b'`' | b'%' | b',' | b']' | b'}' | b'#' | 0 => return None,
            b'?' | b':' | b'-' if matches!(self.byte(self.at + 1), b' ' | b'\t' | b'\n') => return None,
            _ => self.plain(parent)?,
        };
        let span = Span { start, end };
        Some(Scalar { text, style, span })
    }

    /// A scalar without quotes, perhaps continued on deeper lines.
    fn plain(&mut self, parent: Option<usize>) -> Option<(Cow<'a, str>, Style, Place)> {
        let (first, mut end, mut commented) = self.plain_line(self.at)?;
        let mut folded: Option<String> = None;
        while !commented {
            let (blank, indent) = self.blank_lines()?;
            if self.at >= self.text.len() || parent.is_some_and(|parent| indent <= parent) {
                break;
            }
            let start = self.at + indent;
            // At the top level, or where a comment ends the scalar, the full reader decides.
            if parent.is_none() || self.byte(start) == b'#' {
                return None;
            }
            let next;
            (next, end, commented) = self.plain_line(start)?;
            let out = folded.get_or_insert_with(|| first.to_owned());
            fold(out, blank);
            out.push_str(next);
        }
        Some((folded.map_or(Cow::Borrowed(first), Cow::Owned), Style::Plain, end))
    }

    /// One line of a plain scalar from `start`: its content without trailing spaces, its end, and whether a comment
    /// follows. Moves to the next line.
    fn plain_line(&mut self, start: usize) -> Option<(&'a str, Place, bool)> {
        let line_end = self.line_end();
        let line = self.text.get(start..line_end)?;
        let bytes = line.as_bytes();
        let mut comment = None;
        for at in memchr2_iter(b':', b'#', bytes) {
            match bytes.get(at) {
                Some(b':') if matches!(bytes.get(at + 1), None | Some(b' ' | b'\t')) => return None,
                Some(b'#') if at > 0 && bytes.get(at - 1) == Some(&b' ') => {
                    comment = Some(at);
                    break;
                }
                _ => {}
            }
        }
        let text = line.get(..comment.unwrap_or(line.len()))?.trim_end_matches(' ');
        if text.contains('\t') {
            return None;
        }
        let end = self.place(start + text.len());
        self.end_line(line_end);
        Some((text, end, comment.is_some()))
    }

    /// A literal or folded block scalar. `parent` is the column its lines must exceed.
    fn block_scalar(&mut self, parent: usize, folded: bool) -> Option<(Cow<'a, str>, Style, Place)> {
        let header_end = self.line_end();
        let (mut chomp, mut explicit) = (b' ', None);
        for byte in self.text.get(self.at + 1..header_end)?.trim_end_matches(' ').bytes() {
            match byte {
                b'+' | b'-' if chomp == b' ' => chomp = byte,
                b'1'..=b'9' if explicit.is_none() => explicit = Some(parent + usize::from(byte - b'0')),
                _ => return None,
            }
        }
        self.end_line(header_end);
        let indent = match explicit {
            Some(indent) => indent,
            None => self.detect_indent()?.max(parent + 1),
        };
        let mut out = String::new();
        // Line feeds after the last line with content, and whether that line began with white space.
        let mut breaks = self.skip_breaks(indent)?;
        let mut any = false;
        let mut after_blank = false;
        while self.at < self.text.len() && self.skip_spaces(self.at) - self.at >= indent {
            let end = self.line_end();
            let content = self.text.get(self.at + indent..end)?;
            let blank = content.starts_with([' ', '\t']);
            if any {
                if !folded || after_blank || blank {
                    out.push('\n');
                } else if breaks == 0 {
                    out.push(' ');
                }
            }
            out.extend(std::iter::repeat_n('\n', breaks));
            out.push_str(content);
            (any, after_blank) = (true, blank);
            self.end_line(end);
            breaks = self.skip_breaks(indent)?;
        }
        if chomp != b'-' && any {
            out.push('\n');
        }
        if chomp == b'+' {
            out.extend(std::iter::repeat_n('\n', breaks));
        }
        out.shrink_to_fit();
        let style = if folded { Style::Folded } else { Style::Literal };
        Some((Cow::Owned(out), style, self.place(self.at)))
    }

    /// Skips lines that have only spaces, at most as many as the indentation: returns their number.
    fn skip_breaks(&mut self, indent: usize) -> Option<usize> {
        let mut breaks = 0;
        while self.at < self.text.len() {
            let content = self.skip_spaces(self.at);
            let spaces = content - self.at;
            match self.byte(content) {
                // A tab as indentation is an error.
                b'\t' if spaces < indent => return None,
                b'\n' if spaces <= indent => {
                    breaks += 1;
                    self.end_line(content);
                }
                _ => break,
            }
        }
        Some(breaks)
    }

    /// The indentation of the first line with content. If empty lines above it are indented more, the full reader
    /// decides.
    fn detect_indent(&self) -> Option<usize> {
        let mut start = self.at;
        let mut longest = 0;
        loop {
            let content = self.skip_spaces(start);
            let spaces = content - start;
            match self.byte(content) {
                b'\n' => {
                    longest = longest.max(spaces);
                    start = content + 1;
                }
                b'\t' => return None,
                0 => return (longest == 0).then_some(0),
                _ => return (longest <= spaces).then_some(spaces),
            }
        }
    }
}
