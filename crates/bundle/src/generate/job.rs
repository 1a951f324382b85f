//! All files of a bundle as one job: manifests, metadata and `bundle.Dockerfile` are made in memory, then written together.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use super::digests::{self, Digests};
use super::{
    Error, Generated, Input, Metadata, Notice, OPERATOR_SDK_BUILDER, Options, Origin, Weight, builder, created_at,
    generate, present,
};
use crate::load::{Reading, Tree, read};
use crate::write::{self, Stale, WriteError};

const ANNOTATIONS: &str = "metadata/annotations.yaml";
/// The path of the Dockerfile unless another one is given.
pub const DOCKERFILE: &str = "bundle.Dockerfile";
const SCORECARD: &str = "tests/scorecard/config.yaml";
/// The layout of an operator without a PROJECT file.
const UNKNOWN_LAYOUT: &str = "unknown";

/// Destination of the files, and data that only the metadata needs.
#[derive(Debug, Clone)]
pub struct Target {
    /// The bundle directory.
    pub directory: PathBuf,
    /// The directory that the manifests were read from, if any. The default mode looks there for metadata and scorecard
    /// configuration, as operator-sdk does.
    pub input: Option<PathBuf>,
    /// Channels, joined with commas.
    pub channels: String,
    /// Default channel. Empty for none.
    pub default_channel: String,
    /// True if metadata that exist are replaced.
    pub overwrite: bool,
    /// True if the manifests are printed instead of written.
    pub stream: bool,
    /// The path of the Dockerfile, [`DOCKERFILE`] in general.
    pub dockerfile: PathBuf,
}

/// A bundle in the making. Nothing is on disk before [`Job::write`].
#[derive(Debug)]
pub struct Job {
    options: Options,
    target: Target,
    /// Files by path relative to the bundle directory.
    files: BTreeMap<PathBuf, Vec<u8>>,
    dockerfile: Option<String>,
    generated: Option<Generated>,
}

/// Why no manifests could be made, with the notices so far.
#[derive(Debug, thiserror::Error)]
#[error("no bundle was made")]
#[non_exhaustive]
pub struct Failure {
    /// The reason.
    #[source]
    pub error: Error,
    /// The notices.
    pub notices: Vec<Notice>,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self {
            error,
            notices: Vec::new(),
        }
    }
}

/// Result of [`Job::write`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// The manifests, if they are to be printed.
    pub stream: Option<String>,
    /// Files that were removed because the input no longer has them.
    pub removed: Vec<PathBuf>,
}

impl Job {
    /// A job without files.
    #[must_use]
    pub fn new(options: Options, target: Target) -> Self {
        Self {
            options,
            target,
            files: BTreeMap::new(),
            dockerfile: None,
            generated: None,
        }
    }

    /// Makes the manifests, with images pinned by `digests` if given. `createdAt` keeps its existing value if nothing
    /// else changes.
    ///
    /// # Errors
    /// Those of [`generate`], of [`created_at::keep`] and of the digests.
    pub fn manifests(&mut self, input: &Input, mut digests: Option<Digests<'_>>) -> Result<&Generated, Failure> {
        let generated = created_at::keep(&self.target.directory, self.options.clone(), |options| {
            let mut generated =
                generate(input.clone(), options).map_err(|(error, notices)| Failure { error, notices })?;
            if let Some(digests) = &mut digests {
                digests::pin_generated(&mut generated, digests)?;
            }
            Ok::<_, Failure>(generated)
        })?;
        if !self.target.stream {
            self.files.extend(generated.files()?);
        }
        Ok(self.generated.insert(generated))
    }

    /// The reason why an image cannot be built with the Dockerfile: `COPY` accepts only paths within the build context.
    #[must_use]
    pub fn dockerfile_notice(&self) -> Option<Notice> {
        let directory = &self.target.directory;
        let is_outside = directory
            .components()
            .next()
            .is_some_and(|first| matches!(first, Component::RootDir | Component::Prefix(_) | Component::ParentDir));
        self.dockerfile.as_ref().filter(|_| is_outside).map(|_| Notice {
            weight: Weight::Warning,
            origin: Origin::default(),
            object: self.target.dockerfile.display().to_string(),
            message: format!(
                "copies {}, which is outside of every build context: building the image fails",
                directory.display()
            ),
            hint: "Pass an --output-dir relative to the directory in which you build the image.".into(),
        })
    }

    /// Makes `metadata/annotations.yaml` and `bundle.Dockerfile`, unless existing metadata must be kept.
    ///
    /// # Errors
    /// When present metadata cannot be read.
    pub fn metadata(&mut self) -> Result<(), Error> {
        let strict = self.options.strict;
        let root = match &self.target.input {
            Some(input) if !strict => input,
            _ => &self.target.directory,
        };
        let present = present::find(root)?;
        if present.is_some() && !self.target.overwrite {
            return Ok(());
        }
        let made = self.files.contains_key(Path::new(SCORECARD)) && *root == self.target.directory;
        let kept = root.join(SCORECARD).exists() && self.stale() == Stale::Keep;
        let metadata = Metadata {
            directory: self.target.directory.display().to_string(),
            package: self.options.package.clone(),
            channels: self.target.channels.clone(),
            default_channel: self.target.default_channel.clone(),
            builder: if strict {
                builder()
            } else {
                OPERATOR_SDK_BUILDER.to_owned()
            },
            layout: Some(self.options.layout.clone())
                .filter(|layout| !strict || (layout != UNKNOWN_LAYOUT && !layout.is_empty())),
            scorecard: made || kept,
            own: if strict { present::own(present) } else { Vec::new() },
        };
        self.files
            .insert(PathBuf::from(ANNOTATIONS), metadata.annotations().into_bytes());
        self.dockerfile = Some(metadata.dockerfile());
        Ok(())
    }

    /// Writes everything. The scorecard configuration of printed manifests is written to the working directory.
    ///
    /// # Errors
    /// When a value does not print, or a file cannot be written. The bundle on disk is unchanged then.
    pub fn write(self) -> Result<Written, JobError> {
        let stale = self.stale();
        let mut written = Written::default();
        if let Some(generated) = self.generated.as_ref().filter(|_| self.target.stream) {
            written.stream = Some(generated.stream()?);
            if let Some(scorecard) = &generated.scorecard {
                let text = olmkit_yaml::to_string(scorecard).map_err(Error::from)?;
                write::file(Path::new(SCORECARD), text.as_bytes())?;
            }
        }
        let directory = &self.target.directory;
        if !self.files.is_empty() {
            let removed = write::replace(directory, &self.files, stale)?;
            written.removed = removed.into_iter().map(|path| directory.join(path)).collect();
        }
        if let Some(dockerfile) = &self.dockerfile {
            write::file(&self.target.dockerfile, dockerfile.as_bytes())?;
        }
        Ok(written)
    }

    /// Strict mode removes files that the input no longer contains, after manifests were made.
    fn stale(&self) -> Stale {
        if self.options.strict && self.generated.is_some() {
            Stale::Remove
        } else {
            Stale::Keep
        }
    }
}

/// Why a finished bundle could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JobError {
    /// A value does not print.
    #[error(transparent)]
    Make(#[from] Error),
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl Generated {
    /// The manifests as `bundle validate` would read them, with the minimal metadata of a bundle.
    ///
    /// # Errors
    /// When a value does not print.
    pub fn reading(&self, package: &str) -> Result<Reading, Error> {
        let metadata = Metadata {
            package: package.to_owned(),
            channels: "alpha".into(),
            ..Metadata::default()
        };
        let mut files = vec![(ANNOTATIONS.to_owned(), metadata.annotations().into_bytes())];
        for (path, bytes) in self.files()? {
            files.push((path.display().to_string(), bytes));
        }
        Ok(read(Tree::from_files(files), "bundle"))
    }
}

/// Package name and layout: the name that was given, else that of the PROJECT file, else in strict mode that of the only base
/// CSV in `kustomize_dir`.
///
/// # Errors
/// When the name cannot be determined.
pub fn package_and_layout(
    project_dir: &Path,
    given: Option<&str>,
    strict: bool,
    kustomize_dir: &Path,
) -> Result<(String, String), Error> {
    let project = super::ProjectFile::read(project_dir)?;
    let layout = project
        .as_ref()
        .map_or_else(|| UNKNOWN_LAYOUT.to_owned(), |project| project.layout(strict));
    let given = given.filter(|package| !package.is_empty()).map(str::to_owned);
    match given.or(project.map(|project| project.name)) {
        Some(package) if !package.is_empty() => Ok((package, layout)),
        Some(_) => Err(Error::Package(
            "the PROJECT file has no projectName; set the package with --package".into(),
        )),
        None if strict => Ok((package_of_only_base(kustomize_dir)?, layout)),
        None => Err(Error::Package(
            "no PROJECT file here; set the package with --package".into(),
        )),
    }
}

/// The package of the only base CSV of a project.
fn package_of_only_base(kustomize_dir: &Path) -> Result<String, Error> {
    let bases = kustomize_dir.join("bases");
    let mut names: Vec<String> = std::fs::read_dir(&bases)
        .map(|entries| {
            entries
                .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
                .filter_map(|name| Some(name.strip_suffix(".clusterserviceversion.yaml")?.to_owned()))
                .collect()
        })
        .unwrap_or_default();
    match (names.pop(), names.len()) {
        (Some(name), 0) => Ok(name),
        (last, rest) => Err(Error::Package(format!(
            "no PROJECT file here, and {} has {} base CSVs; set the package with --package",
            bases.display(),
            rest + usize::from(last.is_some())
        ))),
    }
}
