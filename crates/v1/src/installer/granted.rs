//! Permissions in the roles and bindings of a bundle.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize as _;
use serde_json::Value;

use super::single::size;
use super::{RBAC, resource, rule, text};
use crate::list;
use olmkit_base::limits;
use olmkit_project::rbac::PolicyRule;

/// A role of a bundle with too many permissions to be compared one by one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the rules of {kind} {name:?} are too many: written one by one, with those of the bundle's other roles, they are larger than \
     {}; name fewer verbs, resources or resourceNames, or \"*\"",
    limits::INSTALLER_RIGHTS.shown()
)]
pub struct TooManyRights {
    /// Role or ClusterRole.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// The API server's requirement for writing a role or a binding: all permissions in it, or the permission to grant
/// them.
pub(super) struct Granted<'o> {
    /// Roles by kind, namespace and name; ClusterRoles are in none.
    roles: BTreeMap<(&'o str, &'o str, &'o str), &'o Value>,
    /// The roles whose rules a namespace, or the cluster, has already: many bindings may name one role.
    known: BTreeSet<(&'o str, (&'o str, &'o str, &'o str))>,
    /// Remaining size for the expanded rules.
    left: u64,
}

impl<'o> Granted<'o> {
    pub(super) fn new(objects: &'o [Value]) -> Self {
        let mut roles = BTreeMap::new();
        for object in objects {
            roles.entry(key(object)).or_insert(object);
        }
        Self {
            roles,
            known: BTreeSet::new(),
            left: limits::INSTALLER_RIGHTS.get(),
        }
    }

    /// The permissions that a role or a binding grants in a namespace. An empty one means the cluster.
    pub(super) fn by(&mut self, object: &'o Value, namespace: &'o str) -> Result<Vec<PolicyRule>, TooManyRights> {
        let name = text(object, "/metadata/name");
        let kind = text(object, "/kind");
        if kind == "ClusterRole" && is_aggregated(object) {
            // Its rules are aggregated from other roles and can be anything.
            return Ok(vec![rule(RBAC, "clusterroles", &["escalate"], [name])]);
        }
        if ["Role", "ClusterRole"].contains(&kind) {
            return self.rules(key(object), object, namespace);
        }
        let (of_kind, role) = (text(object, "/roleRef/kind"), text(object, "/roleRef/name"));
        let near = match of_kind {
            "ClusterRole" => "",
            _ => text(object, "/metadata/namespace"),
        };
        let key = (of_kind, near, role);
        match self.roles.get(&key).copied() {
            Some(found) if !is_aggregated(found) => self.rules(key, found, namespace),
            // It is defined elsewhere, with unknown rules.
            _ => Ok(vec![rule(RBAC, &resource(of_kind), &["bind"], [role])]),
        }
    }

    fn rules(
        &mut self,
        key: (&'o str, &'o str, &'o str),
        role: &Value,
        namespace: &'o str,
    ) -> Result<Vec<PolicyRule>, TooManyRights> {
        if !self.known.insert((namespace, key)) {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        for rule in list(role, "/rules") {
            let Ok(rule) = PolicyRule::deserialize(rule) else {
                continue;
            };
            let (kind, _, name) = key;
            self.left = self.left.checked_sub(size(&rule)).ok_or_else(|| TooManyRights {
                kind: kind.to_owned(),
                name: name.to_owned(),
            })?;
            found.push(rule);
        }
        Ok(found)
    }
}

fn key(role: &Value) -> (&str, &str, &str) {
    let kind = text(role, "/kind");
    let namespace = match kind {
        "ClusterRole" => "",
        _ => text(role, "/metadata/namespace"),
    };
    (kind, namespace, text(role, "/metadata/name"))
}

fn is_aggregated(role: &Value) -> bool {
    role.get("aggregationRule").is_some_and(|rule| !rule.is_null())
}
