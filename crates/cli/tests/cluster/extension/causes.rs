//! Each cause that operator-controller and catalogd were observed to write, on the real API server, as reported by
//! `extension status`, `diagnose` and the commands.

use kube_testbed::Options;
use serde_json::{Value, json};

use super::definitions;
use super::recorded::{
    CATALOGS, EXTENSIONS, GROUP, appears, condition, get, make_objects, serve, succeed, write_status,
};
use crate::bundle::Bundle;
use crate::harness::Cluster;

const NAMESPACE: &str = "shop";

#[tokio::test]
async fn conditions_of_olm_v1_are_explained() {
    let cluster = Cluster::start(Options::default().unavailable_image("registry.example.com/first:0.0.1")).await;
    cluster.namespace(NAMESPACE).await;
    cluster.scene("a cluster without OLM v1");
    let refused = install(&cluster, &[]).await;
    assert_eq!(refused.codes(), ["olm-not-installed"]);
    if !definitions::standard(&cluster).await {
        return;
    }
    catalogs(&cluster).await;
    before_anything_is_made(&cluster).await;
    each_condition(&cluster).await;
    too_early(&cluster).await;
    foreign(&cluster).await;
}

async fn install(cluster: &Cluster, more: &[&str]) -> crate::harness::Answer {
    let mut arguments = vec!["extension", "install", "first", "-o", "json"];
    if !more.contains(&"-n") {
        arguments.extend(["-n", NAMESPACE]);
    }
    arguments.extend(more);
    cluster.olmkit(&arguments).await
}

async fn catalog(cluster: &Cluster, name: &str) {
    let object = json!({"apiVersion": GROUP, "kind": "ClusterCatalog",
        "metadata": {"name": name, "labels": {"olm.operatorframework.io/metadata.name": name}},
        "spec": {"source": {"type": "Image", "image": {"ref": format!("registry.test/{name}:v1")}}}});
    cluster.apply("clustercatalogs", object).await;
}

async fn catalogs(cluster: &Cluster) {
    cluster.scene("catalogs that are not served");
    assert_eq!(install(cluster, &[]).await.codes(), ["catalog-missing"]);
    catalog(cluster, "ours").await;
    let diagnosed = cluster.olmkit(&["diagnose", "-n", NAMESPACE, "-o", "json"]).await;
    assert_eq!(
        diagnosed.json[0]["causes"][0]["code"], "olm-idle",
        "{}",
        diagnosed.stdout
    );
    let found = get(cluster, CATALOGS, "ours").await.unwrap();
    for (message, code, way_out) in [
        (
            "source catalog content: error creating image source: pinging container registry registry.test: Get \"https://registry.test/v2/\": tls: failed to verify certificate: x509: certificate signed by unknown authority",
            "catalog-image-pull",
            "--pull-cas-dir",
        ),
        (
            "source catalog content: error creating image source: reading manifest v1 in registry.test/ours: unauthorized: authentication required",
            "catalog-image-pull",
            "--global-pull-secret",
        ),
        (
            "source catalog content: catalog image is missing the required label \"operators.operatorframework.io.index.configs.v1\"",
            "catalog-invalid",
            "olmkit image build catalog",
        ),
    ] {
        let conditions = json!([condition(&found, "Progressing", "True", "Retrying", message)]);
        write_status(cluster, CATALOGS, "ours", json!({"conditions": conditions})).await;
        let diagnosed = cluster.olmkit(&["diagnose", "-n", NAMESPACE, "-o", "json"]).await;
        let cause = &diagnosed.json[0]["causes"][0];
        assert_eq!(cause["code"], code, "{}", diagnosed.stdout);
        assert!(cause["help"].as_str().unwrap().contains(way_out), "{cause}");
    }
    serve(cluster, "ours").await;
    let well = cluster
        .olmkit(&["diagnose", "-n", NAMESPACE, "-o", "json"])
        .await
        .fine();
    assert_eq!(well.json, json!([]));
}

async fn before_anything_is_made(cluster: &Cluster) {
    cluster.scene("checks fail before anything is created");
    let before = cluster.inventory().await;
    assert_eq!(
        install(cluster, &["-n", "nowhere"]).await.codes(),
        ["namespace-missing"]
    );
    assert_eq!(
        install(cluster, &["--catalog", "theirs"]).await.codes(),
        ["catalog-missing"]
    );
    assert_eq!(
        install(cluster, &["--install-mode", "OwnNamespace"]).await.codes(),
        ["install-mode-unsupported"]
    );
    let mut own = Bundle::new("own", "0.0.1");
    own.modes = vec!["OwnNamespace"];
    let mut needy = Bundle::new("needy", "0.0.1");
    needy.required = vec![
        json!({"name": "others.example.com", "version": "v1", "kind": "Other", "displayName": "O", "description": "O."}),
    ];
    for (bundle, codes) in [(&own, ["bundle-rejected"]), (&needy, ["dependency-unsupported"])] {
        let directory = bundle.write(cluster.folder.path());
        let answer = cluster
            .run_bundle(&directory, NAMESPACE, &["--olm", "v1", "--check"])
            .await;
        assert_eq!(answer.codes(), codes);
    }
    let planned = cluster
        .olmkit(&[
            "extension",
            "install",
            "first",
            "-n",
            NAMESPACE,
            "--version",
            ">=0.1, <1",
            "--channels",
            "stable",
            "--dry-run",
        ])
        .await
        .fine();
    let manifest: Value = serde_yaml::from_str(&planned.stdout).unwrap();
    assert_eq!(
        manifest["spec"]["source"]["catalog"],
        json!({"packageName": "first", "version": ">=0.1, <1", "channels": ["stable"],
            "selector": {"matchLabels": {"olm.operatorframework.io/metadata.name": "ours"}}})
    );
    assert_eq!(cluster.inventory().await, before);
    cluster.scene("a definition of another user");
    let first = Bundle::new("first", "0.0.1");
    cluster.apply("customresourcedefinitions", first.crd()).await;
    let directory = first.write(cluster.folder.path());
    let answer = cluster
        .run_bundle(&directory, NAMESPACE, &["--olm", "v1", "--check"])
        .await;
    assert_eq!(answer.codes(), ["crd-owned-by-other"]);
    let definitions = (
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
    );
    cluster
        .delete(definitions.0, definitions.1, definitions.2, None, &first.crd_name())
        .await;
}

async fn each_condition(cluster: &Cluster) {
    cluster.scene("each condition that was recorded");
    let never = install(cluster, &["--timeout", "1s"]).await;
    assert_eq!(never.codes(), ["olm-idle"]);
    let extension = get(cluster, EXTENSIONS, "first").await.unwrap();
    for (status, reason, message, code) in RECORDED {
        let conditions = json!([condition(&extension, "Progressing", status, reason, message)]);
        write_status(cluster, EXTENSIONS, "first", json!({"conditions": conditions})).await;
        let looked = cluster.olmkit(&["extension", "status", "first", "-o", "json"]).await;
        assert!(!looked.success);
        let causes = looked.json[0]["causes"].as_array().unwrap();
        assert_eq!(causes.len(), 1, "{message}: {causes:#?}");
        assert_eq!(causes[0]["code"], *code, "{message}");
        assert!(!causes[0]["help"].as_str().unwrap().is_empty());
    }
    cluster.scene("a lasting cause ends the wait");
    let conditions = json!([condition(
        &extension,
        "Progressing",
        "False",
        "InvalidConfiguration",
        RECORDED[0].2
    )]);
    write_status(cluster, EXTENSIONS, "first", json!({"conditions": conditions})).await;
    let ended = install(cluster, &["--timeout", "60s"]).await;
    assert_eq!(ended.json["result"], "failed");
    assert_eq!(ended.codes(), ["configuration-invalid"]);
}

/// Status, reason and message of `Progressing`, as operator-controller 1.11 was seen to write them, and the code of the cause.
const RECORDED: &[(&str, &str, &str, &str)] = &[
    (
        "False",
        "InvalidConfiguration",
        "invalid ClusterExtension configuration: invalid configuration: required field \"watchNamespace\" is missing",
        "configuration-invalid",
    ),
    (
        "True",
        "Retrying",
        "no bundles found for package \"first\" matching version \"9.9.9\" in channels [stable]",
        "package-not-found",
    ),
    (
        "True",
        "Retrying",
        "error upgrading from currently installed version \"0.1.0\": no bundles found for package \"first\" matching version \"0.0.1\"",
        "upgrade-not-offered",
    ),
    (
        "True",
        "Retrying",
        "validating bundle \"first.v0.0.1\": bundle \"first.v0.0.1\" has a dependency declared via property \"olm.gvk.required\" which is currently not supported",
        "dependency-unsupported",
    ),
    (
        "True",
        "Retrying",
        "unsupported bundle: bundle does not support AllNamespaces install mode",
        "install-mode-unsupported",
    ),
    (
        "True",
        "Retrying",
        "unsupported bundle: bundle must support at least one of [AllNamespaces SingleNamespace OwnNamespace] install modes",
        "install-mode-unsupported",
    ),
    (
        "True",
        "Retrying",
        "unsupported bundle: apiServiceDefintions are not supported",
        "bundle-rejected",
    ),
    (
        "True",
        "Retrying",
        "namespaces \"elsewhere\" not found",
        "namespace-missing",
    ),
    (
        "True",
        "Retrying",
        "CustomResourceDefinition 'things.first.example.com' already exists in namespace '' and cannot be managed by operator-controller",
        "crd-owned-by-other",
    ),
    (
        "True",
        "Retrying",
        "validating upgrade for CRD \"things.first.example.com\":\nv1: ^.spec: required: new required fields [size] added",
        "crd-unsafe",
    ),
    (
        "True",
        "Retrying",
        "unable to build kubernetes objects: [resource mapping not found: no matches for kind \"Certificate\" in version \"cert-manager.io/v1\"",
        "requirement-api-missing",
    ),
    (
        "True",
        "Retrying",
        "metadata.ownerReferences: Invalid value: Only one reference can have Controller set to true",
        "crd-terminating",
    ),
    (
        "True",
        "RollingOut",
        "Revision 1.0.0 is rolling out.",
        "rollout-unfinished",
    ),
];

async fn too_early(cluster: &Cluster) {
    cluster.scene("OLM v1 reports Succeeded before the operator runs");
    let first = Bundle::new("first", "0.0.1");
    make_objects(cluster, "first", NAMESPACE, &first).await;
    succeed(cluster, "first", &first, "registry.test/first@sha256:1").await;
    let failed = install(cluster, &["--timeout", "60s"]).await;
    assert_eq!(failed.codes(), ["operator-image-pull"]);
    let looked = cluster.olmkit(&["extension", "status", "first"]).await;
    assert!(!looked.success);
    for part in [
        "ClusterExtension first (package first, namespace shop): first.v0.0.1 is installed",
        "Deployment first-manager: 0 of 1 available",
        "catalog ours: served",
        "CRD things.first.example.com",
        "error[operator-image-pull]",
    ] {
        assert!(looked.stdout.contains(part), "{part}: {}", looked.stdout);
    }
    let next = Bundle::new("first", "0.0.2");
    make_objects(cluster, "first", NAMESPACE, &next).await;
    succeed(cluster, "first", &next, "registry.test/first@sha256:2").await;
    let installed = install(cluster, &["--timeout", "60s"]).await.fine();
    assert_eq!(installed.json["bundle"], "first.v0.0.2");
    cluster.scene("a second catalog makes a selector necessary");
    catalog(cluster, "theirs").await;
    serve(cluster, "theirs").await;
    let wide = cluster
        .olmkit(&[
            "extension",
            "install",
            "first",
            "-n",
            NAMESPACE,
            "--any-catalog",
            "--timeout",
            "1s",
            "-o",
            "json",
        ])
        .await;
    assert!(wide.codes().contains(&"selector-missing"), "{}", wide.stdout);
}

async fn foreign(cluster: &Cluster) {
    cluster.scene("objects of other owners are kept");
    let removed = cluster
        .olmkit(&["cleanup", "first", "--olm", "v1", "-o", "json"])
        .await
        .fine();
    assert!(
        removed.json["removed"].to_string().contains("ClusterExtension"),
        "{}",
        removed.stdout
    );
    let theirs = json!({"apiVersion": GROUP, "kind": "ClusterExtension", "metadata": {"name": "first"},
        "spec": {"namespace": NAMESPACE, "source": {"sourceType": "Catalog", "catalog": {"packageName": "first"}}}});
    cluster.apply("clusterextensions", theirs).await;
    catalog(cluster, "first-catalog").await;
    assert_eq!(install(cluster, &["--catalog", "ours"]).await.codes(), ["name-taken"]);
    let directory = Bundle::new("first", "0.0.1").write(cluster.folder.path());
    let answer = cluster.run_bundle(&directory, NAMESPACE, &["--olm", "v1"]).await;
    assert_eq!(answer.codes(), ["name-taken", "name-taken"]);
    let kept = cluster
        .olmkit(&["cleanup", "first", "--olm", "v1", "-o", "json"])
        .await
        .fine();
    assert_eq!(kept.json["removed"], json!([]));
    let kinds: Vec<&str> = kept.json["kept"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["object"]["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["ClusterExtension", "ClusterCatalog"]);
    assert!(kept.stdout.contains("test created it"), "{}", kept.stdout);
    cluster.scene("the CRD is deleted on request");
    cluster
        .olmkit(&["extension", "uninstall", "first", "-o", "json"])
        .await
        .fine();
    assert_eq!(get(cluster, EXTENSIONS, "first").await, None);

    cluster.scene("with the experimental definitions an operator watches one namespace");
    definitions::experimental(cluster).await;
    serve(cluster, "ours").await;
    let own = install(
        cluster,
        &["--catalog", "ours", "--install-mode", "OwnNamespace", "--timeout", "1s"],
    )
    .await;
    assert_eq!(own.codes(), ["olm-idle"]);
    let extension = appears(cluster, EXTENSIONS, "first", |_| true).await;
    assert_eq!(
        extension["spec"]["config"],
        json!({"configType": "Inline", "inline": {"watchNamespace": NAMESPACE}})
    );
}
