//! The kind `Valkey`.
use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::ResourceRequirements,
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::Condition},
};
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// The desired servers.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "cache.example.com",
    version = "v1beta1",
    kind = "Valkey",
    namespaced,
    status = "ValkeyStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct ValkeySpec {
    /// Number of pods.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 9))]
    pub replicas: i32,
    /// Image of the pods instead of the operator's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Compute resources of a pod.
    #[serde(default)]
    pub resources: ResourceRequirements,
    /// Size of the volume of a pod.
    pub storage: Quantity,
    /// Name of a Secret with the key `password`. Without it the operator generates a password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_secret: Option<String>,
    /// Lines of valkey.conf.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    /// Schedule of backups in cron format. Without it, no backups run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup_schedule: Option<String>,
    /// While this is true the operator changes nothing.
    #[serde(default)]
    pub paused: bool,
}

fn one() -> i32 {
    1
}

/// The observed servers.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ValkeyStatus {
    /// Ready, Available, Progressing and Degraded, each with the reason.
    #[serde(default)]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Vec<Condition>,
    /// The generation that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Addresses of the servers: all, and each.
    #[serde(default)]
    pub endpoints: Vec<String>,
    /// Number of ready pods.
    #[serde(default)]
    pub ready_replicas: i32,
    /// Name of the Secret with the password.
    #[serde(default)]
    pub password_secret: String,
}
