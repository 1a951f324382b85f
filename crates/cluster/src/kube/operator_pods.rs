//! Waits until an uninstalled operator has stopped.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::client::Cluster;
use super::owned;
use crate::base::cause::{Cause, Code};
use crate::base::error::Error;
use crate::base::json::text;
use crate::base::kinds;
use crate::base::object_ref::ObjectRef;
use crate::base::reporter::ProgressLog;

/// The Deployments of an operator, with namespace and name.
pub type Deployments = BTreeSet<(String, String)>;

/// The Deployments that OLM created for CSVs, in a namespace or in all.
///
/// # Errors
/// [`Error::Request`].
pub async fn deployments(
    cluster: &Cluster,
    namespace: Option<&str>,
    is_ours: impl Fn(&str) -> bool,
) -> Result<Deployments, Error> {
    let selector = format!("{}=ClusterServiceVersion", owned::OWNER_KIND);
    let found = cluster.list(kinds::deployment(), namespace, Some(&selector)).await?;
    let owner = |object: &Value| text(object, "/metadata/labels/olm.owner").to_owned();
    let of_csvs = found.iter().filter(|object| is_ours(&owner(object)));
    Ok(of_csvs
        .map(|object| {
            let part = |pointer| text(object, pointer).to_owned();
            (part("/metadata/namespace"), part("/metadata/name"))
        })
        .collect())
}

/// Waits until Deployments and their pods are deleted. An operator that still runs would add its finalizers again.
/// Returns the objects that still exist at the end of the time limit, as causes.
///
/// # Errors
/// [`Error::Request`].
pub async fn stopped(
    cluster: &Cluster,
    deployments: &Deployments,
    deadline: Instant,
    progress: &mut ProgressLog<'_>,
) -> Result<Vec<Cause>, Error> {
    loop {
        let left = left(cluster, deployments).await?;
        let Some(first) = left.first() else {
            return Ok(Vec::new());
        };
        if Instant::now() > deadline {
            return Ok(left.into_iter().map(cause).collect());
        }
        progress.waiting(format!("{first} to stop"));
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

async fn left(cluster: &Cluster, deployments: &Deployments) -> Result<Vec<ObjectRef>, Error> {
    let mut left = Vec::new();
    for (namespace, name) in deployments {
        let object = ObjectRef::namespaced(kinds::deployment(), namespace, name);
        if cluster.get(&object).await?.is_some() {
            left.push(object);
        }
    }
    let namespaces: BTreeSet<&String> = deployments.iter().map(|(namespace, _)| namespace).collect();
    for namespace in namespaces {
        let pods = cluster.list(kinds::pod(), Some(namespace), None).await?;
        let running = pods.iter().filter(|pod| {
            let deployment = deployment_of(pod);
            deployment.is_some_and(|name| deployments.contains(&(namespace.clone(), name.to_owned()))) && !is_ended(pod)
        });
        left.extend(running.map(|pod| ObjectRef::from_object(&kinds::pod(), pod)));
    }
    Ok(left)
}

/// The Deployment of a pod: the name of its ReplicaSet consists of the Deployment's and a hash.
fn deployment_of(pod: &Value) -> Option<&str> {
    let owners = pod.pointer("/metadata/ownerReferences")?.as_array()?;
    let set = owners.iter().find(|owner| text(owner, "/kind") == "ReplicaSet")?;
    text(set, "/name").rsplit_once('-').map(|(name, _)| name)
}

fn is_ended(pod: &Value) -> bool {
    matches!(text(pod, "/status/phase"), "Succeeded" | "Failed")
}

fn cause(object: ObjectRef) -> Cause {
    Cause::passing(
        Code::DeletionBlocked,
        "still exists, so the operator may still run and add its finalizers again; no finalizers were released",
        "check the node of the operator's pod and Kubernetes' garbage collector, then run this again",
    )
    .on(object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_replica_set_names_the_deployment_of_a_pod() {
        let pod = |owners: Value| json!({"metadata": {"ownerReferences": owners}});
        let owned = pod(json!([{"kind": "ReplicaSet", "name": "cache-operator-7d9f8b"}]));
        assert_eq!(deployment_of(&owned), Some("cache-operator"));
        assert_eq!(
            deployment_of(&pod(json!([{"kind": "StatefulSet", "name": "cache-1"}]))),
            None
        );
        assert_eq!(deployment_of(&json!({})), None);
        assert!(is_ended(&json!({"status": {"phase": "Failed"}})));
        assert!(!is_ended(&json!({"status": {"phase": "Running"}})));
    }
}
