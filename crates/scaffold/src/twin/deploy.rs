//! The kind `Xkindx`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// `spec.containerPort` when it is not given.
pub const DEFAULT_CONTAINER_PORT: i32 = 11211;

/// XkindxSpec defines the desired state of Xkindx.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(group = "xgroupx.example.com")]
#[kube(version = "v0xversionx")]
#[kube(kind = "Xkindx")]
#[kube(plural = "xpluralx")]
#[kube(status = "XkindxStatus")]
#[kube(namespaced)]
#[kube(derive = "PartialEq")]
#[kube(doc = "Xkindx runs a number of equal pods.")]
#[kube(printcolumn(name = "Size", type_ = "integer", json_path = ".spec.size"))]
#[kube(printcolumn(
    name = "Available",
    type_ = "string",
    json_path = ".status.conditions[?(@.type==\"Available\")].status"
))]
#[kube(printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"))]
#[serde(rename_all = "camelCase")]
pub struct XkindxSpec {
    /// Desired number of pods. 0 stops all pods and keeps the object.
    #[serde(default = "default_size")]
    #[schemars(range(min = 0))]
    #[schemars(extend("x-olm-descriptor" = {
        "displayName": "Size",
        "x-descriptors": ["urn:alm:descriptor:com.tectonic.ui:podCount"],
    }))]
    pub size: i32,

    /// TCP port that each pod listens on.
    #[serde(default = "default_container_port")]
    #[schemars(range(min = 1, max = 65535))]
    #[schemars(extend("x-olm-descriptor" = {"displayName": "Container Port"}))]
    pub container_port: i32,
}

fn default_size() -> i32 {
    1
}

fn default_container_port() -> i32 {
    DEFAULT_CONTAINER_PORT
}

/// XkindxStatus defines the observed state of Xkindx.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct XkindxStatus {
    /// Current state of the object: the conditions Available, Progressing and Degraded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    #[schemars(extend("x-olm-descriptor" = {
        "displayName": "Conditions",
        "x-descriptors": ["urn:alm:descriptor:io.kubernetes.conditions"],
    }))]
    pub conditions: Vec<Condition>,

    /// Most recent .metadata.generation that the operator observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-olm-descriptor" = {"displayName": "Observed Generation"}))]
    pub observed_generation: Option<i64>,
}

impl Xkindx {
    /// An example object, for `config/samples` and tests.
    pub fn sample() -> Self {
        let spec = XkindxSpec {
            size: default_size(),
            container_port: DEFAULT_CONTAINER_PORT,
        };
        Self::new("xsingularx-sample", spec)
    }
}
