//! The source of a catalog on disk: finds the file of a package and changes it in place, with [`edit`].

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::edit;
use super::edit::Placement;
use super::model::{Blob, Bundle, Catalog};
use super::placement::{NewEdges, place};
use super::{load, order, validate, walk, write};
use olmkit_base::object::shell_word;
use olmkit_base::{files, limits};
use olmkit_diagnostics::Severity;

/// Why a source cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing at the path.
    #[error(
        "no catalog at {}: create one with `olmkit catalog init {} -o yaml > {}`",
        path.display(),
        shell_word(package),
        shell_word(&path.join(package).join("catalog.yaml").display().to_string())
    )]
    Missing {
        /// The path.
        path: PathBuf,
        /// The package.
        package: String,
    },
    /// No file of the catalog has the package.
    #[error("{} has no package {package}: start with `olmkit catalog init {} -o yaml`", path.display(), shell_word(package))]
    NoPackage {
        /// The path.
        path: PathBuf,
        /// The package.
        package: String,
    },
    /// Nothing at the path, and nothing is to be created there.
    #[error("no catalog at {}", _0.display())]
    NoCatalog(PathBuf),
    /// No file of the catalog has the package, and it is not to be created.
    #[error("{} has no package {package}; it has {}", path.display(), shortened(known))]
    UnknownPackage {
        /// The path.
        path: PathBuf,
        /// The package.
        package: String,
        /// The packages of the catalog.
        known: BTreeSet<String>,
    },
    /// Several files have the package.
    #[error(
        "package {package} is spread over {files}: only a package in a single file can be changed in place; \
         `olmkit catalog migrate` writes one file per package"
    )]
    SeveralFiles {
        /// The package.
        package: String,
        /// Their paths, joined with commas.
        files: String,
    },
    /// The directory cannot be walked.
    #[error(transparent)]
    Walk(#[from] walk::Error),
    /// The file is not a catalog.
    #[error(transparent)]
    Load(#[from] load::Error),
    /// The change is impossible.
    #[error(transparent)]
    Edit(#[from] edit::Error),
    /// The catalog would have errors that it does not have yet.
    #[error("cannot {change}: the catalog would be invalid: {reason}")]
    Invalid {
        /// The change, such as `add shop.v1.0.0`.
        change: String,
        /// The errors, joined with semicolons.
        reason: String,
    },
    /// The bundle does not print.
    #[error(transparent)]
    Print(#[from] write::Error),
    /// The file cannot be written.
    #[error(transparent)]
    Write(#[from] files::WriteError),
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
}

/// Treatment of channels that the package does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewChannels {
    /// They are created.
    Create,
    /// They are rejected, unless the package has no channel yet.
    Refuse,
}

/// The file of a package: `path` itself, or the only file below it that contains the package.
///
/// # Errors
/// The file does not exist, or the package is in several files.
pub fn file_of(path: &Path, package: &str) -> Result<PathBuf, Error> {
    if path.is_file() {
        return Ok(path.to_owned());
    }
    if !path.is_dir() {
        return Err(Error::Missing {
            path: path.to_owned(),
            package: package.to_owned(),
        });
    }
    // Files with syntax errors are skipped here. `catalog validate` reports them.
    let has_package =
        |file: &PathBuf| load::file(file).is_ok_and(|blobs| blobs.iter().any(|blob| blob.package() == package));
    let mut files = walk::files(path)?;
    // The stage of a killed change is part of the catalog until it is removed.
    if files::remove_abandoned_below(&files) {
        files = walk::files(path)?;
    }
    let files: Vec<PathBuf> = files.into_par_iter().filter(has_package).collect();
    match files.as_slice() {
        [file] => Ok(file.clone()),
        [] => Err(Error::NoPackage {
            path: path.to_owned(),
            package: package.to_owned(),
        }),
        several => {
            let names: Vec<String> = several.iter().map(|file| file.display().to_string()).collect();
            Err(Error::SeveralFiles {
                package: package.to_owned(),
                files: names.join(", "),
            })
        }
    }
}

/// The file of a package that must exist: [`file_of`], with advice for a command that creates no package.
///
/// # Errors
/// The file does not exist, no file contains the package, or several do.
pub fn existing_file_of(path: &Path, package: &str) -> Result<PathBuf, Error> {
    let file = file_of(path, package).map_err(|error| match error {
        Error::Missing { path, .. } => Error::NoCatalog(path),
        Error::NoPackage { path, package } => Error::UnknownPackage {
            known: packages_below(&path),
            path,
            package,
        },
        other => other,
    })?;
    let known = packages_below(&file);
    if known.is_empty() || known.contains(package) {
        return Ok(file);
    }
    Err(Error::UnknownPackage {
        path: file,
        package: package.to_owned(),
        known,
    })
}

/// The packages in the readable files at a path.
fn packages_below(path: &Path) -> BTreeSet<String> {
    let files = if path.is_file() {
        vec![path.to_owned()]
    } else {
        walk::files(path).unwrap_or_default()
    };
    let blobs = files.iter().filter_map(|file| load::file(file).ok()).flatten();
    let packages = blobs.map(|blob| blob.package().to_owned());
    packages.filter(|name| !name.is_empty()).collect()
}

/// The first names of a list.
fn shortened(known: &BTreeSet<String>) -> String {
    const MOST: usize = 10;
    let names: Vec<&str> = known.iter().take(MOST).map(String::as_str).collect();
    match names.as_slice() {
        [] => "none".to_owned(),
        names => format!("{}{}", names.join(", "), if known.len() > MOST { ", …" } else { "" }),
    }
}

/// Adds a bundle to channels of its package in a file of the source, and returns its position in each channel.
///
/// # Errors
/// The file cannot be read, changed or written, or a channel does not allow the bundle. The file is unchanged then.
pub fn add(
    file: &Path,
    bundle: &Bundle,
    channels: &[String],
    edges: &NewEdges,
    new: NewChannels,
) -> Result<Vec<Placement>, Error> {
    let original = read(file)?;
    let mut text = original.clone();
    let mut blob = String::new();
    write::blob(&Blob::Bundle(bundle.clone()), write::Format::Yaml, &mut blob)?;
    let known: Catalog = load::file(file)?.into_iter().collect();
    if new == NewChannels::Refuse {
        refuse_unknown(&known, &bundle.package, channels)?;
    }
    let mut placements = Vec::new();
    for (number, channel) in channels.iter().enumerate() {
        let placement = place(&known, channel, bundle, edges)?;
        // The blob is added once, at the end of the file. Further channels get their entries before it.
        let before = if number == 0 {
            text.as_str()
        } else {
            text.strip_suffix(&blob).unwrap_or(&text)
        };
        text = edit::add(before, bundle, &blob, channel, &placement)?;
        placements.push(placement);
    }
    let change = format!("add {}", bundle.name);
    refuse_invalid(known, &text, &bundle.package, &change)?;
    files::write(file, with_line_ends(&original, text).as_bytes())?;
    Ok(placements)
}

/// Rejects a change after which the package has errors that it did not have before.
fn refuse_invalid(before: Catalog, after: &str, package: &str, change: &str) -> Result<(), Error> {
    let invalid = |reason: String| Error::Invalid {
        change: change.to_owned(),
        reason,
    };
    let after = load::text(after).map_err(|error| invalid(error.message))?;
    let of_package = |blobs: Vec<Blob>| -> Catalog {
        let own = blobs.into_iter().filter(|blob| blob.package() == package);
        own.collect()
    };
    let errors = |catalog: &Catalog| -> BTreeSet<String> {
        let problems = validate::catalog_verdict(catalog).problems.into_iter();
        let errors = problems.filter(|problem| problem.severity == Severity::Error);
        errors.map(|problem| problem.message).collect()
    };
    let (before, after) = (errors(&of_package(order::blobs(before))), errors(&of_package(after)));
    let new: Vec<&str> = after.difference(&before).map(String::as_str).collect();
    if new.is_empty() {
        return Ok(());
    }
    Err(invalid(new.join("; ")))
}

/// Deprecates a package, channel or bundle in a file of the source. See [`edit::deprecate`].
///
/// # Errors
/// When the file cannot be read, changed or written. It is unchanged then.
pub fn deprecate(file: &Path, package: &str, schema: &str, name: &str, message: &str) -> Result<(), Error> {
    let original = read(file)?;
    let text = edit::deprecate(&original, package, schema, name, message)?;
    let known: Catalog = load::file(file)?.into_iter().collect();
    let object = if name.is_empty() { package } else { name };
    refuse_invalid(known, &text, package, &format!("deprecate {object}"))?;
    Ok(files::write(file, with_line_ends(&original, text).as_bytes())?)
}

/// The string with the line ends of the original file.
fn with_line_ends(original: &str, text: String) -> String {
    if original.contains("\r\n") {
        return text.replace("\r\n", "\n").replace('\n', "\r\n");
    }
    text
}

/// An unknown channel is most often misspelled.
fn refuse_unknown(catalog: &Catalog, package: &str, channels: &[String]) -> Result<(), Error> {
    let of_package = catalog.channels.iter().filter(|channel| channel.package == package);
    let known: Vec<&str> = of_package.map(|channel| channel.name.as_str()).collect();
    match channels.iter().find(|channel| !known.contains(&channel.as_str())) {
        Some(unknown) if !known.is_empty() => Err(edit::Error::Refused(format!(
            "package {package} has no channel {unknown}, only {}; --create-channel creates it",
            known.join(", ")
        ))
        .into()),
        _ => Ok(()),
    }
}

fn read(file: &Path) -> Result<String, Error> {
    limits::read_file(file, &limits::CATALOG_FILE)
        .and_then(limits::text)
        .map_err(|source| Error::Io {
            path: file.to_owned(),
            source,
        })
}
