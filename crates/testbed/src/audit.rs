//! The API server's audit log: requests with their users.

use std::fmt;
use std::path::Path;

use serde::Deserialize;

use crate::Error;
use crate::process::read_to_string;

/// One request at one stage (`audit.k8s.io/v1`, level Metadata).
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditEvent {
    /// `ResponseStarted` (watches that are open), `ResponseComplete` or `Panic`.
    pub stage: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, …
    pub verb: String,
    /// Path and query.
    #[serde(rename = "requestURI")]
    pub request_uri: String,
    /// User agent of the client.
    #[serde(default)]
    pub user_agent: String,
    /// The user.
    pub user: AuditUser,
    /// Its object. Absent for non-resource paths such as `/readyz`.
    #[serde(default)]
    pub object_ref: Option<AuditObject>,
    /// The answer.
    #[serde(default)]
    pub response_status: Option<AuditStatus>,
    /// When the request was received, RFC 3339 with microseconds.
    pub request_received_timestamp: String,
}

/// The authenticated user.
#[derive(Debug, Clone, Deserialize)]
pub struct AuditUser {
    /// Its name, for example `system:serviceaccount:NAMESPACE:NAME`.
    #[serde(default)]
    pub username: String,
}

/// The object of a request.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditObject {
    /// Plural name of the resource.
    #[serde(default)]
    pub resource: String,
    /// `status`, `scale`, …. Empty for the object itself.
    #[serde(default)]
    pub subresource: String,
    /// Empty for cluster-scoped objects and requests across namespaces.
    #[serde(default)]
    pub namespace: String,
    /// Empty for lists, watches and creations.
    #[serde(default)]
    pub name: String,
    /// Empty for the core group.
    #[serde(default)]
    pub api_group: String,
}

/// The answer of a request.
#[derive(Debug, Clone, Deserialize)]
pub struct AuditStatus {
    /// HTTP status code.
    #[serde(default)]
    pub code: u16,
}

/// A right as roles grant it: `create apps/deployments`, `update /pods/status`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Right {
    /// `get`, `list`, `watch`, `create`, …
    pub verb: String,
    /// Empty for the core group.
    pub group: String,
    /// Plural name of the resource, with its subresource: `deployments/scale`.
    pub resource: String,
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.verb, self.group, self.resource)
    }
}

impl AuditEvent {
    /// The permission that the request needs. `None` for paths without an object. Some requests need more than one: a
    /// patch that creates an object is also authorized as `create`.
    #[must_use]
    pub fn right(&self) -> Option<Right> {
        let object = self.object_ref.as_ref()?;
        let slash = if object.subresource.is_empty() { "" } else { "/" };
        Some(Right {
            verb: self.verb.clone(),
            group: object.api_group.clone(),
            resource: format!("{}{slash}{}", object.resource, object.subresource),
        })
    }

    /// The status code of the answer; 0 before there is one.
    #[must_use]
    pub fn code(&self) -> u16 {
        self.response_status.as_ref().map_or(0, |status| status.code)
    }
}

/// Reads all complete lines. The server may still be writing the last one.
pub(crate) fn read(path: &Path) -> Result<Vec<AuditEvent>, Error> {
    let text = read_to_string(path)?;
    let complete = text.rfind('\n').map_or("", |end| text.get(..end).unwrap_or_default());
    complete
        .lines()
        .enumerate()
        .map(|(index, line)| {
            serde_json::from_str(line).map_err(|source| Error::Audit {
                path: path.to_owned(),
                line: index + 1,
                source,
            })
        })
        .collect()
}
