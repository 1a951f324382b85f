//! What the operator may do, said once.
//!
//! [`grants`] is the source of `config/rbac`, of the permissions in the ClusterServiceVersion, of the operator's
//! self-check at start, of the table in the documentation, and of the test that nothing is missing and nothing is left
//! over. Group and plural come from the types, so a misspelt resource does not compile.
use std::borrow::Cow;

use k8s_openapi::api::{
    apps::v1::Deployment,
    coordination::v1::Lease,
    core::v1::{Pod, Service},
    events::v1::Event,
    policy::v1::PodDisruptionBudget,
};
use kube::Resource;

use crate::api::v1alpha1::Memcached;

/// What a request does, in the words of RBAC rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Makes an object. Server-side apply needs it too where the object does not exist yet.
    Create,
    /// Deletes one object.
    Delete,
    /// Reads one object.
    Get,
    /// Reads all objects of a kind.
    List,
    /// Changes parts of an object; server-side apply is a patch.
    Patch,
    /// Replaces an object.
    Update,
    /// Follows the changes of a kind.
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

/// Where a grant has to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// In every namespace that the operator watches: a Role in each of them, or a ClusterRole bound cluster-wide where
    /// it watches all.
    Watched,
    /// In the operator's own namespace, whatever it watches.
    Own,
}

/// One line of the table: these verbs on this resource, and what for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// API group; empty for the core group.
    pub group: Cow<'static, str>,
    /// Plural name of the resource.
    pub resource: Cow<'static, str>,
    /// Subresource, where the grant is about one.
    pub subresource: Option<&'static str>,
    /// What may be done, sorted.
    pub verbs: &'static [Verb],
    /// Where it may be done.
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

    /// The resource as RBAC rules name it: `memcacheds` or `memcacheds/status`.
    pub fn resource_path(&self) -> Cow<'static, str> {
        match self.subresource {
            Some(subresource) => format!("{}/{subresource}", self.resource).into(),
            None => self.resource.clone(),
        }
    }
}

/// Everything that the operator may do, in the order of groups and resources.
pub fn grants() -> Vec<Grant> {
    use Scope::{Own, Watched};
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
        Grant::of::<Lease>(
            Own,
            &[Create, Get, Update],
            "one of several replicas of the operator leads",
        ),
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
                seen.insert((grant.group.clone(), grant.resource_path())),
                "{} twice",
                grant.resource_path()
            );
            assert!(!grant.why.is_empty());
            order.push((grant.group.clone(), grant.resource_path()));
        }
        assert!(order.is_sorted(), "{order:?}");
    }
}
