//! `olm status`: checks that OLM works, not only that its objects exist.

use serde::Serialize;

use crate::base::cause::{Cause, Code, sorted};
use crate::base::error::Error;
use crate::base::json::text;
use crate::base::kinds;
use crate::base::object_ref::ObjectRef;
use crate::kube::client::Cluster;
use crate::kube::conditions::Conditions as _;
use crate::kube::crd::CrdState;
use crate::observe::health;
use crate::observe::observation::{NEEDED_CRDS, Observation, observe_olm};
use crate::observe::pods::of_deployment;
use crate::v0::causes::catalog::of_catalog;

/// One part of OLM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Component {
    /// The object.
    pub object: ObjectRef,
    /// Its state as reported.
    pub state: String,
    /// True if it is healthy.
    pub healthy: bool,
}

/// The state of OLM.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Status {
    /// True if any part of OLM is installed.
    pub installed: bool,
    /// True if all that is needed works.
    pub healthy: bool,
    /// Version, if known.
    pub version: Option<String>,
    /// The parts.
    pub components: Vec<Component>,
    /// The causes found.
    pub causes: Vec<Cause>,
}

/// Reports the status of OLM.
///
/// # Errors
/// [`Error::Request`], [`Error::Unreadable`].
pub async fn status(cluster: &Cluster) -> Result<Status, Error> {
    let mut seen = Observation::default();
    for crd in cluster.list(kinds::custom_resource_definition(), None, None).await? {
        seen.crds
            .insert(text(&crd, "/metadata/name").to_owned(), CrdState::from_crd(&crd));
    }
    seen.olm = observe_olm(cluster, &seen.crds).await?;
    let mut status = Status {
        version: seen.olm.version.clone(),
        ..Status::default()
    };
    for name in NEEDED_CRDS {
        let healthy = seen.olm.crds.contains(name);
        let state = if healthy { "established" } else { "missing" };
        status.components.push(Component {
            object: ObjectRef::cluster(kinds::custom_resource_definition(), name),
            state: state.into(),
            healthy,
        });
    }
    status.causes.extend(health::olm(&seen.olm));
    status.installed = !status.causes.iter().any(|cause| cause.code == Code::OlmNotInstalled);
    if status.installed {
        workloads(cluster, &mut seen, &mut status).await?;
        catalogs(cluster, &mut seen, &mut status).await?;
        api_services(cluster, &mut status).await?;
    }
    status.causes = sorted(std::mem::take(&mut status.causes));
    status.healthy = status.installed
        && !crate::base::cause::has_errors(&status.causes)
        && status.components.iter().all(|component| component.healthy);
    Ok(status)
}

async fn workloads(cluster: &Cluster, seen: &mut Observation, status: &mut Status) -> Result<(), Error> {
    for deployment in seen.olm.deployments.clone() {
        let namespace = deployment.metadata.namespace.clone().unwrap_or_default();
        let healthy = health::available(&deployment);
        let object = ObjectRef::namespaced(
            kinds::deployment(),
            &namespace,
            deployment.metadata.name.as_deref().unwrap_or_default(),
        );
        status.components.push(Component {
            object,
            state: if healthy {
                "available".into()
            } else {
                "not available".into()
            },
            healthy,
        });
        if !healthy {
            let mut around = Observation {
                namespace,
                ..Observation::default()
            };
            around.refresh(cluster).await?;
            status
                .causes
                .extend(crate::kube::logs::with_logs(cluster, of_deployment(&deployment, &around)).await);
        }
    }
    for csv in cluster
        .list(kinds::cluster_service_version(), None, Some("olm.version"))
        .await?
    {
        if text(&csv, "/metadata/name") != "packageserver" {
            continue;
        }
        let phase = text(&csv, "/status/phase").to_owned();
        let object = ObjectRef::namespaced(
            kinds::cluster_service_version(),
            text(&csv, "/metadata/namespace"),
            "packageserver",
        );
        let healthy = phase == "Succeeded";
        if !healthy {
            status.causes.push(
                Cause::warning(
                    Code::OlmIncomplete,
                    format!(
                        "is {phase} {}: {}",
                        text(&csv, "/status/reason"),
                        text(&csv, "/status/message")
                    ),
                    "packages cannot be listed; installing works",
                )
                .on(object.clone()),
            );
        }
        status.components.push(Component {
            object,
            state: if phase.is_empty() { "no phase yet".into() } else { phase },
            healthy,
        });
    }
    Ok(())
}

async fn catalogs(cluster: &Cluster, seen: &mut Observation, status: &mut Status) -> Result<(), Error> {
    let Some(namespace) = seen.olm.global_namespace.clone() else {
        return Ok(());
    };
    let mut around = Observation {
        namespace: namespace.clone(),
        olm: seen.olm.clone(),
        ..Observation::default()
    };
    around.refresh(cluster).await?;
    for catalog in around
        .catalogs
        .iter()
        .filter(|catalog| catalog.metadata.namespace.as_deref() == Some(&namespace))
    {
        let object = ObjectRef::namespaced(
            kinds::catalog_source(),
            &namespace,
            catalog.metadata.name.as_deref().unwrap_or_default(),
        );
        let state = if catalog.connection().is_empty() {
            "not connected yet".to_owned()
        } else {
            catalog.connection().to_owned()
        };
        let healthy = catalog.is_ready() || catalog.connection() == "IDLE";
        status.components.push(Component { object, state, healthy });
        status.causes.extend(of_catalog(catalog, &around));
    }
    Ok(())
}

async fn api_services(cluster: &Cluster, status: &mut Status) -> Result<(), Error> {
    let object = ObjectRef::cluster(kinds::api_service(), "v1.packages.operators.coreos.com");
    let Some(found) = cluster.get(&object).await? else {
        return Ok(());
    };
    let healthy = found.is_true("Available");
    status.components.push(Component {
        object: object.clone(),
        state: if healthy {
            "available".into()
        } else {
            "not available".into()
        },
        healthy,
    });
    if !healthy {
        status.causes.push(
            Cause::warning(
                Code::ApiServiceUnavailable,
                "no server answers; until one does, namespace deletions do not finish",
                "check why packageserver does not run; to do without it: kubectl delete apiservices.apiregistration.k8s.io v1.packages.operators.coreos.com",
            )
            .on(object),
        );
    }
    Ok(())
}
