//! Go types as a JSON Schema, and the validator's messages for values that do not fit.

use serde_json::Value;

use olmkit_base::object::pointer_part;
use olmkit_go::structs::{Custom, Struct, Type, newer};

/// Kind of a mismatch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Required(Vec<String>),
    Additional(Vec<String>),
    Type {
        got: &'static str,
        want: &'static str,
    },
    Format {
        got: String,
        format: &'static str,
        reason: String,
    },
    AnyOf,
    AllOf,
    OneOf,
    Reference,
    Group,
    MinLength(usize, usize),
    MaxLength(usize, usize),
    Pattern(&'static str),
}

/// A value that does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    kind: Kind,
    path: String,
    causes: Vec<Failure>,
}

impl Failure {
    pub(super) fn new(kind: Kind, path: &str) -> Self {
        Self {
            kind,
            path: path.to_owned(),
            causes: Vec::new(),
        }
    }

    pub(super) fn type_of(value: &Value, want: &'static str, path: &str) -> Self {
        let got = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        Self::new(Kind::Type { got, want }, path)
    }

    pub(super) fn because(mut self, causes: Vec<Failure>) -> Self {
        self.causes = causes;
        self
    }

    /// The causes of this failure, in one list. For a reference, the library's flat output contains only the position
    /// of the first cause.
    fn flat(&self) -> Vec<(&Kind, String)> {
        let mut out = Vec::new();
        for cause in &self.causes {
            let below = cause.flat();
            if cause.kind == Kind::Reference && cause.causes.len() == 1 {
                let path = below
                    .into_iter()
                    .next()
                    .map_or_else(|| cause.path.clone(), |(_, path)| path);
                out.push((&cause.kind, path));
            } else {
                out.push((&cause.kind, cause.path.clone()));
                out.extend(below);
            }
        }
        out
    }
}

/// Failures at one position.
#[derive(Debug, Clone, Default)]
pub(super) struct Failures(Vec<Failure>);

impl Failures {
    pub(super) fn add(&mut self, failure: Failure) {
        self.0.push(failure);
    }

    pub(super) fn extend(&mut self, failure: Option<Failure>) {
        self.0.extend(failure);
    }

    /// One failure, which groups several.
    pub(super) fn into_one(mut self, path: &str) -> Option<Failure> {
        match self.0.len() {
            0 | 1 => self.0.pop(),
            _ => Some(Failure::new(Kind::Group, path).because(self.0)),
        }
    }

    /// OLM v1's message, if there are any.
    pub(super) fn into_text(self) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        let root = Failure::new(Kind::Group, "").because(self.0);
        let texts: Vec<String> = root.flat().into_iter().map(|(kind, path)| text(kind, &path)).collect();
        match texts.as_slice() {
            [one] => Some(one.clone()),
            _ => Some(format!("multiple errors found:\n  - {}", texts.join("\n  - "))),
        }
    }
}

fn text(kind: &Kind, path: &str) -> String {
    let field = path.trim_start_matches('/').replace('/', ".");
    let quote = olmkit_go::strconv::quote;
    let at = quote(&field);
    let first = |names: &[String]| quote(names.first().map(String::as_str).unwrap_or_default());
    match kind {
        Kind::Required(names) => format!("required field {} is missing", first(names)),
        Kind::Additional(names) => format!("unknown field {}", first(names)),
        Kind::Type { got, want } if field.is_empty() => format!("invalid type: got {got}, want {want}"),
        Kind::Type { got: "null", .. } => format!("required field {at} is missing"),
        Kind::Type { got, want } => format!("invalid type for field {at}: got {got}, want {want}"),
        Kind::Format { got, format, reason } => {
            let got = quote(got).replace("\\\"", "\"").replace('\'', "\\'");
            let got = got
                .strip_prefix('"')
                .and_then(|got| got.strip_suffix('"'))
                .unwrap_or_default();
            format!("invalid format for field {at}: '{got}' is not valid {format}: {reason}")
        }
        Kind::AnyOf => format!("invalid value for field {at}"),
        Kind::AllOf => "'allOf' failed".to_owned(),
        Kind::OneOf => "'oneOf' failed, none matched".to_owned(),
        Kind::Reference | Kind::Group => "validation failed".to_owned(),
        Kind::MinLength(want, got) => format!("field {at} must have minimum length of {want} (len={got})"),
        Kind::MaxLength(want, got) => format!("field {at} must have maximum length of {want} (len={got})"),
        Kind::Pattern(pattern) => format!("field {at} must match pattern {}", quote(pattern)),
    }
}

/// Checks a value of a type as the table writes it: `Volume`, `[]EnvVar`, `{}string`.
pub(super) fn check(value: &Value, kind: &str, path: &str) -> Option<Failure> {
    if let Some(item) = kind.strip_prefix("[]") {
        let Value::Array(items) = value else {
            return Some(Failure::type_of(value, "array", path));
        };
        let mut failures = Failures::default();
        for (at, value) in items.iter().enumerate() {
            failures.extend(check(value, item, &format!("{path}/{at}")));
        }
        return failures.into_one(path);
    }
    match newer().get(kind) {
        Some(Type::Struct(at)) => referred(value, *at, path),
        _ => one(value, &Type::Map(Box::new(Type::Text("string"))), path),
    }
}

/// A struct that is referred to by its name.
fn referred(value: &Value, at: usize, path: &str) -> Option<Failure> {
    let entry = newer().at(at)?;
    let Value::Object(fields) = value else {
        let cause = Failure::type_of(value, "object", path);
        return Some(Failure::new(Kind::Reference, path).because(vec![cause]));
    };
    let mut failures = Failures::default();
    let mut missing = Vec::new();
    required(entry, &mut missing);
    missing.retain(|name| !fields.contains_key(*name));
    if !missing.is_empty() {
        let names = missing.into_iter().map(str::to_owned).collect();
        failures.add(Failure::new(Kind::Required(names), path));
    }
    for (key, value) in fields {
        if let Some(kind) = entry
            .by_name
            .contains_key(key.as_str())
            .then(|| newer().field(entry, key))
            .flatten()
        {
            failures.extend(one(value, kind, &format!("{path}/{}", pointer_part(key))));
        }
    }
    let causes = failures.0;
    (!causes.is_empty()).then(|| Failure::new(Kind::Reference, path).because(causes))
}

/// The fields that must be there: those that Go always prints, with the few exceptions of Kubernetes.
fn required(entry: &Struct, out: &mut Vec<&'static str>) {
    for field in &entry.fields {
        if let (true, Type::Struct(inner)) = (field.embedded, &field.kind) {
            if let Some(inner) = newer().at(*inner) {
                required(inner, out);
            }
            continue;
        }
        let must = match (entry.name, field.name) {
            ("PodCertificateProjection", "keyType" | "signerName") => true,
            ("ProjectedVolumeSource", "sources")
            | ("TypedLocalObjectReference" | "TypedObjectReference", "apiGroup") => false,
            _ => !field.omit_empty,
        };
        if must {
            out.push(field.name);
        }
    }
}

fn one(value: &Value, kind: &Type, path: &str) -> Option<Failure> {
    let want = match kind {
        Type::Pointer(inner) => return one(value, inner, path),
        Type::Struct(at) => {
            let cause = referred(value, *at, path)?;
            return Some(Failure::new(Kind::AllOf, path).because(vec![cause]));
        }
        Type::Custom(custom) => return special(value, *custom, path, true),
        Type::Text(_) | Type::Bytes => "string",
        Type::Bool => "boolean",
        Type::Int32 | Type::Int64 => "integer",
        Type::Float64 => "number",
        Type::List(_) => "array",
        Type::Map(_) => "object",
    };
    let mut failures = Failures::default();
    match (kind, value) {
        (Type::Text(_) | Type::Bytes, Value::String(_))
        | (Type::Bool, Value::Bool(_))
        | (Type::Float64, Value::Number(_)) => {}
        (Type::Int32 | Type::Int64, Value::Number(number))
            if number.as_f64().is_some_and(|float| float.fract() == 0.0) => {}
        (Type::List(inner), Value::Array(items)) => {
            for (at, item) in items.iter().enumerate() {
                failures.extend(one(item, inner, &format!("{path}/{at}")));
            }
        }
        (Type::Map(inner), Value::Object(entries)) => {
            for (key, item) in entries {
                let path = format!("{path}/{}", pointer_part(key));
                failures.extend(match &**inner {
                    Type::Custom(custom) => special(item, *custom, &path, false),
                    inner => one(item, inner, &path),
                });
            }
        }
        _ => return Some(Failure::type_of(value, want, path)),
    }
    failures.into_one(path)
}

/// Scalar types such as quantities and times. Structs refer to them through `allOf`.
fn special(value: &Value, custom: Custom, path: &str, wrapped: bool) -> Option<Failure> {
    let cause = match (custom, value) {
        (Custom::Quantity, Value::String(_) | Value::Number(_)) | (Custom::Time, Value::String(_)) => return None,
        (Custom::Quantity, _) => Failure::new(Kind::OneOf, path).because(vec![
            Failure::type_of(value, "string", path),
            Failure::type_of(value, "number", path),
        ]),
        (Custom::Time, _) => Failure::type_of(value, "string", path),
        _ => return None,
    };
    let referred = Failure::new(Kind::Reference, path).because(vec![cause]);
    Some(if wrapped {
        Failure::new(Kind::AllOf, path).because(vec![referred])
    } else {
        referred
    })
}
