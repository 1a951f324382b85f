//! What yamllint finds with the settings of the hosted pipeline, as far as it fails: the rules that only warn are left out.
//!
//! Written after its documentation and compared with its answers; `tests.rs` has cases of both kinds for each rule.

mod blocks;
mod marks;

use std::ops::Range;

use olmkit_yaml::{Event, EventKind, Position, events};

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The name of yamllint's rule.
    pub(crate) rule: &'static str,
    pub(crate) message: String,
    pub(crate) at: Position,
}

/// A text with what its rules need.
struct Source<'a> {
    text: &'a str,
    /// Where the lines start.
    lines: Vec<usize>,
    events: Vec<Event>,
}

impl<'a> Source<'a> {
    fn position(&self, offset: usize) -> Position {
        let line = self.lines.partition_point(|start| *start <= offset);
        let start = line
            .checked_sub(1)
            .and_then(|line| self.lines.get(line))
            .copied()
            .unwrap_or_default();
        let before = self.text.get(start..offset).unwrap_or_default();
        let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        Position {
            line: number(line),
            column: number(before.chars().count()).saturating_add(1),
        }
    }

    fn line(&self, offset: usize) -> usize {
        self.lines.partition_point(|start| *start <= offset)
    }

    /// The bytes before an offset in its line.
    fn indent(&self, offset: usize) -> usize {
        let line = self.line(offset);
        offset
            - line
                .checked_sub(1)
                .and_then(|line| self.lines.get(line))
                .copied()
                .unwrap_or_default()
    }

    /// The spaces at the start of the line of an offset.
    fn line_indent(&self, offset: usize) -> usize {
        let line = self.text.get(offset - self.indent(offset)..).unwrap_or_default();
        line.len() - line.trim_start_matches(' ').len()
    }

    fn problem(&self, rule: &'static str, message: impl Into<String>, offset: usize) -> Problem {
        Problem {
            rule,
            message: message.into(),
            at: self.position(offset),
        }
    }

    /// Where scalars, aliases and their properties stand, in order: what is inside of them is no punctuation.
    fn opaque(&self) -> Vec<Range<usize>> {
        let is_opaque = |event: &&Event| matches!(event.data, EventKind::Scalar { .. } | EventKind::Alias(_));
        let spans = self.events.iter().filter(is_opaque).map(|event| event.source.clone());
        spans.filter(|span| !span.is_empty()).collect()
    }
}

/// The problems of a text, in its order.
pub(crate) fn lint(text: &str) -> Vec<Problem> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = vec![0];
    lines.extend(text.match_indices('\n').map(|(at, _)| at + 1));
    let mut source = Source {
        text,
        lines,
        events: Vec::new(),
    };
    let mut found = of_lines(&source);
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
            found.push(Problem {
                rule: "syntax",
                message: format!("syntax error: {problem}"),
                at: error.position().unwrap_or(Position { line: 1, column: 1 }),
            });
        }
    }
    found.sort_by_key(|problem| (problem.at.line, problem.at.column));
    found
}

/// The rules on lines, whatever is in them.
fn of_lines(source: &Source<'_>) -> Vec<Problem> {
    /// Blank lines in a row.
    const MOST_BLANK: usize = 2;
    let mut found = Vec::new();
    let text = source.text;
    let first_end = text.find('\n');
    if let Some(end) = first_end
        && text.get(..end).is_some_and(|line| line.ends_with('\r'))
    {
        found.push(source.problem("new-lines", "wrong new line character: expected \\n", end - 1));
    }
    if !text.is_empty() && !text.ends_with('\n') {
        found.push(source.problem(
            "new-line-at-end-of-file",
            "no new line character at the end of file",
            text.len(),
        ));
    }
    let mut blank = 0;
    let mut offset = 0;
    let mut is_start = true;
    for line in text.split_inclusive('\n') {
        let content = line.trim_end_matches(['\n', '\r']);
        let bare = content.trim_end_matches([' ', '\t', '\u{b}', '\u{c}']);
        if bare.len() < content.len() {
            found.push(source.problem("trailing-spaces", "trailing spaces", offset + bare.len()));
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
            // A file of one empty line is none.
            if is_last && blank > most && !(is_start && is_end && text == "\n") {
                found.push(source.problem(
                    "empty-lines",
                    format!("too many blank lines ({blank} > {most})"),
                    offset,
                ));
            }
        } else {
            blank = 0;
            is_start = false;
        }
        offset = next;
    }
    found
}

#[cfg(test)]
mod tests;
