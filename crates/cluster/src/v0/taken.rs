//! Names that a command needs and objects of other owners have.

use super::serve::place::ServeFrom;
use super::serve::pod;
use crate::base::cause::{self, Cause};
use crate::base::error::Error;
use crate::base::json::text;
use crate::base::object_ref::ObjectRef;
use crate::base::{kinds, names};
use crate::kube::client::Cluster;
use crate::kube::ownership;

/// Objects with another owner whose name the command needs for its catalog or its Subscription, each as a cause.
///
/// # Errors
/// [`Error::Request`].
pub async fn taken(
    cluster: &Cluster,
    package: &str,
    subscription: &str,
    place: &ServeFrom,
) -> Result<Vec<Cause>, Error> {
    let namespace = cluster.namespace.as_str();
    let labels = names::labels(package);
    let source = names::catalog_source(package);
    let mut wanted = vec![ObjectRef::namespaced(kinds::catalog_source(), namespace, &source)];
    if matches!(place, ServeFrom::Pod(_)) {
        let name = pod::service_name(package);
        for kind in [kinds::config_map(), kinds::service(), kinds::deployment()] {
            wanted.push(ObjectRef::namespaced(kind, namespace, &name));
        }
    }
    let mut causes = Vec::new();
    for object in wanted {
        if let Some(found) = cluster.get(&object).await?
            && !ownership::is_ours(&found, &labels)
        {
            causes.push(cause::name_taken(object, &ownership::author(&found)));
        }
    }
    // A Subscription to the package is checked elsewhere, regardless of its creator.
    let object = ObjectRef::namespaced(kinds::subscription(), namespace, subscription);
    if let Some(found) = cluster.get(&object).await?
        && text(&found, "/spec/name") != package
    {
        causes.push(cause::name_taken(object, &ownership::author(&found)));
    }
    Ok(causes)
}
