//! What can go wrong between this tool and a cluster, before any question of cause.

use std::path::PathBuf;

use super::cause::{Cause, Code};
use super::client::ObjectRef;
use super::ownership;

/// An error of the cluster flows. What is wrong *in* a cluster is not an error but a [`super::Cause`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No usable kubeconfig.
    #[error("cannot load the kubeconfig{}: {source}", .path.as_ref().map(|path| format!(" {}", path.display())).unwrap_or_default())]
    Kubeconfig {
        /// The file that was asked for, if any.
        path: Option<PathBuf>,
        /// Why.
        source: Box<kube::config::KubeconfigError>,
    },
    /// Neither kubeconfig nor service account.
    #[error("cannot find a cluster: {0}; pass --kubeconfig or set KUBECONFIG")]
    NoCluster(#[source] Box<kube::config::InferConfigError>),
    /// A request was refused or got no answer.
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
        /// What was meant.
        verb: &'static str,
        /// Kind and name.
        object: String,
        /// Why.
        message: String,
    },
    /// The API server's answer is not what its schema says.
    #[error("cannot read {object} as the cluster returned it: {source}")]
    Unreadable {
        /// Kind and name.
        object: String,
        /// Where it differs.
        source: serde_json::Error,
    },
    /// A manifest has no kind or a kind that the cluster does not serve.
    #[error("{object}: {message}")]
    Manifest {
        /// Kind and name, or the file.
        object: String,
        /// What is wrong with it.
        message: String,
    },
    /// A manifest that cannot be downloaded.
    #[error(
        "{0}; download crds.yaml and olm.yaml where the network allows it, and pass their directory with --from DIR"
    )]
    Download(olmkit_oci::registry::DownloadError),
    /// A bundle that cannot be installed as it stands.
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
    /// An object of others has the name of one that was to be made.
    #[error("{object} exists and was not made by olmkit for this package: {author}")]
    NameTaken {
        /// The object.
        object: ObjectRef,
        /// Whose it is.
        author: String,
    },
    /// Something did not go away.
    #[error("{object} is still there after {seconds} s")]
    NotGone {
        /// The object.
        object: ObjectRef,
        /// How long it was waited for.
        seconds: u64,
    },
    /// A file of the user's.
    #[error("cannot read {path}: {source}")]
    File {
        /// The file or folder.
        path: PathBuf,
        /// Why.
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

    /// The same as a cause, when it says something about the cluster: requests that are refused, an API server that does not
    /// answer, a name that is taken.
    pub fn cause(&self) -> Option<Cause> {
        let source = match self {
            Error::Request { source, .. } => source,
            Error::NameTaken { object, author } => {
                return Some(ownership::name_taken(object.clone(), author));
            }
            _ => return None,
        };
        match source.as_ref() {
            kube::Error::Api(status) if matches!(status.code, 401 | 403) => Some(Cause::lasting(
                Code::Forbidden,
                self.to_string(),
                "use an account with the permission (-n, --kubeconfig), or have it granted; kubectl auth can-i --list shows what is allowed",
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

/// The shortest text that still says what happened.
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
