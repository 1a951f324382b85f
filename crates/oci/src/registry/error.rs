//! Errors of registries. Each message names the server, the rejected request and the fix.

use std::path::PathBuf;

use crate::digest::Digest;

/// Failure of an exchange with a registry.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The registry, or the server that gives its tokens, does not let this user do this.
    #[error("{registry} refused to {action} ({status}{said}); {credential}{hint}")]
    Denied {
        /// Host of the registry or token server.
        registry: String,
        /// The attempted action, with the image.
        action: String,
        /// HTTP status.
        status: u16,
        /// The server's message. Empty or `: …`.
        said: String,
        /// The credential and its origin, or the places without one.
        credential: String,
        /// The fix. Starts with punctuation.
        hint: String,
    },
    /// The registry does not have it.
    #[error("{registry} has no {what}{said}")]
    NotFound {
        /// Host of the registry.
        registry: String,
        /// The requested content.
        what: String,
        /// The registry's message. Empty or `: …`.
        said: String,
    },
    /// The registry answered with another final error.
    #[error("{registry} failed to {action}: it answered {status}{said}{attempts}")]
    Answer {
        /// Host of the registry.
        registry: String,
        /// The attempted action.
        action: String,
        /// HTTP status.
        status: u16,
        /// The registry's message. Empty or `: …`.
        said: String,
        /// Empty, or how often it was tried.
        attempts: String,
    },
    /// The registry accepts only the media types of OCI.
    #[error(
        "{registry} failed to {action}: it answered 415{said}; it does not accept Docker's media types: build the image without --docker, \
         or let the registry accept them (zot: http.compat \"docker2s2\")"
    )]
    DockerMediaType {
        /// Host of the registry.
        registry: String,
        /// The attempted action.
        action: String,
        /// The registry's message. Empty or `: …`.
        said: String,
    },
    /// No answer came.
    #[error("cannot {action}: {registry} {problem}{attempts}{hint}")]
    Unreachable {
        /// The attempted action.
        action: String,
        /// Host of the registry.
        registry: String,
        /// The problem: refused, timed out, certificate not trusted, …
        problem: String,
        /// Empty, or how often it was tried.
        attempts: String,
        /// The fix. Empty or starts with punctuation.
        hint: String,
    },
    /// The registry violates the protocol.
    #[error("{registry} violates the distribution protocol (request to {action}): {problem}")]
    Protocol {
        /// Host of the registry.
        registry: String,
        /// The attempted action.
        action: String,
        /// The problem.
        problem: String,
    },
    /// Content is not what its digest promises.
    #[error("{registry} sent wrong content for {what}: expected {expected}, got {actual}; nothing was kept")]
    Corrupt {
        /// Host of the registry.
        registry: String,
        /// The requested content.
        what: String,
        /// The digest asked for.
        expected: Digest,
        /// The digest received.
        actual: Digest,
    },
    /// A configuration or credential file cannot be used.
    #[error("{}: {reason}", path.display())]
    Settings {
        /// The file.
        path: PathBuf,
        /// The problem with the file.
        reason: String,
    },
    /// A credential helper failed.
    #[error("credential helper {helper}, named for {registry} in {}, failed: {reason}", path.display())]
    Helper {
        /// Name of the program.
        helper: String,
        /// For which registry.
        registry: String,
        /// The file that names it.
        path: PathBuf,
        /// The program's message.
        reason: String,
    },
    /// `registries.conf` blocks the registry.
    #[error("{what} is blocked by {}", path.display())]
    Blocked {
        /// The image.
        what: String,
        /// The file that blocks it.
        path: PathBuf,
    },
    /// The HTTP client cannot be set up.
    #[error("cannot set up the HTTP client for {registry}: {reason}")]
    Client {
        /// Host of the registry.
        registry: String,
        /// Why.
        reason: String,
    },
    /// A failure on this machine in the course of an exchange.
    #[error(transparent)]
    Local(#[from] Box<crate::Error>),
}

impl From<crate::Error> for Error {
    fn from(error: crate::Error) -> Self {
        match error {
            crate::Error::Registry(inner) => *inner,
            other => Self::Local(Box::new(other)),
        }
    }
}
