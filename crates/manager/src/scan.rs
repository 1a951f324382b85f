//! Finds the structure of JSON text that arrives in pieces.

/// The meaning of a byte of JSON text.
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
    /// Takes the next byte.
    pub fn step(&mut self, byte: u8) -> Mark {
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
