//! InstallPlan: the objects that OLM decided to create, and its progress.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use super::Condition;

/// Fields of `operators.coreos.com/v1alpha1 InstallPlan` that olmkit reads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct InstallPlan {
    /// Name, namespace, owner references.
    pub metadata: ObjectMeta,
    /// The CSVs to install, and their approval.
    pub spec: InstallPlanSpec,
    /// Progress of the plan.
    pub status: InstallPlanStatus,
}

/// `spec` of an InstallPlan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct InstallPlanSpec {
    /// `Automatic` or `Manual`.
    pub approval: String,
    /// True if it is approved.
    pub approved: bool,
    /// The CSVs that the plan installs.
    pub cluster_service_version_names: Vec<String>,
    /// Counts up with each plan of the namespace.
    pub generation: i64,
}

/// `status` of an InstallPlan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct InstallPlanStatus {
    /// `Planning`, `RequiresApproval`, `Installing`, `Complete`, `Failed`.
    pub phase: String,
    /// A sentence on the phase.
    pub message: String,
    /// Carries `Installed`.
    pub conditions: Vec<Condition>,
    /// The objects of the plan.
    pub plan: Vec<InstallPlanStep>,
    /// Bundles that are unpacked by a Job.
    pub bundle_lookups: Vec<serde_json::Value>,
}

/// One object of an InstallPlan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct InstallPlanStep {
    /// The CSV that requires the object.
    pub resolving: String,
    /// `Unknown`, `NotPresent`, `Present`, `Created`, …
    pub status: String,
    /// The object.
    pub resource: StepResource,
}

/// The object of a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepResource {
    /// API group, empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
}

impl InstallPlan {
    /// Why the plan failed or does not progress: the `Installed` condition's message, else the status message.
    pub fn reason(&self) -> String {
        let condition = self
            .status
            .conditions
            .iter()
            .find(|condition| condition.kind == "Installed" && !condition.is_true());
        match condition {
            Some(condition) if !condition.message.is_empty() => format!("{}: {}", condition.reason, condition.message),
            Some(condition) if !condition.reason.is_empty() => condition.reason.clone(),
            _ => self.status.message.clone(),
        }
    }

    /// Returns true if a step failed and OLM retries it, with growing delays. It does so for five minutes, and forever
    /// if it lacks permissions.
    pub fn is_retried(&self) -> bool {
        self.status.phase == "Installing" && self.status.message.contains("retrying execution due to error")
    }

    /// Steps that are done, and all steps.
    pub fn steps_done(&self) -> (usize, usize) {
        let done = self
            .status
            .plan
            .iter()
            .filter(|step| matches!(step.status.as_str(), "Present" | "Created"))
            .count();
        (done, self.status.plan.len())
    }
}
