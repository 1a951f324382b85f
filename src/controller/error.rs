//! Why a reconcile failed.
use std::time::Duration;

use kube_manager::{explain, transport, worker::Failure};

/// Why a reconcile failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server rejected a request or is unreachable.
    #[error("cannot {action} {kind} {name}: {}", explain::request(source))]
    Request {
        /// What was attempted: `apply`, `delete`.
        action: &'static str,
        /// Kind of the object.
        kind: String,
        /// Name of the object.
        name: String,
        /// The client's error.
        source: Box<kube::Error>,
    },
    /// An object that this Memcached needs exists and belongs to another owner.
    #[error("{kind} {name} exists and {owner}. Delete or rename it, or rename this Memcached")]
    Foreign {
        /// Kind of the object.
        kind: String,
        /// Name of the object.
        name: String,
        /// Its owner.
        owner: String,
    },
    /// An object of an earlier Memcached of the same name is still being deleted.
    #[error("waiting for {kind} {name} of an earlier owner to be deleted")]
    StillDeleting {
        /// Kind of the object.
        kind: String,
        /// Name of the object.
        name: String,
    },
}

impl Error {
    /// The reason for the condition Degraded; `None` for transient errors, which are only retried.
    pub fn reason(&self) -> Option<&'static str> {
        match self {
            Self::Foreign { .. } => Some("ForeignObject"),
            Self::StillDeleting { .. } => None,
            Self::Request { .. } => match self.code()? {
                // A conflicting write, or the API server is overloaded or restarting.
                404 | 409 | 429 | 502..=504 => None,
                403 => Some("Forbidden"),
                400 | 422 => Some("Invalid"),
                _ => Some("ApplyFailed"),
            },
        }
    }

    /// Returns true if the pass only waits: an object of an earlier owner is being deleted.
    pub fn awaits_deletion(&self) -> bool {
        matches!(self, Self::StillDeleting { .. })
    }

    /// Returns true if the object does not exist.
    pub fn is_not_found(&self) -> bool {
        self.code() == Some(404)
    }

    /// Returns true if the API server rejected the resulting object as invalid.
    pub fn is_invalid(&self) -> bool {
        self.code() == Some(422)
    }

    /// Returns true if nothing was written, for certain. Of a request without an answer nobody knows, nor of one that timed out
    /// between the API server and etcd.
    pub fn is_refusal(&self) -> bool {
        let Self::Request { source, .. } = self else {
            return true;
        };
        match source.as_ref() {
            kube::Error::Api(status) => {
                !matches!(status.code, 408 | 502..=504)
                    && !matches!(status.reason.as_str(), "Timeout" | "ServerTimeout")
                    && !status.message.contains("etcdserver")
            }
            _ => false,
        }
    }

    /// The API server's status code.
    fn code(&self) -> Option<u16> {
        match self {
            Self::Request { source, .. } => match source.as_ref() {
                kube::Error::Api(status) => Some(status.code),
                _ => None,
            },
            _ => None,
        }
    }
}

impl Failure for Error {
    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Request { source, .. } => transport::retry_after(source),
            _ => None,
        }
    }
}
