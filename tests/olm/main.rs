//! The operator as the Operator Lifecycle Manager installs it: from our bundles, served inline by our catalog server, in
//! all four install modes and through an upgrade that waits for a rollout.
//!
//! No node runs here. OLM makes the Deployment, the ServiceAccount and the roles. The test starts the program with the
//! arguments and variables of that Deployment, authenticated as that ServiceAccount.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../operator/lab.rs"]
#[allow(dead_code)]
mod lab;
#[path = "../operator/scenario.rs"]
mod scenario;
mod tenants;

use std::{
    collections::BTreeSet,
    path::Path,
    time::{Duration, Instant},
};

use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams},
};
use kube_testbed::AuditEvent;
use memcached_operator::api::v1alpha1::Memcached;
use olmkit::catalog::{Catalog, Channel, ChannelEntry, Package, render};
use olmkit_serve::{Server, index};
use serde_json::{Value, json};

use crate::{
    lab::{Lab, Operator, SLOW, create, eventually, image, within},
    scenario::{HIDDEN, asked, describe, live},
};

/// True if the control plane has OLM.
const WITH_OLM: bool = true;

const PACKAGE: &str = "memcached-operator";
const DEPLOYMENT: &str = "memcached-operator-controller-manager";
/// The ServiceAccount in the bundle.
const ACCOUNT: &str = "memcached-operator-controller-manager";

/// Copies a bundle. The tests run today's operator for each version, and the first one did not need these permissions.
fn copy_with_permissions(from: &Path, to: &Path) {
    for part in ["manifests", "metadata"] {
        std::fs::create_dir(to.join(part)).unwrap();
        for file in std::fs::read_dir(from.join(part)).unwrap() {
            let (path, name) = (file.as_ref().unwrap().path(), file.as_ref().unwrap().file_name());
            let mut text = std::fs::read_to_string(path).unwrap();
            if text.contains("kind: ClusterServiceVersion") && !text.contains("endpointslices") {
                let (rest, account) = text.rsplit_once("        serviceAccountName: ").unwrap();
                let all = "create, delete, get, list, patch, watch";
                let rules = [
                    ("discovery.k8s.io", "endpointslices", "list, watch"),
                    ("apps", "statefulsets", all),
                    ("networking.k8s.io", "networkpolicies", all),
                    ("''", "configmaps, secrets", all),
                    ("''", "pods/resize", "patch"),
                ];
                let rule = |(group, resources, verbs)| {
                    format!(
                        "        - apiGroups: [{group}]\n          resources: [{resources}]\n          verbs: [{verbs}]\n"
                    )
                };
                let rules = rules.map(rule).concat();
                text = format!("{rest}{rules}        serviceAccountName: {account}");
            }
            std::fs::write(to.join(part).join(name), text).unwrap();
        }
    }
}

/// Serves the bundles in these directories, each of which replaces the one before. Returns the address.
async fn serve(folders: &[&str]) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut catalog = Catalog::default();
    let mut entries: Vec<ChannelEntry> = Vec::new();
    for folder in folders {
        let copy = tempfile::tempdir().unwrap();
        copy_with_permissions(&root.join(folder), copy.path());
        let bundle = render::bundle::directory(copy.path(), "").unwrap();
        let replaces = entries.last().map(|entry| entry.name.clone()).unwrap_or_default();
        entries.push(ChannelEntry {
            name: bundle.name.clone(),
            replaces,
            ..ChannelEntry::default()
        });
        catalog.bundles.push(bundle);
    }
    let channel = Channel {
        name: "alpha".into(),
        package: PACKAGE.into(),
        entries: Some(entries),
        ..Channel::default()
    };
    catalog.channels.push(channel);
    let package = Package {
        name: PACKAGE.into(),
        default_channel: "alpha".into(),
        ..Package::default()
    };
    catalog.packages.push(package);
    let server = Server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    server.current().set(index::in_memory(&catalog).unwrap());
    let address = server.address().to_string();
    tokio::spawn(server.run(std::future::pending()));
    address
}

/// Objects of OLM's kinds in the lab's namespace.
fn olm(lab: &Lab, version: &str, kind: &str, plural: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("operators.coreos.com", version, kind);
    Api::namespaced_with(
        lab.client.clone(),
        &lab.namespace,
        &ApiResource::from_gvk_with_plural(&kind, plural),
    )
}

fn versions(lab: &Lab) -> Api<DynamicObject> {
    olm(lab, "v1alpha1", "ClusterServiceVersion", "clusterserviceversions")
}

/// Subscribes to the package in the catalog at `address`.
async fn subscribe(lab: &Lab, address: &str) {
    subscribe_with(lab, address, json!({})).await;
}

/// Subscribes with settings for the operator's pod.
async fn subscribe_with(lab: &Lab, address: &str, config: Value) {
    let catalogs = olm(lab, "v1alpha1", "CatalogSource", "catalogsources");
    let source = json!({ "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
        "metadata": { "name": "ours" }, "spec": { "sourceType": "grpc", "address": address } });
    create(&catalogs, source).await;
    let subscriptions = olm(lab, "v1alpha1", "Subscription", "subscriptions");
    let subscription = json!({ "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
        "metadata": { "name": PACKAGE }, "spec": {
            "channel": "alpha", "name": PACKAGE, "source": "ours", "sourceNamespace": lab.namespace,
            "installPlanApproval": "Automatic", "config": config,
        } });
    create(&subscriptions, subscription).await;
}

async fn succeeded(lab: &Lab, version: &str) {
    let end = Instant::now() + Duration::from_secs(180);
    loop {
        // A copy describes another installation, so it does not count.
        let found = versions(lab).get_opt(version).await.unwrap();
        let found = found.filter(|found| !found.labels().contains_key("olm.copiedFrom"));
        let status = found.map(|found| found.data["status"].clone()).unwrap_or_default();
        if status["phase"] == "Succeeded" {
            return;
        }
        if Instant::now() > end {
            let plans = olm(lab, "v1alpha1", "InstallPlan", "installplans");
            let plans = plans.list(&Default::default()).await.unwrap();
            let plans: Vec<_> = plans.iter().map(|plan| &plan.data["status"]["conditions"]).collect();
            panic!("{version} is not installed: {status:#}, plans: {plans:#?}");
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Starts the program with the settings of the Deployment that OLM created.
async fn start(lab: &Lab) -> Operator {
    start_with(lab, &[]).await
}

/// As [`start`], where these variables must be among those of the Deployment.
async fn start_with(lab: &Lab, expected: &[(&str, &str)]) -> Operator {
    start_changed(lab, expected, &[]).await
}

/// As [`start_with`], but with other values of the variables `changed`.
async fn start_changed(lab: &Lab, expected: &[(&str, &str)], changed: &[(&str, &str)]) -> Operator {
    let deployment = lab.api::<Deployment>().get(DEPLOYMENT).await.unwrap();
    let template = deployment.spec.unwrap().template;
    let annotations = template.metadata.unwrap().annotations.unwrap_or_default();
    let pod = template.spec.unwrap();
    assert_eq!(pod.service_account_name.as_deref(), Some(ACCOUNT));
    let container = &pod.containers[0];
    let field = |path: &str| match path {
        "metadata.name" => format!("{DEPLOYMENT}-0"),
        "metadata.namespace" => lab.namespace.clone(),
        "metadata.annotations['olm.targetNamespaces']" => annotations["olm.targetNamespaces"].clone(),
        other => panic!("a variable from {other}"),
    };
    let mut variables: Vec<(String, String)> = container
        .env
        .iter()
        .flatten()
        .map(|variable| {
            let from = variable.value_from.as_ref().and_then(|from| from.field_ref.as_ref());
            let value = from.map_or_else(
                || variable.value.clone().unwrap_or_default(),
                |from| field(&from.field_path),
            );
            (variable.name.clone(), value)
        })
        .collect();
    for (name, value) in expected {
        let variable = ((*name).to_owned(), (*value).to_owned());
        assert!(variables.contains(&variable), "no {name}={value} in {variables:?}");
    }
    for (name, value) in changed {
        let known = variables.iter_mut().find(|(known, _)| known == name);
        known.unwrap().1 = (*value).to_owned();
    }
    // The ports are the machine's here, not a pod's: any free ones.
    let mut arguments = container.args.clone().unwrap();
    for server in ["--health-probe-bind-address", "--metrics-bind-address"] {
        let before = arguments.len();
        arguments.retain(|argument| !argument.starts_with(server));
        if arguments.len() < before {
            arguments.push(format!("{server}=127.0.0.1:0"));
        }
    }
    lab.run_as(ACCOUNT, &arguments, &variables).await
}

/// Every verb on every resource that the bundle in `folder` requests: in the ClusterServiceVersion, and in Roles for
/// the operator's own namespace.
fn requested(folder: &str) -> BTreeSet<String> {
    let manifests = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join("manifests");
    let objects: Vec<Value> = std::fs::read_dir(manifests)
        .unwrap()
        .map(|entry| serde_yaml::from_str(&std::fs::read_to_string(entry.unwrap().path()).unwrap()).unwrap())
        .collect();
    let of_kind = |kind: &'static str| objects.iter().filter(move |object| object["kind"] == kind);
    let version = of_kind("ClusterServiceVersion").next().unwrap();
    let install = &version["spec"]["install"]["spec"];
    let both = ["permissions", "clusterPermissions"].map(|field| install[field].as_array().unwrap());
    let permissions: Vec<&Value> = both.into_iter().flatten().collect();
    for permission in &permissions {
        assert_eq!(permission["serviceAccountName"], ACCOUNT);
    }
    for binding in of_kind("RoleBinding") {
        assert_eq!(binding["subjects"][0]["name"], ACCOUNT);
    }
    let texts = |list: &Value| -> Vec<String> {
        list.as_array()
            .unwrap()
            .iter()
            .map(|text| text.as_str().unwrap().to_owned())
            .collect()
    };
    let mut found = BTreeSet::new();
    for granting in permissions.into_iter().chain(of_kind("Role")) {
        for rule in granting["rules"].as_array().unwrap() {
            for group in texts(&rule["apiGroups"]) {
                for resource in texts(&rule["resources"]) {
                    let (resource, subresource) = resource.split_once('/').unwrap_or((&resource, ""));
                    found.extend(
                        texts(&rule["verbs"])
                            .iter()
                            .map(|verb| describe(verb, &group, resource, subresource)),
                    );
                }
            }
        }
    }
    found
}

/// Compares the bundle's permissions with the operator's requests.
async fn rights_match(lab: &Lab, operator: &Operator) {
    let token = lab.token(ACCOUNT).await;
    let (code, _) = operator.secure(http::Method::GET, "/metrics", &token, "").await;
    assert_eq!(code, 403, "its own account may review, but not read");
    // The election renews its lease every two seconds. The audit log must contain that too.
    let requests = eventually("the lease is renewed", async || {
        let requests = lab.requests_of(ACCOUNT).await;
        let renewed =
            |event: &AuditEvent| event.verb == "update" && asked(event).is_some_and(|asked| asked.ends_with("/leases"));
        requests.iter().any(renewed).then_some(requests)
    })
    .await;
    let forbidden: BTreeSet<String> = requests
        .iter()
        .filter(|event| event.code() == 403)
        .filter_map(asked)
        .collect();
    assert_eq!(forbidden, BTreeSet::new(), "permissions missing in the bundle");
    let mut used: BTreeSet<String> = requests
        .iter()
        .filter(|event| (200..300).contains(&event.code()) || event.code() == 404)
        .filter_map(asked)
        .collect();
    used.retain(|request| !request.starts_with("create authorization.k8s.io/selfsubject"));
    // On its own OperatorCondition, which OLM itself allows by name.
    for granted in ["get", "patch"] {
        let request = format!("{granted} operators.coreos.com/operatorconditions");
        assert!(used.remove(&request), "not used: {request}");
    }
    used.extend(HIDDEN.map(str::to_owned));
    assert_eq!(used, requested("bundle"), "left: used, right: in the bundle");
}

/// Waits until OLM has read this version's report about upgrades.
async fn upgradeable(lab: &Lab, version: &str, expected: &str) {
    let conditions = olm(lab, "v2", "OperatorCondition", "operatorconditions");
    eventually(&format!("{version} is upgradeable: {expected}"), async || {
        let found = conditions.get_opt(version).await.unwrap()?;
        let known = found.data.pointer("/status/conditions")?.as_array()?;
        let condition = known.iter().find(|condition| condition["type"] == "Upgradeable")?;
        (condition["status"] == expected).then_some(())
    })
    .await;
}

/// Publishes the catalog at `address` during a rollout, which must block the upgrade until the new server fails.
async fn upgrade_waits_for_rollout(lab: &Lab, address: &str, from: &str, to: &str) {
    upgradeable(lab, from, "True").await;
    lab.memcached("rolling", json!({ "size": 1, "image": SLOW })).await;
    upgradeable(lab, from, "False").await;
    let address = Patch::Merge(json!({ "spec": { "address": address } }));
    let catalogs = olm(lab, "v1alpha1", "CatalogSource", "catalogsources");
    catalogs.patch("ours", &PatchParams::default(), &address).await.unwrap();
    eventually(&format!("{to} waits"), async || {
        let found = versions(lab).get_opt(to).await.unwrap()?;
        let reason = found.data.pointer("/status/reason")?;
        (reason == "OperatorConditionNotUpgradeable").then_some(())
    })
    .await;
    let (pods, parameters) = (lab.api::<Pod>(), PatchParams::default());
    let selector = ListParams::default().labels("memcached_cr=rolling");
    let pod = pods.list(&selector).await.unwrap().items.remove(0).name_any();
    let looping = json!({ "waiting": { "reason": "CrashLoopBackOff", "message": null } });
    let status = json!({ "containerStatuses": [{ "name": "memcached", "state": looping }] });
    let status = Patch::Strategic(json!({ "status": status }));
    pods.patch_status(&pod, &parameters, &status).await.unwrap();
    let failed = Instant::now();
    eventually(&format!("{to} begins"), async || {
        let found = versions(lab).get_opt(to).await.unwrap()?;
        (found.data.pointer("/status/reason")? != "OperatorConditionNotUpgradeable").then_some(())
    })
    .await;
    let delay = failed.elapsed();
    println!("the upgrade begins {delay:?} after the failure");
    // 3 s on an idle machine. An operator that waits for the next failure of the container needs 85 s.
    assert!(delay < Duration::from_mins(1), "{delay:?}");
    let memcacheds = lab.api::<Memcached>();
    succeeded(lab, to).await;
    memcacheds.delete("rolling", &DeleteParams::default()).await.unwrap();
}

/// The image that the servers of the Memcached `name` run.
async fn runs(lab: &Lab, name: &str, expected: &str) {
    eventually(&format!("{name} runs {expected}"), async || {
        let deployment = lab.api::<Deployment>().get_opt(name).await.unwrap()?;
        image(&deployment).contains(expected).then_some(())
    })
    .await;
    lab.running(name).await;
}

async fn uninstall(lab: &Lab, version: &str) {
    let now = DeleteParams::default();
    olm(lab, "v1alpha1", "Subscription", "subscriptions")
        .delete(PACKAGE, &now)
        .await
        .unwrap();
    versions(lab).delete(version, &now).await.unwrap();
    olm(lab, "v1alpha1", "CatalogSource", "catalogsources")
        .delete("ours", &now)
        .await
        .unwrap();
    // An InstallPlan that OLM still works on writes the version once more. The garbage collector learns of custom
    // resources every 30 seconds only.
    within(Duration::from_secs(180), "the Deployment is deleted", async || {
        let _ = versions(lab).delete(version, &now).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        lab.api::<Deployment>()
            .get_opt(DEPLOYMENT)
            .await
            .unwrap()
            .is_none()
            .then_some(())
    })
    .await;
}

/// One test at a time, because OLM rejects two installations of one API in a cluster as a conflict.
static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn installed_upgraded_and_run_in_its_own_namespace_and_in_all() {
    let _turn = TURN.lock().await;
    let current = current();

    // OwnNamespace, the first release; then the upgrade to the current one through the channel.
    let (own, other) = (Lab::bare("own-mode").await, Lab::bare("other").await);
    let group = json!({ "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": { "name": "own" }, "spec": { "targetNamespaces": ["own-mode"] } });
    create(&olm(&own, "v1", "OperatorGroup", "operatorgroups"), group).await;
    subscribe(&own, &serve(&["releases/0.0.1/bundle"]).await).await;
    succeeded(&own, "memcached-operator.v0.0.1").await;
    let operator = start(&own).await;
    own.memcached("kept", json!({ "size": 1 })).await;
    runs(&own, "kept", "memcached:1.6.38").await;

    let both = serve(&["releases/0.0.1/bundle", "bundle"]).await;
    upgrade_waits_for_rollout(&own, &both, "memcached-operator.v0.0.1", &current).await;
    let (status, log) = operator.terminate().await;
    assert!(status.success(), "{log}");
    let operator = start(&own).await;
    runs(&own, "kept", "memcached:1.6.45").await;

    other.memcached("sample", json!({})).await;
    live(&own).await;
    rights_match(&own, &operator).await;
    let untouched = other.api::<Memcached>().get("sample").await.unwrap();
    assert_eq!(
        (untouched.metadata.finalizers, untouched.status),
        (None, None),
        "not in its namespace"
    );
    own.api::<Memcached>()
        .delete("kept", &DeleteParams::default())
        .await
        .unwrap();
    eventually("kept is deleted", async || {
        own.api::<Memcached>()
            .get_opt("kept")
            .await
            .unwrap()
            .is_none()
            .then_some(())
    })
    .await;
    drop(operator);
    uninstall(&own, &current).await;
    drop((own, other));

    // AllNamespaces: OLM creates cluster-wide permissions from the same `permissions`.
    let all = Lab::existing("operators").await;
    subscribe(&all, &both).await;
    succeeded(&all, &current).await;
    let operator = start(&all).await;
    let other = Lab::existing("other").await;
    other.running("sample").await;
    live(&Lab::existing("own-mode").await).await;
    rights_match(&all, &operator).await;
    let names: Vec<String> = other
        .api::<Deployment>()
        .list(&Default::default())
        .await
        .unwrap()
        .iter()
        .map(ResourceExt::name_any)
        .collect();
    assert_eq!(names, ["sample"]);
    drop(operator);
    uninstall(&all, &current).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn installed_for_tenants() {
    let _turn = TURN.lock().await;
    let address = serve(&["bundle"]).await;
    tenants::one(&current(), &address).await;
    tenants::several(&current(), &address).await;
}

/// The version in `bundle/`.
fn current() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("bundle");
    render::bundle::directory(&folder, "").unwrap().name
}
