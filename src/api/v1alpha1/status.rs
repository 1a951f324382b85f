//! The status of a `Memcached`.
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::api::{CONDITIONS, NUMBER, PHASE, POD_COUNT, TEXT, descriptor};

/// What runs, as last seen by the operator. No field is required: an empty status is a valid one.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemcachedStatus {
    /// Ready, Available, Progressing and Degraded, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        schema_with = "conditions",
        extend("x-olm-descriptor" = descriptor("Conditions", &[CONDITIONS]))
    )]
    pub conditions: Vec<Condition>,

    /// Names of the pods that belong to this object, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    #[schemars(extend("x-olm-descriptor" = descriptor("Nodes", &[])))]
    pub nodes: Vec<String>,

    /// Stable addresses of the servers of a StatefulSet, in the order of their ordinals. Up to 200 servers: the ConfigMap NAME-servers
    /// contains all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    #[schemars(extend("x-olm-descriptor" = descriptor("Servers", &[])))]
    pub servers: Vec<String>,

    /// The Secret with which applications are bound to the servers of a StatefulSet, by the Service Binding specification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-olm-descriptor" = descriptor("Binding", &[])))]
    pub binding: Option<Binding>,

    /// Number of servers that are ready and among the endpoints of the Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-olm-descriptor" = descriptor("Ready Replicas", &[POD_COUNT])))]
    pub ready_replicas: Option<i32>,

    /// Number of servers that exist, ready or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-olm-descriptor" = descriptor("Replicas", &[POD_COUNT])))]
    pub replicas: Option<i32>,

    /// Number of servers when all were ready last. While servers are added, the condition Available compares with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-olm-descriptor" = descriptor("Settled Replicas", &[POD_COUNT])))]
    pub settled_replicas: Option<i32>,

    /// Label selector of the pods, for the scale subresource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-olm-descriptor" = descriptor("Selector", &[TEXT])))]
    pub selector: Option<String>,

    /// The state in one word.
    #[serde(default, deserialize_with = "known_phase", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-olm-descriptor" = descriptor("Phase", &[PHASE])))]
    pub phase: Option<Phase>,

    /// The image that the servers run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-olm-descriptor" = descriptor("Image", &[TEXT])))]
    pub image: Option<String>,

    /// The metadata.generation that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-olm-descriptor" = descriptor("Observed Generation", &[NUMBER])))]
    pub observed_generation: Option<i64>,
}

/// A reference to a Secret.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// Name of the Secret.
    #[serde(default)]
    pub name: String,
}

/// The state of a `Memcached` in one word.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// No server has answered yet.
    Pending,
    /// As many servers as asked for answer, all of them as the spec says.
    Running,
    /// Servers are added, removed or replaced.
    Resizing,
    /// Something is wrong. The condition Degraded says what.
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
