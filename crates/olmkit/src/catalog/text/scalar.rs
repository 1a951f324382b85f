//! Scalars and keys of the quick block reader.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter, memchr2, memchr3};

use super::block::{Key, Reader, plain_key};
use super::plain;
use super::value::Value;

/// Whether the text holds only characters whose treatment is beyond doubt: no control characters but tab and line
/// feed, no byte order marks, none of Unicode's further line breaks, no noncharacters.
pub(super) fn only_known_characters(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes
        .iter()
        .any(|&byte| (byte < 0x20 && byte != b'\n' && byte != b'\t') || byte == 0x7f)
    {
        return false;
    }
    if bytes.is_ascii() {
        return true;
    }
    memchr3(0xc2, 0xe2, 0xef, bytes).is_none()
        || !text.chars().any(|character| {
            matches!(
                character,
                '\u{80}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
            )
        })
}

/// The key at the position, if this line begins with one. `None` gives up, `Some(None)` means no key.
#[allow(clippy::option_option)]
pub(super) fn key<'a>(reader: &Reader<'a>) -> Option<Option<Key<'a>>> {
    let end = reader.line_end();
    let line = reader.text.get(reader.at..end)?;
    let colon_at = |at: usize| reader.byte(at) == b':' && matches!(reader.byte(at + 1), b' ' | b'\n' | 0);
    match line.as_bytes().first()? {
        quote @ (b'"' | b'\'') => {
            // Keys with escapes or over several lines are rare: leave them.
            let inner = line.get(1..)?;
            let Some(length) = memchr(*quote, inner.as_bytes()) else {
                return Some(None);
            };
            let text = inner.get(..length)?;
            let behind = reader.at + length + 2;
            if text.contains('\\') || (*quote == b'\'' && reader.byte(behind) == b'\'') {
                return if line.contains(": ") || line.ends_with(':') {
                    None
                } else {
                    Some(None)
                };
            }
            Some(colon_at(behind).then_some((Cow::Borrowed(text), behind + 1)))
        }
        b'?' | b':' | b'-' if matches!(line.as_bytes().get(1), None | Some(b' ' | b'\t')) => None,
        b'[' | b']' | b'{' | b'}' | b',' | b'&' | b'*' | b'!' | b'|' | b'>' | b'@' | b'`' | b'%' | b'#' => Some(None),
        _ => {
            for offset in memchr_iter(b':', line.as_bytes()) {
                if colon_at(reader.at + offset) {
                    let text = line.get(..offset)?;
                    if text.ends_with(' ') || text.contains(" #") || text.contains('\t') {
                        return None;
                    }
                    return Some(Some((plain_key(text)?, reader.at + offset + 1)));
                }
                if reader.byte(reader.at + offset + 1) == b'\t' {
                    return None;
                }
            }
            Some(None)
        }
    }
}

/// Reads the scalar at the position; `parent` is the column of the collection it belongs to, which continuation lines
/// must exceed. Leaves the position at the start of the line behind it.
pub(super) fn read<'a>(reader: &mut Reader<'a>, parent: Option<usize>) -> Option<Value<'a>> {
    match reader.byte(reader.at) {
        b'"' => double_quoted(reader).map(Value::String),
        b'\'' => single_quoted(reader).map(Value::String),
        b'|' => literal(reader, parent?).map(Value::String),
        open @ (b'[' | b'{') => {
            let end = reader.line_end();
            let empty = match reader.text.get(reader.at..end)?.trim_end_matches(' ') {
                "[]" if open == b'[' => Value::Sequence(Vec::new()),
                "{}" if open == b'{' => Value::Mapping(Vec::new()),
                _ => return None,
            };
            reader.at = end + 1;
            Some(empty)
        }
        b'>' | b'&' | b'*' | b'!' | b'@' | b'`' | b'%' | b',' | b']' | b'}' | b'#' | 0 => None,
        b'?' | b':' | b'-' if matches!(reader.byte(reader.at + 1), b' ' | b'\t' | b'\n' | 0) => None,
        _ => plain(reader, parent),
    }
}

/// A plain scalar, perhaps continued on deeper lines.
fn plain<'a>(reader: &mut Reader<'a>, parent: Option<usize>) -> Option<Value<'a>> {
    let first = plain_line(reader, reader.at)?;
    let mut folded: Option<String> = None;
    loop {
        let (blank, indent) = blank_lines(reader)?;
        if reader.at >= reader.text.len() || parent.is_some_and(|parent| indent <= parent) {
            break;
        }
        let start = reader.at + indent;
        // At the top level, or where a comment ends the scalar, the full reader decides.
        if parent.is_none() || reader.byte(start) == b'#' {
            return None;
        }
        let out = folded.get_or_insert_with(|| first.to_owned());
        fold(out, blank);
        let next = plain_line(reader, start)?;
        out.push_str(next);
    }
    match folded {
        Some(text) => Some(Value::String(Cow::Owned(text))),
        None => plain::resolve(first),
    }
}

/// One line of a plain scalar from `start`, without trailing spaces; moves to the next line.
fn plain_line<'a>(reader: &mut Reader<'a>, start: usize) -> Option<&'a str> {
    let end = reader.line_end();
    let line = reader.text.get(start..end)?.trim_end_matches(' ');
    let bytes = line.as_bytes();
    for at in memchr_iter(b':', bytes) {
        if matches!(bytes.get(at + 1), None | Some(b' ' | b'\t')) {
            return None;
        }
    }
    if memchr_iter(b'#', bytes).any(|at| at > 0 && bytes.get(at - 1) == Some(&b' ')) || memchr(b'\t', bytes).is_some() {
        return None;
    }
    reader.at = end + 1;
    Some(line)
}

/// Skips blank lines: how many, and the indentation of the line that follows.
fn blank_lines(reader: &mut Reader<'_>) -> Option<(usize, usize)> {
    let mut blank = 0;
    loop {
        let mut at = reader.at;
        while reader.byte(at) == b' ' {
            at += 1;
        }
        match reader.byte(at) {
            b'\n' => {
                blank += 1;
                reader.at = at + 1;
            }
            b'\t' => return None,
            // A document end marker is for the full reader.
            b'.' if at == reader.at && reader.text.get(at..)?.starts_with("...") => return None,
            _ => return Some((blank, at - reader.at)),
        }
    }
}

/// Joins two lines of a flow scalar: a single break becomes a blank, further ones stay.
fn fold(out: &mut String, blank: usize) {
    if blank == 0 {
        out.push(' ');
    }
    for _ in 0..blank {
        out.push('\n');
    }
}

/// Nothing but spaces may follow a quoted scalar on its line; moves to the next line.
fn finish_line(reader: &mut Reader<'_>, at: usize) -> Option<()> {
    reader.at = at;
    let end = reader.line_end();
    if !reader.text.get(at..end)?.bytes().all(|byte| byte == b' ') {
        return None;
    }
    reader.at = end + 1;
    Some(())
}

/// The break inside a quoted scalar at the position `at` (a line feed): folds, and gives the offset to go on from.
fn fold_break(reader: &mut Reader<'_>, at: usize, out: &mut String, keep: usize) -> Option<usize> {
    let trimmed = out.trim_end_matches(' ').len().max(keep);
    // A tab before or after a break is white space too.
    if out.get(keep..trimmed)?.ends_with('\t') {
        return None;
    }
    out.truncate(trimmed);
    reader.at = at + 1;
    let (blank, indent) = blank_lines(reader)?;
    fold(out, blank);
    Some(reader.at + indent)
}

fn single_quoted<'a>(reader: &mut Reader<'a>) -> Option<Cow<'a, str>> {
    let start = reader.at + 1;
    let mut at = start;
    let mut out: Option<String> = None;
    let mut piece = start;
    loop {
        at += memchr2(b'\'', b'\n', reader.text.as_bytes().get(at..)?)?;
        if reader.byte(at) == b'\n' {
            let text = out.get_or_insert_default();
            text.push_str(reader.text.get(piece..at)?);
            at = fold_break(reader, at, text, 0)?;
            piece = at;
        } else if reader.byte(at + 1) == b'\'' {
            let text = out.get_or_insert_default();
            text.push_str(reader.text.get(piece..=at)?);
            at += 2;
            piece = at;
        } else {
            break;
        }
    }
    let last = reader.text.get(piece..at)?;
    finish_line(reader, at + 1)?;
    Some(match out {
        Some(text) => Cow::Owned(text + last),
        None => Cow::Borrowed(last),
    })
}

fn double_quoted<'a>(reader: &mut Reader<'a>) -> Option<Cow<'a, str>> {
    let start = reader.at + 1;
    let mut at = start;
    let mut out: Option<String> = None;
    let mut piece = start;
    // Escaped white space is not trimmed at a break: the length of the text up to the last escape.
    let mut keep = 0;
    loop {
        at += memchr3(b'"', b'\\', b'\n', reader.text.as_bytes().get(at..)?)?;
        match reader.byte(at) {
            b'\n' => {
                let text = out.get_or_insert_default();
                text.push_str(reader.text.get(piece..at)?);
                at = fold_break(reader, at, text, keep)?;
            }
            b'\\' => {
                let text = out.get_or_insert_default();
                text.push_str(reader.text.get(piece..at)?);
                at = escape(reader, at + 1, text)?;
                keep = text.len();
            }
            _ => break,
        }
        piece = at;
    }
    let last = reader.text.get(piece..at)?;
    finish_line(reader, at + 1)?;
    Some(match out {
        Some(text) => Cow::Owned(text + last),
        None => Cow::Borrowed(last),
    })
}

/// Reads what follows a backslash at `at`; gives the offset behind it.
fn escape(reader: &mut Reader<'_>, at: usize, out: &mut String) -> Option<usize> {
    let hexadecimal = |digits: usize| {
        let text = reader.text.get(at + 1..at + 1 + digits)?;
        if !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        char::from_u32(u32::from_str_radix(text, 16).ok()?)
    };
    let (character, length) = match reader.byte(at) {
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
            // The line goes on below; its leading spaces do not count.
            let mut next = at + 1;
            while reader.byte(next) == b' ' {
                next += 1;
            }
            return (!matches!(reader.byte(next), b'\n' | b'\t' | 0)).then_some(next);
        }
        _ => return None,
    };
    out.push(character);
    Some(at + length)
}

/// A literal block scalar. `parent` is the column its lines must exceed.
fn literal<'a>(reader: &mut Reader<'a>, parent: usize) -> Option<Cow<'a, str>> {
    let end = reader.line_end();
    let (mut chomp, mut explicit) = (b' ', None);
    for byte in reader.text.get(reader.at + 1..end)?.trim_end_matches(' ').bytes() {
        match byte {
            b'+' | b'-' if chomp == b' ' => chomp = byte,
            b'1'..=b'9' if explicit.is_none() => explicit = Some(parent + usize::from(byte - b'0')),
            _ => return None,
        }
    }
    reader.at = end + 1;
    let indent = match explicit {
        Some(indent) => indent,
        None => literal_indent(reader)?,
    };
    let mut out = String::new();
    // Line feeds seen since the last line with content.
    let mut breaks = 0;
    if indent > parent {
        while reader.at < reader.text.len() {
            let end = reader.line_end();
            let line = reader.text.get(reader.at..end)?;
            let spaces = line.len() - line.trim_start_matches(' ').len();
            if spaces < indent && spaces < line.len() {
                // A tab in the place of indentation is an error in YAML.
                if line.as_bytes().get(spaces) == Some(&b'\t') {
                    return None;
                }
                break;
            }
            if let Some(content) = line.get(indent..).filter(|content| !content.is_empty()) {
                out.extend(std::iter::repeat_n('\n', breaks));
                breaks = 0;
                out.push_str(content);
            }
            breaks += usize::from(end < reader.text.len());
            reader.at = end + 1;
        }
    }
    let kept = match chomp {
        b'+' => breaks,
        b'-' => 0,
        _ if out.is_empty() => 0,
        _ => breaks.min(1),
    };
    out.extend(std::iter::repeat_n('\n', kept));
    Some(Cow::Owned(out))
}

/// The indentation of the first line with content. Blank lines above it that are longer are left to the full reader.
fn literal_indent(reader: &Reader<'_>) -> Option<usize> {
    let mut at = reader.at;
    let mut longest = 0;
    loop {
        let start = at;
        while reader.byte(at) == b' ' {
            at += 1;
        }
        let spaces = at - start;
        match reader.byte(at) {
            b'\n' => {
                longest = longest.max(spaces);
                at += 1;
            }
            b'\t' => return None,
            0 => return (longest == 0).then_some(0),
            _ => return (longest <= spaces).then_some(spaces),
        }
    }
}
