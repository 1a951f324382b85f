//! The settings of a spec that consist of several values.
use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Affinity, Container, LocalObjectReference, Toleration, TopologySpreadConstraint},
    apimachinery::pkg::{api::resource::Quantity, util::intstr::IntOrString},
};
use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The kind that runs the servers.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Workload {
    /// Pods and their names change when servers are replaced.
    #[default]
    Deployment,
    /// Each server has a DNS name that stays.
    StatefulSet,
}

impl Workload {
    /// The other one.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Deployment => Self::StatefulSet,
            Self::StatefulSet => Self::Deployment,
        }
    }
}

/// A change that a server survives with its items.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WarmCache {
    /// A graceful restart of the container, in the same pod.
    WarmRestart,
    /// A change of the memory.
    ResizeInPlace,
}

/// The certificate of the servers. Clients must use TLS.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tls {
    /// Name of a Secret of type kubernetes.io/tls, as cert-manager writes it. The servers load a changed certificate without a restart.
    #[schemars(length(min = 1, max = 253))]
    pub secret_name: String,

    /// If true, clients need a certificate of the authority in the Secret's key ca.crt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub verify_clients: bool,
}

/// Limits the servers that node maintenance stops at the same time.
#[derive(JsonSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DisruptionBudget {
    /// If false, there is no PodDisruptionBudget.
    #[serde(default = "yes")]
    pub enabled: bool,

    /// Number or percentage of the servers that may be unavailable. 0 blocks node maintenance. The default is 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "number_or_percentage")]
    pub max_unavailable: Option<IntOrString>,
}

fn yes() -> bool {
    true
}

fn number_or_percentage(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "x-kubernetes-int-or-string": true, "minimum": 0, "pattern": "^(100|[1-9]?[0-9])%$" })
}

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

/// Fields of the servers' pods. A change restarts the servers, one at a time.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodTemplate {
    /// Additional labels. The operator's labels cannot be changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,

    /// Annotations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,

    /// Labels of the nodes that may run servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<BTreeMap<String, String>>,

    /// Taints of nodes that servers tolerate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerations: Option<Vec<Toleration>>,

    /// Replaces the default affinity, which prefers nodes with fewer servers of the Memcached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,

    /// Replaces the default constraint, which prefers zones with fewer servers of the Memcached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology_spread_constraints: Option<Vec<TopologySpreadConstraint>>,

    /// Priority class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority_class_name: Option<String>,

    /// Secrets with credentials for the image's registry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_pull_secrets: Option<Vec<LocalObjectReference>>,

    /// Service account. Its token is not mounted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,

    /// Further containers of the pods, such as an exporter. The name `memcached` is the operator's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "sidecars")]
    pub sidecars: Option<Vec<Container>>,
}

/// Containers as Kubernetes defines them, without the descriptions, which would double the size of the CustomResourceDefinition.
fn sidecars(_: &mut SchemaGenerator) -> Schema {
    let settings = SchemaSettings::openapi3().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<Vec<Container>>();
    schema.remove("title");
    if let Some(items) = schema.get_mut("items") {
        without_descriptions(items);
    }
    schema.insert("maxItems".to_owned(), 8.into());
    let rule = json!([{
        "rule": "self.all(sidecar, sidecar.name != 'memcached')",
        "message": "sidecars must not have the name memcached, which the operator uses",
    }]);
    schema.insert("x-kubernetes-validations".to_owned(), rule);
    schema
}

/// Removes descriptions, but no property of this name.
fn without_descriptions(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            map.retain(|key, value| key != "description" || !value.is_string());
            map.values_mut().for_each(without_descriptions);
        }
        Value::Array(list) => list.iter_mut().for_each(without_descriptions),
        _ => {}
    }
}
