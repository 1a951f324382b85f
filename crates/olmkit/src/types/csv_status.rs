//! A ClusterServiceVersion in a cluster: the parts of its spec that the commands read, and its status.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

/// Fields of `operators.coreos.com/v1alpha1 ClusterServiceVersion` that the cluster commands read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeployedCsv {
    /// Name, namespace, labels, annotations, finalizers.
    pub metadata: ObjectMeta,
    /// The parts of the spec that decisions depend on.
    pub spec: DeployedCsvSpec,
    /// Phase and requirements.
    pub status: DeployedCsvStatus,
}

/// The parts of a CSV's `spec` that the cluster flows read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DeployedCsvSpec {
    /// Version of the operator.
    pub version: String,
    /// The CSV that this one replaces.
    pub replaces: String,
    /// Lowest Kubernetes version.
    pub min_kube_version: String,
    /// Install modes of the operator.
    pub install_modes: Vec<InstallModeSupport>,
    /// CRDs owned and required.
    pub customresourcedefinitions: Definitions,
    /// Aggregated APIs owned and required.
    pub apiservicedefinitions: Definitions,
    /// Install strategy.
    pub install: Install,
    /// Webhooks, as written.
    pub webhookdefinitions: Vec<serde_json::Value>,
}

/// One supported or unsupported install mode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InstallModeSupport {
    /// `OwnNamespace`, `SingleNamespace`, `MultiNamespace`, `AllNamespaces`.
    #[serde(rename = "type")]
    pub kind: String,
    /// True if the operator can run that way.
    pub supported: bool,
}

/// APIs that an operator owns and requires.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Definitions {
    /// Brought by this operator.
    pub owned: Vec<OwnedDefinition>,
    /// Expected from elsewhere.
    pub required: Vec<OwnedDefinition>,
}

/// One API of [`Definitions`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OwnedDefinition {
    /// For a CRD `<plural>.<group>`.
    pub name: String,
    /// API version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// API group (APIServices only).
    pub group: String,
}

/// `spec.install`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Install {
    /// Always `deployment`.
    pub strategy: String,
    /// Parameters of the strategy.
    pub spec: InstallSpec,
}

/// `spec.install.spec`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct InstallSpec {
    /// The Deployments, by name.
    pub deployments: Vec<NamedDeployment>,
}

/// A Deployment of the CSV. Only its name is read here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NamedDeployment {
    /// Name of the Deployment.
    pub name: String,
}

/// `status` of a CSV.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DeployedCsvStatus {
    /// `Pending`, `InstallReady`, `Installing`, `Succeeded`, `Failed`, `Replacing`, `Deleting`, or empty.
    pub phase: String,
    /// Machine-readable reason for the phase.
    pub reason: String,
    /// A sentence on the phase.
    pub message: String,
    /// Its previous phases, the newest last. OLM keeps twenty.
    pub conditions: Vec<PassedPhase>,
    /// Each thing that must exist first.
    pub requirement_status: Vec<RequirementStatus>,
}

/// A phase that a CSV was or is in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PassedPhase {
    /// As in [`DeployedCsvStatus::phase`].
    pub phase: String,
    /// Machine-readable reason.
    pub reason: String,
    /// A sentence on it.
    pub message: String,
}

/// One thing that must exist before a CSV is installed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequirementStatus {
    /// API group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
    /// `Present`, `NotPresent`, `PresentNotSatisfied`, …
    pub status: String,
    /// Details.
    pub message: String,
    /// For a ServiceAccount: the policy rules, met or not.
    pub dependents: Vec<serde_json::Value>,
}

impl RequirementStatus {
    /// Returns true if the requirement is met.
    pub fn is_met(&self) -> bool {
        matches!(self.status.as_str(), "Present" | "Created" | "Satisfied")
    }
}

impl DeployedCsv {
    /// The CSV's name.
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// The namespace it is in.
    pub fn namespace(&self) -> &str {
        self.metadata.namespace.as_deref().unwrap_or_default()
    }

    /// The names of its Deployments.
    pub fn deployment_names(&self) -> Vec<&str> {
        let deployments = &self.spec.install.spec.deployments;
        deployments.iter().map(|deployment| deployment.name.as_str()).collect()
    }

    /// Returns true if OLM copied it from the namespace where it is installed (OperatorGroups that serve several namespaces).
    pub fn is_copied(&self) -> bool {
        self.metadata
            .labels
            .as_ref()
            .is_some_and(|labels| labels.contains_key("olm.copiedFrom"))
    }

    /// The digest of the bundle, if `olmkit` installed the CSV from a host and deleted Subscription and catalog
    /// afterwards.
    pub fn released(&self) -> Option<&str> {
        self.metadata
            .labels
            .as_ref()?
            .get("olmkit.dev/bundle-digest")
            .map(String::as_str)
    }

    /// The package, from the annotation `operatorframework.io/properties` that OLM writes when it installs from a catalog.
    pub fn package(&self) -> Option<String> {
        let text = self
            .metadata
            .annotations
            .as_ref()?
            .get("operatorframework.io/properties")?;
        let value: serde_json::Value = serde_json::from_str(text).ok()?;
        value.get("properties")?.as_array()?.iter().find_map(|property| {
            (property.get("type")?.as_str()? == "olm.package")
                .then(|| property.pointer("/value/packageName")?.as_str().map(str::to_owned))
                .flatten()
        })
    }
}
