//! Finds the structure of JSON text that arrives in pieces.
use memchr::memchr2;

/// The meaning of a piece of JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Begins a string.
    StringBegins,
    /// Ends a string.
    StringEnds,
    /// Begins an object or a list.
    Opens {
        /// It is a list.
        list: bool,
    },
    /// Ends an object or a list.
    Closes,
    /// Separates entries.
    Separates,
    /// Is part of a string or scalar, or has no meaning.
    Other,
}

/// The place in the text.
#[derive(Default)]
pub struct Scanner {
    /// Objects and lists that are open.
    pub depth: usize,
    in_string: bool,
    is_escaped: bool,
}

impl Scanner {
    /// Takes the next piece of `bytes`: one byte that has a meaning, or all bytes before it.
    pub fn next<'t>(&mut self, bytes: &mut &'t [u8]) -> Option<(Mark, &'t [u8])> {
        let first = *bytes.first()?;
        let (mark, length) = match self.plain(bytes) {
            0 => (self.step(first), 1),
            plain => (Mark::Other, plain),
        };
        let (piece, rest) = bytes.split_at(length);
        *bytes = rest;
        Some((mark, piece))
    }

    /// How many of `bytes` have no meaning. Most of an OpenAPI document is text, which this passes quickly.
    fn plain(&self, bytes: &[u8]) -> usize {
        let end = match self.in_string {
            true if self.is_escaped => Some(0),
            true => memchr2(b'"', b'\\', bytes),
            false => bytes
                .iter()
                .position(|byte| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']' | b',')),
        };
        end.unwrap_or(bytes.len())
    }

    fn step(&mut self, byte: u8) -> Mark {
        if self.in_string {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => {
                    self.in_string = false;
                    return Mark::StringEnds;
                }
                _ => {}
            }
            return Mark::Other;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                Mark::StringBegins
            }
            b'{' | b'[' => {
                self.depth += 1;
                Mark::Opens { list: byte == b'[' }
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                Mark::Closes
            }
            b',' => Mark::Separates,
            _ => Mark::Other,
        }
    }
}
