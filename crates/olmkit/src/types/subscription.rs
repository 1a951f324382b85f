//! Subscription: the wish to have a package, kept at the head of a channel.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use super::Condition;

/// Fields of `operators.coreos.com/v1alpha1 Subscription` that olmkit reads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Subscription {
    /// Name, namespace, labels.
    pub metadata: ObjectMeta,
    /// The package and its catalog.
    pub spec: SubscriptionSpec,
    /// Progress of OLM.
    pub status: SubscriptionStatus,
}

/// `spec` of a Subscription.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SubscriptionSpec {
    /// The package.
    pub name: String,
    /// The channel. Empty means the package's default channel.
    pub channel: String,
    /// Name of the CatalogSource.
    pub source: String,
    /// Namespace of the CatalogSource.
    pub source_namespace: String,
    /// The CSV to begin with.
    #[serde(rename = "startingCSV")]
    pub starting_csv: String,
    /// `Automatic` (also when empty) or `Manual`.
    pub install_plan_approval: String,
}

/// `status` of a Subscription.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SubscriptionStatus {
    /// `UpgradeAvailable`, `UpgradePending`, `AtLatestKnown`, or empty.
    pub state: String,
    /// The CSV that OLM is installing or has installed.
    #[serde(rename = "currentCSV")]
    pub current_csv: String,
    /// The CSV that exists. It need not be Succeeded.
    #[serde(rename = "installedCSV")]
    pub installed_csv: String,
    /// The plan that installs `currentCSV`.
    pub install_plan_ref: Option<ObjectReference>,
    /// `ResolutionFailed`, `BundleUnpacking`, `CatalogSourcesUnhealthy`, … They go stale: see `cluster::causes`.
    pub conditions: Vec<Condition>,
}

/// Points to another object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectReference {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Unique id.
    pub uid: String,
}

impl Subscription {
    /// The condition of that type, if its status is `True`.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.status
            .conditions
            .iter()
            .find(|condition| condition.kind == kind && condition.is_true())
    }

    /// Returns true if plans require manual approval.
    pub fn is_manual(&self) -> bool {
        self.spec.install_plan_approval == "Manual"
    }
}
