//! Whom a managed object belongs to.
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::{FIELD_MANAGER, observed::controller_of};

/// The owner of an object.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ownership {
    /// This Memcached, or none although the operator created it (the Memcached was deleted with `--cascade=orphan`).
    Ours,
    /// A deleted Memcached of the same name: the garbage collector will delete the object.
    EarlierMemcached,
    /// Another owner, with a description.
    Foreign(String),
}

pub(super) fn ownership(meta: &ObjectMeta, owner_uid: &str) -> Ownership {
    match controller_of(meta) {
        Some(owner) if owner.uid == owner_uid => Ownership::Ours,
        Some(owner) if is_memcached(owner) && Some(&owner.name) == meta.name.as_ref() => Ownership::EarlierMemcached,
        Some(owner) => Ownership::Foreign(format!("is controlled by {} {}", owner.kind, owner.name)),
        None if applied_by_us(meta) => Ownership::Ours,
        None => Ownership::Foreign("was not created by this operator".to_owned()),
    }
}

/// Returns true if the owner is a Memcached.
pub(super) fn is_memcached(owner: &OwnerReference) -> bool {
    // A UID has 36 bytes, but the API server takes any text in its place.
    let is_short = owner.uid.len() <= 64 && owner.name.len() <= 253 && owner.api_version.len() <= 64;
    is_short && owner.kind == "Memcached" && owner.api_version.starts_with("cache.example.com/")
}

/// Only the operator applies under its field manager's name.
pub(super) fn applied_by_us(meta: &ObjectMeta) -> bool {
    meta.managed_fields
        .iter()
        .flatten()
        .any(|entry| entry.manager.as_deref() == Some(FIELD_MANAGER) && entry.operation.as_deref() == Some("Apply"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const OWNER: &str = "11111111-2222";

    #[test]
    fn owners_are_recognised() {
        let meta = |value: Value| serde_json::from_value::<ObjectMeta>(value).unwrap();
        let owned = |kind: &str, version: &str, uid: &str| {
            meta(json!({ "name": "sample", "ownerReferences": [
                { "apiVersion": version, "kind": kind, "name": "sample", "uid": uid, "controller": true },
            ] }))
        };
        assert_eq!(
            ownership(&owned("Memcached", "cache.example.com/v1alpha1", OWNER), OWNER),
            Ownership::Ours
        );
        assert_eq!(
            ownership(&owned("Memcached", "cache.example.com/v1alpha1", "old"), OWNER),
            Ownership::EarlierMemcached
        );
        assert_eq!(
            ownership(&owned("Redis", "cache.example.com/v1", "x"), OWNER),
            Ownership::Foreign("is controlled by Redis sample".to_owned())
        );
        let by = |manager: &str, operation: &str| {
            meta(json!({ "name": "sample", "managedFields": [{ "manager": manager, "operation": operation }] }))
        };
        assert_eq!(ownership(&by(FIELD_MANAGER, "Apply"), OWNER), Ownership::Ours);
        for stranger in [
            by("kubectl", "Apply"),
            by(FIELD_MANAGER, "Update"),
            meta(json!({ "name": "sample" })),
        ] {
            assert!(matches!(ownership(&stranger, OWNER), Ownership::Foreign(_)));
        }
    }
}
