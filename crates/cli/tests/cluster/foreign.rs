//! Objects with other owners are kept: definitions that existed before a package, custom resources of other users, and
//! objects whose name a command would use.

use kube::api::ListParams;
use kube_testbed::Options;
use serde_json::{Value, json};

use crate::bundle::Bundle;
use crate::harness::{Answer, Cluster, eventually};
use crate::late_pass;

const CRD: &str = "CustomResourceDefinition";

#[tokio::test]
async fn objects_of_others_are_kept() {
    let cluster = Cluster::start(Options::default().with_olm()).await;
    cluster.namespace("people").await;
    definition_stood_before(&cluster).await;
    cluster_objects_stood_before(&cluster).await;
    objects_of_others(&cluster).await;
    definition_of_olm(&cluster).await;
    catalog_of_others(&cluster).await;
    catalog_pod_of_others(&cluster).await;
    names_that_lead_elsewhere(&cluster).await;
    late_pass::followed_by_a_run(&cluster).await;
    late_pass::followed_by_a_cleanup(&cluster).await;
    late_pass::ends_during_a_cleanup(&cluster).await;
    late_pass::outlasts_a_cleanup(&cluster).await;
    late_pass::repeats_during_a_cleanup(&cluster).await;
}

/// A bundle with a copy of an existing definition, as of a well-known one.
async fn definition_stood_before(cluster: &Cluster) {
    cluster.scene("definition_stood_before");
    cluster.namespace("hostile").await;
    let mut bundle = Bundle::new("hostile", "1.0.0");
    cluster.apply("customresourcedefinitions", bundle.crd()).await;
    make_thing(cluster, "hostile", "people").await;
    let before = cluster.inventory().await;
    let directory = bundle.write(cluster.folder.path());

    let checked = cluster.run_bundle(&directory, "hostile", &["--check"]).await.fine();
    assert_eq!(checked.codes(), ["crd-already-exists"]);
    assert_eq!(checked.cause("crd-already-exists")["object"]["name"], bundle.crd_name());
    let installed = cluster.run_bundle(&directory, "hostile", &[]).await.fine();
    assert_eq!(installed.codes(), ["crd-already-exists"]);
    // A new version changes nothing about that.
    bundle.version = "2.0.0".into();
    cluster
        .upgrade(&bundle.write(cluster.folder.path()), "hostile")
        .await
        .fine();
    cluster.settled("hostile", "hostile.v2.0.0").await;

    let planned = cluster.cleanup("hostile", "hostile", &["--dry-run"]).await.fine();
    assert!(
        !names(&planned, "removed").contains(&bundle.crd_name()),
        "{}",
        planned.json
    );
    let cleaned = cluster.cleanup("hostile", "hostile", &[]).await.fine();
    assert_eq!(names(&cleaned, "kept"), [bundle.crd_name()]);
    assert!(
        why(&cleaned).contains("--delete-crds=things.hostile.example.com"),
        "{}",
        why(&cleaned)
    );
    assert!(
        thing(cluster, "hostile", "people").await.is_some(),
        "another owner's object was deleted"
    );
    cluster.nothing_left(&before).await;
    cluster.nothing_missing(&before).await;

    // The fix, literally. A name that is not the package's is an error.
    cluster.run_bundle(&directory, "hostile", &[]).await.fine();
    let mistaken = cluster
        .cleanup(
            "hostile",
            "hostile",
            &["--delete-crds=catalogsources.operators.coreos.com"],
        )
        .await;
    assert!(!mistaken.success);
    assert!(
        mistaken
            .stderr
            .contains("does not own that CRD; it owns things.hostile.example.com"),
        "{}",
        mistaken.stderr
    );
    assert_eq!(cluster.phase("hostile", "hostile.v1.0.0").await, "Succeeded");
    cluster
        .cleanup("hostile", "hostile", &["--delete-crds=things.hostile.example.com"])
        .await
        .fine();
    assert!(definition(cluster, &bundle.crd_name()).await.is_none());
}

/// A bundle with cluster-scoped objects of which some exist already.
async fn cluster_objects_stood_before(cluster: &Cluster) {
    cluster.scene("cluster_objects_stood_before");
    cluster.namespace("greedy").await;
    let role = |name: &str| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]})
    };
    let class = |name: &str| json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": 5});
    cluster.apply("clusterroles", role("team-reader")).await;
    cluster.apply("priorityclasses", class("team-critical")).await;
    let before = cluster.inventory().await;
    let mut bundle = Bundle::new("greedy", "1.0.0");
    bundle.extra = vec![
        role("team-reader"),
        class("team-critical"),
        role("greedy-reader"),
        class("greedy"),
    ];
    cluster
        .run_bundle(&bundle.write(cluster.folder.path()), "greedy", &[])
        .await
        .fine();
    // An upgrade writes everything again, so that all of it was there before.
    bundle.version = "2.0.0".into();
    cluster
        .upgrade(&bundle.write(cluster.folder.path()), "greedy")
        .await
        .fine();
    cluster.settled("greedy", "greedy.v2.0.0").await;
    let cleaned = cluster.cleanup("greedy", "greedy", &[]).await.fine();
    let mut kept = names(&cleaned, "kept");
    kept.sort();
    assert_eq!(kept, ["team-critical", "team-reader"]);
    cluster.nothing_missing(&before).await;
    cluster.nothing_left(&before).await;
}

/// The package created the definition, and other users use it by now.
async fn objects_of_others(cluster: &Cluster) {
    cluster.scene("objects_of_others");
    cluster.namespace("popular").await;
    let bundle = Bundle::new("popular", "1.0.0");
    let directory = bundle.write(cluster.folder.path());
    let installed = cluster.run_bundle(&directory, "popular", &[]).await.fine();
    assert!(installed.codes().is_empty(), "{:?}", installed.codes());
    make_thing(cluster, "popular", "popular").await;
    make_thing(cluster, "popular", "people").await;
    let cleaned = cluster.cleanup("popular", "popular", &[]).await.fine();
    assert_eq!(names(&cleaned, "kept"), [bundle.crd_name()]);
    assert!(
        why(&cleaned).contains("1 of its custom resources are outside namespace popular, such as Thing people/one"),
        "{}",
        why(&cleaned)
    );
    assert!(thing(cluster, "popular", "people").await.is_some());
    assert!(thing(cluster, "popular", "popular").await.is_some());
}

async fn definition_of_olm(cluster: &Cluster) {
    cluster.scene("definition_of_olm");
    cluster.namespace("usurper").await;
    let mut bundle = Bundle::new("usurper", "1.0.0");
    let mut stolen = bundle.crd();
    stolen["metadata"]["name"] = "things.operators.coreos.com".into();
    stolen["spec"]["group"] = "operators.coreos.com".into();
    bundle.extra = vec![stolen];
    let refused = cluster
        .run_bundle(&bundle.write(cluster.folder.path()), "usurper", &["--check"])
        .await;
    assert_eq!(refused.errors(), ["crd-owned-by-other"]);
}

async fn catalog_of_others(cluster: &Cluster) {
    cluster.scene("catalog_of_others");
    cluster.namespace("taken").await;
    let catalog = json!({"apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
        "metadata": {"name": "taken-catalog", "namespace": "taken", "labels": {"app.kubernetes.io/managed-by": "Helm"}},
        "spec": {"sourceType": "grpc", "address": "127.0.0.1:1", "displayName": "theirs", "publisher": "people"}});
    cluster.apply("catalogsources", catalog.clone()).await;
    let directory = Bundle::new("taken", "1.0.0").write(cluster.folder.path());
    for more in [&["--check"][..], &[]] {
        let refused = cluster.run_bundle(&directory, "taken", more).await;
        assert_eq!(refused.json["result"], "rejected");
        assert_eq!(refused.errors(), ["name-taken"]);
        assert!(
            refused.cause("name-taken")["message"]
                .as_str()
                .unwrap()
                .contains("Helm manages it")
        );
    }
    let found = cluster
        .get(
            "operators.coreos.com/v1alpha1",
            "CatalogSource",
            "catalogsources",
            Some("taken"),
            "taken-catalog",
        )
        .await
        .unwrap();
    assert_eq!(found["spec"], catalog["spec"]);
    cluster
        .carry_out(refused_remedy(cluster, &directory).await.as_str())
        .await;
    cluster.run_bundle(&directory, "taken", &[]).await.fine();
    cluster.cleanup("taken", "taken", &[]).await.fine();
}

async fn refused_remedy(cluster: &Cluster, directory: &std::path::Path) -> String {
    let refused = cluster.run_bundle(directory, "taken", &["--check"]).await;
    refused.cause("name-taken")["help"].as_str().unwrap().to_owned()
}

/// The names of a catalog that is served by a pod: owned by another tool, and by olmkit for another package with the
/// same shortened name.
async fn catalog_pod_of_others(cluster: &Cluster) {
    cluster.scene("catalog_pod_of_others");
    cluster.namespace("pods").await;
    let metadata = json!({"name": "a-b-catalog", "namespace": "pods"});
    let labels = json!({"app": "shop"});
    let mut map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"theirs": "yes"}});
    let service =
        json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": 80}]}});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "one", "image": "r.example.com/one:1"}]}},
    }});
    map["metadata"]["labels"] = json!({"app.kubernetes.io/managed-by": "olmkit", "olmkit.dev/package": "a-b"});
    cluster.apply("configmaps", map).await;
    cluster.apply("services", service).await;
    cluster.apply("deployments", deployment).await;
    // Their pod must not count as left behind.
    let pods = cluster.api("v1", "Pod", "pods", Some("pods"));
    eventually("their pod", async || {
        !pods.list(&ListParams::default()).await.unwrap().items.is_empty()
    })
    .await;
    let directory = Bundle::new("a.b", "1.0.0").write(cluster.folder.path());
    let before = cluster.inventory().await;
    for more in [
        &["--helper-image", "r.example.com/helper:1", "--check"][..],
        &["--helper-image", "r.example.com/helper:1"],
    ] {
        let refused = cluster.run_bundle(&directory, "pods", more).await;
        assert_eq!(refused.errors(), ["name-taken"; 3]);
        assert!(
            refused.json.to_string().contains("olmkit created it for package a-b"),
            "{}",
            refused.json
        );
        assert!(refused.json.to_string().contains("test created it"), "{}", refused.json);
    }
    cluster.nothing_left(&before).await;
    let map = cluster
        .get("v1", "ConfigMap", "configmaps", Some("pods"), "a-b-catalog")
        .await
        .unwrap();
    assert_eq!(map["data"], json!({"theirs": "yes"}));
}

/// A package's name cannot lead a request to another object.
async fn names_that_lead_elsewhere(cluster: &Cluster) {
    cluster.scene("names_that_lead_elsewhere");
    cluster.namespace("names").await;
    let before = cluster.inventory().await;
    let mut bundle = Bundle::new("names", "1.0.0");
    bundle.package = "../../people".into();
    bundle.file = "names".into();
    let refused = cluster
        .run_bundle(&bundle.write(cluster.folder.path()), "names", &[])
        .await;
    assert!(!refused.success);
    assert!(
        refused
            .stderr
            .contains(r#"package "../../people" cannot name objects of a cluster"#),
        "{}",
        refused.stderr
    );
    for arguments in [
        ["cleanup", "../../people"],
        ["subscribe", "../../people"],
        ["cleanup", "a\u{1b}[31m"],
    ] {
        let refused = cluster.olmkit(&[&arguments[..], &["-n", "names"]].concat()).await;
        assert!(!refused.success);
        assert!(
            refused.stderr.contains("cannot name objects of a cluster"),
            "{}",
            refused.stderr
        );
        assert!(!refused.stderr.contains('\u{1b}'), "{}", refused.stderr);
    }
    let refused = cluster.olmkit(&["diagnose", "-n", "names/../../nodes"]).await;
    assert!(!refused.success);
    assert!(
        refused.stderr.contains("cannot be the name of an object"),
        "{}",
        refused.stderr
    );
    cluster.nothing_left(&before).await;
}

async fn make_thing(cluster: &Cluster, package: &str, namespace: &str) {
    let api_version = format!("{package}.example.com/v1");
    let object =
        json!({"apiVersion": api_version, "kind": "Thing", "metadata": {"name": "one", "namespace": namespace}});
    cluster.serves(&api_version, "things").await;
    cluster.apply("things", object).await;
}

async fn thing(cluster: &Cluster, package: &str, namespace: &str) -> Option<Value> {
    let api_version = format!("{package}.example.com/v1");
    cluster
        .get(&api_version, "Thing", "things", Some(namespace), "one")
        .await
}

async fn definition(cluster: &Cluster, name: &str) -> Option<Value> {
    cluster
        .get("apiextensions.k8s.io/v1", CRD, "customresourcedefinitions", None, name)
        .await
}

/// The names of the objects that a cleanup removed or kept.
pub fn names(answer: &Answer, list: &str) -> Vec<String> {
    let objects = answer.json[list].as_array().unwrap().iter();
    let name = |object: &Value| object.pointer("/object/name").or(object.get("name")).cloned();
    objects
        .filter_map(|object| name(object)?.as_str().map(str::to_owned))
        .collect()
}

/// Why the first object was kept.
fn why(answer: &Answer) -> &str {
    answer.json["kept"][0]["why"].as_str().unwrap()
}
