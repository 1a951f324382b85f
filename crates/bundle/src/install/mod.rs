//! The objects that the Operator Lifecycle Manager creates from a bundle: service accounts, roles and bindings, CRDs,
//! Deployments, webhooks with Services and certificates.
//!
//! [`unpack`](super::unpack) and OLM v1's renderer need different subsets of these objects, with different details: see
//! [`Style`].

mod certificates;
mod customize;
mod deployments;
mod names;
mod permissions;
mod webhooks;

use serde_json::{Map, Value, json};

pub use certificates::CertificateProvider;
pub use names::{hash, object_name};
pub use webhooks::ConversionError;

use super::kinds;

/// Consumer of the objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Exactly the objects that operator-controller applies: roles are called `CSV-ACCOUNT-HASH`, pods get all
    /// annotations of the ClusterServiceVersion, a webhook without a port gets 0, which API servers reject.
    OlmV1,
    /// Objects for kubectl: roles are called `OPERATOR-ACCOUNT`, with the suffix `-watched` if a permission was
    /// extended to the cluster. Init containers get certificates too.
    Plain,
}

/// A bundle whose objects are to be created, with the options.
#[derive(Debug, Clone, Copy)]
pub struct Plan<'a> {
    /// The ClusterServiceVersion as its Go type reads it: known fields only, no nulls.
    pub csv: &'a Value,
    /// The operator's namespace.
    pub namespace: &'a str,
    /// The namespaces it watches. Empty for all.
    pub watched: &'a [String],
    /// Consumer of the objects.
    pub style: Style,
    /// Provider of the webhooks' certificates.
    pub certificates: Option<CertificateProvider>,
    /// The user's changes to Deployments: OLM v1's `deploymentConfig`.
    pub config: Option<&'a Value>,
}

impl<'a> Plan<'a> {
    /// The list at a JSON pointer of the ClusterServiceVersion.
    fn list(&self, pointer: &str) -> &'a [Value] {
        self.csv
            .pointer(pointer)
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    fn csv_name(&self) -> &'a str {
        self.csv
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    fn deployment_specs(&self) -> &'a [Value] {
        self.list("/spec/install/spec/deployments")
    }

    fn webhook_definitions(&self) -> &'a [Value] {
        self.list("/spec/webhookdefinitions")
    }

    /// An object of the bundle in its namespace. `namespaced` is true if its kind has one.
    #[must_use]
    pub fn placed(&self, object: &Value, namespaced: bool) -> Value {
        let mut object = object.clone();
        if namespaced {
            use olmkit_base::object::SetAt as _;
            object.set_at(&["metadata", "namespace"], self.namespace.into());
        }
        object
    }
}

/// Returns true if objects of a kind live in a namespace, as OLM v1 has it: operator-registry takes `VerticalPodAutoscaler` for
/// cluster-scoped, which it is not.
#[must_use]
pub fn is_namespaced_for_olm_v1(kind: &str) -> bool {
    kind != "VerticalPodAutoscaler" && is_namespaced(kind)
}

/// Returns true if objects of a kind live in a namespace.
#[must_use]
pub fn is_namespaced(kind: &str) -> bool {
    kind != "Namespace" && kinds::find(kind).is_none_or(|found| found.scope == kinds::Scope::Namespaced)
}

/// The string in a field. Empty if there is none.
fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The items of a list that becomes one where there is none.
fn items_mut<'v>(value: &'v mut Value, field: &str) -> Option<&'v mut Vec<Value>> {
    let fields = value.as_object_mut()?;
    fields.entry(field).or_insert_with(|| json!([])).as_array_mut()
}

/// The fields of an object that becomes one where there is none.
fn fields_mut<'v>(value: &'v mut Value, field: &str) -> Option<&'v mut Map<String, Value>> {
    let fields = value.as_object_mut()?;
    fields.entry(field).or_insert_with(|| json!({})).as_object_mut()
}
