//! RBAC: what the operator may do, against what it visibly needs.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::checked::Checked;
use super::super::context::{Context, Csv, field, items, strings};
use super::warning;

/// Cluster-scoped resources of Kubernetes that operators ask for, with their groups.
const CLUSTER_SCOPED: [(&str, &str); 24] = [
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
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
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

const NAMESPACED: &str = "/spec/install/spec/permissions";
const CLUSTER: &str = "/spec/install/spec/clusterPermissions";

pub fn check(context: &Context<'_>) -> Vec<Checked> {
    let mut findings = bindings(context);
    if let Some(csv) = context.csv() {
        findings.extend(service_accounts(context, &csv));
        findings.extend(owned_apis(context, &csv));
        findings.extend(status(context, &csv));
        findings.extend(leader_election(&csv));
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

fn service_accounts(context: &Context<'_>, csv: &Csv<'_>) -> Vec<Checked> {
    let account = |deployment: &Value| {
        let name = deployment
            .pointer("/spec/template/spec/serviceAccountName")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if name.is_empty() {
            "default".to_string()
        } else {
            name.to_string()
        }
    };
    let used: BTreeSet<String> = csv.deployments().iter().map(account).collect();
    let mut granted = BTreeSet::new();
    let mut findings = Vec::new();
    for list in [NAMESPACED, CLUSTER] {
        for (at, permission) in csv.list(list).iter().enumerate() {
            let name = field(permission, "serviceAccountName");
            granted.insert(name.to_string());
            if !used.contains(name) && !csv.deployments().is_empty() {
                let message = format!("permissions are given to service account {name:?}, which no deployment uses");
                let names: Vec<&str> = used.iter().map(String::as_str).collect();
                let hint = format!("the deployments use: {}", names.join(", "));
                findings.push(
                    warning("RBAC-2", message)
                        .at(csv.object, &format!("{list}/{at}/serviceAccountName"))
                        .hint(hint),
                );
            }
        }
    }
    let bound = bound_accounts(context);
    let nobody_may_anything = used.is_disjoint(&granted);
    for (at, deployment) in csv.deployments().iter().enumerate() {
        let name = account(deployment);
        // What names no account beside the operator, a plugin of the console for example, needs no permissions.
        let needs_none = name == "default" && !nobody_may_anything;
        if !granted.contains(&name) && !bound.contains(name.as_str()) && !needs_none {
            let message = format!(
                "deployment {:?} runs as service account {name:?}, which has no permissions here",
                field(deployment, "name")
            );
            let pointer = format!("/spec/install/spec/deployments/{at}/spec/template/spec/serviceAccountName");
            let hint = "list its rules under `permissions` or `clusterPermissions`; OLM binds them";
            findings.push(warning("RBAC-1", message).at(csv.object, &pointer).hint(hint));
        }
    }
    findings
}

/// True when a rule covers a group, a resource and a verb.
fn allows(rule: &Value, group: &str, resource: &str, verb: &str) -> bool {
    let has = |key: &str, wanted: &str| strings(rule, key).any(|value| value == "*" || value == wanted);
    items(rule, "resourceNames").is_empty()
        && has("apiGroups", group)
        && has("resources", resource)
        && has("verbs", verb)
}

/// True when a rule names a resource or one of its sub-resources, so that the operator visibly works with it.
fn names(rule: &Value, group: &str, plural: &str) -> bool {
    let of_group = strings(rule, "apiGroups").any(|name| name == group);
    of_group && strings(rule, "resources").any(|resource| resource.split('/').next() == Some(plural))
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
        // An API that no rule names may be the business of what the operator installs.
        let visible = watches_none || rules.iter().any(|(_, _, rule)| names(rule, group, plural));
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
                warning("RBAC-3", message)
                    .at(csv.object, &format!("/spec/customresourcedefinitions/owned/{at}"))
                    .hint(hint),
            );
        }
    }
    findings
}

/// A status that nobody may write stays empty.
fn status(context: &Context<'_>, csv: &Csv<'_>) -> Vec<Checked> {
    let rules = rules(csv);
    let mut findings = Vec::new();
    if rules.is_empty() {
        return findings;
    }
    for crd in context.bundle.crds() {
        let Some(typed) = &crd.typed else { continue };
        let text = |pointer: &str| typed.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (group, plural) = (text("/spec/group"), text("/spec/names/plural"));
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
        // Whoever does not write the object itself may leave its status to others.
        let writes = ["update", "patch"].iter().any(|verb| {
            rules
                .iter()
                .any(|(_, _, rule)| names(rule, group, plural) && allows(rule, group, plural, verb))
        });
        if writes && !may_write {
            let message = format!(
                "{} has a status, but the operator may not write {subresource}",
                crd.name()
            );
            let hint = format!(
                "add a rule: apiGroups [{group}], resources [{subresource}], verbs [update, patch]; or leave the sub-resource out"
            );
            let pointer = format!("/spec/versions/{at}/subresources/status");
            findings.push(warning("RBAC-9", message).at(crd, &pointer).hint(hint));
        }
    }
    findings
}

fn leader_election(csv: &Csv<'_>) -> Vec<Checked> {
    let rules = rules(csv);
    let may = |resource: &str, group: &str| {
        ["get", "create", "update"]
            .iter()
            .all(|verb| rules.iter().any(|(_, _, rule)| allows(rule, group, resource, verb)))
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
                let message = format!("the container is started with {word}, but no rule lets it write leases");
                let pointer = format!("/spec/install/spec/deployments/{at}/spec/template/spec/containers/{index}/args");
                let hint = "add a rule: apiGroups [coordination.k8s.io], resources [leases], verbs [get, list, watch, create, update, patch]";
                findings.push(warning("RBAC-4", message).at(csv.object, &pointer).hint(hint));
            }
        }
    }
    findings
}

fn scope(context: &Context<'_>, csv: &Csv<'_>) -> Vec<Checked> {
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
    let mut findings = Vec::new();
    for (pointer, _, rule) in rules(csv)
        .iter()
        .filter(|(pointer, _, _)| pointer.starts_with(&format!("{NAMESPACED}/")))
    {
        let mut lost: Vec<String> = strings(rule, "nonResourceURLs")
            .map(|url| format!("URL {url}"))
            .collect();
        for resource in strings(rule, "resources") {
            let bare = resource.split('/').next().unwrap_or(resource);
            if strings(rule, "apiGroups").any(|group| cluster_scoped.contains(&(group, bare))) {
                lost.push(resource.to_string());
            }
        }
        if !lost.is_empty() {
            let message = format!(
                "namespaced `permissions` cannot grant {}: it belongs to the cluster",
                lost.join(", ")
            );
            let hint = "move the rule to `clusterPermissions`";
            findings.push(warning("RBAC-5", message).at(csv.object, pointer).hint(hint));
        }
    }
    findings
}

fn too_much(csv: &Csv<'_>) -> Vec<Checked> {
    let mut findings = Vec::new();
    for (pointer, account, rule) in rules(csv) {
        let all = |key: &str| strings(rule, key).any(|value| value == "*");
        if all("apiGroups") && all("resources") && all("verbs") {
            let message = format!("this rule lets service account {account:?} do everything");
            let hint = "list the groups, resources and verbs that the operator needs";
            findings.push(warning("RBAC-6", message).at(csv.object, &pointer).hint(hint));
            continue;
        }
        let verbs: Vec<&str> = strings(rule, "verbs")
            .filter(|verb| matches!(*verb, "escalate" | "bind" | "impersonate"))
            .collect();
        if !verbs.is_empty() {
            let message = format!(
                "the verb {} lets service account {account:?} take rights that it was not given",
                verbs.join(", ")
            );
            let hint = "grant the operator what it hands on, and leave the verb out";
            findings.push(
                warning("RBAC-7", message)
                    .at(csv.object, &format!("{pointer}/verbs"))
                    .hint(hint),
            );
        }
    }
    findings
}

fn bindings(context: &Context<'_>) -> Vec<Checked> {
    let mut findings = Vec::new();
    for object in context
        .bundle
        .objects
        .iter()
        .filter(|object| matches!(object.kind(), "RoleBinding" | "ClusterRoleBinding"))
    {
        for (at, subject) in items(&object.value, "subjects").iter().enumerate() {
            let namespace = field(subject, "namespace");
            // Service accounts of the platform live where the platform puts them.
            if field(subject, "kind") == "ServiceAccount"
                && !namespace.is_empty()
                && !namespace.starts_with("openshift-monitoring")
            {
                let message = format!(
                    "the binding names namespace {namespace:?}, but users choose the namespace at installation"
                );
                let hint = "give the rules to the service account in the ClusterServiceVersion instead";
                findings.push(
                    warning("RBAC-8", message)
                        .at(object, &format!("/subjects/{at}/namespace"))
                        .hint(hint),
                );
            }
        }
    }
    findings
}
