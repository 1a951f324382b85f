//! Errors of starting and using the control plane.

use std::path::PathBuf;

/// Why the control plane cannot be started or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A program was not found.
    #[error("{program} not found in {} nor in PATH; {}", .looked_in.join(", "), way_to_get(.program))]
    MissingProgram {
        /// Its file name.
        program: &'static str,
        /// The directories, in search order.
        looked_in: Vec<String>,
    },
    /// OLM's custom resource definitions are not in the cache directory.
    #[error("OLM custom resource definitions not found in {}; get them with `make tools` in olmkit's repository", .0.display())]
    MissingCrds(PathBuf),
    /// A file operation failed.
    #[error("cannot {what} ({}): {source}", .path.display())]
    Io {
        /// The attempted action.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A process exited.
    #[error("{name} exited ({status}); last lines of its log:\n{log}")]
    Ended {
        /// Its name.
        name: &'static str,
        /// Its exit status.
        status: String,
        /// The last lines of its output.
        log: String,
    },
    /// A process did not become ready in time.
    #[error("{name}: timed out after {seconds} s waiting for {what}: {reason}\nlast lines of its log:\n{log}")]
    NotReady {
        /// The process.
        name: &'static str,
        /// The awaited condition.
        what: &'static str,
        /// Time waited.
        seconds: u64,
        /// The last result.
        reason: String,
        /// The last lines of its output.
        log: String,
    },
    /// Certificates cannot be created.
    #[error("cannot create certificates: {0}")]
    Certificates(#[from] rcgen::Error),
    /// The kubeconfig cannot be used.
    #[error("kubeconfig of the control plane: {0}")]
    Kubeconfig(#[from] kube::config::KubeconfigError),
    /// A manifest of OLM cannot be parsed.
    #[cfg(feature = "olm")]
    #[error("{}: {source}", .path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: serde_yaml::Error,
    },
    /// The API server rejected a request.
    #[error("cannot {what}: {source}")]
    Request {
        /// The attempted action and its object.
        what: String,
        /// The client's error.
        source: Box<kube::Error>,
    },
    /// A custom resource definition is not served.
    #[error("CustomResourceDefinition {name}: version {version} is not served: {reason}")]
    NotServed {
        /// The definition.
        name: String,
        /// The version.
        version: String,
        /// The reason from its status, or else from the API server.
        reason: String,
    },
    /// Programs cannot be downloaded.
    #[cfg(feature = "download")]
    #[error(transparent)]
    Download(#[from] crate::download::DownloadError),
    /// An object has no webhook.
    #[error(
        "cannot install a webhook: kind {0:?} is none of CustomResourceDefinition, MutatingWebhookConfiguration and \
         ValidatingWebhookConfiguration"
    )]
    NoWebhook(String),
    /// The audit log is disabled.
    #[error("audit log is disabled; enable it with Options::with_audit()")]
    NoAudit,
    /// A line of the audit log is not an event.
    #[error("{}, line {line}: {source}", .path.display())]
    Audit {
        /// The log.
        path: PathBuf,
        /// Its line, from 1.
        line: usize,
        /// The reason.
        source: serde_json::Error,
    },
}

/// How to install a missing program.
fn way_to_get(program: &str) -> &'static str {
    match program {
        "etcd" | "kube-apiserver" | "kubectl" => {
            "run `kube-testbed download`, or set KUBEBUILDER_ASSETS to its directory"
        }
        _ => "build it with `make tools` in olmkit's repository, or start without controllers",
    }
}

impl Error {
    /// For `map_err` on requests.
    pub(crate) fn request(what: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let what = what.into();
        move |source| Self::Request {
            what,
            source: Box::new(source),
        }
    }

    /// For `map_err` on files.
    pub(crate) fn io(what: &'static str, path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }
}
