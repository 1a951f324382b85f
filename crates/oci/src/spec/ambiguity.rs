//! Manifest or index: the kind of a document, and documents that readers understand differently.

use std::fmt;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::media_type::{self, is_index, is_manifest};
use crate::json;

/// The fields that decide how a manifest or index is understood.
const DECISIVE: [&str; 6] = ["mediaType", "config", "layers", "manifests", "fsLayers", "history"];

/// Checks that a manifest or index has only the fields of its `media_type`. A document with the fields of both is a manifest for
/// one reader and an index for another (CVE-2021-41190). Go programs accept field names in any case, so a name in
/// another case counts too.
///
/// # Errors
/// The reason why the document is ambiguous.
pub(crate) fn check_unambiguous(bytes: &[u8], media_type: &str) -> Result<(), String> {
    let bytes = json::repair(bytes);
    let Ok(Fields(fields)) = serde_json::from_slice::<Fields<'_>>(&bytes) else {
        // The reader of the document reports the syntax error.
        return Ok(());
    };
    let allowed: &[&str] = if is_index(media_type) {
        &["mediaType", "manifests"]
    } else if is_manifest(media_type) {
        &["mediaType", "config", "layers"]
    } else {
        return Ok(());
    };
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for (name, value) in fields {
        let folded = fold(&name);
        let Some(meant) = DECISIVE.into_iter().find(|decisive| fold(decisive) == folded) else {
            continue;
        };
        // Readers differ in what they make of a field that is there twice: the last value, the first, or a mixture.
        if seen.iter().any(|(have, text)| *have == meant && *text != value.get()) {
            return Err(format!("it has the field {meant:?} twice"));
        }
        seen.push((meant, value.get()));
        let is_null = value.get() == "null";
        if meant == "mediaType"
            && let Ok(kind) = serde_json::from_str::<String>(value.get())
            && (is_index(&kind) && is_manifest(media_type) || is_manifest(&kind) && is_index(media_type))
        {
            return Err(format!("it calls itself {kind:?}, but is used as {media_type:?}"));
        }
        if !is_null && !allowed.contains(&meant) {
            return Err(format!(
                "it has the field {name:?}, which a document of type {media_type:?} must not have"
            ));
        }
        if !is_null && name != meant {
            return Err(format!("it spells the field {meant:?} as {name:?}"));
        }
    }
    Ok(())
}

/// The media type of a manifest: its own field if that is the type of an image, else the header, else any own field, else a
/// guess from its fields.
pub(crate) fn media_type_of(bytes: &[u8], header: Option<&str>) -> Option<String> {
    let document: Value = json::parse(bytes).ok()?;
    let own = document.get("mediaType").and_then(Value::as_str);
    let own = own.filter(|own| !own.is_empty());
    let known = own.filter(|own| is_manifest(own) || is_index(own));
    if let Some(kind) = known.or(header).or(own) {
        return Some(kind.to_owned());
    }
    if document.get("manifests").is_some() {
        Some(media_type::OCI_INDEX.to_owned())
    } else if document.get("config").is_some() {
        Some(media_type::OCI_MANIFEST.to_owned())
    } else if document.get("fsLayers").is_some() {
        Some(media_type::DOCKER_SCHEMA_1.to_owned())
    } else {
        None
    }
}

/// A field name as Go's JSON decoder compares it.
fn fold(name: &str) -> String {
    name.chars()
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .collect()
}

/// The top-level fields of a JSON object in their order, with repeated names.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Fields<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}
