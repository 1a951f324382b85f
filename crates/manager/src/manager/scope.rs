//! Kinds with namespaces and without.
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube::{Api, Client, Resource};

use crate::namespaces::Namespaces;

mod sealed {
    pub trait Sealed {}
    impl Sealed for k8s_openapi::NamespaceResourceScope {}
    impl Sealed for k8s_openapi::ClusterResourceScope {}
}

/// True if objects of a kind have a namespace. Implemented for both scopes of Kubernetes.
pub trait Scope: sealed::Sealed + Sized {
    /// True if they have one.
    const NAMESPACED: bool;

    /// The scopes to watch: each of `namespaces`, or `None` for one watch of the cluster.
    fn scopes(namespaces: &Namespaces) -> Vec<Option<String>>;

    /// The API for one of [`scopes`](Self::scopes).
    fn api<K: Resource<DynamicType = (), Scope = Self>>(client: Client, scope: Option<&str>) -> Api<K>;
}

impl Scope for NamespaceResourceScope {
    const NAMESPACED: bool = true;

    fn scopes(namespaces: &Namespaces) -> Vec<Option<String>> {
        namespaces.scopes()
    }

    fn api<K: Resource<DynamicType = (), Scope = Self>>(client: Client, scope: Option<&str>) -> Api<K> {
        match scope {
            None => Api::all(client),
            Some(namespace) => Api::namespaced(client, namespace),
        }
    }
}

impl Scope for ClusterResourceScope {
    const NAMESPACED: bool = false;

    fn scopes(_: &Namespaces) -> Vec<Option<String>> {
        vec![None]
    }

    fn api<K: Resource<DynamicType = (), Scope = Self>>(client: Client, _: Option<&str>) -> Api<K> {
        Api::all(client)
    }
}
