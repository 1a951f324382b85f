//! Checks of an installation through OLM v1 before anything is changed or pushed.

use olmkit::olmv1::{self, Gates, Options, RenderError};
use olmkit::validate::olm_v1::upgrade_findings;
use serde_json::Value;

use super::objects::{METADATA_NAME, catalog_name};
use super::publish::Loaded;
use super::seen::ExtensionState;
use crate::base::cause::{self, Cause, Code};
use crate::base::error::Error;
use crate::base::install_mode::InstallMode;
use crate::base::json::text;
use crate::base::object_ref::ObjectRef;
use crate::base::{kinds, names};
use crate::kube::client::Cluster;
use crate::kube::ownership;

/// The definitions of OLM v1.
pub(super) const EXTENSIONS: &str = "clusterextensions.olm.operatorframework.io";
pub(super) const CATALOGS: &str = "clustercatalogs.olm.operatorframework.io";

/// OLM v1 APIs in the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Served {
    pub extensions: bool,
    pub catalogs: bool,
    /// True if a ClusterExtension can have `spec.config`: the experimental manifests.
    pub config: bool,
}

impl Served {
    /// Reads the two definitions.
    ///
    /// # Errors
    /// [`Error::Request`].
    pub async fn read(cluster: &Cluster) -> Result<Self, Error> {
        let definition = |name: &'static str| async move {
            cluster
                .get(&ObjectRef::cluster(kinds::custom_resource_definition(), name))
                .await
        };
        let (extensions, catalogs) = futures::try_join!(definition(EXTENSIONS), definition(CATALOGS))?;
        let versions = extensions
            .as_ref()
            .and_then(|found| found.pointer("/spec/versions")?.as_array());
        let has_config = |version: &Value| {
            let config = "/schema/openAPIV3Schema/properties/spec/properties/config";
            version.pointer(config).is_some()
        };
        Ok(Self {
            config: versions.is_some_and(|versions| versions.iter().any(has_config)),
            extensions: extensions.is_some(),
            catalogs: catalogs.is_some(),
        })
    }

    /// The missing part of OLM v1.
    pub fn missing(self) -> Option<Cause> {
        let missing: Vec<&str> = [(self.extensions, EXTENSIONS), (self.catalogs, CATALOGS)]
            .into_iter()
            .filter_map(|(is_there, name)| (!is_there).then_some(name))
            .collect();
        (!missing.is_empty()).then(|| {
            Cause::lasting(
                Code::OlmNotInstalled,
                format!("OLM v1 is not installed in this cluster: it does not define {}", missing.join(", ")),
                "install operator-controller and catalogd (https://operator-framework.github.io/operator-controller/getting-started/olmv1_getting_started/), or install through OLM v0, without --olm v1",
            )
        })
    }
}

/// The namespace of an installation.
pub(super) fn namespace(seen: &ExtensionState) -> Option<Cause> {
    let name = &seen.place.namespace;
    let object = ObjectRef::cluster(kinds::namespace(), name);
    match seen.place.namespace_phase.as_deref() {
        None => Some(
            Cause::lasting(
                Code::NamespaceMissing,
                "does not exist, and OLM v1 does not create it",
                format!("kubectl create namespace {}", names::word(name)),
            )
            .on(object),
        ),
        Some("Terminating") => Some(
            Cause::lasting(
                Code::NamespaceTerminating,
                "is being deleted; nothing can be created in it",
                "wait until it is deleted and create it again, or choose another namespace with -n",
            )
            .on(object),
        ),
        Some(_) => None,
    }
}

/// A ClusterExtension that does not install into the given namespace. `way_out` is the remedy if `-n` does not help.
pub(super) fn other_namespace(seen: &ExtensionState, wanted: &str, way_out: &str) -> Option<Cause> {
    let (said, remedy) = match seen.text("/spec/namespace") {
        // OLM v1 rejects a namespace that is added later.
        "" => (
            "has no spec.namespace: OLM v1 chooses its namespace, which cannot be changed".to_owned(),
            way_out.to_owned(),
        ),
        at if at == wanted => return None,
        at => (
            format!("installs into namespace {at}, which cannot be changed"),
            format!("pass -n {}, or {way_out}", names::word(at)),
        ),
    };
    Some(Cause::lasting(Code::OtherVersionInstalled, said, remedy).on(seen.object()))
}

/// `spec.config.inline` for an install mode. Null where none is needed.
///
/// # Errors
/// The cause for a mode that OLM v1 or this cluster does not support.
pub(super) fn config(mode: Option<&InstallMode>, namespace: &str, served: Served) -> Result<Value, Cause> {
    let watched = match mode {
        None | Some(InstallMode::AllNamespaces) => return Ok(Value::Null),
        Some(InstallMode::OwnNamespace) => namespace,
        Some(InstallMode::SingleNamespace(name)) => name,
        Some(InstallMode::MultiNamespace(_)) => {
            return Err(Cause::lasting(
                Code::InstallModeUnsupported,
                "OLM v1 does not support MultiNamespace",
                "install for all namespaces or for one, or through OLM v0",
            ));
        }
    };
    if !served.config {
        return Err(Cause::lasting(
            Code::InstallModeUnsupported,
            "the ClusterExtensions of this cluster have no spec.config: with its standard manifests, OLM v1 installs only for all namespaces",
            "omit --install-mode, use the experimental manifests of OLM v1, or install through OLM v0",
        ));
    }
    Ok(serde_json::json!({"watchNamespace": watched}))
}

/// Reasons why OLM v1 rejects the bundle.
pub(super) fn bundle(loaded: &Loaded, namespace: &str, config: &Value, served: Served) -> Vec<Cause> {
    let mut options = Options::new(namespace);
    options.config = config.clone();
    if !served.config {
        options.gates = Gates::default();
    }
    let mut causes = Vec::new();
    let remedy =
        "fix the bundle: olmkit bundle validate --profile olmv1 shows the positions; or install it with OLM v0";
    if let Err(error) = olmv1::render(&loaded.bundle, &options) {
        let code = match &error {
            RenderError::Config(_) => Code::ConfigurationInvalid,
            _ => Code::BundleRejected,
        };
        let remedy = match &error {
            RenderError::Config(_) => "pass another --install-mode",
            _ => remedy,
        };
        causes.push(Cause::lasting(code, error.to_string(), remedy));
    }
    let name = loaded.facts.csv_name();
    causes.extend(
        loaded
            .dependencies
            .first()
            .map(|dependency| Cause::lasting(Code::DependencyUnsupported, dependency.message(name), remedy)),
    );
    causes
}

/// CRDs of the bundle that already exist in the cluster: those with another owner, and those whose change OLM v1 would
/// block.
///
/// # Errors
/// [`Error::Request`].
pub(super) async fn definitions(cluster: &Cluster, loaded: &Loaded, extension: &str) -> Result<Vec<Cause>, Error> {
    let mut causes = Vec::new();
    for new in &loaded.bundle.definitions {
        let object = ObjectRef::cluster(kinds::custom_resource_definition(), new.name());
        let Some(live) = cluster.get(&object).await? else {
            continue;
        };
        causes.extend(definition(&live, new, extension).map(|cause| cause.on(object)));
    }
    Ok(causes)
}

fn definition(live: &Value, new: &olmv1::Object, extension: &str) -> Option<Cause> {
    let label = |name: &str| live.pointer("/metadata/labels")?.get(name)?.as_str();
    let owner = label("olm.operatorframework.io/owner-name");
    if live.pointer("/metadata/deletionTimestamp").is_some() {
        return Some(
            Cause::lasting(
                Code::CrdTerminating,
                "is still being deleted; OLM v1 cannot install it again before the deletion completes",
                format!("delete the remaining custom resources (kubectl get {} -A); if a finalizer blocks one, restart its operator or remove the finalizer", names::word(new.name())),
            )
            .likely("an earlier installation was deleted while custom resources had finalizers, which block the deletion of their CRD"),
        );
    }
    if owner != Some(extension) || label("olm.operatorframework.io/owner-kind") != Some("ClusterExtension") {
        let author = owner.map_or_else(
            || ownership::author(live),
            |owner| format!("it belongs to ClusterExtension {owner}"),
        );
        return Some(Cause::lasting(
            Code::CrdOwnedByOther,
            format!("exists already ({author}), and OLM v1 does not adopt existing objects"),
            "delete it with all its custom resources first, or keep managing it with the tool that created it",
        ));
    }
    let findings = upgrade_findings(live, None, new, "the cluster");
    (!findings.is_empty()).then(|| {
        Cause::lasting(
            Code::CrdUnsafe,
            format!(
                "OLM v1 blocks the upgrade: {}",
                findings
                    .iter()
                    .map(|found| found.message.as_str())
                    .collect::<Vec<_>>()
                    .join("\n")
            ),
            "revert these changes, or add an API version; olmkit bundle diff OLD NEW shows the lines",
        )
    })
}

/// Objects with another owner and a name that the run needs.
pub(super) fn taken(seen: &ExtensionState, package: &str) -> Vec<Cause> {
    let name = catalog_name(package);
    let catalog = seen.catalogs.iter().find(|found| text(found, "/metadata/name") == name);
    let labels = crate::base::names::labels(package);
    let of = |object: &Value, reference: ObjectRef| {
        (!ownership::is_ours(object, &labels)).then(|| not_ours(object, reference, package))
    };
    let extension = seen.extension.as_ref().and_then(|found| of(found, seen.object()));
    let catalog = catalog.and_then(|found| of(found, ObjectRef::cluster(kinds::cluster_catalog(), &name)));
    extension.into_iter().chain(catalog).collect()
}

/// The cause for an object with another owner.
pub(super) fn not_ours(object: &Value, reference: ObjectRef, package: &str) -> Cause {
    let package = format!("package {package}");
    cause::left_alone(
        reference,
        &package,
        &ownership::author(object),
        "go on with what made it",
    )
}

/// The name of the only catalog that a ClusterExtension selects by its label, if it is one.
pub(super) fn selected_name(extension: &Value) -> Option<&str> {
    extension
        .pointer("/spec/source/catalog/selector/matchLabels")?
        .get(METADATA_NAME)?
        .as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_mode_becomes_a_configuration_where_the_cluster_takes_one() {
        let served = |config| Served {
            extensions: true,
            catalogs: true,
            config,
        };
        assert_eq!(config(None, "shop", served(false)), Ok(Value::Null));
        assert_eq!(
            config(Some(&InstallMode::AllNamespaces), "shop", served(true)),
            Ok(Value::Null)
        );
        let own = Some(&InstallMode::OwnNamespace);
        assert_eq!(config(own, "shop", served(true)), Ok(json!({"watchNamespace": "shop"})));
        assert_eq!(
            config(own, "shop", served(false)).unwrap_err().code,
            Code::InstallModeUnsupported
        );
        let several = InstallMode::parse("MultiNamespace=a,b").unwrap();
        assert!(config(Some(&several), "shop", served(true)).is_err());
    }

    #[test]
    fn missing_parts_of_olm_v1_are_named() {
        let served = Served {
            extensions: true,
            ..Served::default()
        };
        let cause = served.missing().unwrap();
        assert!(
            cause.message.contains(CATALOGS) && !cause.message.contains(EXTENSIONS),
            "{}",
            cause.message
        );
        assert_eq!(
            Served {
                catalogs: true,
                ..served
            }
            .missing(),
            None
        );
    }
}
