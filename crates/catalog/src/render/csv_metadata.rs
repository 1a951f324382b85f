//! `olm.csv.metadata`: ClusterServiceVersion data for user interfaces.

use super::Error;
use super::csv_types::TypedWriter;
use super::definitions::field;
use super::fits;
use crate::decode::Place;
use crate::text::{Value, stream};
use olmkit_go::json::Html;
use olmkit_go::structs::structs;

/// The struct of the property.
const PROPERTY: &str = "CSVMetadata";

/// Where the CSV has the fields of the property, and their names there if they differ.
const SOURCES: &[(&str, &str, &str)] = &[
    ("annotations", "metadata", "annotations"),
    ("apiServiceDefinitions", "spec", "apiservicedefinitions"),
    ("crdDescriptions", "spec", "customresourcedefinitions"),
    ("labels", "metadata", "labels"),
];

/// The part of the CSV that has a field of the property, and its name there.
fn source(name: &'static str) -> (&'static str, &'static str) {
    let other = SOURCES.iter().find(|(property, ..)| *property == name);
    other.map_or(("spec", name), |(_, parent, name)| (parent, name))
}

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
    for wanted in structs()
        .structure(PROPERTY)
        .map(|property| &property.fields)
        .into_iter()
        .flatten()
    {
        let (parent, name) = source(wanted.name);
        let value = field(csv, parent).and_then(|parent| field(parent, name));
        let outer = root.field("ClusterServiceVersion", parent);
        writer.field(
            wanted.name,
            wanted,
            value,
            &outer.field("ClusterServiceVersionSpec", name),
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
    let table = structs();
    let certainly = |kind| fits::certainly(value, kind, table);
    if matches!(value, Value::Mapping(_)) && table.get(PROPERTY).is_some_and(certainly) {
        return Ok(());
    }
    let mut writer = TypedWriter::new(Html::Plain);
    let root = Place::root("property.CSVMetadata");
    if !matches!(value, Value::Mapping(_) | Value::Null) {
        writer.mismatch.report(value, "", &root);
    }
    for wanted in table
        .structure(PROPERTY)
        .map(|property| &property.fields)
        .into_iter()
        .flatten()
    {
        let place = root.field(PROPERTY, wanted.name);
        writer.field(wanted.name, wanted, field(value, wanted.name), &place);
        writer.out.clear();
    }
    writer.mismatch.finish(())
}
