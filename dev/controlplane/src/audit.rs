//! The API server's audit log: who sent which request.

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
    /// Who sent it.
    pub user: AuditUser,
    /// Its object; absent for non-resource paths such as `/readyz`.
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
    /// `status`, `scale`, …; empty for the object itself.
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

/// Reads all complete lines; the server may still be writing the last one.
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
