//! The API's messages for one bundle.
//!
//! A message is stored in three pieces, because protobuf messages may be joined end to end: the part that all channels
//! share, the part that only the Get calls return (CSV and manifests, by far the largest), and the part of a channel
//! entry.

use prost::Message as _;

use super::api;
use super::csv_json;
use super::index::format::{EntrySection, ManifestsPiece, PackageDisplay};
use olmkit::catalog::model::{
    Bundle, PROPERTY_BUNDLE_OBJECT, PROPERTY_CSV_METADATA, PROPERTY_GVK, PROPERTY_GVK_REQUIRED, PROPERTY_PACKAGE,
    PROPERTY_PACKAGE_REQUIRED,
};
use olmkit::catalog::objects;

/// A bundle ready to be stored.
pub struct Prepared {
    /// Everything but CSV, manifests and channel.
    pub common: api::Bundle,
    /// The encoded [`ManifestsPiece`].
    pub manifests: Vec<u8>,
}

/// Why a bundle cannot be served.
#[derive(Debug, thiserror::Error)]
#[error("package \"{package}\", bundle \"{bundle}\": {message}")]
pub struct Error {
    /// The package.
    pub package: String,
    /// The bundle.
    pub bundle: String,
    /// The reason.
    pub message: String,
}

#[derive(serde::Deserialize, Default)]
#[serde(default)]
struct Gvk {
    group: String,
    version: String,
    kind: String,
}

#[derive(serde::Deserialize, Default)]
#[serde(default)]
struct PackageProperty {
    version: String,
}

#[derive(serde::Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct PackageRequired {
    package_name: String,
    version_range: String,
}

/// Makes the pieces of a bundle.
///
/// # Errors
/// A property of a known type does not fit it, or there are several `olm.csv.metadata` properties.
pub fn prepare(bundle: &Bundle) -> Result<Prepared, Error> {
    let fail = |message: String| Error {
        package: bundle.package.clone(),
        bundle: bundle.name.clone(),
        message,
    };
    let mut common = api::Bundle {
        csv_name: bundle.name.clone(),
        package_name: bundle.package.clone(),
        bundle_path: bundle.image.clone(),
        ..api::Bundle::default()
    };
    let mut metadata = None;
    for property in &bundle.properties {
        let value = property.value.as_deref().unwrap_or("null");
        let parse = |error: serde_json::Error| fail(format!("property of type \"{}\": {error}", property.kind));
        match property.kind.as_str() {
            PROPERTY_BUNDLE_OBJECT => continue,
            PROPERTY_CSV_METADATA if metadata.is_some() => {
                return Err(fail("must have at most one \"olm.csv.metadata\" property".into()));
            }
            PROPERTY_CSV_METADATA => {
                metadata = Some(value);
                continue;
            }
            PROPERTY_PACKAGE => {
                common.version = serde_json::from_str::<PackageProperty>(value).map_err(parse)?.version;
            }
            PROPERTY_GVK => common.provided_apis.push(gvk(value).map_err(parse)?),
            PROPERTY_GVK_REQUIRED => {
                common.required_apis.push(gvk(value).map_err(parse)?);
                common.dependencies.push(dependency(PROPERTY_GVK, value.to_owned()));
            }
            PROPERTY_PACKAGE_REQUIRED => {
                let required: PackageRequired = serde_json::from_str(value).map_err(parse)?;
                let value = serde_json::json!({
                    "packageName": required.package_name,
                    "version": required.version_range,
                });
                common
                    .dependencies
                    .push(dependency(PROPERTY_PACKAGE, value.to_string()));
            }
            _ => {}
        }
        common.properties.push(api::Property {
            r#type: property.kind.clone(),
            value: value.to_owned(),
        });
    }
    let objects = objects::inline(bundle);
    let metadata = metadata.filter(|_| objects::csv(&objects).is_none()).map(str::to_owned);
    let related_images = match metadata {
        Some(_) => bundle
            .related_images
            .iter()
            .flat_map(|image| [image.name.clone(), image.image.clone()])
            .collect(),
        None => Vec::new(),
    };
    let manifests = ManifestsPiece {
        objects,
        metadata,
        related_images,
    }
    .encode_to_vec();
    Ok(Prepared { common, manifests })
}

/// CSV and manifests of a bundle, from the index.
///
/// # Errors
/// The metadata for generating a CSV does not fit its type.
pub fn manifests(
    piece: ManifestsPiece,
    name: &str,
    version: &str,
    package: &PackageDisplay,
) -> Result<api::Bundle, String> {
    let (csv_json, object) = match &piece.metadata {
        Some(metadata) => {
            let csv = csv_json::synthesize(name, version, metadata, &piece.related_images, package)?;
            (csv.clone(), vec![csv])
        }
        None => (
            objects::csv(&piece.objects).unwrap_or_default().to_owned(),
            piece.objects,
        ),
    };
    Ok(api::Bundle {
        csv_json,
        object,
        ..api::Bundle::default()
    })
}

/// A custom blob as a message.
///
/// # Errors
/// The blob is not a JSON object.
pub fn custom(json: &str) -> Result<prost_types::Struct, String> {
    let value: serde_json::Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
    match custom_value(value).kind {
        Some(prost_types::value::Kind::StructValue(blob)) => Ok(blob),
        _ => Err("not a map".into()),
    }
}

fn custom_value(value: serde_json::Value) -> prost_types::Value {
    use prost_types::value::Kind;
    let kind = match value {
        serde_json::Value::Null => Kind::NullValue(0),
        serde_json::Value::Bool(value) => Kind::BoolValue(value),
        serde_json::Value::Number(value) => Kind::NumberValue(value.as_f64().unwrap_or_default()),
        serde_json::Value::String(text) => Kind::StringValue(text),
        serde_json::Value::Array(items) => Kind::ListValue(prost_types::ListValue {
            values: items.into_iter().map(custom_value).collect(),
        }),
        serde_json::Value::Object(entries) => Kind::StructValue(prost_types::Struct {
            fields: entries
                .into_iter()
                .map(|(key, value)| (key, custom_value(value)))
                .collect(),
        }),
    };
    prost_types::Value { kind: Some(kind) }
}

/// Fields that a channel entry adds to `ListBundles`. The Get calls omit `replaces` and `skips`.
pub fn entry(channel: &str, entry: &EntrySection, edges: bool) -> api::Bundle {
    let mut message = api::Bundle {
        channel_name: channel.to_owned(),
        skip_range: entry.skip_range.clone(),
        ..api::Bundle::default()
    };
    if edges {
        message.replaces.clone_from(&entry.replaces);
        message.skips.clone_from(&entry.skips);
    }
    message
}

fn gvk(value: &str) -> Result<api::GroupVersionKind, serde_json::Error> {
    let Gvk { group, version, kind } = serde_json::from_str(value)?;
    Ok(api::GroupVersionKind {
        group,
        version,
        kind,
        plural: String::new(),
    })
}

fn dependency(kind: &str, value: String) -> api::Dependency {
    api::Dependency {
        r#type: kind.to_owned(),
        value,
    }
}
