//! Serves the catalog with the bundle while it is installed: from this process, or from a pod.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::Deployment;
use serde_json::{Value, json};

use super::address;
use super::host::HostCatalog;
use super::place::ServeFrom;
use super::pod::{self, PodOptions};
use crate::base::cause::{Cause, Code};
use crate::base::error::Error;
use crate::base::json::text;
use crate::base::object_ref::ObjectRef;
use crate::base::reporter::ProgressLog;
use crate::base::{kinds, names};
use crate::bundle::facts::BundleFacts;
use crate::kube::client::Cluster;
use crate::kube::{logs, ownership};
use crate::observe::health;
use crate::observe::observation::Observation;
use crate::observe::pods::of_catalog_deployment;
use crate::v0::intent::Served;
use crate::v0::release::release;

/// A catalog that is being served.
pub struct Serving {
    served: Served,
    host: Option<HostCatalog>,
    pod: Vec<Value>,
}

impl Serving {
    /// Starts serving. For a pod, waits until it is ready. The inner error contains the causes why it is not.
    ///
    /// # Errors
    /// [`Error::Serve`], [`Error::Request`].
    pub async fn begin(
        cluster: &Cluster,
        bundle: &BundleFacts,
        blobs: &[Value],
        place: &ServeFrom,
        timeout: Duration,
        progress: &mut ProgressLog<'_>,
    ) -> Result<Result<Self, Vec<Cause>>, Error> {
        match place {
            ServeFrom::Auto => Err(Error::Serve("the place was not decided".into())),
            ServeFrom::Host(address) => {
                let host = HostCatalog::serve(blobs, listen_at(cluster, address.as_deref()).await?).await?;
                progress.done(format!("catalog served from this host at {}", host.address()));
                let served = Served::FromHost(host.address().to_string());
                Ok(Ok(Serving {
                    served,
                    host: Some(host),
                    pod: Vec::new(),
                }))
            }
            ServeFrom::Pod(options) => in_pod(cluster, bundle, blobs, options, timeout, progress).await,
        }
    }

    /// Connection from OLM to the catalog.
    pub fn served(&self) -> &Served {
        &self.served
    }

    /// Ends this process's part: a catalog on this host ends with all references to it (see [`release`]). A catalog in
    /// a pod is kept and from now on belongs to its CatalogSource.
    ///
    /// # Errors
    /// [`Error::Request`].
    pub async fn end(
        self,
        cluster: &Cluster,
        bundle: &BundleFacts,
        progress: &mut ProgressLog<'_>,
    ) -> Result<(), Error> {
        let Some(host) = self.host else {
            let source = ObjectRef::namespaced(
                kinds::catalog_source(),
                &cluster.namespace,
                &names::catalog_source(&bundle.package),
            );
            return adopt(cluster, &source, self.pod).await;
        };
        release(cluster, bundle, progress).await?;
        host.stop().await;
        Ok(())
    }
}

/// Makes the CatalogSource the owner of the objects that serve it.
async fn adopt(cluster: &Cluster, source: &ObjectRef, manifests: Vec<Value>) -> Result<(), Error> {
    let Some(found) = cluster.get(source).await? else {
        return Ok(());
    };
    let owner = json!([{
        "apiVersion": source.kind.api_version(),
        "kind": source.kind.kind,
        "name": source.name,
        "uid": text(&found, "/metadata/uid"),
    }]);
    for mut manifest in manifests {
        if let Some(metadata) = manifest.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("ownerReferences".into(), owner.clone());
        }
        ownership::apply(cluster, &manifest).await?;
    }
    Ok(())
}

/// The socket to listen on: the user's, else a guessed address with a free port.
async fn listen_at(cluster: &Cluster, wanted: Option<&str>) -> Result<SocketAddr, Error> {
    let Some(wanted) = wanted.filter(|wanted| !wanted.is_empty()) else {
        let nodes = cluster.list(kinds::node(), None, None).await.unwrap_or_default();
        return Ok(SocketAddr::new(
            address::guess(&cluster.server, &internal_addresses(&nodes)),
            0,
        ));
    };
    if let Ok(address) = wanted.parse::<SocketAddr>() {
        return Ok(address);
    }
    let address: IpAddr = wanted.parse().map_err(|_| {
        Error::Usage(format!(
            "--serve-from-host={wanted}: expected an IP address of this host, with or without a port"
        ))
    })?;
    Ok(SocketAddr::new(address, 0))
}

fn internal_addresses(nodes: &[Value]) -> Vec<IpAddr> {
    nodes
        .iter()
        .flat_map(|node| {
            node.pointer("/status/addresses")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
        })
        .filter(|address| text(address, "/type") == "InternalIP")
        .filter_map(|address| text(address, "/address").parse().ok())
        .collect()
}

async fn in_pod(
    cluster: &Cluster,
    bundle: &BundleFacts,
    blobs: &[Value],
    options: &PodOptions,
    timeout: Duration,
    progress: &mut ProgressLog<'_>,
) -> Result<Result<Serving, Vec<Cause>>, Error> {
    let namespace = cluster.namespace.clone();
    let manifests = match pod::manifests(&bundle.package, &namespace, blobs, options) {
        Ok(manifests) => manifests,
        Err(size) => {
            return Ok(Err(vec![Cause::lasting(
                Code::BundleTooLarge,
                format!("the catalog is {size} bytes, the maximum for a ConfigMap is 1 MiB"),
                "serve it from this host (--serve-from-host), or push the bundle as an image and run that",
            )]));
        }
    };
    for manifest in &manifests {
        let object = ownership::apply(cluster, manifest).await?;
        progress.done(format!("{object}: created"));
    }
    let object = ObjectRef::namespaced(kinds::deployment(), &namespace, &pod::service_name(&bundle.package));
    if let Err(causes) = until_ready(cluster, &object, timeout, progress).await? {
        return Ok(Err(causes));
    }
    progress.done(format!("{object}: ready"));
    let served = Served::FromPod(pod::address(&bundle.package, &namespace));
    Ok(Ok(Serving {
        served,
        host: None,
        pod: manifests,
    }))
}

/// Waits for the catalog's Deployment.
async fn until_ready(
    cluster: &Cluster,
    object: &ObjectRef,
    timeout: Duration,
    progress: &mut ProgressLog<'_>,
) -> Result<Result<(), Vec<Cause>>, Error> {
    let began = Instant::now();
    let mut lasting_since: Option<Instant> = None;
    let mut seen = Observation {
        namespace: cluster.namespace.clone(),
        ..Observation::default()
    };
    progress.waiting(format!("{object}"));
    loop {
        if let Some(deployment) = cluster.get_as::<Deployment>(object).await? {
            let current = deployment.status.as_ref().and_then(|status| status.observed_generation)
                >= deployment.metadata.generation;
            let updated = deployment.status.as_ref().and_then(|status| status.updated_replicas) == Some(1);
            if current
                && updated
                && health::available(&deployment)
                && deployment.status.as_ref().and_then(|status| status.replicas) == Some(1)
            {
                return Ok(Ok(()));
            }
            seen.refresh(cluster).await?;
            let causes = of_catalog_deployment(&deployment, &seen);
            let lasting = causes.iter().any(|cause| cause.lasting);
            let since = lasting_since.get_or_insert_with(Instant::now);
            if lasting && since.elapsed() > Duration::from_secs(6) || began.elapsed() > timeout {
                return Ok(Err(logs::with_logs(cluster, causes).await));
            }
            if !lasting {
                lasting_since = None;
            }
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}
