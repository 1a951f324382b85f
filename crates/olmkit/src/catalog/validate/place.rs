//! Finds the place of a value in a catalog file, which is read again for it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::catalog::load::read_text;
use crate::catalog::text::stream;
use crate::yaml::{self, Node, Position};

/// Documents that were read again.
#[derive(Default)]
pub struct Places {
    texts: HashMap<PathBuf, String>,
    nodes: HashMap<(PathBuf, usize), Option<Node>>,
}

impl Places {
    /// The position of the value that a JSON pointer names in the document that begins at a line. Where the path ends
    /// early, the last value on it.
    pub fn find(&mut self, file: &Path, line: usize, pointer: &str) -> Option<Position> {
        let start = || u32::try_from(line).ok().map(|line| Position { line, column: 1 });
        let Some(node) = self.document(file, line) else {
            return start();
        };
        let mut node = node;
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
        let Position { line: inner, column } = node.start;
        let line = u32::try_from(line).ok()?.checked_add(inner)?.checked_sub(1)?;
        Some(Position { line, column })
    }

    fn document(&mut self, file: &Path, line: usize) -> Option<&Node> {
        let key = (file.to_owned(), line);
        if !self.nodes.contains_key(&key) {
            let text = self
                .texts
                .entry(file.to_owned())
                .or_insert_with(|| read_text(file).unwrap_or_default());
            let node = stream::at_line(text, line).and_then(|text| yaml::parse(text.as_bytes()).ok());
            self.nodes.insert(key.clone(), node);
        }
        self.nodes.get(&key)?.as_ref()
    }
}

/// A JSON pointer as a path: `/entries/0/name` is `entries[0].name`.
pub fn dotted(pointer: &str) -> String {
    let mut path = String::new();
    for step in pointer.split('/').skip(1) {
        if !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_digit()) {
            path.push_str(&format!("[{step}]"));
        } else {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(step);
        }
    }
    path
}
