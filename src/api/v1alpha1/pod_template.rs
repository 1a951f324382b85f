//! Fields of the servers' pods that belong to users.
use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Affinity, Container, LocalObjectReference, Toleration, TopologySpreadConstraint};
use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

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
