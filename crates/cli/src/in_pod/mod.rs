//! What OLM starts in pods: `cp`, `cpb`, `copy-content`, `opm alpha bundle extract`.
//!
//! OLM unpacks a bundle in one pod of three containers. The first copies `cpb` out of the util image into a shared
//! volume (with the util image's own `cp`), the second runs that copy inside the bundle image to bring the manifests
//! into the volume, the third writes them into a ConfigMap from which OLM reads them. Catalog pods with
//! `extractContent` are put together alike, with `copy-content`. All these programs are this one binary under other
//! names, so one small image serves as util image, opm image and catalog base.

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
        /// What was attempted.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The annotations file of a bundle cannot be used.
    #[error("{}: {reason}", path.display())]
    Annotations {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The bundle is larger than what a ConfigMap can hold.
    #[error("bundle files exceeded {limit} bytes limit: with {} it would be {size} bytes so far", path.display())]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
        /// The size in bytes up to and with this file, as stored.
        size: u64,
        /// The file that went beyond the limit.
        path: PathBuf,
    },
    /// The cluster refused or did not answer.
    #[error("{action} ConfigMap {namespace}/{name}: {reason}")]
    Cluster {
        /// What was attempted.
        action: &'static str,
        /// Namespace of the ConfigMap.
        namespace: String,
        /// Name of the ConfigMap.
        name: String,
        /// What the server said, or why there was no answer.
        reason: String,
    },
    /// The cluster cannot be reached.
    #[error("no cluster to write to: {0}")]
    NoCluster(String),
    /// The arguments make no sense.
    #[error("{0}")]
    Usage(String),
}

/// Refuses what is not a regular file: a link may lead out of the bundle, to the token of the pod say; a device or a pipe has
/// no end. Links are not followed.
fn regular(path: &std::path::Path) -> Result<std::fs::Metadata, Error> {
    let metadata = std::fs::symlink_metadata(path).map_err(Error::file("read", path))?;
    if metadata.is_file() {
        return Ok(metadata);
    }
    Err(Error::File {
        action: "read",
        path: path.to_owned(),
        source: io::Error::new(io::ErrorKind::InvalidInput, "a bundle holds regular files only"),
    })
}

impl Error {
    fn file(action: &'static str, path: &std::path::Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { action, path, source }
    }
}
