//! Small synthetic bundles, each with the result of the real OLM: a file that the tests of the rules read without a
//! cluster.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::{Map, Value};
use tempfile::TempDir;
use test_support::demo_bundle;

use crate::tally::Tally;

/// The bundles of a file.
pub struct MadeUp {
    file: PathBuf,
    rows: Vec<Value>,
    folder: TempDir,
}

impl MadeUp {
    /// Reads the rows, and writes the bundles: each is the demo bundle with a separate name and changed files.
    pub fn write(file: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let rows: Vec<Value> =
            serde_json::from_str(&text).with_context(|| format!("{} is not a list", file.display()))?;
        let folder = tempfile::tempdir()?;
        for (at, row) in rows.iter().enumerate() {
            let changes = row["changes"].as_array().into_iter().flatten();
            let changes: Vec<(&str, &str, &str)> = changes
                .map(|change| {
                    let text = |at: usize| change[at].as_str().unwrap_or_default();
                    (text(0), text(1), text(2))
                })
                .collect();
            demo_bundle::copy_renamed(folder.path(), &name(at), &changes);
        }
        Ok(Self {
            file: file.to_owned(),
            rows,
            folder,
        })
    }

    /// Directory of the bundles.
    pub fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// Writes down what happened.
    pub fn record(mut self, tally: &Tally) -> anyhow::Result<()> {
        for (at, row) in self.rows.iter_mut().enumerate() {
            let bundle = self.folder.path().join(name(at)).display().to_string();
            let answers: Map<String, Value> = tally
                .answers(&bundle)
                .map(|(claim, happens)| {
                    let rules = claim.split(':').next().unwrap_or(claim);
                    (rules.to_owned(), happens.into())
                })
                .collect();
            anyhow::ensure!(!answers.is_empty(), "nothing was asked of {}", row["about"]);
            row["answers"] = Value::Object(answers);
        }
        let rows: Vec<String> = self.rows.iter().map(|row| format!("  {row}")).collect();
        std::fs::write(&self.file, format!("[\n{}\n]\n", rows.join(",\n")))
            .with_context(|| format!("cannot write {}", self.file.display()))
    }
}

fn name(at: usize) -> String {
    format!("made{at:02}")
}
