//! A directory to run olmkit in.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use tempfile::TempDir;

/// A small operator: a definition, a Deployment with its account and rules, a sample.
pub const OPERATOR: &str = include_str!("operator.yaml");

/// A directory with manifests, in which commands run.
pub struct Folder {
    root: TempDir,
}

impl Folder {
    /// An empty directory.
    pub fn new() -> Self {
        Self {
            root: tempfile::tempdir().unwrap(),
        }
    }

    /// A path in it.
    pub fn path(&self, relative: &str) -> PathBuf {
        self.root.path().join(relative)
    }

    /// The content of a file. Empty if it does not exist.
    pub fn text(&self, relative: &str) -> String {
        std::fs::read_to_string(self.path(relative)).unwrap_or_default()
    }

    /// A manifest as a value, read by a reader that is not ours.
    pub fn manifest(&self, relative: &str) -> serde_json::Value {
        serde_yaml::from_str(&self.text(relative)).unwrap()
    }

    /// The CSV.
    pub fn csv(&self) -> serde_json::Value {
        self.manifest("bundle/manifests/example-operator.clusterserviceversion.yaml")
    }

    /// Writes a file.
    pub fn write(&self, relative: &str, text: &str) {
        let path = self.path(relative);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Runs olmkit with manifests on standard input.
    pub fn olmkit(&self, arguments: &[&str], input: &str) -> Output {
        Command::cargo_bin("olmkit")
            .unwrap()
            .args(arguments)
            .current_dir(self.root.path())
            .env("SOURCE_DATE_EPOCH", "1700000000")
            .write_stdin(input)
            .output()
            .unwrap()
    }

    /// Generates a bundle of version 0.0.1 for package example-operator.
    pub fn generate(&self, flags: &[&str], input: &str) -> Output {
        self.generate_with_notes(&[&["-q"], flags].concat(), input)
    }

    /// As [`Self::generate`], and prints notes too.
    pub fn generate_with_notes(&self, flags: &[&str], input: &str) -> Output {
        let arguments = [
            "generate",
            "bundle",
            "--package",
            "example-operator",
            "--version",
            "0.0.1",
        ];
        self.olmkit(&[&arguments, flags].concat(), input)
    }

    /// All files below a directory.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        files(self.root.path())
    }
}

/// All files below a directory, by relative path.
pub fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap().display().to_string();
                found.insert(name, std::fs::read(path).unwrap());
            }
        }
    }
    found
}

/// The standard error output of a command.
pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
