//! `olm.csv.metadata`: ClusterServiceVersion data for user interfaces.

use super::Error;
use super::csv_types::{
    API_SERVICES, CRDS, Field, INSTALL_MODE, LINK, MAINTAINER, NATIVE_API, Shape, TypedWriter, optional, required,
};
use super::definitions::field;
use crate::decode::Place;
use crate::text::{Value, stream};
use olmkit_go::json::Html;

/// Name in the property, where the CSV has it, and the field there.
const METADATA: &[(&str, &str, Field)] = &[
    ("annotations", "metadata", optional("annotations", Shape::TextMap)),
    (
        "apiServiceDefinitions",
        "spec",
        required("apiservicedefinitions", Shape::Struct(&API_SERVICES)),
    ),
    (
        "crdDescriptions",
        "spec",
        required("customresourcedefinitions", Shape::Struct(&CRDS)),
    ),
    ("description", "spec", optional("description", Shape::Text)),
    ("displayName", "spec", optional("displayName", Shape::Text)),
    (
        "installModes",
        "spec",
        optional("installModes", Shape::List(&INSTALL_MODE)),
    ),
    ("keywords", "spec", optional("keywords", Shape::Texts)),
    ("labels", "metadata", optional("labels", Shape::TextMap)),
    ("links", "spec", optional("links", Shape::List(&LINK))),
    ("maintainers", "spec", optional("maintainers", Shape::List(&MAINTAINER))),
    ("maturity", "spec", optional("maturity", Shape::Text)),
    ("minKubeVersion", "spec", optional("minKubeVersion", Shape::Text)),
    ("nativeAPIs", "spec", optional("nativeAPIs", Shape::List(&NATIVE_API))),
    ("provider", "spec", required("provider", Shape::Struct(&LINK))),
];

/// The property's value, compact JSON, from a ClusterServiceVersion as JSON.
///
/// # Errors
/// A field does not have the type that it has in OLM's API.
pub fn from_csv(json: &str) -> Result<String, Error> {
    let csv = stream::json(json).map_err(|error| Error::Bundle(error.to_string()))?;
    from_value(&csv)
}

/// The property's value from a ClusterServiceVersion.
///
/// # Errors
/// See [`from_csv`].
pub fn from_value(csv: &Value<'_>) -> Result<String, Error> {
    let mut writer = TypedWriter::new(Html::Plain);
    let root = Place::root("v1alpha1.ClusterServiceVersion");
    writer.out.push('{');
    for (name, parent, wanted) in METADATA {
        let value = field(csv, parent).and_then(|parent| field(parent, wanted.name));
        let outer = root.field("ClusterServiceVersion", parent);
        writer.field(
            name,
            wanted,
            value,
            &outer.field("ClusterServiceVersionSpec", wanted.name),
        );
    }
    writer.out.push('}');
    writer.mismatch.finish(writer.out).map_err(Error::Bundle)
}

/// Checks that the value of an `olm.csv.metadata` property has the form that opm reads.
///
/// # Errors
/// Go's message for the first field that does not fit.
pub fn check(value: &Value<'_>) -> Result<(), String> {
    let fits = |(name, _, wanted): &(&str, &str, Field)| {
        field(value, name).is_none_or(|value| *value == Value::Null || wanted.shape.fits(value))
    };
    if matches!(value, Value::Mapping(_)) && METADATA.iter().all(fits) {
        return Ok(());
    }
    let mut writer = TypedWriter::new(Html::Plain);
    let root = Place::root("property.CSVMetadata");
    if !matches!(value, Value::Mapping(_) | Value::Null) {
        writer.mismatch.report(value, "", &root);
    }
    for (name, _, wanted) in METADATA {
        writer.field(name, wanted, field(value, name), &root.field("CSVMetadata", name));
        writer.out.clear();
    }
    writer.mismatch.finish(())
}
