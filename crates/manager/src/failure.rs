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

/// A request that failed, with what it was for.
///
/// ```
/// use kube_manager::worker::Failed;
///
/// # fn apply() -> Result<(), kube::Error> { Err(kube::Error::LinesCodecMaxLineLengthExceeded) }
/// let result = apply().map_err(Failed::to("apply ConfigMap shop/web"));
/// assert!(result.is_err_and(|error| error.to_string().starts_with("cannot apply ConfigMap shop/web: ")));
/// ```
#[derive(Debug)]
pub struct Failed {
    attempt: String,
    source: kube::Error,
}

impl Failed {
    /// For `map_err`: what was attempted, such as "apply ConfigMap shop/web".
    pub fn to(attempt: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let attempt = attempt.into();
        move |source| Self { attempt, source }
    }

    /// The error of the request.
    pub fn request(&self) -> &kube::Error {
        &self.source
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}: {}", self.attempt, explain::request(&self.source))
    }
}

impl std::error::Error for Failed {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

impl Failure for Failed {
    fn retry_after(&self) -> Option<Duration> {
        transport::retry_after(&self.source)
    }
}
