//! `bundle rbac --for-installer`: a service account with exactly these permissions installs the bundle, and each of
//! them is needed.

use std::collections::BTreeMap;

use kube::Client;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::discovery::{Scope, pinned_kind};
use kube_testbed::Options;
use serde_json::{Value, json};

use crate::harness::{Cluster, eventually};

const NAMESPACE: &str = "mine";
const RBAC: &str = "rbac.authorization.k8s.io";

/// One right: a namespace if it is of a Role, and a rule for one verb on one thing.
type Right = (Option<String>, Value);

#[tokio::test]
async fn each_right_of_an_installer_is_needed_and_no_other() {
    let cluster = Cluster::start(Options::default()).await;
    cluster.namespace(NAMESPACE).await;
    let bundle = test_support::repository("bundle");
    let bundle = bundle.to_str().unwrap();
    let objects = printed(&cluster, &["bundle", "render", "--olmv1", bundle, "-n", NAMESPACE]);
    let account = printed(
        &cluster,
        &["bundle", "rbac", "--for-installer", bundle, "-n", NAMESPACE],
    );
    let rights: Vec<Right> = account.iter().flat_map(rights).collect();
    let targets = targets(&cluster.client, &objects).await;

    cluster.scene("the account applies all objects");
    let all = user(&cluster, "all", &rights).await;
    eventually("the permissions are effective", async || {
        refused(&all, &targets, false).await.is_empty()
    })
    .await;
    for target in &targets {
        let api = target.api(&all);
        api.patch(
            &target.name,
            &PatchParams::apply("installer"),
            &Patch::Apply(&target.object),
        )
        .await
        .unwrap_or_else(|error| panic!("{}: {error}", target.name));
    }
    assert_eq!(refused(&all, &targets, true).await, Vec::<String>::new());

    cluster.scene("without one of its permissions a request is rejected");
    let mut users = Vec::new();
    for at in 0..rights.len() {
        let mut fewer = rights.clone();
        let missing = fewer.remove(at);
        users.push((missing, user(&cluster, &format!("less-{at}"), &fewer).await));
    }
    let everything = refused(&user(&cluster, "none", &[]).await, &targets, true).await.len();
    for (missing, user) in &users {
        // Once the other permissions are in effect, few requests are rejected: at most, one permission is needed for
        // all roles and their bindings.
        let what = format!("only {} is missing", missing.1);
        eventually(&what, async || {
            let refused = refused(user, &targets, true).await;
            !refused.is_empty() && refused.len() < everything / 4
        })
        .await;
    }
    println!(
        "{} permissions, each needed, for {} objects",
        rights.len(),
        objects.len()
    );
    assert!(rights.len() > 50, "{}", rights.len());
}

/// The documents that a command prints.
fn printed(cluster: &Cluster, arguments: &[&str]) -> Vec<Value> {
    let output = cluster.command(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let documents = text.split("---\n").filter(|document| !document.trim().is_empty());
    documents
        .map(|document| serde_yaml::from_str(document).unwrap())
        .collect()
}

/// The permissions of a role, one by one.
fn rights(role: &Value) -> Vec<Right> {
    if !["Role", "ClusterRole"].contains(&role["kind"].as_str().unwrap()) {
        return Vec::new();
    }
    let namespace = role["metadata"]["namespace"].as_str().map(str::to_owned);
    let mut all = Vec::new();
    for rule in role["rules"].as_array().unwrap() {
        let strings = |field: &str| -> Vec<&str> {
            let list = rule[field].as_array().into_iter().flatten();
            list.map(|text| text.as_str().unwrap()).collect()
        };
        for verb in strings("verbs") {
            for url in strings("nonResourceURLs") {
                all.push((namespace.clone(), json!({"nonResourceURLs": [url], "verbs": [verb]})));
            }
            for group in strings("apiGroups") {
                for resource in strings("resources") {
                    let names = strings("resourceNames");
                    let one = json!({"apiGroups": [group], "resources": [resource], "verbs": [verb]});
                    if names.is_empty() {
                        all.push((namespace.clone(), one.clone()));
                    }
                    for name in names {
                        let mut named = one.clone();
                        named["resourceNames"] = json!([name]);
                        all.push((namespace.clone(), named));
                    }
                }
            }
        }
    }
    all
}

/// A user with these permissions, by impersonation.
async fn user(cluster: &Cluster, name: &str, rights: &[Right]) -> Client {
    let mut scopes: BTreeMap<Option<&str>, Vec<&Value>> = BTreeMap::new();
    for (namespace, rule) in rights {
        scopes.entry(namespace.as_deref()).or_default().push(rule);
    }
    for (namespace, rules) in scopes {
        let (kind, roles, bindings) = match namespace {
            Some(_) => ("Role", "roles", "rolebindings"),
            None => ("ClusterRole", "clusterroles", "clusterrolebindings"),
        };
        let metadata = json!({"name": format!("test-{name}"), "namespace": namespace});
        let api_version = format!("{RBAC}/v1");
        let role = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "rules": rules});
        cluster.apply(roles, role).await;
        let binding = json!({
            "apiVersion": api_version,
            "kind": format!("{kind}Binding"),
            "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": kind, "name": format!("test-{name}")},
            "subjects": [{"apiGroup": RBAC, "kind": "User", "name": name}],
        });
        cluster.apply(bindings, binding).await;
    }
    let mut config = cluster.plane.config().await.unwrap();
    config.auth_info.impersonate = Some(name.to_owned());
    Client::try_from(config).unwrap()
}

/// An object of the bundle and where it is.
struct Target {
    name: String,
    namespaced: bool,
    resource: ApiResource,
    object: DynamicObject,
}

impl Target {
    fn api(&self, client: &Client) -> Api<DynamicObject> {
        match self.namespaced {
            true => Api::namespaced_with(client.clone(), NAMESPACE, &self.resource),
            false => Api::all_with(client.clone(), &self.resource),
        }
    }
}

async fn targets(client: &Client, objects: &[Value]) -> Vec<Target> {
    let mut targets = Vec::new();
    for object in objects {
        let (api_version, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let (resource, capabilities) = pinned_kind(client, &GroupVersionKind::gvk(group, version, kind))
            .await
            .unwrap();
        targets.push(Target {
            name: object["metadata"]["name"].as_str().unwrap().to_owned(),
            namespaced: capabilities.scope == Scope::Namespaced,
            resource,
            object: serde_json::from_value(object.clone()).unwrap(),
        });
    }
    targets
}

/// The requests of OLM v1 that the API server denies to a user. Changes nothing.
async fn refused(user: &Client, targets: &[Target], exist: bool) -> Vec<String> {
    let mut refused = Vec::new();
    let mut note = |what: &str, name: &str, error: Option<kube::Error>| match error {
        Some(kube::Error::Api(status)) if status.code == 403 => refused.push(format!("{what} {name}")),
        // It exists, or does not: it may be done.
        Some(kube::Error::Api(status)) if [404, 409].contains(&status.code) => {}
        Some(error) => panic!("{what} {name}: {error}"),
        None => {}
    };
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    for target in targets {
        let (api, name) = (target.api(user), target.name.as_str());
        // Watched in all namespaces.
        let everywhere: Api<DynamicObject> = Api::all_with(user.clone(), &target.resource);
        note("create", name, api.create(&dry, &target.object).await.err());
        note(
            "list",
            name,
            everywhere.list(&ListParams::default().limit(1)).await.err(),
        );
        note(
            "watch",
            name,
            everywhere.watch(&WatchParams::default().timeout(1), "0").await.err(),
        );
        if !exist {
            continue;
        }
        note("get", name, api.get(name).await.err());
        let apply = PatchParams::apply("installer").dry_run();
        note(
            "patch",
            name,
            api.patch(name, &apply, &Patch::Apply(&target.object)).await.err(),
        );
        let mut same = target.object.clone();
        same.metadata.resource_version = Some("1".to_owned());
        note("update", name, api.replace(name, &dry, &same).await.err());
        note(
            "delete",
            name,
            api.delete(name, &DeleteParams::default().dry_run()).await.err(),
        );
    }
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {
            "group": "olm.operatorframework.io", "resource": "clusterextensions", "subresource": "finalizers",
            "verb": "update", "name": "memcached-operator",
        }},
    });
    let kind = GroupVersionKind::gvk("authorization.k8s.io", "v1", "SelfSubjectAccessReview");
    let resource = ApiResource::from_gvk_with_plural(&kind, "selfsubjectaccessreviews");
    let reviews: Api<DynamicObject> = Api::all_with(user.clone(), &resource);
    let review = serde_json::from_value(review).unwrap();
    let answer = reviews.create(&PostParams::default(), &review).await.unwrap();
    if answer.data["status"]["allowed"] != true {
        refused.push("update finalizers".to_owned());
    }
    refused
}
