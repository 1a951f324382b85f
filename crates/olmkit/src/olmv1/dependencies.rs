//! Dependencies on other packages and APIs. OLM v1 resolves none of them, so it refuses a bundle that has one.

use serde_json::Value;
use serde_json::value::RawValue;

use super::read::{Bundle, Place};
use crate::bundle::load::{Entry, Tree};
use crate::catalog::model;
use crate::object::pointer_part;
use crate::yaml::{self, Node};

/// The types of properties that are dependencies.
pub(super) const REFUSED: [&str; 3] = [
    model::PROPERTY_PACKAGE_REQUIRED,
    model::PROPERTY_GVK_REQUIRED,
    "olm.constraint",
];

/// A property of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Property {
    pub kind: String,
    /// Compact JSON.
    pub value: String,
}

impl Property {
    /// As Go prints it inside a list.
    pub(super) fn json(&self) -> String {
        format!(
            "{{\"type\":{},\"value\":{}}}",
            olmkit_go::json::string(&self.kind),
            self.value
        )
    }
}

/// The properties of an annotation.
pub(super) fn parse(text: &str) -> Result<Vec<Property>, String> {
    if let Err(error) = olmkit_go::json::check(text) {
        return Err(error.message);
    }
    let entries: Option<Vec<&RawValue>> = serde_json::from_str(text).map_err(|_| {
        let value: Value = serde_json::from_str(text).unwrap_or_default();
        let kind = olmkit_go::json::kind(&value);
        format!("json: cannot unmarshal {kind} into Go value of type []property.Property")
    })?;
    entries
        .unwrap_or_default()
        .into_iter()
        .map(|entry| {
            let value: Value = serde_json::from_str(entry.get()).unwrap_or_default();
            let mut property = property(&value)?;
            // The value stays as it is written, without blanks.
            if let Ok(Raw { value: Some(raw) }) = serde_json::from_str(entry.get()) {
                property.value = compact(raw.get());
            }
            Ok(property)
        })
        .collect()
}

#[derive(serde::Deserialize)]
struct Raw<'a> {
    #[serde(borrow)]
    value: Option<&'a RawValue>,
}

/// JSON without blanks, and with what HTML knows escaped, as Go prints raw JSON.
fn compact(json: &str) -> String {
    let (mut out, mut in_text, mut escaped) = (String::with_capacity(json.len()), false, false);
    for letter in json.chars() {
        match letter {
            ' ' | '\t' | '\n' | '\r' if !in_text => continue,
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04x}", u32::from(letter))),
            _ => out.push(letter),
        }
        if letter == '"' && !escaped {
            in_text = !in_text;
        }
        escaped = in_text && letter == '\\' && !escaped;
    }
    out
}

/// One property.
pub(super) fn property(value: &Value) -> Result<Property, String> {
    let fields = match value {
        Value::Object(fields) => fields,
        Value::Null => return Err("invalid property: type not set".to_owned()),
        other => {
            let kind = olmkit_go::json::kind(other);
            return Err(format!(
                "json: cannot unmarshal {kind} into Go value of type property.property"
            ));
        }
    };
    let kind = match fields.get("type") {
        Some(Value::String(kind)) => kind.clone(),
        None | Some(Value::Null) => String::new(),
        Some(other) => {
            let kind = olmkit_go::json::kind(other);
            return Err(format!(
                "json: cannot unmarshal {kind} into Go struct field property.type of type string"
            ));
        }
    };
    if kind.is_empty() {
        return Err("invalid property: type not set".to_owned());
    }
    match fields.get("value") {
        None | Some(Value::Null) => Err("invalid property: value not set".to_owned()),
        Some(value) => Ok(Property {
            kind,
            value: olmkit_go::json::marshal(value),
        }),
    }
}

/// A dependency that OLM v1 refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dependency {
    /// The type of the property in a catalog, such as `olm.gvk.required`.
    pub property: String,
    /// Where it is declared.
    pub place: Place,
}

impl Dependency {
    /// OLM v1's text for a bundle of this name.
    #[must_use]
    pub fn message(&self, bundle: &str) -> String {
        format!(
            "bundle \"{bundle}\" has a dependency declared via property \"{}\" which is currently not supported",
            self.property
        )
    }
}

/// The type that a property of a bundle directory has in a catalog, if OLM v1 refuses that.
fn refused(kind: &str, in_dependencies: bool) -> Option<&str> {
    let kind = match kind {
        model::PROPERTY_PACKAGE if in_dependencies => model::PROPERTY_PACKAGE_REQUIRED,
        model::PROPERTY_GVK if in_dependencies => model::PROPERTY_GVK_REQUIRED,
        other => other,
    };
    REFUSED.contains(&kind).then_some(kind)
}

/// Whether a text of the annotation `olm.properties` holds a dependency.
#[must_use]
pub fn is_in_annotation(text: &str) -> bool {
    let properties = parse(text).unwrap_or_default();
    properties
        .iter()
        .any(|property| refused(&property.kind, false).is_some())
}

/// The dependencies of a bundle, the one that OLM v1 names in front. As opm does, any file of `metadata/` is read, and the first
/// with entries counts.
#[must_use]
pub fn dependencies(bundle: &Bundle, tree: &Tree) -> Vec<Dependency> {
    let mut found = Vec::new();
    let files: Vec<(String, Node)> = tree
        .children("metadata")
        .filter_map(|(name, entry)| match entry {
            Entry::File(bytes) => Some((format!("metadata/{name}"), yaml::parse(bytes).ok()?)),
            _ => None,
        })
        .collect();
    for (key, in_dependencies) in [("dependencies", true), ("properties", false)] {
        let entries = |node: &Node| node.get(key).map(|list| list.items().to_vec()).unwrap_or_default();
        let listed = files.iter().map(|(file, node)| (file, entries(node)));
        let Some((file, entries)) = listed.into_iter().find(|(_, entries)| !entries.is_empty()) else {
            continue;
        };
        for (at, entry) in entries.iter().enumerate() {
            let kind = entry.get("type").and_then(Node::as_str).unwrap_or_default();
            if let Some(property) = refused(kind, in_dependencies) {
                found.push(Dependency {
                    property: property.to_owned(),
                    place: Place {
                        file: file.clone(),
                        position: Some(entry.start),
                        pointer: format!("/{key}/{at}"),
                    },
                });
            }
        }
    }
    for kind in ["customresourcedefinitions", "apiservicedefinitions"] {
        let pointer = format!("/spec/{kind}/required");
        let required = bundle.csv.value.pointer(&pointer).and_then(Value::as_array);
        for at in 0..required.map_or(0, Vec::len) {
            found.push(Dependency {
                property: model::PROPERTY_GVK_REQUIRED.to_owned(),
                place: bundle.csv.place(&format!("{pointer}/{at}")),
            });
        }
    }
    let annotation = format!("/metadata/annotations/{}", pointer_part("olm.properties"));
    for property in parse(bundle.csv.text(&annotation)).unwrap_or_default() {
        if let Some(kind) = refused(&property.kind, false) {
            found.push(Dependency {
                property: kind.to_owned(),
                place: bundle.csv.place(&annotation),
            });
        }
    }
    found.sort_by(|left, right| left.property.cmp(&right.property));
    found
}
