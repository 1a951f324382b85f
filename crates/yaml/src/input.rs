//! Checks and prepares the bytes of one document for the event parser.

use std::borrow::Cow;
use std::io::{BufRead, Read};

use super::{Error, MAX_DOCUMENT_BYTES, Position};

/// Size of the pieces that the event parser reads. It stores every character in four bytes, so small pieces fit into
/// the processor's cache, and a document is never held a second time.
const PIECE: usize = 4096;

/// Feeds a text to the event parser in pieces that end on a character boundary.
pub(super) struct Pieces<'a> {
    rest: &'a str,
}

impl<'a> Pieces<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text }
    }

    fn piece(&self) -> &'a [u8] {
        let end = self.rest.floor_char_boundary(PIECE);
        self.rest.as_bytes().get(..end).unwrap_or_default()
    }
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let taken = self.piece().read(buffer)?;
        self.consume(taken);
        Ok(taken)
    }
}

impl BufRead for Pieces<'_> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        Ok(self.piece())
    }

    fn consume(&mut self, amount: usize) {
        self.rest = self.rest.get(amount..).unwrap_or_default();
    }
}

/// A document ready for the event parser.
pub(super) struct Input<'a> {
    /// The text. It always ends with a line end.
    pub(super) text: Cow<'a, str>,
    /// True if the last line end was added. The event parser cannot cope with a block scalar that ends without one.
    pub(super) line_end_added: bool,
}

/// Checks and completes a document.
pub(super) fn prepare(bytes: &[u8]) -> Result<Input<'_>, Error> {
    let text = decode(bytes)?;
    if text.ends_with('\n') {
        return Ok(Input {
            text,
            line_end_added: false,
        });
    }
    let mut text = text.into_owned();
    text.push('\n');
    Ok(Input {
        text: Cow::Owned(text),
        line_end_added: true,
    })
}

/// A block scalar read from a text whose last line end was added, as it would be without it.
pub(super) fn without_added_line_end<'v>(value: &'v str, text: &str) -> &'v str {
    let Some(shorter) = value.strip_suffix('\n') else {
        return value;
    };
    let last_line = text
        .trim_end_matches('\n')
        .rsplit(['\n', '\r'])
        .next()
        .unwrap_or_default();
    let last_line_is_blank = last_line.bytes().all(|byte| byte == b' ');
    let kept = last_line_is_blank && !shorter.is_empty() && !shorter.ends_with(['\n', ' ']);
    if kept { value } else { shorter }
}

/// The document as text: a byte order mark removed, UTF-16 converted, and every character one that YAML allows.
fn decode(bytes: &[u8]) -> Result<Cow<'_, str>, Error> {
    if bytes.len() > MAX_DOCUMENT_BYTES {
        return Err(Error::Limit {
            problem: format!("document is larger than {} MiB", MAX_DOCUMENT_BYTES >> 20),
            position: None,
        });
    }
    let text = match bytes {
        [0xff, 0xfe, rest @ ..] => Cow::Owned(utf16(rest, u16::from_le_bytes)?),
        [0xfe, 0xff, rest @ ..] => Cow::Owned(utf16(rest, u16::from_be_bytes)?),
        [0xef, 0xbb, 0xbf, rest @ ..] => Cow::Borrowed(utf8(rest)?),
        _ => Cow::Borrowed(utf8(bytes)?),
    };
    match first_forbidden(text.as_bytes()) {
        Some(at) => Err(Error::without_line(
            "control characters are not allowed",
            Some(position_of(&text, at)),
        )),
        None => Ok(text),
    }
}

fn utf8(bytes: &[u8]) -> Result<&str, Error> {
    std::str::from_utf8(bytes).map_err(|error| {
        let (sound, rest) = bytes.split_at(error.valid_up_to());
        let sound = std::str::from_utf8(sound).unwrap_or_default();
        Error::without_line(utf8_problem(rest), Some(position_of(sound, sound.len())))
    })
}

/// Names the fault of an invalid sequence as go-yaml's reader does.
fn utf8_problem(bytes: &[u8]) -> &'static str {
    let width = match bytes.first() {
        Some(0xc0..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf7) => 4,
        _ => return "invalid leading UTF-8 octet",
    };
    let Some(sequence) = bytes.get(..width) else {
        return "incomplete UTF-8 octet sequence";
    };
    if sequence.iter().skip(1).any(|byte| byte & 0xc0 != 0x80) {
        return "invalid trailing UTF-8 octet";
    }
    match sequence {
        [0xc0 | 0xc1, ..] | [0xe0, 0x80..=0x9f, ..] | [0xf0, 0x80..=0x8f, ..] => "invalid length of a UTF-8 sequence",
        _ => "invalid Unicode character",
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, Error> {
    let problem = |problem: &str| Error::without_line(problem, None);
    let (pairs, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(problem("incomplete UTF-16 character"));
    }
    char::decode_utf16(pairs.iter().map(|pair| unit(*pair)))
        .collect::<Result<String, _>>()
        .map_err(|_| problem("unexpected low surrogate area"))
}

/// Offset of the first character that YAML does not allow: C0 except tab and line ends, DEL, C1 except U+0085, U+FFFE
/// and U+FFFF.
fn first_forbidden(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(offset) = first_suspicious(bytes.get(at..)?) {
        at += offset;
        match bytes.get(at..)? {
            [b'\t' | b'\n' | b'\r', ..] => {}
            [0x00..=0x1f | 0x7f, ..] => return Some(at),
            [0xc2, 0x80..=0x84 | 0x86..=0x9f, ..] => return Some(at),
            [0xef, 0xbf, 0xbe | 0xbf, ..] => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}

fn first_suspicious(bytes: &[u8]) -> Option<usize> {
    // Without an early end the compiler uses vector instructions.
    let is_plain = |part: &&[u8]| !part.iter().fold(false, |found, byte| found | suspicious(*byte));
    let plain: usize = bytes.chunks(64).take_while(is_plain).map(<[u8]>::len).sum();
    let offset = bytes.get(plain..)?.iter().position(|byte| suspicious(*byte))?;
    Some(plain + offset)
}

fn suspicious(byte: u8) -> bool {
    byte < 0x20 && byte != b'\n' || matches!(byte, 0x7f | 0xc2 | 0xef)
}

/// The position of a byte offset, by the line breaks of YAML 1.1.
pub(super) fn position_of(text: &str, offset: usize) -> Position {
    let before = text.get(..offset).unwrap_or(text);
    let (mut line, mut column) = (1, 1);
    let mut characters = before.chars().peekable();
    while let Some(character) = characters.next() {
        let ends_line = match character {
            '\r' => characters.peek() != Some(&'\n'),
            '\n' | '\u{85}' | '\u{2028}' | '\u{2029}' => true,
            _ => false,
        };
        (line, column) = if ends_line { (line + 1, 1) } else { (line, column + 1) };
    }
    Position { line, column }
}
