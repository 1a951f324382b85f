//! Schemas and their differences as Go programs print them: the generated types' `String`, and go-cmp's report. OLM v1
//! keeps the report's `Field: value` lines.

use std::collections::HashSet;

use serde_json::{Map, Value};

use olmkit_go::strconv;
use olmkit_go::structs::{Custom, Field, Type, newer};

/// Longer lists are printed on separate lines.
const COLUMNS: usize = 80;

/// A schema as its `String` method prints it. Deeper levels are omitted.
pub(super) fn schema(schema: &Value) -> String {
    let Some(Type::Struct(at)) = newer().get("v1.JSONSchemaProps") else {
        return String::new();
    };
    let fields = newer().at(*at).map(|entry| entry.fields.as_slice()).unwrap_or_default();
    let mut out = String::from("&JSONSchemaProps{");
    for field in fields {
        out.push_str(&go_name(field.name));
        out.push(':');
        out.push_str(&member(field, schema.get(field.name)));
        out.push(',');
    }
    out.push('}');
    out
}

fn member(field: &Field, value: Option<&Value>) -> String {
    let list = |name: &str, items: Option<&Value>, one: fn(&Value) -> String| {
        let items = items.and_then(Value::as_array).into_iter().flatten();
        let texts: String = items
            .map(|item| format!("{},", one(item).trim_start_matches('&')))
            .collect();
        format!("[]{name}{{{texts}}}")
    };
    match (field.name, &field.kind) {
        ("enum", _) => list("JSON", value, raw),
        ("allOf" | "anyOf" | "oneOf", _) => list("JSONSchemaProps", value, schema),
        ("x-kubernetes-validations", _) => list("ValidationRule", value, |rule| format!("&ValidationRule{rule}")),
        ("properties" | "patternProperties", _) => format!("map[string]JSONSchemaProps{{{}}}", keys(value)),
        ("dependencies", _) => format!("JSONSchemaDependencies{{{}}}", keys(value)),
        ("definitions", _) => format!("JSONSchemaDefinitions{{{}}}", keys(value)),
        (_, Type::List(_)) => {
            let items = value.and_then(Value::as_array).into_iter().flatten();
            let texts: Vec<&str> = items.filter_map(Value::as_str).collect();
            format!("[{}]", texts.join(" "))
        }
        (_, Type::Pointer(inner)) => match (value, &**inner) {
            (None, _) => "nil".to_owned(),
            (Some(value), Type::Custom(Custom::Any(_))) => raw(value),
            (Some(value), Type::Custom(_) | Type::Struct(_)) if field.name == "not" => schema(value),
            (Some(value), Type::Custom(_) | Type::Struct(_)) => olmkit_go::json::marshal(value),
            (Some(value), _) => format!("*{}", scalar(value)),
        },
        (_, Type::Bool) => value.map_or_else(|| "false".to_owned(), scalar),
        _ => value.map_or_else(String::new, scalar),
    }
}

fn keys(value: Option<&Value>) -> String {
    let fields = value.and_then(Value::as_object).into_iter().flatten();
    fields.map(|(key, value)| format!("{key}: {value},")).collect()
}

/// A JSON value in its Go type: the bytes of its JSON.
fn raw(value: &Value) -> String {
    let text = olmkit_go::json::marshal(value);
    let bytes: Vec<String> = text.bytes().map(|byte| byte.to_string()).collect();
    format!("&JSON{{Raw:*[{}],}}", bytes.join(" "))
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => strconv::format_g(number.as_f64().unwrap_or_default()),
        other => other.to_string(),
    }
}

/// The Go name of a field of a schema.
fn go_name(field: &str) -> String {
    if field == "id" {
        return "ID".to_owned();
    }
    let words = field
        .trim_start_matches('$')
        .strip_prefix("x-kubernetes-")
        .map(|rest| format!("x-{rest}"));
    let words = words.unwrap_or_else(|| field.trim_start_matches('$').to_owned());
    words
        .split('-')
        .map(|word| {
            let mut letters = word.chars();
            letters
                .next()
                .map(|first| first.to_uppercase().chain(letters).collect::<String>())
                .unwrap_or_default()
        })
        .collect()
}

/// OLM v1's message for differences without a specific check: the fields of go-cmp's report, each with its values.
pub(super) fn unhandled(old: &Map<String, Value>, new: &Map<String, Value>) -> String {
    let mut report = Report { lines: Vec::new() };
    if let Some(Type::Struct(at)) = newer().get("v1.JSONSchemaProps") {
        report.fields(*at, old, new);
    }
    report.summary()
}

/// A value before or after: its displayed form, and its printed form.
type Side = Option<(String, String)>;

/// The lines of a report that were removed or added.
struct Report {
    lines: Vec<(bool, String)>,
}

impl Report {
    fn fields(&mut self, at: usize, old: &Map<String, Value>, new: &Map<String, Value>) {
        let Some(entry) = newer().at(at) else { return };
        for field in &entry.fields {
            let (before, now) = (old.get(field.name), new.get(field.name));
            if before != now {
                let name = go_name(field.name);
                self.value(&format!("{name}: "), &field.kind, field.named, before, now);
            }
        }
    }

    fn value(&mut self, key: &str, kind: &Type, named: Option<&str>, old: Option<&Value>, new: Option<&Value>) {
        match (kind, old, new) {
            (Type::Pointer(inner), Some(old), Some(new)) if nested(inner) => {
                self.value(key, inner, named, Some(old), Some(new));
            }
            (Type::Struct(at), Some(Value::Object(old)), Some(Value::Object(new))) => self.fields(*at, old, new),
            (Type::Custom(custom), Some(Value::Object(old)), Some(Value::Object(new))) => match custom {
                Custom::SchemaOrBool(at) | Custom::SchemaOrList(at) | Custom::SchemaOrNames(at) => {
                    self.fields(*at, old, new);
                }
                _ => {}
            },
            (Type::Map(inner), Some(Value::Object(old)), Some(Value::Object(new))) => self.entries(inner, old, new),
            (Type::List(inner), Some(Value::Array(old)), Some(Value::Array(new))) => self.items(inner, old, new),
            // Long strings are compared character by character, which leaves no line of this form.
            (Type::Text(_), Some(Value::String(old)), Some(Value::String(new)))
                if old.len() >= 32 && new.len() >= 32 => {}
            _ => {
                self.leaf(false, key, kind, named, old);
                self.leaf(true, key, kind, named, new);
            }
        }
    }

    fn entries(&mut self, inner: &Type, old: &Map<String, Value>, new: &Map<String, Value>) {
        let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
        names.sort();
        names.dedup();
        for name in names {
            let key = format!("{}: ", strconv::quote(name));
            match (old.get(name), new.get(name)) {
                (Some(before), None) => self.element(false, &key, inner, before),
                (None, Some(now)) => self.element(true, &key, inner, now),
                (before, now) if before != now => self.value(&key, inner, None, before, now),
                _ => {}
            }
        }
    }

    fn items(&mut self, inner: &Type, old: &[Value], new: &[Value]) {
        let (before, now): (HashSet<&Value>, HashSet<&Value>) = (old.iter().collect(), new.iter().collect());
        for item in old.iter().filter(|item| !now.contains(item)) {
            self.element(false, "", inner, item);
        }
        for item in new.iter().filter(|item| !before.contains(item)) {
            self.element(true, "", inner, item);
        }
    }

    fn element(&mut self, added: bool, key: &str, kind: &Type, value: &Value) {
        let node = Node::new(kind, None, value, 3, false);
        self.print(added, key, node);
    }

    fn leaf(&mut self, added: bool, key: &str, kind: &Type, named: Option<&str>, value: Option<&Value>) {
        let node = match (value, kind) {
            (Some(value), _) => Node::new(kind, named, value, 3, true),
            (None, Type::Pointer(_) | Type::List(_) | Type::Map(_)) => Node::Line("nil".to_owned()),
            (None, Type::Bool) => Node::Line("false".to_owned()),
            (None, _) => Node::Line("\"\"".to_owned()),
        };
        self.print(added, key, node);
    }

    fn print(&mut self, added: bool, key: &str, node: Node) {
        let mut text = String::new();
        node.compact().expand(&mut text);
        text.push(',');
        for (at, line) in text.lines().enumerate() {
            let key = if at == 0 { key } else { "" };
            self.lines.push((added, format!("{key}{line}")));
        }
    }

    /// OLM v1's summary of the lines.
    fn summary(&self) -> String {
        let mut fields: Vec<(String, [Side; 2])> = Vec::new();
        for (added, line) in &self.lines {
            let line = line.trim();
            let line = line.strip_suffix(',').unwrap_or(line);
            let Some((field, value)) = line.split_once(':') else {
                continue;
            };
            let (field, value) = (field.trim(), value.trim());
            if field.is_empty() {
                continue;
            }
            let entry = (normal(value), value.to_owned());
            let at = fields.iter().position(|(known, _)| known == field).unwrap_or_else(|| {
                fields.push((field.to_owned(), [None, None]));
                fields.len() - 1
            });
            if let Some((_, sides)) = fields.get_mut(at) {
                let [before, now] = sides;
                *(if *added { now } else { before }) = Some(entry);
            }
        }
        let mut details = Vec::new();
        for (field, [before, now]) in &fields {
            if before == now {
                continue;
            }
            let text = |side: &Side| {
                side.as_ref()
                    .map_or_else(|| "<empty>".to_owned(), |(text, _)| text.clone())
            };
            let (before, after) = (text(before), text(now));
            let mark = if before == after { " (changed)" } else { "" };
            details.push(format!("{field} {before} -> {after}{mark}"));
        }
        let head = "unhandled changes found";
        if details.is_empty() {
            head.to_owned()
        } else {
            format!("{head} ({})", details.join("; "))
        }
    }
}

/// Returns true if values of a type are compared part by part.
fn nested(kind: &Type) -> bool {
    matches!(kind, Type::Struct(_) | Type::Custom(_) | Type::Map(_) | Type::List(_))
}

fn normal(value: &str) -> String {
    let value = value.strip_suffix(',').unwrap_or(value).trim();
    if value.is_empty() {
        return "<empty>".to_owned();
    }
    let value = value.replace("v1.", "");
    if value.contains("JSONSchemaProps") {
        return "<complex value>".to_owned();
    }
    value
}

/// A value as go-cmp formats it: on one line, or as a list of lines.
enum Node {
    Line(String),
    Wrap(String, Vec<(String, Node)>),
}

impl Node {
    /// `level` is go-cmp's verbosity, which decreases with the depth. `typed` prints the type's name in front.
    fn new(kind: &Type, named: Option<&str>, value: &Value, level: u32, typed: bool) -> Self {
        match (kind, value) {
            (Type::Pointer(inner), _) => match &**inner {
                // These have a `String` method.
                Type::Struct(_) => Self::Line(format!("s{}", quoted(&schema(value), level))),
                Type::Custom(Custom::Any(_)) => Self::Line(format!("s{}", quoted(&raw(value), level))),
                Type::Custom(_) => Self::Line("s\"&JSONSchemaPropsOr\"".to_owned()),
                inner => Self::Line(format!(
                    "&{}",
                    Self::new(inner, None, value, level, typed).compact_text()
                )),
            },
            (Type::List(inner), Value::Array(items)) => {
                let name = if typed { type_name(kind, named) } else { String::new() };
                let most = limit(level);
                let mut parts: Vec<(String, Node)> = items
                    .iter()
                    .take(most)
                    .map(|item| {
                        (
                            String::new(),
                            Self::new(inner, None, item, level.saturating_sub(1), false),
                        )
                    })
                    .collect();
                if items.len() > most {
                    parts.push((String::new(), Self::Line("...".to_owned())));
                }
                Self::Wrap(name, parts)
            }
            (Type::Map(inner), Value::Object(entries)) => {
                let name = if typed { type_name(kind, named) } else { String::new() };
                let most = limit(level);
                let mut parts: Vec<(String, Node)> = entries
                    .iter()
                    .take(most)
                    .map(|(key, item)| {
                        let key = format!("{}: ", strconv::quote(key));
                        (key, Self::new(inner, None, item, level.saturating_sub(1), false))
                    })
                    .collect();
                if entries.len() > most {
                    parts.push((String::new(), Self::Line("...".to_owned())));
                }
                Self::Wrap(name, parts)
            }
            (Type::Struct(at), Value::Object(entries)) => {
                let entry = newer().at(*at);
                let name = entry.filter(|_| typed).map_or("", |entry| entry.go_name);
                let fields = entry.map(|entry| entry.fields.as_slice()).unwrap_or_default();
                let most = limit(level);
                let mut parts = Vec::new();
                for field in fields {
                    let Some(value) = entries.get(field.name) else { continue };
                    if parts.len() == most {
                        parts.push((String::new(), Self::Line("...".to_owned())));
                        break;
                    }
                    let node = Self::new(&field.kind, field.named, value, level.saturating_sub(1), true);
                    parts.push((format!("{}: ", go_name(field.name)), node));
                }
                Self::Wrap(name.to_owned(), parts)
            }
            (_, Value::String(text)) => Self::Line(quoted(text, level)),
            (_, other) => Self::Line(scalar(other)),
        }
    }

    fn compact_text(&self) -> String {
        match self {
            Self::Line(line) => line.clone(),
            Self::Wrap(name, parts) => {
                let parts: Vec<String> = parts
                    .iter()
                    .map(|(key, node)| format!("{key}{}", node.compact_text()))
                    .collect();
                format!("{name}{{{}}}", parts.join(", "))
            }
        }
    }

    /// Joins lines that fit on one.
    fn compact(self) -> Self {
        let Self::Wrap(name, parts) = self else { return self };
        let parts: Vec<(String, Node)> = parts.into_iter().map(|(key, node)| (key, node.compact())).collect();
        let lines = parts.iter().all(|(_, node)| matches!(node, Self::Line(_)));
        let node = Self::Wrap(name, parts);
        let text = node.compact_text();
        let Self::Wrap(name, _) = &node else { return node };
        if lines && text.len() - name.len() - 2 <= COLUMNS {
            return Self::Line(text);
        }
        node
    }

    fn expand(&self, out: &mut String) {
        match self {
            Self::Line(line) => out.push_str(line),
            Self::Wrap(name, parts) => {
                out.push_str(name);
                out.push_str("{\n");
                for (key, node) in parts {
                    out.push_str(key);
                    node.expand(out);
                    out.push_str(",\n");
                }
                out.push('}');
            }
        }
    }
}

/// Maximum number of members printed at a level.
fn limit(level: u32) -> usize {
    ((1_usize << level.min(16)) >> 1) << 2
}

fn type_name(kind: &Type, named: Option<&str>) -> String {
    if let Some(name) = named {
        return name.to_owned();
    }
    match kind {
        Type::List(inner) => format!("[]{}", type_name(inner, None)),
        Type::Map(inner) => format!("map[string]{}", type_name(inner, None)),
        Type::Struct(at) => newer()
            .at(*at)
            .map_or_else(String::new, |entry| entry.go_name.to_owned()),
        Type::Text(name) => (*name).to_owned(),
        Type::Custom(Custom::Any(name)) => (*name).to_owned(),
        Type::Custom(_) => "v1.JSONSchemaPropsOrStringArray".to_owned(),
        _ => String::new(),
    }
}

/// A quoted string, truncated to the length of a level.
fn quoted(text: &str, level: u32) -> String {
    let most = (1_usize << level.min(16)) << 5;
    if text.len() > most + 3 {
        let end = text.floor_char_boundary(most);
        return format!("{}...", plain(text.get(..end).unwrap_or_default()));
    }
    plain(text)
}

/// A string in the quotes that need fewer escapes.
fn plain(text: &str) -> String {
    let quoted = strconv::quote(text);
    let printable = |letter: char| letter == '\t' || olmkit_go::unicode::is_print(letter);
    let needs_quotes = |letter: char| letter == '`' || letter == '\n' || !printable(letter);
    if quoted.len() == text.len() + 2 || text.contains(needs_quotes) {
        return quoted;
    }
    format!("`{text}`")
}
