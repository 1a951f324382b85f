//! Findings for people: message, place, the source line with a caret, the way out.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use annotate_snippets::{AnnotationKind, Group, Level, Message, Renderer, Snippet};

use super::{Finding, Report, Severity};
use crate::yaml::Position;

/// Longest source line that is shown whole where nothing is known of the reader's screen. Embedded JSON makes lines of many kilobytes.
const LONGEST_LINE: usize = 160;
/// Columns that stand before a source line: its number and the margin.
const MARGIN: usize = 9;

/// How findings are shown to people.
#[derive(Debug, Clone, Copy, Default)]
pub struct TextOptions {
    /// Whether source lines are left out.
    pub short: bool,
    /// Whether colours are used. [`anstream::stdout`] takes them away where the output is no terminal.
    pub color: bool,
    /// Columns of the terminal, if there is one: source lines are cut to fit.
    pub width: Option<usize>,
}

/// Where source lines come from, by the path in [`Finding::file`].
type Sources = HashMap<PathBuf, Option<String>>;

/// Writes every finding with its place, the source line it points at, and its hint. The lines are read from the files
/// that the findings name; where that is not possible they are left out.
///
/// # Errors
///
/// What the writer gives.
pub fn write_text(report: &Report, options: TextOptions, out: &mut dyn Write) -> io::Result<()> {
    let renderer = if options.color {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    let longest = options.width.map_or(LONGEST_LINE, |width| {
        width.saturating_sub(MARGIN).clamp(40, LONGEST_LINE)
    });
    let mut sources = Sources::new();
    for finding in &report.findings {
        let source = finding
            .file
            .as_deref()
            .filter(|_| !options.short)
            .and_then(|file| read(file, &mut sources));
        writeln!(out, "{}", render(finding, source, longest, &renderer))?;
        if !options.short {
            writeln!(out)?;
        }
    }
    Ok(())
}

fn read<'s>(file: &Path, sources: &'s mut Sources) -> Option<&'s str> {
    let known = sources.entry(file.to_owned());
    known
        .or_insert_with(|| {
            std::fs::read(file)
                .ok()
                .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        })
        .as_deref()
}

fn render(finding: &Finding, source: Option<&str>, longest: usize, renderer: &Renderer) -> String {
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Info => Level::NOTE,
    };
    let message = printable(&finding.message);
    let title = level.primary_title(&message).id(finding.rule);
    let path = finding.file.as_ref().map(|file| file.display().to_string());
    let excerpt = source
        .zip(finding.position)
        .and_then(|(text, position)| Excerpt::of(text, position, finding.end, longest));
    let place = place(finding);
    let hint = finding.hint.as_deref().map(printable);
    let mut group = Group::with_title(title);
    let mut notes = Vec::new();
    if let Some(excerpt) = &excerpt {
        let mark = AnnotationKind::Primary.span(excerpt.start..excerpt.end);
        let mut snippet = Snippet::source(excerpt.line.as_str())
            .line_start(excerpt.number)
            .annotation(mark);
        // The renderer counts columns in what it is given; in the middle of a line they would be wrong.
        match &path {
            Some(path) if excerpt.is_cut => notes.push(at(path, finding.position)),
            Some(path) => snippet = snippet.path(path.as_str()),
            None => {}
        }
        group = group.element(snippet);
    } else if let Some(path) = &path {
        notes.push(at(path, finding.position));
    }
    notes.extend(place.map(|place| Level::NOTE.with_name("in").message(place)));
    notes.extend(hint.map(|hint| Level::HELP.message(hint)));
    renderer.render(&[group.elements(notes)])
}

/// Names a place that no source line is shown for, or only a part of one.
fn at(path: &str, position: Option<Position>) -> Message<'static> {
    let position = position.map(|position| format!(":{position}")).unwrap_or_default();
    Level::NOTE.with_name("at").message(format!("{path}{position}"))
}

fn place(finding: &Finding) -> Option<String> {
    match (&finding.object, &finding.path) {
        (Some(object), Some(path)) => Some(format!("{object}, {path}")),
        (Some(text), None) | (None, Some(text)) => Some(text.clone()),
        (None, None) => None,
    }
}

/// Text of an untrusted file must not reach a terminal with its control characters.
fn printable(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_control() && c != '\n' {
                char::REPLACEMENT_CHARACTER
            } else {
                c
            }
        })
        .collect()
}

/// One line of source with the part that a finding points at.
struct Excerpt {
    line: String,
    number: usize,
    /// Byte offsets within the line.
    start: usize,
    end: usize,
    /// Whether the beginning of the line is left out.
    is_cut: bool,
}

impl Excerpt {
    fn of(text: &str, start: Position, end: Option<Position>, longest: usize) -> Option<Self> {
        let number = usize::try_from(start.line).ok()?;
        let line: Vec<char> = text.lines().nth(number.checked_sub(1)?)?.chars().collect();
        let first = usize::try_from(start.column).ok()?.checked_sub(1)?.min(line.len());
        let last = match end {
            Some(end) if end.line == start.line => usize::try_from(end.column).ok()?.saturating_sub(1),
            Some(_) => line.len(),
            None => first + 1,
        };
        let last = last.clamp(first, line.len().max(first));
        Some(Self::cut(&line, number, first, last, longest))
    }

    /// Cuts a long line down to the surroundings of the marked part.
    fn cut(line: &[char], number: usize, first: usize, last: usize, longest: usize) -> Self {
        let from = if line.len() > longest {
            first.saturating_sub(longest / 4)
        } else {
            0
        };
        let to = line.len().min(from + longest);
        let part = |from: usize, to: usize| -> String {
            let shown = line.get(from..to.max(from)).unwrap_or_default().iter();
            shown.map(|c| if c.is_control() { ' ' } else { *c }).collect()
        };
        let (before, marked) = (part(from, first.min(to)), part(first.min(to), last.min(to)));
        let after = part(last.min(to), to);
        let (start, end) = (before.len(), before.len() + marked.len());
        Self {
            line: format!("{before}{marked}{after}"),
            number,
            start,
            end,
            is_cut: from > 0,
        }
    }
}
