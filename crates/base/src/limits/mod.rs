//! Size limits of all readers in this crate, in one table. Larger or deeper input is a mistake or an attack on memory
//! or time.
//!
//! Time needs no separate limit here: nothing waits, and the work is bounded by the input.
//!
//! ```
//! use olmkit_base::limits;
//!
//! let chosen = limits::Chosen::parse(["catalog-file=512MiB"])?;
//! assert!(limits::Chosen::parse(["yaml-depth=1000"]).is_err(), "this one is fixed");
//! chosen.apply()?;
//! assert_eq!(limits::CATALOG_FILE.get(), 512 << 20);
//! // From its first use on, a limit has the same value everywhere.
//! assert!(limits::Chosen::parse(["catalog-file=256MiB"])?.apply().is_err());
//! # Ok::<(), limits::InvalidLimit>(())
//! ```

use std::io;
use std::sync::OnceLock;

use olmkit_yaml as yaml;

mod message;
mod read;

pub use message::{message, name, path, quoted};
pub use read::read_opened;
pub use read::{bytes_read, open, read, read_file, read_named, text};

/// Unit of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Things, such as files or entries.
    Count,
    /// Levels of nesting.
    Levels,
}

/// One limit. It applies to the whole process. Its value is chosen before its first use ([`Chosen`]) and does not change afterwards.
#[derive(Debug)]
pub struct Limit {
    /// Its name, for [`set`].
    pub name: &'static str,
    /// The limited quantity.
    pub what: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// Its value unless it is set.
    pub default: u64,
    /// True if it cannot be set: something else depends on it, such as the depth of the stack.
    pub is_fixed: bool,
    value: OnceLock<u64>,
}

impl Limit {
    const fn new(name: &'static str, unit: Unit, default: u64, what: &'static str) -> Self {
        Self::with(name, unit, default, what, false)
    }

    const fn fixed(name: &'static str, unit: Unit, default: u64, what: &'static str) -> Self {
        Self::with(name, unit, default, what, true)
    }

    const fn with(name: &'static str, unit: Unit, default: u64, what: &'static str, is_fixed: bool) -> Self {
        Self {
            name,
            what,
            unit,
            default,
            is_fixed,
            value: OnceLock::new(),
        }
    }

    /// The effective value.
    pub fn get(&self) -> u64 {
        *self.value.get_or_init(|| self.default)
    }

    /// The same for counting in memory.
    pub fn count(&self) -> usize {
        usize::try_from(self.get()).unwrap_or(usize::MAX)
    }

    /// The value for people: `256 MiB`, `10,000`.
    pub fn shown(&self) -> String {
        shown(self.get(), self.unit)
    }

    /// How to raise it: ` (--limit NAME=VALUE raises this)`. Empty if it is fixed.
    pub fn way_out(&self) -> String {
        if self.is_fixed {
            return String::new();
        }
        format!(" (raise the limit with --limit {}=VALUE)", self.name)
    }

    /// The error for input that exceeds it.
    pub fn exceeded(&self) -> io::Error {
        let what = match self.unit {
            Unit::Bytes => format!("larger than {}", self.shown()),
            Unit::Count => format!("more than {}", self.shown()),
            Unit::Levels => format!("deeper than {} levels", self.shown()),
        };
        io::Error::new(io::ErrorKind::FileTooLarge, format!("{what}{}", self.way_out()))
    }
}

fn shown(value: u64, unit: Unit) -> String {
    if unit == Unit::Bytes {
        for (shift, name) in [(30, "GiB"), (20, "MiB"), (10, "KiB")] {
            if value >= 1 << shift && value.is_multiple_of(1 << shift) {
                return format!("{} {name}", value >> shift);
            }
        }
    }
    let digits = value.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// All files of a bundle directory together.
pub static BUNDLE_BYTES: Limit = Limit::new(
    "bundle-bytes",
    Unit::Bytes,
    64 << 20,
    "all files in a bundle directory together",
);

/// Files and directories of a bundle directory.
pub static BUNDLE_FILES: Limit = Limit::new(
    "bundle-files",
    Unit::Count,
    10_000,
    "files and directories in a bundle directory",
);

/// Nested directories of a bundle directory.
pub static BUNDLE_DEPTH: Limit = Limit::new(
    "bundle-depth",
    Unit::Levels,
    32,
    "nested directories in a bundle directory",
);

/// One file of a catalog.
pub static CATALOG_FILE: Limit = Limit::new("catalog-file", Unit::Bytes, 256 << 20, "one catalog file");

/// All files of a catalog together.
pub static CATALOG_BYTES: Limit = Limit::new("catalog-bytes", Unit::Bytes, 2 << 30, "all catalog files together");

/// Files of a catalog.
pub static CATALOG_FILES: Limit = Limit::new("catalog-files", Unit::Count, 100_000, "catalog files");

/// Nested directories of a catalog.
pub static CATALOG_DEPTH: Limit = Limit::new("catalog-depth", Unit::Levels, 64, "nested directories in a catalog");

/// An .indexignore file.
pub static CATALOG_IGNORE: Limit = Limit::new("catalog-ignore", Unit::Bytes, 1 << 20, "an .indexignore file");

/// A catalog template, or a catalog that becomes one.
pub static TEMPLATE: Limit = Limit::new(
    "template",
    Unit::Bytes,
    256 << 20,
    "a catalog template, or a catalog that becomes one",
);

/// Upgrade edges that a picture of a catalog draws.
pub static PICTURE_EDGES: Limit = Limit::new("picture-edges", Unit::Count, 100_000, "upgrade edges in a drawn graph");

/// Bytes of ranges and names of channel entries that versions are compared with, while an upgrade path is found.
pub static RANGE_COMPARISONS: Limit = Limit::fixed(
    "range-comparisons",
    Unit::Bytes,
    64 << 20,
    "skipRanges and entry names that olmkit compares with versions to find an upgrade path",
);

/// The output of a drawn graph.
pub static GRAPH_TEXT: Limit = Limit::new("graph-text", Unit::Bytes, 128 << 20, "a drawn graph");

/// The manifests from standard input or one file that a bundle is generated from.
pub static GENERATE_INPUT: Limit = Limit::new(
    "generate-input",
    Unit::Bytes,
    256 << 20,
    "manifests for `generate bundle` from standard input or one file",
);

/// A source file whose lines appear in findings. If it is larger, findings show only its name.
pub static SOURCE_FILE: Limit = Limit::new(
    "source-file",
    Unit::Bytes,
    64 << 20,
    "a source file whose lines appear in findings. If it is larger, findings show only its name",
);

/// A file that sets something: PROJECT, package.yaml, olmkit.toml, baselines, icons, descriptions, categories, image digests.
pub static SETTINGS_FILE: Limit = Limit::new(
    "settings-file",
    Unit::Bytes,
    16 << 20,
    "a settings file: PROJECT, package.yaml, olmkit.toml, baselines, icons, descriptions, categories, image digests",
);

/// A file of OLM's manifests.
pub static OLM_MANIFESTS: Limit = Limit::new(
    "olm-manifests",
    Unit::Bytes,
    16 << 20,
    "a file with OLM's own manifests for `olm install`",
);

/// One YAML document, or JSON value of a catalog.
pub static YAML_DOCUMENT: Limit = Limit::fixed(
    "yaml-document",
    Unit::Bytes,
    yaml::MAX_DOCUMENT_BYTES as u64,
    "one YAML document, or one JSON value in a catalog",
);

/// Nodes of a YAML document after its aliases are expanded, or of a JSON value of a catalog.
pub static YAML_NODES: Limit = Limit::fixed(
    "yaml-nodes",
    Unit::Count,
    yaml::MAX_NODES as u64,
    "nodes in a YAML document after alias expansion, or in a catalog's JSON value",
);

/// Values within values of a YAML document.
pub static YAML_DEPTH: Limit = Limit::fixed(
    "yaml-depth",
    Unit::Levels,
    yaml::MAX_DEPTH as u64,
    "nested values in a YAML document",
);

/// A repeated name, value or path in a message or a table. The middle of a longer one is omitted.
pub static QUOTED_TEXT: Limit = Limit::new(
    "quoted-text",
    Unit::Bytes,
    1 << 10,
    "a name, value or path in a message or table. The middle of a longer one is omitted",
);

/// A message of a finding or an error. The middle of a longer one is omitted.
pub static MESSAGE: Limit = Limit::new(
    "message",
    Unit::Bytes,
    8 << 10,
    "a finding's or error's message. The middle of a longer one is omitted",
);

/// Output of one scorecard test in a pod.
pub static SCORECARD_LOG: Limit = Limit::new(
    "scorecard-log",
    Unit::Bytes,
    8 << 20,
    "a scorecard test's output in a pod",
);

/// Permissions of a bundle that are compared with those of another one.
pub static COMPARED_PERMISSIONS: Limit = Limit::new(
    "compared-permissions",
    Unit::Count,
    500_000,
    "a bundle's permissions in `bundle diff` and `extension diff`, counted by verb, resource, group and name",
);

/// The same in bytes.
pub static COMPARED_PERMISSION_BYTES: Limit = Limit::new(
    "compared-permission-bytes",
    Unit::Bytes,
    64 << 20,
    "a bundle's permissions in `bundle diff` and `extension diff`, written one by one",
);

/// The permissions in the roles of a bundle, one by one: each verb on each resource or name.
pub static INSTALLER_RIGHTS: Limit = Limit::fixed(
    "installer-rights",
    Unit::Bytes,
    16 << 20,
    "the installer permissions that a bundle's roles require, one by one",
);

/// Scorecard tests that run in pods.
pub static SCORECARD_PODS: Limit = Limit::new("scorecard-pods", Unit::Count, 100, "scorecard tests in pods per run");

/// The output of a program that is run, such as git or an external validator.
pub static PROGRAM_OUTPUT: Limit = Limit::new(
    "program-output",
    Unit::Bytes,
    64 << 20,
    "output from a command that olmkit runs, such as git or an external validator",
);

/// A pointer of Git Large File Storage (LFS).
pub static LFS_POINTER: Limit = Limit::fixed("lfs-pointer", Unit::Bytes, 4 << 10, "a Git Large File Storage pointer");

/// The answer of a credential helper.
pub static CREDENTIAL_ANSWER: Limit = Limit::fixed(
    "credential-answer",
    Unit::Bytes,
    64 << 10,
    "a credential helper's answer",
);

/// Schemas within schemas of a CRD.
pub static SCHEMA_DEPTH: Limit = Limit::fixed("schema-depth", Unit::Levels, 128, "nested schemas in a CRD");

/// Values of all CRDs on one side of a comparison. API servers store CRDs with about 100,000: etcd accepts 1.5 MiB.
pub static COMPARED_VALUES: Limit = Limit::new(
    "compared-values",
    Unit::Count,
    200_000,
    "the values in all files of one side in `crd diff`, `bundle diff` and `extension diff`, and in a CRD for `--against` and `--crd-safety`",
);

/// Values of a CRD's properties that are compared with others.
pub static COMPARED_PROPERTIES: Limit = Limit::new(
    "compared-properties",
    Unit::Count,
    8_000_000,
    "the values of a CRD's properties, compared with its earlier and other versions. 64 bytes of text count as one more",
);

/// The paths of these properties.
pub static COMPARED_PATHS: Limit = Limit::new("compared-paths", Unit::Bytes, 64 << 20, "paths of these properties");

/// Changes of a CRD that OLM v1 blocks.
pub static COMPARED_CHANGES: Limit = Limit::new(
    "compared-changes",
    Unit::Count,
    50_000,
    "changes of a CRD that OLM v1 blocks",
);

/// Their messages.
pub static COMPARED_MESSAGES: Limit =
    Limit::new("compared-messages", Unit::Bytes, 64 << 20, "messages for these changes");

/// Schemas within schemas that are compared with an earlier version.
pub static COMPARED_DEPTH: Limit = Limit::fixed(
    "compared-depth",
    Unit::Levels,
    100,
    "nested schemas that olmkit compares with an earlier version",
);

/// Every limit, in the order of the documentation.
pub static ALL: &[&Limit] = &[
    &BUNDLE_BYTES,
    &BUNDLE_FILES,
    &BUNDLE_DEPTH,
    &CATALOG_FILE,
    &CATALOG_BYTES,
    &CATALOG_FILES,
    &CATALOG_DEPTH,
    &CATALOG_IGNORE,
    &TEMPLATE,
    &PICTURE_EDGES,
    &RANGE_COMPARISONS,
    &GRAPH_TEXT,
    &GENERATE_INPUT,
    &SOURCE_FILE,
    &SETTINGS_FILE,
    &OLM_MANIFESTS,
    &YAML_DOCUMENT,
    &YAML_NODES,
    &YAML_DEPTH,
    &COMPARED_PERMISSIONS,
    &COMPARED_PERMISSION_BYTES,
    &INSTALLER_RIGHTS,
    &QUOTED_TEXT,
    &MESSAGE,
    &SCORECARD_LOG,
    &SCORECARD_PODS,
    &PROGRAM_OUTPUT,
    &CREDENTIAL_ANSWER,
    &LFS_POINTER,
    &SCHEMA_DEPTH,
    &COMPARED_DEPTH,
    &COMPARED_VALUES,
    &COMPARED_PROPERTIES,
    &COMPARED_PATHS,
    &COMPARED_CHANGES,
    &COMPARED_MESSAGES,
];

/// Why a limit cannot be chosen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidLimit {
    /// Not of the form.
    #[error("{0:?} is not of the form NAME=VALUE, such as catalog-file=512MiB")]
    Form(String),
    /// No such limit.
    #[error("unknown limit {0:?}; available: {1}")]
    Name(String, String),
    /// Not a number.
    #[error("{0:?} is not a number; write digits, and for bytes KiB, MiB or GiB behind them")]
    Value(String),
    /// Another value applies.
    #[error("the limit {0} is already in use with another value")]
    InUse(&'static str),
}

/// Values for limits, such as those of `--limit`. They apply from [`Chosen::apply`] on.
#[derive(Debug, Default)]
pub struct Chosen(Vec<(&'static Limit, u64)>);

impl Chosen {
    /// Parses values of the form `NAME=VALUE`. Bytes may be given in `KiB`, `MiB` and `GiB`. The last value of a limit counts.
    ///
    /// # Errors
    /// See [`InvalidLimit`].
    pub fn parse<T: AsRef<str>>(values: impl IntoIterator<Item = T>) -> Result<Self, InvalidLimit> {
        let mut chosen: Vec<(&'static Limit, u64)> = Vec::new();
        for text in values {
            let (limit, value) = parse(text.as_ref())?;
            chosen.retain(|(known, _)| known.name != limit.name);
            chosen.push((limit, value));
        }
        Ok(Self(chosen))
    }

    /// Sets the limits for the whole process.
    ///
    /// # Errors
    /// One of them is in use with another value. Those before it are set.
    pub fn apply(self) -> Result<(), InvalidLimit> {
        for (limit, value) in self.0 {
            if *limit.value.get_or_init(|| value) != value {
                return Err(InvalidLimit::InUse(limit.name));
            }
        }
        Ok(())
    }
}

fn parse(text: &str) -> Result<(&'static Limit, u64), InvalidLimit> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| InvalidLimit::Form(text.to_owned()))?;
    let settable = || ALL.iter().copied().filter(|limit| !limit.is_fixed);
    let Some(limit) = settable().find(|limit| limit.name == name) else {
        let names: Vec<&str> = settable().map(|limit| limit.name).collect();
        return Err(InvalidLimit::Name(name.to_owned(), names.join(", ")));
    };
    let invalid = || InvalidLimit::Value(value.to_owned());
    let digits = value.trim_end_matches(|c: char| !c.is_ascii_digit());
    let factor = match (value.get(digits.len()..).unwrap_or_default().trim(), limit.unit) {
        ("", _) => 1,
        ("KiB", Unit::Bytes) => 1 << 10,
        ("MiB", Unit::Bytes) => 1 << 20,
        ("GiB", Unit::Bytes) => 1 << 30,
        _ => return Err(invalid()),
    };
    let number: u64 = digits.parse().map_err(|_| invalid())?;
    let number = number.checked_mul(factor).ok_or_else(invalid)?;
    Ok((limit, number))
}

/// The table of the documentation, in Markdown.
pub fn table() -> String {
    let mut text = String::from("| name | maximum | applies to |\n|---|---|---|\n");
    for limit in ALL {
        let fixed = if limit.is_fixed { ", fixed" } else { "" };
        let value = shown(limit.default, limit.unit);
        let unit = if limit.unit == Unit::Levels { " levels" } else { "" };
        text.push_str(&format!(
            "| `{}` | {value}{unit}{fixed} | {} |\n",
            limit.name, limit.what
        ));
    }
    text
}

#[cfg(test)]
mod tests;
