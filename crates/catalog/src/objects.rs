//! Manifests that a bundle carries inline, in `olm.bundle.object` properties.

use super::decode::{Mismatch, Place, fields};
use super::model::{Bundle, PROPERTY_BUNDLE_OBJECT, Property};
use super::text::{Numbers, Value, documents, stream};
use olmkit_go::json::Html;
use olmkit_go::json::names_field;

/// Why an inline object cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The property is not `{data: <base64>}`.
    Property(String),
    /// The data is neither JSON nor YAML.
    Content(String),
}

impl Error {
    /// opm's message for the property at an index.
    pub fn at(&self, index: usize) -> String {
        match self {
            Error::Property(text) => format!("parse property at index {index} as bundle object: {text}"),
            Error::Content(text) => format!("convert bundle object property at index {index} to JSON: {text}"),
        }
    }
}

/// The JSON of an inline object: unchanged if it begins with `{`, else converted from YAML.
///
/// # Errors
/// See [`Error`].
pub fn decode(property: &Property) -> Result<String, Error> {
    let bytes = data(property)?;
    let text = String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    if text.trim_start().starts_with('{') {
        return Ok(text);
    }
    let (documents, error) = documents(&text);
    if let Some(error) = error {
        return Err(Error::Content(error.message));
    }
    let value = documents.first().map_or(&Value::Null, |document| &document.value);
    Ok(value.to_json(Numbers::Keep, Html::Escape))
}

/// The decoded bytes of an inline object.
fn data(property: &Property) -> Result<Vec<u8>, Error> {
    let text = property.value.as_deref().unwrap_or_default();
    // The usual form, without building a tree of it: {"data":"…"}.
    if let Some(encoded) = text
        .strip_prefix("{\"data\":\"")
        .and_then(|rest| rest.strip_suffix("\"}"))
        && !encoded.contains(['"', '\\'])
    {
        return olmkit_go::base64::decode(encoded).map_err(Error::Property);
    }
    let value = stream::json(text).map_err(|error| {
        Error::Property(if error.is_eof() {
            "unexpected end of JSON input".into()
        } else {
            error.to_string()
        })
    })?;
    let root = Place::root("property.bundleObject");
    let mut mismatch = Mismatch::default();
    let mut bytes = Vec::new();
    for (key, value) in fields(&value, "property.bundleObject", &root, &mut mismatch) {
        if names_field(key, "data") {
            match value {
                Value::Null => {}
                Value::String(text) => match olmkit_go::base64::decode(text) {
                    Ok(decoded) => bytes = decoded,
                    Err(error) => mismatch.report_text(error),
                },
                other => mismatch.report(other, "[]uint8", &root.field("bundleObject", "data")),
            }
        }
    }
    mismatch.finish(bytes).map_err(Error::Property)
}

/// The JSON of all inline objects of a bundle, in property order. Objects that do not decode are omitted.
/// [`super::blob::check_objects`] reports them.
pub fn inline(bundle: &Bundle) -> Vec<String> {
    bundle
        .properties
        .iter()
        .filter(|property| property.kind == PROPERTY_BUNDLE_OBJECT)
        .filter_map(|property| decode(property).ok())
        .collect()
}

/// The first object whose kind is ClusterServiceVersion.
pub fn csv(objects: &[String]) -> Option<&str> {
    objects.iter().map(String::as_str).find(|object| {
        // Most objects need no second look.
        object.contains("ClusterServiceVersion")
            && serde_json::from_str::<Kind>(object).is_ok_and(|object| object.kind == "ClusterServiceVersion")
    })
}

#[derive(serde::Deserialize)]
struct Kind {
    #[serde(default)]
    kind: String,
}
