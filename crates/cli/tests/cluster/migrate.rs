//! `migrate`: results for operators that the real OLM has installed, and the API server's answers to the planned
//! objects.

use kube::api::{ListParams, Patch, PatchParams};
use kube_testbed::Options;
use serde_json::{Value, json};

use olmkit_cluster::rights::{Command, Place};

use crate::bundle::Bundle;
use crate::catalogd;
use crate::extension::definitions;
use crate::extension::recorded::{CATALOGS, condition, get, write_status};
use crate::harness::{Cluster, eventually};
use crate::offered;
use crate::rights::{ACCOUNTS, grant, text as text_of};

/// Namespace of operators that watch all namespaces.
const EVERYWHERE: &str = "moving";
/// Namespace of an operator that watches only this one.
const OWN: &str = "staying";

const OLM: &str = "operators.coreos.com/v1alpha1";

#[tokio::test]
async fn subscriptions_are_checked_and_planned_and_nothing_is_changed() {
    let cluster = Cluster::start(Options::default().with_olm()).await;
    cluster.namespace(EVERYWHERE).await;
    cluster.namespace(OWN).await;
    cluster.scene("nothing is subscribed");
    assert_eq!(check(&cluster, &[]), (0, json!([])));

    cluster.scene("catalogs without images, dependencies, permissions for OLM's API, other install modes");
    let first_one = Bundle::new("first", "0.0.1");
    let mut second = Bundle::new("second", "0.0.1");
    second.required = vec![
        json!({"name": "things.first.example.com", "version": "v1", "kind": "Thing",
        "displayName": "Thing", "description": "A thing."}),
    ];
    second.cluster_rules =
        vec![json!({"apiGroups": ["operators.coreos.com"], "resources": ["subscriptions"], "verbs": ["get"]})];
    let mut third = Bundle::new("third", "0.0.1");
    third.modes = vec!["OwnNamespace"];
    let (address, _) = offered::bundles(&cluster, &[&first_one, &second, &third]).await;
    // OLM subscribes to the first one, which the second requires.
    install(&cluster, (&second, "AllNamespaces"), EVERYWHERE, &address).await;
    cluster.settled(EVERYWHERE, "first.v0.0.1").await;
    install(&cluster, (&third, "OwnNamespace"), OWN, &address).await;
    let before = cluster.inventory().await;
    eventually("the state of each Subscription is steady", async || {
        !check(&cluster, &[]).1.to_string().contains("\"C8\"")
    })
    .await;
    let (code, found) = check(&cluster, &[]);
    assert_eq!(code, 1);
    let expected = [
        ("first", vec!["C9", "C10"]),
        ("second", vec!["C2", "C5", "C10"]),
        ("third", vec!["C1", "C1a", "C10"]),
    ];
    let of_all: Vec<_> = found.as_array().unwrap().iter().map(verdict).collect();
    let expected = expected.map(|(package, ids)| (package, "ineligible", ids));
    assert_eq!(of_all, expected, "{found:#}");
    let message = found[1]["obstacles"][0]["message"].as_str().unwrap();
    assert!(message.contains("(required CRDs, olm.gvk.required)"), "{message}");
    let (_, own) = check(&cluster, &["-n", OWN]);
    assert_eq!(own, json!([found[2]]));
    let (objects, said) = plan(&cluster, &["-n", EVERYWHERE]);
    assert_eq!(objects, Vec::<Value>::new());
    assert_eq!(said.matches("is omitted: it cannot move").count(), 2, "{said}");
    assert!(said.contains("nothing to move"), "{said}");
    assert_eq!(cluster.inventory().await, before);

    cluster.scene("from a catalog image, and wanted for itself, it can move");
    let subscription = subscription(&cluster, "first").await;
    let [name, source, home] = ["/metadata/name", "/spec/source", "/spec/sourceNamespace"]
        .map(|pointer| subscription.pointer(pointer).unwrap().as_str().unwrap().to_owned());
    let image = json!({"spec": {"image": "registry.test/catalog:v1", "priority": 3,
        "updateStrategy": {"registryPoll": {"interval": "90m"}}}});
    patch(
        &cluster,
        (OLM, "CatalogSource", "catalogsources"),
        &home,
        &source,
        &image,
    )
    .await;
    assert_eq!(first(&cluster), ("ineligible".into(), vec!["C9".into()]));
    let kept = json!({"metadata": {"annotations": {"olm.generated-by": null}}});
    let kind = (OLM, "Subscription", "subscriptions");
    patch(&cluster, kind, EVERYWHERE, &name, &kept).await;
    assert_eq!(first(&cluster), ("eligible".into(), vec![]));
    let (objects, said) = plan(&cluster, &["-n", EVERYWHERE]);
    let [catalog, extension] = objects.as_slice() else {
        panic!("{objects:?}")
    };
    assert_eq!(
        catalog["spec"],
        json!({"priority": 3, "source": {"type": "Image", "image": {"ref": "registry.test/catalog:v1", "pollIntervalMinutes": 90}}})
    );
    let mut wanted = json!({"packageName": "first", "channels": ["alpha"], "upgradeConstraintPolicy": "CatalogProvided",
        "selector": {"matchLabels": {"olm.operatorframework.io/metadata.name": source}}});
    if subscription["spec"]["installPlanApproval"] == "Manual" {
        wanted["version"] = json!("0.0.1");
    }
    assert_eq!(
        extension["spec"],
        json!({"namespace": EVERYWHERE, "source": {"sourceType": "Catalog", "catalog": wanted}})
    );
    assert_eq!(said.matches("note:").count(), 1, "only the second is left out: {said}");

    cluster.scene("conditions that the operator reports ask for consent");
    let conditions = json!({"spec": {"conditions": [{"type": "Upgradeable", "status": "True", "reason": "Fine",
        "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    let kind = ("operators.coreos.com/v2", "OperatorCondition", "operatorconditions");
    patch(&cluster, kind, EVERYWHERE, "first.v0.0.1", &conditions).await;
    eventually("OLM takes the conditions over", async || {
        first(&cluster) == ("needsConsent".into(), vec!["C4".into()])
    })
    .await;

    cluster.scene("OLM v1 admits what is planned, its configuration with the experimental definitions only");
    let config = json!({"spec": {"config": {"env": [{"name": "A", "value": "b"}]}}});
    if !definitions::standard(&cluster).await {
        return;
    }
    for object in [catalog, extension] {
        assert_eq!(admitted(&cluster, object).await, Ok(()), "{object}");
    }
    assert_eq!(first(&cluster), ("ineligible".into(), vec!["C4".into(), "C7".into()]));
    cluster.apply("clustercatalogs", catalog.clone()).await;
    let (verdict, said) = seventh(&cluster, &[]);
    assert_eq!(verdict, "needsConsent");
    assert!(
        said.ends_with(&format!("ClusterCatalog {source}: it is not served yet")),
        "{said}"
    );
    asked(&cluster, &source).await;
    cluster.delete(CATALOGS.0, CATALOGS.1, CATALOGS.2, None, &source).await;
    assert_eq!(first(&cluster), ("ineligible".into(), vec!["C4".into(), "C7".into()]));
    let kind = (OLM, "Subscription", "subscriptions");
    patch(&cluster, kind, EVERYWHERE, &name, &config).await;
    let (objects, said) = plan(&cluster, &["-n", EVERYWHERE]);
    assert!(said.contains("first has spec.config"), "{said}");
    let refused = admitted(&cluster, &objects[1]).await.unwrap_err();
    assert!(
        refused.contains(".spec.config: field not declared in schema"),
        "{refused}"
    );
    definitions::experimental(&cluster).await;
    eventually("the API server has the new definition", async || {
        admitted(&cluster, &objects[1]).await == Ok(())
    })
    .await;

    cluster.scene("an existing ClusterExtension is a conflict");
    cluster.apply("clusterextensions", extension.clone()).await;
    let (verdict, ids) = first(&cluster);
    assert_eq!(verdict, "conflict");
    assert!(ids.contains(&"conflict".to_owned()), "{ids:?}");
}

/// The results for package `first` while catalogd serves its catalog, or only appears to.
async fn asked(cluster: &Cluster, source: &str) {
    cluster.scene("the ClusterCatalogs are asked through the API server");
    let Some(address) = catalogd::own_address() else {
        println!("skipped: this machine has no address but that of its loopback device");
        return;
    };
    cluster.namespace(catalogd::SYSTEM).await;
    let catalog = get(cluster, CATALOGS, source).await.unwrap();
    let status = json!({
        "urls": {"base": catalogd::base(source)},
        "conditions": [condition(&catalog, "Serving", "True", "Available", "Serving desired content from resolved source")],
    });
    write_status(cluster, CATALOGS, source, status).await;
    let (verdict, said) = seventh(cluster, &[]);
    assert_eq!(verdict, "needsConsent");
    assert!(said.contains("services \"catalogd-service\" not found"), "{said}");

    let content = |version: &str, channel: &str| {
        let properties = json!([{"type": "olm.package", "value": {"packageName": "first", "version": version}}]);
        let name = format!("first.v{version}");
        [
            json!({"schema": "olm.package", "name": "first", "defaultChannel": channel}),
            json!({"schema": "olm.channel", "package": "first", "name": channel, "entries": [{"name": name}]}),
            json!({"schema": "olm.bundle", "package": "first", "name": name, "image": "registry.test/first:v1",
                "properties": properties}),
        ]
        .map(|blob| blob.to_string())
        .join("\n")
    };
    let (server, current) = catalogd::serve(address, &content("0.0.1", "alpha"));
    catalogd::stand_in(cluster, server).await;
    assert_eq!(first(cluster), ("needsConsent".into(), vec!["C4".into()]));
    for (version, channel) in [("0.0.2", "alpha"), ("0.0.1", "beta")] {
        catalogd::set(&current, &content(version, channel));
        let (verdict, said) = seventh(cluster, &[]);
        assert_eq!(verdict, "ineligible", "{said}");
        assert_eq!(
            said,
            format!(
                "no ClusterCatalog has package first with version 0.0.1 and channel alpha; of the package {source} has other \
                 versions or channels"
            )
        );
    }
    // It satisfies the condition, so nothing is omitted.
    assert_eq!(plan(cluster, &["-n", EVERYWHERE]).0.len(), 2);
    catalogd::set(&current, &content("0.0.1", "alpha"));

    cluster.scene("an account that may not ask is told so");
    cluster.namespace(ACCOUNTS).await;
    let account = grant(cluster, Command::Migrate, |right| right.place != Place::Catalogd).await;
    let (verdict, said) = seventh(cluster, &["--kubeconfig", text_of(&account)]);
    assert_eq!(verdict, "needsConsent");
    assert!(said.contains("cannot get resource \"services/proxy\""), "{said}");
    let account = grant(cluster, Command::Migrate, |right| {
        !right.resources.contains(&"clustercatalogs")
    })
    .await;
    let (_, said) = seventh(cluster, &["--kubeconfig", text_of(&account)]);
    assert!(said.contains("cannot list resource \"clustercatalogs\""), "{said}");
    let account = grant(cluster, Command::Migrate, |_| true).await;
    let (_, found) = check(cluster, &["-n", EVERYWHERE, "--kubeconfig", text_of(&account)]);
    assert_eq!(verdict_of(&found, "first"), ("needsConsent".into(), vec!["C4".into()]));
}

/// The result for package `first`, and its message about condition C7.
fn seventh(cluster: &Cluster, more: &[&str]) -> (String, String) {
    let (_, found) = check(cluster, &[&["-n", EVERYWHERE], more].concat());
    let obstacles = found[0]["obstacles"].as_array().unwrap();
    let said = obstacles.iter().find(|obstacle| obstacle["id"] == "C7").unwrap();
    (
        found[0]["eligibility"].as_str().unwrap().to_owned(),
        said["message"].as_str().unwrap().to_owned(),
    )
}

/// `migrate check`: its exit code and its output.
fn check(cluster: &Cluster, more: &[&str]) -> (i32, Value) {
    let arguments = [&["migrate", "check", "-o", "json"], more].concat();
    let output = cluster.command(&arguments).output().unwrap();
    let printed = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code().unwrap(), printed)
}

fn verdict(assessment: &Value) -> (&str, &str, Vec<&str>) {
    let obstacles = assessment["obstacles"].as_array().unwrap().iter();
    (
        assessment["package"].as_str().unwrap(),
        assessment["eligibility"].as_str().unwrap(),
        obstacles.map(|obstacle| obstacle["id"].as_str().unwrap()).collect(),
    )
}

/// The result for package `first`.
fn first(cluster: &Cluster) -> (String, Vec<String>) {
    verdict_of(&check(cluster, &["-n", EVERYWHERE]).1, "first")
}

fn verdict_of(found: &Value, wanted: &str) -> (String, Vec<String>) {
    let (package, eligibility, ids) = verdict(&found[0]);
    assert_eq!(package, wanted);
    (eligibility.to_owned(), ids.into_iter().map(str::to_owned).collect())
}

/// `migrate plan`: the objects, and the standard error output.
fn plan(cluster: &Cluster, more: &[&str]) -> (Vec<Value>, String) {
    let output = cluster
        .command(&[&["migrate", "plan"], more].concat())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8(output.stdout).unwrap();
    let documents = text.split("---\n").filter(|document| !document.trim().is_empty());
    let objects = documents.map(|document| serde_yaml::from_str(document).unwrap());
    (objects.collect(), said)
}

/// Subscribes to a package in a namespace, from a catalog there.
async fn install(cluster: &Cluster, (bundle, mode): (&Bundle, &str), namespace: &str, address: &str) {
    let source = json!({"apiVersion": OLM, "kind": "CatalogSource",
        "metadata": {"name": "offered", "namespace": namespace},
        "spec": {"sourceType": "grpc", "address": address, "displayName": "offered", "publisher": "people"}});
    cluster.apply("catalogsources", source).await;
    let arguments = [
        "subscribe",
        &bundle.package,
        "--catalog",
        "offered",
        "-n",
        namespace,
        "--install-mode",
        mode,
        "-o",
        "json",
        "--timeout",
        "90s",
    ];
    cluster.olmkit(&arguments).await.fine();
}

/// The Subscription of a package.
async fn subscription(cluster: &Cluster, package: &str) -> Value {
    let api = cluster.api(OLM, "Subscription", "subscriptions", None);
    let all = api.list(&ListParams::default()).await.unwrap().items;
    all.into_iter()
        .map(|object| serde_json::to_value(object).unwrap())
        .find(|object| object["spec"]["name"] == package)
        .unwrap()
}

async fn patch(cluster: &Cluster, kind: (&str, &str, &str), namespace: &str, name: &str, changes: &Value) {
    cluster
        .api(kind.0, kind.1, kind.2, Some(namespace))
        .patch(name, &PatchParams::default(), &Patch::Merge(changes))
        .await
        .unwrap();
}

/// The API server's answer to an object, including unknown fields, without writing it.
async fn admitted(cluster: &Cluster, object: &Value) -> Result<(), String> {
    let kind = object["kind"].as_str().unwrap();
    let plural = format!("{}s", kind.to_lowercase());
    let api = cluster.api(object["apiVersion"].as_str().unwrap(), kind, &plural, None);
    let mut how = PatchParams::apply("test").dry_run();
    how.field_validation = Some(kube::api::ValidationDirective::Strict);
    let name = object["metadata"]["name"].as_str().unwrap();
    match api.patch(name, &how, &Patch::Apply(object)).await {
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}
