//! Scope of permissions: a Role grants nothing that is cluster-scoped.

use std::collections::BTreeSet;

use serde_json::Value;

use super::grants::{CLUSTER, NAMESPACED, rules};
use crate::diagnostics::{Origin, Proof, Severity, Witness, define_rules};
use crate::validate::checked::Checked;
use crate::validate::context::{Context, Csv, field, items, strings};

define_rules! {
    RBAC_5 = {
        id: "RBAC-5",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "Namespaced `permissions` should not contain cluster-scoped resources or URLs, unless AllNamespaces is the only install mode.",
        why: "Installed for one namespace, OLM makes a Role of them, which cannot grant such a request.",
        bad: "permissions:\n- rules:\n  - resources: [nodes]",
        good: "clusterPermissions:\n- rules:\n  - resources: [nodes]",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Olm,
            "OLM makes a Role, with which the API server forbids the request",
            "OLM 0.46",
            "crates/cli/tests/cluster/lints/mod.rs: permissions_reach_as_far_as_the_install_mode",
        ),
    }
}

/// Cluster-scoped Kubernetes resources that operators request, with their groups, except those that all users can read.
const CLUSTER_SCOPED: [(&str, &str); 23] = [
    ("", "namespaces"),
    ("", "nodes"),
    ("", "persistentvolumes"),
    ("", "componentstatuses"),
    ("rbac.authorization.k8s.io", "clusterroles"),
    ("rbac.authorization.k8s.io", "clusterrolebindings"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
    ("apiregistration.k8s.io", "apiservices"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
    ("certificates.k8s.io", "certificatesigningrequests"),
    ("networking.k8s.io", "ingressclasses"),
    ("node.k8s.io", "runtimeclasses"),
    ("policy", "podsecuritypolicies"),
    ("scheduling.k8s.io", "priorityclasses"),
    ("storage.k8s.io", "storageclasses"),
    ("storage.k8s.io", "volumeattachments"),
    ("storage.k8s.io", "csidrivers"),
    ("storage.k8s.io", "csinodes"),
    ("security.openshift.io", "securitycontextconstraints"),
    ("config.openshift.io", "clusterversions"),
];

/// Returns true if a Role can grant a cluster-scoped resource. The API server uses the name of a namespace also as the
/// namespace of the request, and checks the use of a security context constraint or policy in the namespace of the pod.
fn is_granted_by_roles(resource: &str, verb: &str) -> bool {
    match resource.split('/').next() {
        Some("namespaces") => matches!(verb, "get" | "update" | "patch" | "delete"),
        Some("securitycontextconstraints" | "podsecuritypolicies") => verb == "use",
        // Asked for the namespace of the RoleBinding that names the ClusterRole.
        Some("clusterroles") => verb == "bind",
        _ => false,
    }
}

pub(super) fn check(context: &Context<'_>, csv: &Csv<'_>) -> Option<Checked> {
    // If OLM watches all namespaces, it creates ClusterRoles from `permissions`, which grant everything.
    let modes: Vec<&str> = csv
        .list("/spec/installModes")
        .iter()
        .filter(|mode| mode.get("supported") == Some(&Value::Bool(true)))
        .map(|mode| field(mode, "type"))
        .filter(|mode| *mode != "AllNamespaces")
        .collect();
    if modes.is_empty() {
        return None;
    }
    let cluster_scoped: BTreeSet<(&str, &str)> = context
        .bundle
        .crds()
        .filter_map(|crd| crd.typed.as_ref())
        .filter(|crd| crd.pointer("/spec/scope").and_then(Value::as_str) == Some("Cluster"))
        .map(|crd| {
            let text = |pointer: &str| crd.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            (text("/spec/group"), text("/spec/names/plural"))
        })
        .chain(CLUSTER_SCOPED)
        .collect();
    let mut place = None;
    let mut refused = BTreeSet::new();
    for (pointer, account, rule) in rules(csv) {
        if !pointer.starts_with(&format!("{NAMESPACED}/")) {
            continue;
        }
        let urls = strings(rule, "nonResourceURLs").map(|url| (url, format!("URL {url}")));
        let resources = strings(rule, "resources").filter(|resource| {
            let bare = resource.split('/').next().unwrap_or(resource);
            strings(rule, "apiGroups").any(|group| cluster_scoped.contains(&(group, bare)))
        });
        for (what, shown) in urls.chain(resources.map(|resource| (resource, resource.to_string()))) {
            let needed = strings(rule, "verbs").filter(|verb| !is_granted_by_roles(what, verb));
            if !granted_for_the_cluster(csv, account, rule, what, needed) {
                refused.insert(shown);
                place.get_or_insert_with(|| pointer.clone());
            }
        }
    }
    let message = format!(
        "installed for {}, the operator is not granted {}: namespaced `permissions` become a Role",
        any_of(&modes),
        refused.into_iter().collect::<Vec<_>>().join(", ")
    );
    let hint = "move the rules to `clusterPermissions`, or support AllNamespaces only";
    Some(Checked::new(&RBAC_5, message).at(csv.object, &place?).hint(hint))
}

/// Alternatives as a sentence names them.
fn any_of(names: &[&str]) -> String {
    match names {
        [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => names.concat(),
    }
}

/// Returns true if `clusterPermissions` grant an account some verbs of a rule on one of its resources or URLs.
fn granted_for_the_cluster<'v>(
    csv: &Csv<'_>,
    account: &str,
    rule: &Value,
    what: &str,
    mut verbs: impl Iterator<Item = &'v str>,
) -> bool {
    let of_account = csv
        .list(CLUSTER)
        .iter()
        .filter(|permission| field(permission, "serviceAccountName") == account);
    let cluster: Vec<&Value> = of_account.flat_map(|permission| items(permission, "rules")).collect();
    let covers =
        |other: &Value, key: &str, wanted: &str| strings(other, key).any(|value| value == "*" || value == wanted);
    let key = if strings(rule, "nonResourceURLs").any(|url| url == what) {
        "nonResourceURLs"
    } else {
        "resources"
    };
    verbs.all(|verb| {
        let groups: Vec<&str> = strings(rule, "apiGroups").collect();
        let granted = |group: &str| {
            cluster.iter().any(|other| {
                covers(other, key, what)
                    && covers(other, "verbs", verb)
                    && (key == "nonResourceURLs" || covers(other, "apiGroups", group))
            })
        };
        if groups.is_empty() {
            granted("")
        } else {
            groups.iter().all(|group| granted(group))
        }
    })
}
