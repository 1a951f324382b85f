//! The ClusterServiceVersion for a bundle whose catalog blob has only `olm.csv.metadata`.
//!
//! packageserver shows packages from the CSV of each channel head, so one is generated from the available data. Its
//! install strategy is empty. The real one comes from the bundle image.

use super::index::format::PackageDisplay;
use olmkit::catalog::decode::Place;
use olmkit::catalog::render::csv_types::TypedWriter;
use olmkit::catalog::render::definitions::field;
use olmkit::catalog::text::{Html, Value, stream};
use olmkit::go::structs::structs;

/// The struct of the property.
const PROPERTY: &str = "CSVMetadata";

/// Fields of the CSV's spec up to the icon, and their names in the property if they differ.
const SPEC: &[(&str, &str)] = &[
    ("maturity", ""),
    ("customresourcedefinitions", "crdDescriptions"),
    ("apiservicedefinitions", "apiServiceDefinitions"),
    ("nativeAPIs", ""),
    ("minKubeVersion", ""),
    ("displayName", ""),
    ("description", ""),
    ("keywords", ""),
    ("maintainers", ""),
    ("provider", ""),
    ("links", ""),
];

/// The CSV as JSON, from the value of the bundle's `olm.csv.metadata` property. `related` lists names and images
/// alternately.
///
/// # Errors
/// The metadata does not fit its type; Go's error message.
pub fn synthesize(
    name: &str,
    version: &str,
    metadata: &str,
    related: &[String],
    package: &PackageDisplay,
) -> Result<String, String> {
    let metadata = stream::json(metadata).map_err(|error| error.to_string())?;
    let root = Place::root("property.CSVMetadata");
    let mut writer = TypedWriter::new(Html::Escape);
    writer
        .out
        .push_str(r#"{"kind":"ClusterServiceVersion","apiVersion":"operators.coreos.com/v1alpha1","metadata":{"#);
    if !name.is_empty() {
        writer.name("name");
        writer.text(name);
    }
    let table = structs();
    let property = table.structure(PROPERTY);
    for key in ["labels", "annotations"] {
        if let Some(wanted) = property.and_then(|property| property.own_field(key)) {
            writer.field(key, wanted, field(&metadata, key), &root.field(PROPERTY, key));
        }
    }
    writer
        .out
        .push_str(r#"},"spec":{"install":{"strategy":"deployment","spec":{"deployments":null}}"#);
    writer.name("version");
    writer.text(version);
    let spec = table.structure("ClusterServiceVersionSpec");
    let spec_field = |name: &str| spec.and_then(|spec| spec.own_field(name));
    for (name, other) in SPEC {
        let source = if other.is_empty() { name } else { other };
        let mut value = field(&metadata, source);
        let fallback = Value::String(package.description.as_str().into());
        if *name == "description" && value.is_none_or(|value| value.as_str() == Some("")) {
            value = Some(&fallback);
        }
        if let Some(wanted) = spec_field(name) {
            writer.field(name, wanted, value, &root.field(PROPERTY, source));
        }
    }
    icon(&mut writer, package);
    if let Some(modes) = spec_field("installModes") {
        let place = root.field(PROPERTY, "installModes");
        writer.field("installModes", modes, field(&metadata, "installModes"), &place);
    }
    writer.name("cleanup");
    writer.out.push_str(r#"{"enabled":false}"#);
    related_images(&mut writer, related);
    writer.out.push_str(r#"},"status":{"cleanup":{}}}"#);
    writer.mismatch.finish(writer.out)
}

/// The package's icon replaces the CSV's, which the metadata omits.
fn icon(writer: &mut TypedWriter, package: &PackageDisplay) {
    let [data, media_type] = package.icon.as_slice() else {
        return;
    };
    writer.name("icon");
    writer.out.push_str("[{");
    writer.name("base64data");
    writer.text(data);
    writer.name("mediatype");
    writer.text(media_type);
    writer.out.push_str("}]");
}

fn related_images(writer: &mut TypedWriter, related: &[String]) {
    if related.is_empty() {
        return;
    }
    writer.name("relatedImages");
    writer.out.push('[');
    for (index, pair) in related.chunks_exact(2).enumerate() {
        let [name, image] = pair else { continue };
        writer.out.push_str(if index > 0 { ",{" } else { "{" });
        writer.name("name");
        writer.text(name);
        writer.name("image");
        writer.text(image);
        writer.out.push('}');
    }
    writer.out.push(']');
}
