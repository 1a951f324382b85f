//! The Go types of a ClusterServiceVersion, as far as catalogs contain them, and serialization through them: unknown
//! fields are dropped, field names match in any case, the order is that of the Go struct.

use super::definitions::field;
use crate::decode::{Mismatch, Place};
use crate::text::{Numbers, Value};
use olmkit_go::json::Html;
use olmkit_go::json::write_string;

/// The Go type of a field.
#[allow(missing_docs)]
pub enum Shape {
    Text,
    Flag,
    Int32,
    Texts,
    TextMap,
    /// Any JSON, unchanged.
    Raw,
    Struct(&'static Structure),
    List(&'static Structure),
}

/// A Go struct.
pub struct Structure {
    name: &'static str,
    fields: &'static [Field],
}

/// A field of a Go struct.
pub struct Field {
    /// Its JSON name.
    pub name: &'static str,
    /// Its type.
    pub shape: Shape,
    /// Left out when empty.
    omit: bool,
}

/// A field that is always written.
pub const fn required(name: &'static str, shape: Shape) -> Field {
    Field {
        name,
        shape,
        omit: false,
    }
}

/// A field that is omitted when empty.
pub const fn optional(name: &'static str, shape: Shape) -> Field {
    Field {
        name,
        shape,
        omit: true,
    }
}

/// Go's `AppLink`.
pub const LINK: Structure = Structure {
    name: "AppLink",
    fields: &[optional("name", Shape::Text), optional("url", Shape::Text)],
};

/// Go's `Maintainer`.
pub const MAINTAINER: Structure = Structure {
    name: "Maintainer",
    fields: &[optional("name", Shape::Text), optional("email", Shape::Text)],
};

/// Go's `InstallMode`.
pub const INSTALL_MODE: Structure = Structure {
    name: "InstallMode",
    fields: &[required("type", Shape::Text), required("supported", Shape::Flag)],
};

/// Go's `GroupVersionKind`.
pub const NATIVE_API: Structure = Structure {
    name: "GroupVersionKind",
    fields: &[
        required("group", Shape::Text),
        required("version", Shape::Text),
        required("kind", Shape::Text),
    ],
};

const RESOURCE: Structure = Structure {
    name: "APIResourceReference",
    fields: &[
        required("name", Shape::Text),
        required("kind", Shape::Text),
        required("version", Shape::Text),
    ],
};

const DESCRIPTOR: Structure = Structure {
    name: "SpecDescriptor",
    fields: &[
        required("path", Shape::Text),
        optional("displayName", Shape::Text),
        optional("description", Shape::Text),
        optional("x-descriptors", Shape::Texts),
        optional("value", Shape::Raw),
    ],
};

const CRD: Structure = Structure {
    name: "CRDDescription",
    fields: &[
        required("name", Shape::Text),
        required("version", Shape::Text),
        required("kind", Shape::Text),
        optional("displayName", Shape::Text),
        optional("description", Shape::Text),
        optional("resources", Shape::List(&RESOURCE)),
        optional("statusDescriptors", Shape::List(&DESCRIPTOR)),
        optional("specDescriptors", Shape::List(&DESCRIPTOR)),
        optional("actionDescriptors", Shape::List(&DESCRIPTOR)),
    ],
};

const API_SERVICE: Structure = Structure {
    name: "APIServiceDescription",
    fields: &[
        required("name", Shape::Text),
        required("group", Shape::Text),
        required("version", Shape::Text),
        required("kind", Shape::Text),
        optional("deploymentName", Shape::Text),
        optional("containerPort", Shape::Int32),
        optional("displayName", Shape::Text),
        optional("description", Shape::Text),
        optional("resources", Shape::List(&RESOURCE)),
        optional("statusDescriptors", Shape::List(&DESCRIPTOR)),
        optional("specDescriptors", Shape::List(&DESCRIPTOR)),
        optional("actionDescriptors", Shape::List(&DESCRIPTOR)),
    ],
};

/// Go's `CustomResourceDefinitions`.
pub const CRDS: Structure = Structure {
    name: "CustomResourceDefinitions",
    fields: &[
        optional("owned", Shape::List(&CRD)),
        optional("required", Shape::List(&CRD)),
    ],
};

/// Go's `APIServiceDefinitions`.
pub const API_SERVICES: Structure = Structure {
    name: "APIServiceDefinitions",
    fields: &[
        optional("owned", Shape::List(&API_SERVICE)),
        optional("required", Shape::List(&API_SERVICE)),
    ],
};

/// Writes values through their Go types and collects mismatches.
pub struct TypedWriter {
    /// The compact JSON written so far.
    pub out: String,
    /// How strings are escaped.
    pub html: Html,
    /// The first mismatch.
    pub mismatch: Mismatch,
}

impl TypedWriter {
    /// Starts with empty output.
    pub fn new(html: Html) -> Self {
        TypedWriter {
            out: String::new(),
            html,
            mismatch: Mismatch::default(),
        }
    }

    /// Writes a name and its value, unless the value is empty and omitted if empty.
    pub fn field(&mut self, name: &str, field: &Field, value: Option<&Value<'_>>, place: &Place<'_>) {
        let start = self.out.len();
        self.name(name);
        let value = value.unwrap_or(&Value::Null);
        if !self.shape(&field.shape, value, place) && field.omit {
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

    /// Writes a value in its shape. Returns true if it is not the Go zero value.
    pub fn shape(&mut self, shape: &Shape, value: &Value<'_>, place: &Place<'_>) -> bool {
        match (shape, value) {
            (Shape::Raw, value) => {
                value.write_json(&mut self.out, Numbers::Keep, Html::Escape);
                *value != Value::Null
            }
            (Shape::Text, Value::String(text)) => {
                self.text(text);
                !text.is_empty()
            }
            (Shape::Flag, Value::Bool(flag)) => {
                self.out.push_str(if *flag { "true" } else { "false" });
                *flag
            }
            (Shape::Int32, Value::Integer(number)) if i32::try_from(*number).is_ok() => {
                self.out.push_str(&number.to_string());
                *number != 0
            }
            (Shape::Texts, Value::Sequence(items)) => {
                self.list(items, |writer, item| {
                    writer.shape(&Shape::Text, item, place);
                });
                !items.is_empty()
            }
            (Shape::TextMap, Value::Mapping(entries)) => {
                self.out.push('{');
                for (key, value) in entries {
                    self.name(key);
                    self.shape(&Shape::Text, value, place);
                }
                self.out.push('}');
                !entries.is_empty()
            }
            (Shape::List(structure), Value::Sequence(items)) => {
                self.list(items, |writer, item| writer.structure(structure, item, place));
                !items.is_empty()
            }
            (Shape::Struct(structure), value) => {
                self.structure(structure, value, place);
                true
            }
            (shape, Value::Null) => {
                self.out.push_str(shape.zero());
                false
            }
            (shape, other) => {
                self.mismatch.report(other, &shape.go_name(), place);
                self.out.push_str(shape.zero());
                false
            }
        }
    }

    fn list(&mut self, items: &[Value<'_>], mut write: impl FnMut(&mut Self, &Value<'_>)) {
        self.out.push('[');
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.out.push(',');
            }
            write(self, item);
        }
        self.out.push(']');
    }

    fn structure(&mut self, structure: &Structure, value: &Value<'_>, place: &Place<'_>) {
        if !matches!(value, Value::Mapping(_) | Value::Null) {
            self.mismatch
                .report(value, &format!("v1alpha1.{}", structure.name), place);
        }
        self.out.push('{');
        for wanted in structure.fields {
            let inner = place.field(structure.name, wanted.name);
            self.field(wanted.name, wanted, field(value, wanted.name), &inner);
        }
        self.out.push('}');
    }
}

impl Shape {
    /// Returns true if a value fits, without writing it.
    pub fn fits(&self, value: &Value<'_>) -> bool {
        let structure_fits = |structure: &Structure, value: &Value<'_>| match value {
            Value::Null => true,
            Value::Mapping(_) => structure.fields.iter().all(|wanted| {
                field(value, wanted.name).is_none_or(|value| *value == Value::Null || wanted.shape.fits(value))
            }),
            _ => false,
        };
        let text = |value: &Value<'_>| matches!(value, Value::String(_) | Value::Null);
        match (self, value) {
            (Shape::Raw, _) | (Shape::Text, Value::String(_)) | (Shape::Flag, Value::Bool(_)) | (_, Value::Null) => {
                true
            }
            (Shape::Int32, Value::Integer(number)) => i32::try_from(*number).is_ok(),
            (Shape::Texts, Value::Sequence(items)) => items.iter().all(text),
            (Shape::TextMap, Value::Mapping(entries)) => entries.iter().all(|(_, value)| text(value)),
            (Shape::Struct(structure), value) => structure_fits(structure, value),
            (Shape::List(structure), Value::Sequence(items)) => {
                items.iter().all(|item| structure_fits(structure, item))
            }
            _ => false,
        }
    }

    fn go_name(&self) -> String {
        match self {
            Shape::Text => "string".into(),
            Shape::Flag => "bool".into(),
            Shape::Int32 => "int32".into(),
            Shape::Texts => "[]string".into(),
            Shape::TextMap => "map[string]string".into(),
            Shape::Raw => "json.RawMessage".into(),
            Shape::Struct(structure) => format!("v1alpha1.{}", structure.name),
            Shape::List(structure) => format!("[]v1alpha1.{}", structure.name),
        }
    }

    fn zero(&self) -> &'static str {
        match self {
            Shape::Text => "\"\"",
            Shape::Flag => "false",
            Shape::Int32 => "0",
            Shape::Struct(_) => "{}",
            Shape::Texts | Shape::TextMap | Shape::Raw | Shape::List(_) => "null",
        }
    }
}
