//! Sources of objects: a stream, a directory, or the two directories of older projects.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::origin::Origin;
use super::{Error, Notice, Weight, kustomization};
use olmkit_base::limits;
use olmkit_yaml as yaml;

/// One object of the input.
#[derive(Debug, Clone)]
pub struct Document {
    /// Its position.
    pub origin: Origin,
    /// The object, as Go reads it without a type.
    pub value: Value,
    /// The object for its Go type: floats are still floats.
    pub untyped: Value,
    /// True when it came from the directory of `--crds-dir`.
    pub from_crds_dir: bool,
}

impl Document {
    fn text(&self, field: &str) -> &str {
        self.value.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// The kind.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.text("kind")
    }

    /// Group and version, split as apimachinery splits them: a value with more than one slash has neither.
    #[must_use]
    pub fn group_version(&self) -> (&str, &str) {
        let text = self.text("apiVersion");
        match text.matches('/').count() {
            0 => ("", text),
            1 if text != "/" => text.split_once('/').unwrap_or(("", "")),
            _ => ("", ""),
        }
    }

    /// The object's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.value
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// Kind and name, for messages.
    #[must_use]
    pub fn object(&self) -> String {
        match (self.kind(), self.name()) {
            ("", _) => "a document without kind".to_owned(),
            (kind, "") => kind.to_owned(),
            (kind, name) => format!("{kind} {name}"),
        }
    }
}

/// All objects of the input, in the order in which they were read.
#[derive(Debug, Clone, Default)]
pub struct Input {
    /// The objects.
    pub documents: Vec<Document>,
    /// The base CSV of `--kustomize-dir`, used when no CSV is among the objects.
    pub base: Option<Document>,
    /// Documents that could not be read as an object.
    pub notices: Vec<Notice>,
    /// True when CRDs count only if they come from `--crds-dir`.
    pub crds_dir: bool,
    /// Files of a directory that make it a kustomization.
    pub(super) kustomizations: Vec<PathBuf>,
}

impl Input {
    /// Reads a stream of documents.
    ///
    /// # Errors
    /// When the stream cannot be read.
    pub fn from_reader(reader: impl Read) -> Result<Self, Error> {
        let mut input = Self::default();
        let bytes = read(reader, Path::new("standard input"))?;
        input.add(&bytes, None, false)?;
        Ok(input)
    }

    /// Reads every file below a directory, in the order of their paths.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn from_directory(directory: &Path) -> Result<Self, Error> {
        let mut input = Self::default();
        input.walk(directory)?;
        input
            .notices
            .extend(kustomization::ignored(directory, &input.kustomizations));
        Ok(input)
    }

    /// Reads every file below one directory, and CRDs from the files of another one. CRDs of the first one do not count
    /// then.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn from_directories(deploy: &Path, crds: &Path) -> Result<Self, Error> {
        let mut input = Self::from_directory(deploy)?;
        if !crds.is_dir() {
            return Ok(input);
        }
        input.crds_dir = true;
        for path in entries(crds)? {
            if path.is_dir() {
                continue;
            }
            let bytes = read_file(&path)?;
            input.add(&bytes, Some(&path), true)?;
        }
        Ok(input)
    }

    fn walk(&mut self, path: &Path) -> Result<(), Error> {
        let fail = |reason| Error::Io {
            path: path.to_owned(),
            reason,
        };
        // Like the Go tools, links to directories are not followed: a link to a parent would have no end.
        let about = std::fs::symlink_metadata(path).map_err(fail)?;
        if about.is_dir() {
            for path in entries(path)? {
                self.walk(&path)?;
            }
            return Ok(());
        }
        if kustomization::is_one(path) {
            self.kustomizations.push(path.to_owned());
        }
        let bytes = read_file(path)?;
        self.add(&bytes, Some(path), false)
    }

    /// Adds the objects of one file. Other documents cause a notice, not an error, because manifest directories contain
    /// settings and scripts too.
    pub(super) fn add(&mut self, bytes: &[u8], file: Option<&Path>, from_crds_dir: bool) -> Result<(), Error> {
        for part in split(bytes) {
            let (first_line, text) = part.map_err(|line| Error::Separator {
                origin: Origin {
                    file: file.map(Path::to_owned),
                    line,
                },
            })?;
            let node = match yaml::parse(&text) {
                Ok(node) => node,
                Err(error) => {
                    self.unreadable(file, first_line, &error.to_string());
                    continue;
                }
            };
            let line = first_line + usize::try_from(node.start.line).unwrap_or(1).saturating_sub(1);
            let value = match node.to_json() {
                Ok(value) => value,
                Err(error) => {
                    self.unreadable(file, line, &error.to_string());
                    continue;
                }
            };
            if value.is_null() {
                continue;
            }
            let document = Document {
                origin: Origin {
                    file: file.map(Path::to_owned),
                    line,
                },
                untyped: yaml_value(&node),
                value,
                from_crds_dir,
            };
            if document.kind().is_empty() {
                self.notices.push(Notice {
                    weight: Weight::Note,
                    object: document.object(),
                    message: "is not a Kubernetes object and is skipped".into(),
                    hint: String::new(),
                    origin: document.origin,
                });
                continue;
            }
            self.documents.push(document);
        }
        Ok(())
    }

    fn unreadable(&mut self, file: Option<&Path>, line: usize, reason: &str) {
        self.notices.push(Notice {
            weight: Weight::Loss,
            origin: Origin {
                file: file.map(Path::to_owned),
                line,
            },
            object: "a document".into(),
            message: format!("cannot be read as YAML and is left out: {reason}"),
            hint: "Repair it, or move the file out of the input.".into(),
        });
    }

    /// Reads the base CSV of a project, when the file exists: `<dir>/bases/<package>.clusterserviceversion.yaml`.
    ///
    /// # Errors
    /// If the file contains no ClusterServiceVersion.
    pub fn read_base(&mut self, kustomize_dir: &Path, package: &str) -> Result<(), Error> {
        let has_csv = self.documents.iter().any(is_csv);
        let path = kustomize_dir
            .join("bases")
            .join(format!("{package}.clusterserviceversion.yaml"));
        if has_csv || !path.exists() {
            return Ok(());
        }
        let mut file = Self::default();
        file.add(&read_file(&path)?, Some(&path), false)?;
        // Only the kind decides. The group is ignored.
        let base = file
            .documents
            .into_iter()
            .find(|document| document.kind() == "ClusterServiceVersion");
        match base {
            Some(base) => {
                self.base = Some(base);
                Ok(())
            }
            None => Err(Error::Base {
                path,
                reason: "it contains no ClusterServiceVersion".into(),
            }),
        }
    }
}

pub(super) fn is_csv(document: &Document) -> bool {
    document.kind() == "ClusterServiceVersion" && document.group_version().0 == "operators.coreos.com"
}

/// Splits a stream at lines that begin with `---`, as apimachinery's reader does. Returns each part with the number of
/// its first line. Only spaces and a comment may follow the dashes. Anything else is an error at that line, which ends
/// the stream for the Go tools too.
fn split(bytes: &[u8]) -> impl Iterator<Item = Result<(usize, Vec<u8>), usize>> {
    let mut lines = bytes.split(|byte| *byte == b'\n').enumerate().peekable();
    let mut failed = false;
    std::iter::from_fn(move || {
        let mut part: Vec<u8> = Vec::new();
        let mut first = 0;
        while let (false, Some((at, line))) = (failed, lines.next()) {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if let Some(rest) = line.strip_prefix(b"---") {
                match rest.trim_ascii().first() {
                    None | Some(b'#') => {}
                    Some(_) => {
                        failed = true;
                        return Some(Err(at + 1));
                    }
                }
                if !part.is_empty() {
                    return Some(Ok((first, part)));
                }
            }
            if part.is_empty() {
                first = at + 1;
            }
            part.extend_from_slice(line);
            part.push(b'\n');
        }
        let blank = part.trim_ascii().is_empty();
        (!blank).then_some(Ok((first, part)))
    })
}

fn entries(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let fail = |reason| Error::Io {
        path: directory.to_owned(),
        reason,
    };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(fail)? {
        paths.push(entry.map_err(fail)?.path());
    }
    paths.sort();
    Ok(paths)
}

pub(super) fn read_file(path: &Path) -> Result<Vec<u8>, Error> {
    limits::read_file(path, &limits::GENERATE_INPUT).map_err(|reason| Error::Io {
        path: path.to_owned(),
        reason,
    })
}

fn read(reader: impl Read, path: &Path) -> Result<Vec<u8>, Error> {
    limits::read(reader, &limits::GENERATE_INPUT).map_err(|reason| Error::Io {
        path: path.to_owned(),
        reason,
    })
}

/// A tree as a JSON value in which floats remain floats: `1500000.0` becomes the string `1.5e+06` in a string field,
/// and only the float shows that.
fn yaml_value(node: &yaml::Node) -> Value {
    match &node.value {
        yaml::Value::Null => Value::Null,
        yaml::Value::Bool(value) => Value::Bool(*value),
        yaml::Value::Integer(value) => Value::from(*value),
        yaml::Value::Unsigned(value) => Value::from(*value),
        yaml::Value::Float(value) => Value::from(*value),
        yaml::Value::String(text) => Value::String(text.clone()),
        yaml::Value::Sequence(items) => items.iter().map(yaml_value).collect(),
        yaml::Value::Mapping(entries) => entries
            .iter()
            .filter_map(|(key, value)| Some((key.key()?.into_owned(), yaml_value(value))))
            .collect(),
    }
}
