//! yamllint's errors with the settings of the hosted pipeline. Rules that only warn are omitted.
//!
//! Written after its documentation and compared with its answers. `tests.rs` has cases of both kinds for each rule.

mod blocks;
mod marks;

use std::ops::Range;

use olmkit_yaml::block::{Place, Positions};
use olmkit_yaml::{Event, EventKind, Position, events};

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The name of yamllint's rule.
    pub(crate) rule: &'static str,
    pub(crate) message: String,
    pub(crate) at: Position,
}

/// A problem whose position is not computed yet.
struct UnplacedProblem {
    rule: &'static str,
    message: String,
    offset: usize,
}

/// The first problems of one kind: the others are dropped.
struct First {
    left: usize,
    found: Vec<UnplacedProblem>,
}

impl First {
    fn push(&mut self, rule: &'static str, message: impl Into<String>, offset: usize) {
        if let Some(left) = self.left.checked_sub(1) {
            self.left = left;
            let message = message.into();
            self.found.push(UnplacedProblem { rule, message, offset });
        }
    }
}

/// One line.
struct Line {
    start: usize,
    /// The spaces that it starts with.
    spaces: usize,
}

/// A document with the data for the rules.
struct Source<'a> {
    text: &'a str,
    lines: Vec<Line>,
    events: Vec<Event>,
    /// Problems of each kind that are kept.
    most: usize,
}

impl<'a> Source<'a> {
    fn new(text: &'a str, most: usize) -> Self {
        let mut lines = vec![];
        let mut start = 0;
        for line in text.split('\n') {
            let spaces = line.len() - line.trim_start_matches(' ').len();
            lines.push(Line { start, spaces });
            start += line.len() + 1;
        }
        Self {
            text,
            lines,
            events: Vec::new(),
            most,
        }
    }

    fn first(&self) -> First {
        First {
            left: self.most,
            found: Vec::new(),
        }
    }

    /// The number of a line, from zero.
    fn line(&self, offset: usize) -> usize {
        let after = self.lines.partition_point(|line| line.start <= offset);
        after.saturating_sub(1)
    }

    fn line_start(&self, offset: usize) -> usize {
        self.lines.get(self.line(offset)).map_or(0, |line| line.start)
    }

    /// The bytes before an offset in its line.
    fn indent(&self, offset: usize) -> usize {
        offset - self.line_start(offset)
    }

    /// The spaces at the start of the line of an offset.
    fn line_indent(&self, offset: usize) -> usize {
        self.lines.get(self.line(offset)).map_or(0, |line| line.spaces)
    }

    /// Returns true if an offset is preceded only by spaces in its line.
    fn is_first_in_line(&self, offset: usize) -> bool {
        self.indent(offset) <= self.line_indent(offset)
    }

    /// The problems with their positions, in document order.
    fn placed(&self, mut found: Vec<UnplacedProblem>) -> Vec<Problem> {
        found.sort_by_key(|found| found.offset);
        let mut positions = Positions::new(self.text, 0);
        let place = |offset| Place {
            line: u32::try_from(self.line(offset)).unwrap_or(u32::MAX),
            line_start: self.line_start(offset),
            offset,
        };
        let problem = |found: UnplacedProblem| Problem {
            rule: found.rule,
            message: found.message,
            at: positions.of(place(found.offset)),
        };
        found.into_iter().map(problem).collect()
    }

    /// Ranges of scalars, aliases and their properties, in order: punctuation inside them does not count.
    fn opaque(&self) -> Vec<Range<usize>> {
        let is_opaque = |event: &&Event| matches!(event.data, EventKind::Scalar { .. } | EventKind::Alias(_));
        let spans = self.events.iter().filter(is_opaque).map(|event| event.source.clone());
        spans.filter(|span| !span.is_empty()).collect()
    }
}

/// The first problems of a document, in order.
pub(crate) fn lint(text: &str, most: usize) -> Vec<Problem> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut source = Source::new(text, most);
    let mut found = of_lines(&source);
    let mut syntax = None;
    match events(text.as_bytes()) {
        Ok(events) => {
            source.events = events;
            found.extend(marks::check(&source));
            found.extend(blocks::indentation(&source));
            found.extend(blocks::keys_and_anchors(&source));
        }
        Err(error) => {
            let problem = error.to_string();
            let problem = problem.strip_prefix("yaml: ").unwrap_or(&problem);
            syntax = Some(Problem {
                rule: "syntax",
                message: format!("syntax error: {problem}"),
                at: error.position().unwrap_or(Position { line: 1, column: 1 }),
            });
        }
    }
    let mut found = source.placed(found);
    found.extend(syntax);
    found.sort_by_key(|problem| (problem.at.line, problem.at.column));
    found.truncate(most);
    found
}

/// The rules on lines, whatever is in them.
fn of_lines(source: &Source<'_>) -> Vec<UnplacedProblem> {
    /// Maximum consecutive empty lines.
    const MOST_BLANK: usize = 2;
    let mut found = source.first();
    let text = source.text;
    let first_end = text.find('\n');
    if let Some(end) = first_end
        && text.get(..end).is_some_and(|line| line.ends_with('\r'))
    {
        found.push("new-lines", "wrong new line character: expected \\n", end - 1);
    }
    if !text.is_empty() && !text.ends_with('\n') {
        found.push(
            "new-line-at-end-of-file",
            "no new line character at the end of file",
            text.len(),
        );
    }
    let mut blank = 0;
    let mut offset = 0;
    let mut is_start = true;
    for line in text.split_inclusive('\n') {
        let content = line.trim_end_matches(['\n', '\r']);
        let bare = content.trim_end_matches([' ', '\t', '\u{b}', '\u{c}']);
        if bare.len() < content.len() {
            found.push("trailing-spaces", "trailing spaces", offset + bare.len());
        }
        let next = offset + line.len();
        if content.is_empty() {
            blank += 1;
            let is_end = next == text.len();
            let is_last = is_end
                || !text
                    .get(next..)
                    .is_some_and(|rest| rest.starts_with('\n') || rest.starts_with("\r\n"));
            let most = if is_start || is_end { 0 } else { MOST_BLANK };
            // A file of one empty line does not count.
            if is_last && blank > most && !(is_start && is_end && text == "\n") {
                found.push(
                    "empty-lines",
                    format!("too many blank lines ({blank} > {most})"),
                    offset,
                );
            }
        } else {
            blank = 0;
            is_start = false;
        }
        offset = next;
    }
    found.found
}

#[cfg(test)]
mod tests;
