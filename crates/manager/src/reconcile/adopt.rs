//! The adoption of children that have no owner.
use kube::{
    Api,
    api::{DynamicObject, ListParams},
};

use super::{Error, Object, shared::Shared, store::Child};

/// Fails if `child` would get a new owner, and this owner is being deleted.
///
/// After `kubectl delete --cascade=orphan`, the garbage collector removes the owner from the children. If a child's event arrives before the
/// owner's, the owner in the cache still exists. An apply would make it the owner again, and the garbage collector would delete the child
/// with it. Kubernetes' controllers read the owner before an adoption for the same reason.
pub(super) async fn check<K: Object>(shared: &Shared<K>, owner: &K, child: Option<&Child>) -> Result<(), Error> {
    let uid = owner.meta().uid.as_deref();
    let is_own = |child: &Child| child.owner.as_ref().is_some_and(|owner| owner.has(uid));
    // A cleanup must not wait for its own end.
    if child.is_none_or(is_own) || owner.meta().deletion_timestamp.is_some() {
        return Ok(());
    }
    let api: Api<DynamicObject> = match owner.meta().namespace.as_deref() {
        Some(namespace) => Api::namespaced_with(shared.client.clone(), namespace, &shared.resource),
        None => Api::all_with(shared.client.clone(), &shared.resource),
    };
    // The operator may list its objects, but perhaps not get them.
    let name = owner.meta().name.as_deref().unwrap_or_default();
    let params = ListParams::default().fields(&format!("metadata.name={name}"));
    let found = api.list_metadata(&params).await;
    let found = found.map_err(|error| Error::request(format!("read {} {name}", shared.resource.kind), error))?;
    let exists = |meta: &kube::core::ObjectMeta| meta.uid.as_deref() == uid && meta.deletion_timestamp.is_none();
    match found.items.iter().any(|found| exists(&found.metadata)) {
        true => Ok(()),
        false => Err(Error::waiting("Deleted", "the object was deleted")),
    }
}
