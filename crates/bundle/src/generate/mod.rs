//! Makes a bundle of an operator's manifests: what `operator-sdk generate bundle` does, with nothing lost silently.
//!
//! [`Input`] collects objects from a stream or from directories. [`generate`] assembles the ClusterServiceVersion and
//! the other files. Both are pure: nothing is written before the whole bundle exists, see [`super::write`].
//!
//! In the default mode the files are those of operator-sdk 1.42.3, also if it drops something. Each such case causes a
//! [`Notice`]. With [`Options::strict`] losses are errors, rules are merged and sorted, annotations and related images
//! of the base are kept, and certificate volumes that OLM replaces are removed.

mod accounts;
mod almexamples;
mod assemble;
mod base;
mod collect;
pub mod created_at;
mod definitions;
mod digests;
mod files;
mod images;
mod input;
pub mod job;
mod kustomization;
mod losses;
mod metadata;
mod notice;
mod origin;
pub mod present;
mod project_file;
mod sources;
mod strict;
mod typed;
mod unknown_fields;
mod webhooks;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

pub use digests::{DigestMap, Digests, pin, read_digest_map};
pub use input::{Document, Input};
pub use job::{Job, Target};
pub use metadata::Metadata;
pub use notice::{Notice, Weight};
pub use origin::Origin;
pub use project_file::{ProjectFile, SCAFFOLD};

/// operator-sdk's name in the annotations of a bundle. The default mode writes the same, because the value names the
/// rules by which the bundle was made.
pub const OPERATOR_SDK_BUILDER: &str = "operator-sdk-v1.42.3";

/// Why no bundle could be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or directory that cannot be read.
    #[error("cannot read {path}: {reason}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error. Not a source, because the message contains it.
        reason: std::io::Error,
    },
    /// A line that begins like a document separator and continues with other text.
    #[error("{origin}: a line that begins with --- separates documents; nothing but a comment may follow on it")]
    Separator {
        /// Position of the line.
        origin: Origin,
    },
    /// An object that its Kubernetes type does not accept.
    #[error("{origin}: {object}{at}: {message}")]
    Decode {
        /// Position of the object.
        origin: Origin,
        /// Kind and name.
        object: String,
        /// `, at /spec/replicas`, or empty.
        at: String,
        /// The error.
        message: String,
    },
    /// Two objects of a kind that a bundle may contain once.
    #[error("{origin}: {object}: {reason}")]
    Object {
        /// Position of the second one.
        origin: Origin,
        /// Kind and name.
        object: String,
        /// The reason and the fix.
        reason: String,
    },
    /// A base CSV that cannot be read.
    #[error("{path}: {reason}", path = path.display())]
    Base {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// A related image that is not a plain value.
    #[error(
        "Deployment {deployment}: variable {variable} uses valueFrom; an image that mirrors copy must be a plain \
         value"
    )]
    RelatedImage {
        /// The Deployment's name.
        deployment: String,
        /// The variable's name.
        variable: String,
    },
    /// A version that is not a semantic version.
    #[error("{version} is not a valid semantic version: {reason}")]
    Version {
        /// The version as given.
        version: String,
        /// The reason.
        reason: String,
    },
    /// A PROJECT file that cannot be used.
    #[error("{path}: {reason}", path = path.display())]
    Project {
        /// The file.
        path: PathBuf,
        /// The reason and the fix.
        reason: String,
    },
    /// The input contains no Kubernetes object.
    #[error(
        "the input contains no object; pipe the output of `kustomize build config/manifests` in, or name a directory with \
         --input-dir"
    )]
    Empty,
    /// Strict mode found losses.
    #[error("{count} finding(s) in strict mode; each is listed above with what to do")]
    Strict {
        /// Their number.
        count: usize,
    },
    /// An image without a digest in the map or in its registry.
    #[error("{image}: {reason}")]
    Digest {
        /// The image.
        image: String,
        /// The reason and the fix.
        reason: String,
    },
    /// A file of digests that cannot be used.
    #[error("{path} must map images to digests, as in `quay.io/a/b:v1: sha256:…`", path = path.display())]
    DigestFile {
        /// The file.
        path: PathBuf,
        /// The error.
        source: olmkit_yaml::Error,
    },
    /// No package name can be determined.
    #[error("{0}")]
    Package(String),
    /// `SOURCE_DATE_EPOCH` that is not a number.
    #[error("SOURCE_DATE_EPOCH is {text:?}; it must be a number of seconds since 1970")]
    SourceDateEpoch {
        /// The value of the variable.
        text: String,
        /// The error.
        source: std::num::ParseIntError,
    },
    /// `SOURCE_DATE_EPOCH` that is not a time.
    #[error("SOURCE_DATE_EPOCH is out of range")]
    SourceDateEpochRange(#[source] jiff::Error),
    /// Metadata of an earlier bundle that cannot be read.
    #[error("{path}: no annotations can be read", path = path.display())]
    Annotations {
        /// The file.
        path: PathBuf,
        /// The error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A value that does not print.
    #[error(transparent)]
    Yaml(#[from] olmkit_yaml::Error),
}

/// Options for generating a bundle.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Package name: prefix of the CSV's name, name of its file.
    pub package: String,
    /// Layout of the project, for an annotation. `unknown` without a PROJECT file.
    pub layout: String,
    /// Semantic version; without one, name and version of the base are kept.
    pub version: Option<String>,
    /// Additional service accounts, not used by a Deployment, whose permissions belong in the CSV.
    pub extra_service_accounts: Vec<String>,
    /// Value of the `createdAt` annotation, RFC 3339.
    pub created_at: String,
    /// Name or version of the CSV that this one follows.
    pub replaces: Option<String>,
    /// Names or versions that this one skips.
    pub skips: Vec<String>,
    /// `olm.skipRange`.
    pub skip_range: Option<String>,
    /// Losses are errors, rules are merged and sorted, the base's additions survive.
    pub strict: bool,
    /// Kinds that strict mode may leave out of the bundle without an error, and fields that it may lose, as in
    /// `Deployment.annotations`.
    pub allow_dropped: Vec<String>,
}

impl Options {
    /// Returns true if strict mode may leave out this kind or field.
    fn allows_dropped(&self, name: &str) -> bool {
        self.allow_dropped
            .iter()
            .any(|allowed| allowed.eq_ignore_ascii_case(name))
    }
}

/// A bundle's manifests, not yet written.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Generated {
    /// The ClusterServiceVersion, as it will be printed.
    pub csv: Value,
    /// File names and objects, in the order in which they are printed to a stream. The CSV comes first.
    pub manifests: Vec<(String, Value)>,
    /// The scorecard configuration, when the input has one.
    pub scorecard: Option<Value>,
    /// Objects that were omitted from the bundle, and other notices.
    pub notices: Vec<Notice>,
}

impl Generated {
    /// The content of every file below `manifests/` and `tests/`, by path relative to the bundle.
    ///
    /// # Errors
    /// When a value does not print.
    pub fn files(&self) -> Result<BTreeMap<PathBuf, Vec<u8>>, Error> {
        let mut files = BTreeMap::new();
        for (name, object) in &self.manifests {
            let text = olmkit_yaml::to_string(object)?;
            files.insert(PathBuf::from("manifests").join(name), text.into_bytes());
        }
        if let Some(scorecard) = &self.scorecard {
            let text = olmkit_yaml::to_string(scorecard)?;
            files.insert(PathBuf::from("tests/scorecard/config.yaml"), text.into_bytes());
        }
        Ok(files)
    }

    /// The manifests as one stream of documents, as `--stdout` prints them.
    ///
    /// # Errors
    /// When a value does not print.
    pub fn stream(&self) -> Result<String, Error> {
        let mut stream = String::new();
        for (_, object) in &self.manifests {
            stream.push_str("\n---\n");
            stream.push_str(olmkit_yaml::to_string(object)?.trim());
        }
        Ok(stream)
    }
}

/// olmkit's name in the annotations of a bundle made in strict mode.
#[must_use]
pub fn builder() -> String {
    format!("olmkit-v{}", env!("CARGO_PKG_VERSION"))
}

/// The initial base of a package: every field to fill in has a placeholder.
#[must_use]
pub fn bare_base(package: &str) -> Value {
    base::bare(package)
}

/// A base CSV for writing: in its type's form, without status.
#[must_use]
pub fn base_form(base: &Value) -> Value {
    match olmkit_go::structs::encode::decode(base, "ClusterServiceVersion") {
        Ok(decoded) => assemble::finish(&decoded),
        Err(_) => base.clone(),
    }
}

/// Checks a version as operator-sdk does: strict semantic versioning, no leading `v`, no leading zeros.
///
/// # Errors
/// When it is not such a version.
pub fn check_version(version: &str) -> Result<(), Error> {
    let fail = |reason: String| Error::Version {
        version: version.to_owned(),
        reason,
    };
    if let Some(rest) = version.strip_prefix(['v', 'V']) {
        return Err(fail(format!(
            "drop the {:?}: use {rest}",
            version.chars().next().unwrap_or('v')
        )));
    }
    if version.matches('.').count() < 2 {
        return Err(fail("it needs three numbers, such as 1.0.0".into()));
    }
    semver::Version::parse(version)
        .map(|_| ())
        .map_err(|error| fail(error.to_string()))
}

/// Makes the manifests of a bundle.
///
/// # Errors
/// When an object does not decode, the CSV cannot be assembled, or strict mode found a loss. The notices of the last case
/// are in the second member.
pub fn generate(input: Input, options: &Options) -> Result<Generated, (Error, Vec<Notice>)> {
    let mut notices = input.notices.clone();
    match assemble::assemble(input, options, &mut notices) {
        Ok((csv, manifests, scorecard)) => {
            notices.sort();
            notices.dedup();
            let losses = notices.iter().filter(|notice| notice.weight == Weight::Loss).count();
            if options.strict && losses > 0 {
                return Err((Error::Strict { count: losses }, notices));
            }
            Ok(Generated {
                csv,
                manifests,
                scorecard,
                notices,
            })
        }
        Err(error) => Err((error, notices)),
    }
}
