//! Source of a bundle: a directory, or an image that is unpacked first.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::{Options, Outcome};
use crate::bundle::load::{self, Limits, Reading, Tree, TreeError, paths};
use crate::diagnostics::{Finding, Report, Severity, Suppressed, Verdict};
use crate::policy::{Judge, Judged, may_have_comments};

/// A bundle directory with its name in messages.
#[derive(Debug, Clone)]
pub struct Source {
    /// The directory.
    pub directory: PathBuf,
    /// Its name in operator-sdk's messages: the path relative to the working directory.
    pub shown: String,
    /// The image that the directory was unpacked from, as the user named it.
    pub image: Option<String>,
    /// The labels of that image.
    pub image_labels: Option<BTreeMap<String, String>>,
}

impl Source {
    /// A directory as the user named it.
    pub fn directory(path: &Path) -> Self {
        Self {
            directory: path.to_path_buf(),
            shown: paths::relative_to_working_directory(path),
            image: None,
            image_labels: None,
        }
    }

    /// The directory that an image with these labels was unpacked to.
    pub fn image(image: &str, path: &Path, labels: BTreeMap<String, String>) -> Self {
        Self {
            image: Some(image.to_string()),
            image_labels: Some(labels),
            ..Self::directory(path)
        }
    }

    /// Reads the directory.
    ///
    /// # Errors
    /// If it cannot be listed, or exceeds the limits of a bundle.
    pub fn read(&self) -> Result<Reading, TreeError> {
        Ok(load::read(
            Tree::from_dir(&self.directory, Limits::default())?,
            &self.shown,
        ))
    }

    /// Reads and validates the bundle. Returns the decoded bundle too. Directory and labels of the options are set
    /// here.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn validate(&self, options: &Options) -> Result<(Validated, Reading), TreeError> {
        let reading = self.read()?;
        let options = Options {
            directory: self.directory.clone(),
            image_labels: self.image_labels.clone(),
            ..options.clone()
        };
        let outcome = super::validate(&reading, &options);
        let validated = Validated {
            name: self
                .image
                .clone()
                .unwrap_or_else(|| self.directory.display().to_string()),
            is_image: self.image.is_some(),
            directory: self.directory.clone(),
            without_comments: without_comments(&outcome, &reading.bundle.tree),
            outcome,
            suppressed: Vec::new(),
        };
        Ok((validated, reading))
    }
}

/// One bundle with what validating it gave.
#[derive(Debug)]
pub struct Validated {
    /// The image or directory as the user named it.
    pub name: String,
    /// True if the directory is a temporary one that an image was unpacked to.
    pub is_image: bool,
    /// The directory in front of file names.
    pub directory: PathBuf,
    /// The findings.
    pub outcome: Outcome,
    /// Findings that a policy suppressed.
    pub suppressed: Vec<Suppressed>,
    /// Files without comments, when they were read. A policy reads the others again.
    without_comments: BTreeSet<PathBuf>,
}

/// The files with findings that have no comments.
fn without_comments(outcome: &Outcome, tree: &Tree) -> BTreeSet<PathBuf> {
    let named: BTreeSet<&Path> = outcome
        .findings()
        .filter_map(|finding| finding.file.as_deref())
        .collect();
    let has_none = |file: &&Path| {
        let bytes = file.to_str().and_then(|file| tree.file(file));
        bytes.is_some_and(|bytes| !may_have_comments(bytes))
    };
    named.into_iter().filter(has_none).map(Path::to_owned).collect()
}

impl Validated {
    /// Returns true if a run fails because of this bundle: operator-sdk would fail it, or it has findings of that severity or a worse one.
    #[must_use]
    pub fn fails(&self, from: Severity) -> bool {
        !self.outcome.passed()
            || self.count(Severity::Error) > 0
            || (from == Severity::Warning && self.count(Severity::Warning) > 0)
    }

    /// The number of findings of a severity.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        self.outcome
            .findings()
            .filter(|finding| finding.severity == severity)
            .count()
    }

    /// Applies a policy to the findings and their severities. Suppressed ones no longer affect the result.
    pub fn judge(&mut self, judge: &mut Judge<'_>) {
        let checked = std::mem::take(&mut self.outcome.checked);
        for mut checked in checked {
            let file = checked.finding.file.as_deref();
            let lasting = self.lasting_name(file);
            let with_comments = !self.is_image && !file.is_some_and(|file| self.without_comments.contains(file));
            match judge.one_in(Some(lasting), checked.finding, with_comments) {
                Judged::Kept(finding) => {
                    checked.finding = finding;
                    self.outcome.checked.push(checked);
                }
                Judged::Suppressed(suppressed) => self.suppressed.push(suppressed),
                Judged::Dropped => {}
            }
        }
    }

    /// The name of a file that is still true afterwards: as seen from the working directory, or inside the image.
    fn lasting_name(&self, file: Option<&Path>) -> PathBuf {
        let file = file.unwrap_or(Path::new(""));
        if self.is_image {
            file.to_owned()
        } else {
            self.directory.join(file)
        }
    }

    /// The findings, sorted, with file names as seen from the working directory.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        self.named(|file| self.directory.join(file.unwrap_or(Path::new(""))))
    }

    /// As [`Self::findings`]. Files of an image have their names inside the image, because the directory with the
    /// unpacked files is deleted afterwards.
    #[must_use]
    pub fn findings_for_machines(&self) -> Vec<Finding> {
        self.named(|file| self.lasting_name(file))
    }

    fn named(&self, name: impl Fn(Option<&Path>) -> PathBuf) -> Vec<Finding> {
        let mut report: Report = self.outcome.findings().cloned().collect();
        for finding in &mut report.findings {
            finding.file = Some(name(finding.file.as_deref()));
        }
        report.sort();
        report.findings
    }

    /// Everything, for machine-readable formats.
    #[must_use]
    pub fn report(&self) -> Report {
        let mut report = Report {
            findings: self.findings_for_machines(),
            suppressed: self.suppressed.clone(),
            ..Report::new()
        };
        report.inputs = vec![Verdict::new(&self.name, self.outcome.passed(), &report)];
        report
    }
}

/// All bundles below a directory: directories that have a `manifests` and a `metadata` directory. Nothing is looked for inside
/// a bundle, nor in hidden directories.
///
/// # Errors
/// When a directory cannot be listed.
pub fn find_bundles(root: &Path) -> std::io::Result<Vec<PathBuf>> {
    let is_bundle = |path: &Path| path.join("manifests").is_dir() && path.join("metadata").is_dir();
    let mut found = Vec::new();
    let mut walk = walkdir::WalkDir::new(root)
        .max_depth(32)
        .sort_by_file_name()
        .into_iter();
    while let Some(entry) = walk.next() {
        let entry = entry?;
        if !entry.file_type().is_dir() {
            continue;
        }
        if is_bundle(entry.path()) {
            found.push(entry.path().to_path_buf());
            walk.skip_current_dir();
        } else if entry.depth() > 0 && entry.file_name().to_string_lossy().starts_with('.') {
            walk.skip_current_dir();
        }
    }
    Ok(found)
}
