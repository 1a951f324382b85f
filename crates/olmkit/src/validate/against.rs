//! The bundles from which users upgrade to the validated bundle: a given one, or those of a catalog.

use std::borrow::Cow;

use serde_json::Value;

use super::csv_view::{Csv, field, strings};
use crate::bundle::load::Reading;
use crate::catalog::{Bundle, Catalog, objects};
use crate::object::{Version, VersionRange};

/// The bundle's counterpart.
#[derive(Debug)]
pub enum Against {
    /// One earlier bundle.
    Bundle(Earlier),
    /// A catalog. The bundles that the one at hand replaces are looked up in it.
    Catalog {
        /// Its name in messages.
        name: String,
        /// Its content.
        catalog: Catalog,
    },
}

/// As much of an earlier bundle as an upgrade depends on.
#[derive(Debug)]
pub struct Earlier {
    /// Name of the ClusterServiceVersion.
    pub name: String,
    /// Its `spec.version`.
    pub version: Option<Version>,
    /// Its CustomResourceDefinitions.
    pub definitions: Vec<Value>,
    /// Its examples: objects as users have them.
    pub examples: Vec<Value>,
}

/// Why there is no bundle to compare with.
#[derive(Debug, thiserror::Error)]
pub enum AgainstError {
    /// The bundle cannot be loaded.
    #[error("cannot compare with {name}: it is not a valid bundle: {reason}")]
    Unsound {
        /// The directory.
        name: String,
        /// operator-sdk's message.
        reason: String,
    },
    /// A catalog has the bundle without its manifests.
    #[error(
        "the catalog has {bundle} without its CRDs (it was rendered with --migrate-level); pass the bundle itself: --against {}",
        if image.is_empty() { "DIRECTORY" } else { image }
    )]
    NoManifests {
        /// Its name.
        bundle: String,
        /// Its image.
        image: String,
    },
}

impl Against {
    /// A catalog, or the only bundle of one that was made from a bundle image.
    ///
    /// # Errors
    /// That bundle has no manifests.
    pub fn catalog(name: &str, catalog: Catalog) -> Result<Self, AgainstError> {
        if let ([], [], [bundle]) = (
            catalog.packages.as_slice(),
            catalog.channels.as_slice(),
            catalog.bundles.as_slice(),
        ) {
            return Ok(Against::Bundle(Earlier::from_blob(bundle)?));
        }
        Ok(Against::Catalog {
            name: name.to_string(),
            catalog,
        })
    }
}

impl Against {
    /// The definitions of the bundles that users upgrade from, with the names of the bundles.
    pub(super) fn definitions(&self, package: &str, csv: Option<&Csv<'_>>) -> Vec<(String, Cow<'_, [Value]>)> {
        match self {
            Self::Bundle(earlier) => vec![(earlier.name.clone(), Cow::Borrowed(earlier.definitions.as_slice()))],
            Self::Catalog { catalog, .. } => csv
                .map(|csv| replaced(catalog, package, csv))
                .unwrap_or_default()
                .into_iter()
                .filter_map(|bundle| Earlier::from_blob(bundle).ok())
                .map(|earlier| (earlier.name, Cow::Owned(earlier.definitions)))
                .collect(),
        }
    }
}

impl Earlier {
    /// A bundle that was read from a directory. Only the needed objects remain in memory.
    ///
    /// # Errors
    /// It does not load.
    pub fn from_reading(name: &str, reading: Reading) -> Result<Self, AgainstError> {
        if let Some(reason) = reading.fatal {
            return Err(AgainstError::Unsound {
                name: name.to_string(),
                reason,
            });
        }
        let mut has_csv = false;
        let objects = reading.bundle.objects.into_iter().filter(|object| match object.kind() {
            "CustomResourceDefinition" => true,
            "ClusterServiceVersion" => !std::mem::replace(&mut has_csv, true),
            _ => false,
        });
        Ok(Self::of_objects(
            &reading.bundle.name,
            objects.filter_map(|object| object.typed),
        ))
    }

    /// A bundle of a catalog.
    ///
    /// # Errors
    /// The catalog contains it without its manifests.
    pub fn from_blob(bundle: &Bundle) -> Result<Self, AgainstError> {
        let texts = objects::inline(bundle);
        if texts.is_empty() {
            return Err(AgainstError::NoManifests {
                bundle: bundle.name.clone(),
                image: bundle.image.clone(),
            });
        }
        let objects = texts.iter().filter_map(|text| serde_json::from_str(text).ok());
        Ok(Self::of_objects(&bundle.name, objects))
    }

    fn of_objects(name: &str, objects: impl Iterator<Item = Value>) -> Self {
        let mut earlier = Self {
            name: name.to_string(),
            version: None,
            definitions: Vec::new(),
            examples: Vec::new(),
        };
        for object in objects {
            match field(&object, "kind") {
                "CustomResourceDefinition" => earlier.definitions.push(object),
                "ClusterServiceVersion" => {
                    earlier.version = version(&object);
                    let examples = object
                        .pointer("/metadata/annotations/alm-examples")
                        .and_then(Value::as_str)
                        .and_then(|text| serde_json::from_str(text).ok());
                    earlier.examples = examples.unwrap_or_default();
                }
                _ => {}
            }
        }
        earlier
    }
}

fn version(csv: &Value) -> Option<Version> {
    let text = csv.pointer("/spec/version").and_then(Value::as_str)?;
    Version::parse_tolerant(text).ok()
}

/// The bundles of a catalog's package from which users upgrade to a bundle: those in its CSV, or in its entries in the
/// catalog's channels.
pub fn replaced<'c>(catalog: &'c Catalog, package: &str, csv: &Csv<'_>) -> Vec<&'c Bundle> {
    let name = csv.name();
    let mut names: Vec<&str> = vec![csv.text("/spec/replaces")];
    names.extend(strings(csv.get("/spec"), "skips"));
    let mut ranges: Vec<&str> = csv.annotation("olm.skipRange").into_iter().collect();
    let entries = catalog
        .channels
        .iter()
        .filter(|channel| channel.package == package)
        .flat_map(|channel| channel.entries())
        .filter(|entry| entry.name == name);
    for entry in entries {
        names.push(&entry.replaces);
        names.extend(entry.skips.iter().map(String::as_str));
        ranges.push(&entry.skip_range);
    }
    let ranges: Vec<VersionRange> = ranges
        .into_iter()
        .filter_map(|range| VersionRange::parse(range).ok())
        .collect();
    catalog
        .bundles
        .iter()
        .filter(|bundle| bundle.package == package && bundle.name != name)
        .filter(|bundle| {
            names.contains(&bundle.name.as_str())
                || version_of(bundle).is_some_and(|version| ranges.iter().any(|range| range.contains(&version)))
        })
        .collect()
}

/// The version in a bundle's property `olm.package`.
fn version_of(bundle: &Bundle) -> Option<Version> {
    let property = bundle
        .properties
        .iter()
        .find(|property| property.kind == crate::catalog::model::PROPERTY_PACKAGE)?;
    let value: Value = serde_json::from_str(property.value.as_deref()?).ok()?;
    Version::parse(field(&value, "version")).ok()
}
