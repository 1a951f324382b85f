//! `extension status`: the status of a ClusterExtension, and causes that it does not report.

use serde::Serialize;
use serde_json::Value;

use super::explain;
use super::seen::ExtensionState;
use crate::base::cause::Cause;
use crate::base::error::Error;
use crate::base::json::text;
use crate::base::kinds;
use crate::kube::client::Cluster;
use crate::kube::conditions::Conditions as _;
use crate::kube::conditions::all;
use crate::kube::logs::with_logs;
use olmkit::diagnostics::Severity;

/// A condition of the ClusterExtension.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ConditionStatus {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Machine-readable reason.
    pub reason: String,
    /// For people.
    pub message: String,
}

/// A catalog that it takes bundles from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CatalogStatus {
    /// Its name.
    pub name: String,
    /// The image that is served, by digest.
    pub image: String,
    /// True if it is served.
    pub serving: bool,
    /// Its priority.
    pub priority: i64,
}

/// A Deployment of the operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DeploymentStatus {
    /// Its name.
    pub name: String,
    /// Replicas that are available.
    pub available: i32,
    /// The number of replicas in its spec.
    pub replicas: i32,
}

/// A ClusterExtension.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Status {
    /// Its name.
    pub name: String,
    /// The package.
    pub package: String,
    /// The namespace, empty if OLM v1 has not created it yet.
    pub namespace: String,
    /// The bundle that is installed.
    pub bundle: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// The requested version or range.
    pub requested: String,
    /// True if nothing is wrong.
    pub healthy: bool,
    /// The conditions, in the order of the object.
    pub conditions: Vec<ConditionStatus>,
    /// The catalogs that it takes bundles from.
    pub catalogs: Vec<CatalogStatus>,
    /// Its Deployments.
    pub deployments: Vec<DeploymentStatus>,
    /// Its CRDs.
    pub definitions: Vec<String>,
    /// Causes, with their fixes.
    pub causes: Vec<Cause>,
}

/// Reports the status of one ClusterExtension, or of all in the cluster.
///
/// # Errors
/// [`Error::Request`], [`Error::Unreadable`].
pub async fn status(cluster: &Cluster, name: Option<&str>) -> Result<Vec<Status>, Error> {
    let names = match name {
        Some(name) => vec![name.to_owned()],
        None => names(cluster).await?,
    };
    let mut found = Vec::new();
    for name in names {
        let seen = ExtensionState::read(cluster, &name).await?;
        if seen.extension.is_some() {
            let causes = with_logs(cluster, explain::causes(&seen)).await;
            found.push(summarize(&seen, causes));
        }
    }
    Ok(found)
}

async fn names(cluster: &Cluster) -> Result<Vec<String>, Error> {
    let extensions = cluster.list(kinds::cluster_extension(), None, None).await?;
    Ok(extensions
        .iter()
        .map(|found| text(found, "/metadata/name").to_owned())
        .collect())
}

fn summarize(seen: &ExtensionState, causes: Vec<Cause>) -> Status {
    let extension = seen.extension.as_ref();
    let stated = extension.map(all).unwrap_or_default();
    let (bundle, version) = seen.installed().unzip();
    Status {
        name: seen.name.clone(),
        package: seen.package().to_owned(),
        namespace: seen.namespace().unwrap_or_default().to_owned(),
        bundle: bundle.map(str::to_owned),
        version: version.map(str::to_owned),
        requested: seen.text("/spec/source/catalog/version").to_owned(),
        healthy: !causes.iter().any(|cause| cause.severity == Severity::Error),
        conditions: stated.iter().map(stated_condition).collect(),
        catalogs: seen.selected().map(catalog).collect(),
        deployments: seen.place.deployments.iter().map(deployment).collect(),
        definitions: seen
            .crds
            .iter()
            .map(|crd| text(crd, "/metadata/name").to_owned())
            .collect(),
        causes,
    }
}

fn stated_condition(found: &Value) -> ConditionStatus {
    let text = |pointer| text(found, pointer).to_owned();
    ConditionStatus {
        kind: text("/type"),
        status: text("/status"),
        reason: text("/reason"),
        message: text("/message"),
    }
}

fn catalog(found: &Value) -> CatalogStatus {
    let resolved = text(found, "/status/resolvedSource/image/ref");
    let image = if resolved.is_empty() {
        text(found, "/spec/source/image/ref")
    } else {
        resolved
    };
    CatalogStatus {
        name: text(found, "/metadata/name").to_owned(),
        image: image.to_owned(),
        serving: found.is_true("Serving"),
        priority: found.pointer("/spec/priority").and_then(Value::as_i64).unwrap_or(0),
    }
}

fn deployment(found: &k8s_openapi::api::apps::v1::Deployment) -> DeploymentStatus {
    DeploymentStatus {
        name: found.metadata.name.clone().unwrap_or_default(),
        available: found
            .status
            .as_ref()
            .and_then(|status| status.available_replicas)
            .unwrap_or(0),
        replicas: found.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1),
    }
}
