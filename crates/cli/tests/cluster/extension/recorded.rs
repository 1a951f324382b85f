//! Conditions of operator-controller and catalogd 1.11, written by the test: the API server and the definitions are
//! real, the conditions are recorded. `operator_controller.rs` runs the commands with the real ones.

use std::time::Duration;

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::bundle::Bundle;
use crate::harness::{Cluster, LIMIT};

pub const GROUP: &str = "olm.operatorframework.io/v1";
pub const EXTENSIONS: (&str, &str, &str) = (GROUP, "ClusterExtension", "clusterextensions");
pub const CATALOGS: (&str, &str, &str) = (GROUP, "ClusterCatalog", "clustercatalogs");

/// Changes the status of an object.
pub async fn write_status(cluster: &Cluster, kind: (&str, &str, &str), name: &str, status: Value) {
    let api = cluster.api(kind.0, kind.1, kind.2, None);
    let patch = Patch::Merge(json!({"status": status}));
    api.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
}

pub async fn get(cluster: &Cluster, kind: (&str, &str, &str), name: &str) -> Option<Value> {
    cluster.get(kind.0, kind.1, kind.2, None, name).await
}

/// A condition for the current generation of an object.
pub fn condition(object: &Value, kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": message,
        "observedGeneration": object["metadata"]["generation"], "lastTransitionTime": "2026-11-22T00:00:00Z"})
}

/// Writes what catalogd writes of a catalog that it serves.
pub async fn serve(cluster: &Cluster, name: &str) {
    let catalog = get(cluster, CATALOGS, name).await.unwrap();
    let image = catalog["spec"]["source"]["image"]["ref"].as_str().unwrap();
    // By digest, as catalogd resolves it.
    let image = if image.contains('@') {
        image.to_owned()
    } else {
        format!("{image}@sha256:{}", "0".repeat(64))
    };
    let status = json!({
        "urls": {"base": format!("https://catalogd-service.olmv1-system.svc/catalogs/{name}")},
        "resolvedSource": {"type": "Image", "image": {"ref": image}},
        "conditions": [
            condition(&catalog, "Serving", "True", "Available", "Serving desired content from resolved source"),
            condition(&catalog, "Progressing", "True", "Succeeded", "Successfully unpacked and stored content from resolved source")],
    });
    write_status(cluster, CATALOGS, name, status).await;
}

/// Writes what operator-controller writes of a bundle that it has installed.
pub async fn succeed(cluster: &Cluster, name: &str, bundle: &Bundle, image: &str) {
    let extension = get(cluster, EXTENSIONS, name).await.unwrap();
    let status = json!({
        "install": {"bundle": {"name": bundle.csv_name(), "version": bundle.version}},
        "conditions": [
            condition(&extension, "Installed", "True", "Succeeded", &format!("Installed bundle {image} successfully")),
            condition(&extension, "Progressing", "True", "Succeeded", "Desired state reached")],
    });
    write_status(cluster, EXTENSIONS, name, status).await;
}

/// The labels of the objects of a ClusterExtension.
pub fn owner_labels(name: &str) -> Value {
    json!({"olm.operatorframework.io/owner-kind": "ClusterExtension", "olm.operatorframework.io/owner-name": name})
}

/// Makes the CRD and the Deployment of a bundle as operator-controller makes them: labelled, and owned by the ClusterExtension.
pub async fn make_objects(cluster: &Cluster, name: &str, namespace: &str, bundle: &Bundle) {
    let extension = get(cluster, EXTENSIONS, name).await.unwrap();
    let metadata = json!({
        "labels": owner_labels(name),
        "ownerReferences": [{"apiVersion": GROUP, "kind": "ClusterExtension", "name": name, "uid": extension["metadata"]["uid"],
            "controller": true, "blockOwnerDeletion": true}],
    });
    let merged = |mut object: Value, extra: Value| {
        for part in [metadata.clone(), extra] {
            for (key, value) in part.as_object().unwrap() {
                object["metadata"][key] = value.clone();
            }
        }
        object
    };
    cluster
        .apply("customresourcedefinitions", merged(bundle.crd(), json!({})))
        .await;
    let object = bundle.deployment();
    let place = json!({"name": object["metadata"]["name"], "namespace": namespace});
    cluster.apply("deployments", merged(object, place)).await;
}

/// Waits until an object exists and satisfies `is_ready`, and returns it.
pub async fn appears(
    cluster: &Cluster,
    kind: (&str, &str, &str),
    name: &str,
    is_ready: impl Fn(&Value) -> bool,
) -> Value {
    let end = std::time::Instant::now() + LIMIT;
    loop {
        if let Some(found) = get(cluster, kind, name).await.filter(&is_ready) {
            return found;
        }
        assert!(std::time::Instant::now() < end, "{} {name} does not appear", kind.1);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
