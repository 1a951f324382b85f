//! The rights of each command: enough, none too many, checked before anything is changed, and as the documentation says.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kube_testbed::{AuditEvent, Options};
use olmkit::catalog::{load, model::Blob, render, write};
use olmkit_cluster::rights::{Command, Place, RIGHTS, Right, When};
use serde_json::{Value, json};

use crate::bundle::Bundle;
use crate::harness::{Answer, Cluster};

/// Where the accounts are.
const ACCOUNTS: &str = "accounts";

/// Where operators are installed.
const NAMESPACE: &str = "rights";

/// Whether the scenes bring it about.
fn is_exercised(command: Command, when: When) -> bool {
    match when {
        When::OldJobs | When::Repair | When::Kept | When::Better(_) => false,
        When::CatalogPod => command == Command::RunBundle,
        _ => true,
    }
}

#[tokio::test]
async fn each_command_needs_the_rights_that_are_listed_and_no_others() {
    let cluster = Cluster::start(Options::default().with_olm().with_audit()).await;
    for name in [ACCOUNTS, NAMESPACE] {
        cluster.namespace(name).await;
    }
    let (mut old, mut new) = (Bundle::new("first", "0.0.1"), Bundle::new("first", "0.0.2"));
    old.extra = vec![cluster_role("first-viewer"), cluster_binding(), priority_class()];
    new.extra = old.extra.clone();
    let before = cluster.inventory().await;
    flows(&cluster, &old, &new).await;
    subscription(&cluster, &old).await;
    catalog_in_a_pod(&cluster).await;
    let used = [
        Command::RunBundle,
        Command::BundleUpgrade,
        Command::Cleanup,
        Command::Subscribe,
        Command::Diagnose,
        Command::Migrate,
        Command::OlmStatus,
    ];
    compare(&cluster, &used, "first.example.com").await;
    revoke(&cluster).await;
    cluster.nothing_left(&before).await;
}

async fn flows(cluster: &Cluster, old: &Bundle, new: &Bundle) {
    cluster.scene("install, look, upgrade, remove, each with the rights of its command");
    let (old, new) = (old.write(cluster.folder.path()), new.write(cluster.folder.path()));
    let account = grant(cluster, Command::RunBundle, |_| true).await;
    let arguments = ["run", "bundle", text(&old), "--timeout", "90s"];
    run(cluster, &account, &arguments).await.fine();
    let account = grant(cluster, Command::Diagnose, |_| true).await;
    run(cluster, &account, &["diagnose"]).await.fine();
    let account = grant(cluster, Command::OlmStatus, |_| true).await;
    // No Deployments of OLM run here, which is what the status says.
    let status = run(cluster, &account, &["olm", "status"]).await;
    assert!(!status.codes().contains(&"forbidden"), "{}", status.stdout);
    let account = grant(cluster, Command::BundleUpgrade, |_| true).await;
    let arguments = ["run", "bundle-upgrade", text(&new), "--timeout", "90s"];
    run(cluster, &account, &arguments).await.fine();
    cluster.settled(NAMESPACE, "first.v0.0.2").await;
    make_thing(cluster).await;
    let account = grant(cluster, Command::Cleanup, |_| true).await;
    let cleaned = run(cluster, &account, &["cleanup", "first"]).await.fine();
    assert_eq!(cleaned.json["kept"], json!([]));
}

async fn subscription(cluster: &Cluster, bundle: &Bundle) {
    cluster.scene("subscribe to a catalog");
    let folder = bundle.write(cluster.folder.path());
    let rendered = render::bundle::directory(&folder, "").unwrap();
    let mut catalog = format!(
        "{{\"schema\": \"olm.package\", \"name\": \"first\", \"defaultChannel\": \"alpha\"}}\n\
         {{\"schema\": \"olm.channel\", \"package\": \"first\", \"name\": \"alpha\", \"entries\": [{{\"name\": \"{}\"}}]}}\n",
        bundle.csv_name()
    );
    write::blob(&Blob::Bundle(rendered), write::Format::Json, &mut catalog).unwrap();
    let server = olmkit_serve::Server::bind("127.0.0.1:0".parse().unwrap())
        .await
        .unwrap();
    let catalog = load::text(&catalog).unwrap().into_iter().collect();
    server.current().set(olmkit_serve::index::in_memory(&catalog).unwrap());
    let address = server.address();
    let serving = tokio::spawn(server.run(std::future::pending()));
    let source = json!({"apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
        "metadata": {"name": "offered", "namespace": NAMESPACE},
        "spec": {"sourceType": "grpc", "address": address.to_string(), "displayName": "offered", "publisher": "people"}});
    cluster.apply("catalogsources", source).await;
    let account = grant(cluster, Command::Subscribe, |_| true).await;
    let arguments = [
        "subscribe",
        "first",
        "--catalog",
        "offered",
        "--approval",
        "manual",
        "--timeout",
        "90s",
    ];
    run(cluster, &account, &arguments).await.fine();
    let account = grant(cluster, Command::Migrate, |_| true).await;
    let assessed = run(cluster, &account, &["migrate", "check"]).await;
    assert_eq!(assessed.json[0]["package"], "first", "{}", assessed.stdout);
    let account = grant(cluster, Command::Cleanup, |_| true).await;
    run(cluster, &account, &["cleanup", "first"]).await.fine();
    cluster
        .delete(
            "operators.coreos.com/v1alpha1",
            "CatalogSource",
            "catalogsources",
            Some(NAMESPACE),
            "offered",
        )
        .await;
    serving.abort();
}

/// No node runs the pod, so OLM never reaches it; all of it is made nevertheless.
async fn catalog_in_a_pod(cluster: &Cluster) {
    cluster.scene("a catalog in a pod");
    let folder = Bundle::new("second", "1.0.0").write(cluster.folder.path());
    let account = grant(cluster, Command::RunBundle, |_| true).await;
    let arguments = [
        "run",
        "bundle",
        text(&folder),
        "--helper-image",
        "registry.example.com/helper:1",
        "--timeout",
        "8s",
    ];
    let failed = run(cluster, &account, &arguments).await;
    assert!(!failed.codes().contains(&"forbidden"), "{}", failed.stdout);
    assert_eq!(failed.json["result"], "failed");
    let account = grant(cluster, Command::Cleanup, |_| true).await;
    let cleaned = run(cluster, &account, &["cleanup", "second"]).await.fine();
    let removed: Vec<&str> = cleaned.json["removed"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|object| object["kind"].as_str())
        .collect();
    // The rest belongs to the CatalogSource, and the garbage collector may be quicker.
    for kind in ["CatalogSource", "Subscription"] {
        assert!(removed.contains(&kind), "{kind} of {removed:?}");
    }
}

#[tokio::test]
async fn rights_that_are_missing_are_named_before_anything_is_changed() {
    let cluster = Cluster::start(Options::default().with_olm()).await;
    for name in [ACCOUNTS, NAMESPACE] {
        cluster.namespace(name).await;
    }
    let mut bundle = Bundle::new("first", "0.0.1");
    bundle.extra = vec![cluster_role("first-viewer")];
    let folder = bundle.write(cluster.folder.path());
    let lacks = |resource: &'static str, verb: &'static str| {
        move |right: &Right| !(right.resources.contains(&resource) && right.verbs.contains(&verb))
    };
    let arguments = ["run", "bundle", text(&folder), "--timeout", "90s"];
    for (resource, verb) in [
        ("installplans", "patch"),
        ("events", "list"),
        ("operatorgroups", "create"),
    ] {
        cluster.scene(&format!("run bundle without {verb} {resource}"));
        let account = grant(&cluster, Command::RunBundle, lacks(resource, verb)).await;
        let before = cluster.inventory().await;
        let refused = run(&cluster, &account, &arguments).await;
        assert_eq!(refused.json["result"], "refused", "{}", refused.stdout);
        assert_named(&refused, resource, verb);
        assert_eq!(cluster.inventory().await, before);
    }
    cluster.scene("what is optional may be missing");
    let account = grant(&cluster, Command::RunBundle, |right| {
        !matches!(right.when, When::Better(_) | When::Repair)
    })
    .await;
    run(&cluster, &account, &arguments).await.fine();
    for (resource, verb) in [
        ("clusterroles", "delete"),
        ("customresourcedefinitions", "delete"),
        ("services", "list"),
    ] {
        cluster.scene(&format!("cleanup without {verb} {resource}"));
        let account = grant(&cluster, Command::Cleanup, lacks(resource, verb)).await;
        let before = cluster.inventory().await;
        let refused = run(
            &cluster,
            &account,
            &["cleanup", "first", "--delete-crds=things.first.example.com"],
        )
        .await;
        assert!(!refused.success);
        assert_named(&refused, resource, verb);
        assert_eq!(cluster.inventory().await, before);
    }
    cluster.scene("olm uninstall without the right to delete definitions");
    let account = grant(
        &cluster,
        Command::OlmUninstall,
        lacks("customresourcedefinitions", "delete"),
    )
    .await;
    let before = cluster.inventory().await;
    let refused = run(&cluster, &account, &["olm", "uninstall", "--with-operators"]).await;
    assert!(!refused.success);
    assert_named(&refused, "customresourcedefinitions", "delete");
    assert_eq!(cluster.inventory().await, before);
}

#[track_caller]
fn assert_named(refused: &Answer, resource: &str, verb: &str) {
    assert!(refused.codes().contains(&"forbidden"), "{}", refused.stdout);
    let causes = refused.json["causes"].as_array().unwrap();
    let named = causes
        .iter()
        .filter_map(|cause| cause["message"].as_str())
        .any(|message| message.contains(resource) && message.contains(verb));
    assert!(named, "{verb} {resource} is not named: {causes:#?}");
}

/// OLM is installed and removed on a control plane without one.
#[tokio::test]
async fn olm_is_installed_and_removed_with_the_rights_that_are_listed() {
    let cluster = Cluster::start(Options::default().with_audit()).await;
    cluster.namespace(ACCOUNTS).await;
    cluster.namespace("elsewhere").await;
    let before = cluster.inventory().await;
    let chart = cluster.chart();
    let account = grant(&cluster, Command::OlmInstall, |_| true).await;
    let install = [
        "olm",
        "install",
        "--from",
        text(&chart),
        "--version",
        "0.46.0",
        "--olm-image",
        "registry.example.com/olm:1",
        "--opm-image",
        "registry.example.com/opm:1",
        "--olm-namespace",
        "elsewhere",
        "--no-wait-for-packageserver",
        "--timeout",
        "120s",
        "--kubeconfig",
        text(&account),
    ];
    cluster.olmkit(&install).await.fine();
    let account = grant(&cluster, Command::OlmUninstall, |_| true).await;
    cluster.scene("a namespace that others use stays");
    cluster
        .apply(
            "configmaps",
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs", "namespace": "operators"}}),
        )
        .await;
    let removed = run(&cluster, &account, &["olm", "uninstall", "--timeout", "120s"])
        .await
        .fine();
    let kept = removed.json["kept"].as_array().unwrap();
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(kept[0]["object"]["name"], "operators");
    assert!(
        kept[0]["why"].as_str().unwrap().contains("ConfigMap operators/theirs"),
        "{kept:?}"
    );
    assert!(
        cluster
            .get("v1", "Namespace", "namespaces", None, "elsewhere")
            .await
            .is_none()
    );
    cluster
        .delete("v1", "ConfigMap", "configmaps", Some("operators"), "theirs")
        .await;
    run(&cluster, &account, &["olm", "uninstall", "--timeout", "120s"])
        .await
        .fine();
    assert!(
        cluster
            .get("v1", "Namespace", "namespaces", None, "operators")
            .await
            .is_none()
    );
    compare(&cluster, &[Command::OlmInstall, Command::OlmUninstall], "none").await;
    revoke(&cluster).await;
    let left: Vec<String> = before
        .iter()
        .filter(|object| !object.contains("elsewhere"))
        .cloned()
        .collect();
    cluster.nothing_missing(&left).await;
}

/// The account of an OperatorGroup, as the documentation writes it down: also when a ClusterRole of the bundle stands already.
#[tokio::test]
async fn the_account_of_the_documentation_lets_olm_install() {
    let cluster = Cluster::start(Options::default().with_olm()).await;
    cluster.namespace("shop").await;
    let guide = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cluster.md")).unwrap();
    let section = guide.split_once("## With an account of limited rights").unwrap().1;
    let yaml = section.split_once("```yaml\n").unwrap().1.split_once("```").unwrap().0;
    cluster
        .apply("serviceaccounts", json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "installer", "namespace": "shop"}}))
        .await;
    for document in yaml.split("---\n") {
        let object: Value = serde_yaml::from_str(document).unwrap();
        let plural = format!("{}s", object["kind"].as_str().unwrap().to_lowercase());
        cluster.apply(&plural, object).await;
    }
    cluster
        .apply("operatorgroups", json!({"apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup", "metadata": {"name": "limited", "namespace": "shop"},
            "spec": {"targetNamespaces": ["shop"], "serviceAccountName": "installer"}}))
        .await;
    let mut bundle = Bundle::new("first", "0.0.1");
    bundle.extra = vec![cluster_role("first-viewer")];
    let folder = bundle.write(cluster.folder.path());
    let mode = ["--install-mode", "OwnNamespace"];
    for scene in ["nothing stands", "the ClusterRole stands already"] {
        cluster.scene(scene);
        cluster.run_bundle(&folder, "shop", &mode).await.fine();
        cluster.cleanup("first", "shop", &[]).await.fine();
        cluster.apply("clusterroles", cluster_role("first-viewer")).await;
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

async fn run(cluster: &Cluster, kubeconfig: &Path, arguments: &[&str]) -> Answer {
    let mut all = arguments.to_vec();
    all.extend(["-o", "json", "--kubeconfig", text(kubeconfig)]);
    if !arguments.contains(&"olm") {
        all.extend(["-n", NAMESPACE]);
    }
    cluster.olmkit(&all).await
}

fn name(command: Command) -> String {
    command.as_str().replace(' ', "-")
}

/// An account with the rights of a command that pass, and no others.
async fn grant(cluster: &Cluster, command: Command, passes: impl Fn(&Right) -> bool) -> PathBuf {
    let account = name(command);
    let object =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account, "namespace": ACCOUNTS}});
    cluster.apply("serviceaccounts", object).await;
    let rights = || {
        RIGHTS
            .iter()
            .filter(|right| right.commands.contains(&command) && passes(right))
    };
    let rules = |places: &[Place]| -> Vec<Value> {
        rights()
            .filter(|right| places.contains(&right.place))
            .map(|right| json!({"apiGroups": [right.group], "resources": right.resources, "verbs": right.verbs}))
            .collect()
    };
    let mut of_cluster = rules(&[Place::Cluster]);
    if command == Command::Cleanup {
        of_cluster.push(json!({"apiGroups": ["first.example.com", "second.example.com"], "resources": ["things"], "verbs": ["list", "get", "delete"]}));
    }
    bind(cluster, &account, None, of_cluster).await;
    bind(cluster, &account, Some("kube-system"), rules(&[Place::KubeSystem])).await;
    let exists = |name| cluster.get("v1", "Namespace", "namespaces", None, name);
    if exists("olm").await.is_some() {
        bind(cluster, &account, Some("olm"), rules(&[Place::Catalogs, Place::Olm])).await;
    }
    if exists(NAMESPACE).await.is_some() {
        bind(
            cluster,
            &account,
            Some(NAMESPACE),
            rules(&[Place::Namespace, Place::Catalogs]),
        )
        .await;
    }
    cluster
        .plane
        .service_account_kubeconfig(ACCOUNTS, &account)
        .await
        .unwrap()
}

async fn bind(cluster: &Cluster, account: &str, namespace: Option<&str>, rules: Vec<Value>) {
    let role = format!("test-{account}");
    let (kind, scope) = if namespace.is_some() {
        ("Role", "roles")
    } else {
        ("ClusterRole", "clusterroles")
    };
    let group = "rbac.authorization.k8s.io";
    let metadata = json!({"name": role, "namespace": namespace});
    let api_version = format!("{group}/v1");
    cluster
        .apply(
            scope,
            json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "rules": rules}),
        )
        .await;
    let bindings = if namespace.is_some() {
        "rolebindings"
    } else {
        "clusterrolebindings"
    };
    cluster
        .apply(
            bindings,
            json!({"apiVersion": api_version, "kind": format!("{kind}Binding"), "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": kind, "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": ACCOUNTS}]}),
        )
        .await;
}

/// Removes the accounts and what they were granted.
async fn revoke(cluster: &Cluster) {
    let api_version = "rbac.authorization.k8s.io/v1";
    for object in cluster.inventory().await {
        let Some((kind, path)) = object.split_once(' ') else {
            continue;
        };
        let Some((namespace, name)) = path.split_once('/') else {
            continue;
        };
        let namespace = (!namespace.is_empty()).then_some(namespace);
        match kind {
            "Role" | "RoleBinding" | "ClusterRole" | "ClusterRoleBinding" if name.starts_with("test-") => {
                cluster
                    .delete(api_version, kind, &format!("{}s", kind.to_lowercase()), namespace, name)
                    .await;
            }
            "ServiceAccount" if namespace == Some(ACCOUNTS) && name != "default" => {
                cluster.delete("v1", kind, "serviceaccounts", namespace, name).await;
            }
            _ => {}
        }
    }
}

/// One use of a right: resource, verb, and the place that the request named.
type Use = (String, String, String, String);

/// Compares the table with what the API server has recorded.
async fn compare(cluster: &Cluster, commands: &[Command], own_group: &str) {
    let events = cluster.plane.audit_events().unwrap();
    let (mut unlisted, mut unused) = (Vec::new(), Vec::new());
    for command in commands {
        let user = format!("system:serviceaccount:{ACCOUNTS}:{}", name(*command));
        let uses: BTreeSet<Use> = events
            .iter()
            .filter(|event| event.user.username == user)
            .flat_map(uses)
            .filter(|(group, ..)| ![own_group, "second.example.com", "authorization.k8s.io"].contains(&group.as_str()))
            .collect();
        assert!(!uses.is_empty(), "{command:?}");
        let rights = || RIGHTS.iter().filter(|right| right.commands.contains(command));
        for used in &uses {
            if !rights().any(|right| covers(right, used)) {
                unlisted.push(format!("{command:?}: {used:?}"));
            }
        }
        for right in rights().filter(|right| is_exercised(*command, right.when)) {
            for (resource, verb) in right
                .resources
                .iter()
                .flat_map(|one| right.verbs.iter().map(move |verb| (one, verb)))
            {
                let is_used = |used: &Use| covers(right, used) && used.1 == *resource && used.2 == *verb;
                let is_unseen = UNSEEN.contains(&(*command, format!("{verb} {resource}").as_str()))
                    // Nothing but OLM's own objects is there to be removed.
                    || *command == Command::OlmUninstall && *verb != "list";
                if !is_unseen && !uses.iter().any(is_used) {
                    unused.push(format!("{command:?}: {verb} {resource}"));
                }
            }
        }
    }
    assert!(
        unlisted.is_empty(),
        "rights are needed that the table does not have: {unlisted:#?}"
    );
    assert!(unused.is_empty(), "the table has rights that nobody uses: {unused:#?}");
}

/// Rights that are needed and that these scenes do not bring about, or that no request shows.
const UNSEEN: &[(Command, &str)] = &[
    // Asked for by the API server when a ClusterRole or a binding is written.
    (Command::OlmInstall, "escalate clusterroles"),
    (Command::OlmInstall, "bind clusterroles"),
    // What belongs to the CatalogSource may be gone with it.
    (Command::Cleanup, "get configmaps"),
    (Command::Cleanup, "get services"),
    (Command::Cleanup, "get deployments"),
    // The bundles have no webhooks, and nothing is in need of a network policy.
    (Command::Cleanup, "get networkpolicies"),
    (Command::Cleanup, "delete networkpolicies"),
    (Command::Cleanup, "get rolebindings"),
    (Command::Cleanup, "delete rolebindings"),
    (Command::Cleanup, "get mutatingwebhookconfigurations"),
    (Command::Cleanup, "delete mutatingwebhookconfigurations"),
    (Command::Cleanup, "get validatingwebhookconfigurations"),
    (Command::Cleanup, "delete validatingwebhookconfigurations"),
    // Without waiting for packageserver.
    (Command::OlmInstall, "get clusterserviceversions"),
];

fn uses(event: &AuditEvent) -> Vec<Use> {
    let Some(object) = &event.object_ref else {
        return Vec::new();
    };
    let resource = if object.subresource.is_empty() {
        object.resource.clone()
    } else {
        format!("{}/{}", object.resource, object.subresource)
    };
    let used = |verb: &str| {
        (
            object.api_group.clone(),
            resource.clone(),
            verb.to_owned(),
            object.namespace.clone(),
        )
    };
    let code = event.code();
    let mut found = vec![used(&event.verb)];
    // An apply that creates is a patch in the log.
    if event.verb == "patch" && code == 201 {
        found.push(used("create"));
    }
    found
}

fn covers(right: &Right, (group, resource, verb, namespace): &Use) -> bool {
    let place = match right.place {
        Place::Cluster => true,
        Place::Namespace => namespace == NAMESPACE,
        Place::Catalogs => namespace == NAMESPACE || namespace == "olm",
        Place::Olm => namespace == "olm",
        Place::KubeSystem => namespace == "kube-system",
    };
    let of_group = right.group == group || right.group == "*";
    let of_resource = right.resources.contains(&resource.as_str()) || right.resources == ["*"];
    place && of_group && of_resource && right.verbs.contains(&verb.as_str())
}

async fn make_thing(cluster: &Cluster) {
    cluster
        .apply("things", json!({"apiVersion": "first.example.com/v1", "kind": "Thing", "metadata": {"name": "one", "namespace": NAMESPACE}}))
        .await;
}

fn cluster_role(name: &str) -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
        "rules": [{"apiGroups": ["first.example.com"], "resources": ["things"], "verbs": ["get"]}]})
}

fn priority_class() -> Value {
    json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "first"}, "value": 5})
}

fn cluster_binding() -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "first-viewers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "first-viewer"},
        "subjects": [{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "first-viewers"}]})
}
