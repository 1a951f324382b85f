//! OperatorGroup: which namespaces the operators of a namespace serve.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use serde::{Deserialize, Serialize};

/// Fields of `operators.coreos.com/v1 OperatorGroup` that olmkit reads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OperatorGroup {
    /// Name, namespace, annotations.
    pub metadata: ObjectMeta,
    /// Selected namespaces.
    pub spec: OperatorGroupSpec,
    /// Namespaces that olm-operator found.
    pub status: OperatorGroupStatus,
}

/// `spec` of an OperatorGroup. Neither targets nor selector means all namespaces.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct OperatorGroupSpec {
    /// Namespaces by name. Wins over the selector.
    pub target_namespaces: Vec<String>,
    /// Namespaces by label.
    pub selector: Option<LabelSelector>,
    /// Account that InstallPlans of the namespace are executed with.
    pub service_account_name: String,
    /// `Default` or `TechPreviewUnsafeFailForward`.
    pub upgrade_strategy: String,
}

/// `status` of an OperatorGroup.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct OperatorGroupStatus {
    /// The namespaces served. One empty string means all.
    pub namespaces: Vec<String>,
    /// Conditions, for example on the service account.
    pub conditions: Vec<super::Condition>,
}
