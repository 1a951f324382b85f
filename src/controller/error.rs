//! Why a reconcile did not get through.
use olmkit_manager::explain;

/// Why a reconcile did not get through.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refused a request, or could not be reached.
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
    /// An object that this Memcached needs exists already and belongs to someone else.
    #[error(
        "{kind} {name} exists and {owner}; it is left alone. Delete or rename it, or give this Memcached another name"
    )]
    Foreign {
        /// Kind of the object.
        kind: String,
        /// Name of the object.
        name: String,
        /// Whose it is.
        owner: String,
    },
    /// An object of an earlier Memcached of the same name is still being deleted.
    #[error("{kind} {name} of an earlier owner is still being deleted; waiting for its end")]
    StillDeleting {
        /// Kind of the object.
        kind: String,
        /// Name of the object.
        name: String,
    },
    /// A desired object could not be put into words.
    #[error("cannot serialize {kind} {name}: {source}")]
    Serialize {
        /// Kind of the object.
        kind: String,
        /// Name of the object.
        name: String,
        /// The serializer's error.
        source: serde_json::Error,
    },
}

impl Error {
    /// The reason for the condition Degraded; `None` for what passes by itself and is only tried again.
    pub fn reason(&self) -> Option<&'static str> {
        match self {
            Self::Foreign { .. } => Some("ForeignObject"),
            Self::StillDeleting { .. } => None,
            Self::Serialize { .. } => Some("ApplyFailed"),
            Self::Request { .. } => match self.code()? {
                // Somebody else wrote first, or the server is overloaded or restarting.
                404 | 409 | 429 | 502..=504 => None,
                403 => Some("Forbidden"),
                400 | 422 => Some("Invalid"),
                _ => Some("ApplyFailed"),
            },
        }
    }

    /// Whether the object that was to be written is not there.
    pub fn is_not_found(&self) -> bool {
        self.code() == Some(404)
    }

    /// Whether the API server found the object that would result to be none that it can accept.
    pub fn is_invalid(&self) -> bool {
        self.code() == Some(422)
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
