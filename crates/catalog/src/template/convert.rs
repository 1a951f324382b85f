//! `catalog template convert`: from catalogs to templates.

use super::{Error, Kind};
use crate::meta;
use crate::model::BUNDLE;
use crate::render::definitions::field;
use crate::text::{Numbers, Value, stream};
use crate::write::Format;
use olmkit_go::json::Html;
use olmkit_go::json::{write_indented, write_string};
use olmkit_yaml as yaml;

/// Turns the blobs of a catalog into a basic or substitutes template.
///
/// # Errors
/// The input is not a catalog, or the kind cannot be converted to.
pub fn convert(text: &str, kind: Kind, format: Format) -> Result<String, Error> {
    let (documents, error) = stream::documents(text);
    if let Some(error) = error {
        return Err(Error(error.message));
    }
    let mut json = format!("{{\"schema\":\"{}\",\"entries\":[", kind.schema());
    for (index, document) in documents.iter().enumerate() {
        let meta = meta::read(&document.value).map_err(Error)?;
        if index > 0 {
            json.push(',');
        }
        if kind == Kind::Basic && meta.schema == BUNDLE {
            reference(&mut json, &document.value);
        } else {
            document.value.write_json(&mut json, Numbers::Float64, Html::Escape);
        }
    }
    json.push(']');
    match kind {
        Kind::Basic => {}
        Kind::Substitutes => json.push_str(",\"substitutions\":[]"),
        Kind::Semver => return Err(Error("catalogs cannot be converted to semver templates".into())),
    }
    json.push('}');
    Ok(match format {
        Format::Json => {
            let mut out = String::new();
            write_indented(&mut out, &json, "    ");
            out + "\n"
        }
        Format::Yaml => {
            let yaml = yaml::json_to_yaml(&json).map_err(|error| Error(error.to_string()))?;
            // opm ends with an empty line.
            format!("---\n{yaml}\n")
        }
    })
}

/// A bundle blob reduced to its image.
fn reference(json: &mut String, bundle: &Value<'_>) {
    json.push_str("{\"schema\":\"olm.bundle\",\"image\":");
    write_string(
        json,
        field(bundle, "image").and_then(Value::as_str).unwrap_or_default(),
        Html::Escape,
    );
    json.push('}');
}
