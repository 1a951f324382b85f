//! Custom resources of a package: those to delete while the operator runs, and those that outlive it.

use super::options::Options;
use super::scope::Scope;
use crate::base::error::Error;
use crate::base::object_ref::ObjectRef;
use crate::kube::client::Cluster;
use crate::kube::finalizers::{self, Operand, Rule};
use crate::kube::removal;

/// The custom resources to delete.
///
/// # Errors
/// [`Error::Request`].
pub async fn to_delete(cluster: &Cluster, scope: &Scope, options: &Options) -> Result<Vec<ObjectRef>, Error> {
    let mut found = Vec::new();
    for (name, crd) in &scope.crds {
        let mut objects = removal::instances_of(cluster, crd).await?;
        if !options.named_crds.contains(name) {
            objects.retain(|object| !scope.is_outside(object));
        }
        found.extend(objects);
    }
    if options.operands {
        for (name, crd) in &scope.operand_crds {
            let objects = removal::instances_of(cluster, crd).await?;
            found.extend(objects.into_iter().filter(|object| scope.is_served(name, object)));
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// The custom resources that will outlive the operator, with the rule for their finalizers.
///
/// # Errors
/// [`Error::Request`].
pub async fn to_release(cluster: &Cluster, scope: &Scope, options: &Options) -> Result<Vec<(Operand, Rule)>, Error> {
    let deleted = to_delete(cluster, scope, options).await?;
    let mut found = remaining(cluster, scope, options).await?;
    found.retain(|(operand, _)| deleted.binary_search(&operand.object).is_err());
    Ok(found)
}

/// The custom resources of the operator, except those that are deleted with their CRD.
///
/// # Errors
/// [`Error::Request`].
pub async fn remaining(cluster: &Cluster, scope: &Scope, options: &Options) -> Result<Vec<(Operand, Rule)>, Error> {
    let is_deleted = |operand: &Operand| {
        let kind = &operand.object.kind;
        let mut crds = scope.crds.iter();
        crds.any(|(_, crd)| crd.group == kind.group && crd.plural == kind.plural)
    };
    let mut found = all(cluster, scope, options).await?;
    found.retain(|(operand, _)| !is_deleted(operand));
    Ok(found)
}

/// The custom resources that the operator reconciles.
///
/// # Errors
/// [`Error::Request`].
pub async fn all(cluster: &Cluster, scope: &Scope, options: &Options) -> Result<Vec<(Operand, Rule)>, Error> {
    let mut found = Vec::new();
    for (name, crd) in &scope.operand_crds {
        let rule = scope.finalizer_rule(name, crd, &options.release_finalizers);
        let operands = finalizers::operands(cluster, crd).await?;
        let served = operands
            .into_iter()
            .filter(|operand| scope.is_served(name, &operand.object));
        found.extend(served.map(|operand| (operand, rule.clone())));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::kube::crd::CrdState;

    const CRD: &str = "memcacheds.cache.example.com";

    fn crd() -> CrdState {
        CrdState {
            group: "cache.example.com".into(),
            kind: "Memcached".into(),
            plural: "memcacheds".into(),
            namespaced: true,
            ..CrdState::default()
        }
    }

    fn scope(targets: Option<&[&str]>, owners_elsewhere: &[(&str, &str)]) -> Scope {
        let owned = |text: &&str| (*text).to_owned();
        let owners = owners_elsewhere.iter().map(|(crd, csv)| (owned(crd), owned(csv)));
        Scope {
            namespace: "shop".into(),
            targets: targets.map(|targets| targets.iter().map(owned).collect::<BTreeSet<_>>()),
            owners_elsewhere: owners.collect::<BTreeMap<_, _>>(),
            ..Scope::default()
        }
    }

    #[test]
    fn an_operator_serves_its_target_namespaces() {
        let object = |namespace: &str| ObjectRef::namespaced(crd().instances(), namespace, "one");
        let of_cluster = ObjectRef::cluster(crd().instances(), "one");
        let own = scope(Some(&["shop"]), &[(CRD, "other/cache.v1")]);
        assert!(own.is_served(CRD, &object("shop")) && !own.is_served(CRD, &object("other")));
        assert!(!own.is_served(CRD, &of_cluster), "another instance can serve it");
        let all = scope(Some(&[""]), &[]);
        assert!(all.is_served(CRD, &object("other")) && all.is_served(CRD, &of_cluster));
        let shared = scope(Some(&[""]), &[(CRD, "other/cache.v1")]);
        assert!(!shared.is_served(CRD, &object("other")));
        assert!(
            scope(None, &[]).is_served(CRD, &object("other")),
            "its OperatorGroup is deleted"
        );
        assert!(!scope(None, &[(CRD, "other/cache.v1")]).is_served(CRD, &object("other")));
    }

    #[test]
    fn another_operator_in_the_group_makes_the_owner_of_a_finalizer_uncertain() {
        let owns = |owners: &[(&str, &str)], named: &[String]| {
            let rule = scope(None, owners).finalizer_rule(CRD, &crd(), named);
            rule.owns("cache.example.com/finalizer")
        };
        assert!(owns(&[], &[]));
        assert!(owns(&[("things.other.example.com", "other/other.v1")], &[]));
        let rival = [("backups.cache.example.com", "other/backup.v1")];
        assert!(!owns(&rival, &[]));
        assert!(owns(&rival, &["cache.example.com/finalizer".to_owned()]));
        // The same operator in another namespace.
        assert!(owns(&[rival[0], (CRD, "other/cache.v1")], &[]));
    }
}
