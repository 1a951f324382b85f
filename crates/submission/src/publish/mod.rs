//! Publishing through file-based catalogs: bringing an operator there, and adding bundles to its templates and catalogs.
//!
//! Everything is computed in memory, from the current files of the repository. The caller decides whether to write the
//! changes.

mod ci;
mod onboard;
mod package;
mod place;
mod release;
mod template;

use std::collections::BTreeMap;

use olmkit::catalog::model::Bundle;
use olmkit::catalog::template::Bundles;
use olmkit::catalog::{Catalog, order, write};
use olmkit::object::shell_word;

use crate::python::Raise;

pub use onboard::{Onboarded, Onboarding, Origin};
pub use place::{Placed, place};
pub use release::{Additions, add_to_catalogs};
pub use template::Mapping;

/// Why an operator or bundle cannot be published.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// The repository does not have it.
    #[error("no operator {0:?} in the repository: operators/{0} has neither a ci.yaml nor a bundle")]
    NoOperator(String),
    /// The operator has file-based catalogs already.
    #[error(
        "{0} already uses file-based catalogs (fbc.enabled in operators/{0}/ci.yaml); pass --replace to regenerate its templates, mapping and catalogs"
    )]
    Enabled(String),
    /// No catalog has the package.
    #[error("no catalog has the package {package}; searched {catalogs}")]
    NoCatalog {
        /// The package.
        package: String,
        /// The catalogs.
        catalogs: String,
    },
    /// The images of a directory's bundles are unknown.
    #[error(
        "the images of the bundles are unknown: {0}; pass --image-ref-template, such as \
         'quay.io/example/{{{{.Package}}}}:v{{{{.Version}}}}', or --catalogs with published catalogs, which name them"
    )]
    NoImages(String),
    /// A bundle of a catalog is not an image.
    #[error(
        "{bundle} in the catalog {catalog} has no image, so no template can name it; push the bundle and add its image"
    )]
    Inline {
        /// The catalog.
        catalog: String,
        /// The bundle.
        bundle: String,
    },
    /// A bundle of the repository cannot be rendered.
    #[error("{path}: {reason}; see `olmkit bundle validate {}`", shell_word(path))]
    Bundle {
        /// Its directory.
        path: String,
        /// The reason.
        reason: String,
    },
    /// A settings file is invalid.
    #[error("{place}: {text}")]
    Settings {
        /// File, line and column.
        place: String,
        /// The error.
        text: String,
    },
    /// A file cannot be changed without losing its form.
    #[error("{path} cannot be changed in place (it is not one document of block-style YAML); {what}")]
    Form {
        /// The file.
        path: String,
        /// The attempted action.
        what: String,
    },
    /// A template cannot be rendered.
    #[error("{path} cannot be rendered for {catalog}: {reason}")]
    Render {
        /// The template.
        path: String,
        /// The catalog.
        catalog: String,
        /// The reason.
        reason: String,
    },
    /// The release exists already, or cannot be released.
    #[error("{0}")]
    Refused(String),
}

impl From<Raise> for PublishError {
    fn from(raise: Raise) -> Self {
        let mut place = raise.file.unwrap_or_default();
        if let Some(at) = raise.position {
            place = format!("{place}:{}:{}", at.line, at.column);
        }
        Self::Settings {
            place,
            text: raise.text,
        }
    }
}

/// Bundles that need not be pulled.
struct LocalBundles<'a> {
    by_image: BTreeMap<&'a str, &'a Bundle>,
    others: &'a dyn Bundles,
}

impl<'a> LocalBundles<'a> {
    fn new(bundles: impl IntoIterator<Item = &'a Bundle>, others: &'a dyn Bundles) -> Self {
        let by_image = bundles
            .into_iter()
            .map(|bundle| (bundle.image.as_str(), bundle))
            .collect();
        Self { by_image, others }
    }
}

impl Bundles for LocalBundles<'_> {
    fn render(&self, reference: &str) -> Result<Catalog, String> {
        match self.by_image.get(reference) {
            Some(bundle) => Ok(Catalog {
                bundles: vec![(*bundle).clone()],
                ..Catalog::default()
            }),
            None => self.others.render(reference),
        }
    }
}

/// A catalog as the pipeline writes it.
fn catalog_text(catalog: Catalog) -> Result<Vec<u8>, PublishError> {
    let mut text = Vec::new();
    let written = write::all(&order::blobs(catalog), write::Format::Yaml, &mut text);
    written.map_err(|error| PublishError::Refused(format!("the catalog cannot be written: {error}")))?;
    Ok(text)
}

/// Returns true if a string can be one part of a path: letters, digits, dots, underscores, dashes, plus.
fn is_sound(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'+');
    !name.is_empty() && name.len() <= 253 && !name.starts_with(['.', '-']) && name.bytes().all(allowed)
}
