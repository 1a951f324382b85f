//! The events of a YAML stream, for readers that interpret scalars themselves.

use std::panic::{AssertUnwindSafe, catch_unwind};

use libyaml_safer::{EventData, Parser, ScalarStyle};

use super::compose::{offset, position, scalar_style, syntax_error};
use super::input::{Pieces, prepare, without_added_line_end};
use super::{Error, MAX_DEPTH, MAX_NODES, Position, Style, tags};

/// One event with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The kind of event.
    pub data: EventKind,
    /// Where it starts.
    pub start: Position,
    /// Its bytes in the text.
    pub source: std::ops::Range<usize>,
}

/// Kinds of events.
#[derive(Debug, Clone, PartialEq)]
pub enum EventKind {
    /// A document begins.
    DocumentStart,
    /// A document ends.
    DocumentEnd,
    /// `*name`.
    Alias(String),
    /// A scalar.
    Scalar {
        /// `&name`.
        anchor: Option<String>,
        /// The tag with its prefix resolved.
        tag: Option<String>,
        /// The text, escapes and folding resolved.
        text: String,
        /// How it is written.
        style: Style,
    },
    /// A list or a mapping begins.
    Start {
        /// True if it is a mapping.
        mapping: bool,
        /// `&name`.
        anchor: Option<String>,
        /// The tag with its prefix resolved.
        tag: Option<String>,
    },
    /// The list or mapping that began last ends.
    End,
}

/// Reads all events of a text with any number of documents.
///
/// # Errors
///
/// [`Error::Yaml`] where libyaml has an error, [`Error::Limit`] for a text above [`super::MAX_DOCUMENT_BYTES`], deeper than
/// [`MAX_DEPTH`], or with more than twice [`MAX_NODES`] events in all its documents: they are held together.
pub fn events(bytes: &[u8]) -> Result<Vec<Event>, Error> {
    let input = prepare(bytes)?;
    tags::check(&input.text)?;
    let read = catch_unwind(AssertUnwindSafe(|| all(&input.text, input.line_end_added)));
    read.unwrap_or_else(|_| Err(Error::without_line("the parser failed on this text", None)))
}

fn all(text: &str, line_end_added: bool) -> Result<Vec<Event>, Error> {
    let mut parser = Parser::new();
    parser.set_encoding(libyaml_safer::Encoding::Utf8);
    parser.set_input(Pieces::new(text));
    let mut events = Vec::new();
    let mut depth = 0_usize;
    loop {
        let event = parser.parse().map_err(|error| syntax_error(&error, 0))?;
        let start = position(event.start_mark, 0);
        let source = offset(event.start_mark)..offset(event.end_mark);
        // The parser scans each open list for each token.
        match event.data {
            EventData::SequenceStart { .. } | EventData::MappingStart { .. } => depth += 1,
            EventData::SequenceEnd | EventData::MappingEnd => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            let problem = format!("exceeded max depth of {MAX_DEPTH}");
            return Err(Error::Limit {
                problem,
                position: Some(start),
            });
        }
        let data = match event.data {
            EventData::StreamStart { .. } => continue,
            EventData::StreamEnd => return Ok(events),
            EventData::DocumentStart { .. } => EventKind::DocumentStart,
            EventData::DocumentEnd { .. } => EventKind::DocumentEnd,
            EventData::Alias { anchor } => EventKind::Alias(anchor),
            EventData::Scalar {
                anchor,
                tag,
                value,
                style,
                ..
            } => {
                let is_last = line_end_added && text.get(source.end..).is_none_or(|rest| rest.trim().is_empty());
                let text = match style {
                    ScalarStyle::Literal | ScalarStyle::Folded if is_last => {
                        without_added_line_end(&value, text).to_owned()
                    }
                    _ => value,
                };
                let style = scalar_style(style);
                EventKind::Scalar {
                    anchor,
                    tag,
                    text,
                    style,
                }
            }
            EventData::SequenceStart { anchor, tag, .. } => EventKind::Start {
                mapping: false,
                anchor,
                tag,
            },
            EventData::MappingStart { anchor, tag, .. } => EventKind::Start {
                mapping: true,
                anchor,
                tag,
            },
            EventData::SequenceEnd | EventData::MappingEnd => EventKind::End,
        };
        if events.len() >= 2 * MAX_NODES {
            let problem = format!("the documents have more than {MAX_NODES} values");
            return Err(Error::Limit {
                problem,
                position: Some(start),
            });
        }
        events.push(Event { data, start, source });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_bounded_over_all_documents() {
        let many = "---\n".repeat(MAX_NODES);
        assert!(matches!(events(many.as_bytes()), Err(Error::Limit { .. })));
    }

    /// The error comes at the first level that is too deep, wherever the text ends.
    #[test]
    fn nesting_is_bounded_where_it_exceeds_the_limit() {
        for unit in ["[", "{a: ", "- ", "[{a: "] {
            let text = unit.repeat(200_000);
            let Err(Error::Limit { position: Some(at), .. }) = events(text.as_bytes()) else {
                panic!("{unit}");
            };
            assert!((at.column as usize) <= unit.len() * (MAX_DEPTH + 1), "{unit}: {at:?}");
        }
        let fine = format!("{}{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
        assert!(events(fine.as_bytes()).is_ok());
    }

    #[test]
    fn tags_anchors_and_aliases_are_kept() {
        let events = events(b"a: &x !!str 5\n--- # second\n[*x]\n").expect("sound");
        let scalars: Vec<_> = events
            .iter()
            .filter_map(|event| match &event.data {
                EventKind::Scalar { anchor, tag, text, .. } => Some((anchor.as_deref(), tag.as_deref(), text.as_str())),
                _ => None,
            })
            .collect();
        assert_eq!(
            scalars,
            [(None, None, "a"), (Some("x"), Some("tag:yaml.org,2002:str"), "5")]
        );
        assert!(
            events
                .iter()
                .any(|event| event.data == EventKind::Alias("x".to_owned()) && event.start.line == 3)
        );
    }

    #[test]
    fn documents_that_libyaml_rejects_are_errors() {
        assert!(events(b"a: b: c\n").is_err());
        assert!(events(b"[!!str, a]\n").is_err());
    }
}
