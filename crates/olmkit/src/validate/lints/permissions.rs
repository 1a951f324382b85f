//! RBAC: the permissions of the operator, against what it visibly needs.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::checked::Checked;
use super::super::context::{Context, Csv, field, items, strings};
use crate::diagnostics::{Origin, Proof, Severity, Witness, define_rules};

define_rules! {
    RBAC_1 = {
        id: "RBAC-1",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "Each deployment's service account has permissions.",
        why: "OLM creates the service accounts that have permissions; a deployment with another one gets no pods, or pods without rights.",
        bad: "serviceAccountName: manager   # not listed under permissions",
        good: "permissions:\n- serviceAccountName: manager",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Olm,
            "the account does not exist, so the Deployment gets no pods",
            "OLM 0.46",
            "crates/cli/tests/cluster/lints/olm.rs: olm_does_what_rules_say",
        ),
    }
    RBAC_2 = {
        id: "RBAC-2",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "When a deployment's service account lacks permissions, no other account has some that nobody uses.",
        why: "The permissions were probably meant for the deployment, whose requests are forbidden without them.",
        bad: "permissions:\n- serviceAccountName: old-manager",
        good: "permissions:\n- serviceAccountName: manager",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Olm,
            "OLM makes the other account; that of the Deployment may do nothing",
            "OLM 0.46",
            "crates/cli/tests/cluster/lints/olm.rs: olm_does_what_rules_say",
        ),
    }
    RBAC_3 = {
        id: "RBAC-3",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "The operator may list and watch the APIs that it owns.",
        why: "Without list and watch the controller's cache never syncs, and nothing is reconciled.",
        bad: "resources: [widgets]\nverbs: [get, update]",
        good: "resources: [widgets]\nverbs: [list, watch, update]",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Olm,
            "the API server forbids the operator to list and watch",
            "OLM 0.46",
            "crates/cli/tests/cluster/lints/olm.rs: olm_does_what_rules_say",
        ),
    }
    RBAC_4 = {
        id: "RBAC-4",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "An operator with leader election may write leases.",
        why: "The operator never becomes the leader and waits forever.",
        bad: "args: [--leader-elect]   # without a rule for leases",
        good: "apiGroups: [coordination.k8s.io]\nresources: [leases]\nverbs: [get, create, update]",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Olm,
            "the API server forbids the operator to write leases",
            "OLM 0.46",
            "crates/cli/tests/cluster/lints/olm.rs: olm_does_what_rules_say",
        ),
    }
    RBAC_5 = {
        id: "RBAC-5",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "Namespaced `permissions` contain no cluster-scoped resources or URLs, unless AllNamespaces is the only install mode.",
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
    RBAC_6 = {
        id: "RBAC-6",
        severity: Severity::Info,
        origin: Origin::Lint,
        summary: "No rule grants all verbs on all resources.",
        why: "Anyone who takes over the operator's pod controls the cluster.",
        bad: "apiGroups: ['*']\nresources: ['*']\nverbs: ['*']",
        good: "apiGroups: [apps]\nresources: [deployments]\nverbs: [get, list, watch, update]",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Olm,
            "the operator may do everything in the cluster",
            "OLM 0.46",
            "crates/cli/tests/cluster/lints/olm.rs: olm_does_what_rules_say",
        ),
    }
    RBAC_7 = {
        id: "RBAC-7",
        severity: Severity::Info,
        origin: Origin::Lint,
        summary: "No rule grants escalate, bind or impersonate.",
        why: "With these verbs an operator can make itself cluster-admin.",
        bad: "resources: [clusterroles]\nverbs: [escalate]",
        good: "verbs: [get]",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Convention,
            "Kubernetes counts these verbs among those that raise one's own rights",
            "any",
            "https://kubernetes.io/docs/concepts/security/rbac-good-practices/",
        ),
    }
    RBAC_8 = {
        id: "RBAC-8",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "Bindings do not name a namespace: users choose it at installation.",
        why: "The service account does not exist when the operator is installed in another namespace.",
        bad: "subjects:\n- kind: ServiceAccount\n  namespace: demo-system",
        good: "put the permissions into the ClusterServiceVersion",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Olm,
            "the API server forbids what the binding should allow, unless the namespace is the one that it names",
            "OLM 0.46",
            "crates/cli/tests/cluster/lints/olm.rs: olm_does_what_rules_say",
        ),
    }
    RBAC_9 = {
        id: "RBAC-9",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "An operator that writes objects with a status subresource may write the status too.",
        why: "A write to the object does not change the status, and writing the status is forbidden.",
        bad: "resources: [widgets]\nverbs: [list, watch, update]   # without widgets/status",
        good: "resources: [widgets/status]\nverbs: [update, patch]",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Olm,
            "the API server forbids the operator to write the status",
            "OLM 0.46",
            "crates/cli/tests/cluster/lints/olm.rs: olm_does_what_rules_say",
        ),
    }
}

/// Cluster-scoped resources of Kubernetes that operators ask for, with their groups; but for those that everybody has.
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

/// Whether a Role grants what is not namespaced. The API server takes the name of a namespace also for the namespace of the request, and
/// who may use a security context constraint or policy is asked for the namespace of the pod.
fn is_granted_by_roles(resource: &str, verb: &str) -> bool {
    match resource.split('/').next() {
        Some("namespaces") => matches!(verb, "get" | "update" | "patch" | "delete"),
        Some("securitycontextconstraints" | "podsecuritypolicies") => verb == "use",
        // Asked for the namespace of the RoleBinding that names the ClusterRole.
        Some("clusterroles") => verb == "bind",
        _ => false,
    }
}

const NAMESPACED: &str = "/spec/install/spec/permissions";
const CLUSTER: &str = "/spec/install/spec/clusterPermissions";

pub fn check(context: &Context<'_>) -> Vec<Checked> {
    let mut findings = bindings(context);
    if let Some(csv) = context.csv() {
        findings.extend(service_accounts(context, &csv));
        findings.extend(owned_apis(context, &csv));
        findings.extend(status(context, &csv));
        findings.extend(leader_election(context, &csv));
        findings.extend(scope(context, &csv));
        findings.extend(too_much(&csv));
    }
    findings
}

/// All rules with their places.
fn rules<'v>(csv: &Csv<'v>) -> Vec<(String, &'v str, &'v Value)> {
    let mut all = Vec::new();
    for list in [NAMESPACED, CLUSTER] {
        for (at, permission) in csv.list(list).iter().enumerate() {
            let account = field(permission, "serviceAccountName");
            for (index, rule) in items(permission, "rules").iter().enumerate() {
                all.push((format!("{list}/{at}/rules/{index}"), account, rule));
            }
        }
    }
    all
}

/// Service accounts to which objects of the bundle bind a role.
fn bound_accounts<'c>(context: &Context<'c>) -> BTreeSet<&'c str> {
    let bindings = context
        .bundle
        .objects
        .iter()
        .filter(|object| matches!(object.kind(), "RoleBinding" | "ClusterRoleBinding"));
    bindings
        .flat_map(|binding| items(&binding.value, "subjects"))
        .filter(|subject| field(subject, "kind") == "ServiceAccount")
        .map(|subject| field(subject, "name"))
        .collect()
}

/// The service account that the pods of a deployment have. The API server still reads the field's old name, `serviceAccount`.
fn account_of(deployment: &Value) -> &str {
    let names = ["serviceAccountName", "serviceAccount"].into_iter();
    let mut names = names.filter_map(|key| deployment.pointer("/spec/template/spec")?.get(key)?.as_str());
    names.find(|name| !name.is_empty()).unwrap_or("default")
}

fn service_accounts(context: &Context<'_>, csv: &Csv<'_>) -> Vec<Checked> {
    let used: BTreeSet<&str> = csv.deployments().iter().map(account_of).collect();
    let permissions = || {
        [NAMESPACED, CLUSTER].into_iter().flat_map(|list| {
            let of_list = csv.list(list).iter().enumerate();
            of_list.map(move |(at, permission)| {
                let pointer = format!("{list}/{at}/serviceAccountName");
                (pointer, field(permission, "serviceAccountName"))
            })
        })
    };
    let granted: BTreeSet<&str> = permissions().map(|(_, name)| name).collect();
    let bound = bound_accounts(context);
    let none_granted = used.is_disjoint(&granted);
    let mut findings = Vec::new();
    for (at, deployment) in csv.deployments().iter().enumerate() {
        let name = account_of(deployment);
        // A deployment beside the operator that names no account, such as a console plugin, needs no permissions.
        let needs_none = name == "default" && !none_granted;
        if !granted.contains(name) && !bound.contains(name) && !needs_none {
            let message = format!(
                "deployment {:?} runs as service account {name:?}, which has no permissions here",
                field(deployment, "name")
            );
            let pointer = format!("/spec/install/spec/deployments/{at}/spec/template/spec/serviceAccountName");
            let hint = "list its rules under `permissions` or `clusterPermissions`; OLM creates the bindings";
            findings.push(Checked::new(&RBAC_1, message).at(csv.object, &pointer).hint(hint));
        }
    }
    // OLM also makes accounts for what the operator starts; an unused one is a mistake when another account lacks permissions.
    if findings.is_empty() {
        return findings;
    }
    let names: Vec<&str> = used.iter().copied().collect();
    let hint = format!("the deployments use: {}", names.join(", "));
    let unused = permissions().filter(|(_, name)| !used.contains(name));
    findings.extend(unused.map(|(pointer, name)| {
        let message = format!("service account {name:?} has permissions, but no deployment uses it");
        Checked::new(&RBAC_2, message).at(csv.object, &pointer).hint(&hint)
    }));
    findings
}

/// True when a rule covers a group, a resource and a verb.
fn allows(rule: &Value, group: &str, resource: &str, verb: &str) -> bool {
    items(rule, "resourceNames").is_empty() && allows_some(rule, group, resource, verb)
}

/// True when a rule covers a group, a resource and a verb, perhaps for objects of certain names only.
fn allows_some(rule: &Value, group: &str, resource: &str, verb: &str) -> bool {
    let has = |key: &str, wanted: &str| strings(rule, key).any(|value| value == "*" || value == wanted);
    has("apiGroups", group) && has("resources", resource) && has("verbs", verb)
}

/// True when a rule names a resource or one of its subresources, so that the operator visibly works with it.
fn names(rule: &Value, group: &str, plural: &str) -> bool {
    let of_group = strings(rule, "apiGroups").any(|name| name == group);
    of_group && strings(rule, "resources").any(|resource| resource.split('/').next() == Some(plural))
}

/// True when a rule lets the operator write status or finalizers of a resource, as only its controller does.
fn reconciles(rule: &Value, group: &str, plural: &str) -> bool {
    let of_group = strings(rule, "apiGroups").any(|name| name == group);
    let writes = strings(rule, "verbs").any(|verb| matches!(verb, "*" | "update" | "patch"));
    let of_controller = |resource: &str| {
        let (of, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        of == plural && matches!(subresource, "status" | "finalizers")
    };
    of_group && writes && strings(rule, "resources").any(of_controller)
}

fn owned_apis(context: &Context<'_>, csv: &Csv<'_>) -> Vec<Checked> {
    let rules = rules(csv);
    let mut findings = Vec::new();
    if rules.is_empty() {
        return findings;
    }
    let owned: Vec<(&str, &str)> = csv
        .list("/spec/customresourcedefinitions/owned")
        .iter()
        .filter_map(|owned| field(owned, "name").split_once('.'))
        .collect();
    let watched = |verb: &str| {
        owned
            .iter()
            .any(|(plural, group)| rules.iter().any(|(_, _, rule)| allows(rule, group, plural, verb)))
    };
    let watches_none = !watched("list") && !watched("watch");
    let mut seen = BTreeSet::new();
    for (at, owned) in csv.list("/spec/customresourcedefinitions/owned").iter().enumerate() {
        let name = field(owned, "name");
        let Some((plural, group)) = name.split_once('.') else {
            continue;
        };
        let in_bundle = context.bundle.crds().any(|crd| crd.name() == name);
        // An API whose status and finalizers the operator does not write may be served by something that it installs.
        let visible = watches_none || rules.iter().any(|(_, _, rule)| reconciles(rule, group, plural));
        if !in_bundle || !visible || !seen.insert(name) {
            continue;
        }
        let missing: Vec<&str> = ["list", "watch"]
            .into_iter()
            .filter(|verb| !rules.iter().any(|(_, _, rule)| allows(rule, group, plural, verb)))
            .collect();
        if !missing.is_empty() {
            let message = format!(
                "the operator owns {name} but may not {} its objects",
                missing.join(" and ")
            );
            let hint = format!("add a rule: apiGroups [{group}], resources [{plural}], verbs [list, watch, …]");
            findings.push(
                Checked::new(&RBAC_3, message)
                    .at(csv.object, &format!("/spec/customresourcedefinitions/owned/{at}"))
                    .hint(hint),
            );
        }
    }
    findings
}

/// True when a rule lets the operator write status or finalizers in a group that it names.
fn reconciles_in(rules: &[(String, &str, &Value)], group: &str) -> bool {
    rules.iter().any(|(_, _, rule)| {
        strings(rule, "resources").any(|resource| match resource.split_once('/') {
            Some((plural, _)) => reconciles(rule, group, plural),
            None => resource == "*" && names(rule, group, "*") && allows(rule, group, "*/status", "update"),
        })
    })
}

/// A status that the operator may not write stays empty.
fn status(context: &Context<'_>, csv: &Csv<'_>) -> Vec<Checked> {
    let rules = rules(csv);
    let mut findings = Vec::new();
    if rules.is_empty() {
        return findings;
    }
    let crds = || context.bundle.crds().filter_map(|crd| Some((crd, crd.typed.as_ref()?)));
    let group_of = |typed: &'_ Value| typed.pointer("/spec/group").and_then(Value::as_str).map(str::to_owned);
    let served: BTreeSet<String> = crds()
        .filter_map(|(_, typed)| group_of(typed))
        .filter(|group| reconciles_in(&rules, group))
        .collect();
    for (crd, typed) in crds() {
        let text = |pointer: &str| typed.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (group, plural) = (text("/spec/group"), text("/spec/names/plural"));
        // Beside APIs that the operator serves, a group in which it writes no status may be served by somebody else.
        if !served.is_empty() && !served.contains(group) {
            continue;
        }
        let versions = typed.pointer("/spec/versions").and_then(Value::as_array);
        let has_status = |version: &Value| version.pointer("/subresources/status").is_some();
        let Some(at) = versions.and_then(|versions| versions.iter().position(has_status)) else {
            continue;
        };
        let subresource = format!("{plural}/status");
        let any = "*/status";
        let may_write = ["update", "patch"].iter().any(|verb| {
            [subresource.as_str(), any]
                .iter()
                .any(|resource| rules.iter().any(|(_, _, rule)| allows(rule, group, resource, verb)))
        });
        // An operator that does not write the object may leave the status to others, too.
        let writes = ["update", "patch"].iter().any(|verb| {
            rules
                .iter()
                .any(|(_, _, rule)| names(rule, group, plural) && allows(rule, group, plural, verb))
        });
        if writes && !may_write {
            let message = format!("the operator may write objects of {}, but not their status", crd.name());
            let hint = "add a rule for the resource with `/status`, verbs [update, patch]; or remove the subresource";
            let pointer = format!("/spec/versions/{at}/subresources/status");
            findings.push(Checked::new(&RBAC_9, message).at(crd, &pointer).hint(hint));
        }
    }
    findings
}

/// The rules of roles that are objects of the bundle, and that its bindings give to an account.
fn rules_of_objects<'c>(context: &Context<'c>) -> Vec<&'c Value> {
    let objects = || context.bundle.objects.iter();
    let is_account = |subject: &Value| field(subject, "kind") == "ServiceAccount";
    let bound: BTreeSet<(&str, &str)> = objects()
        .filter(|object| matches!(object.kind(), "RoleBinding" | "ClusterRoleBinding"))
        .filter(|binding| items(&binding.value, "subjects").iter().any(is_account))
        .filter_map(|binding| binding.value.get("roleRef"))
        .map(|role| (field(role, "kind"), field(role, "name")))
        .collect();
    objects()
        .filter(|object| bound.contains(&(object.kind(), object.name())))
        .flat_map(|role| items(&role.value, "rules"))
        .collect()
}

fn leader_election(context: &Context<'_>, csv: &Csv<'_>) -> Vec<Checked> {
    let mut rules: Vec<&Value> = rules(csv).into_iter().map(|(_, _, rule)| rule).collect();
    rules.extend(rules_of_objects(context));
    let may = |resource: &str, group: &str| {
        // The lease's own name is enough, except to create it: then it has no name yet.
        let rules = || rules.iter().copied();
        rules().any(|rule| allows(rule, group, resource, "create"))
            && ["get", "update"]
                .iter()
                .all(|verb| rules().any(|rule| allows_some(rule, group, resource, verb)))
    };
    if may("leases", "coordination.k8s.io") || may("configmaps", "") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (at, deployment) in csv.deployments().iter().enumerate() {
        let containers = deployment
            .pointer("/spec/template/spec")
            .map(|pod| items(pod, "containers"))
            .unwrap_or_default();
        for (index, container) in containers.iter().enumerate() {
            let words: Vec<&str> = strings(container, "args")
                .chain(strings(container, "command"))
                .collect();
            let elects = |word: &&str| {
                word.trim_start_matches('-').starts_with("leader-elect")
                    || word.trim_start_matches('-').starts_with("enable-leader-election")
            };
            if let Some(word) = words.iter().find(|word| elects(word) && !word.ends_with("=false")) {
                let message = format!("the container starts with {word}, but no rule allows it to write leases");
                let pointer = format!("/spec/install/spec/deployments/{at}/spec/template/spec/containers/{index}/args");
                let hint = "add a rule: apiGroups [coordination.k8s.io], resources [leases], verbs [get, list, watch, create, update, patch]";
                findings.push(Checked::new(&RBAC_4, message).at(csv.object, &pointer).hint(hint));
            }
        }
    }
    findings
}

fn scope(context: &Context<'_>, csv: &Csv<'_>) -> Option<Checked> {
    // Where OLM watches all namespaces, it makes ClusterRoles of `permissions`, which grant everything.
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

/// Whether `clusterPermissions` grant an account some verbs of a rule on one of its resources or URLs.
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

fn too_much(csv: &Csv<'_>) -> Vec<Checked> {
    let mut findings = Vec::new();
    let mut escalating: BTreeMap<&str, (String, BTreeSet<&str>)> = BTreeMap::new();
    for (pointer, account, rule) in rules(csv) {
        let all = |key: &str| strings(rule, key).any(|value| value == "*");
        if all("apiGroups") && all("resources") && all("verbs") {
            let message = format!("this rule grants service account {account:?} all verbs on all resources");
            let hint = "list the groups, resources and verbs that the operator needs";
            findings.push(Checked::new(&RBAC_6, message).at(csv.object, &pointer).hint(hint));
            continue;
        }
        // Whoever may bind named roles or impersonate named accounts gets what these have, not everything.
        let names_some = !items(rule, "resourceNames").is_empty();
        let verbs = strings(rule, "verbs")
            .filter(|verb| *verb == "escalate" || !names_some && matches!(*verb, "bind" | "impersonate"));
        for verb in verbs {
            let first = || (format!("{pointer}/verbs"), BTreeSet::new());
            escalating.entry(account).or_insert_with(first).1.insert(verb);
        }
    }
    for (account, (pointer, verbs)) in escalating {
        let verbs: Vec<&str> = verbs.into_iter().collect();
        let (noun, lets) = if verbs.len() == 1 {
            ("verb", "lets")
        } else {
            ("verbs", "let")
        };
        let message = format!(
            "the {noun} {} {lets} service account {account:?} escalate its own permissions",
            verbs.join(", ")
        );
        let hint = "grant those permissions directly and remove the verb";
        findings.push(Checked::new(&RBAC_7, message).at(csv.object, &pointer).hint(hint));
    }
    findings
}

/// Service accounts of the operator: OLM makes those with permissions, its Deployments use some, and others are in the bundle.
fn own_accounts<'c>(context: &Context<'c>) -> BTreeSet<&'c str> {
    let objects = context.bundle.objects.iter();
    let mut accounts: BTreeSet<&str> = objects
        .filter(|object| object.kind() == "ServiceAccount")
        .map(|object| object.name())
        .collect();
    if let Some(csv) = context.csv() {
        for list in [NAMESPACED, CLUSTER] {
            let permissions = csv.list(list).iter();
            accounts.extend(permissions.map(|permission| field(permission, "serviceAccountName")));
        }
        accounts.extend(csv.deployments().iter().map(account_of));
    }
    accounts
}

fn bindings(context: &Context<'_>) -> Vec<Checked> {
    let own = own_accounts(context);
    let mut findings = Vec::new();
    for object in context
        .bundle
        .objects
        .iter()
        .filter(|object| matches!(object.kind(), "RoleBinding" | "ClusterRoleBinding"))
    {
        for (at, subject) in items(&object.value, "subjects").iter().enumerate() {
            let namespace = field(subject, "namespace");
            // Accounts of the platform and of other operators have namespaces of their own.
            if field(subject, "kind") == "ServiceAccount"
                && !namespace.is_empty()
                && own.contains(field(subject, "name"))
            {
                let message = format!(
                    "the binding is fixed to namespace {namespace:?}, but users choose the namespace at installation"
                );
                let hint = "list the rules under the permissions of the ClusterServiceVersion instead";
                findings.push(
                    Checked::new(&RBAC_8, message)
                        .at(object, &format!("/subjects/{at}/namespace"))
                        .hint(hint),
                );
            }
        }
    }
    findings
}
