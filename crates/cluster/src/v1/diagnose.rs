//! The OLM v1 part of `diagnose`.

use super::explain;
use super::preflight::selected_name;
use super::seen::{ExtensionState, namespace_of};
use crate::base::cause::{Cause, Code};
use crate::base::error::Error;
use crate::base::finding::Finding;
use crate::base::json::text;
use crate::base::kinds;
use crate::base::object_ref::ObjectRef;
use crate::kube::client::Cluster;
use crate::kube::conditions::all;
use crate::kube::logs::with_logs;
use olmkit::diagnostics::Severity;

/// The ClusterExtensions of a package or of the cluster's namespace, those without a namespace, and unhealthy ClusterCatalogs. Empty
/// if the credentials cannot list them.
///
/// # Errors
/// [`Error::Request`], [`Error::Unreadable`].
pub(crate) async fn findings(cluster: &Cluster, package: Option<&str>) -> Result<Vec<Finding>, Error> {
    let read = futures::try_join!(
        cluster.list(kinds::cluster_extension(), None, None),
        cluster.list(kinds::cluster_catalog(), None, None),
    );
    let (extensions, catalogs) = match read {
        Ok(read) => read,
        Err(error) if error.code() == Some(403) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut findings = Vec::new();
    for extension in extensions {
        let name = text(&extension, "/metadata/name").to_owned();
        let of = text(&extension, "/spec/source/catalog/packageName");
        let is_meant = match package {
            Some(package) => of == package || name == package,
            // OLM v1 has not chosen its namespace yet, so it is reported for each.
            None => namespace_of(cluster, &extension)
                .await?
                .is_none_or(|namespace| namespace == cluster.namespace),
        };
        if is_meant {
            let seen = ExtensionState::gather(cluster, &name, Some(extension), catalogs.clone()).await?;
            findings.push(finding(cluster, &seen).await);
        }
    }
    if package.is_none() {
        let causes: Vec<Cause> = catalogs.iter().flat_map(explain::of_catalog).collect();
        let is_told = |cause: &Cause| findings.iter().any(|finding| finding.causes.contains(cause));
        let causes: Vec<Cause> = causes.into_iter().filter(|cause| !is_told(cause)).collect();
        if !causes.is_empty() {
            findings.push(Finding::new(
                String::new(),
                cluster.namespace.clone(),
                Vec::new(),
                causes,
            ));
        }
    }
    Ok(findings)
}

async fn finding(cluster: &Cluster, seen: &ExtensionState) -> Finding {
    let mut causes = with_logs(cluster, explain::causes(seen)).await;
    let catalog = seen.extension.as_ref().and_then(selected_name);
    let is_there = |name: &str| seen.catalogs.iter().any(|found| text(found, "/metadata/name") == name);
    if let Some(name) = catalog.filter(|name| !is_there(name) && seen.installed().is_none()) {
        causes.push(
            Cause::lasting(
                Code::CatalogMissing,
                "does not exist",
                "create it, or change the selector of the ClusterExtension",
            )
            .on(ObjectRef::cluster(kinds::cluster_catalog(), name)),
        );
    }
    let stated = seen.extension.as_ref().map(all).unwrap_or_default();
    let is_news = |found: &&serde_json::Value| matches!(text(found, "/type"), "Installed" | "Progressing");
    let said = stated.iter().filter(is_news).map(|found| {
        let text = |pointer| text(found, pointer);
        format!(
            "{} {}: {} {}",
            seen.object(),
            text("/type"),
            text("/status"),
            text("/reason")
        )
    });
    Finding::new(
        seen.package().to_owned(),
        seen.place.namespace.clone(),
        said.collect(),
        causes,
    )
}

impl Finding {
    fn new(package: String, namespace: String, reached: Vec<String>, causes: Vec<Cause>) -> Self {
        Self {
            healthy: !causes.iter().any(|cause| cause.severity == Severity::Error),
            package,
            namespace,
            reached,
            causes,
        }
    }
}
