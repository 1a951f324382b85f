//! From a permission table to Role, ClusterRole, bindings and the permissions of a ClusterServiceVersion.
//!
//! A [`Grant`] is one line of an operator's table: these verbs on this resource, there, because of that. Everything that
//! carries permissions is rendered from the same lines, so they cannot drift apart.
//!
//! ```
//! use k8s_openapi::api::apps::v1::Deployment;
//! use olmkit_project::rbac::{Grant, Scope, rules};
//!
//! let table = [
//!     Grant::of::<Deployment>(Scope::Watched, ["get", "list", "watch"], "the operand runs as a Deployment"),
//!     Grant::of::<Deployment>(Scope::Watched, ["create", "patch"], "and is applied"),
//! ];
//! let rules = rules(&table, |scope| scope == Scope::Watched);
//! assert_eq!(rules.len(), 1);
//! assert_eq!(rules[0].verbs, ["create", "get", "list", "patch", "watch"]);
//! ```

mod merge;
mod objects;

pub use kube_grants::{Grant, Scope};
pub use merge::merge;
pub use objects::{Account, Labels, binding, cluster_binding, cluster_role, role, user_roles};
use serde::{Deserialize, Serialize};

/// A rule of a Role or ClusterRole.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicyRule {
    /// API groups. Empty for the core group.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub api_groups: Vec<String>,
    /// Paths outside of resources, such as `/metrics`.
    #[serde(rename = "nonResourceURLs", skip_serializing_if = "Vec::is_empty")]
    pub non_resource_urls: Vec<String>,
    /// Names of objects. Empty for all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
    /// Resources and subresources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// Allowed verbs.
    pub verbs: Vec<String>,
}

/// The rules for the grants in the requested scope, merged and sorted. See [`merge`].
pub fn rules(grants: &[Grant], in_scope: impl Fn(Scope) -> bool) -> Vec<PolicyRule> {
    merge(
        grants
            .iter()
            .filter(|grant| in_scope(grant.scope))
            .map(|grant| PolicyRule {
                api_groups: vec![grant.group.to_string()],
                resources: vec![grant.resource.to_string()],
                resource_names: grant.resource_names.clone(),
                verbs: grant.verbs.iter().map(ToString::to_string).collect(),
                non_resource_urls: Vec::new(),
            })
            .collect(),
    )
}
