//! Builds the tree from the events of the parser, with the rules and limits of go-yaml v2.

use std::collections::HashMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use libyaml_safer::{Event, EventData, MappingStyle, Mark, Parser, ScalarStyle, SequenceStyle};

use super::input::{Input, Pieces, prepare, without_added_line_end};
use super::mapping::{Duplicate, MappingBuilder};
use super::resolve::{Scalar, resolve_plain, resolve_tagged};
use super::{Error, MAX_DEPTH, MAX_DOCUMENT_BYTES, MAX_NODES, Node, Position, Style, Value, block, json, tags};

/// One document and the errors that a strict reader would report.
#[derive(Debug, Clone)]
pub struct Document {
    /// The tree. Null for a document without content.
    pub root: Node,
    /// Duplicate keys, in source order.
    pub duplicates: Vec<Duplicate>,
}

/// Reads the first document of a stream, as `sigs.k8s.io/yaml` does. Ignores everything after a second `---`.
///
/// # Errors
///
/// [`Error::Yaml`] where go-yaml has an error, [`Error::Limit`] where the document exceeds [`super::MAX_DEPTH`],
/// [`super::MAX_NODES`] or [`super::MAX_DOCUMENT_BYTES`].
pub fn parse(bytes: &[u8]) -> Result<Node, Error> {
    Ok(parse_document(bytes)?.root)
}

/// As [`parse`], with notes about duplicate keys.
///
/// # Errors
///
/// As [`parse`].
pub fn parse_document(bytes: &[u8]) -> Result<Document, Error> {
    parse_part(bytes, 0)
}

/// Reads a document that starts `lines_before` lines into its file.
pub(super) fn parse_part(bytes: &[u8], lines_before: u32) -> Result<Document, Error> {
    let input = prepare(bytes).map_err(|error| shift_lines(error, lines_before))?;
    // A block scalar at the end of a document would change if its line end was added.
    let quick = (!input.line_end_added).then(|| block::nodes::read(&input.text, lines_before));
    match quick.flatten() {
        Some(root) => Ok(Document {
            root,
            duplicates: Vec::new(),
        }),
        None => parse_fully(&input, lines_before),
    }
}

/// Reads a document with the event parser, which supports all of YAML.
pub(super) fn parse_fully(input: &Input<'_>, lines_before: u32) -> Result<Document, Error> {
    tags::check(&input.text).map_err(|error| shift_lines(error, lines_before))?;
    compose(input, lines_before)
}

/// Builds the tree. The event parser is a third-party crate and panics on some inputs. A panic must not end a server,
/// or a run over many files.
pub(super) fn compose(input: &Input<'_>, lines_before: u32) -> Result<Document, Error> {
    let composed = catch_unwind(AssertUnwindSafe(|| Composer::new(input, lines_before).run()));
    composed.unwrap_or_else(|_| Err(Error::without_line("the parser failed on this text", None)))
}

fn shift_lines(mut error: Error, lines: u32) -> Error {
    if let Error::Yaml {
        position: Some(position),
        ..
    }
    | Error::Limit {
        position: Some(position),
        ..
    } = &mut error
        && lines > 0
    {
        position.line = position.line.saturating_add(lines);
    }
    error
}

/// A collection that is being read.
struct Frame {
    content: Content,
    start: Position,
    end: Position,
    style: Style,
    anchor: Option<String>,
    /// Value of [`Composer::decoded`] when this collection began.
    decoded_before: u64,
}

enum Content {
    Sequence(Vec<Node>),
    Mapping(MappingBuilder),
}

/// The target of an anchor.
enum Anchor {
    /// Its node is still being read, so an alias to it would contain itself.
    Open,
    /// Its node, the number of decoding steps in go-yaml, and the bytes of its strings.
    Done(Node, u64, usize),
}

struct Composer<'a> {
    parser: Parser<Pieces<'a>>,
    input: &'a Input<'a>,
    lines_before: u32,
    frames: Vec<Frame>,
    anchors: HashMap<String, Anchor>,
    root: Option<Node>,
    duplicates: Vec<Duplicate>,
    /// go-yaml reads the whole document before it resolves aliases, tags and merges, so such an error is reported only
    /// if the rest is valid.
    waiting: Option<Error>,
    nodes: usize,
    /// Bytes of strings copied by anchors and aliases: go-yaml shares them, our tree does not.
    copied: usize,
    /// Steps of go-yaml's decoder so far, and those of them that aliases cause.
    decoded: u64,
    decoded_in_aliases: u64,
}

impl<'a> Composer<'a> {
    fn new(input: &'a Input<'a>, lines_before: u32) -> Self {
        let mut parser = Parser::new();
        parser.set_encoding(libyaml_safer::Encoding::Utf8);
        parser.set_input(Pieces::new(&input.text));
        Self {
            parser,
            input,
            lines_before,
            frames: Vec::new(),
            anchors: HashMap::new(),
            root: None,
            duplicates: Vec::new(),
            waiting: None,
            nodes: 0,
            copied: 0,
            decoded: 1,
            decoded_in_aliases: 0,
        }
    }

    fn run(mut self) -> Result<Document, Error> {
        loop {
            let event = self
                .parser
                .parse()
                .map_err(|error| syntax_error(&error, self.lines_before))?;
            let start = position(event.start_mark, self.lines_before);
            let end = position(event.end_mark, self.lines_before);
            let source = offset(event.start_mark)..offset(event.end_mark);
            match event.data {
                EventData::StreamStart { .. } => {}
                EventData::DocumentStart {
                    version_directive: Some(version),
                    ..
                } if (version.major, version.minor) != (1, 1) => {
                    let line = start.line.saturating_sub(self.lines_before + 1);
                    return Err(Error::Yaml {
                        problem: "found incompatible YAML document".to_owned(),
                        line: (line > 0).then_some(line),
                        position: Some(start),
                    });
                }
                EventData::DocumentStart { .. } => {}
                EventData::DocumentEnd { .. } | EventData::StreamEnd => return self.finish(),
                _ => self.node_event(event, source, start, end)?,
            }
        }
    }

    /// Evens out where the event parser and go-yaml differ in scalars.
    fn as_go_yaml_reads(
        &self,
        value: String,
        style: ScalarStyle,
        source: Range<usize>,
        start: Position,
    ) -> Result<String, Error> {
        let text = &self.input.text;
        let last = self.input.line_end_added && text.get(source.end..).is_none_or(|rest| rest.trim().is_empty());
        let source = text.get(source).unwrap_or_default();
        let refused = |problem: &str| {
            let line = start.line.saturating_sub(self.lines_before);
            Err(Error::Yaml {
                problem: problem.to_owned(),
                line: (line > 1).then_some(line),
                position: Some(start),
            })
        };
        match style {
            ScalarStyle::DoubleQuoted if has_slash_escape(source) => refused("found unknown escape character"),
            ScalarStyle::Plain if self.in_flow() && source.contains('?') => refused("did not find expected ',' or ']'"),
            ScalarStyle::Literal | ScalarStyle::Folded if last => Ok(without_added_line_end(&value, text).to_owned()),
            _ => Ok(value),
        }
    }

    fn in_flow(&self) -> bool {
        self.frames.last().is_some_and(|frame| frame.style == Style::Flow)
    }

    fn finish(self) -> Result<Document, Error> {
        if let Some(error) = self.waiting {
            return Err(error);
        }
        let origin = Position { line: 1, column: 1 };
        let root = self
            .root
            .unwrap_or_else(|| Node::new(Value::Null, origin, origin, Style::Plain));
        Ok(Document {
            root,
            duplicates: self.duplicates,
        })
    }

    fn node_event(&mut self, event: Event, source: Range<usize>, start: Position, end: Position) -> Result<(), Error> {
        match event.data {
            EventData::Alias { anchor } => self.alias(&anchor, start, end),
            EventData::Scalar {
                anchor,
                tag,
                value,
                plain_implicit,
                style,
                ..
            } => {
                let value = self.as_go_yaml_reads(value, style, source, start)?;
                self.scalar(anchor, tag.as_deref(), value, plain_implicit, style, (start, end))
            }
            EventData::SequenceStart { anchor, style, .. } => {
                let style = if style == SequenceStyle::Flow {
                    Style::Flow
                } else {
                    Style::Plain
                };
                self.open(Content::Sequence(Vec::new()), anchor, style, start)
            }
            EventData::MappingStart { anchor, style, .. } => {
                let style = if style == MappingStyle::Flow {
                    Style::Flow
                } else {
                    Style::Plain
                };
                self.open(Content::Mapping(MappingBuilder::default()), anchor, style, start)
            }
            EventData::SequenceEnd | EventData::MappingEnd => self.close(end),
            _ => Ok(()),
        }
    }

    fn open(&mut self, content: Content, anchor: Option<String>, style: Style, start: Position) -> Result<(), Error> {
        if self.frames.len() >= MAX_DEPTH {
            return Err(limit(format!("exceeded max depth of {MAX_DEPTH}"), start));
        }
        let decoded_before = self.decoded;
        self.step();
        if let Some(name) = &anchor {
            self.anchors.insert(name.clone(), Anchor::Open);
        }
        self.frames.push(Frame {
            content,
            start,
            end: start,
            style,
            anchor,
            decoded_before,
        });
        Ok(())
    }

    fn close(&mut self, end: Position) -> Result<(), Error> {
        let Some(frame) = self.frames.pop() else { return Ok(()) };
        let value = match frame.content {
            Content::Sequence(mut items) => {
                items.shrink_to_fit();
                Value::Sequence(items)
            }
            Content::Mapping(builder) => Value::Mapping(builder.finish()),
        };
        let end = if frame.style == Style::Flow { end } else { frame.end };
        let node = Node::new(value, frame.start, end, frame.style);
        let steps = self.decoded - frame.decoded_before;
        self.anchor(frame.anchor, &node, steps)?;
        self.place(node, false)
    }

    fn scalar(
        &mut self,
        anchor: Option<String>,
        tag: Option<&str>,
        text: String,
        plain: bool,
        style: ScalarStyle,
        (start, end): (Position, Position),
    ) -> Result<(), Error> {
        if text == "<<" && (plain || tag == Some("tag:yaml.org,2002:merge")) && self.merge_key() {
            return Ok(());
        }
        let resolved = match tag {
            None if plain => Ok(resolve_plain(&text).1),
            None => Ok(Scalar::Text),
            Some(tag) => resolve_tagged(tag, &text),
        };
        let style = scalar_style(style);
        let node = match resolved {
            Ok(Scalar::Text) => Node::new(Value::String(text), start, end, style),
            Ok(Scalar::Value(value)) if text.is_empty() => Node::new(value, start, end, style),
            Ok(Scalar::Value(value)) => Node::new(value, start, end, style).spelled(&text),
            Err(problem) => {
                self.defer(Error::without_line(problem, Some(start)));
                Node::new(Value::Null, start, end, style)
            }
        };
        self.step();
        self.anchor(anchor, &node, 1)?;
        self.place(node, false)
    }

    /// Takes `<<` as a merge if a key is expected here.
    fn merge_key(&mut self) -> bool {
        match self.frames.last_mut() {
            Some(Frame {
                content: Content::Mapping(builder),
                ..
            }) if !builder.awaits_value() => {
                builder.merge_key();
                true
            }
            _ => false,
        }
    }

    fn alias(&mut self, name: &str, start: Position, end: Position) -> Result<(), Error> {
        self.step();
        let mut node = match self.anchors.get(name) {
            None => {
                return Err(Error::without_line(
                    format!("unknown anchor '{name}' referenced"),
                    Some(start),
                ));
            }
            Some(Anchor::Open) => {
                self.defer(Error::without_line(
                    format!("anchor '{name}' value contains itself"),
                    Some(start),
                ));
                Node::new(Value::Null, start, end, Style::Plain)
            }
            Some(Anchor::Done(node, steps, bytes)) => {
                self.decoded = self.decoded.saturating_add(*steps);
                self.decoded_in_aliases = self.decoded_in_aliases.saturating_add(*steps);
                if too_many_aliases(self.decoded, self.decoded_in_aliases) {
                    return Err(Error::without_line("document contains excessive aliasing", Some(start)));
                }
                let size = usize::try_from(*steps).unwrap_or(usize::MAX);
                self.nodes = self.nodes.saturating_add(size);
                if self.nodes > MAX_NODES {
                    return Err(too_many_nodes(start));
                }
                self.copied = copied(self.copied, *bytes, start)?;
                node.clone()
            }
        };
        (node.start, node.end) = (start, end);
        self.place(node, true)
    }

    /// Remembers a finished node under its anchor.
    fn anchor(&mut self, name: Option<String>, node: &Node, steps: u64) -> Result<(), Error> {
        let Some(name) = name else { return Ok(()) };
        self.nodes = self.nodes.saturating_add(usize::try_from(steps).unwrap_or(usize::MAX));
        if self.nodes > MAX_NODES {
            return Err(too_many_nodes(node.start));
        }
        let bytes = node.text_bytes();
        self.copied = copied(self.copied, bytes, node.start)?;
        self.anchors.insert(name, Anchor::Done(node.clone(), steps, bytes));
        Ok(())
    }

    /// Puts a finished node where it belongs.
    fn place(&mut self, node: Node, aliased: bool) -> Result<(), Error> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(too_many_nodes(node.start));
        }
        let Some(frame) = self.frames.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        frame.end = node.end;
        match &mut frame.content {
            Content::Sequence(items) => items.push(node),
            Content::Mapping(builder) if builder.awaits_value() => {
                if let Err(error) = builder.value(node, aliased, &mut self.duplicates) {
                    self.defer(error);
                }
            }
            Content::Mapping(builder) => {
                let place = node.start;
                let refused =
                    matches!(node.value, Value::Sequence(_) | Value::Mapping(_)).then(|| json::go_syntax(&node));
                builder.key(node);
                if let Some(text) = refused {
                    self.defer(Error::without_line(format!("invalid map key: {text}"), Some(place)));
                }
            }
        }
        Ok(())
    }

    fn step(&mut self) {
        self.decoded = self.decoded.saturating_add(1);
    }

    fn defer(&mut self, error: Error) {
        self.waiting.get_or_insert(error);
    }
}

/// go-yaml's protection against alias bombs: the larger a document, the smaller the allowed share of aliases, from 99 %
/// below 400,000 steps down to 10 % from 4,000,000 on.
fn too_many_aliases(decoded: u64, in_aliases: u64) -> bool {
    const LOW: f64 = 400_000.0;
    const HIGH: f64 = 4_000_000.0;
    if in_aliases <= 100 || decoded <= 1000 {
        return false;
    }
    #[expect(clippy::cast_precision_loss, reason = "counts of steps stay far below 2^52")]
    let (decoded, in_aliases) = (decoded as f64, in_aliases as f64);
    let allowed = 0.99 - 0.89 * ((decoded - LOW) / (HIGH - LOW)).clamp(0.0, 1.0);
    in_aliases / decoded > allowed
}

/// Returns true if a double-quoted scalar uses `\/`, which YAML 1.1 does not have.
fn has_slash_escape(source: &str) -> bool {
    let mut bytes = source.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'\\' && bytes.next() == Some(b'/') {
            return true;
        }
    }
    false
}

fn limit(problem: String, place: Position) -> Error {
    Error::Limit {
        problem,
        position: Some(place),
    }
}

/// The bytes that are copied once these are too.
fn copied(before: usize, bytes: usize, place: Position) -> Result<usize, Error> {
    let sum = before.saturating_add(bytes);
    if sum > MAX_DOCUMENT_BYTES {
        let most = MAX_DOCUMENT_BYTES >> 20;
        return Err(limit(
            format!("anchors and aliases repeat more than {most} MiB of text"),
            place,
        ));
    }
    Ok(sum)
}

fn too_many_nodes(place: Position) -> Error {
    limit(format!("document has more than {MAX_NODES} nodes"), place)
}

pub(super) fn scalar_style(style: ScalarStyle) -> Style {
    match style {
        ScalarStyle::SingleQuoted => Style::SingleQuoted,
        ScalarStyle::DoubleQuoted => Style::DoubleQuoted,
        ScalarStyle::Literal => Style::Literal,
        ScalarStyle::Folded => Style::Folded,
        _ => Style::Plain,
    }
}

pub(super) fn offset(mark: Mark) -> usize {
    usize::try_from(mark.index).unwrap_or(usize::MAX)
}

pub(super) fn position(mark: Mark, lines_before: u32) -> Position {
    let count = |from_zero: u64| u32::try_from(from_zero).unwrap_or(u32::MAX).saturating_add(1);
    Position {
        line: count(mark.line).saturating_add(lines_before),
        column: count(mark.column),
    }
}

/// go-yaml prints the correct line of scanner errors, a line one too low for parser errors, and no line if that is 0.
pub(super) fn syntax_error(error: &libyaml_safer::Error, lines_before: u32) -> Error {
    let line_of = |mark: Option<Mark>| {
        mark.map(|mark| u32::try_from(mark.line).unwrap_or(u32::MAX))
            .unwrap_or(0)
    };
    let problem_line = line_of(error.problem_mark());
    let line = if problem_line == 0 {
        line_of(error.context_mark())
    } else if error.kind() == libyaml_safer::ErrorKind::Scanner {
        problem_line.saturating_add(1)
    } else {
        problem_line
    };
    // A string that is never closed is an error at its start, not at the end of the file.
    let never_closed = error.problem().contains("unexpected end of stream");
    let mark = error
        .context_mark()
        .filter(|_| never_closed)
        .or_else(|| error.problem_mark());
    Error::Yaml {
        problem: error.problem().to_owned(),
        line: (line != 0).then_some(line),
        position: mark.map(|mark| position(mark, lines_before)),
    }
}
