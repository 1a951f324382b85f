//! Decodes a manifest into the Go types of the reference tools: accepted values, conversions to strings, and the error
//! messages.
//!
//! The result is the manifest with only known fields, under their exact names, without nulls, with scalars of the
//! field's type, so that rules can read it by path. The only nulls are those that Go prints for a value that it ignores.

use serde_json::{Map, Value};

use super::{Custom, Struct, Structs, Type, structs};
use crate::json::pointer_part;
use crate::semver::Version;
use crate::{json, quantity, strconv};

/// Why a value does not fit its type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct DecodeError {
    /// The message of Go's encoding/json.
    pub message: String,
    /// JSON pointer to the value.
    pub pointer: String,
}

/// Decodes `value` into the struct that the table of [`super`] lists under `key`.
///
/// `from_yaml` is set if the value was YAML: numbers and booleans then become strings if the field is a string.
///
/// # Errors
/// The first misfit, in the order Go meets them.
pub fn decode(value: &Value, key: &str, from_yaml: bool) -> Result<Value, DecodeError> {
    decode_noting_conversions(value, key, from_yaml).map(|(decoded, _)| decoded)
}

/// As [`decode`], and true if a number or a boolean became a string. If none did, [`misfits`] of the same value as JSON are none.
pub fn decode_noting_conversions(value: &Value, key: &str, from_yaml: bool) -> Result<(Value, bool), DecodeError> {
    let table = structs();
    let Some(kind) = table.get(key) else {
        return Ok((value.clone(), false));
    };
    let mut decoder = Decoder::new(table);
    let decoded = decoder.value(value, kind, from_yaml.then_some(kind));
    match decoder.error {
        Some(error) => Err(error),
        None => Ok((decoded.unwrap_or_else(|| Value::Object(Map::new())), decoder.converted)),
    }
}

/// All mismatches in `value`, in the order of the fields, whether Go's decoder stops at them or skips them: at most
/// [`MOST_MISFITS`]. [`decode`] documents which of them it reports.
#[must_use]
pub fn misfits(value: &Value, key: &str, from_yaml: bool) -> Vec<DecodeError> {
    let table = structs();
    let Some(kind) = table.get(key) else {
        return Vec::new();
    };
    let mut decoder = Decoder {
        all: Some(Vec::new()),
        ..Decoder::new(table)
    };
    decoder.value(value, kind, from_yaml.then_some(kind));
    decoder.all.unwrap_or_default()
}

/// Maximum number of reported mismatches of one object.
pub const MOST_MISFITS: usize = 50;

/// Reads a value with the type's custom decoder. `None` is Go's zero value.
pub(super) fn custom(table: &'static Structs, value: &Value, custom: Custom) -> Result<Option<Value>, DecodeError> {
    let mut decoder = Decoder::new(table);
    let decoded = decoder.own_decoder(|decoder| decoder.custom(value, custom));
    decoder.error.map_or(Ok(decoded), Err)
}

struct Decoder<'t> {
    table: &'t Structs,
    error: Option<DecodeError>,
    /// All errors, if requested. The decoder then never stops.
    all: Option<Vec<DecodeError>>,
    /// A number or a boolean became a string.
    converted: bool,
    /// Types with their own decoder stop everything when they fail. Other misfits are skipped and reported at the end.
    stopped: bool,
    /// The struct whose field is being read. Error messages begin with its name.
    outer: Option<&'static str>,
    /// While a type with a custom decoder reads nested values, errors name the struct that contains that type.
    pinned: bool,
    /// Names of the fields that lead to the value.
    fields: Vec<&'static str>,
    /// JSON pointer to the value.
    pointer: Vec<String>,
}

impl<'t> Decoder<'t> {
    fn new(table: &'t Structs) -> Self {
        Self {
            table,
            error: None,
            all: None,
            converted: false,
            stopped: false,
            outer: None,
            pinned: false,
            fields: Vec::new(),
            pointer: Vec::new(),
        }
    }

    /// `target` is the type that the YAML reader assumes. It decides whether a scalar becomes a string.
    fn value(&mut self, value: &Value, kind: &Type, target: Option<&'t Type>) -> Option<Value> {
        if self.stopped {
            return None;
        }
        let target = target.map(through_pointers);
        let (kind, pointer) = through_pointers_counted(kind);
        if value.is_null() {
            return self.own_decoder(|decoder| decoder.null(kind, pointer));
        }
        if let (Some(Type::Text(_)), Value::Number(_) | Value::Bool(_)) = (target, value) {
            let text = Value::String(scalar_as_text(value));
            self.converted = true;
            return self.typed(&text, kind, target);
        }
        self.typed(value, kind, target)
    }

    /// A null means "absent", except for a type with a custom decoder that is not a pointer.
    fn null(&mut self, kind: &Type, pointer: bool) -> Option<Value> {
        match kind {
            Type::Custom(Custom::OperatorVersion) if !pointer => self.operator_version(""),
            Type::Custom(Custom::SchemaOrBool(_)) if !pointer => {
                self.fail("boolean or JSON schema expected".to_string())
            }
            Type::Custom(Custom::Any(_)) if !pointer => Some(Value::Null),
            _ => None,
        }
    }

    fn typed(&mut self, value: &Value, kind: &Type, target: Option<&'t Type>) -> Option<Value> {
        match (kind, value) {
            (Type::Text(_), Value::String(_)) | (Type::Bool, Value::Bool(_)) => Some(value.clone()),
            (Type::Int32, Value::Number(number)) => {
                self.integer(number, i64::from(i32::MIN), i64::from(i32::MAX), "int32")
            }
            (Type::Int64, Value::Number(number)) => self.integer(number, i64::MIN, i64::MAX, "int64"),
            (Type::Float64, Value::Number(_)) => Some(value.clone()),
            (Type::Bytes, Value::String(text)) => self.bytes(text),
            (Type::List(inner), Value::Array(items)) => Some(self.list(items, inner, target)),
            (Type::Map(inner), Value::Object(entries)) => Some(self.map(entries, inner, target)),
            (Type::Struct(at), Value::Object(entries)) => {
                let entry = self.table.at(*at)?;
                Some(self.fields_of(entries, entry, target))
            }
            (Type::Custom(custom), _) => self.own_decoder(|decoder| decoder.custom(value, *custom)),
            (Type::Pointer(inner), _) => self.typed(value, inner, target),
            _ => self.mismatch(json::kind(value).to_string(), &self.table.go_name(kind)),
        }
    }

    /// Runs a type's custom decoder. Its error overrides all earlier mismatches.
    fn own_decoder(&mut self, decode: impl FnOnce(&mut Self) -> Option<Value>) -> Option<Value> {
        if self.all.is_some() {
            return decode(self);
        }
        let noted = self.error.take();
        let decoded = decode(self);
        if self.error.is_some() {
            self.stopped = true;
            return None;
        }
        self.error = noted;
        decoded
    }

    fn list(&mut self, items: &[Value], inner: &Type, target: Option<&'t Type>) -> Value {
        let target = match target {
            Some(Type::List(element)) => Some(&**element),
            _ => None,
        };
        let mut out = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            self.pointer.push(at.to_string());
            let decoded = self.value(item, inner, target);
            out.push(decoded.unwrap_or_else(|| zero(inner)));
            self.pointer.pop();
        }
        Value::Array(out)
    }

    fn map(&mut self, entries: &Map<String, Value>, inner: &Type, target: Option<&'t Type>) -> Value {
        let mut out = Map::with_capacity(entries.len());
        for (key, item) in entries {
            let target = self.target_of_key(target, key);
            self.pointer.push(key.clone());
            let decoded = self.value(item, inner, target);
            out.insert(key.clone(), decoded.unwrap_or_else(|| zero(inner)));
            self.pointer.pop();
        }
        Value::Object(out)
    }

    fn fields_of(&mut self, entries: &Map<String, Value>, entry: &'t Struct, target: Option<&'t Type>) -> Value {
        let (outer, depth) = (self.outer, self.fields.len());
        let mut out = Map::new();
        for (key, item) in entries {
            let Some((name, path)) = lookup(entry, key) else {
                continue;
            };
            let Some(kind) = self.enter(entry, path) else { continue };
            if !self.pinned {
                self.outer = Some(entry.name);
            }
            let target = self.target_of_key(target, key);
            self.pointer.push(key.clone());
            let decoded = match named_mismatch(self.table, entry, path, kind, item) {
                Some(go_type) => self.mismatch(json::kind(item).to_string(), go_type),
                None => self.value(item, kind, target),
            };
            if let Some(decoded) = decoded {
                merge(&mut out, name, decoded);
            }
            self.pointer.pop();
            self.fields.truncate(depth);
            self.outer = outer;
        }
        Value::Object(out)
    }

    /// Pushes the names on the path to a field, including embedded structs, and returns the field's type.
    fn enter(&mut self, entry: &'t Struct, path: &[usize]) -> Option<&'t Type> {
        let mut at = entry;
        let mut kind = None;
        for step in path {
            let field = at.fields.get(*step)?;
            self.fields.push(field.name);
            kind = Some(&field.kind);
            if let Type::Struct(inner) = field.kind {
                at = self.table.at(inner)?;
            }
        }
        kind
    }

    /// The type that the YAML reader assumes for the value under `key`. It follows only the first step to a field:
    /// below an embedded struct it sees the struct itself, and so converts nothing there.
    fn target_of_key(&self, target: Option<&'t Type>, key: &str) -> Option<&'t Type> {
        match target? {
            Type::Map(inner) => Some(&**inner),
            Type::Struct(at) => {
                let entry = self.table.at(*at)?;
                let (_, path) = lookup(entry, key)?;
                entry.fields.get(*path.first()?).map(|field| &field.kind)
            }
            _ => None,
        }
    }

    fn integer(&mut self, number: &serde_json::Number, least: i64, most: i64, name: &str) -> Option<Value> {
        let text = json::number(number);
        match text.parse::<i64>() {
            Ok(value) if (least..=most).contains(&value) => Some(Value::from(value)),
            _ => self.mismatch(format!("number {text}"), name),
        }
    }

    fn bytes(&mut self, text: &str) -> Option<Value> {
        match crate::base64::decode(text) {
            Ok(_) => Some(Value::String(text.to_string())),
            Err(problem) => self.fail(problem),
        }
    }

    fn custom(&mut self, value: &Value, custom: Custom) -> Option<Value> {
        match (custom, value) {
            (Custom::IntOrString, Value::String(_)) | (Custom::Any(_), _) => Some(value.clone()),
            (Custom::IntOrString, Value::Number(number)) => {
                self.integer(number, i64::from(i32::MIN), i64::from(i32::MAX), "int32")
            }
            (Custom::IntOrString, _) => self.mismatch(json::kind(value).to_string(), "int32"),
            (Custom::Quantity, _) => self.quantity(value),
            (Custom::Time, Value::String(text)) => match crate::time::parse_rfc3339(text) {
                Ok(_) => Some(value.clone()),
                Err(message) => self.fail(message),
            },
            (Custom::OperatorVersion, Value::String(text)) => self.operator_version(text),
            (Custom::Time | Custom::OperatorVersion, _) => self.mismatch(json::kind(value).to_string(), "string"),
            (Custom::SchemaOrBool(_), Value::Bool(_)) => Some(value.clone()),
            (Custom::SchemaOrBool(at) | Custom::SchemaOrList(at) | Custom::SchemaOrNames(at), Value::Object(_)) => {
                self.nested(value, &Type::Struct(at))
            }
            (Custom::SchemaOrBool(_), _) => self.fail("boolean or JSON schema expected".to_string()),
            (Custom::SchemaOrList(at), Value::Array(items)) if !items.is_empty() => {
                self.nested(value, &Type::List(Box::new(Type::Struct(at))))
            }
            (Custom::SchemaOrNames(_), Value::Array(_)) => {
                self.nested(value, &Type::List(Box::new(Type::Text("string"))))
            }
            // These two decoders silently ignore anything else, and print null for it.
            (Custom::SchemaOrList(_), _) => Some(Value::Null),
            (Custom::SchemaOrNames(_), _) => Some(Value::Object(Map::new())),
        }
    }

    fn nested(&mut self, value: &Value, kind: &Type) -> Option<Value> {
        let pinned = std::mem::replace(&mut self.pinned, true);
        let decoded = self.value(value, kind, None);
        self.pinned = pinned;
        decoded
    }

    fn quantity(&mut self, value: &Value) -> Option<Value> {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => json::number(number),
            other => other.to_string(),
        };
        match quantity::check(text.trim()) {
            Ok(()) => Some(Value::String(text)),
            Err(error) => self.fail(error.to_string()),
        }
    }

    fn operator_version(&mut self, text: &str) -> Option<Value> {
        match Version::parse_tolerant(text) {
            Ok(version) => Some(Value::String(version.to_string())),
            Err(error) => self.fail(error.to_string()),
        }
    }

    fn mismatch(&mut self, value: String, go_type: &str) -> Option<Value> {
        let place = match self.outer {
            Some(outer) => format!("struct field {outer}.{}", self.fields.join(".")),
            None => "value".to_string(),
        };
        self.fail(json::mismatch(&value, &place, go_type))
    }

    fn fail(&mut self, message: String) -> Option<Value> {
        let is_wanted = match &self.all {
            Some(all) => all.len() < MOST_MISFITS,
            None => self.error.is_none(),
        };
        if is_wanted {
            let parts = self.pointer.iter().map(|part| format!("/{}", pointer_part(part)));
            let pointer = parts.collect::<String>();
            let error = DecodeError { message, pointer };
            match &mut self.all {
                Some(all) => all.push(error),
                None => self.error = Some(error),
            }
        }
        None
    }
}

/// The Go name of a field's list or map type, if it is a named type and the value does not match it.
fn named_mismatch<'t>(
    table: &'t Structs,
    entry: &'t Struct,
    path: &[usize],
    kind: &Type,
    value: &Value,
) -> Option<&'static str> {
    let misfit = match through_pointers(kind) {
        Type::List(_) => !value.is_array(),
        Type::Map(_) => !value.is_object(),
        _ => false,
    };
    if !misfit || value.is_null() {
        return None;
    }
    let mut at = entry;
    for (depth, step) in path.iter().enumerate() {
        let field = at.fields.get(*step)?;
        match field.kind {
            Type::Struct(inner) if depth + 1 < path.len() => at = table.at(inner)?,
            _ => return field.named,
        }
    }
    None
}

/// The field that a key means: the exact name first, then any other case.
pub fn lookup<'s>(entry: &'s Struct, key: &str) -> Option<(&'static str, &'s [usize])> {
    if let Some((name, path)) = entry.by_name.get_key_value(key) {
        return Some((name, path));
    }
    let mut folded: Vec<_> = entry
        .by_name
        .iter()
        .filter(|(name, _)| json::names_field(key, name))
        .collect();
    folded.sort();
    folded.first().map(|(name, path)| (**name, path.as_slice()))
}

/// Two spellings of one key fill the same field: maps are merged, anything else is replaced by the later.
fn merge(out: &mut Map<String, Value>, name: &str, decoded: Value) {
    match (out.get_mut(name), decoded) {
        (Some(Value::Object(known)), Value::Object(more)) => known.extend(more),
        (_, decoded) => {
            out.insert(name.to_string(), decoded);
        }
    }
}

fn through_pointers(kind: &Type) -> &Type {
    through_pointers_counted(kind).0
}

fn through_pointers_counted(mut kind: &Type) -> (&Type, bool) {
    let mut pointer = false;
    while let Type::Pointer(inner) = kind {
        kind = inner;
        pointer = true;
    }
    (kind, pointer)
}

fn scalar_as_text(value: &Value) -> String {
    match value {
        Value::Number(number) if number.is_f64() => number.as_f64().map_or_else(String::new, strconv::format_g32),
        other => other.to_string(),
    }
}

/// The Go zero value of a type, for a null inside a list or a map.
fn zero(kind: &Type) -> Value {
    match kind {
        Type::Text(_) => Value::String(String::new()),
        Type::Bool => Value::Bool(false),
        Type::Int32 | Type::Int64 | Type::Float64 => Value::from(0),
        Type::Struct(_) => Value::Object(Map::new()),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_long_s_and_the_kelvin_sign_fold_as_in_go() {
        let csv = serde_json::json!({"\u{17f}pec": {"\u{212a}eywords": ["a"]}});
        let decoded = decode(&csv, "ClusterServiceVersion", false).unwrap();
        assert_eq!(decoded, serde_json::json!({"spec": {"keywords": ["a"]}}));
    }

    #[test]
    fn conversions_are_noted() {
        let converts = |csv: Value| {
            let (_, converted) = decode_noting_conversions(&csv, "ClusterServiceVersion", true).expect("decoded");
            assert_eq!(
                converted,
                !misfits(&csv, "ClusterServiceVersion", false).is_empty(),
                "{csv}"
            );
            converted
        };
        assert!(!converts(json!({ "spec": { "version": "1.0.0", "replaces": "a" } })));
        assert!(converts(json!({ "spec": { "version": "1.0.0", "replaces": 1 } })));
        assert!(converts(json!({ "metadata": { "annotations": { "a": true } } })));
    }

    fn refusal(csv: Value) -> String {
        decode(&csv, "ClusterServiceVersion", true)
            .expect_err("refused")
            .message
    }

    fn deployment(spec: Value) -> Value {
        json!({"spec": {"install": {"spec": {"deployments": [{"spec": spec}]}}}})
    }

    #[test]
    fn scalars_become_text_where_text_is_wanted_but_not_below_embedded_structs() {
        let csv = json!({"Spec": {"MinKubeVersion": 1.20, "keywords": [true, 5], "displayName": null}});
        let decoded = decode(&csv, "ClusterServiceVersion", true).expect("decoded");
        assert_eq!(
            decoded,
            json!({"spec": {"minKubeVersion": "1.2", "keywords": ["true", "5"]}})
        );
        let volume = json!({"template": {"spec": {"volumes": [{"configMap": {"name": 5}}]}}});
        assert_eq!(
            refusal(deployment(volume)),
            "json: cannot unmarshal number into Go struct field \
             ConfigMapVolumeSource.spec.install.spec.deployments.spec.template.spec.volumes.VolumeSource.configMap.LocalObjectReference.name \
             of type string"
        );
    }

    #[test]
    fn all_misfits_are_named_when_they_are_asked_for() {
        let csv = json!({"metadata": {"name": 1}, "spec": {"displayName": [], "version": "x", "replaces": {}, "provider": {"name": true}}});
        let found = misfits(&csv, "ClusterServiceVersion", true);
        let places: Vec<&str> = found.iter().map(|error| error.pointer.as_str()).collect();
        assert_eq!(places, ["/spec/displayName", "/spec/replaces", "/spec/version"]);
        let many: Vec<Value> = (0..200).map(|_| json!({"name": []})).collect();
        let csv = json!({"spec": {"maintainers": many}});
        assert_eq!(misfits(&csv, "ClusterServiceVersion", true).len(), MOST_MISFITS);
    }

    #[test]
    fn the_first_misfit_is_reported_unless_a_type_with_its_own_decoder_refuses() {
        let soft = json!({"replicas": "x", "paused": "y"});
        assert!(
            refusal(deployment(soft)).contains("DeploymentSpec.spec.install.spec.deployments.spec.paused of type bool")
        );
        let container = json!({"resources": {"limits": {"cpu": "much"}}});
        let hard = json!({"replicas": "x", "template": {"spec": {"containers": [container]}}});
        assert!(refusal(deployment(hard)).starts_with("quantities must match"));
        let requests = json!({"template": {"spec": {"containers": [{"resources": {"requests": "x"}}]}}});
        assert!(refusal(deployment(requests)).ends_with("containers.resources.requests of type v1.ResourceList"));
        let schema = json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": {"enum": "a"}}}]}});
        let refused = decode(&schema, "v1.CustomResourceDefinition", true).expect_err("refused");
        assert!(
            refused.message.ends_with("enum of type []v1.JSON"),
            "{}",
            refused.message
        );
        assert_eq!(
            refusal(json!({"spec": {"version": null}})),
            "strconv.ParseUint: parsing \"\": invalid syntax"
        );
    }
}
