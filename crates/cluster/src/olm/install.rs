//! `olm install`: creates objects in an order in which none depends on a later one. A repeated run keeps existing
//! objects and adds missing ones.

use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::Deployment;
use serde_json::Value;

use super::source::Manifests;
use crate::base::cause::{Cause, Code};
use crate::base::error::Error;
use crate::base::json::text;
use crate::base::kinds;
use crate::base::object_ref::ObjectRef;
use crate::base::reporter::{ProgressLog, ProgressReporter};
use crate::kube::client::Cluster;
use crate::kube::conditions::Conditions as _;
use crate::kube::logs;
use crate::observe::health;
use crate::observe::observation::Observation;
use crate::observe::pods::of_deployment;
use crate::rights::{self, Command};
use olmkit::types::DeployedCsv;

/// Options for installing OLM.
#[derive(Clone, Debug)]
pub struct InstallOptions {
    /// Total time to wait.
    pub timeout: Duration,
    /// True to wait for packageserver, which lists packages but is not needed to install any.
    pub wait_for_packageserver: bool,
}

/// Installs OLM. The inner error contains the causes why it does not become ready.
///
/// # Errors
/// [`Error::Request`] and the like.
pub async fn install(
    cluster: &Cluster,
    manifests: &Manifests,
    options: &InstallOptions,
    reporter: &dyn ProgressReporter,
) -> Result<Result<(), Vec<Cause>>, Error> {
    let deadline = Instant::now() + options.timeout;
    let mut progress = ProgressLog::start(reporter);
    let missing = rights::missing_always(cluster, Command::OlmInstall).await?;
    if !missing.is_empty() {
        return Ok(Err(missing));
    }
    for crd in &manifests.crds {
        cluster.apply(crd).await?;
    }
    progress.waiting("the custom resource definitions to be served");
    for crd in &manifests.crds {
        let object = ObjectRef::cluster(kinds::custom_resource_definition(), text(crd, "/metadata/name"));
        while !cluster
            .get(&object)
            .await?
            .is_some_and(|found| found.is_true("Established"))
        {
            if Instant::now() > deadline {
                return Ok(Err(vec![
                    Cause::passing(Code::Timeout, "is not served yet", "run the same command again").on(object),
                ]));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    progress.done(format!(
        "{} custom resource definitions established",
        manifests.crds.len()
    ));
    // The operators first: a CSV or a catalog without them would only wait.
    let (late, early): (Vec<&Value>, Vec<&Value>) = manifests.objects.iter().partition(|object| {
        matches!(
            text(object, "/kind"),
            "ClusterServiceVersion" | "CatalogSource" | "Subscription" | "OperatorGroup"
        )
    });
    for manifest in &early {
        let object = cluster.reference(manifest).await?;
        cluster.apply(manifest).await?;
        progress.done(format!("{object}: created"));
    }
    for manifest in early.iter().filter(|manifest| text(manifest, "/kind") == "Deployment") {
        let object = cluster.reference(manifest).await?;
        if let Err(causes) = deployment_available(cluster, &object, deadline, &mut progress).await? {
            return Ok(Err(causes));
        }
    }
    for manifest in &late {
        let object = cluster.reference(manifest).await?;
        cluster.apply(manifest).await?;
        progress.done(format!("{object}: created"));
    }
    if options.wait_for_packageserver {
        for manifest in late
            .iter()
            .filter(|manifest| text(manifest, "/kind") == "ClusterServiceVersion")
        {
            let object = cluster.reference(manifest).await?;
            if let Err(causes) = csv_succeeded(cluster, &object, deadline, &mut progress).await? {
                return Ok(Err(causes));
            }
        }
    }
    Ok(Ok(()))
}

async fn deployment_available(
    cluster: &Cluster,
    object: &ObjectRef,
    deadline: Instant,
    progress: &mut ProgressLog<'_>,
) -> Result<Result<(), Vec<Cause>>, Error> {
    progress.waiting(format!("{object}"));
    let mut lasting_since: Option<Instant> = None;
    loop {
        let deployment = cluster.get_as::<Deployment>(object).await?.unwrap_or_default();
        if health::available(&deployment) {
            progress.done(format!("{object}: available"));
            return Ok(Ok(()));
        }
        let mut seen = Observation {
            namespace: object.namespace.clone().unwrap_or_default(),
            ..Observation::default()
        };
        seen.refresh(cluster).await?;
        let causes = of_deployment(&deployment, &seen);
        let lasting = causes.iter().any(|cause| cause.lasting);
        let since = if lasting {
            *lasting_since.get_or_insert_with(Instant::now)
        } else {
            Instant::now()
        };
        if since.elapsed() > Duration::from_secs(6) || Instant::now() > deadline {
            return Ok(Err(logs::with_logs(cluster, causes).await));
        }
        if !lasting {
            lasting_since = None;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

async fn csv_succeeded(
    cluster: &Cluster,
    object: &ObjectRef,
    deadline: Instant,
    progress: &mut ProgressLog<'_>,
) -> Result<Result<(), Vec<Cause>>, Error> {
    progress.waiting(format!("{object}"));
    loop {
        let csv: DeployedCsv = cluster.get_as(object).await?.unwrap_or_default();
        if csv.status.phase == "Succeeded" {
            progress.done(format!("{object}: Succeeded"));
            return Ok(Ok(()));
        }
        if Instant::now() > deadline {
            let mut seen = Observation {
                namespace: object.namespace.clone().unwrap_or_default(),
                ..Observation::default()
            };
            seen.refresh(cluster).await?;
            let mut causes: Vec<Cause> = seen
                .deployments
                .iter()
                .filter(|deployment| {
                    csv.spec
                        .install
                        .spec
                        .deployments
                        .iter()
                        .any(|named| deployment.metadata.name.as_deref() == Some(&named.name))
                })
                .flat_map(|deployment| of_deployment(deployment, &seen))
                .collect();
            if causes.is_empty() {
                let message = format!("is {} {}: {}", csv.status.phase, csv.status.reason, csv.status.message);
                causes.push(
                    Cause::passing(
                        Code::Timeout,
                        message,
                        "see olmkit olm status; run the same command again",
                    )
                    .on(object.clone()),
                );
            }
            return Ok(Err(logs::with_logs(cluster, causes).await));
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}
