//! A bundle directory as an `olm.bundle` blob.

use std::collections::BTreeSet;
use std::path::Path;

use super::definitions::{self, Api};
use super::manifests::{self, Manifest};
use super::properties::{self, Sources};
use super::{Error, related_images, typed};
use crate::model::{Bundle, Origin};
use crate::text::Value;
use olmkit_base::files::Directory;

/// Renders a bundle directory. `image` is the bundle's image reference. Empty for an inline bundle.
///
/// # Errors
/// With opm's message: no manifests, no ClusterServiceVersion, no annotations, an owned CRD that is missing, fields of
/// the wrong type.
pub fn directory(root: &Path, image: &str) -> Result<Bundle, Error> {
    Source::read(root)?.render(image)
}

fn csv_of(manifests: &[Manifest]) -> Option<&Value<'static>> {
    let csv = manifests.iter().find(|manifest| manifest.is_csv());
    csv.map(|manifest| &manifest.value)
}

/// Contents of a bundle directory.
pub struct Source {
    /// One of them is a ClusterServiceVersion.
    manifests: Vec<Manifest>,
    name: String,
    provided: BTreeSet<Api>,
    metadata: properties::Metadata,
}

impl Source {
    /// Reads and checks a bundle directory.
    ///
    /// # Errors
    /// See [`directory`].
    pub fn read(root: &Path) -> Result<Self, Error> {
        let fail = |source| Error::Read {
            path: root.to_owned(),
            source,
        };
        Directory::open(root)
            .and_then(|directory| directory.check())
            .map_err(fail)?;
        let manifests = manifests::read(&root.join("manifests"))?;
        if manifests.is_empty() {
            return Err(Error::Bundle("no bundle objects found".into()));
        }
        let csv = csv_of(&manifests).ok_or_else(|| Error::Bundle("no csv in bundle".into()))?;
        typed::check_metadata(csv)?;
        typed::check_crds(&manifests)?;
        let name = definitions::field(csv, "metadata")
            .and_then(|metadata| definitions::field(metadata, "name"))
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let checked = |error| Error::Bundle(format!("error checking provided apis in bundle {name}: {error}"));
        let provided = definitions::provided(&manifests, csv).map_err(checked)?;
        let (owned, _) = definitions::custom_resources(csv).map_err(checked)?;
        definitions::check_owned(&owned, &provided).map_err(checked)?;
        let metadata = properties::metadata(&root.join("metadata"))?;
        Ok(Source {
            manifests,
            name,
            provided,
            metadata,
        })
    }

    fn csv(&self) -> &Value<'static> {
        csv_of(&self.manifests).unwrap_or(&Value::Null)
    }

    /// Bundle name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Package name.
    pub fn package(&self) -> &str {
        &self.metadata.package
    }

    /// The CSV's version, letter by letter.
    pub fn version(&self) -> &str {
        definitions::field(self.csv(), "spec")
            .and_then(|spec| spec.get("version"))
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// Makes the blob.
    ///
    /// # Errors
    /// See [`directory`].
    pub fn render(&self, image: &str) -> Result<Bundle, Error> {
        let (_, mut required) = definitions::custom_resources(self.csv())?;
        required.extend(definitions::api_services(self.csv())?.1);
        let required: BTreeSet<Api> = required.into_iter().collect();
        let sources = Sources {
            manifests: &self.manifests,
            csv: self.csv(),
            metadata: &self.metadata,
            provided: &self.provided,
            required: &required,
        };
        let properties = properties::collect(&sources, &self.name)?;
        let related_images = related_images::collect(self.csv(), image)
            .map_err(|error| Error::Bundle(format!("get related images for bundle \"{}\": {error}", self.name)))?;
        Ok(Bundle {
            name: self.name.clone(),
            package: self.metadata.package.clone(),
            image: image.to_owned(),
            properties,
            related_images,
            origin: Origin::default(),
        })
    }
}
