//! Findings as text: message, position, the source line with a caret, the fix.

use std::io::{self, Write};
use std::path::Path;

use annotate_snippets::{AnnotationKind, Group, Level, Message, Renderer, Snippet};

use super::excerpt::{Source, Sources};
use super::{Finding, Report, Severity};
use olmkit_base::object::UntrustedText;
use olmkit_yaml::Position;

/// Maximum length of a completely shown source line if the screen width is unknown. Embedded JSON makes lines of many
/// kilobytes.
const LONGEST_LINE: usize = 160;
/// Columns before a source line: its number and the margin.
const MARGIN: usize = 9;

/// Options for text output.
#[derive(Debug, Clone, Copy, Default)]
pub struct TextOptions {
    /// True if source lines are omitted.
    pub short: bool,
    /// True if colours are used. [`anstream::stdout`] removes them if the output is not a terminal.
    pub color: bool,
    /// Columns of the terminal, if there is one: source lines are cut to fit.
    pub width: Option<usize>,
}

/// Writes every finding with its position, its source line, and its hint. The lines are read from the files of the
/// findings. If that is not possible they are omitted.
///
/// # Errors
///
/// The writer's error.
pub fn write_text(report: &Report, options: TextOptions, out: &mut dyn Write) -> io::Result<()> {
    let report = &*report.shown();
    let renderer = if options.color {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    let longest = options.width.map_or(LONGEST_LINE, |width| {
        width.saturating_sub(MARGIN).clamp(40, LONGEST_LINE)
    });
    let mut sources = Sources::default();
    for finding in &report.findings {
        let source = finding
            .file
            .as_deref()
            .filter(|_| !options.short && finding.position.is_some())
            .and_then(|file| sources.get(file));
        writeln!(out, "{}", render(finding, source, longest, &renderer))?;
        if !options.short {
            writeln!(out)?;
        }
    }
    Ok(())
}

fn render(finding: &Finding, source: Option<&mut Source>, longest: usize, renderer: &Renderer) -> String {
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Info => Level::INFO,
    };
    let message = UntrustedText::lines(&finding.message).to_string();
    let title = level.primary_title(&message).id(finding.rule);
    let path = finding.file.as_deref().map(shown_path);
    let excerpt = source
        .zip(finding.position)
        .and_then(|(source, position)| source.excerpt(position, finding.end, longest));
    let place = place(finding);
    let hint = finding
        .hint
        .as_deref()
        .map(|hint| UntrustedText::lines(hint).to_string());
    let mut group = Group::with_title(title);
    let mut notes = Vec::new();
    if let Some(excerpt) = &excerpt {
        let mark = AnnotationKind::Primary.span(excerpt.start..excerpt.end);
        let mut snippet = Snippet::source(excerpt.line.as_str())
            .line_start(excerpt.number)
            .annotation(mark);
        // The renderer counts columns in its input. In a cut line they would be wrong.
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

/// Names a position without a source line, or with a part of one.
fn at(path: &str, position: Option<Position>) -> Message<'static> {
    let position = position.map(|position| format!(":{position}")).unwrap_or_default();
    Level::NOTE.with_name("at").message(format!("{path}{position}"))
}

fn place(finding: &Finding) -> Option<String> {
    let shown = |text: &String| UntrustedText::new(text).to_string();
    match (&finding.object, &finding.path) {
        (Some(object), Some(path)) => Some(format!("{}, {}", shown(object), shown(path))),
        (Some(text), None) | (None, Some(text)) => Some(shown(text)),
        (None, None) => None,
    }
}

/// File names are untrusted too.
fn shown_path(path: &Path) -> String {
    UntrustedText::new(&path.to_string_lossy()).to_string()
}
