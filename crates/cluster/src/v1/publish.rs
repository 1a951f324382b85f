//! The images from which OLM v1 installs: the bundle, and a catalog with only this bundle.
//!
//! OLM v1 installs only from images, because its controllers pull both. All references are by digest: OLM installs
//! exactly the pushed image, and a changed bundle of the same version counts as a change.

use std::path::{Path, PathBuf};

use olmkit::bundle::load::{Limits, Tree};
use olmkit::catalog::{self, model::Blob};
use olmkit::olmv1::{self, Dependency};
use olmkit::temporary::Directory;
use olmkit_oci::build::{CATALOG_CONFIGS_LABEL, Recipe, bundle_recipe, source_date_epoch};
use olmkit_oci::layer::LayerBuilder;
use olmkit_oci::registry::{Client, Platforms};
use olmkit_oci::spec::{Descriptor, Platform};
use olmkit_oci::{Layout, Location, Reference, fetch};
use serde_json::Value;

use super::objects;
use crate::base::error::Error;
use crate::base::names;
use crate::base::reporter::ProgressLog;
use crate::bundle::facts::BundleFacts;
use crate::bundle::source;

/// Repositories to push to, and their names inside the cluster.
#[derive(Clone, Debug)]
pub struct Repositories {
    /// Images are pushed below this name, such as `quay.io/example`.
    pub push_to: String,
    /// The same registry as seen from the pods of operator-controller and catalogd.
    pub pull_from: String,
}

impl Repositories {
    /// The image of a repository below both names.
    fn image(&self, name: &str, tag: &str) -> Result<(Reference, Reference), Error> {
        let reference = |prefix: &str| {
            let text = format!("{}/{name}:{tag}", prefix.trim_end_matches('/'));
            Reference::parse(&text)
                .map_err(|error| Error::Usage(format!("{prefix:?} cannot begin the name of an image: {error}")))
        };
        Ok((reference(&self.push_to)?, reference(&self.pull_from)?))
    }
}

/// A bundle at hand, as both versions of OLM read it.
#[derive(Debug)]
pub struct Loaded {
    /// Facts about the bundle. The image is by digest, if there is one.
    pub facts: BundleFacts,
    /// As OLM v1 reads it.
    pub bundle: olmv1::Bundle,
    /// Its dependencies, which OLM v1 does not resolve.
    pub dependencies: Vec<Dependency>,
    directory: PathBuf,
    /// Keeps an unpacked image.
    _folder: Option<Directory>,
}

/// Reads a bundle from a directory or an image.
///
/// # Errors
/// [`Error::Bundle`], [`Error::BundleImage`].
pub async fn load(source: &str, client: &Client) -> Result<Loaded, Error> {
    if Path::new(source).is_dir() {
        return read(Path::new(source), None, None);
    }
    let location: Location = source
        .parse()
        .map_err(|error| Error::Bundle(format!("{source:?} is neither a directory nor an image: {error}")))?;
    let Location::Registry(name) = &location else {
        return Err(Error::Bundle(format!(
            "{source}: OLM v1 pulls the bundle by this name, so it must be a reference to a registry; a directory is pushed first"
        )));
    };
    let fault = |error: &dyn std::fmt::Display| Error::BundleImage {
        image: source.to_owned(),
        message: error.to_string(),
    };
    let full = client.full_name(name).map_err(|error| fault(&error))?;
    let pinned = full.pinned(client.resolve(name).await.map_err(|error| fault(&error))?.digest);
    let platform = Platform::host();
    let fetched = fetch(
        client,
        &Location::Registry(pinned.clone()),
        &Platforms::One(platform.clone()),
    )
    .await
    .map_err(|error| fault(&error))?;
    let folder = Directory::new("bundle").map_err(|error| fault(&error))?;
    fetched
        .unpack(&platform, folder.path(), &[])
        .map_err(|error| fault(&error))?;
    let directory = folder.path().to_owned();
    read(&directory, Some(&pinned.to_string()), Some(folder))
}

fn read(directory: &Path, image: Option<&str>, folder: Option<Directory>) -> Result<Loaded, Error> {
    let fault = |error: &dyn std::fmt::Display| Error::Bundle(format!("{}: {error}", directory.display()));
    let facts = source::from_directory(directory, image)?;
    objects::check_names(&facts.package).map_err(Error::Bundle)?;
    let tree = Tree::from_dir(directory, Limits::default()).map_err(|error| fault(&error))?;
    let bundle = olmv1::Bundle::read(&tree)
        .map_err(|error| fault(&format!("OLM v1 cannot read {}: {}", error.place.file, error.message)))?;
    Ok(Loaded {
        dependencies: olmv1::dependencies(&bundle, &tree),
        facts,
        bundle,
        directory: directory.to_owned(),
        _folder: folder,
    })
}

/// Pushes the bundle, unless it came from a registry, and a catalog with it as the successor of `replaces`. Returns the
/// catalog's reference in the cluster.
///
/// # Errors
/// [`Error::Publish`] with the image.
pub(super) async fn publish(
    loaded: &mut Loaded,
    replaces: Option<&str>,
    repositories: &Repositories,
    client: &Client,
    progress: &mut ProgressLog<'_>,
) -> Result<String, Error> {
    let folder = Directory::new("images").map_err(|error| Error::Bundle(error.to_string()))?;
    let layout =
        Layout::create_temporary(&folder.path().join("layout")).map_err(|error| Error::Bundle(error.to_string()))?;
    let tag = objects::version(&loaded.facts).replace('+', "-");
    let package = loaded.facts.package.clone();
    let time = source_date_epoch(None).map_err(|error| Error::Bundle(error.to_string()))?;
    if loaded.facts.image.is_none() {
        let recipe = bundle_recipe(&loaded.directory, Platform::host(), time)
            .map_err(|error| Error::Bundle(error.to_string()))?;
        let names = repositories.image(&format!("{package}-bundle"), &tag)?;
        let image = push(&recipe, &layout, names, client, progress).await?;
        loaded.facts.blob = blob(&loaded.directory, &image)?;
        loaded.facts.image = Some(image);
    }
    let blobs = loaded.facts.catalog(names::CHANNEL, replaces);
    let catalog = folder.path().join("catalog");
    write(&blobs, &catalog).map_err(|source| Error::File {
        path: catalog.clone(),
        source,
    })?;
    let fault = |error: olmkit_oci::Error| Error::Bundle(error.to_string());
    let mut content = LayerBuilder::new();
    content
        .directory(CONFIGS, 0o755)
        .and_then(|layer| layer.tree(&catalog, CONFIGS))
        .map_err(fault)?;
    // No container runs this image: catalogd reads the directory that the label names.
    let mut recipe = Recipe::new(Platform::host(), time);
    recipe.layers.push(("olmkit run bundle".to_owned(), content));
    recipe
        .config
        .labels
        .insert(CATALOG_CONFIGS_LABEL.to_owned(), CONFIGS.to_owned());
    let names = repositories.image(&format!("{package}-catalog"), &tag)?;
    push(&recipe, &layout, names, client, progress).await
}

/// Directory of the catalog in its image.
const CONFIGS: &str = "/configs";

fn write(blobs: &[Value], folder: &Path) -> std::io::Result<()> {
    let mut text = String::new();
    for blob in blobs {
        text.push_str(&blob.to_string());
        text.push('\n');
    }
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("catalog.json"), text)
}

/// The blob of a bundle directory whose image has been pushed.
fn blob(directory: &Path, image: &str) -> Result<Value, Error> {
    let fault = |error: &dyn std::fmt::Display| Error::Bundle(error.to_string());
    let rendered = catalog::render::bundle::directory(directory, image).map_err(|error| fault(&error))?;
    let mut text = String::new();
    catalog::write::blob(&Blob::Bundle(rendered), catalog::write::Format::Json, &mut text)
        .map_err(|error| fault(&error))?;
    serde_json::from_str(&text).map_err(|error| fault(&error))
}

/// Builds and pushes an image, and returns its name inside the cluster.
async fn push(
    recipe: &Recipe,
    layout: &Layout,
    (push, pull): (Reference, Reference),
    client: &Client,
    progress: &mut ProgressLog<'_>,
) -> Result<String, Error> {
    let image: Descriptor = recipe.build(layout).map_err(|error| Error::Bundle(error.to_string()))?;
    progress.waiting(format!("{push} to be pushed"));
    client
        .push(layout, &image, &push, &[])
        .await
        .map_err(|error| Error::Publish {
            image: push.to_string(),
            message: error.to_string(),
        })?;
    progress.done(format!("{push}: pushed"));
    Ok(pull.pinned(image.digest).to_string())
}
