//! The definitions of OLM v1, from its Go module.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::harness::{Cluster, eventually};

/// CRD directory of operator-controller's module, if it is on this machine.
pub fn folder() -> Option<PathBuf> {
    let module = "github.com/operator-framework/operator-controller";
    let output = Command::new("go")
        .args(["list", "-m", "-f", "{{.Dir}}", module])
        .current_dir(test_support::repository("dev/tools/cluster"))
        .env("GOPROXY", "off")
        .env("GOWORK", "off")
        .output()
        .ok()?;
    let folder = String::from_utf8(output.stdout).ok()?;
    let folder = Some(folder.trim()).filter(|folder| !folder.is_empty())?;
    Some(PathBuf::from(folder).join("helm/olmv1/base"))
}

/// Defines ClusterCatalogs and ClusterExtensions as the standard manifests do. Prints a line and returns `false` if the
/// module is missing.
pub async fn standard(cluster: &Cluster) -> bool {
    let Some(folder) = folder() else {
        println!("skipped: the module of operator-controller is not there; `dev/tools/build.sh catalogd` fetches it");
        return false;
    };
    let files = [
        "catalogd/crd/standard/olm.operatorframework.io_clustercatalogs.yaml",
        "operator-controller/crd/standard/olm.operatorframework.io_clusterextensions.yaml",
    ];
    for file in files {
        define(cluster, &folder.join(file)).await;
    }
    true
}

/// ClusterExtensions as the experimental manifests define them, with `spec.config`, and the revisions that they become.
pub async fn experimental(cluster: &Cluster) {
    for plural in ["clusterextensions", "clusterobjectsets"] {
        let file = format!("operator-controller/crd/experimental/olm.operatorframework.io_{plural}.yaml");
        define(cluster, &folder().unwrap().join(file)).await;
    }
}

/// ClusterExtensions without the obligation to state `spec.namespace`, as from OLM v1 1.12 on.
pub async fn optional_namespace(cluster: &Cluster) {
    let file = folder()
        .unwrap()
        .join("operator-controller/crd/standard/olm.operatorframework.io_clusterextensions.yaml");
    let mut definition = read(&file);
    let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let required = schema["properties"]["spec"]["required"].as_array_mut().unwrap();
    let before = required.len();
    required.retain(|name| name != "namespace");
    assert_eq!(required.len() + 1, before, "{}", file.display());
    apply(cluster, definition).await;
}

/// Applies the CustomResourceDefinition of a file and waits until it is served.
pub async fn define(cluster: &Cluster, file: &Path) {
    apply(cluster, read(file)).await;
}

fn read(file: &Path) -> Value {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    serde_yaml::from_str(&text).unwrap()
}

async fn apply(cluster: &Cluster, definition: Value) {
    let name = definition["metadata"]["name"].as_str().unwrap().to_owned();
    cluster.apply("customresourcedefinitions", definition).await;
    eventually("the definition is established", async || {
        let definition = cluster
            .get(
                "apiextensions.k8s.io/v1",
                "CustomResourceDefinition",
                "customresourcedefinitions",
                None,
                &name,
            )
            .await
            .unwrap();
        let conditions = definition["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        conditions
            .iter()
            .any(|condition| condition["type"] == "Established" && condition["status"] == "True")
    })
    .await;
}
