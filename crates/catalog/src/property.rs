//! Property values by type, read as opm reads them.

use super::decode::{Mismatch, Place, fields, string};
use super::model::{
    Bundle, PROPERTY_BUNDLE_OBJECT, PROPERTY_CSV_METADATA, PROPERTY_GVK, PROPERTY_GVK_REQUIRED, PROPERTY_PACKAGE,
    PROPERTY_PACKAGE_REQUIRED, Property,
};
use super::render::csv_metadata;
use super::text::{Value, stream};
use olmkit_go::json::names_field;

/// Value of an `olm.package` property.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackageProperty {
    /// Package name.
    pub package: String,
    /// Bundle version.
    pub version: String,
    /// Release of the version. Mostly empty.
    pub release: String,
}

/// The JSON value of a property.
///
/// # Errors
/// Go's message for a value that is absent or not JSON.
pub fn value(property: &Property) -> Result<Value<'_>, String> {
    let text = property.value.as_deref().unwrap_or_default();
    stream::json(text).map_err(|_| "unexpected end of JSON input".to_owned())
}

/// Reads a property's value as a struct of strings, in the order of `wanted`.
///
/// # Errors
/// opm's message `parse property[i] of type "t": …`.
pub fn read_strings<const N: usize>(
    property: &Property,
    index: usize,
    structure: &'static str,
    wanted: [&'static str; N],
) -> Result<[String; N], String> {
    let fail = |error: String| parse_error(property, index, &error);
    let value = value(property).map_err(fail)?;
    let short = structure.rsplit('.').next().unwrap_or(structure);
    let root = Place::root(structure);
    let mut mismatch = Mismatch::default();
    let mut texts = std::array::from_fn(|_| String::new());
    for (name, value) in fields(&value, structure, &root, &mut mismatch) {
        for (wanted, out) in wanted.iter().zip(&mut texts) {
            if names_field(name, wanted) {
                string(value, out, &root.field(short, wanted), &mut mismatch);
            }
        }
    }
    mismatch.finish(texts).map_err(fail)
}

fn parse_error(property: &Property, index: usize, error: &str) -> String {
    format!("parse property[{index}] of type \"{}\": {error}", property.kind)
}

/// Reads all properties of a bundle by type: its `olm.package` values.
///
/// # Errors
/// The index of the first property that does not fit its type, and opm's message for it.
pub fn parse(bundle: &Bundle) -> Result<Vec<PackageProperty>, (usize, String)> {
    let mut packages = Vec::new();
    for (index, property) in bundle.properties.iter().enumerate() {
        let at = |error: String| (index, error);
        match property.kind.as_str() {
            PROPERTY_PACKAGE => {
                let wanted = ["packageName", "version", "release"];
                let [package, version, release] =
                    read_strings(property, index, "property.Package", wanted).map_err(at)?;
                packages.push(PackageProperty {
                    package,
                    version,
                    release,
                });
            }
            PROPERTY_PACKAGE_REQUIRED => {
                let wanted = ["packageName", "versionRange"];
                read_strings(property, index, "property.PackageRequired", wanted).map_err(at)?;
            }
            PROPERTY_GVK => {
                read_strings(property, index, "property.GVK", ["group", "kind", "version"]).map_err(at)?;
            }
            PROPERTY_GVK_REQUIRED => {
                read_strings(property, index, "property.GVKRequired", ["group", "kind", "version"]).map_err(at)?;
            }
            "olm.channel" => {
                read_strings(property, index, "property.Channel", ["channelName"]).map_err(at)?;
            }
            // Read when the catalog was loaded.
            PROPERTY_BUNDLE_OBJECT => {}
            PROPERTY_CSV_METADATA => {
                let fail = |error: String| at(parse_error(property, index, &error));
                let value = value(property).map_err(fail)?;
                csv_metadata::check(&value).map_err(fail)?;
            }
            _ if property.value.is_none() => {
                return Err(at(parse_error(property, index, "unexpected end of JSON input")));
            }
            _ => {}
        }
    }
    Ok(packages)
}
