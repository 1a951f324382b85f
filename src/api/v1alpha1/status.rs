//! The status of a `Memcached`.
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::api::{CONDITIONS, NUMBER, PHASE, POD_COUNT, TEXT, descriptor};

/// Most recently observed state of the servers. Populated by the operator.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemcachedStatus {
    /// Current state of the object: the conditions Ready, Available, Progressing and Degraded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        schema_with = "conditions",
        extend("x-olm-descriptor" = descriptor("Conditions", &[CONDITIONS]))
    )]
    pub conditions: Vec<Condition>,

    /// Sorted names of the pods that this object manages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    #[schemars(extend("x-olm-descriptor" = descriptor("Nodes", &[])))]
    pub nodes: Vec<String>,

    /// Stable addresses of a StatefulSet's servers, ordered by ordinal. At most 200 are listed. The ConfigMap NAME-servers contains
    /// all addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    #[schemars(extend("x-olm-descriptor" = descriptor("Servers", &[])))]
    pub servers: Vec<String>,

    /// Reference to the Secret that exposes a StatefulSet's servers to applications, as defined by the Service Binding specification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-olm-descriptor" = descriptor("Binding", &[])))]
    pub binding: Option<Binding>,

    /// Number of servers that are ready and listed in the Service's endpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-olm-descriptor" = descriptor("Ready Replicas", &[POD_COUNT])))]
    pub ready_replicas: Option<i32>,

    /// Total number of servers, including those that are not ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-olm-descriptor" = descriptor("Replicas", &[POD_COUNT])))]
    pub replicas: Option<i32>,

    /// Number of servers when all servers were last ready. During scale-up, the condition Available is computed from this number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-olm-descriptor" = descriptor("Settled Replicas", &[POD_COUNT])))]
    pub settled_replicas: Option<i32>,

    /// Label selector for pods, used by the scale subresource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-olm-descriptor" = descriptor("Selector", &[TEXT])))]
    pub selector: Option<String>,

    /// High-level summary of the object's state.
    #[serde(default, deserialize_with = "known_phase", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-olm-descriptor" = descriptor("Phase", &[PHASE])))]
    pub phase: Option<Phase>,

    /// Container image that the servers run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-olm-descriptor" = descriptor("Image", &[TEXT])))]
    pub image: Option<String>,

    /// Most recent .metadata.generation that the operator observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-olm-descriptor" = descriptor("Observed Generation", &[NUMBER])))]
    pub observed_generation: Option<i64>,
}

/// Reference to a Secret.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// Name of the Secret.
    #[serde(default)]
    pub name: String,
}

/// High-level summary of a `Memcached`'s state.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// No server has been ready yet.
    Pending,
    /// All desired servers are ready and match the spec.
    Running,
    /// Servers are being added, removed or replaced.
    Resizing,
    /// The object needs attention. The condition Degraded contains the reason.
    Degraded,
    /// The object is being deleted.
    Deleting,
}

/// A phase of a newer version of the operator counts as none: the operator writes the status again, and could never delete an object
/// that it cannot read.
fn known_phase<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Phase>, D::Error> {
    let text = Option::<Value>::deserialize(deserializer)?;
    Ok(text.and_then(|text| serde_json::from_value(text).ok()))
}

/// The list of conditions.
fn conditions(_: &mut SchemaGenerator) -> Schema {
    kube_manager::conditions::schema().try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_phase_of_a_newer_version_counts_as_none() {
        let phase = |value| serde_json::from_value::<MemcachedStatus>(value).unwrap().phase;
        assert_eq!(phase(json!({ "phase": "Running" })), Some(Phase::Running));
        assert_eq!(phase(json!({ "phase": "Hibernating" })), None);
        assert_eq!(phase(json!({ "phase": null })), None);
    }
}
