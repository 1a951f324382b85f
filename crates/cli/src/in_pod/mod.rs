//! Commands that OLM runs in pods: `cp`, `cpb`, `copy-content`, `opm alpha bundle extract`.
//!
//! OLM unpacks a bundle in one pod of three containers. The first copies `cpb` from the util image to a shared volume
//! (with the util image's `cp`), the second runs that copy inside the bundle image to copy the manifests to the volume,
//! the third writes them to a ConfigMap, which OLM reads. Catalog pods with `extractContent` are similar, with
//! `copy-content`. All these commands are this one binary under other names, so one small image serves as util image,
//! opm image and catalog base.

mod api_server;
pub mod command;
mod copy;
mod extract;
mod kubeconfig;

use copy::{copy_bundle, copy_content, copy_files};
use extract::{Extraction, extract};

use std::io;
use std::path::PathBuf;

/// Failure of a program that OLM starts.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read or written.
    #[error("{action} {}: {source}", path.display())]
    File {
        /// The attempted action.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The annotations file of a bundle cannot be used.
    #[error("{}: {reason}", path.display())]
    Annotations {
        /// The file.
        path: PathBuf,
        /// The error.
        reason: String,
    },
    /// The bundle is too large for a ConfigMap.
    #[error("bundle files exceeded {limit} bytes limit: with {} it would be {size} bytes so far", path.display())]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
        /// The size in bytes up to and with this file, as stored.
        size: u64,
        /// The file that exceeded the limit.
        path: PathBuf,
    },
    /// The cluster rejected the request or did not answer.
    #[error("{action} ConfigMap {namespace}/{name}: {reason}")]
    Cluster {
        /// The attempted action.
        action: &'static str,
        /// Namespace of the ConfigMap.
        namespace: String,
        /// Name of the ConfigMap.
        name: String,
        /// The server's message, or the reason why there was no answer.
        reason: String,
    },
    /// The cluster cannot be reached.
    #[error("no cluster to write to: {0}")]
    NoCluster(String),
    /// The arguments are invalid.
    #[error("{0}")]
    Usage(String),
}

/// Rejects everything except regular files: a link may point outside the bundle, for example to the pod's token. A
/// device or a pipe may never end. Links are not followed.
fn regular(path: &std::path::Path) -> Result<std::fs::Metadata, Error> {
    let metadata = std::fs::symlink_metadata(path).map_err(Error::file("read", path))?;
    if metadata.is_file() {
        return Ok(metadata);
    }
    Err(Error::File {
        action: "read",
        path: path.to_owned(),
        source: io::Error::new(io::ErrorKind::InvalidInput, "a bundle contains only regular files"),
    })
}

impl Error {
    fn file(action: &'static str, path: &std::path::Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { action, path, source }
    }
}
