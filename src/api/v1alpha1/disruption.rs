//! The limit of voluntary disruptions.
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Limits the servers that node maintenance stops at the same time.
#[derive(JsonSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DisruptionBudget {
    /// If false, there is no PodDisruptionBudget.
    #[serde(default = "yes")]
    pub enabled: bool,

    /// Number or percentage of the servers that may be unavailable. 0 blocks node maintenance. The default is 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "number_or_percentage")]
    pub max_unavailable: Option<IntOrString>,
}

fn yes() -> bool {
    true
}

fn number_or_percentage(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "x-kubernetes-int-or-string": true, "minimum": 0, "pattern": "^(100|[1-9]?[0-9])%$" })
}
