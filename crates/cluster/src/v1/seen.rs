//! Snapshot of a ClusterExtension.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use olmkit::object::selector::selects;
use serde_json::Value;

use super::conditions::condition;
use super::objects::owned_by;
use crate::base::error::Error;
use crate::base::json::text;
use crate::base::kinds;
use crate::base::object_ref::ObjectRef;
use crate::kube::client::Cluster;
use crate::observe::observation::Observation;

/// A ClusterExtension and its related objects. Contains observations only, no conclusions.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ExtensionState {
    /// Its name.
    pub name: String,
    /// The ClusterExtension, if it exists.
    pub extension: Option<Value>,
    /// All ClusterCatalogs.
    pub catalogs: Vec<Value>,
    /// The CRDs that operator-controller created for it.
    pub crds: Vec<Value>,
    /// Its namespace, with the Deployments that operator-controller created for it, pods and events.
    pub place: Observation,
}

impl ExtensionState {
    /// Reads a ClusterExtension of the cluster.
    ///
    /// # Errors
    /// [`Error::Request`], [`Error::Unreadable`].
    pub async fn read(cluster: &Cluster, name: &str) -> Result<Self, Error> {
        let object = ObjectRef::cluster(kinds::cluster_extension(), name);
        let (extension, catalogs) =
            futures::try_join!(cluster.get(&object), cluster.list(kinds::cluster_catalog(), None, None),)?;
        Self::gather(cluster, name, extension, catalogs).await
    }

    /// Reads the related objects of a ClusterExtension.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(super) async fn gather(
        cluster: &Cluster,
        name: &str,
        extension: Option<Value>,
        catalogs: Vec<Value>,
    ) -> Result<Self, Error> {
        let of_extension = match &extension {
            Some(found) => namespace_of(cluster, found).await?,
            None => None,
        };
        let namespace = of_extension.unwrap_or_else(|| cluster.namespace.clone());
        let mut place = Observation::none(cluster);
        place.namespace.clone_from(&namespace);
        let selector = owned_by(name);
        let within = Some(namespace.as_str());
        let of_namespace = ObjectRef::cluster(kinds::namespace(), &namespace);
        let (found, crds, deployments, pods, events) = futures::try_join!(
            cluster.get(&of_namespace),
            cluster.list(kinds::custom_resource_definition(), None, Some(&selector)),
            cluster.list_as(kinds::deployment(), within, Some(&selector)),
            cluster.list_as(kinds::pod(), within, None),
            cluster.list_as::<Event>(kinds::event(), within, None),
        )?;
        place.namespace_phase = found.map(|found| text(&found, "/status/phase").to_owned());
        let deployments = deployments.into_iter();
        place.deployments = deployments.filter(|one| is_of(one, name, extension.as_ref())).collect();
        place.pods = pods;
        let is_warning = |event: &Event| event.type_.as_deref() == Some("Warning");
        place.events = events.into_iter().filter(is_warning).collect();
        Ok(Self {
            name: name.to_owned(),
            extension,
            catalogs,
            crds,
            place,
        })
    }

    /// A string in the ClusterExtension. Empty if it is absent.
    pub(super) fn text(&self, pointer: &str) -> &str {
        self.extension.as_ref().map_or("", |found| text(found, pointer))
    }

    /// The package.
    #[must_use]
    pub fn package(&self) -> &str {
        self.text("/spec/source/catalog/packageName")
    }

    /// Its namespace, if it is known.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        let is_known = !self.text("/spec/namespace").is_empty() || !self.place.deployments.is_empty();
        is_known.then_some(self.place.namespace.as_str())
    }

    /// Name and version of the installed bundle, if any.
    #[must_use]
    pub fn installed(&self) -> Option<(&str, &str)> {
        let name = self.text("/status/install/bundle/name");
        (!name.is_empty()).then(|| (name, self.text("/status/install/bundle/version")))
    }

    /// Image of the installed bundle, which only a condition's message contains.
    #[must_use]
    pub fn installed_image(&self) -> Option<&str> {
        let installed = condition(self.extension.as_ref()?, "Installed")?;
        let image = installed
            .message
            .strip_prefix("Installed bundle ")?
            .strip_suffix(" successfully")?;
        (installed.status == "True").then_some(image)
    }

    /// The catalogs that its selector takes.
    pub fn selected(&self) -> impl Iterator<Item = &Value> {
        let extension = self.extension.as_ref();
        let selector = extension.and_then(|found| found.pointer("/spec/source/catalog/selector"));
        self.catalogs.iter().filter(move |catalog| {
            let labels = catalog.pointer("/metadata/labels").and_then(Value::as_object);
            selects(selector, labels)
        })
    }

    /// The ClusterExtension as the objects of a cause name it.
    pub(super) fn object(&self) -> ObjectRef {
        ObjectRef::cluster(kinds::cluster_extension(), &self.name)
    }
}

/// The namespace of a ClusterExtension. From OLM v1 1.12 on, `spec.namespace` is optional: OLM v1 then derives a namespace
/// from the bundle and creates it, and no status field names it. `None` until the operator's Deployment is in it, and
/// for credentials that cannot list Deployments.
///
/// # Errors
/// [`Error::Request`].
pub(super) async fn namespace_of(cluster: &Cluster, extension: &Value) -> Result<Option<String>, Error> {
    let stated = text(extension, "/spec/namespace");
    if !stated.is_empty() {
        return Ok(Some(stated.to_owned()));
    }
    let name = text(extension, "/metadata/name");
    let selector = owned_by(name);
    match cluster
        .list_as::<Deployment>(kinds::deployment(), None, Some(&selector))
        .await
    {
        Ok(found) => {
            let mut own = found.into_iter().filter(|one| is_of(one, name, Some(extension)));
            Ok(own.next().and_then(|one| one.metadata.namespace))
        }
        Err(error) if error.code() == Some(403) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns true if OLM v1 made the Deployment for a ClusterExtension. The labels do not show this: tenants can set them in
/// their namespaces.
fn is_of(deployment: &Deployment, name: &str, extension: Option<&Value>) -> bool {
    let mut owners = deployment.metadata.owner_references.iter().flatten();
    owners.any(|owner| made_for(owner, name, extension))
}

/// Returns true if OLM v1 sets this owner for the objects of a ClusterExtension. With Helm, the owner is the ClusterExtension.
/// With Boxcutter, it is a ClusterObjectSet (before OLM v1 1.11 a ClusterExtensionRevision), whose name is that of the
/// ClusterExtension and a number. The garbage collector deletes objects that name an owner with another UID.
fn made_for(owner: &OwnerReference, name: &str, extension: Option<&Value>) -> bool {
    if !owner.api_version.starts_with("olm.operatorframework.io/") || owner.controller != Some(true) {
        return false;
    }
    match owner.kind.as_str() {
        "ClusterExtension" => {
            owner.name == name && extension.is_none_or(|found| text(found, "/metadata/uid") == owner.uid)
        }
        "ClusterObjectSet" | "ClusterExtensionRevision" => owner
            .name
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix('-'))
            .is_some_and(|number| number.parse::<u64>().is_ok()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_image_of_what_is_installed_is_in_a_message() {
        let seen = |status: &str, message: &str| ExtensionState {
            extension: Some(
                json!({"status": {"conditions": [{"type": "Installed", "status": status, "message": message}]}}),
            ),
            ..ExtensionState::default()
        };
        let installed = "Installed bundle registry.test/b@sha256:1 successfully";
        assert_eq!(
            seen("True", installed).installed_image(),
            Some("registry.test/b@sha256:1")
        );
        assert_eq!(seen("False", installed).installed_image(), None);
        assert_eq!(seen("True", "fine").installed_image(), None);
        assert_eq!(ExtensionState::default().installed_image(), None);
    }

    #[test]
    fn labels_do_not_show_who_made_an_object() {
        let extension = json!({"metadata": {"name": "shop", "uid": "1"}});
        let owner = |kind: &str, name: &str, uid: &str| OwnerReference {
            api_version: "olm.operatorframework.io/v1".into(),
            kind: kind.into(),
            name: name.into(),
            uid: uid.into(),
            controller: Some(true),
            block_owner_deletion: None,
        };
        let is_its = |owner: &OwnerReference| made_for(owner, "shop", Some(&extension));
        assert!(is_its(&owner("ClusterExtension", "shop", "1")));
        assert!(!is_its(&owner("ClusterExtension", "shop", "2")));
        assert!(made_for(&owner("ClusterExtension", "shop", "2"), "shop", None));
        assert!(is_its(&owner("ClusterObjectSet", "shop-12", "3")));
        assert!(is_its(&owner("ClusterExtensionRevision", "shop-1", "3")));
        assert!(!is_its(&owner("ClusterObjectSet", "shop-too-1", "3")));
        assert!(!is_its(&owner("ClusterCatalog", "shop", "1")));
        let mut other = owner("ClusterExtension", "shop", "1");
        other.api_version = "apps/v1".into();
        assert!(!is_its(&other));
        other = owner("ClusterExtension", "shop", "1");
        other.controller = None;
        assert!(!is_its(&other));
    }
}
