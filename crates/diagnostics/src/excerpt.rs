//! Source lines that findings point at.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::string::FromUtf8Error;

use olmkit_base::limits;
use olmkit_base::object::UntrustedText;
use olmkit_yaml::Position;

/// Characters between known positions of a line. A finding in a long line counts from the nearest one.
const STRIDE: usize = 512;

/// The file of the last finding, kept for the next one: findings are sorted by file, and all files together may be
/// large.
#[derive(Default)]
pub(super) struct Sources(Option<(PathBuf, Option<Source>)>);

impl Sources {
    /// The lines of a file. `None` where it cannot be read, or is larger than [`limits::SOURCE_FILE`].
    pub fn get(&mut self, file: &Path) -> Option<&mut Source> {
        if self.0.as_ref().is_none_or(|(known, _)| known != file) {
            // The previous one is dropped first.
            self.0 = None;
            self.0 = Some((file.to_owned(), Source::read(file)));
        }
        self.0.as_mut()?.1.as_mut()
    }
}

/// A file, with the places of its lines, so that each of many findings is shown without reading all of the file again.
pub(super) struct Source {
    text: String,
    /// Start of each line, in bytes.
    lines: Vec<usize>,
    /// For lines that were shown: where each [`STRIDE`]th character begins, in bytes from the beginning of the line.
    places: HashMap<usize, Vec<usize>>,
}

/// One line of source with the part that a finding points at.
pub(super) struct Excerpt {
    pub line: String,
    pub number: usize,
    /// Byte offsets within the line.
    pub start: usize,
    pub end: usize,
    /// True if the beginning of the line is omitted.
    pub is_cut: bool,
}

impl Source {
    fn read(file: &Path) -> Option<Self> {
        let bytes = limits::read_file(file, &limits::SOURCE_FILE).ok()?;
        let lossy = |error: FromUtf8Error| String::from_utf8_lossy(error.as_bytes()).into_owned();
        Some(Self::new(String::from_utf8(bytes).unwrap_or_else(lossy)))
    }

    fn new(text: String) -> Self {
        let ends = memchr::memchr_iter(b'\n', text.as_bytes()).map(|end| end + 1);
        Self {
            lines: std::iter::once(0)
                .chain(ends)
                .filter(|start| *start < text.len())
                .collect(),
            text,
            places: HashMap::new(),
        }
    }

    /// The context of a position, at most `longest` characters.
    pub fn excerpt(&mut self, start: Position, end: Option<Position>, longest: usize) -> Option<Excerpt> {
        let number = usize::try_from(start.line).ok()?;
        let index = number.checked_sub(1)?;
        let from = *self.lines.get(index)?;
        let to = self.lines.get(index + 1).copied().unwrap_or(self.text.len());
        let line = self.text.get(from..to)?;
        let line = line.strip_suffix('\n').unwrap_or(line);
        let line = line.strip_suffix('\r').unwrap_or(line);
        let places = self.places.entry(index).or_insert_with(|| {
            let offsets = line.char_indices().map(|(offset, _)| offset);
            offsets.step_by(STRIDE).collect()
        });
        let line = Line { text: line, places };
        let first = line.clamp(usize::try_from(start.column).ok()?.checked_sub(1)?);
        let last = match end {
            Some(end) if end.line == start.line => line.clamp(usize::try_from(end.column).ok()?.saturating_sub(1)),
            Some(_) => line.length(),
            None => line.clamp(first + 1),
        };
        Some(line.cut(number, first, last.max(first), longest))
    }
}

/// A line whose characters are found without counting from its beginning.
struct Line<'s> {
    text: &'s str,
    places: &'s [usize],
}

impl Line<'_> {
    /// Characters in the line.
    fn length(&self) -> usize {
        let Some(last) = self.places.last() else { return 0 };
        let rest = self.text.get(*last..).unwrap_or_default().chars().count();
        (self.places.len() - 1) * STRIDE + rest
    }

    /// A number of characters, or the length of the line if that is less.
    fn clamp(&self, count: usize) -> usize {
        // Only near the end the line needs to be counted.
        if count / STRIDE + 1 < self.places.len() {
            count
        } else {
            count.min(self.length())
        }
    }

    /// Byte offset of a character index.
    fn offset(&self, character: usize) -> usize {
        let Some(place) = self.places.get(character / STRIDE) else {
            return self.text.len();
        };
        let mut rest = self.text.get(*place..).unwrap_or_default().char_indices();
        rest.nth(character % STRIDE)
            .map_or(self.text.len(), |(offset, _)| place + offset)
    }

    /// The characters of a range, without terminal control characters.
    fn part(&self, from: usize, to: usize) -> String {
        let text = self.text.get(self.offset(from)..self.offset(to)).unwrap_or_default();
        let shown = text.chars().map(|c| match c {
            '\t' => ' ',
            c if UntrustedText::is_unsafe(c) => char::REPLACEMENT_CHARACTER,
            c => c,
        });
        shown.collect()
    }

    /// Cuts a long line down to the surroundings of the marked part.
    fn cut(&self, number: usize, first: usize, last: usize, longest: usize) -> Excerpt {
        let from = if self.clamp(longest + 1) > longest {
            first.saturating_sub(longest / 4)
        } else {
            0
        };
        let to = self.clamp(from + longest);
        let (first, last) = (first.min(to), last.min(to));
        let (before, marked, after) = (self.part(from, first), self.part(first, last), self.part(last, to));
        let (start, end) = (before.len(), before.len() + marked.len());
        Excerpt {
            line: format!("{before}{marked}{after}"),
            number,
            start,
            end,
            is_cut: from > 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: u32, column: u32) -> Position {
        Position { line, column }
    }

    #[test]
    fn places_in_long_lines_are_those_that_counting_finds() {
        let long: String = (0..5000u32).map(|n| char::from_u32(0x100 + n % 700).unwrap()).collect();
        let characters: Vec<char> = long.chars().collect();
        let mut source = Source::new(format!("first\r\n{long}\nlast"));
        for column in [1, 2, 100, 511, 512, 513, 514, 1024, 1025, 4999, 5000, 5001, 9000] {
            let excerpt = source.excerpt(at(2, column), Some(at(2, column + 3)), 80).unwrap();
            let marked: Vec<char> = excerpt.line[excerpt.start..excerpt.end].chars().collect();
            let first = usize::try_from(column - 1).unwrap().min(characters.len());
            let last = (first + 3).min(characters.len());
            assert_eq!(marked, characters[first..last], "column {column}");
            assert!(excerpt.line.chars().count() <= 80);
        }
        assert_eq!(source.excerpt(at(1, 1), None, 80).unwrap().line, "first");
        assert_eq!(source.excerpt(at(3, 2), None, 80).unwrap().line, "last");
        assert!(source.excerpt(at(4, 1), None, 80).is_none());
        assert!(source.excerpt(at(0, 1), None, 80).is_none());
    }

    #[test]
    fn control_characters_are_replaced_one_by_one() {
        let mut source = Source::new("a\u{1b}\u{9b}\u{202e}\tb".to_owned());
        assert_eq!(
            source.excerpt(at(1, 6), None, 80).unwrap().line,
            "a\u{fffd}\u{fffd}\u{fffd} b"
        );
    }
}
