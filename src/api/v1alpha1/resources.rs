//! Compute resources of a server's container.
use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::KubeSchema;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Compute resources of a container: the part of Kubernetes' `ResourceRequirements` that a cache uses.
///
/// The type of the core API accepts any text as a quantity. Here the API server rejects invalid quantities, and a request above its
/// limit.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new(at_most_the_limit("cpu")).message("requests.cpu must not be above limits.cpu"),
    validation = Rule::new(at_most_the_limit("memory")).message("requests.memory must not be above limits.memory"),
    validation = Rule::new(
        "!has(self.requests) || !('memory' in self.requests) || (has(self.limits) && 'memory' in self.limits)"
    )
    .message("requests.memory needs limits.memory beside it: the default limit may be below the request")
)]
pub struct Resources {
    /// The most that the container may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "quantities")]
    pub limits: Option<BTreeMap<String, Quantity>>,

    /// What the scheduler sets aside for the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "quantities")]
    pub requests: Option<BTreeMap<String, Quantity>>,
}

/// The rule that a request is not above the limit of the same resource, where both are given.
fn at_most_the_limit(resource: &str) -> String {
    format!(
        "!has(self.requests) || !has(self.limits) || !('{resource}' in self.requests) || !('{resource}' in self.limits) \
         || !quantity(string(self.requests['{resource}'])).isGreaterThan(quantity(string(self.limits['{resource}'])))"
    )
}

/// A map of quantities. The pattern is Kubernetes' own for quantities.
fn quantities(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 16,
        "x-kubernetes-validations": [{
            "rule": "self.all(name, !string(self[name]).startsWith('-'))",
            "message": "quantities must not be negative",
        }],
        "additionalProperties": {
            "x-kubernetes-int-or-string": true,
            "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
        },
    })
}
