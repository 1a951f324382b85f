//! Errors between olmkit and a cluster, before any diagnosis.

use std::path::PathBuf;

use super::cause::{Cause, Code, name_taken};
use super::object_ref::ObjectRef;

/// An error of a cluster command. A failure *in* a cluster is not an error but a [`super::cause::Cause`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No usable kubeconfig.
    #[error("cannot load the kubeconfig{}: {source}", .path.as_ref().map(|path| format!(" {}", path.display())).unwrap_or_default())]
    Kubeconfig {
        /// The requested file, if any.
        path: Option<PathBuf>,
        /// The reason.
        source: Box<kube::config::KubeconfigError>,
    },
    /// Neither kubeconfig nor service account.
    #[error("cannot find a cluster: {0}; pass --kubeconfig or set KUBECONFIG")]
    NoCluster(#[source] Box<kube::config::InferConfigError>),
    /// A request was rejected or not answered.
    #[error("cannot {verb} {object}: {}", describe(.source))]
    Request {
        /// `get`, `list`, `apply`, `delete`, …
        verb: &'static str,
        /// Kind and name.
        object: String,
        /// The error of the API server or the connection.
        source: Box<kube::Error>,
    },
    /// A request could not be built.
    #[error("cannot build the request to {verb} {object}: {message}")]
    BuildRequest {
        /// The attempted action.
        verb: &'static str,
        /// Kind and name.
        object: String,
        /// The reason.
        message: String,
    },
    /// The API server's answer does not match its schema.
    #[error("cannot read {object} as the cluster returned it: {source}")]
    Unreadable {
        /// Kind and name.
        object: String,
        /// The mismatch.
        source: serde_json::Error,
    },
    /// A manifest has no kind or a kind that the cluster does not serve.
    #[error("{object}: {message}")]
    Manifest {
        /// Kind and name, or the file.
        object: String,
        /// The error.
        message: String,
    },
    /// A manifest that cannot be downloaded.
    #[error(
        "{0}; download crds.yaml and olm.yaml where the network allows it, and pass their directory with --from DIR"
    )]
    Download(olmkit_oci::registry::DownloadError),
    /// A bundle that cannot be installed in its current form.
    #[error("{0}")]
    Bundle(String),
    /// A bundle image that cannot be pulled.
    #[error("cannot pull bundle image {image}: {message}")]
    BundleImage {
        /// The reference.
        image: String,
        /// The registry's error.
        message: String,
    },
    /// An image that cannot be pushed.
    #[error("cannot push {image}: {message}")]
    Publish {
        /// The reference.
        image: String,
        /// The registry's error.
        message: String,
    },
    /// A flag's value.
    #[error("{0}")]
    Usage(String),
    /// The catalog served from this host.
    #[error("cannot serve the catalog from this host: {0}")]
    Serve(String),
    /// An object with another owner has the name of one that the command would create.
    #[error("{object} exists and was not created by olmkit for this package: {author}")]
    NameTaken {
        /// The object.
        object: ObjectRef,
        /// Its owner.
        author: String,
    },
    /// Something did not go away.
    #[error("{object} still exists after {seconds} s")]
    NotGone {
        /// The object.
        object: ObjectRef,
        /// Time waited.
        seconds: u64,
    },
    /// A file of the user's.
    #[error("cannot read {path}: {source}")]
    File {
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
}

impl Error {
    /// The HTTP code that the API server answered with, if it answered.
    pub fn code(&self) -> Option<u16> {
        match self {
            Error::Request { source, .. } => match source.as_ref() {
                kube::Error::Api(status) => Some(status.code),
                _ => None,
            },
            _ => None,
        }
    }

    /// The error as a cause, if it concerns the cluster: rejected requests, an API server that does not answer, a name
    /// that is in use.
    pub fn cause(&self) -> Option<Cause> {
        let source = match self {
            Error::Request { source, .. } => source,
            Error::NameTaken { object, author } => {
                return Some(name_taken(object.clone(), author));
            }
            _ => return None,
        };
        match source.as_ref() {
            kube::Error::Api(status) if matches!(status.code, 401 | 403) => Some(Cause::lasting(
                Code::Forbidden,
                self.to_string(),
                "use credentials with this permission (-n, --kubeconfig) or ask an administrator; kubectl auth can-i --list shows your permissions",
            )),
            kube::Error::HyperError(_) | kube::Error::Service(_) => Some(Cause::passing(
                Code::ApiUnreachable,
                self.to_string(),
                "check that the kubeconfig names the right server (kubectl cluster-info) and that it runs; then run the same command again to continue",
            )),
            _ => None,
        }
    }

    /// Returns true if the kind is not served or the object does not exist.
    pub fn is_not_found(&self) -> bool {
        self.code() == Some(404)
    }
}

/// The shortest message that still describes the failure.
fn describe(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        kube::Error::Api(status) => format!("HTTP {} {}", status.code, status.reason),
        other => {
            let mut text = other.to_string();
            let mut source = std::error::Error::source(other);
            while let Some(inner) = source {
                let inner_text = inner.to_string();
                if !text.contains(&inner_text) {
                    text = format!("{text}: {inner_text}");
                }
                source = inner.source();
            }
            text
        }
    }
}
