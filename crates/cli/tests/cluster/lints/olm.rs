//! Statements about OLM. If a test needs only the effect of a ClusterServiceVersion, it creates it directly in the
//! cluster, without a catalog: all together, in the namespace `operators`, from which OLM watches everything.

use kube_testbed::Options;
use serde_json::{Value, json};

use super::webhooks::{fails_to_convert, mounts_foreign_secret, secrets, unlisted_conversion};
use super::{broken, broken_since, earlier, may};
use crate::bundle::Bundle;
use crate::harness::Cluster;
use crate::kinds::installed_with;

pub const NAMESPACE: &str = "operators";
const HOOKS: &str = "/spec/webhookdefinitions";
pub const POD: &str = "/spec/install/spec/deployments/0/spec/template/spec";

#[tokio::test]
async fn olm_does_what_rules_say() {
    let cluster = Cluster::start(Options::default().with_olm()).await;
    cluster.scene("ClusterServiceVersions");
    install_strategies(&cluster).await;
    cluster.scene("permissions");
    permissions(&cluster).await;
    cluster.scene("APIs that are missing");
    missing_api(&cluster).await;
    cluster.scene("upgrades");
    upgrades(&cluster).await;
}

/// A bundle whose operator runs as the default service account and owns nothing.
pub fn plain(name: &str) -> Bundle {
    let mut bundle = Bundle::new(name, "1.0.0");
    bundle.modes = vec!["AllNamespaces"];
    bundle.changes = vec![
        ("/spec/install/spec/permissions", json!([])),
        ("/spec/install/spec/clusterPermissions", json!([])),
        ("/spec/customresourcedefinitions", json!({})),
        (
            "/spec/install/spec/deployments/0/spec/template/spec/serviceAccountName",
            json!("default"),
        ),
    ];
    bundle
}

fn with(name: &str, changes: Vec<(&'static str, Value)>) -> Bundle {
    let mut bundle = plain(name);
    bundle.changes.extend(changes);
    bundle
}

/// A webhook of the bundle `name`, with other fields.
fn hook(name: &str, other: Value) -> Value {
    let mut hook = json!({
        "type": "ValidatingAdmissionWebhook",
        "generateName": format!("things.{name}.example.com"),
        "deploymentName": format!("{name}-manager"),
        "containerPort": 443,
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Ignore",
        "rules": [{"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["things"]}],
    });
    for (key, value) in other.as_object().unwrap() {
        hook[key] = value.clone();
    }
    hook.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    hook
}

pub fn hooks(name: &str, others: &[Value]) -> Bundle {
    let all: Vec<Value> = others.iter().map(|other| hook(name, other.clone())).collect();
    with(name, vec![(HOOKS, all.into())])
}

/// A conversion webhook for a CRD, which the bundle owns or does not.
fn conversion(name: &str, owns: bool) -> Bundle {
    let mut bundle = hooks(
        name,
        &[json!({
            "type": "ConversionWebhook",
            "conversionCRDs": [format!("things.{name}.example.com")],
            "rules": null,
            "webhookPath": "/convert",
        })],
    );
    if owns {
        bundle
            .changes
            .retain(|(pointer, _)| *pointer != "/spec/customresourcedefinitions");
    }
    bundle
}

/// A bundle that names the namespace of the operator in an annotation, as OLM does in copies.
fn copy(name: &str, namespace: &str) -> Bundle {
    let annotations = json!({"capabilities": "Basic Install", "olm.operatorNamespace": namespace});
    with(name, vec![("/metadata/annotations", annotations)])
}

fn any_group(group: &str) -> Value {
    json!({"rules": [{"apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["things"]}]})
}

async fn install_strategies(cluster: &Cluster) {
    let unowned_account = [(
        "/spec/install/spec/deployments/0/spec/template/spec/serviceAccountName",
        json!("nobody"),
    )];
    // The rule, whether it warns and the installation does not succeed, the bundle.
    let claims = [
        ("HOOK-1", false, hooks("hook", &[json!({})])),
        ("HOOK-1", true, hooks("hook-1", &[json!({"deploymentName": "nobody"})])),
        (
            "HOOK-2",
            false,
            hooks(
                "hook-2-fine",
                &[json!({}), json!({"generateName": "b.hook.example.com"})],
            ),
        ),
        ("HOOK-2", true, hooks("hook-2", &[json!({}), json!({})])),
        (
            "HOOK-3",
            true,
            hooks("hook-3-short", &[json!({"generateName": "example.com"})]),
        ),
        (
            "HOOK-3",
            true,
            hooks("hook-3", &[json!({"generateName": "A_b.example.com"})]),
        ),
        ("HOOK-4", false, hooks("hook-4-fine", &[any_group("apps")])),
        ("HOOK-4", true, hooks("hook-4-all", &[any_group("*")])),
        (
            "HOOK-4",
            true,
            hooks("hook-4-olm", &[any_group("operators.coreos.com")]),
        ),
        ("HOOK-6", false, conversion("hook-6-fine", true)),
        ("HOOK-6", true, conversion("hook-6", false)),
        ("RBAC-1", true, with("rbac-1", unowned_account.to_vec())),
        ("COPY-1", true, copy("copy-1", "elsewhere")),
        (
            "COPY-1",
            true,
            with(
                "copy-1-label",
                vec![("/metadata/labels", json!({"olm.copiedFrom": "elsewhere"}))],
            ),
        ),
    ];
    for (rule, warned, bundle) in &claims {
        let directory = bundle.write(cluster.folder.path());
        assert_eq!(broken(&directory).contains(rule), *warned, "{rule}: {}", bundle.file);
        create(cluster, bundle).await;
    }
    let two = json!([
        plain("pod-3").csv()["spec"]["install"]["spec"]["deployments"][0],
        plain("pod-3").csv()["spec"]["install"]["spec"]["deployments"][0],
    ]);
    let pod_3 = with("pod-3", vec![("/spec/install/spec/deployments", two)]);
    assert!(broken(&pod_3.write(cluster.folder.path())).contains(&"POD-3"));
    create(cluster, &pod_3).await;
    // Where a pod mounts the Secret of cert-manager, and whether it waits for it.
    let certificates = [
        ("cert-1", "cert", "/certs", true),
        ("cert-1-name", "webhook-cert", "/certs", false),
        ("cert-1-place", "cert", "/tmp/k8s-webhook-server/serving-certs", false),
    ]
    .map(|(name, volume, path, waits)| (secrets(name, volume, path), waits));
    for (bundle, waits) in &certificates {
        let ids = broken(&bundle.write(cluster.folder.path()));
        assert_eq!(ids.contains(&"CERT-1"), *waits, "{}", bundle.file);
        create(cluster, bundle).await;
    }
    let conversions =
        [("hook-7", true), ("hook-7-single", false)].map(|(name, both)| (unlisted_conversion(name, both), both));
    for (bundle, both) in &conversions {
        let ids = broken(&bundle.write(cluster.folder.path()));
        assert_eq!(ids.contains(&"HOOK-7"), *both, "{}", bundle.file);
        create(cluster, bundle).await;
    }

    for (_, _, bundle) in claims.iter().filter(|(_, warned, _)| !warned) {
        cluster.settled(NAMESPACE, &bundle.csv_name()).await;
    }
    for (bundle, _) in &conversions {
        cluster.settled(NAMESPACE, &bundle.csv_name()).await;
    }
    for (bundle, _) in &certificates {
        cluster.settled(NAMESPACE, &bundle.csv_name()).await;
    }
    for (rule, _, bundle) in claims.iter().filter(|(_, warned, _)| *warned) {
        let phase = cluster.phase(NAMESPACE, &bundle.csv_name()).await;
        println!("{rule} {}: {phase}", bundle.file);
        assert_ne!(phase, "Succeeded", "{rule}: {}", bundle.file);
    }
    let named = cluster
        .get("apps/v1", "Deployment", "deployments", Some(NAMESPACE), "pod-3-manager")
        .await;
    assert!(named.is_some(), "one Deployment represents both");
    // OLM makes its own certificate, and no Secret of another name. The kubelet waits for volumes that a container mounts.
    for (bundle, waits) in &certificates {
        let name = &bundle.file;
        let secret = async |name: &str| cluster.get("v1", "Secret", "secrets", Some(NAMESPACE), name).await;
        assert!(secret(&format!("from-cert-manager-{name}")).await.is_none());
        assert!(secret(&format!("{name}-manager-service-cert")).await.is_some());
        assert_eq!(mounts_foreign_secret(cluster, name).await, *waits, "{name}");
    }
    // OLM's service converts the listed CRDs and does not change the others.
    let service = async |name: &str| {
        let crd = cluster
            .get(
                "apiextensions.k8s.io/v1",
                "CustomResourceDefinition",
                "customresourcedefinitions",
                None,
                name,
            )
            .await;
        crd.unwrap()["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["name"].clone()
    };
    for (bundle, both) in &conversions {
        assert_eq!(service(&bundle.crd_name()).await, "of-the-author");
        assert_eq!(fails_to_convert(cluster, bundle).await, *both, "{}", bundle.file);
    }
    assert_eq!(
        service("things.hook-6-fine.example.com").await,
        "hook-6-fine-manager-service"
    );
}

/// Puts the CRD, if the bundle owns it, and the ClusterServiceVersion into the cluster.
async fn create(cluster: &Cluster, bundle: &Bundle) {
    let mut csv = bundle.csv();
    if !csv["spec"]["customresourcedefinitions"]["owned"].is_null() {
        cluster.apply("customresourcedefinitions", bundle.crd()).await;
    }
    csv["metadata"]["namespace"] = NAMESPACE.into();
    cluster.apply("clusterserviceversions", csv).await;
}

async fn permissions(cluster: &Cluster) {
    let rule = |groups: &str, resources: &[&str], verbs: &[&str]| json!({"apiGroups": [groups], "resources": resources, "verbs": verbs});
    let operator = |name: &str| {
        let mut bundle = Bundle::new(name, "1.0.0");
        let mut crd = bundle.crd();
        crd["spec"]["versions"][0]["subresources"] = json!({"status": {}});
        bundle.definition = Some(crd);
        let mut container = bundle.csv().pointer(POD).unwrap()["containers"][0].clone();
        container["args"] = json!(["--leader-elect"]);
        bundle.changes = vec![(
            "/spec/install/spec/deployments/0/spec/template/spec/containers",
            json!([container]),
        )];
        bundle
    };
    let mut fine = operator("fine");
    fine.cluster_rules = vec![
        rule("fine.example.com", &["things"], &["list", "watch", "update"]),
        rule("fine.example.com", &["things/status"], &["update"]),
        rule("coordination.k8s.io", &["leases"], &["get", "create", "update"]),
    ];
    let mut lacking = operator("lacking");
    lacking.cluster_rules = vec![rule("lacking.example.com", &["things"], &["get", "update"])];
    let mut mighty = Bundle::new("mighty", "1.0.0");
    mighty.cluster_rules = vec![rule("*", &["*"], &["*"])];
    let mut bound = Bundle::new("bound", "1.0.0");
    bound.cluster_rules = vec![rule("bound.example.com", &["things"], &["list", "watch"])];
    bound.extra = vec![
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "bound-reader"},
            "rules": [rule("", &["secrets"], &["list"])],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "bound-reader"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "bound-reader"},
            "subjects": [{"kind": "ServiceAccount", "name": "bound-account", "namespace": "elsewhere"}],
        }),
    ];
    for (bundle, broken_rules) in [
        (&fine, vec![]),
        (&lacking, vec!["RBAC-3", "RBAC-4", "RBAC-9"]),
        (&mighty, vec!["RBAC-6"]),
        (&bound, vec!["RBAC-8"]),
    ] {
        let directory = bundle.write(cluster.folder.path());
        let ids = broken(&directory);
        for rule in ["RBAC-3", "RBAC-4", "RBAC-6", "RBAC-8", "RBAC-9"] {
            assert_eq!(
                ids.contains(&rule),
                broken_rules.contains(&rule),
                "{}: {rule}",
                bundle.file
            );
        }
        cluster.namespace(&bundle.file).await;
        cluster.run_bundle(&directory, &bundle.file, &[]).await.fine();
    }
    let things = |name: &str| format!("things.{name}.example.com");
    for (name, has) in [("fine", true), ("lacking", false)] {
        let account = format!("{name}-account");
        let can = async |verb: &str, resource: &str| may(cluster, name, &account, verb, resource).await;
        assert_eq!(can("list", &things(name)).await, has, "{name}");
        assert_eq!(can("watch", &things(name)).await, has, "{name}");
        assert_eq!(can("update", &format!("{}/status", things(name))).await, has, "{name}");
        assert_eq!(can("update", "leases.coordination.k8s.io").await, has, "{name}");
    }
    assert!(may(cluster, "mighty", "mighty-account", "delete", "nodes").await);
    assert!(!may(cluster, "fine", "fine-account", "delete", "nodes").await);
    assert!(may(cluster, "elsewhere", "bound-account", "list", "secrets").await);
    assert!(!may(cluster, "bound", "bound-account", "list", "secrets").await);

    // The permissions of one account do not help another.
    let mut swapped = Bundle::new("swapped", "1.0.0");
    swapped.changes = vec![(
        "/spec/install/spec/deployments/0/spec/template/spec/serviceAccountName",
        json!("nobody"),
    )];
    let directory = swapped.write(cluster.folder.path());
    assert!(broken(&directory).contains(&"RBAC-2"));
    cluster.namespace("swapped").await;
    let answer = cluster.run_bundle(&directory, "swapped", &["--timeout", "15s"]).await;
    assert!(!answer.success);
    assert!(may(cluster, "swapped", "swapped-account", "get", "nodes").await);
    assert!(!may(cluster, "swapped", "nobody", "get", "nodes").await);
}

async fn missing_api(cluster: &Cluster) {
    let mut bundle = Bundle::new("monitored", "1.0.0");
    assert!(!broken(&bundle.write(cluster.folder.path())).contains(&"KUBE-2"));
    bundle.extra = vec![json!({
        "apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor", "metadata": {"name": "monitored"},
        "spec": {"endpoints": [], "selector": {}},
    })];
    let directory = bundle.write(cluster.folder.path());
    assert!(broken(&directory).contains(&"KUBE-2"));
    cluster.namespace("monitored").await;
    let answer = cluster.run_bundle(&directory, "monitored", &["--timeout", "30s"]).await;
    assert!(!answer.success, "an API that does not exist is not missed");
    // OLM itself, both ways.
    let spec = json!({"spec": {"endpoints": [], "selector": {}}});
    let phase = installed_with(cluster, "monitoring.coreos.com/v1", "ServiceMonitor", spec).await;
    assert_eq!(phase, "Failed");
    let phase = installed_with(cluster, "v1", "ConfigMap", json!({"data": {"a": "b"}})).await;
    assert_eq!(phase, "Complete");
}

/// A custom resource that the new schema rejects blocks OLM's upgrade.
async fn upgrades(cluster: &Cluster) {
    let bundle = |version: &str, maximum: u32| {
        let mut bundle = Bundle::new("bounded", version);
        let mut crd = bundle.crd();
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"size": {"type": "integer", "maximum": maximum}}},
        }});
        bundle.definition = Some(crd);
        let example = json!([{"apiVersion": "bounded.example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"size": 5}}]);
        bundle.changes = vec![("/metadata/annotations/alm-examples", example.to_string().into())];
        bundle
    };
    let first = bundle("1.0.0", 5).write(cluster.folder.path());
    let wider = bundle("1.1.0", 9).write(cluster.folder.path());
    let narrower = bundle("1.2.0", 3).write(cluster.folder.path());
    for (directory, warned) in [(&wider, false), (&narrower, true)] {
        let ids = broken_since(directory, earlier(&first));
        assert_eq!(ids.contains(&"CRD-34"), warned, "{ids:?}");
        assert_eq!(ids.contains(&"EX-4"), warned, "{ids:?}");
    }
    cluster.namespace("bounded").await;
    cluster.run_bundle(&first, "bounded", &[]).await.fine();
    cluster
        .apply("things", json!({"apiVersion": "bounded.example.com/v1", "kind": "Thing", "metadata": {"name": "a", "namespace": "bounded"}, "spec": {"size": 5}}))
        .await;
    cluster.upgrade(&wider, "bounded").await.fine();
    let answer = cluster.upgrade(&narrower, "bounded").await;
    assert!(!answer.success);
    let text = format!("{}{}", answer.stdout, answer.stderr);
    assert!(text.contains("too restrictive"), "{text}");
}
