//! A plan that OLM is still carrying out when it goes: what that pass creates belongs to the package.
//!
//! Observed on a real node: the run fails because the OperatorGroup's service account lacks permissions, its plan and
//! Subscription are removed, and an administrator grants the permissions before OLM has completed the steps. Here the
//! test plays the end of that sync, which OLM's controller does under the client name `catalog`. If a version runs
//! before OLM has finished, OLM itself is delayed.

use std::time::{Duration, Instant};

use kube::{
    ResourceExt as _,
    api::{DynamicObject, ListParams, ObjectMeta, Patch, PatchParams, PostParams},
};
use kube_testbed::faults::{DeadWebhook, Death};
use serde_json::{Value, json};

use crate::bundle::Bundle;
use crate::foreign::names;
use crate::harness::{Answer, Cluster, eventually};
use crate::offered;

const RBAC: &str = "rbac.authorization.k8s.io/v1";
const ADMISSION: &str = "admissionregistration.k8s.io/v1";
const OLM: &str = "operators.coreos.com/v1alpha1";

/// The next run finds the objects of that pass and completes the installation.
pub async fn followed_by_a_run(cluster: &Cluster) {
    let before = begin(cluster, "late", "late_pass_followed_by_a_run").await;
    let mut bundle = Bundle::new("late", "1.0.0");
    bundle.extra = vec![role("late-reader"), role("late-of-olm"), role("late-of-others")];
    create(cluster, "late-of-olm", "catalog").await;
    let directory = bundle.write(cluster.folder.path());
    let refused = cluster.run_bundle(&directory, "late", &[]).await;
    assert_eq!(refused.errors(), ["forbidden"]);
    create(cluster, "late-reader", "catalog").await;
    create(cluster, "late-of-others", "kubectl").await;
    grant(cluster, "late").await;
    cluster.run_bundle(&directory, "late", &[]).await.fine();
    let cleaned = cluster.cleanup("late", "late", &[]).await.fine();
    let mut kept = names(&cleaned, "kept");
    kept.sort();
    assert_eq!(kept, ["late-of-olm", "late-of-others"]);
    // OLM would create its Operator object again for a role with its label.
    let role = cluster
        .get(RBAC, "ClusterRole", "clusterroles", None, "late-of-olm")
        .await;
    let labels = &role.unwrap()["metadata"]["labels"];
    assert!(labels.get("operators.coreos.com/late.late").is_none(), "{labels}");
    for name in kept {
        cluster.delete(RBAC, "ClusterRole", "clusterroles", None, &name).await;
    }
    end(cluster, "late", &before).await;
}

/// Without a rerun: cleanup finds them without a label.
pub async fn followed_by_a_cleanup(cluster: &Cluster) {
    let before = begin(cluster, "later", "late_pass_followed_by_a_cleanup").await;
    let mut bundle = Bundle::new("later", "1.0.0");
    bundle.extra = vec![role("later-reader")];
    let refused = cluster
        .run_bundle(&bundle.write(cluster.folder.path()), "later", &[])
        .await;
    assert_eq!(refused.errors(), ["forbidden"]);
    // OLM itself may still be at a step of the removed plan. With the permissions, a slow OLM would write at any later time, and
    // the test plays that write at a known one.
    tokio::time::sleep(Duration::from_secs(10)).await;
    grant(cluster, "later").await;
    create(cluster, "later-reader", "catalog").await;
    let cleaned = cluster.cleanup("later", "later", &[]).await.fine();
    assert!(names(&cleaned, "removed").contains(&"later-reader".to_owned()));
    end(cluster, "later", &before).await;
}

/// The operator runs, but its plan has not ended: OLM is at one of the last steps, and has found an object that it had
/// created itself in a sync whose result it could not record. There is no record of it, as when a user approves an
/// upgrade with kubectl.
pub async fn ends_during_a_cleanup(cluster: &Cluster) {
    cluster.scene("late_pass_ends_during_a_cleanup");
    let before = cluster.inventory().await;
    let hold = halt(cluster, "halted").await;
    let (cleaned, ()) = tokio::join!(cluster.cleanup("halted", "halted", &[]), async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        drop(hold);
    });
    removed_both(&cleaned.fine(), "halted");
    leave(cluster, "halted", &before).await;
}

/// The same, but OLM stays at that step for longer than the command waits.
pub async fn outlasts_a_cleanup(cluster: &Cluster) {
    cluster.scene("late_pass_outlasts_a_cleanup");
    let before = cluster.inventory().await;
    let hold = halt(cluster, "stuck").await;
    let csvs = cluster.api(OLM, "ClusterServiceVersion", "clusterserviceversions", Some("stuck"));
    let began = Instant::now();
    let (cleaned, ()) = tokio::join!(cluster.cleanup("stuck", "stuck", &[]), async {
        eventually("the version is removed", async || {
            csvs.get_opt("stuck.v1.0.0").await.unwrap().is_none()
        })
        .await;
        assert!(began.elapsed() > Duration::from_secs(20), "nothing was waited for");
        drop(hold);
    });
    removed_both(&cleaned.fine(), "stuck");
    leave(cluster, "stuck", &before).await;
}

/// OLM executes a plan again after it is complete, because its cache has not received the last status: it creates
/// ClusterRoles that the cleanup has removed already, and those of the CSV that OLM itself has deleted. OLM's cache is not
/// late on demand, so the test plays that sync.
pub async fn repeats_during_a_cleanup(cluster: &Cluster) {
    cluster.scene("late_pass_repeats_during_a_cleanup");
    let before = cluster.inventory().await;
    let mut bundle = Bundle::new("twice", "1.0.0");
    let [reader, _] = roles("twice");
    bundle.extra = vec![role(&reader)];
    subscribe(cluster, &bundle).await;
    let all = cluster.api(RBAC, "ClusterRole", "clusterroles", None);
    let bindings = cluster.api(RBAC, "ClusterRoleBinding", "clusterrolebindings", None);
    let of_csv = ListParams::default().labels("olm.owner=twice.v1.0.0,olm.owner.kind=ClusterServiceVersion");
    let mut again = Vec::new();
    for api in [&all, &bindings] {
        let found = api.list(&of_csv).await.unwrap();
        again.extend(found.into_iter().map(|object| (api, object)));
    }
    assert_eq!(again.len(), 2, "the permissions of the bundle");
    let (cleaned, ()) = tokio::join!(cluster.cleanup("twice", "twice", &[]), async {
        eventually("the role is removed", async || {
            all.get_opt(&reader).await.unwrap().is_none()
        })
        .await;
        create(cluster, &reader, "catalog").await;
        for (api, mut object) in again {
            let name = object.name_any();
            eventually("OLM has deleted it", async || {
                api.get_opt(&name).await.unwrap().is_none()
            })
            .await;
            object.metadata = ObjectMeta {
                name: object.metadata.name,
                labels: object.metadata.labels,
                ..ObjectMeta::default()
            };
            let parameters = PostParams {
                field_manager: Some("catalog".to_owned()),
                ..PostParams::default()
            };
            api.create(&parameters, &object).await.unwrap();
        }
    });
    cleaned.fine();
    assert!(all.get_opt(&reader).await.unwrap().is_none(), "the role exists again");
    cluster.delete("v1", "Namespace", "namespaces", None, "twice").await;
    cluster.nothing_left(&before).await;
}

/// Installs a package with two ClusterRoles without olmkit, and resets its plan to the state in which OLM has yet to
/// create one of them and to record the other. The creation is blocked while the returned value lives.
async fn halt(cluster: &Cluster, name: &str) -> DeadWebhook {
    let mut bundle = Bundle::new(name, "1.0.0");
    bundle.extra = roles(name).map(|name| role(&name)).into();
    subscribe(cluster, &bundle).await;
    let [reader, viewer] = roles(name);
    cluster.delete(RBAC, "ClusterRole", "clusterroles", None, &reader).await;
    // OLM puts its version's name on existing objects.
    let unlabelled = Patch::Merge(json!({"metadata": {"labels": {"olm.owner": null}}}));
    let all = cluster.api(RBAC, "ClusterRole", "clusterroles", None);
    all.patch(&viewer, &PatchParams::default(), &unlabelled).await.unwrap();
    let hold = hold(cluster, &reader).await;
    take_back(cluster, name).await;
    hold
}

fn roles(name: &str) -> [String; 2] {
    ["reader", "viewer"].map(|purpose| format!("{name}-{purpose}"))
}

#[track_caller]
fn removed_both(cleaned: &Answer, name: &str) {
    assert!(cleaned.stderr.contains("which OLM carries out"), "{}", cleaned.stderr);
    let removed = names(cleaned, "removed");
    for role in roles(name) {
        assert!(removed.contains(&role), "{role} is not among {removed:?}");
    }
}

async fn leave(cluster: &Cluster, name: &str, before: &[String]) {
    let kind = "MutatingWebhookConfiguration";
    cluster
        .delete(ADMISSION, kind, "mutatingwebhookconfigurations", None, name)
        .await;
    cluster.delete("v1", "Namespace", "namespaces", None, name).await;
    cluster.nothing_left(before).await;
}

/// Subscribes to a bundle in a separate namespace and waits until OLM has finished.
async fn subscribe(cluster: &Cluster, bundle: &Bundle) {
    let name = &*bundle.package;
    let (address, _) = offered::bundles(cluster, &[bundle]).await;
    cluster.namespace(name).await;
    cluster.operator_group(name, "people", &[name]).await;
    let source = json!({"apiVersion": OLM, "kind": "CatalogSource", "metadata": {"name": "offered", "namespace": name},
        "spec": {"sourceType": "grpc", "address": address, "displayName": "offered", "publisher": "people"}});
    cluster.apply("catalogsources", source).await;
    let subscription = json!({"apiVersion": OLM, "kind": "Subscription", "metadata": {"name": name, "namespace": name},
        "spec": {"name": name, "channel": "alpha", "source": "offered", "sourceNamespace": name}});
    cluster.apply("subscriptions", subscription).await;
    eventually("the plan is complete", async || {
        let found = plan(cluster, name).await;
        found.is_some_and(|found| found.data["status"]["phase"] == "Complete")
    })
    .await;
    cluster.settled(name, &bundle.csv_name()).await;
}

/// The first InstallPlan of a namespace.
async fn plan(cluster: &Cluster, namespace: &str) -> Option<DynamicObject> {
    let plans = cluster.api(OLM, "InstallPlan", "installplans", Some(namespace));
    let found = plans.list(&ListParams::default()).await.unwrap();
    found.items.into_iter().next()
}

/// The plan before OLM has recorded its progress.
async fn take_back(cluster: &Cluster, name: &str) {
    let [reader, viewer] = roles(name);
    let found = plan(cluster, name).await.unwrap();
    let mut steps = found.data["status"]["plan"].clone();
    for step in steps.as_array_mut().unwrap() {
        let named = step["resource"]["name"].as_str().unwrap();
        if named == reader {
            step["status"] = "NotPresent".into();
        } else if named == viewer {
            step["status"] = "Present".into();
        }
    }
    let status = json!({"status": {"phase": "Installing", "conditions": [], "plan": steps}});
    let plans = cluster.api(OLM, "InstallPlan", "installplans", Some(name));
    let plan = found.metadata.name.unwrap();
    plans
        .patch_status(&plan, &PatchParams::default(), &Patch::Merge(status))
        .await
        .unwrap();
}

/// Delays the creation of this ClusterRole, for half a minute at most: the API server calls one unresponsive webhook
/// after the other, each until the ten-second TLS handshake timeout.
async fn hold(cluster: &Cluster, name: &str) -> DeadWebhook {
    let webhook = DeadWebhook::start(Death::Hangs).await.unwrap();
    let (package, _) = name.split_once('-').unwrap();
    let rule = json!({"apiGroups": ["rbac.authorization.k8s.io"], "apiVersions": ["v1"], "resources": ["clusterroles"], "operations": ["CREATE"]});
    let webhooks = ["first", "second", "third"].map(|order| {
        json!({
            "name": format!("{order}.hold.example.com"),
            "clientConfig": {"url": webhook.url()},
            "rules": [rule],
            "matchConditions": [{"name": "named", "expression": format!("object.metadata.name == '{name}'")}],
            "failurePolicy": "Ignore",
            "timeoutSeconds": 30,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        })
    });
    let configuration = json!({"apiVersion": ADMISSION, "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": package}, "webhooks": webhooks});
    cluster.apply("mutatingwebhookconfigurations", configuration).await;
    let roles = cluster.api(RBAC, "ClusterRole", "clusterroles", None);
    let object = serde_json::from_value(role(name)).unwrap();
    let parameters = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    eventually("the API server asks it", async || {
        let created = roles.create(&parameters, &object);
        tokio::time::timeout(Duration::from_secs(1), created).await.is_err()
    })
    .await;
    webhook
}

/// A namespace where OLM installs with an account that may create ClusterServiceVersions and nothing else.
async fn begin(cluster: &Cluster, namespace: &str, scene: &str) -> Vec<String> {
    cluster.scene(scene);
    let before = cluster.inventory().await;
    cluster.namespace(namespace).await;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "installer", "namespace": namespace}});
    cluster.apply("serviceaccounts", account).await;
    let group = json!({
        "apiVersion": "operators.coreos.com/v1",
        "kind": "OperatorGroup",
        "metadata": {"name": "restricted", "namespace": namespace},
        "spec": {"targetNamespaces": [namespace], "serviceAccountName": "installer"},
    });
    cluster.apply("operatorgroups", group).await;
    let csvs = json!({"apiGroups": ["operators.coreos.com"], "resources": ["clusterserviceversions"], "verbs": ["get", "create", "update"]});
    rights(cluster, namespace, "first", csvs).await;
    before
}

async fn end(cluster: &Cluster, namespace: &str, before: &[String]) {
    for role in ["first", "all"] {
        let name = format!("{namespace}-{role}");
        cluster.delete(RBAC, "ClusterRole", "clusterroles", None, &name).await;
        cluster
            .delete(RBAC, "ClusterRoleBinding", "clusterrolebindings", None, &name)
            .await;
    }
    cluster.delete("v1", "Namespace", "namespaces", None, namespace).await;
    cluster.nothing_left(before).await;
}

async fn grant(cluster: &Cluster, namespace: &str) {
    rights(
        cluster,
        namespace,
        "all",
        json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}),
    )
    .await;
}

/// Gives the installer a rule in all namespaces.
async fn rights(cluster: &Cluster, namespace: &str, name: &str, rule: Value) {
    let name = format!("{namespace}-{name}");
    let role = json!({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": name}, "rules": [rule]});
    cluster.apply("clusterroles", role).await;
    let binding = json!({
        "apiVersion": RBAC,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": "installer", "namespace": namespace}],
    });
    cluster.apply("clusterrolebindings", binding).await;
}

fn role(name: &str) -> Value {
    json!({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": name},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]})
}

/// Creates a ClusterRole as OLM does it, under the name of a client. OLM's own pass may have created its role already: it retries
/// as soon as it has the permission.
async fn create(cluster: &Cluster, name: &str, manager: &str) {
    let mut object = role(name);
    object["metadata"]["labels"] = json!({"olm.managed": "true"});
    let parameters = PostParams {
        field_manager: Some(manager.to_owned()),
        ..PostParams::default()
    };
    let roles = cluster.api(RBAC, "ClusterRole", "clusterroles", None);
    match roles
        .create(&parameters, &serde_json::from_value(object).unwrap())
        .await
    {
        Err(kube::Error::Api(status)) if status.code == 409 && manager == "catalog" => {}
        created => drop(created.unwrap()),
    }
}
