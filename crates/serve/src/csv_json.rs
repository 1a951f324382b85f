//! The ClusterServiceVersion for a bundle whose catalog blob has only `olm.csv.metadata`.
//!
//! packageserver shows packages from the CSV of each channel head, so one is generated from the available data. Its
//! install strategy is empty. The real one comes from the bundle image.

use super::index::format::PackageDisplay;
use olmkit::catalog::decode::Place;
use olmkit::catalog::render::csv_types::{
    API_SERVICES, CRDS, Field, INSTALL_MODE, LINK, MAINTAINER, NATIVE_API, Shape, TypedWriter, optional, required,
};
use olmkit::catalog::render::definitions::field;
use olmkit::catalog::text::{Html, Value, stream};

/// Name in the CSV's spec and the field of the metadata, in the CSV's order, up to the icon.
const SPEC: &[(&str, Field)] = &[
    ("maturity", optional("maturity", Shape::Text)),
    (
        "customresourcedefinitions",
        required("crdDescriptions", Shape::Struct(&CRDS)),
    ),
    (
        "apiservicedefinitions",
        required("apiServiceDefinitions", Shape::Struct(&API_SERVICES)),
    ),
    ("nativeAPIs", optional("nativeAPIs", Shape::List(&NATIVE_API))),
    ("minKubeVersion", optional("minKubeVersion", Shape::Text)),
    ("displayName", required("displayName", Shape::Text)),
    ("description", optional("description", Shape::Text)),
    ("keywords", optional("keywords", Shape::Texts)),
    ("maintainers", optional("maintainers", Shape::List(&MAINTAINER))),
    ("provider", required("provider", Shape::Struct(&LINK))),
    ("links", optional("links", Shape::List(&LINK))),
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
    for key in ["labels", "annotations"] {
        let wanted = optional(key, Shape::TextMap);
        writer.field(key, &wanted, field(&metadata, key), &root.field("CSVMetadata", key));
    }
    writer
        .out
        .push_str(r#"},"spec":{"install":{"strategy":"deployment","spec":{"deployments":null}}"#);
    writer.name("version");
    writer.text(version);
    for (spec_name, wanted) in SPEC {
        let mut value = field(&metadata, wanted.name);
        let fallback = Value::String(package.description.as_str().into());
        if *spec_name == "description" && value.is_none_or(|value| value.as_str() == Some("")) {
            value = Some(&fallback);
        }
        writer.field(spec_name, wanted, value, &root.field("CSVMetadata", wanted.name));
    }
    icon(&mut writer, package);
    let modes = optional("installModes", Shape::List(&INSTALL_MODE));
    writer.field(
        "installModes",
        &modes,
        field(&metadata, "installModes"),
        &root.field("CSVMetadata", "installModes"),
    );
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
