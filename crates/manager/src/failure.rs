//! Why a reconcile failed.
use std::{fmt, time::Duration};

use crate::{explain, transport};

/// Why a reconcile failed.
pub trait Failure: fmt::Display {
    /// How long the API server asked to wait (`Retry-After`).
    fn retry_after(&self) -> Option<Duration> {
        None
    }

    /// The text for the log.
    fn text(&self) -> String {
        self.to_string()
    }

    /// Returns true if this is the error of an earlier attempt, and nothing was attempted again. It does not make the next delay
    /// longer.
    fn is_repeated(&self) -> bool {
        false
    }
}

impl Failure for String {}
impl Failure for &str {}

impl Failure for kube::Error {
    fn retry_after(&self) -> Option<Duration> {
        transport::retry_after(self)
    }

    fn text(&self) -> String {
        explain::request(self)
    }
}

impl Failure for std::io::Error {}
impl Failure for serde_json::Error {}
impl Failure for Box<dyn std::error::Error + Send + Sync> {}

/// An attempt that failed: a request to the API server, or anything else.
///
/// ```
/// use kube_manager::worker::Failed;
///
/// # fn apply() -> Result<(), kube::Error> { Err(kube::Error::LinesCodecMaxLineLengthExceeded) }
/// # fn main() {
/// let result = apply().map_err(Failed::to("apply ConfigMap shop/web"));
/// assert!(result.is_err_and(|error| error.to_string().starts_with("cannot apply ConfigMap shop/web: ")));
///
/// let result = std::fs::read_to_string("/no/such/file").map_err(Failed::to("read the license"));
/// assert!(result.is_err_and(|error| error.to_string().starts_with("cannot read the license: ")));
/// # }
/// ```
pub struct Failed {
    attempt: String,
    source: Box<dyn Failure + Send + Sync>,
}

impl Failed {
    /// For `map_err`: what was attempted, such as "apply ConfigMap shop/web".
    pub fn to<E: Failure + Send + Sync + 'static>(attempt: impl Into<String>) -> impl FnOnce(E) -> Self {
        let attempt = attempt.into();
        move |source| Self {
            attempt,
            source: Box::new(source),
        }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}: {}", self.attempt, self.source.text())
    }
}

impl fmt::Debug for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Failed {}

impl Failure for Failed {
    fn retry_after(&self) -> Option<Duration> {
        self.source.retry_after()
    }
}
