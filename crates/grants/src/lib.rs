//! The permissions that an operator needs, as values.
//!
//! A [`Grant`] is one line of an operator's permission table: verbs on a resource, where, and the reason. RBAC rules, the
//! startup check and documentation are made from the same lines, so they cannot contradict each other.
//!
//! ```
//! use k8s_openapi::api::{apps::v1::Deployment, coordination::v1::Lease};
//! use kube_grants::{Grant, Scope};
//!
//! let table = [
//!     Grant::of::<Deployment>(Scope::Watched, ["create", "list", "patch", "watch"], "runs the servers"),
//!     Grant::of::<Lease>(Scope::Own, ["get", "update"], "one of several replicas leads").named(["greeter"]),
//! ];
//! assert_eq!(table[0].resource, "deployments");
//! ```
use std::borrow::Cow;

/// The namespaces of a grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// In every namespace the operator watches. Without OLM a ClusterRole bound in the whole cluster; in a bundle a
    /// namespaced permission, which OLM gives in the watched namespaces only.
    Watched,
    /// In the operator's own namespace, whatever it watches: leader election.
    Own,
    /// In the whole cluster, because the resource has no namespace.
    Cluster,
}

/// One line of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// API group. Empty for the core group.
    pub group: Cow<'static, str>,
    /// Plural name of the resource, with the subresource after a slash: `memcacheds/status`.
    pub resource: Cow<'static, str>,
    /// RBAC verbs.
    pub verbs: Vec<Cow<'static, str>>,
    /// Names of the only objects that are granted. Empty for all.
    pub resource_names: Vec<String>,
    /// The namespaces.
    pub scope: Scope,
    /// The reason: printed in documentation, and logged when the permission is missing.
    pub why: Cow<'static, str>,
}

impl Grant {
    /// A grant on the resource of a type. Group and plural come from the type, so a misspelt one does not compile.
    pub fn of<K: kube_core::Resource<DynamicType = ()>>(
        scope: Scope,
        verbs: impl IntoIterator<Item = &'static str>,
        why: &'static str,
    ) -> Self {
        Self {
            group: K::group(&()),
            resource: K::plural(&()),
            verbs: verbs.into_iter().map(Cow::Borrowed).collect(),
            resource_names: Vec::new(),
            scope,
            why: why.into(),
        }
    }

    /// The same grant on a subresource.
    #[must_use]
    pub fn on(mut self, subresource: &str) -> Self {
        self.resource = format!("{}/{subresource}", self.resource).into();
        self
    }

    /// The same grant on objects of these names only.
    #[must_use]
    pub fn named(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.resource_names = names.into_iter().map(Into::into).collect();
        self
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;

    use super::*;

    #[test]
    fn subresources_and_names_narrow_a_grant() {
        let grant = Grant::of::<Deployment>(Scope::Watched, ["patch"], "scales")
            .on("scale")
            .named(["web"]);
        assert_eq!(
            (grant.group.as_ref(), grant.resource.as_ref()),
            ("apps", "deployments/scale")
        );
        assert_eq!(grant.resource_names, ["web"]);
    }
}
