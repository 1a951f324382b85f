//! The kind `Xkindx`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// XkindxSpec defines the desired state of Xkindx.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(group = "xgroupx.example.com")]
#[kube(version = "v0xversionx")]
#[kube(kind = "Xkindx")]
#[kube(plural = "xpluralx")]
#[kube(status = "XkindxStatus")]
#[kube(namespaced)]
#[kube(derive = "PartialEq")]
#[kube(doc = "Xkindx is an example: describe your kind here.")]
#[kube(printcolumn(
    name = "Available",
    type_ = "string",
    json_path = ".status.conditions[?(@.type==\"Available\")].status"
))]
#[kube(printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"))]
#[serde(rename_all = "camelCase")]
pub struct XkindxSpec {
    /// Example field. Replace it with the fields of your kind.
    #[schemars(length(min = 1, max = 1024))]
    #[schemars(extend("x-olm-descriptor" = {"displayName": "Message"}))]
    // A rule in CEL, which the API server runs before it stores an object.
    #[x_kube(validation = Rule::new("self == self.trim()").message("must not start or end with whitespace"))]
    pub message: String,
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
            message: "Hello".to_owned(),
        };
        Self::new("xsingularx-sample", spec)
    }
}
