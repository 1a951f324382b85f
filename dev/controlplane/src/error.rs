//! What can go wrong while the control plane starts.

use std::path::PathBuf;

/// Why the control plane could not be started or used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program is in none of the places where it is looked for.
    #[error("no {program} in {}; build it with `make tools` (dev/tools/build.sh {program})", .looked_in.join(", "))]
    MissingProgram {
        /// Its file name.
        program: &'static str,
        /// The folders, in the order of the search.
        looked_in: Vec<String>,
    },
    /// OLM's custom resource definitions are not in the cache folder.
    #[error("no OLM custom resource definitions in {}; `make tools` (dev/tools/build.sh control-plane) puts them there", .0.display())]
    MissingCrds(PathBuf),
    /// A file or folder could not be used.
    #[error("could not {what} ({}): {source}", .path.display())]
    Io {
        /// What was attempted.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A process ended by itself.
    #[error("{name} ended ({status}); last lines of its log:\n{log}")]
    Ended {
        /// Its name.
        name: &'static str,
        /// How it ended.
        status: String,
        /// The last lines of its output.
        log: String,
    },
    /// A process runs but does not get ready.
    #[error("{name}: no {what} after {seconds} s: {reason}\nlast lines of its log:\n{log}")]
    NotReady {
        /// The process.
        name: &'static str,
        /// What was waited for.
        what: &'static str,
        /// How long.
        seconds: u64,
        /// The last answer.
        reason: String,
        /// The last lines of its output.
        log: String,
    },
    /// Certificates could not be made.
    #[error("could not make certificates: {0}")]
    Certificates(#[from] rcgen::Error),
    /// The kubeconfig cannot be used.
    #[error("kubeconfig of the control plane: {0}")]
    Kubeconfig(#[from] kube::config::KubeconfigError),
    /// A manifest that OLM ships cannot be read.
    #[error("{}: {source}", .path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_yaml::Error,
    },
    /// The API server refused a request.
    #[error("could not {what}: {source}")]
    Request {
        /// What was attempted, on which object.
        what: String,
        /// The server's answer.
        source: Box<kube::Error>,
    },
    /// The audit log was asked for but is off.
    #[error("the control plane writes no audit log; start it with Options::with_audit()")]
    NoAudit,
    /// A line of the audit log is not an event.
    #[error("{}, line {line}: {source}", .path.display())]
    Audit {
        /// The log.
        path: PathBuf,
        /// Its line, from 1.
        line: usize,
        /// Why.
        source: serde_json::Error,
    },
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
