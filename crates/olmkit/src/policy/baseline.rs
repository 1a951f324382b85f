//! Known findings that a project suppresses.
//!
//! A baseline is a JSON file with one entry for each kind of finding and its number. Entries have no line numbers, so
//! that a change elsewhere in a file does not invalidate them.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::root::Root;
use crate::diagnostics::{Finding, Report};
use crate::limits;

/// The shape of the file. It grows when a field changes its meaning.
const VERSION: u32 = 1;

/// Findings that are known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Baseline {
    entries: BTreeMap<Entry, usize>,
}

/// The fields that identify a known finding.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    file: String,
    rule: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    object: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    path: String,
    message: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    findings: Vec<Counted>,
}

#[derive(Serialize, Deserialize)]
struct Counted {
    #[serde(flatten)]
    entry: Entry,
    #[serde(default = "once", skip_serializing_if = "is_once")]
    count: usize,
}

fn once() -> usize {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_once(count: &usize) -> bool {
    *count == 1
}

/// Why a baseline cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read.
    #[error("cannot read baseline {0}: {1}")]
    Read(String, std::io::Error),
    /// The file is not a baseline.
    #[error("{0} is not a baseline: {1}; write a new one with --write-baseline")]
    Format(String, serde_json::Error),
    /// The file is of another version of olmkit.
    #[error("baseline {0} has version {1}, this olmkit reads {VERSION}; write a new one with --write-baseline")]
    Version(String, u32),
}

impl Entry {
    /// Of a finding in a file of this name.
    pub(super) fn new(finding: &Finding, file: String) -> Self {
        Self {
            file,
            rule: finding.rule.to_owned(),
            object: finding.object.clone().unwrap_or_default(),
            path: finding.path.clone().unwrap_or_default(),
            message: finding.message.clone(),
        }
    }
}

impl Baseline {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read or is not a baseline.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let name = path.display().to_string();
        let bytes =
            limits::read_file(path, &limits::SETTINGS_FILE).map_err(|error| Error::Read(name.clone(), error))?;
        let file: File = serde_json::from_slice(&bytes).map_err(|error| Error::Format(name.clone(), error))?;
        if file.version != VERSION {
            return Err(Error::Version(name, file.version));
        }
        let mut baseline = Self::default();
        for Counted { entry, count } in file.findings {
            let known = baseline.entries.entry(entry).or_default();
            *known = known.saturating_add(count);
        }
        Ok(baseline)
    }

    /// See `Policy::new_baseline`.
    pub(super) fn new<'r>(reports: impl IntoIterator<Item = &'r Report>, root: &Root) -> Self {
        let mut baseline = Self::default();
        for report in reports {
            let known = report
                .suppressed
                .iter()
                .filter(|suppressed| suppressed.by.is_baseline());
            let all = report
                .findings
                .iter()
                .chain(known.map(|suppressed| &suppressed.finding));
            for finding in all {
                let file = root.name(finding.file.as_deref().unwrap_or(Path::new("")));
                *baseline.entries.entry(Entry::new(finding, file)).or_default() += 1;
            }
        }
        baseline
    }

    /// The content of the file.
    ///
    /// # Errors
    /// None that occurs.
    pub fn text(&self) -> Result<String, serde_json::Error> {
        let counted = |(entry, count): (&Entry, &usize)| Counted {
            entry: entry.clone(),
            count: *count,
        };
        let file = File {
            version: VERSION,
            findings: self.entries.iter().map(counted).collect(),
        };
        let mut text = serde_json::to_string_pretty(&file)?;
        text.push('\n');
        Ok(text)
    }

    /// Number of findings in it.
    pub fn len(&self) -> usize {
        self.entries.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Returns true if it is empty.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn counts(&self) -> BTreeMap<Entry, usize> {
        self.entries.clone()
    }
}
