//! Lists other contents of OLM's namespaces: a namespace is deleted with OLM only if it has no objects of other owners.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::Error;
use super::super::client::{Cluster, ObjectRef};
use super::super::json::text;
use super::super::kinds::{Kind, OLM_GROUP};
use super::super::observe;
use super::objects::{self, Settings};

/// Objects that Kubernetes and OpenShift create in every namespace.
const EVERYWHERE: &[(&str, &str)] = &[
    ("ConfigMap", "kube-root-ca.crt"),
    ("ConfigMap", "openshift-service-ca.crt"),
    ("ServiceAccount", "default"),
    ("ServiceAccount", "builder"),
    ("ServiceAccount", "deployer"),
    ("RoleBinding", "system:deployers"),
    ("RoleBinding", "system:image-builders"),
    ("RoleBinding", "system:image-pullers"),
];

/// Kinds that controllers write by themselves.
const DERIVED: &[&str] = &[
    "Event",
    "Endpoints",
    "EndpointSlice",
    "Lease",
    "ControllerRevision",
    "PodMetrics",
    "PackageManifest",
];

/// Prefixes of OLM's labels on its objects.
const LABELS: &[&str] = &["olm.", "operators.coreos.com/", "operatorframework.io/"];

/// An object in a namespace that neither Kubernetes nor OLM created, if any.
///
/// # Errors
/// [`Error::Request`]; with code 403 if the credentials cannot list everything in it.
pub async fn foreign(cluster: &Cluster, namespace: &str) -> Result<Option<ObjectRef>, Error> {
    let own = own(namespace);
    // Its absence would be waited for.
    let dead = observe::dead_api_services(cluster).await?;
    for kind in cluster.namespaced_kinds(&dead).await? {
        if DERIVED.contains(&kind.kind.as_str()) {
            continue;
        }
        let objects = cluster.list(kind.clone(), Some(namespace), None).await?;
        if let Some(found) = objects.iter().find(|object| !is_expected(&kind, object, &own)) {
            return Ok(Some(ObjectRef::namespaced(
                kind,
                namespace,
                text(found, "/metadata/name"),
            )));
        }
    }
    Ok(None)
}

/// Kinds and names of the objects that OLM's manifests create in their namespaces.
fn own(namespace: &str) -> BTreeSet<(String, String)> {
    let name = || namespace.to_owned();
    let settings = Settings {
        version: String::new(),
        namespace: name(),
        catalog_namespace: name(),
        operators_namespace: name(),
        olm_image: String::new(),
        opm_image: String::new(),
        util_image: String::new(),
        pull_policy: String::new(),
        packageserver_replicas: 1,
        catalog_image: None,
    };
    let objects = objects::all(&settings);
    let name = |object: &Value| {
        (
            text(object, "/kind").to_owned(),
            text(object, "/metadata/name").to_owned(),
        )
    };
    objects.iter().map(name).collect()
}

fn is_expected(kind: &Kind, object: &Value, own: &BTreeSet<(String, String)>) -> bool {
    let name = text(object, "/metadata/name");
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
    let by_olm = labels.is_some_and(|labels| {
        let mut keys = labels.keys();
        keys.any(|key| LABELS.iter().any(|begin| key.starts_with(begin)))
    });
    // It is deleted with its owner.
    let is_owned = object.pointer("/metadata/ownerReferences/0").is_some();
    let is_token = matches!(
        text(object, "/type"),
        "kubernetes.io/service-account-token" | "kubernetes.io/dockercfg"
    );
    // Objects that a dry run would have removed by now.
    let is_olms = kind.group == OLM_GROUP;
    is_olms
        || by_olm
        || is_owned
        || is_token
        || EVERYWHERE.contains(&(kind.kind.as_str(), name))
        || own.contains(&(kind.kind.clone(), name.to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::kinds;
    use super::*;

    #[test]
    fn only_what_kubernetes_and_olm_made_is_expected() {
        let own = own("olm");
        let expected = |kind: Kind, metadata: Value| is_expected(&kind, &json!({"metadata": metadata}), &own);
        assert!(expected(kinds::config_map(), json!({"name": "kube-root-ca.crt"})));
        assert!(expected(kinds::deployment(), json!({"name": "olm-operator"})));
        assert!(expected(
            kinds::secret(),
            json!({"name": "a", "labels": {"olm.managed": "true"}})
        ));
        assert!(expected(
            kinds::pod(),
            json!({"name": "a-1", "ownerReferences": [{"kind": "ReplicaSet"}]})
        ));
        assert!(!expected(kinds::config_map(), json!({"name": "settings"})));
        assert!(!expected(kinds::service_account(), json!({"name": "olm-operator"})));
        assert!(!expected(
            kinds::secret(),
            json!({"name": "kube-root-ca.crt", "labels": {"app": "olm"}})
        ));
    }
}
