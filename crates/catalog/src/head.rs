//! The head of a channel: the version that a new one follows.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::graph;
use super::model::ChannelEntry;
use olmkit_base::files::Directory;
use olmkit_base::limits;

/// Why a channel's head is unknown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or directory that cannot be read.
    #[error("cannot read {path}", path = path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file that is not YAML.
    #[error("{path}", path = path.display())]
    Yaml {
        /// The file.
        path: PathBuf,
        /// The error.
        source: olmkit_yaml::Error,
    },
    /// The catalog does not have the channel.
    #[error("{catalog}: package {package} has no channel {channel}", catalog = catalog.display())]
    NoChannel {
        /// The catalog.
        catalog: PathBuf,
        /// The package.
        package: String,
        /// The channel.
        channel: String,
    },
    /// The channel does not have one head.
    #[error("{path}: channel {channel}", path = path.display())]
    Heads {
        /// The file with the channel.
        path: PathBuf,
        /// The channel.
        channel: String,
        /// The error.
        source: HeadsError,
    },
}

/// Why a channel does not have exactly one head.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeadsError {
    /// Every entry is replaced or skipped.
    #[error("it has no head: its entries replace each other in a cycle, or it has no entries")]
    None,
    /// Entries that no other entry replaces or skips.
    #[error("it has several heads: {}", .0.join(", "))]
    Several(Vec<String>),
}

/// The name of the bundle at the head of a package's channel in a file-based catalog, a directory or file: the entry that
/// no other entry replaces or skips.
///
/// # Errors
/// When the catalog cannot be read, lacks the channel, or the channel does not have one head.
pub fn read(catalog: &Path, package: &str, channel: &str) -> Result<String, Error> {
    let mut files = Vec::new();
    let checked = || match catalog.is_dir() {
        true => Directory::open(catalog)?.check(),
        false => Ok(()),
    };
    checked()
        .and_then(|()| collect(catalog, &mut files))
        .map_err(|source| Error::Io {
            path: catalog.to_owned(),
            source,
        })?;
    for path in files {
        let bytes = limits::read_file(&path, &limits::CATALOG_FILE).map_err(|source| Error::Io {
            path: path.clone(),
            source,
        })?;
        for node in olmkit_yaml::documents(&bytes) {
            let blob = node.and_then(|node| node.to_json()).map_err(|source| Error::Yaml {
                path: path.clone(),
                source,
            })?;
            let text = |field: &str| blob.get(field).and_then(Value::as_str);
            if text("schema") == Some("olm.channel")
                && text("package") == Some(package)
                && text("name") == Some(channel)
            {
                return head_of(&blob).map_err(|source| Error::Heads {
                    path: path.clone(),
                    channel: channel.to_owned(),
                    source,
                });
            }
        }
    }
    Err(Error::NoChannel {
        catalog: catalog.to_owned(),
        package: package.to_owned(),
        channel: channel.to_owned(),
    })
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if path.is_file() {
        files.push(path.to_owned());
        return Ok(());
    }
    let mut entries: Vec<_> = std::fs::read_dir(path)?.collect::<Result<_, _>>()?;
    entries.sort_by_key(std::fs::DirEntry::path);
    for entry in entries {
        let path = entry.path();
        // A link to a directory may lead back to itself.
        if !(entry.file_type()?.is_symlink() && path.is_dir()) {
            collect(&path, files)?;
        }
    }
    Ok(())
}

fn head_of(channel: &Value) -> Result<String, HeadsError> {
    let text = |value: &Value, field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let items = |value: &Value, field: &str| value.get(field).and_then(Value::as_array).cloned().unwrap_or_default();
    let entries: Vec<ChannelEntry> = items(channel, "entries")
        .iter()
        .map(|entry| ChannelEntry {
            name: text(entry, "name"),
            replaces: text(entry, "replaces"),
            skips: items(entry, "skips")
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
            skip_range: String::new(),
        })
        .collect();
    match graph::heads(&entries).as_slice() {
        [head] => Ok((*head).to_owned()),
        [] => Err(HeadsError::None),
        heads => Err(HeadsError::Several(
            heads.iter().map(|head| (*head).to_owned()).collect(),
        )),
    }
}
