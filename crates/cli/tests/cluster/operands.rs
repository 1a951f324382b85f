//! Custom resources with finalizers, when their operator is uninstalled: they are deleted while it runs, or they lose
//! the finalizers that only it removes.

use std::process::Command;
use std::time::Duration;

use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube_testbed::Options;
use serde_json::{Value, json};

use crate::bundle::Bundle;
use crate::foreign::names;
use crate::harness::{Answer, Cluster, answer, eventually};

/// Namespaces with custom resources.
const TEAMS: [&str; 8] = [
    "team-0", "team-1", "team-2", "team-3", "team-4", "team-5", "team-6", "team-7",
];

/// Custom resources in each of them.
const EACH: usize = 5;

#[tokio::test]
async fn custom_resources_do_not_outlive_their_operator_with_its_finalizers() {
    let cluster = Cluster::start(Options::default().with_olm()).await;
    cluster.namespace("shop").await;
    kept_objects_lose_the_finalizer(&cluster).await;
    olm_labels_a_kept_crd_late(&cluster).await;
    the_garbage_collector_is_late(&cluster).await;
    deleted_while_the_operator_runs(&cluster).await;
    operator_does_not_respond(&cluster).await;
    operator_was_deleted_before(&cluster).await;
    other_namespaces_have_other_operators(&cluster).await;
}

async fn kept_objects_lose_the_finalizer(cluster: &Cluster) {
    cluster.scene("kept_objects_lose_the_finalizer");
    for team in TEAMS {
        cluster.namespace(team).await;
    }
    let bundle = install(cluster, "kept", &[]).await;
    let own = finalizer(&bundle);
    for team in TEAMS {
        for index in 0..EACH {
            thing(cluster, &bundle, team, &format!("thing-{index}"), &[&own]).await;
        }
    }
    cluster.namespace("mixed").await;
    let others = "backup.kept.example.com/copies";
    thing(cluster, &bundle, "mixed", "both", &[others, &own]).await;
    thing(cluster, &bundle, "mixed", "other", &["other.example.org/x"]).await;
    thing(cluster, &bundle, "mixed", "plain", &[]).await;
    // It is being deleted already, as in a namespace that stays Terminating.
    delete_thing(cluster, &bundle, TEAMS[0], "thing-0").await;

    let planned = cluster.cleanup("kept", "shop", &["--dry-run"]).await.fine();
    assert_eq!(released(&planned).len(), TEAMS.len() * EACH + 1);
    assert_eq!(
        finalizers(cluster, &bundle, TEAMS[1], "thing-0").await.unwrap(),
        [own.as_str()]
    );
    let text = cluster
        .olmkit(&["cleanup", "kept", "-n", "shop", "--dry-run"])
        .await
        .fine();
    let line = format!("kept Thing team-1/thing-0: would release {own}, which only the operator removes");
    assert!(text.stdout.contains(&line), "{}", text.stdout);

    let cleaned = cluster.cleanup("kept", "shop", &[]).await.fine();
    assert_eq!(released(&cleaned).len(), TEAMS.len() * EACH + 1, "{}", cleaned.json);
    let kept = cleaned.json["kept"].as_array().unwrap();
    let why = |name: &str| {
        let mut of_name = kept.iter().filter(|kept| kept["object"]["name"] == name);
        of_name.next().map(|kept| kept["why"].as_str().unwrap().to_owned())
    };
    assert_eq!(
        why("both").unwrap(),
        format!("the operator does not own its finalizers {others}")
    );
    assert_eq!(
        why("other").unwrap(),
        "the operator does not own its finalizers other.example.org/x"
    );
    assert_eq!(why("plain"), None);
    assert_eq!(finalizers(cluster, &bundle, "mixed", "both").await.unwrap(), [others]);
    assert_eq!(
        finalizers(cluster, &bundle, "mixed", "other").await.unwrap(),
        ["other.example.org/x"]
    );
    assert!(
        finalizers(cluster, &bundle, TEAMS[1], "thing-0")
            .await
            .unwrap()
            .is_empty()
    );
    assert_eq!(finalizers(cluster, &bundle, TEAMS[0], "thing-0").await, None);
    for team in TEAMS {
        cluster.delete("v1", "Namespace", "namespaces", None, team).await;
    }
    eventually("the namespaces are deleted", async || {
        for team in TEAMS {
            if cluster.get("v1", "Namespace", "namespaces", None, team).await.is_some() {
                return false;
            }
        }
        true
    })
    .await;

    cluster.scene("named finalizers are released too, except those of Kubernetes");
    let bundle = install(cluster, "kept", &[]).await;
    let rejected = cluster
        .olmkit(&["cleanup", "kept", "-n", "shop", "--release-finalizers=orphan"])
        .await;
    assert!(!rejected.success);
    assert!(
        rejected.stderr.contains("Kubernetes owns this finalizer"),
        "{}",
        rejected.stderr
    );
    let named = format!("--release-finalizers={others},uninstall-helm-release");
    let cleaned = cluster
        .cleanup("kept", "shop", &[&named, "--delete-all=false"])
        .await
        .fine();
    assert_eq!(released(&cleaned), ["both"]);
    assert!(finalizers(cluster, &bundle, "mixed", "both").await.unwrap().is_empty());
}

/// OLM labels the CRDs of a CSV that its cache still has, and creates the Operator object again for that label.
async fn olm_labels_a_kept_crd_late(cluster: &Cluster) {
    cluster.scene("olm_labels_a_kept_crd_late");
    let bundle = install(cluster, "tardy", &[]).await;
    let label = "operators.coreos.com/tardy.shop";
    let (kind, plural) = ("CustomResourceDefinition", "customresourcedefinitions");
    let crds = cluster.api("apiextensions.k8s.io/v1", kind, plural, None);
    let (kind, plural) = ("ClusterServiceVersion", "clusterserviceversions");
    let csvs = cluster.api("operators.coreos.com/v1alpha1", kind, plural, Some("shop"));
    let (crd, csv) = (bundle.crd_name(), bundle.csv_name());
    let late = async {
        for _ in 0..2 {
            eventually("the CRD has lost its label", async || {
                let found = crds.get(&crd).await.unwrap();
                let is_labelled = found.metadata.labels.is_some_and(|labels| labels.contains_key(label));
                csvs.get_opt(&csv).await.unwrap().is_none() && !is_labelled
            })
            .await;
            let patch = Patch::Merge(json!({"metadata": {"labels": {label: ""}}}));
            crds.patch(&crd, &PatchParams::default(), &patch).await.unwrap();
        }
        std::future::pending().await
    };
    tokio::select! {
        cleaned = cluster.cleanup("tardy", "shop", &["--delete-all=false"]) => cleaned.fine(),
        never = late => never,
    };
    let operator = cluster.get("operators.coreos.com/v1", "Operator", "operators", None, "tardy.shop");
    assert_eq!(operator.await, None);
}

/// OLM creates the Operator object again while an object of the removed CSV exists. The garbage collector of a young
/// cluster needs up to a minute for it. A finalizer plays this here.
async fn the_garbage_collector_is_late(cluster: &Cluster) {
    cluster.scene("the_garbage_collector_is_late");
    install(cluster, "slow", &[]).await;
    let label = "operators.coreos.com/slow.shop";
    let accounts = cluster.api("v1", "ServiceAccount", "serviceaccounts", Some("shop"));
    let labelled = ListParams::default().labels(label);
    eventually("OLM labels the ServiceAccount", async || {
        !accounts.list(&labelled).await.unwrap().items.is_empty()
    })
    .await;
    let account = accounts.list(&labelled).await.unwrap().items.remove(0);
    let account = account.metadata.name.unwrap();
    let patch = async |finalizers: Value| {
        let patch = Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
        accounts.patch(&account, &PatchParams::default(), &patch).await.unwrap();
    };
    patch(json!(["example.com/held"])).await;
    let operator = async || {
        cluster
            .get("operators.coreos.com/v1", "Operator", "operators", None, "slow.shop")
            .await
    };
    let free = async {
        eventually("the ServiceAccount is being deleted", async || {
            let found = accounts.get(&account).await.unwrap();
            found.metadata.deletion_timestamp.is_some()
        })
        .await;
        // `cleanup` watches for late objects for at least 30 seconds.
        tokio::time::sleep(Duration::from_secs(35)).await;
        assert!(operator().await.is_some());
        patch(Value::Null).await;
        std::future::pending().await
    };
    let cleaned = tokio::select! {
        cleaned = cluster.cleanup("slow", "shop", &[]) => cleaned.fine(),
        never = free => never,
    };
    let named = format!("waiting for ServiceAccount shop/{account}");
    assert!(cleaned.stderr.contains(&named), "{}", cleaned.stderr);
    assert_eq!(operator().await, None);
}

async fn deleted_while_the_operator_runs(cluster: &Cluster) {
    cluster.scene("deleted_while_the_operator_runs");
    for team in ["run-0", "run-1"] {
        cluster.namespace(team).await;
    }
    let before = cluster.inventory().await;
    let bundle = install(cluster, "runs", &[]).await;
    for team in ["run-0", "run-1", "shop"] {
        for index in 0..EACH {
            thing(
                cluster,
                &bundle,
                team,
                &format!("thing-{index}"),
                &[&finalizer(&bundle)],
            )
            .await;
        }
    }
    let planned = cluster
        .cleanup("runs", "shop", &["--delete-operands", "--dry-run"])
        .await
        .fine();
    let things = names(&planned, "removed")
        .iter()
        .filter(|name| name.starts_with("thing-"))
        .count();
    assert_eq!((things, released(&planned).len()), (3 * EACH, 0));
    let operator = tokio::spawn(operator(cluster.client.clone(), bundle.group.clone()));
    let cleaned = cluster.cleanup("runs", "shop", &["--delete-operands"]).await.fine();
    operator.abort();
    let removed = names(&cleaned, "removed");
    assert!(removed.contains(&bundle.crd_name()), "{removed:?}");
    assert!(released(&cleaned).is_empty());
    let progress = cleaned.json["steps"].to_string();
    assert!(progress.contains("Thing run-1/thing-4: removed"), "{progress}");
    cluster.nothing_left(&before).await;
}

async fn operator_does_not_respond(cluster: &Cluster) {
    cluster.scene("operator_does_not_respond");
    cluster.namespace("silent-team").await;
    let bundle = install(cluster, "silent", &[]).await;
    thing(cluster, &bundle, "silent-team", "one", &[&finalizer(&bundle)]).await;
    let arguments = [
        "cleanup",
        "silent",
        "-n",
        "shop",
        "--delete-operands",
        "--timeout",
        "4s",
        "-o",
        "json",
    ];
    let (code, blocked) = with_code(cluster.command(&arguments)).await;
    assert_eq!(code, Some(1));
    let cause = blocked.cause("custom-resource-deletion-blocked");
    let message = cause["message"].as_str().unwrap();
    assert!(message.contains("silent.example.com/finalizer"), "{message}");
    assert_eq!(
        cause["likely"], "the operator runs but does not finish: see its log",
        "{cause}"
    );
    let instead = "olmkit cleanup silent -n shop --delete-all=false";
    assert!(cause["help"].as_str().unwrap().contains(instead), "{cause}");
    assert_eq!(cluster.phase("shop", "silent.v1.0.0").await, "Succeeded");

    let arguments: Vec<&str> = instead.split(' ').skip(1).chain(["-o", "json"]).collect();
    let cleaned = cluster.olmkit(&arguments).await.fine();
    assert_eq!(released(&cleaned), ["one"]);
    assert_eq!(finalizers(cluster, &bundle, "silent-team", "one").await, None);
}

/// `kubectl delete csv` before `olmkit cleanup`.
async fn operator_was_deleted_before(cluster: &Cluster) {
    cluster.scene("operator_was_deleted_before");
    let before = cluster.inventory().await;
    let bundle = install(cluster, "lost", &[]).await;
    thing(cluster, &bundle, "shop", "one", &[&finalizer(&bundle)]).await;
    let csvs = cluster.api(
        "operators.coreos.com/v1alpha1",
        "ClusterServiceVersion",
        "clusterserviceversions",
        Some("shop"),
    );
    // OLM may execute the steps of a plan a second time, and then it creates the ClusterServiceVersion again.
    eventually("OLM leaves the operator deleted", async || {
        let answer = csvs.delete(&bundle.csv_name(), &DeleteParams::default()).await;
        let is_gone = matches!(answer, Err(kube::Error::Api(status)) if status.code == 404);
        is_gone
            && cluster
                .get("apps/v1", "Deployment", "deployments", Some("shop"), "lost-manager")
                .await
                .is_none()
    })
    .await;
    let cleaned = cluster.cleanup("lost", "shop", &[]).await.fine();
    assert!(names(&cleaned, "removed").contains(&bundle.crd_name()));
    cluster.nothing_left(&before).await;
}

/// An operator for its own namespace: the objects in other namespaces can have another operator.
async fn other_namespaces_have_other_operators(cluster: &Cluster) {
    cluster.scene("other_namespaces_have_other_operators");
    cluster.namespace("narrow").await;
    cluster.namespace("elsewhere").await;
    let mut bundle = Bundle::new("narrow", "1.0.0");
    bundle.modes = vec!["OwnNamespace"];
    cluster
        .run_bundle(&bundle.write(cluster.folder.path()), "narrow", &[])
        .await
        .fine();
    cluster.serves(&api_version(&bundle), "things").await;
    let own = finalizer(&bundle);
    for namespace in ["narrow", "elsewhere"] {
        thing(cluster, &bundle, namespace, "one", &[&own]).await;
    }
    let cleaned = cluster
        .cleanup("narrow", "narrow", &["--delete-all=false"])
        .await
        .fine();
    assert_eq!(released(&cleaned), ["one"]);
    assert_eq!(finalizers(cluster, &bundle, "elsewhere", "one").await.unwrap(), [own]);
    assert!(finalizers(cluster, &bundle, "narrow", "one").await.unwrap().is_empty());
}

/// OLM's objects without its controllers: `olm uninstall` removes everything that they would remove.
#[tokio::test]
async fn olm_uninstall_releases_finalizers_and_removes_webhooks() {
    let cluster = Cluster::start(Options::default()).await;
    cluster.namespace("shop").await;
    cluster.namespace("team").await;
    let before = cluster.inventory().await;
    let bundle = installed(&cluster, json!({"operators.coreos.com/first.shop": "", "team": "one"})).await;
    let own = finalizer(&bundle);
    thing(&cluster, &bundle, "team", "other", &["other.example.org/x"]).await;
    // They would reject every change of a custom resource, because their operator is uninstalled.
    for (kind, plural) in [
        ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
        ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
    ] {
        cluster.apply(plural, webhook(kind, &bundle)).await;
    }

    cluster.scene("an operator that does not respond");
    let arguments = [
        "olm",
        "uninstall",
        "--with-operators",
        "--delete-operands",
        "--timeout",
        "4s",
        "-o",
        "json",
    ];
    let (code, blocked) = with_code(cluster.command(&arguments)).await;
    assert_eq!(code, Some(1));
    let cause = blocked.cause("custom-resource-deletion-blocked");
    assert!(
        cause["message"].as_str().unwrap().contains("finalizers keep it"),
        "{cause}"
    );
    assert_eq!(cluster.phase("shop", "first.v1.0.0").await, "");
    assert!(csv_exists(&cluster, &bundle).await);

    cluster.scene("the finalizers are released");
    let arguments = ["olm", "uninstall", "--with-operators", "-o", "json"];
    let planned = cluster.olmkit(&[&arguments[..], &["--dry-run"]].concat()).await.fine();
    assert_eq!(released(&planned).len(), EACH);
    assert!(names(&planned, "removed").contains(&"first-webhook".to_owned()));
    let removed = cluster
        .olmkit(&[&arguments[..], &["--timeout", "180s"]].concat())
        .await
        .fine();
    assert_eq!(released(&removed).len(), EACH, "{}", removed.json);
    assert_eq!(names(&removed, "kept"), ["other"], "{}", removed.json);
    assert_eq!(
        names(&removed, "removed")
            .iter()
            .filter(|name| *name == "first-webhook")
            .count(),
        2
    );
    assert_eq!(finalizers(&cluster, &bundle, "team", "thing-0").await, None);
    let definition = cluster
        .get(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            "customresourcedefinitions",
            None,
            &bundle.crd_name(),
        )
        .await
        .unwrap();
    assert_eq!(definition["metadata"]["labels"], json!({"team": "one"}));

    cluster.scene("a repeated removal leaves the finalizers of an operator without OLM");
    thing(&cluster, &bundle, "team", "later", &[&own]).await;
    cluster.olmkit(&["olm", "uninstall", "-o", "json"]).await.fine();
    assert_eq!(finalizers(&cluster, &bundle, "team", "later").await.unwrap(), [own]);
    for name in ["later", "other"] {
        let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        let api = cluster.api(&api_version(&bundle), "Thing", "things", Some("team"));
        api.patch(name, &PatchParams::default(), &patch).await.unwrap();
    }
    let (group, kind, plural) = (
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
    );
    cluster.delete(group, kind, plural, None, &bundle.crd_name()).await;
    cluster.nothing_left(&before).await;

    cluster.scene("the custom resources are deleted while the operator runs");
    let bundle = installed(&cluster, json!({"operators.coreos.com/first.shop": ""})).await;
    let operator = tokio::spawn(operator(cluster.client.clone(), bundle.group.clone()));
    let arguments = [
        "olm",
        "uninstall",
        "--with-operators",
        "--delete-operands",
        "-o",
        "json",
    ];
    let removed = cluster.olmkit(&arguments).await.fine();
    operator.abort();
    let things = names(&removed, "removed");
    let things = things.iter().filter(|name| name.starts_with("thing-"));
    assert_eq!(
        (things.count(), released(&removed).len()),
        (EACH, 0),
        "{}",
        removed.json
    );
    // Other clients may use the CRD.
    cluster.delete(group, kind, plural, None, &bundle.crd_name()).await;
    cluster.nothing_left(&before).await;
}

/// Installs OLM's objects and an operator with custom resources in the namespace `team`. `labels` are those of the CRD.
async fn installed(cluster: &Cluster, labels: Value) -> Bundle {
    cluster.install_elsewhere(&[]).await.fine();
    let bundle = Bundle::new("first", "1.0.0");
    let mut crd = bundle.crd();
    crd["metadata"]["labels"] = labels;
    cluster.apply("customresourcedefinitions", crd).await;
    let mut csv = bundle.csv();
    csv["metadata"]["namespace"] = "shop".into();
    cluster
        .serves("operators.coreos.com/v1alpha1", "clusterserviceversions")
        .await;
    cluster.apply("clusterserviceversions", csv).await;
    deployment(cluster, &bundle).await;
    cluster.serves(&api_version(&bundle), "things").await;
    for index in 0..EACH {
        thing(
            cluster,
            &bundle,
            "team",
            &format!("thing-{index}"),
            &[&finalizer(&bundle)],
        )
        .await;
    }
    bundle
}

/// Installs package `name` in namespace `shop`, for all namespaces.
async fn install(cluster: &Cluster, name: &str, more: &[&str]) -> Bundle {
    let bundle = Bundle::new(name, "1.0.0");
    let directory = bundle.write(cluster.folder.path());
    cluster.run_bundle(&directory, "shop", more).await.fine();
    cluster.serves(&api_version(&bundle), "things").await;
    bundle
}

fn api_version(bundle: &Bundle) -> String {
    format!("{}/v1", bundle.group)
}

fn finalizer(bundle: &Bundle) -> String {
    format!("{}/finalizer", bundle.group)
}

async fn thing(cluster: &Cluster, bundle: &Bundle, namespace: &str, name: &str, finalizers: &[&str]) {
    cluster
        .apply(
            "things",
            json!({"apiVersion": api_version(bundle), "kind": "Thing",
                "metadata": {"name": name, "namespace": namespace, "finalizers": finalizers}}),
        )
        .await;
}

async fn delete_thing(cluster: &Cluster, bundle: &Bundle, namespace: &str, name: &str) {
    cluster
        .delete(&api_version(bundle), "Thing", "things", Some(namespace), name)
        .await;
}

/// The finalizers of a custom resource, if it exists.
async fn finalizers(cluster: &Cluster, bundle: &Bundle, namespace: &str, name: &str) -> Option<Vec<String>> {
    let found = cluster
        .get(&api_version(bundle), "Thing", "things", Some(namespace), name)
        .await?;
    let list = found.pointer("/metadata/finalizers").cloned().unwrap_or(json!([]));
    Some(serde_json::from_value(list).unwrap())
}

/// The objects that lost finalizers, or would.
fn released(answer: &Answer) -> Vec<String> {
    names(answer, "released")
}

/// Removes the finalizer of each custom resource that is being deleted, as an operator does.
async fn operator(client: kube::Client, group: String) {
    let kind = kube::api::GroupVersionKind::gvk(&group, "v1", "Thing");
    let resource = kube::api::ApiResource::from_gvk_with_plural(&kind, "things");
    let all: kube::Api<kube::api::DynamicObject> = kube::Api::all_with(client.clone(), &resource);
    loop {
        let list = all.list(&ListParams::default()).await;
        for object in list.into_iter().flatten() {
            if object.metadata.deletion_timestamp.is_none() {
                continue;
            }
            let namespace = object.metadata.namespace.as_deref().unwrap();
            let api: kube::Api<kube::api::DynamicObject> =
                kube::Api::namespaced_with(client.clone(), namespace, &resource);
            let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            let name = object.metadata.name.as_deref().unwrap();
            let _gone = api.patch(name, &PatchParams::default(), &patch).await;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

/// Runs a command. Its exit code and its answer.
async fn with_code(mut command: Command) -> (Option<i32>, Answer) {
    let output = tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap();
    (output.status.code(), answer(&output))
}

async fn csv_exists(cluster: &Cluster, bundle: &Bundle) -> bool {
    let (api_version, plural) = ("operators.coreos.com/v1alpha1", "clusterserviceversions");
    let (kind, name) = ("ClusterServiceVersion", bundle.csv_name());
    cluster
        .get(api_version, kind, plural, Some("shop"), &name)
        .await
        .is_some()
}

/// The Deployment that OLM creates for a CSV.
async fn deployment(cluster: &Cluster, bundle: &Bundle) {
    let owner = cluster
        .get(
            "operators.coreos.com/v1alpha1",
            "ClusterServiceVersion",
            "clusterserviceversions",
            Some("shop"),
            &bundle.csv_name(),
        )
        .await
        .unwrap();
    let labels = json!({"app": "first"});
    let owned = json!({"olm.owner": bundle.csv_name(), "olm.owner.kind": "ClusterServiceVersion", "olm.owner.namespace": "shop"});
    cluster
        .apply(
            "deployments",
            json!({"apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "first-manager", "namespace": "shop", "labels": owned, "ownerReferences": [{
                    "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
                    "name": bundle.csv_name(), "uid": owner["metadata"]["uid"]}]},
                "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "manager", "image": bundle.image}]}}}}),
        )
        .await;
}

/// A webhook that OLM created for a CSV. No server answers.
fn webhook(kind: &str, bundle: &Bundle) -> Value {
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        "metadata": {"name": "first-webhook", "labels": {"olm.owner": bundle.csv_name(),
            "olm.owner.kind": "ClusterServiceVersion", "olm.owner.namespace": "shop"}},
        "webhooks": [{"name": "things.first.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "failurePolicy": "Fail", "timeoutSeconds": 1,
            "clientConfig": {"service": {"name": "first", "namespace": "shop", "path": "/"}},
            "rules": [{"apiGroups": [bundle.group], "apiVersions": ["v1"], "resources": ["things"], "operations": ["UPDATE"]}]}]})
}
