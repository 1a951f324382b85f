//! Why an object is not as desired.
use std::{borrow::Cow, fmt, time::Duration};

use crate::{explain, transport, worker::Failure};

/// A rejected request is sent again after this time, unless something changes before.
const REJECTED_RETRY: Duration = Duration::from_secs(60);

/// Why a reconcile failed. Its reason becomes the reason of the condition `Degraded`.
///
/// Requests turn into it with `?`. [`Error::new`] is for everything else:
///
/// ```
/// use kube_manager::reconcile::Error;
///
/// fn port(text: &str) -> Result<u16, Error> {
///     text.parse().map_err(|error| Error::new("InvalidPort", format!("cannot use port {text:?}: {error}")))
/// }
/// assert_eq!(port("http").unwrap_err().reason(), "InvalidPort");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    reason: Cow<'static, str>,
    message: String,
    kind: ErrorKind,
    retry_after: Option<Duration>,
    is_repeated: bool,
}

/// The fix for an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Something outside the API server failed. The reconcile is tried again with back-off.
    Failed,
    /// The API server rejects the object. Trying again does not help, so it happens after a minute.
    Rejected,
    /// The API server is not reachable, busy, or another client was faster.
    Transient,
    /// Nothing failed: something has to happen first, and a watch will report it.
    Waiting,
    /// The object belongs to another owner.
    Taken,
}

impl Error {
    /// An error with a reason in CamelCase, such as `SecretMissing`.
    pub fn new(reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self::of(ErrorKind::Failed, reason, message)
    }

    /// Nothing failed, but the reconcile cannot go on before something else happens. The reason and message become those of
    /// the condition `Progressing`.
    pub fn waiting(reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self::of(ErrorKind::Waiting, reason, message)
    }

    /// A request failed. `attempt` names it, such as "delete Job shop/import".
    pub fn request(attempt: impl fmt::Display, error: kube::Error) -> Self {
        let retry_after = transport::retry_after(&error);
        let message = format!("cannot {attempt}: {}", explain::request(&error));
        let (kind, reason) = match &error {
            kube::Error::Api(status) => (classify(status), status.reason.clone()),
            _ => (ErrorKind::Transient, String::new()),
        };
        let reason = match (reason.as_str(), kind) {
            ("", ErrorKind::Rejected) => "Invalid".into(),
            ("", _) => "RequestFailed".into(),
            _ => Cow::Owned(reason),
        };
        Self {
            reason,
            message,
            kind,
            retry_after,
            is_repeated: false,
        }
    }

    pub(crate) fn rejected(reason: &'static str, message: impl Into<String>) -> Self {
        Self::of(ErrorKind::Rejected, reason, message)
    }

    pub(crate) fn taken(message: impl Into<String>) -> Self {
        Self::of(ErrorKind::Taken, "NameTaken", message)
    }

    pub(crate) fn transient(reason: &'static str, message: impl Into<String>) -> Self {
        Self::of(ErrorKind::Transient, reason, message)
    }

    /// A mistake in the operator.
    pub(crate) fn bug(message: impl Into<String>) -> Self {
        Self::of(ErrorKind::Rejected, "InternalError", message)
    }

    fn of(kind: ErrorKind, reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            message: message.into(),
            kind,
            retry_after: None,
            is_repeated: false,
        }
    }

    /// The same error of an attempt that is not repeated before `left` has passed.
    pub(crate) fn repeated(self, left: Duration) -> Self {
        Self {
            retry_after: Some(left),
            is_repeated: true,
            ..self
        }
    }

    /// The same error, of a request that is wrong in itself.
    pub(crate) fn into_rejected(self) -> Self {
        Self {
            kind: ErrorKind::Rejected,
            ..self
        }
    }

    /// Another reason instead of that of the API server.
    #[must_use]
    pub fn with_reason(self, reason: impl Into<Cow<'static, str>>) -> Self {
        Self {
            reason: reason.into(),
            ..self
        }
    }

    /// The reason, in CamelCase.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The fix.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

/// Returns true if no object has this name. The API server also answers 404 while it does not serve the kind.
pub(crate) fn is_missing(status: &kube::core::Status, name: &str) -> bool {
    status.code == 404 && status.details.as_ref().is_some_and(|details| details.name == name)
}

/// The fix for an error status.
fn classify(status: &kube::core::Status) -> ErrorKind {
    // The API server reports an apply that does not match the schema, or is too large, as an internal error.
    let mismatch = [
        "failed to create typed patch object",
        "unable to convert unstructured object",
        // Another client has written an entry without a key.
        "failed to create manager for existing fields",
        "field not declared in schema",
        "duplicate entries for key",
        "etcdserver: request is too large",
    ];
    // A JSON patch whose test of the version fails, because another client was faster.
    let outdated = "the server rejected our request due to an error in our request";
    match status.code {
        422 if status.message.starts_with(outdated) => ErrorKind::Transient,
        400 | 413 | 415 | 422 => ErrorKind::Rejected,
        403 if is_denied(&status.message) => ErrorKind::Rejected,
        404 if status
            .details
            .as_ref()
            .is_some_and(|details| details.kind == "namespaces") =>
        {
            ErrorKind::Rejected
        }
        500 if mismatch.iter().any(|text| status.message.contains(text)) => ErrorKind::Rejected,
        409 | 429 | 500..=599 => ErrorKind::Transient,
        _ => ErrorKind::Failed,
    }
}

/// Returns true if admission denies the request: a quota, a policy, a webhook, or a namespace that is being deleted. Otherwise the
/// user lacks a permission.
fn is_denied(message: &str) -> bool {
    match message.split_once(" is forbidden: ") {
        Some((_, why)) => !why.starts_with("User "),
        None => message.starts_with("admission webhook "),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl Failure for Error {
    fn is_repeated(&self) -> bool {
        self.is_repeated
    }

    fn retry_after(&self) -> Option<Duration> {
        match self.kind {
            _ if self.is_repeated => self.retry_after,
            ErrorKind::Rejected | ErrorKind::Taken => Some(self.retry_after.unwrap_or_default().max(REJECTED_RETRY)),
            _ => self.retry_after,
        }
    }
}

impl From<kube::Error> for Error {
    fn from(error: kube::Error) -> Self {
        Self::request("complete a request", error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_that_etcd_rejects_is_not_sent_again() {
        let status = kube::core::Status::failure("etcdserver: request is too large", "").with_code(500);
        let error = Error::request("apply", kube::Error::Api(status.boxed()));
        assert_eq!(error.kind(), ErrorKind::Rejected);
    }

    #[test]
    fn a_denial_is_no_missing_permission() {
        let kind = |message: &str| {
            let status = kube::core::Status::failure(message, "Forbidden").with_code(403).boxed();
            Error::request("apply", kube::Error::Api(status)).kind()
        };
        let quota = r#"configmaps "a" is forbidden: exceeded quota: q, requested: count/configmaps=1"#;
        let webhook = r#"admission webhook "a.example.com" denied the request: no"#;
        let permission = r#"configmaps "a" is forbidden: User "op" cannot patch resource "configmaps" in API group """#;
        assert_eq!(kind(quota), ErrorKind::Rejected);
        assert_eq!(kind(webhook), ErrorKind::Rejected);
        assert_eq!(kind(permission), ErrorKind::Failed);
    }

    #[test]
    fn an_outdated_json_patch_is_tried_again() {
        let kind = |message: &str| {
            let status = kube::core::Status::failure(message, "Invalid").with_code(422).boxed();
            Error::request("update", kube::Error::Api(status)).kind()
        };
        let outdated = kind("the server rejected our request due to an error in our request");
        assert_eq!(outdated, ErrorKind::Transient);
        assert_eq!(
            kind("Deployment.apps \"a\" is invalid: spec.replicas"),
            ErrorKind::Rejected
        );
    }
}
