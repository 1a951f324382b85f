//! `olmkit.toml`: the settings of a project.
//!
//! The file is looked for in the working directory and the directories above it, up to the root of the git repository. It is never read
//! inside a bundle: the content of a bundle does not decide how it is judged. Nor does a file of another user, or a link.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::builder::InvalidSetting;
use super::{Builder, baseline};
use crate::limits;

/// Maximum patterns and globs of one setting, because each finding is compared with all of them.
const MOST: usize = 1000;

/// The name of the file.
pub const FILE: &str = "olmkit.toml";

/// The settings of a project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[non_exhaustive]
pub struct Config {
    /// Rules to report: ids such as `CSV-17`, families such as `CSV`, or `all`. All by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub select: Vec<String>,
    /// Rules to ignore.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
    /// Rules to ignore in some files: globs of paths as seen from this file, with the rules.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub per_path_ignores: BTreeMap<String, Vec<String>>,
    /// Other severities: rules with `error`, `warning` or `info`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub severity: BTreeMap<String, String>,
    /// File with the findings that are known, as `--write-baseline` writes it. Relative to this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<PathBuf>,
    /// Lowest severity that fails a command: `error` or `warning`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail_on: Option<FailOn>,
}

/// The lowest severity that fails a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FailOn {
    /// Errors only.
    Error,
    /// Warnings too.
    Warning,
}

/// Why settings cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read.
    #[error("cannot read {0}: {1}")]
    Read(PathBuf, std::io::Error),
    /// The file is not TOML, or has other settings. The message names line and column.
    #[error("{0}: {1}")]
    Format(PathBuf, String),
    /// A file of the project that is not read automatically.
    #[error("{0} {1}; pass --config FILE to use it, or --isolated to read no settings")]
    Untrusted(PathBuf, &'static str),
    /// More settings than each finding can be compared with.
    #[error("{0}: {1}: more than {MOST}; use families such as CSV, or wider globs")]
    TooMany(PathBuf, &'static str),
    /// A setting has no such value.
    #[error("{0}: {1}: {2}")]
    Setting(PathBuf, &'static str, InvalidSetting),
    /// The baseline cannot be used.
    #[error("{0}: baseline: {1}")]
    Baseline(PathBuf, baseline::Error),
}

/// The file that applies to a directory, if there is one.
///
/// # Errors
/// The project has such a file, but it is a link, no regular file, or belongs to another user. Outside of the project such a file is
/// ignored.
pub fn find(directory: &Path) -> Result<Option<PathBuf>, Error> {
    let is_bundle = |path: &Path| path.join("manifests").is_dir() && path.join("metadata").is_dir();
    let outermost_bundle = directory.ancestors().filter(|path| is_bundle(path)).last();
    let start = match outermost_bundle {
        Some(bundle) => match bundle.parent() {
            Some(parent) => parent,
            None => return Ok(None),
        },
        None => directory,
    };
    let root = start.ancestors().find(|path| path.join(".git").exists());
    for place in start.ancestors() {
        let path = place.join(FILE);
        if let Ok(found) = path.symlink_metadata() {
            match refusal(&found) {
                None => return Ok(Some(path)),
                Some(reason) if root.is_some() || place == start => return Err(Error::Untrusted(path, reason)),
                Some(_) => {}
            }
        }
        if Some(place) == root {
            break;
        }
    }
    Ok(None)
}

/// Why a file that was found is not read: another user, or the author of a repository, would control its content.
fn refusal(found: &std::fs::Metadata) -> Option<&'static str> {
    use std::os::unix::fs::MetadataExt as _;
    if found.is_symlink() {
        Some("is a link")
    } else if !found.is_file() {
        Some("is not a regular file")
    } else if found.uid() != rustix::process::geteuid().as_raw() {
        Some("belongs to another user")
    } else {
        None
    }
}

/// The error without lines of a file that is not TOML, because it may be any file, such as one with passwords.
fn explained(text: &str, error: &toml::de::Error) -> String {
    if toml::from_str::<toml::Table>(text).is_ok() {
        return error.to_string();
    }
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("line {line}, column {column}: not TOML: {}", error.message())
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, or is not such a file.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = limits::read_named(path, &limits::SETTINGS_FILE)
            .and_then(limits::text)
            .map_err(|error| Error::Read(path.to_owned(), error))?;
        toml::from_str(&text).map_err(|error| Error::Format(path.to_owned(), explained(&text, &error)))
    }

    /// Adds the settings of the file at `path` to a policy. `select` is ignored if flags set it.
    ///
    /// # Errors
    /// When a setting names no rule, or has no such value.
    pub fn apply<'r>(&self, path: &Path, mut builder: Builder<'r>, select: bool) -> Result<Builder<'r>, Error> {
        let globs = self.per_path_ignores.values().map(Vec::len);
        for (setting, count) in [
            ("select", self.select.len()),
            ("ignore", self.ignore.len()),
            ("per-path-ignores", self.per_path_ignores.len().max(globs.sum())),
            ("severity", self.severity.len()),
        ] {
            if count > MOST {
                return Err(Error::TooMany(path.to_owned(), setting));
            }
        }
        let wrong = |setting: &'static str| move |error| Error::Setting(path.to_owned(), setting, error);
        builder = builder.root(path.parent().unwrap_or(Path::new("")));
        for pattern in self.select.iter().filter(|_| select) {
            builder = builder.select(pattern).map_err(wrong("select"))?;
        }
        for pattern in &self.ignore {
            builder = builder.ignore(pattern).map_err(wrong("ignore"))?;
        }
        for (glob, patterns) in &self.per_path_ignores {
            builder = builder.ignore_in(glob, patterns).map_err(wrong("per-path-ignores"))?;
        }
        for (pattern, severity) in &self.severity {
            builder = builder.severity(pattern, severity).map_err(wrong("severity"))?;
        }
        Ok(builder)
    }

    /// The baseline's file as seen from the working directory.
    pub fn baseline_file(&self, path: &Path) -> Option<PathBuf> {
        let folder = path.parent().unwrap_or(Path::new(""));
        self.baseline.as_ref().map(|baseline| folder.join(baseline))
    }
}

/// The JSON schema of the file, as `docs/olmkit.schema.json` has it.
///
/// # Errors
/// None that occurs.
pub fn schema() -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(&schemars::schema_for!(Config))?;
    text.push('\n');
    Ok(text)
}
