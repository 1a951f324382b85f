//! Catalog templates: short descriptions that become catalogs.

mod basic;
mod convert;
mod semver;
mod substitutes;

use super::model::{Bundle, Catalog};
use super::render::{MigrateLevel, migrate, touch_up};
use super::text::{Value, stream};

pub use convert::convert;

/// A kind of template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Blobs, in which bundles are only image references.
    Basic,
    /// Image references by maturity. Channels follow from the versions.
    Semver,
    /// A catalog, and bundles that replace others.
    Substitutes,
}

impl Kind {
    /// The schema of the template's document.
    pub fn schema(self) -> &'static str {
        match self {
            Kind::Basic => "olm.template.basic",
            Kind::Semver => "olm.semver",
            Kind::Substitutes => "olm.template.substitutes",
        }
    }

    /// The kind that a schema names.
    pub fn parse(schema: &str) -> Option<Self> {
        [Kind::Basic, Kind::Semver, Kind::Substitutes]
            .into_iter()
            .find(|kind| kind.schema() == schema)
    }
}

/// Why a template cannot be rendered, with opm's message.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub String);

/// Renders bundle references for templates, without migrating.
pub trait Bundles: Sync {
    /// Renders a reference, an image or a bundle directory.
    ///
    /// # Errors
    /// A text for the user.
    fn render(&self, reference: &str) -> Result<Catalog, String>;
}

/// Renders a template. Without a kind the document's schema decides.
///
/// # Errors
/// See [`Error`].
pub fn render(text: &str, kind: Option<Kind>, bundles: &dyn Bundles, level: MigrateLevel) -> Result<Catalog, Error> {
    let (documents, error) = stream::documents(text);
    let document = match (documents.into_iter().next(), error) {
        (Some(document), _) => document.value,
        (None, Some(error)) => return Err(Error(error.message)),
        (None, None) => return Err(Error("the template is empty".into())),
    };
    let schema = super::render::definitions::field(&document, "schema")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let kind = match kind.or_else(|| Kind::parse(schema)) {
        Some(kind) => kind,
        None => {
            return Err(Error(format!(
                "unknown template schema {schema:?}: it must be olm.template.basic, olm.semver or olm.template.substitutes"
            )));
        }
    };
    let mut catalog = match kind {
        Kind::Basic => basic::render(&document, bundles),
        Kind::Semver => semver::render(&document, bundles),
        Kind::Substitutes => return substitutes::render(&document, bundles, level).map_err(Error),
    }
    .map_err(Error)?;
    for bundle in &mut catalog.bundles {
        finish(bundle, level).map_err(Error)?;
    }
    Ok(catalog)
}

/// Migrates a rendered bundle. This comes last, because the package's icon and description are taken from the manifests.
fn finish(bundle: &mut Bundle, level: MigrateLevel) -> Result<(), String> {
    migrate(bundle, level).map_err(|error| error.to_string())?;
    touch_up(bundle);
    Ok(())
}

/// A template's `schema` must be the kind's.
fn check_schema(document: &Value<'_>, kind: Kind) -> Result<(), String> {
    let schema = super::render::definitions::field(document, "schema")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if schema == kind.schema() {
        return Ok(());
    }
    Err(format!(
        "template has unknown schema ({}), should be {}",
        olmkit_go::strconv::quote(schema),
        olmkit_go::strconv::quote(kind.schema())
    ))
}

/// A template's `entries` as blobs.
fn entries(document: &Value<'_>) -> Result<Vec<super::model::Blob>, String> {
    let entries = super::render::definitions::field(document, "entries")
        .map(Value::items)
        .unwrap_or_default();
    entries
        .iter()
        .map(|entry| {
            let blob = super::blob::read(entry, super::model::Origin::default())?;
            if let super::model::Blob::Bundle(bundle) = &blob {
                super::blob::check_objects(bundle)?;
            }
            Ok(blob)
        })
        .collect()
}
