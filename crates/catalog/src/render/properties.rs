//! The properties of a rendered bundle.

use std::collections::BTreeSet;
use std::path::Path;

use super::Error;
use super::definitions::{Api, field};
use super::manifests::{Manifest, file_names, first_document};
use crate::model::{
    PROPERTY_BUNDLE_OBJECT, PROPERTY_GVK, PROPERTY_GVK_REQUIRED, PROPERTY_PACKAGE, PROPERTY_PACKAGE_REQUIRED, Property,
};
use crate::property::read_strings;
use crate::text::{Numbers, Value};
use olmkit_base::limits;
use olmkit_go::json::Html;
use olmkit_go::json::write_string;

/// Contents of a bundle's `metadata/` directory.
#[derive(Debug, Clone, Default)]
pub struct Metadata {
    /// The package, from annotations.yaml.
    pub package: String,
    /// Entries of dependencies.yaml.
    pub dependencies: Vec<Property>,
    /// Entries of properties.yaml.
    pub properties: Vec<Property>,
}

const ANNOTATIONS: [&str; 3] = [
    "operators.operatorframework.io.bundle.package.v1",
    "operators.operatorframework.io.bundle.channels.v1",
    "operators.operatorframework.io.bundle.channel.default.v1",
];

/// Reads `metadata/`. File names do not matter: for each role the first matching file in name order is used.
///
/// # Errors
/// The directory cannot be read, or no file has annotations.
pub fn metadata(directory: &Path) -> Result<Metadata, Error> {
    let mut metadata = Metadata::default();
    let mut annotations = None;
    for name in file_names(directory)? {
        let Ok(bytes) = limits::read_file(&directory.join(name), &limits::BUNDLE_BYTES) else {
            continue;
        };
        let Some(value) = first_document(&bytes) else { continue };
        if annotations.is_none() {
            annotations = annotated_package(&value);
        }
        if metadata.dependencies.is_empty() {
            metadata.dependencies = list(&value, "dependencies").unwrap_or_default();
        }
        if metadata.properties.is_empty() {
            metadata.properties = list(&value, "properties").unwrap_or_default();
        }
    }
    metadata.package = annotations.ok_or_else(|| Error::Bundle("Could not find annotations file".into()))?;
    Ok(metadata)
}

/// The package of an annotations file: one that has a package, channels or a default channel.
fn annotated_package(file: &Value<'_>) -> Option<String> {
    let annotations = field(file, "annotations")?;
    let [package, channels, default] =
        ANNOTATIONS.map(|key| field(annotations, key).map_or(Some(String::new()), scalar));
    let (package, channels, default) = (package?, channels?, default?);
    let found = !package.is_empty() || !channels.is_empty() || !default.is_empty();
    found.then_some(package)
}

/// A scalar as a string: unquoted numbers and booleans become strings if the Go type is a string.
fn scalar(value: &Value<'_>) -> Option<String> {
    match value {
        Value::Null => Some(String::new()),
        Value::String(text) => Some(text.as_ref().to_owned()),
        Value::Sequence(_) | Value::Mapping(_) => None,
        other => Some(other.to_json(Numbers::Keep, Html::Plain)),
    }
}

/// The entries of a dependencies or properties file.
fn list(file: &Value<'_>, key: &str) -> Option<Vec<Property>> {
    let Value::Sequence(items) = field(file, key)? else {
        return None;
    };
    items
        .iter()
        .map(|item| {
            let Value::Mapping(_) = item else { return None };
            Some(Property {
                kind: field(item, "type").map_or(Some(String::new()), scalar)?,
                value: field(item, "value").map(|value| value.to_json(Numbers::Keep, Html::Escape)),
            })
        })
        .collect()
}

/// The properties listed in the CSV's annotation `olm.properties`. Nothing if it is not such a list, as in opm.
fn annotation(csv: &Value<'_>) -> Vec<Property> {
    #[derive(serde::Deserialize)]
    struct Entry<'a> {
        #[serde(default, rename = "type")]
        kind: String,
        #[serde(borrow)]
        value: Option<&'a serde_json::value::RawValue>,
    }
    let annotation = field(csv, "metadata")
        .and_then(|metadata| field(metadata, "annotations"))
        .and_then(|annotations| annotations.get("olm.properties"))
        .and_then(Value::as_str)
        .unwrap_or_default();
    let entries: Vec<Entry<'_>> = serde_json::from_str(annotation).unwrap_or_default();
    entries
        .into_iter()
        .map(|entry| Property {
            kind: entry.kind,
            value: entry.value.map(|value| compact(value.get())),
        })
        .collect()
}

/// JSON without white space between tokens. The order of keys is kept.
fn compact(json: &str) -> String {
    let (mut out, mut quoted, mut escaped) = (String::with_capacity(json.len()), false, false);
    for character in json.chars() {
        if quoted || !character.is_ascii_whitespace() {
            out.push(character);
        }
        quoted = quoted && (escaped || character != '"') || !quoted && character == '"';
        escaped = quoted && !escaped && character == '\\';
    }
    out
}

/// Everything that becomes properties.
pub struct Sources<'s> {
    /// The bundle's manifests.
    pub manifests: &'s [Manifest],
    /// The ClusterServiceVersion.
    pub csv: &'s Value<'static>,
    /// Contents of `metadata/`.
    pub metadata: &'s Metadata,
    /// APIs that the bundle provides.
    pub provided: &'s BTreeSet<Api>,
    /// APIs that the CSV requires.
    pub required: &'s BTreeSet<Api>,
}

/// The properties of a bundle, in opm's order: by type and value, inline objects last.
///
/// # Errors
/// A property or dependency of a known type does not fit it. The CSV's version or release is of the wrong type.
pub fn collect(sources: &Sources<'_>, name: &str) -> Result<Vec<Property>, Error> {
    let derived = package_property(sources.csv, &sources.metadata.package)?;
    let fail = |error: String| Error::Bundle(format!("get properties for bundle \"{name}\": {error}"));
    let mut package = derived;
    let mut gvks: BTreeSet<[String; 3]> = sources.provided.iter().map(gvk).collect();
    let mut gvks_required: BTreeSet<[String; 3]> = sources.required.iter().map(gvk).collect();
    let mut properties: Vec<Property> = Vec::new();
    let from_file = sources.metadata.properties.iter().cloned();
    for (index, property) in from_file.chain(annotation(sources.csv)).enumerate() {
        match property.kind.as_str() {
            PROPERTY_GVK => {
                gvks.insert(read_gvk(&property, index, "property.GVK").map_err(fail)?);
            }
            // The annotation's beats ours, ours beats that of the file.
            PROPERTY_PACKAGE if index < sources.metadata.properties.len() => {}
            PROPERTY_PACKAGE => package = property,
            _ => properties.push(property),
        }
    }
    for (index, dependency) in sources.metadata.dependencies.iter().enumerate() {
        match dependency.kind.as_str() {
            PROPERTY_GVK => {
                gvks_required.insert(read_gvk(dependency, index, "property.GVK").map_err(fail)?);
            }
            PROPERTY_PACKAGE => properties.push(package_required(dependency, index).map_err(fail)?),
            _ => properties.push(dependency.clone()),
        }
    }
    properties.push(package);
    properties.extend(gvks.iter().map(|gvk| gvk_property(PROPERTY_GVK, gvk)));
    properties.extend(gvks_required.iter().map(|gvk| gvk_property(PROPERTY_GVK_REQUIRED, gvk)));
    properties.sort_by(|left, right| (&left.kind, &left.value).cmp(&(&right.kind, &right.value)));
    properties.dedup();
    let mut objects: Vec<Property> = sources.manifests.iter().map(object_property).collect();
    objects.sort_by(|left, right| left.value.cmp(&right.value));
    properties.extend(objects);
    Ok(properties)
}

fn gvk(api: &Api) -> [String; 3] {
    [api.group.clone(), api.kind.clone(), api.version.clone()]
}

fn gvk_property(kind: &str, [group, api_kind, version]: &[String; 3]) -> Property {
    object(kind, &[("group", group), ("kind", api_kind), ("version", version)])
}

/// A property whose value is a map of strings, in the given order.
fn object(kind: &str, entries: &[(&str, &str)]) -> Property {
    let mut json = String::from("{");
    for (index, (name, value)) in entries.iter().enumerate() {
        if index > 0 {
            json.push(',');
        }
        write_string(&mut json, name, Html::Plain);
        json.push(':');
        write_string(&mut json, value, Html::Plain);
    }
    json.push('}');
    Property {
        kind: kind.to_owned(),
        value: Some(json),
    }
}

fn object_property(manifest: &Manifest) -> Property {
    use base64::Engine as _;
    let data = base64::engine::general_purpose::STANDARD.encode(manifest.json());
    Property {
        kind: PROPERTY_BUNDLE_OBJECT.into(),
        value: Some(format!("{{\"data\":\"{data}\"}}")),
    }
}

/// `olm.package` from the annotation's package and the CSV's version, letter by letter, and release.
fn package_property(csv: &Value<'_>, package: &str) -> Result<Property, Error> {
    let fail = |text: &str| Error::Bundle(format!("failed to derive properties: {text}"));
    let spec = field(csv, "spec").unwrap_or(&Value::Null);
    let version = match spec.get("version") {
        None | Some(Value::Null) => "",
        Some(Value::String(text)) => text,
        Some(other) => {
            let kind = other.go_kind();
            return Err(fail(&format!(
                "json: cannot unmarshal {kind} into Go value of type string"
            )));
        }
    };
    let release = match spec.get("release") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.as_ref().to_owned(),
        Some(number @ (Value::Integer(_) | Value::Unsigned(_) | Value::Float(_))) => {
            number.to_json(Numbers::Keep, Html::Plain)
        }
        Some(_) => return Err(fail("release field must be a string or number")),
    };
    let mut entries = vec![("packageName", package), ("version", version)];
    if !release.is_empty() {
        entries.push(("release", &release));
    }
    Ok(object(PROPERTY_PACKAGE, &entries))
}

fn read_gvk(property: &Property, index: usize, structure: &'static str) -> Result<[String; 3], String> {
    read_strings(property, index, structure, ["group", "kind", "version"])
}

fn package_required(dependency: &Property, index: usize) -> Result<Property, String> {
    let [package, version] = read_strings(dependency, index, "property.Package", ["packageName", "version"])?;
    Ok(object(
        PROPERTY_PACKAGE_REQUIRED,
        &[("packageName", &package), ("versionRange", &version)],
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compaction_keeps_strings_and_order() {
        assert_eq!(
            compact("{ \"b\" : \"x \\\" y\\\\\" , \"a\": [ 1 ] }"),
            "{\"b\":\"x \\\" y\\\\\",\"a\":[1]}"
        );
    }
}
