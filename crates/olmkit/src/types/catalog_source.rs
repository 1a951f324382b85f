//! CatalogSource: where OLM finds bundles.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

/// Fields of `operators.coreos.com/v1alpha1 CatalogSource` that olmkit reads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CatalogSource {
    /// Name, namespace, labels.
    pub metadata: ObjectMeta,
    /// Source of the catalog.
    pub spec: CatalogSourceSpec,
    /// Status from OLM.
    pub status: CatalogSourceStatus,
}

/// `spec` of a CatalogSource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CatalogSourceSpec {
    /// `grpc`, or the older `configmap` and `internal`.
    pub source_type: String,
    /// Catalog image that OLM runs in a pod.
    pub image: String,
    /// `host:port` that OLM dials instead of a pod's Service.
    pub address: String,
    /// Name shown to people.
    pub display_name: String,
    /// Publisher of the catalog.
    pub publisher: String,
    /// The higher priority wins if several catalogs contain the same package.
    pub priority: i64,
}

/// `status` of a CatalogSource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CatalogSourceStatus {
    /// The gRPC connection as catalog-operator sees it.
    pub connection_state: Option<ConnectionState>,
    /// Machine-readable reason why the source is not usable, for example `SpecInvalidError`.
    pub reason: String,
    /// A sentence for the same.
    pub message: String,
    /// Everything else.
    #[serde(flatten)]
    pub other: BTreeMap<String, serde_json::Value>,
}

/// `status.connectionState` of a CatalogSource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ConnectionState {
    /// Address to which OLM connects.
    pub address: String,
    /// `IDLE`, `CONNECTING`, `READY`, `TRANSIENT_FAILURE`, `SHUTDOWN`.
    pub last_observed_state: String,
}

impl CatalogSource {
    /// The state of the gRPC connection, empty when OLM has not tried yet.
    pub fn connection(&self) -> &str {
        self.status
            .connection_state
            .as_ref()
            .map_or("", |state| state.last_observed_state.as_str())
    }

    /// Returns true if OLM has a working connection to the catalog.
    pub fn is_ready(&self) -> bool {
        self.connection() == "READY"
    }
}
