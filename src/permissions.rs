//! The permissions of the operator.
//!
//! [`grants`] is the source of `config/rbac`, of the permissions in the ClusterServiceVersion, of the permission check at
//! start, and of the test that no permission is missing and none is unused. Group and plural come from the types, so a misspelt resource does not compile.
use std::borrow::Cow;

use k8s_openapi::api::{
    apps::v1::Deployment,
    authentication::v1::TokenReview,
    authorization::v1::SubjectAccessReview,
    coordination::v1::Lease,
    core::v1::{Pod, Service},
    events::v1::Event,
    policy::v1::PodDisruptionBudget,
};
use kube::Resource;

use crate::api::v1alpha1::Memcached;

/// An RBAC verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Creates an object. Server-side apply also needs it if the object does not exist.
    Create,
    /// Deletes one object.
    Delete,
    /// Reads one object.
    Get,
    /// Lists the objects of a kind.
    List,
    /// Patches an object; server-side apply is a patch.
    Patch,
    /// Replaces an object.
    Update,
    /// Watches the objects of a kind.
    Watch,
}

impl Verb {
    /// The verb as an RBAC rule spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Delete => "delete",
            Self::Get => "get",
            Self::List => "list",
            Self::Patch => "patch",
            Self::Update => "update",
            Self::Watch => "watch",
        }
    }
}

/// The namespaces of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// In every namespace that the operator watches: a Role in each of them, or a ClusterRole bound cluster-wide where
    /// it watches all.
    Watched,
    /// The operator's own namespace.
    Own,
    /// The cluster, because the resource has no namespace.
    Cluster,
}

/// A row of the table: verbs on a resource, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// API group; empty for the core group.
    pub group: Cow<'static, str>,
    /// Plural name of the resource.
    pub resource: Cow<'static, str>,
    /// Subresource, if any.
    pub subresource: Option<&'static str>,
    /// Names of the objects; empty for all.
    pub names: &'static [&'static str],
    /// Verbs, sorted.
    pub verbs: &'static [Verb],
    /// Namespaces.
    pub scope: Scope,
    /// What the operator needs it for: printed in the documentation and when the grant is missing.
    pub why: &'static str,
}

impl Grant {
    fn of<K: Resource<DynamicType = ()>>(scope: Scope, verbs: &'static [Verb], why: &'static str) -> Self {
        Self {
            group: K::group(&()),
            resource: K::plural(&()),
            subresource: None,
            names: &[],
            verbs,
            scope,
            why,
        }
    }

    fn on(self, subresource: &'static str) -> Self {
        Self {
            subresource: Some(subresource),
            ..self
        }
    }

    fn named(self, names: &'static [&'static str]) -> Self {
        Self { names, ..self }
    }

    /// The resource as RBAC rules name it: `memcacheds` or `memcacheds/status`.
    pub fn resource_path(&self) -> Cow<'static, str> {
        match self.subresource {
            Some(subresource) => format!("{}/{subresource}", self.resource).into(),
            None => self.resource.clone(),
        }
    }
}

/// Name of the Lease, unless a flag sets another one: then the Role has to name that.
pub const LEASE: &str = "memcached-operator.cache.example.com";

/// All permissions of the operator, sorted by group and resource.
pub fn grants() -> Vec<Grant> {
    use Scope::{Cluster, Own, Watched};
    use Verb::{Create, Delete, Get, List, Patch, Update, Watch};
    vec![
        Grant::of::<Pod>(Watched, &[List, Watch], "status.nodes names the pods"),
        Grant::of::<Service>(
            Watched,
            &[Create, Delete, Get, List, Patch, Watch],
            "each Memcached has a headless Service; to set its owner back needs the right to delete it where the \
             cluster enforces owner reference permissions",
        ),
        Grant::of::<Deployment>(
            Watched,
            &[Create, Delete, Get, List, Patch, Watch],
            "each Memcached has a Deployment that runs its servers; to set its owner back needs the right to delete it \
             where the cluster enforces owner reference permissions",
        ),
        Grant::of::<TokenReview>(Cluster, &[Create], "metrics: whose token a scraper sends"),
        Grant::of::<SubjectAccessReview>(Cluster, &[Create], "metrics: whether that account may get them"),
        Grant::of::<Memcached>(
            Watched,
            &[List, Patch, Watch],
            "the objects themselves; patched only to set and remove the finalizer",
        ),
        Grant::of::<Memcached>(
            Watched,
            &[Update],
            "owner references that block deletion need it where the cluster enforces owner reference permissions",
        )
        .on("finalizers"),
        Grant::of::<Memcached>(Watched, &[Patch], "the status is written by server-side apply").on("status"),
        Grant::of::<Lease>(Own, &[Create], "the first replica of the operator makes the Lease"),
        Grant::of::<Lease>(Own, &[Get, Update], "one of several replicas of the operator leads").named(&[LEASE]),
        Grant::of::<Event>(
            Watched,
            &[Create, Patch],
            "events about creation, resizing, failure and deletion; a repeated event is patched",
        ),
        Grant::of::<PodDisruptionBudget>(
            Watched,
            &[Create, Delete, Get, List, Patch, Watch],
            "a Memcached of more than one server has a budget, which goes when it shrinks to one",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_resource_and_its_verbs_are_listed_once_and_sorted() {
        let mut seen = BTreeSet::new();
        let mut order = Vec::new();
        for grant in grants() {
            assert!(grant.verbs.is_sorted(), "{}: verbs not sorted", grant.resource_path());
            assert!(
                seen.insert((grant.group.clone(), grant.resource_path(), grant.names)),
                "{} twice",
                grant.resource_path()
            );
            assert!(!grant.why.is_empty());
            order.push((grant.group.clone(), grant.resource_path()));
        }
        assert!(order.is_sorted(), "{order:?}");
    }
}
