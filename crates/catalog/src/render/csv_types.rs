//! Serialization of ClusterServiceVersion data through its Go types: unknown fields are dropped, field names match in any
//! case, the order is that of the Go struct.

use super::definitions::field;
use crate::decode::{Mismatch, Place};
use crate::text::{Numbers, Value};
use olmkit_go::json::{Html, write_string};
use olmkit_go::structs::{Custom, Field, Struct, Structs, Type, structs};

/// Writes values through their Go types and collects mismatches.
pub struct TypedWriter {
    /// The compact JSON written so far.
    pub out: String,
    /// How strings are escaped.
    pub html: Html,
    /// The first mismatch.
    pub mismatch: Mismatch,
    table: &'static Structs,
}

impl TypedWriter {
    /// Starts with empty output.
    pub fn new(html: Html) -> Self {
        TypedWriter {
            out: String::new(),
            html,
            mismatch: Mismatch::default(),
            table: structs(),
        }
    }

    /// Writes a name and its value, unless the value is empty and omitted if empty.
    pub fn field(&mut self, name: &str, field: &Field, value: Option<&Value<'_>>, place: &Place<'_>) {
        let start = self.out.len();
        self.name(name);
        let value = value.unwrap_or(&Value::Null);
        if !self.value(&field.kind, value, place) && field.omit_empty {
            self.out.truncate(start);
        }
    }

    /// Writes the name of the next field of an object.
    pub fn name(&mut self, name: &str) {
        if !self.out.ends_with('{') {
            self.out.push(',');
        }
        write_string(&mut self.out, name, self.html);
        self.out.push(':');
    }

    /// Writes a string.
    pub fn text(&mut self, text: &str) {
        write_string(&mut self.out, text, self.html);
    }

    /// Writes a value as its Go type. Returns true if it is not empty for `omitempty`.
    fn value(&mut self, kind: &Type, value: &Value<'_>, place: &Place<'_>) -> bool {
        match (kind, value) {
            (Type::Custom(Custom::Any(_)), value) => {
                value.write_json(&mut self.out, Numbers::Keep, Html::Escape);
                *value != Value::Null
            }
            (Type::Text(_), Value::String(text)) => {
                self.text(text);
                !text.is_empty()
            }
            (Type::Bool, Value::Bool(flag)) => {
                self.out.push_str(if *flag { "true" } else { "false" });
                *flag
            }
            (Type::Int32, Value::Integer(number)) if i32::try_from(*number).is_ok() => {
                self.out.push_str(&number.to_string());
                *number != 0
            }
            (Type::Map(inner), Value::Mapping(entries)) => {
                self.out.push('{');
                for (key, value) in entries {
                    self.name(key);
                    self.value(inner, value, place);
                }
                self.out.push('}');
                !entries.is_empty()
            }
            (Type::List(inner), Value::Sequence(items)) => {
                self.out.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        self.out.push(',');
                    }
                    self.value(inner, item, place);
                }
                self.out.push(']');
                !items.is_empty()
            }
            (Type::Struct(at), value) => {
                if let Some(structure) = self.table.at(*at) {
                    self.structure(structure, value, place);
                }
                true
            }
            (kind, Value::Null) => {
                self.out.push_str(zero(kind));
                false
            }
            (kind, other) => {
                self.mismatch.report(other, &self.table.go_name(kind), place);
                self.out.push_str(zero(kind));
                false
            }
        }
    }

    fn structure(&mut self, structure: &Struct, value: &Value<'_>, place: &Place<'_>) {
        if !matches!(value, Value::Mapping(_) | Value::Null) {
            self.mismatch.report(value, structure.go_name, place);
        }
        self.out.push('{');
        for wanted in &structure.fields {
            let inner = place.field(structure.name, wanted.name);
            self.field(wanted.name, wanted, field(value, wanted.name), &inner);
        }
        self.out.push('}');
    }
}

/// The printed zero value of a type.
fn zero(kind: &Type) -> &'static str {
    match kind {
        Type::Text(_) => "\"\"",
        Type::Bool => "false",
        Type::Int32 | Type::Int64 | Type::Float64 => "0",
        _ => "null",
    }
}
