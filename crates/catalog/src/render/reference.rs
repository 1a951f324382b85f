//! Resolves the arguments of `catalog render` and renders all of them.

use std::path::{Component, Path, PathBuf};

use rayon::prelude::*;

use super::bundle::Source;
use super::{Error, MigrateLevel, migrate, touch_up};
use crate::model::{Bundle, Catalog};

/// Render options.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Migration level for bundles.
    pub migrate: MigrateLevel,
    /// The image reference of bundle directories, with `{{.Package}}`, `{{.Name}}` and `{{.Version}}`.
    pub image_template: Option<ImageTemplate>,
}

/// A reference that cannot be rendered.
#[derive(Debug, thiserror::Error)]
#[error("render reference \"{reference}\": {source}")]
pub struct ReferenceError {
    /// The argument.
    pub reference: String,
    /// The reason.
    pub source: Box<Error>,
}

/// Source of images: registry and layout on the command line, a table in tests.
pub trait Images: Sync {
    /// Unpacks an image.
    ///
    /// # Errors
    /// A message for the user: the image cannot be fetched.
    fn unpack(&self, reference: &str) -> Result<Unpacked, String>;
}

/// An image's files and labels.
pub struct Unpacked {
    /// Keeps the files. A temporary directory is removed when dropped.
    pub directory: Directory,
    /// The labels of its configuration.
    pub labels: std::collections::BTreeMap<String, String>,
}

/// A directory that may go away with its owner.
pub enum Directory {
    /// Removed on drop.
    Temporary(olmkit_base::temporary::Directory),
    /// Not deleted.
    Kept(PathBuf),
}

impl Directory {
    /// The path.
    pub fn path(&self) -> &Path {
        match self {
            Directory::Temporary(directory) => directory.path(),
            Directory::Kept(path) => path,
        }
    }
}

/// Label of a catalog image: the directory of its blobs.
pub const CONFIGS_LABEL: &str = "operators.operatorframework.io.index.configs.v1";
/// Label of a bundle image: its package.
pub const BUNDLE_LABEL: &str = "operators.operatorframework.io.bundle.package.v1";

/// Renders catalogs and bundles, given as directories or images, in parallel.
///
/// # Errors
/// The first argument that cannot be rendered.
pub fn render(references: &[String], options: &Options, images: &dyn Images) -> Result<Catalog, ReferenceError> {
    let parts: Vec<Result<Catalog, ReferenceError>> = references
        .par_iter()
        .map(|reference| render_one(reference, options, images))
        .collect();
    let mut catalog = Catalog::default();
    for part in parts {
        catalog.extend(part?);
    }
    Ok(catalog)
}

/// Renders one reference.
///
/// # Errors
/// It cannot be rendered.
pub fn render_one(reference: &str, options: &Options, images: &dyn Images) -> Result<Catalog, ReferenceError> {
    let fail = |error| ReferenceError {
        reference: reference.to_owned(),
        source: Box::new(error),
    };
    let mut catalog = read(reference, options, images).map_err(fail)?;
    catalog
        .bundles
        .par_iter_mut()
        .map(|bundle| {
            migrate(bundle, options.migrate)?;
            touch_up(bundle);
            Ok(())
        })
        .collect::<Result<(), Error>>()
        .map_err(fail)?;
    Ok(catalog)
}

fn read(reference: &str, options: &Options, images: &dyn Images) -> Result<Catalog, Error> {
    let path = Path::new(reference);
    if path.join("oci-layout").is_file() {
        return read_image(&format!("oci:{reference}"), images);
    }
    if path.exists() {
        if is_bundle(path) {
            return Ok(one_bundle(bundle_directory(path, options)?));
        }
        return Ok(crate::load::directory(path)?);
    }
    if looks_like_a_path(reference) {
        return Err(Error::Bundle(format!("no such file or directory: {reference}")));
    }
    read_image(reference, images)
}

/// Location of a catalog's files.
pub enum Located {
    /// In a directory.
    Directory(PathBuf),
    /// In an image that was unpacked. They go with this value. The path leads below the image's root.
    Image(Directory, PathBuf),
}

impl Located {
    /// The directory of the catalog's files.
    pub fn path(&self) -> &Path {
        match self {
            Located::Directory(path) | Located::Image(_, path) => path,
        }
    }
}

/// Finds the files of a catalog that is given as a directory, layout or image.
///
/// # Errors
/// The image cannot be pulled, or is not a catalog image.
pub fn locate(reference: &str, images: &dyn Images) -> Result<Located, Error> {
    let path = Path::new(reference);
    let layout = path.join("oci-layout").is_file();
    if !layout && (path.exists() || looks_like_a_path(reference)) {
        return Ok(Located::Directory(path.to_owned()));
    }
    let reference = if layout {
        format!("oci:{reference}")
    } else {
        reference.to_owned()
    };
    let image = images.unpack(&reference).map_err(Error::Bundle)?;
    let Some(configs) = image.labels.get(CONFIGS_LABEL) else {
        let problem = if image.labels.contains_key(BUNDLE_LABEL) {
            "this is a bundle image".to_owned()
        } else {
            unknown_image(&reference, &image.labels)
        };
        return Err(Error::Bundle(format!(
            "{problem}; a catalog image has the label {CONFIGS_LABEL}"
        )));
    };
    let path = configs_below(image.directory.path(), configs)?;
    Ok(Located::Image(image.directory, path))
}

/// The catalog directory that an image's label names, below the image's root. The label is untrusted: it must not
/// resolve to host files.
fn configs_below(root: &Path, label: &str) -> Result<PathBuf, Error> {
    let path = Path::new(label.trim_start_matches('/'));
    let stays = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    if !path.components().all(stays) {
        return Err(Error::Bundle(format!(
            "label {CONFIGS_LABEL} leads out of the image: {label:?}"
        )));
    }
    Ok(root.join(path))
}

/// Returns true if a reference can only be a path, so that querying a registry would be confusing.
fn looks_like_a_path(reference: &str) -> bool {
    reference.starts_with(['.', '/']) || !reference.contains(['/', ':'])
}

fn read_image(reference: &str, images: &dyn Images) -> Result<Catalog, Error> {
    let image = images.unpack(reference).map_err(Error::Bundle)?;
    let root = image.directory.path();
    if let Some(configs) = image.labels.get(CONFIGS_LABEL) {
        return Ok(crate::load::directory(&configs_below(root, configs)?)?);
    }
    if image.labels.contains_key(BUNDLE_LABEL) {
        return Ok(one_bundle(Source::read(root)?.render(reference)?));
    }
    Err(Error::Bundle(unknown_image(reference, &image.labels)))
}

fn unknown_image(reference: &str, labels: &std::collections::BTreeMap<String, String>) -> String {
    if labels.contains_key("operators.operatorframework.io.index.database.v1") {
        return "this is an SQLite catalog image, which is no longer supported: ask its publisher for a file-based \
                catalog"
            .into();
    }
    if labels.is_empty() {
        return format!("render \"{reference}\": image type could not be determined: image has no labels");
    }
    let labels: Vec<String> = labels.iter().map(|(key, value)| format!("  {key}={value}")).collect();
    format!(
        "render \"{reference}\": image type could not be determined, found labels\n{}",
        labels.join("\n")
    )
}

fn one_bundle(bundle: Bundle) -> Catalog {
    Catalog {
        bundles: vec![bundle],
        ..Catalog::default()
    }
}

/// Returns true if a directory is a bundle's: it has both `manifests` and `metadata`.
pub fn is_bundle(path: &Path) -> bool {
    // Links do not count, as in opm.
    let is_directory = |name: &str| {
        path.join(name)
            .symlink_metadata()
            .is_ok_and(|metadata| metadata.is_dir())
    };
    is_directory("manifests") && is_directory("metadata")
}

fn bundle_directory(path: &Path, options: &Options) -> Result<Bundle, Error> {
    let source = Source::read(path)?;
    let image = match &options.image_template {
        Some(template) => template.fill(source.package(), source.name(), source.version()),
        None => String::new(),
    };
    source.render(&image)
}

/// A template for the image references of bundle directories: the part of Go's templates that it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageTemplate(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Package,
    Name,
    Version,
}

impl std::str::FromStr for ImageTemplate {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once("{{") {
            pieces.push(Piece::Text(before.to_owned()));
            let (action, after) = behind.split_once("}}").ok_or_else(|| bad_action(behind))?;
            pieces.push(match action.trim_matches(['-', ' ']) {
                ".Package" => Piece::Package,
                ".Name" => Piece::Name,
                ".Version" => Piece::Version,
                other => return Err(bad_action(other)),
            });
            rest = after;
        }
        pieces.push(Piece::Text(rest.to_owned()));
        Ok(ImageTemplate(pieces))
    }
}

fn bad_action(action: &str) -> Error {
    Error::Template(format!(
        "invalid image reference template at \"{{{{{action}\": it may hold {{{{.Package}}}}, {{{{.Name}}}} and {{{{.Version}}}} only"
    ))
}

impl ImageTemplate {
    /// The reference for one bundle.
    pub fn fill(&self, package: &str, name: &str, version: &str) -> String {
        self.0
            .iter()
            .map(|piece| match piece {
                Piece::Text(text) => text,
                Piece::Package => package,
                Piece::Name => name,
                Piece::Version => version,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_templates_take_the_three_fields() {
        let template: ImageTemplate = "r.io/{{.Package}}/{{ .Name }}:v{{.Version}}".parse().unwrap();
        assert_eq!(template.fill("p", "p.v1", "1.0.0"), "r.io/p/p.v1:v1.0.0");
        assert!("{{.Nope}}".parse::<ImageTemplate>().is_err());
        assert!("{{.Name".parse::<ImageTemplate>().is_err());
    }

    /// An image that consists of labels.
    struct Labelled(&'static str);

    impl Images for Labelled {
        fn unpack(&self, _: &str) -> Result<Unpacked, String> {
            let directory = olmkit_base::temporary::Directory::new("image").map_err(|error| error.to_string())?;
            std::fs::create_dir(directory.path().join("configs")).map_err(|error| error.to_string())?;
            Ok(Unpacked {
                directory: Directory::Temporary(directory),
                labels: [(CONFIGS_LABEL.to_owned(), self.0.to_owned())].into(),
            })
        }
    }

    #[test]
    fn a_label_does_not_lead_out_of_its_image() {
        for label in ["/../../etc", "..", "configs/../../x", "/configs/../.."] {
            let images = Labelled(label);
            assert!(read_image("registry.test/c:v1", &images).is_err(), "{label}");
            let located = locate("registry.test/c:v1", &images).map(|located| located.path().to_owned());
            assert!(located.is_err(), "{label}: {located:?}");
        }
        for label in ["/configs", "configs/", "//configs", "./configs"] {
            assert!(read_image("registry.test/c:v1", &Labelled(label)).is_ok(), "{label}");
        }
    }
}
