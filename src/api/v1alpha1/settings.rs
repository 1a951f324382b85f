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
    /// Pod names change when servers are replaced.
    #[default]
    Deployment,
    /// Each server has a stable DNS name.
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

/// Kind of change that does not empty the servers.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WarmCache {
    /// Graceful container restarts in the same pod keep all items.
    WarmRestart,
    /// Memory changes keep all items.
    ResizeInPlace,
}

/// TLS settings of the servers. Clients must use TLS.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tls {
    /// Name of a Secret of type kubernetes.io/tls, as created by cert-manager. The servers reload a renewed certificate without a restart.
    #[schemars(length(min = 1, max = 253))]
    pub secret_name: String,

    /// If true, clients must present a certificate signed by the CA in the Secret's key ca.crt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub verify_clients: bool,
}

/// Limits the number of servers that voluntary disruptions stop at the same time.
#[derive(JsonSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DisruptionBudget {
    /// If true, the operator creates a PodDisruptionBudget. Defaults to true.
    #[serde(default = "yes")]
    pub enabled: bool,

    /// Number or percentage of servers that can be unavailable. 0 blocks node drains. Defaults to 1.
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
    /// Maximum amount of compute resources allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "quantities")]
    pub limits: Option<BTreeMap<String, Quantity>>,

    /// Minimum amount of compute resources required.
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
    /// Labels to add to the pods. Labels that the operator sets cannot be overridden.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,

    /// Annotations to add to the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,

    /// Node labels that must match for a server to be scheduled on a node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<BTreeMap<String, String>>,

    /// Tolerations of the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerations: Option<Vec<Toleration>>,

    /// Scheduling constraints of the pods. Replaces the default affinity, which prefers nodes with fewer servers of the same Memcached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,

    /// Topology spread constraints of the pods. Replaces the default constraint, which prefers zones with fewer servers of the same
    /// Memcached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology_spread_constraints: Option<Vec<TopologySpreadConstraint>>,

    /// Name of the pods' PriorityClass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority_class_name: Option<String>,

    /// Secrets in the same namespace to use for pulling images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_pull_secrets: Option<Vec<LocalObjectReference>>,

    /// Name of the ServiceAccount to run the pods with. Its token is not mounted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,

    /// Additional containers, such as a metrics exporter. The operator uses the name `memcached`.
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
