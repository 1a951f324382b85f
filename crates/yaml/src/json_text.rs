//! Reads one JSON value out of a stream into the tree.
//!
//! serde_json decides what is JSON and where a value ends. This module only finds the positions of its parts. JSON is
//! not read through the YAML parser because it is not quite YAML: escapes such as `\/`, surrogate pairs, long keys.

use serde::de::IgnoredAny;

use super::{Error, MAX_DEPTH, MAX_NODES, Node, Position, Style, Value};

/// The first character of a document, which decides between JSON and YAML.
pub(super) enum First {
    /// A value, and the offset of the byte after it.
    Value(Node, usize),
    /// Nothing but white space.
    End,
}

/// Reads the JSON value at the start of `text`, which starts at `origin` in its file.
pub(super) fn first_value(text: &str, origin: Position) -> Result<First, Error> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    match stream.next() {
        None => Ok(First::End),
        Some(Ok(_)) => {
            let end = stream.byte_offset();
            let mut walk = Walk {
                text,
                at: 0,
                place: origin,
                nodes: 0,
            };
            let node = walk.value(0)?;
            Ok(First::Value(node, end))
        }
        Some(Err(error)) => Err(json_error(&error, origin)),
    }
}

fn json_error(error: &serde_json::Error, origin: Position) -> Error {
    let problem = error.to_string();
    let problem = problem
        .rsplit_once(" at line ")
        .map_or(problem.as_str(), |(text, _)| text);
    let line = u32::try_from(error.line()).unwrap_or(u32::MAX);
    let column = u32::try_from(error.column()).unwrap_or(u32::MAX).max(1);
    let position = if line <= 1 {
        Position {
            line: origin.line,
            column: origin.column.saturating_add(column).saturating_sub(1),
        }
    } else {
        Position {
            line: origin.line.saturating_add(line).saturating_sub(1),
            column,
        }
    };
    let problem = if error.is_eof() {
        "unexpected EOF".to_owned()
    } else {
        format!("json: {problem}")
    };
    Error::Json {
        problem,
        position: Some(position),
    }
}

/// Walks over text that serde_json has found to be valid.
struct Walk<'a> {
    text: &'a str,
    at: usize,
    place: Position,
    nodes: usize,
}

impl Walk<'_> {
    fn value(&mut self, depth: usize) -> Result<Node, Error> {
        self.skip_white_space();
        self.nodes += 1;
        if depth > MAX_DEPTH || self.nodes > MAX_NODES {
            let problem = if depth > MAX_DEPTH {
                format!("exceeded max depth of {MAX_DEPTH}")
            } else {
                format!("document has more than {MAX_NODES} nodes")
            };
            return Err(Error::Limit {
                problem,
                position: Some(self.place),
            });
        }
        let start = self.place;
        let (value, style, spelling) = match self.peek() {
            Some(b'{') => (self.object(depth)?, Style::Flow, None),
            Some(b'[') => (self.array(depth)?, Style::Flow, None),
            Some(b'"') => (Value::String(self.string()), Style::DoubleQuoted, None),
            _ => {
                let word = self.word();
                (scalar(word), Style::Plain, Some(word.to_owned()))
            }
        };
        let node = Node::new(value, start, self.place, style);
        Ok(match spelling {
            Some(spelling) => node.spelled(&spelling),
            None => node,
        })
    }

    fn object(&mut self, depth: usize) -> Result<Value, Error> {
        let mut entries = super::mapping::MappingBuilder::default();
        self.step();
        while !self.closes(b'}') {
            let start = self.place;
            let key = Value::String(self.string());
            entries.key(Node::new(key, start, self.place, Style::DoubleQuoted));
            self.skip_white_space();
            self.step();
            let value = self.value(depth + 1)?;
            entries.value(value, false, &mut Vec::new())?;
        }
        Ok(Value::Mapping(entries.finish()))
    }

    fn array(&mut self, depth: usize) -> Result<Value, Error> {
        let mut items = Vec::new();
        self.step();
        while !self.closes(b']') {
            items.push(self.value(depth + 1)?);
        }
        Ok(Value::Sequence(items))
    }

    /// Skips white space and commas; whether the collection ends here (or the text does).
    fn closes(&mut self, bracket: u8) -> bool {
        self.skip_white_space();
        if self.peek() == Some(b',') {
            self.step();
            self.skip_white_space();
        }
        match self.peek() {
            Some(byte) if byte == bracket => {
                self.step();
                true
            }
            Some(_) => false,
            None => true,
        }
    }

    /// A string with its escapes resolved. Half a surrogate pair becomes U+FFFD, as in Go.
    fn string(&mut self) -> String {
        self.step();
        let mut text = String::new();
        while let Some(character) = self.next() {
            match character {
                '"' => break,
                '\\' => self.escape(&mut text),
                other => text.push(other),
            }
        }
        text
    }

    fn escape(&mut self, text: &mut String) {
        match self.next() {
            Some('b') => text.push('\u{8}'),
            Some('f') => text.push('\u{c}'),
            Some('n') => text.push('\n'),
            Some('r') => text.push('\r'),
            Some('t') => text.push('\t'),
            Some('u') => {
                let unit = self.hex();
                let low = matches!(unit, 0xd800..=0xdbff).then(|| self.low_surrogate()).flatten();
                let units = std::iter::once(unit).chain(low);
                text.extend(char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)));
            }
            Some(other) => text.push(other),
            None => {}
        }
    }

    fn low_surrogate(&mut self) -> Option<u16> {
        let rest = self.text.get(self.at..)?.strip_prefix("\\u")?;
        let unit = u16::from_str_radix(rest.get(..4)?, 16).ok()?;
        matches!(unit, 0xdc00..=0xdfff).then(|| {
            self.step();
            self.step();
            self.hex()
        })
    }

    fn hex(&mut self) -> u16 {
        (0..4).fold(0, |unit, _| {
            let digit = self.next().and_then(|character| character.to_digit(16)).unwrap_or(0);
            (unit << 4) | u16::try_from(digit).unwrap_or(0)
        })
    }

    /// A number, `true`, `false` or `null`.
    fn word(&mut self) -> &str {
        let start = self.at;
        while self
            .peek()
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
        {
            self.step();
        }
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn skip_white_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.step();
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn step(&mut self) {
        self.next();
    }

    fn next(&mut self) -> Option<char> {
        let character = self.text.get(self.at..)?.chars().next()?;
        self.at += character.len_utf8();
        if character == '\n' {
            self.place = Position {
                line: self.place.line.saturating_add(1),
                column: 1,
            };
        } else {
            self.place.column = self.place.column.saturating_add(1);
        }
        Some(character)
    }
}

fn scalar(word: &str) -> Value {
    match word {
        "true" => return Value::Bool(true),
        "false" => return Value::Bool(false),
        "null" => return Value::Null,
        _ => {}
    }
    if let Ok(number) = word.parse::<i64>() {
        return Value::Integer(number);
    }
    if let Ok(number) = word.parse::<u64>() {
        return Value::Unsigned(number);
    }
    Value::Float(word.parse::<f64>().unwrap_or(f64::NAN))
}
