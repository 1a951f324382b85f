//! Encrypted connections.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The certificate of the servers. Clients must use TLS.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tls {
    /// Name of a Secret of type kubernetes.io/tls, as cert-manager writes it. The servers load a changed certificate without a restart.
    #[schemars(length(min = 1, max = 253))]
    pub secret_name: String,

    /// If true, clients need a certificate of the authority in the Secret's key ca.crt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub verify_clients: bool,
}
