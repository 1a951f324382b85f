//! Walks an object by the table of types.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::LazyLock;

use olmkit_go::quantity;
use serde_json::{Map, Number, Value};

use super::facts::{Fact, Field, Shape, shape};
use super::{MOST, Rejection, forms, rules};
use crate::object::pointer_part;
use olmkit_go::structs::{Custom, Type};

/// The checks that apply to a part of an object.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mode {
    /// The schema of the ClusterServiceVersion.
    schema: bool,
    /// The API server's own validation.
    server: bool,
}

impl Mode {
    /// A ClusterServiceVersion, except for its Deployments.
    pub(super) const SCHEMA: Self = Self {
        schema: true,
        server: false,
    };
    /// An object of a built-in kind.
    pub(super) const SERVER: Self = Self {
        schema: false,
        server: true,
    };
    /// A Deployment inside a ClusterServiceVersion.
    const BOTH: Self = Self {
        schema: true,
        server: true,
    };
}

#[derive(Debug, Clone, Copy)]
enum Step<'v> {
    Key(&'v str),
    Index(usize),
}

/// The state of a walk.
#[derive(Debug, Default)]
pub(super) struct Walk<'v> {
    path: Vec<Step<'v>>,
    found: Vec<Rejection>,
    /// The type of the whole object.
    pub(super) root: &'static str,
    /// Inside a Deployment of a ClusterServiceVersion.
    in_deployment: bool,
}

static NOTHING: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

/// True for a value that Go reads as the zero value of its type.
pub(super) fn is_empty(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Number(number)) => number.as_f64() == Some(0.0),
        Some(Value::Bool(_) | Value::Object(_)) => false,
    }
}

/// A whole number. YAML writes `1.0` where Go's converter writes 1.
pub(super) fn whole(number: &Number) -> Option<i64> {
    let whole = |float: f64| (float.fract() == 0.0 && float.abs() < 9e15).then_some(float as i64);
    number
        .as_i64()
        .or_else(|| number.as_f64().filter(|_| number.is_f64()).and_then(whole))
}

fn is_byte(value: &Value) -> bool {
    value.is_null()
        || value
            .as_number()
            .and_then(whole)
            .is_some_and(|number| (0..=255).contains(&number))
}

fn article(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

fn wanted(kind: &Type) -> &'static str {
    match kind {
        Type::Text(_) | Type::Custom(Custom::OperatorVersion) => "a string",
        Type::Bool => "a boolean",
        Type::Int32 | Type::Int64 => "a whole number",
        Type::Float64 => "a number",
        Type::Bytes => "a base64 string",
        Type::List(_) => "a list",
        Type::Map(_) | Type::Struct(_) => "a map",
        Type::Pointer(inner) => wanted(inner),
        Type::Custom(Custom::IntOrString) => "a whole number or a string",
        Type::Custom(Custom::Quantity) => "a quantity",
        Type::Custom(Custom::Time) => "a time (RFC 3339)",
        Type::Custom(_) => "another value",
    }
}

impl<'v> Walk<'v> {
    /// A walk over an object of a type.
    pub(super) fn new(root: &'static str) -> Self {
        Self {
            root,
            ..Self::default()
        }
    }

    /// The rejections, sorted by position, one for each position.
    pub(super) fn finish(mut self) -> Vec<Rejection> {
        self.found.sort_by(|left, right| left.pointer.cmp(&right.pointer));
        self.found.dedup_by(|left, right| left.pointer == right.pointer);
        self.found.truncate(MOST);
        self.found
    }

    /// Returns true if the current value is below a field of that name.
    pub(super) fn is_below(&self, name: &str) -> bool {
        self.path
            .iter()
            .any(|step| matches!(step, Step::Key(key) if *key == name))
    }

    /// Checks the object's name.
    pub(super) fn name(&mut self, metadata: Option<&Value>, form: &str) {
        let text = |key: &str| {
            metadata
                .and_then(|metadata| metadata.get(key))
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let name = text("name");
        if name.is_empty() {
            if text("generateName").is_empty() && self.found.is_empty() {
                self.reject_at(&["metadata", "name"], "is required");
            }
        } else if let Some(problem) = forms::problem(form, name) {
            self.reject_at(&["metadata", "name"], problem);
        }
    }

    pub(super) fn reject(&mut self, message: impl Into<String>) {
        self.note("", message.into(), false);
    }

    /// Rejects a value below the current one. A number in the path is an index.
    pub(super) fn reject_at(&mut self, below: &[&str], message: impl Into<String>) {
        let mut rest = String::new();
        for part in below {
            rest.push('/');
            rest.push_str(&pointer_part(part));
        }
        self.note(&rest, message.into(), false);
    }

    /// Rejects values that the schema of the ClusterServiceVersion accepts.
    fn later(&mut self, below: &str, message: String) {
        let rest = if below.is_empty() {
            String::new()
        } else {
            format!("/{}", pointer_part(below))
        };
        self.note(&rest, message, self.in_deployment);
    }

    fn note(&mut self, rest: &str, message: String, later: bool) {
        // Also limited here, because an object may have millions of invalid values.
        if self.found.len() >= 4 * MOST {
            return;
        }
        let mut pointer = String::new();
        for step in &self.path {
            pointer.push('/');
            match step {
                Step::Key(key) => pointer.push_str(&pointer_part(key)),
                Step::Index(index) => pointer.push_str(&index.to_string()),
            }
        }
        pointer.push_str(rest);
        self.found.push(Rejection {
            pointer,
            message,
            later,
            filled: false,
        });
    }

    /// Visits the fields of a struct.
    pub(super) fn object(&mut self, map: &'v Map<String, Value>, at: usize, mode: Mode) {
        let Some(shape) = shape(at) else { return };
        let (mut mode, was_in_deployment) = (mode, self.in_deployment);
        if shape.name == "StrategyDeploymentSpec" {
            mode = Mode::BOTH;
            self.in_deployment = true;
        }
        for (key, value) in map {
            let Some(field) = shape.fields.get(key.as_str()) else {
                continue;
            };
            if value.is_null() {
                continue;
            }
            self.path.push(Step::Key(key));
            self.field(shape, field, value, mode);
            self.path.pop();
        }
        let is_absent = |name: &str| map.get(name).is_none_or(Value::is_null);
        if mode.schema {
            for name in shape.schema.required.iter().filter(|name| is_absent(name)) {
                let before = self.found.len();
                self.reject_at(&[name], "is required");
                let filled = !self.in_deployment && shape.fields.get(name).is_some_and(has_zero);
                self.found
                    .iter_mut()
                    .skip(before)
                    .for_each(|found| found.filled = filled);
            }
        }
        if mode.server {
            for name in shape.server.required.iter().filter(|name| is_empty(map.get(**name))) {
                self.later(name, "is required".to_owned());
            }
            let one = &shape.server.one;
            let set = one.iter().filter(|name| !is_absent(name)).count();
            if !one.is_empty() && set != 1 {
                self.later("", format!("must have exactly one of {}", one.join(", ")));
            }
            let before = self.found.len();
            rules::check(self, shape.name, map);
            if self.in_deployment {
                self.found.iter_mut().skip(before).for_each(|found| found.later = true);
            }
        }
        self.in_deployment = was_in_deployment;
    }

    fn field(&mut self, shape: &Shape, field: &'static Field, value: &'v Value, mode: Mode) {
        let mut mode = mode;
        match (shape.name, field.name) {
            // The API server drops the status of a new object.
            ("ClusterServiceVersion", "status") => return,
            // It reads the metadata of every object into the same type.
            ("ClusterServiceVersion", "metadata") => mode = Mode::SERVER,
            _ => {}
        }
        if mode.schema && field.schema.iter().any(|fact| matches!(fact, Fact::Open)) {
            mode = Mode::SERVER;
        }
        let before = self.found.len();
        if let Some(kind) = field.kind {
            self.value(value, kind, mode);
        }
        // A value of another type has no other facts.
        if self.found.len() == before {
            if mode.schema {
                self.facts(field.schema, value, false);
            }
            if mode.server {
                self.facts(field.server, value, true);
            }
        }
    }

    fn value(&mut self, value: &'v Value, kind: &'static Type, mode: Mode) {
        match (kind, value) {
            (Type::Pointer(inner), _) => self.value(value, inner, mode),
            (_, Value::Null) => {
                if mode.schema {
                    self.reject(format!("must be {}, is null", wanted(kind)));
                } else if let Type::Struct(at) = kind {
                    // Go reads null in a list as an item without fields.
                    self.object(&NOTHING, *at, mode);
                }
            }
            (Type::Struct(at), Value::Object(map)) => self.object(map, *at, mode),
            (Type::List(inner), Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    self.path.push(Step::Index(index));
                    self.value(item, inner, mode);
                    self.path.pop();
                }
            }
            (Type::Map(inner), Value::Object(map)) => {
                for (key, item) in map {
                    if item.is_null() {
                        continue;
                    }
                    self.path.push(Step::Key(key));
                    self.value(item, inner, mode);
                    self.path.pop();
                }
            }
            (Type::Text(_), Value::String(_))
            | (Type::Bool, Value::Bool(_))
            | (Type::Float64, Value::Number(_))
            | (Type::Custom(Custom::IntOrString), Value::String(_)) => {}
            (Type::Int32 | Type::Custom(Custom::IntOrString), Value::Number(number)) => {
                self.integer(number, kind, i64::from(i32::MIN), i64::from(i32::MAX));
            }
            (Type::Int64, Value::Number(number)) => self.integer(number, kind, i64::MIN, i64::MAX),
            (Type::Bytes, Value::String(text)) => {
                if let Err(problem) = olmkit_go::base64::decode(text) {
                    self.reject(problem);
                }
            }
            // Go reads a list of numbers into bytes too.
            (Type::Bytes, Value::Array(items)) if items.iter().all(is_byte) => {}
            (Type::Custom(Custom::Quantity), Value::String(text)) => {
                // Go accepts a suffix without a number, the schema does not.
                let number = text.strip_prefix(['+', '-']).unwrap_or(text);
                let number = number.strip_prefix('.').unwrap_or(number);
                if let Err(problem) = quantity::check(text) {
                    self.reject(format!("{text:?} is not a quantity: {problem}"));
                } else if mode.schema && !number.starts_with(|first: char| first.is_ascii_digit()) {
                    self.reject(format!("{text:?} is not a quantity: it has no number"));
                }
            }
            (Type::Custom(Custom::Quantity), Value::Number(number)) => {
                if mode.schema && whole(number).is_none() {
                    self.reject("must be a whole number or a string: put the number in quotes");
                }
            }
            (Type::Custom(Custom::Time), Value::String(text)) => {
                if olmkit_go::time::parse_rfc3339(text).is_err() {
                    self.reject(format!("{text:?} is not a time (RFC 3339)"));
                }
            }
            // Facts contain the schema's type for these.
            (Type::Custom(Custom::Any(_) | Custom::OperatorVersion), _) => {}
            _ => self.reject(format!("must be {}, is {}", wanted(kind), article(value))),
        }
    }

    fn integer(&mut self, number: &Number, kind: &Type, least: i64, most: i64) {
        match whole(number) {
            Some(value) if (least..=most).contains(&value) => {}
            Some(_) => self.reject(format!("must be between {least} and {most}, is {number}")),
            None => self.reject(format!("must be {}, is {number}", wanted(kind))),
        }
    }

    fn facts(&mut self, facts: &'static [Fact], value: &'v Value, later: bool) {
        for fact in facts {
            let items = match (fact, value) {
                (Fact::Most(_) | Fact::Never | Fact::Keys(..) | Fact::Set | Fact::Text | Fact::Base64, _) => None,
                (_, Value::Array(items)) => Some(items),
                _ => None,
            };
            let Some(items) = items else {
                if let Some((key, problem)) = fact_problem(fact, value) {
                    self.noted(key, problem, later);
                }
                continue;
            };
            for (index, item) in items.iter().enumerate() {
                if let Some((key, problem)) = fact_problem(fact, item) {
                    self.path.push(Step::Index(index));
                    self.noted(key, problem, later);
                    self.path.pop();
                }
            }
        }
    }

    fn noted(&mut self, key: Option<String>, problem: String, later: bool) {
        let rest = key.map(|key| format!("/{}", pointer_part(&key))).unwrap_or_default();
        self.note(&rest, problem, later && self.in_deployment);
    }
}

/// Returns true if the schema accepts the value that Go writes for an absent one.
fn has_zero(field: &Field) -> bool {
    let zero = match field.kind {
        Some(Type::Text(_)) => Value::from(""),
        Some(Type::Bool) => Value::Bool(false),
        Some(Type::Int32 | Type::Int64) => Value::from(0),
        _ => return false,
    };
    field.schema.iter().all(|fact| fact_problem(fact, &zero).is_none())
}

/// The problem of a value, and the key below it if the problem is there.
fn fact_problem(fact: &Fact, value: &Value) -> Option<(Option<String>, String)> {
    let own = |problem: String| Some((None, problem));
    let number = value.as_number().and_then(whole);
    match (fact, value) {
        (Fact::Enum(allowed), Value::String(text)) => {
            let listed: Vec<&str> = allowed.iter().copied().filter(|word| !word.is_empty()).collect();
            (!allowed.contains(&text.as_str()))
                .then(|| (None, format!("{text:?} must be one of {}", listed.join(", "))))
        }
        // Go reads null in a list of strings as the empty string.
        (Fact::Enum(allowed), Value::Null) => {
            (!allowed.contains(&"")).then(|| (None, format!("must be one of {}, is null", allowed.join(", "))))
        }
        (Fact::Range(least, most), Value::Number(_)) => {
            let outside = number.is_some_and(|number| !(*least..=*most).contains(&number));
            let range = if *most == i64::MAX {
                format!("must be at least {least}")
            } else {
                format!("must be between {least} and {most}, inclusive")
            };
            outside.then_some((None, range))
        }
        (Fact::Id, Value::Number(_)) => {
            let outside = number.is_some_and(|number| !(0..=i64::from(i32::MAX)).contains(&number));
            outside.then(|| (None, "must be between 0 and 2147483647, inclusive".to_owned()))
        }
        (Fact::Port | Fact::Target, Value::Number(_)) if number == Some(0) => None,
        (Fact::Port | Fact::Target | Fact::Endpoint, Value::Number(_)) => {
            let outside = number.is_some_and(|number| !(1..=65535).contains(&number));
            outside.then(|| (None, "must be between 1 and 65535, inclusive".to_owned()))
        }
        (Fact::Target, Value::String(text)) if text.is_empty() => None,
        (Fact::Target | Fact::Endpoint, Value::String(text)) => own(forms::problem("portname", text)?),
        (Fact::Share | Fact::Surge, Value::Number(_)) => {
            number.filter(|number| *number < 0)?;
            own("must be greater than or equal to 0".to_owned())
        }
        (Fact::Share | Fact::Surge, Value::String(text)) => {
            let digits = text
                .strip_suffix('%')
                .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
            match digits.filter(|digits| !digits.is_empty()) {
                None => own(format!("{text:?} must be a whole number or a percentage such as 5%")),
                Some(digits) => {
                    let above = digits.parse::<u64>().is_ok_and(|share| share > 100);
                    (above && matches!(fact, Fact::Share)).then(|| (None, "must not be greater than 100%".to_owned()))
                }
            }
        }
        (Fact::Amount, _) => rules::amount(value)
            .filter(|amount| amount.sign() < 0)
            .map(|_| (None, "must be greater than or equal to 0".to_owned())),
        (Fact::Is(form), Value::String(text)) if !text.is_empty() => own(forms::problem(form, text)?),
        (Fact::Labels, Value::Object(map)) => labels(map),
        (Fact::Most(most), Value::String(text)) if text.chars().count() > *most => {
            own(format!("must have at most {most} characters"))
        }
        (Fact::Most(most), Value::Array(items)) if items.len() > *most => {
            own(format!("must have at most {most} items"))
        }
        (Fact::Never, _) if !is_empty(Some(value)) || value.is_number() => own("is not allowed here".to_owned()),
        (Fact::Keys(keys, since), Value::Array(items)) => {
            let (key, mut problem) = repeated(keys, items)?;
            if let Some(release) = since {
                let _ = write!(problem, "; the schema of OLM before {release} accepts this");
            }
            Some((key, problem))
        }
        (Fact::Set, Value::Array(items)) => {
            let mut seen = HashSet::new();
            let index = items.iter().position(|item| !seen.insert(item.to_string()))?;
            Some((Some(index.to_string()), "repeats an earlier item".to_owned()))
        }
        // The server does not check the type of a list if the schema has a format.
        (Fact::Base64, Value::Array(_)) => None,
        (Fact::Text | Fact::Base64, value) if !value.is_string() => {
            own(format!("must be a string, is {}", article(value)))
        }
        (Fact::Base64, Value::String(text)) => olmkit_go::base64::decode(text)
            .is_err()
            .then(|| (None, "must be a base64 string".to_owned())),
        _ => None,
    }
}

/// The first wrong label of a map.
pub(super) fn labels(map: &Map<String, Value>) -> Option<(Option<String>, String)> {
    map.iter().find_map(|(key, value)| {
        let problem = forms::problem("qualified", key)
            .or_else(|| forms::problem("labelvalue", value.as_str().unwrap_or_default()))?;
        Some((Some(key.clone()), problem))
    })
}

/// The first item of a list with the keys of an earlier one.
fn repeated(keys: &[(&'static str, Option<&'static str>)], items: &[Value]) -> Option<(Option<String>, String)> {
    if items.len() < 2 {
        return None;
    }
    let mut seen = HashSet::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let text = |(name, default): &(&str, Option<&str>)| match item.get(*name) {
            None | Some(Value::Null) => default.map(|default| Value::from(default).to_string()),
            Some(value) => Some(value.to_string()),
        };
        let own: Vec<Option<String>> = keys.iter().map(text).collect();
        // Without the keys the item is rejected for that.
        if own.iter().any(Option::is_none) {
            continue;
        }
        if !seen.insert(own) {
            let names: Vec<&str> = keys.iter().map(|(name, _)| *name).collect();
            return Some((
                Some(index.to_string()),
                format!("repeats the {} of an earlier item", names.join(" and ")),
            ));
        }
    }
    None
}
