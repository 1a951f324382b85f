//! Certificates and conversions of webhooks, which OLM creates or leaves unchanged.

use serde_json::{Value, json};

use super::olm::{NAMESPACE, POD, hooks, plain};
use super::server::ask;
use crate::bundle::Bundle;
use crate::harness::Cluster;

/// A pod that mounts the Secret of cert-manager, in a volume of some name.
pub fn secrets(name: &str, volume: &str, path: &str) -> Bundle {
    let mut bundle = hooks(name, &[json!({})]);
    let mut pod = bundle.csv().pointer(POD).unwrap().clone();
    pod["volumes"] = json!([{"name": volume, "secret": {"secretName": format!("from-cert-manager-{name}")}}]);
    pod["containers"][0]["volumeMounts"] = json!([{"name": volume, "mountPath": path}]);
    bundle.changes.push((POD, pod));
    bundle
}

/// Returns true if the container of a Deployment that OLM made mounts a volume with the Secret of cert-manager.
pub async fn mounts_foreign_secret(cluster: &Cluster, bundle: &str) -> bool {
    let name = format!("{bundle}-manager");
    let deployment = cluster
        .get("apps/v1", "Deployment", "deployments", Some(NAMESPACE), &name)
        .await;
    let pod = deployment.unwrap()["spec"]["template"]["spec"].clone();
    let mounts = pod["containers"][0]["volumeMounts"].as_array().unwrap();
    let is_mounted = |volume: &Value| mounts.iter().any(|mount| mount["name"] == volume["name"]);
    let secret = format!("from-cert-manager-{bundle}");
    let volumes = pod["volumes"].as_array().unwrap().iter();
    volumes
        .filter(|volume| is_mounted(volume))
        .any(|volume| volume["secret"]["secretName"] == secret.as_str())
}

/// Returns true if objects cannot be read in the version that is listed last.
pub async fn fails_to_convert(cluster: &Cluster, bundle: &Bundle) -> bool {
    let crd = bundle.crd();
    let versions = crd["spec"]["versions"].as_array().unwrap();
    let path = |version: &Value| {
        let version = version["name"].as_str().unwrap();
        format!("/apis/{}/{version}/namespaces/{NAMESPACE}/things", bundle.group)
    };
    let object = json!({
        "apiVersion": format!("{}/v1", bundle.group), "kind": "Thing", "metadata": {"name": "a"},
    });
    let created = ask(cluster, "POST", &path(&versions[0]), &object).await;
    assert!(created.status < 300, "{}", created.body);
    let read = ask(cluster, "GET", &path(versions.last().unwrap()), &Value::Null).await;
    read.status >= 300
}

/// A CRD with a conversion webhook that the ClusterServiceVersion does not list, and one version or two.
pub fn unlisted_conversion(name: &str, both: bool) -> Bundle {
    let mut bundle = plain(name);
    bundle
        .changes
        .retain(|(pointer, _)| *pointer != "/spec/customresourcedefinitions");
    let mut crd = bundle.crd();
    if both {
        let mut second = crd["spec"]["versions"][0].clone();
        second["name"] = "v2".into();
        second["storage"] = false.into();
        crd["spec"]["versions"].as_array_mut().unwrap().push(second);
    }
    crd["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"],
        "clientConfig": {"service": {"name": "of-the-author", "namespace": "elsewhere"}},
    }});
    bundle.definition = Some(crd);
    bundle
}
