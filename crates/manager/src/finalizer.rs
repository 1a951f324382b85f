//! Finalizers, which keep an object until the operator has cleaned up.
//!
//! ```no_run
//! # use k8s_openapi::api::core::v1::ConfigMap;
//! # use kube::{Api, ResourceExt};
//! use kube_manager::finalizer;
//!
//! # async fn reconcile(api: Api<ConfigMap>, object: ConfigMap) -> Result<(), kube::Error> {
//! const FINALIZER: &str = "shop.example.com/finalizer";
//! if object.metadata.deletion_timestamp.is_some() {
//!     // Delete resources outside the cluster here. Kubernetes deletes owned objects.
//!     finalizer::remove(&api, &object, FINALIZER).await?;
//! } else {
//!     finalizer::add(&api, &object, FINALIZER).await?;
//! }
//! # Ok(())
//! # }
//! ```
use std::fmt::Debug;

use kube::{
    Api, Resource, ResourceExt,
    api::{ObjectMeta, Patch, PatchParams},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Returns true if `object` has `finalizer`.
pub fn is_on(object: &impl ResourceExt, finalizer: &str) -> bool {
    object.finalizers().iter().any(|known| known == finalizer)
}

/// Adds `finalizer` to `object`. Returns the object as the API server has it then, which a cache can be told, or nothing if
/// `object` had it.
///
/// # Errors
/// When the request fails; with a conflict when the object has changed since it was read, or is another of the same name.
pub async fn add<K>(api: &Api<K>, object: &K, finalizer: &str) -> Result<Option<K>, kube::Error>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    set(api, object, finalizer, true).await
}

/// Removes `finalizer` from `object`. An object that is being deleted is removed with its last finalizer.
///
/// # Errors
/// As [`add`].
pub async fn remove<K>(api: &Api<K>, object: &K, finalizer: &str) -> Result<Option<K>, kube::Error>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    set(api, object, finalizer, false).await
}

async fn set<K>(api: &Api<K>, object: &K, finalizer: &str, wanted: bool) -> Result<Option<K>, kube::Error>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    if is_on(object, finalizer) == wanted {
        return Ok(None);
    }
    let patch = Patch::Merge(patch(object, finalizer, wanted));
    let written = api.patch(&object.name_any(), &PatchParams::default(), &patch).await?;
    Ok(Some(written))
}

/// A merge patch replaces the list as a whole, so it names the version of the object whose list it changes.
fn patch(object: &impl ResourceExt, finalizer: &str, wanted: bool) -> Value {
    let mut finalizers = object.finalizers().to_vec();
    finalizers.retain(|known| known != finalizer);
    if wanted {
        finalizers.push(finalizer.to_owned());
    }
    json!({ "metadata": {
        "resourceVersion": object.meta().resource_version,
        "finalizers": finalizers,
    } })
}

/// The merge patch that removes `finalizer` from an object that is being deleted. It needs no resource version: the API server
/// rejects it if another finalizer was removed.
pub(crate) fn without(finalizer: &str, metadata: &ObjectMeta) -> Value {
    let finalizers = metadata.finalizers.iter().flatten();
    let rest: Vec<&String> = finalizers.filter(|known| *known != finalizer).collect();
    json!({ "metadata": { "uid": metadata.uid, "finalizers": rest } })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    #[test]
    fn finalizers_of_others_stay() {
        let mut object = ConfigMap::default();
        object.metadata.resource_version = Some("7".to_owned());
        object.metadata.finalizers = Some(vec!["a/b".to_owned()]);
        assert!(!is_on(&object, "c/d"));
        let added = patch(&object, "c/d", true);
        let expected = json!({ "metadata": { "resourceVersion": "7", "finalizers": ["a/b", "c/d"] } });
        assert_eq!(added, expected);
        object.metadata.finalizers = Some(vec!["c/d".to_owned(), "a/b".to_owned()]);
        assert!(is_on(&object, "c/d"));
        assert_eq!(patch(&object, "c/d", false)["metadata"]["finalizers"], json!(["a/b"]));
    }
}
