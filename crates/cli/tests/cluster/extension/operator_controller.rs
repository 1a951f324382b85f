//! The commands with the real operator-controller and the real catalogd: install, upgrade, a blocked change of a CRD,
//! and removal with an existing custom resource. Runs if OPERATOR_CONTROLLER names the binary.

use std::fs;
use std::path::{Path, PathBuf};

use olmkit::catalog::{model::Blob, render, write};
use serde_json::{Value, json};

use super::recorded::GROUP;
use super::site::{Channel, NAMESPACE, PACKAGE, Site};
use crate::harness::eventually;

#[tokio::test]
async fn operator_controller_installs_upgrades_refuses_and_removes() {
    let Some(site) = Site::start(Channel::Standard).await else {
        return;
    };
    let before = site.cluster.inventory().await;
    installed(&site).await;
    upgraded(&site).await;
    refused(&site).await;
    removed(&site).await;
    site.cluster.nothing_left(&before).await;
}

async fn installed(site: &Site) {
    let old = test_support::repository("releases/0.0.1/bundle");
    site.cluster
        .scene("a registry that cannot be reached from there is explained");
    let unreachable = ["--pull-from", "localhost:1/e2e", "--timeout", "60s"];
    let failed = site.run_bundle(&old, &unreachable).await;
    assert_eq!(failed.codes(), ["catalog-image-pull"]);
    assert!(
        failed.cause("catalog-image-pull")["help"]
            .as_str()
            .unwrap()
            .contains("--pull-from")
    );

    site.cluster.scene("the first version is installed");
    let installed = site.run_bundle(&old, &[]).await.fine();
    assert_eq!(installed.json["result"], "succeeded");
    let extension = site.extension().await.unwrap();
    assert_eq!(extension["status"]["install"]["bundle"]["version"], "0.0.1");
    let again = site.run_bundle(&old, &[]).await.fine();
    assert_eq!(again.json["result"], "already-installed");
    let status = site
        .olmkit(&["extension", "status", PACKAGE, "-o", "json"])
        .await
        .fine();
    let status = &status.json[0];
    assert_eq!(status["bundle"], "memcached-operator.v0.0.1");
    assert_eq!(status["catalogs"][0]["serving"], true);
    assert!(status["deployments"][0]["replicas"].is_u64(), "{status}");
    assert_eq!(
        status["deployments"][0]["available"],
        status["deployments"][0]["replicas"]
    );
    assert_eq!(status["definitions"], json!(["memcacheds.cache.example.com"]));
    site.olmkit(&["diagnose", "-n", NAMESPACE, "-o", "json"]).await.fine();
}

async fn upgraded(site: &Site) {
    site.cluster.scene("the newest version takes its place");
    let new = test_support::repository("bundle");
    let other = site.run_bundle(&new, &[]).await;
    assert_eq!(other.codes(), ["other-version-installed"]);
    let upgraded = site.upgrade(&new).await.fine();
    assert_eq!(upgraded.json["result"], "succeeded");
    let extension = site.extension().await.unwrap();
    assert_eq!(extension["status"]["install"]["bundle"]["version"], "0.1.0");
}

/// A version whose CRD is stricter than the one before, as a local bundle and in a third-party catalog.
async fn refused(site: &Site) {
    let broken = site.broken();
    site.cluster
        .scene("a definition that objects may not fit is refused before anything is changed");
    let before = site.extension().await.unwrap()["metadata"]["generation"].clone();
    let refused = site.upgrade(&broken).await;
    assert_eq!(refused.codes(), ["crd-unsafe"]);
    assert_eq!(site.extension().await.unwrap()["metadata"]["generation"], before);

    site.cluster.scene("and by operator-controller, which is explained");
    site.people(&broken).await;
    let arguments = |catalog: &'static str, version: &'static str| {
        [
            "extension",
            "install",
            PACKAGE,
            "-n",
            NAMESPACE,
            "--catalog",
            catalog,
            "--version",
            version,
            "-o",
            "json",
            "--timeout",
            "90s",
        ]
    };
    let ambiguous = ["extension", "install", "another", "-n", NAMESPACE, "-o", "json"];
    assert_eq!(site.olmkit(&ambiguous).await.codes(), ["catalog-ambiguous"]);
    let failed = site.olmkit(&arguments("people", "0.2.0")).await;
    let cause = failed.cause("crd-unsafe");
    let message = cause["message"].as_str().unwrap();
    assert!(
        message.contains("validating upgrade for CRD \"memcacheds.cache.example.com\""),
        "{message}"
    );
    let diagnosed = site.olmkit(&["diagnose", PACKAGE, "-n", NAMESPACE, "-o", "json"]).await;
    assert!(diagnosed.stdout.contains("crd-unsafe"), "{}", diagnosed.stdout);
    let compared = site.olmkit(&["extension", "diff", PACKAGE, "--version", "0.2.0"]).await;
    assert!(!compared.success);
    for part in [
        "memcached-operator.v0.1.0 (0.1.0) -> memcached-operator.v0.2.0 (0.2.0) from ClusterCatalog people",
        "V1-13",
    ] {
        assert!(
            compared.stdout.contains(part),
            "{part}: {}\n{}",
            compared.stdout,
            compared.stderr
        );
    }

    site.cluster.scene("back to what is installed");
    let back = site
        .olmkit(&arguments("memcached-operator-catalog", "0.1.0"))
        .await
        .fine();
    assert_eq!(back.json["bundle"], "memcached-operator.v0.1.0");
    let newest = site.olmkit(&["extension", "diff", PACKAGE]).await.fine();
    assert!(
        newest.stdout.contains("is already the newest version offered"),
        "{}",
        newest.stdout
    );
    site.cluster
        .delete(GROUP, "ClusterCatalog", "clustercatalogs", None, "people")
        .await;
}

async fn removed(site: &Site) {
    site.cluster
        .scene("an object that its operator does not finish keeps everything where it is");
    let object = json!({"apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached",
        "metadata": {"name": "one", "namespace": NAMESPACE, "finalizers": ["cache.example.com/finalizer"]}, "spec": {}});
    site.cluster.apply("memcacheds", object).await;
    let planned = site
        .olmkit(&["extension", "uninstall", PACKAGE, "--dry-run", "-o", "json"])
        .await
        .fine();
    assert!(planned.stdout.contains("Memcached"), "{}", planned.stdout);
    let blocked = site
        .olmkit(&["extension", "uninstall", PACKAGE, "-o", "json", "--timeout", "5s"])
        .await;
    assert!(!blocked.success);
    let cause = blocked.cause("custom-resource-deletion-blocked").clone();
    assert!(
        cause["message"]
            .as_str()
            .unwrap()
            .contains("cache.example.com/finalizer")
    );
    let extension = site.extension().await.unwrap();
    assert_eq!(
        extension["metadata"]["deletionTimestamp"],
        Value::Null,
        "the operator must stay to finish it"
    );

    site.cluster.scene("when it is free, everything goes, the catalog too");
    site.cluster.carry_out(cause["help"].as_str().unwrap()).await;
    let cleaned = site
        .olmkit(&["cleanup", PACKAGE, "--olm", "v1", "-o", "json"])
        .await
        .fine();
    assert_eq!(cleaned.json["kept"], json!([]));
    for kind in [
        "ClusterExtension",
        "ClusterCatalog",
        "CustomResourceDefinition",
        "Deployment",
    ] {
        assert!(
            cleaned.json["removed"].to_string().contains(&format!("\"{kind}\"")),
            "{kind}: {}",
            cleaned.stdout
        );
    }
    let nothing = site.olmkit(&["cleanup", PACKAGE, "--olm", "v1"]).await.fine();
    assert!(
        nothing.stdout.contains("package memcached-operator is not installed"),
        "{}",
        nothing.stdout
    );
}

impl Site {
    /// The newest bundle as version 0.2.0, with a definition that allows less.
    fn broken(&self) -> PathBuf {
        let from = test_support::repository("bundle");
        let to = self.cluster.folder.path().join("broken");
        for part in ["manifests", "metadata"] {
            fs::create_dir_all(to.join(part)).unwrap();
            for entry in fs::read_dir(from.join(part)).unwrap() {
                let entry = entry.unwrap();
                let text = fs::read_to_string(entry.path()).unwrap();
                let name = entry.file_name().into_string().unwrap();
                let text = match name.as_str() {
                    "memcached-operator.clusterserviceversion.yaml" => text
                        .replace("memcached-operator.v0.1.0", "memcached-operator.v0.2.0")
                        .replace("\n  version: 0.1.0\n", "\n  version: 0.2.0\n"),
                    "cache.example.com_memcacheds.yaml" => {
                        let mut crd: Value = serde_yaml::from_str(&text).unwrap();
                        let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
                        crd.pointer_mut(schema).unwrap()["required"] = json!(["size"]);
                        serde_yaml::to_string(&crd).unwrap()
                    }
                    _ => text,
                };
                fs::write(to.join(part).join(name), text).unwrap();
            }
        }
        to
    }

    /// A third-party catalog with the newest version and that one.
    async fn people(&self, broken: &Path) {
        let image = format!("{}/broken:v0.2.0", self.repository());
        let tags = [
            "image",
            "build",
            "bundle",
            broken.to_str().unwrap(),
            "--tag",
            &image,
            "--output",
            "push",
        ];
        self.olmkit(&tags).await.fine();
        let extension = self.extension().await.unwrap();
        let conditions = extension["status"]["conditions"].as_array().unwrap().clone();
        let installed = conditions.iter().find(|one| one["type"] == "Installed").unwrap()["message"]
            .as_str()
            .unwrap();
        let newest = installed
            .trim_start_matches("Installed bundle ")
            .trim_end_matches(" successfully");
        let mut text = format!(
            "{}\n{}\n",
            json!({"schema": "olm.package", "name": PACKAGE, "defaultChannel": "alpha"}),
            json!({"schema": "olm.channel", "package": PACKAGE, "name": "alpha", "entries": [
                {"name": "memcached-operator.v0.1.0"},
                {"name": "memcached-operator.v0.2.0", "replaces": "memcached-operator.v0.1.0"}]}),
        );
        for (folder, image) in [(test_support::repository("bundle").as_path(), newest), (broken, &image)] {
            let rendered = render::bundle::directory(folder, image).unwrap();
            write::blob(&Blob::Bundle(rendered), write::Format::Json, &mut text).unwrap();
        }
        let file = self.cluster.folder.path().join("catalog.json");
        fs::write(&file, text).unwrap();
        let catalog = format!("{}/people:v1", self.repository());
        let add = format!("{}:/configs/catalog.json", file.display());
        let label = "operators.operatorframework.io.index.configs.v1=/configs";
        let build = [
            "image", "build", "files", "--add", &add, "--label", label, "--tag", &catalog, "--output", "push",
        ];
        self.olmkit(&build).await.fine();
        let object = json!({"apiVersion": GROUP, "kind": "ClusterCatalog",
            "metadata": {"name": "people", "labels": {"olm.operatorframework.io/metadata.name": "people"}},
            "spec": {"source": {"type": "Image", "image": {"ref": catalog}}}});
        self.cluster.apply("clustercatalogs", object).await;
        eventually("the catalog is served", async || {
            let catalog = self
                .cluster
                .get(GROUP, "ClusterCatalog", "clustercatalogs", None, "people")
                .await
                .unwrap();
            let conditions = catalog["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions
                .iter()
                .any(|one| one["type"] == "Serving" && one["status"] == "True")
        })
        .await;
    }
}
