//! `catalog render`: bundles and catalogs as the blobs of a file-based catalog.

pub mod bundle;
pub mod csv_metadata;
pub mod csv_types;
pub mod definitions;
mod fits;
pub mod manifests;
pub mod properties;
pub mod reference;
pub mod related_images;
pub mod typed;

use super::model::{Bundle, PROPERTY_BUNDLE_OBJECT, PROPERTY_CSV_METADATA};

/// Migration level for rendered catalogs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MigrateLevel {
    /// Do not change bundles.
    #[default]
    None,
    /// Replace inline manifests of bundles that have an image by an `olm.csv.metadata` property.
    BundleObjectToCsvMetadata,
}

/// Why rendering fails. The messages are opm's.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of the bundle cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file or directory.
        path: std::path::PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The bundle is not one, or not a sound one.
    #[error("{0}")]
    Bundle(String),
    /// A catalog cannot be read.
    #[error(transparent)]
    Catalog(#[from] super::load::Error),
    /// The template for image references is not a template.
    #[error("{0}")]
    Template(String),
}

/// Brings a bundle into its written form: inline manifests and metadata after all other properties, related images
/// sorted by image.
pub fn touch_up(bundle: &mut Bundle) {
    let last = |kind: &str| matches!(kind, PROPERTY_BUNDLE_OBJECT | PROPERTY_CSV_METADATA);
    bundle.properties.sort_by_key(|property| last(&property.kind));
    bundle
        .related_images
        .sort_by(|left, right| left.image.cmp(&right.image));
}

/// Migrates a bundle.
///
/// # Errors
/// The bundle's ClusterServiceVersion does not fit its type.
pub fn migrate(bundle: &mut Bundle, level: MigrateLevel) -> Result<(), Error> {
    if level == MigrateLevel::None || bundle.image.is_empty() {
        return Ok(());
    }
    if bundle
        .properties
        .iter()
        .any(|property| property.kind == PROPERTY_CSV_METADATA)
    {
        return Ok(());
    }
    let objects = super::objects::inline(bundle);
    let Some(csv) = super::objects::csv(&objects) else {
        return Ok(());
    };
    let metadata = csv_metadata::from_csv(csv)?;
    bundle
        .properties
        .retain(|property| property.kind != PROPERTY_BUNDLE_OBJECT);
    bundle.properties.push(super::model::Property {
        kind: PROPERTY_CSV_METADATA.into(),
        value: Some(metadata),
    });
    Ok(())
}
