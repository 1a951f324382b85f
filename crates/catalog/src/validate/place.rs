//! Finds the positions of values in catalog files, which are read again for this.

use std::collections::BTreeMap;
use std::path::Path;

use rayon::prelude::*;

use super::Problem;
use crate::load::read_text;
use crate::text::stream;
use olmkit_yaml::{self as yaml, Node, Position};

/// The position of each problem, as far as its file can be read: that of the value its pointer names, or of the last
/// value on the way there.
pub fn find(problems: &[&Problem]) -> Vec<Option<Position>> {
    let mut files: BTreeMap<&Path, BTreeMap<usize, Vec<usize>>> = BTreeMap::new();
    for (index, problem) in problems.iter().enumerate() {
        if let Some(file) = &problem.origin.file {
            let documents = files.entry(file).or_default();
            documents.entry(problem.origin.line).or_default().push(index);
        }
    }
    let mut positions = vec![None; problems.len()];
    for (file, documents) in files {
        let text = read_text(file).unwrap_or_default();
        let starts = line_starts(&text, documents.keys().copied());
        let found: Vec<(usize, Option<Position>)> = documents
            .into_par_iter()
            .flat_map_iter(|(line, indexes)| {
                let document = starts.get(&line).and_then(|start| stream::at_offset(&text, *start));
                let mut document = Document::new(document.as_deref().unwrap_or_default(), line);
                let found: Vec<(usize, Option<Position>)> = indexes
                    .into_iter()
                    .filter_map(|index| Some((index, document.find(&problems.get(index)?.pointer))))
                    .collect();
                found
            })
            .collect();
        for (index, position) in found {
            if let Some(place) = positions.get_mut(index) {
                *place = position;
            }
        }
    }
    positions
}

/// Start offsets of some lines. The lines are in order.
fn line_starts(text: &str, wanted: impl Iterator<Item = usize>) -> BTreeMap<usize, usize> {
    let mut starts = BTreeMap::new();
    let mut ends = memchr::memchr_iter(b'\n', text.as_bytes());
    let (mut line, mut start) = (1, 0);
    for wanted in wanted {
        while line < wanted {
            let Some(end) = ends.next() else { return starts };
            (line, start) = (line + 1, end + 1);
        }
        starts.insert(wanted, start);
    }
    starts
}

/// A document that is parsed only if a position in it cannot be found otherwise.
struct Document<'t> {
    text: &'t str,
    line: usize,
    node: Option<Option<Node>>,
}

impl<'t> Document<'t> {
    fn new(text: &'t str, line: usize) -> Self {
        Document { text, line, node: None }
    }

    fn find(&mut self, pointer: &str) -> Option<Position> {
        let inner = match pointer.strip_prefix('/') {
            Some(key) if !key.contains('/') => top_level(self.text, key),
            _ => None,
        };
        let inner = inner
            .or_else(|| self.walk(pointer))
            .unwrap_or(Position { line: 1, column: 1 });
        let line = u32::try_from(self.line).ok()?.checked_add(inner.line)?.checked_sub(1)?;
        Some(Position {
            line,
            column: inner.column,
        })
    }

    fn walk(&mut self, pointer: &str) -> Option<Position> {
        let text = self.text;
        let node = self.node.get_or_insert_with(|| yaml::parse(text.as_bytes()).ok());
        let mut node = node.as_ref()?;
        for step in pointer.split('/').skip(1) {
            let step = step.replace("~1", "/").replace("~0", "~");
            let next = match step.parse::<usize>() {
                Ok(index) if node.is_sequence() => node.items().get(index),
                _ => node.get(&step),
            };
            match next {
                Some(next) => node = next,
                None => break,
            }
        }
        Some(node.start)
    }
}

/// The value of a plain key that begins a line, if it is a simple scalar. Unindented lines of block-style YAML contain
/// only the keys of the outermost map.
fn top_level(text: &str, key: &str) -> Option<Position> {
    let mut lines = text.lines().zip(1..);
    let (value, line) = lines.find_map(|(line, number)| {
        let value = line.strip_prefix(key)?.strip_prefix(':')?;
        (value.is_empty() || value.starts_with(' ')).then_some((value, number))
    })?;
    let first = value.trim_start_matches(' ');
    // Values with an anchor, a tag or a comment, and values over several lines, are left to the parser.
    if first.is_empty() || first.starts_with(['&', '!', '*', '#', '\t']) {
        let (next, line) = lines.next().filter(|_| first.is_empty())?;
        let item = next.trim_start_matches(' ');
        let column = u32::try_from(next.len() - item.len() + 1).ok()?;
        return item.starts_with("- ").then_some(Position { line, column });
    }
    let column = u32::try_from(key.len() + 1 + value.len() - first.len() + 1).ok()?;
    Some(Position { line, column })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "---\n# all\nschema: olm.bundle\nimage:   r.io/p:v1\nproperties:\n- type: a\n  value: 1\nempty:\nmap:\n  \
        image: inner\ntext: |\n  image: no\nanchored: &a x\n\"quoted\": y\n";

    #[test]
    fn quick_places_are_those_of_the_parser() {
        let (mut quick, parsed) = (0, Document::new(TEXT, 1));
        let mut parsed = parsed;
        for key in ["schema", "image", "properties", "map", "text", "anchored", "quoted"] {
            let found = parsed.walk(&format!("/{key}"));
            assert!(found.is_some(), "{key}");
            if let Some(position) = top_level(TEXT, key) {
                quick += 1;
                assert_eq!(Some(position), found, "{key}");
            }
        }
        assert_eq!(quick, 4);
    }

    #[test]
    fn lines_are_found_in_one_go() {
        let starts = line_starts("a\nbc\n\nd", [1, 2, 4, 9].into_iter());
        assert_eq!(starts, BTreeMap::from([(1, 0), (2, 2), (4, 6)]));
    }
}
