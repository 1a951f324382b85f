//! Writes catalogs as `opm render` does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::model::{Blob, Bundle, Channel, Custom, Deprecation, Package, Property};
use super::text::Html;
use olmkit_base::files::{Stage, WriteError};
use olmkit_base::object::{InvalidPathPart, PathPart};
use olmkit_go::json::{write_indented, write_string};
use olmkit_yaml as yaml;

/// The format of a written catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// One JSON object after the other, indented by four.
    #[default]
    Json,
    /// YAML documents, each after `---`.
    Yaml,
}

/// Blobs that are serialized at a time.
const WINDOW: usize = 64;

/// Why a catalog cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A blob contains a value that YAML cannot represent.
    #[error("cannot write {blob} as YAML: {source}")]
    Yaml {
        /// The blob.
        blob: String,
        /// The writer's error.
        source: Box<yaml::Error>,
    },
    /// A package whose name cannot be that of a directory.
    #[error("package {0}")]
    Package(#[from] InvalidPathPart),
    /// The output cannot be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] std::io::Error),
    /// The catalog cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Writes one blob.
///
/// # Errors
/// See [`Error`].
pub fn blob(blob: &Blob, format: Format, out: &mut String) -> Result<(), Error> {
    let mut json = String::new();
    write_blob(&mut json, blob);
    let custom = matches!(blob, Blob::Custom(_));
    document(&json, format, out, || {
        if custom {
            format!("a blob of package {}", blob.package())
        } else {
            format!("{} {}", schema_of(blob), blob.package())
        }
    })
}

fn schema_of(blob: &Blob) -> &str {
    match blob {
        Blob::Package(_) => super::model::PACKAGE,
        Blob::Channel(_) => super::model::CHANNEL,
        Blob::Bundle(_) => super::model::BUNDLE,
        Blob::Deprecation(_) => super::model::DEPRECATIONS,
        Blob::Custom(custom) => &custom.schema,
    }
}

/// Appends one document, given as compact JSON.
fn document(json: &str, format: Format, out: &mut String, name: impl Fn() -> String) -> Result<(), Error> {
    match format {
        Format::Json => {
            write_indented(out, json, "    ");
            out.push('\n');
        }
        Format::Yaml => {
            let fail = |source| Error::Yaml {
                blob: name(),
                source: Box::new(source),
            };
            out.push_str("---\n");
            out.push_str(&yaml::json_to_yaml(json).map_err(fail)?);
        }
    }
    Ok(())
}

/// The compact JSON of a blob, fields in opm's order.
pub fn write_blob(out: &mut String, blob: &Blob) {
    match blob {
        Blob::Package(blob) => package(out, blob),
        Blob::Channel(blob) => channel(out, blob),
        Blob::Bundle(blob) => bundle(out, blob),
        Blob::Deprecation(blob) => deprecation(out, blob),
        Blob::Custom(Custom { json, .. }) => out.push_str(json),
    }
}

/// Writes a JSON object field by field.
struct Object<'o> {
    out: &'o mut String,
    empty: bool,
}

impl<'o> Object<'o> {
    fn open(out: &'o mut String) -> Self {
        out.push('{');
        Object { out, empty: true }
    }

    /// Writes a name. The value follows in the returned output.
    fn name(&mut self, name: &str) -> &mut String {
        if !self.empty {
            self.out.push(',');
        }
        self.empty = false;
        write_string(self.out, name, Html::Plain);
        self.out.push(':');
        self.out
    }

    fn text(&mut self, name: &str, value: &str) {
        write_string(self.name(name), value, Html::Plain);
    }

    fn text_unless_empty(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.text(name, value);
        }
    }

    fn list<T>(&mut self, name: &str, items: &[T], write: impl Fn(&mut String, &T)) {
        let out = self.name(name);
        out.push('[');
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            write(out, item);
        }
        out.push(']');
    }

    fn list_unless_empty<T>(&mut self, name: &str, items: &[T], write: impl Fn(&mut String, &T)) {
        if !items.is_empty() {
            self.list(name, items, write);
        }
    }

    fn close(self) {
        self.out.push('}');
    }
}

fn package(out: &mut String, package: &Package) {
    let mut object = Object::open(out);
    object.text("schema", super::model::PACKAGE);
    object.text("name", &package.name);
    object.text("defaultChannel", &package.default_channel);
    if let Some(icon) = &package.icon {
        let mut inner = Object::open(object.name("icon"));
        match &icon.data {
            Some(data) => inner.text("base64data", data),
            None => inner.name("base64data").push_str("null"),
        }
        inner.text("mediatype", &icon.media_type);
        inner.close();
    }
    object.text_unless_empty("description", &package.description);
    object.list_unless_empty("properties", &package.properties, property);
    object.close();
}

fn property(out: &mut String, property: &Property) {
    let mut object = Object::open(out);
    object.text("type", &property.kind);
    object
        .name("value")
        .push_str(property.value.as_deref().unwrap_or("null"));
    object.close();
}

fn channel(out: &mut String, channel: &Channel) {
    let mut object = Object::open(out);
    object.text("schema", super::model::CHANNEL);
    object.text("name", &channel.name);
    object.text("package", &channel.package);
    match &channel.entries {
        None => object.name("entries").push_str("null"),
        Some(entries) => object.list("entries", entries, |out, entry| {
            let mut object = Object::open(out);
            object.text("name", &entry.name);
            object.text_unless_empty("replaces", &entry.replaces);
            object.list_unless_empty("skips", &entry.skips, |out, skip| write_string(out, skip, Html::Plain));
            object.text_unless_empty("skipRange", &entry.skip_range);
            object.close();
        }),
    }
    object.list_unless_empty("properties", &channel.properties, property);
    object.close();
}

fn bundle(out: &mut String, bundle: &Bundle) {
    let mut object = Object::open(out);
    object.text("schema", super::model::BUNDLE);
    object.text_unless_empty("name", &bundle.name);
    object.text_unless_empty("package", &bundle.package);
    object.text("image", &bundle.image);
    object.list_unless_empty("properties", &bundle.properties, property);
    object.list_unless_empty("relatedImages", &bundle.related_images, |out, image| {
        let mut object = Object::open(out);
        object.text("name", &image.name);
        object.text("image", &image.image);
        object.close();
    });
    object.close();
}

fn deprecation(out: &mut String, deprecation: &Deprecation) {
    let mut object = Object::open(out);
    object.text("schema", super::model::DEPRECATIONS);
    object.text("package", &deprecation.package);
    match &deprecation.entries {
        None => object.name("entries").push_str("null"),
        Some(entries) => object.list("entries", entries, |out, entry| {
            let mut object = Object::open(out);
            let mut reference = Object::open(object.name("reference"));
            reference.text("schema", &entry.schema);
            reference.text_unless_empty("name", &entry.name);
            reference.close();
            object.text("message", &entry.message);
            object.close();
        }),
    }
    object.close();
}

/// Writes blobs one after the other. Large catalogs are serialized on several threads, some megabytes at a time.
///
/// # Errors
/// The output cannot be written, or a blob does not fit the format.
pub fn all(blobs: &[Blob], format: Format, out: &mut dyn std::io::Write) -> Result<(), Error> {
    for window in blobs.chunks(WINDOW) {
        let texts: Vec<String> = window
            .par_iter()
            .map(|one| {
                let mut text = String::new();
                blob(one, format, &mut text)?;
                Ok(text)
            })
            .collect::<Result<_, Error>>()?;
        for text in texts {
            out.write_all(text.as_bytes())?;
        }
    }
    Ok(out.flush()?)
}

/// Writes a catalog as a directory: `<package>/catalog.yaml` for each package, blobs without one at the top. It appears
/// atomically. See [`olmkit_base::files`].
///
/// # Errors
/// The directory is not empty, or cannot be written.
pub fn directory(blobs: Vec<Blob>, format: Format, root: &Path) -> Result<(), Error> {
    let occupied = root.read_dir().is_ok_and(|mut entries| entries.next().is_some());
    if occupied {
        return Err(Error::Output(std::io::Error::other(format!(
            "output directory {} must be empty",
            root.display()
        ))));
    }
    let name = match format {
        Format::Json => "catalog.json",
        Format::Yaml => "catalog.yaml",
    };
    let mut packages: BTreeMap<String, Vec<Blob>> = BTreeMap::new();
    for blob in blobs {
        packages.entry(blob.package().to_owned()).or_default().push(blob);
    }
    // All names are checked before anything is written. Blobs without a package are written at the top.
    let mut files = Vec::new();
    for (package, blobs) in packages {
        let file = match package.as_str() {
            "" => PathBuf::from(name),
            _ => Path::new(PathPart::new(package)?.as_str()).join(name),
        };
        files.push((file, blobs));
    }
    let stage = Stage::beside(root)?;
    for (file, blobs) in files {
        let mut text = Vec::new();
        all(&blobs, format, &mut text)?;
        stage.write(&file, &text)?;
    }
    Ok(stage.take_place(&[])?)
}

#[cfg(test)]
mod tests {
    use super::{Format, directory};
    use crate::load;

    #[test]
    fn a_package_never_writes_outside_the_directory() {
        for name in ["../x", "/abs", "..", "a/b"] {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path().join("out");
            std::fs::create_dir(&root).unwrap();
            let text = format!("---\nschema: olm.package\nname: a\n---\nschema: olm.package\nname: {name}\n");
            let error = directory(load::text(&text).unwrap(), Format::Yaml, &root).unwrap_err();
            assert!(error.to_string().contains(&format!("{name:?}")), "{error}");
            // Not even the package with a good name is written.
            assert_eq!(std::fs::read_dir(&root).unwrap().count(), 0);
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }
}
