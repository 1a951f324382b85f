//! Places as people count: lines and columns from one, columns in characters.

use super::Place;
use crate::Position;

/// Converts places to positions in the file.
#[derive(Debug)]
pub struct Positions<'a> {
    text: &'a str,
    is_ascii: bool,
    lines_before: u32,
    /// The last position returned, and the number of characters before it in its line. The next one is usually near and
    /// is counted from there: counting from the start of the line would be quadratic for a list of a million words in
    /// one line.
    last: Place,
    characters: usize,
    #[cfg(test)]
    pub(super) counted: usize,
}

impl<'a> Positions<'a> {
    /// For a document that starts `lines_before` lines into its file.
    pub fn new(text: &'a str, lines_before: u32) -> Self {
        Self {
            text,
            is_ascii: text.is_ascii(),
            lines_before,
            last: Place {
                line: 0,
                line_start: 0,
                offset: 0,
            },
            characters: 0,
            #[cfg(test)]
            counted: 0,
        }
    }

    /// The position of a place.
    pub fn of(&mut self, place: Place) -> Position {
        let from_one = |number: u32| number.saturating_add(1);
        Position {
            line: from_one(place.line).saturating_add(self.lines_before),
            column: from_one(u32::try_from(self.characters_before(place)).unwrap_or(u32::MAX)),
        }
    }

    fn characters_before(&mut self, place: Place) -> usize {
        if self.is_ascii {
            return place.offset.saturating_sub(place.line_start);
        }
        let last = self.last.offset;
        let is_new_line = place.line_start != self.last.line_start;
        let (from, to) = match (is_new_line, place.offset >= last) {
            (true, _) => (place.line_start, place.offset),
            (false, true) => (last, place.offset),
            (false, false) => (place.offset, last),
        };
        #[cfg(test)]
        {
            self.counted += to.saturating_sub(from);
        }
        let between = self.text.get(from..to).unwrap_or_default().chars().count();
        self.characters = match (is_new_line, place.offset >= last) {
            (true, _) => between,
            (false, true) => self.characters + between,
            (false, false) => self.characters.saturating_sub(between),
        };
        self.last = place;
        self.characters
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)] // a test fails by panicking

    use super::*;

    #[test]
    fn a_long_line_is_counted_about_once() {
        let text = "é, ".repeat(10_000);
        let mut positions = Positions::new(&text, 2);
        let at = |offset| Place {
            line: 0,
            line_start: 0,
            offset,
        };
        for word in 0..10_000_usize {
            // Forward to the end of a word, then back to its start.
            let end = positions.of(at(4 * word + 2));
            let start = positions.of(at(4 * word));
            let column = u32::try_from(3 * word + 1).unwrap();
            assert_eq!((start.line, start.column, end.column), (3, column, column + 1));
        }
        assert!(positions.counted < 3 * text.len(), "{}", positions.counted);
        let other = Place {
            line: 1,
            line_start: 2,
            offset: 6,
        };
        assert_eq!(positions.of(other).column, 4, "é is one character of two bytes");
    }
}
