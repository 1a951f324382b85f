//! The operator's visible needs: watching its APIs, writing their status, leader election.

use std::collections::BTreeSet;

use serde_json::Value;

use super::grants::{allows, allows_some, rules};
use crate::diagnostics::{Origin, Proof, Severity, Witness, define_rules};
use crate::validate::checked::Checked;
use crate::validate::context::{Context, Csv, field, items, strings};

define_rules! {
    RBAC_3 = {
        id: "RBAC-3",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "The operator should have permission to list and watch the APIs that it owns.",
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
        summary: "An operator with leader election should have permission to write leases.",
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
    RBAC_9 = {
        id: "RBAC-9",
        severity: Severity::Info,
        origin: Origin::Lint,
        summary: "An operator that writes objects with a status subresource should have permission to write the status, if it does so.",
        why: "A write to the object does not change the status, and the API server forbids writing the status.",
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

pub(super) fn owned_apis(context: &Context<'_>, csv: &Csv<'_>) -> Vec<Checked> {
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
    let in_bundle = context.crds_by_name();
    for (at, owned) in csv.list("/spec/customresourcedefinitions/owned").iter().enumerate() {
        let name = field(owned, "name");
        let Some((plural, group)) = name.split_once('.') else {
            continue;
        };
        let in_bundle = in_bundle.contains_key(name);
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

/// Returns true if the schema of a version has a status that can contain nothing.
fn has_empty_status(version: &Value) -> bool {
    let status = version
        .pointer("/schema/openAPIV3Schema/properties/status")
        .and_then(Value::as_object);
    status.is_some_and(|status| {
        let has_fields = status
            .get("properties")
            .and_then(Value::as_object)
            .is_some_and(|fields| !fields.is_empty());
        let is_open =
            status.contains_key("additionalProperties") || status.contains_key("x-kubernetes-preserve-unknown-fields");
        !has_fields && !is_open
    })
}

/// A status that the operator may not write remains empty.
pub(super) fn status(context: &Context<'_>, csv: &Csv<'_>) -> Vec<Checked> {
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
        // If the operator serves other APIs, another controller may serve a group in which it writes no status.
        if !served.is_empty() && !served.contains(group) {
            continue;
        }
        let versions = typed.pointer("/spec/versions").and_then(Value::as_array);
        // A status without fields is never written.
        let has_status =
            |version: &Value| version.pointer("/subresources/status").is_some() && !has_empty_status(version);
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
        // If the operator does not write the object, another controller may write the status too.
        let writes = ["update", "patch"].iter().any(|verb| {
            rules
                .iter()
                .any(|(_, _, rule)| names(rule, group, plural) && allows(rule, group, plural, verb))
        });
        if writes && !may_write {
            let message = format!("the operator may write objects of {}, but not their status", crd.name());
            let hint =
                "if the operator writes the status, add a rule for the resource with `/status`, verbs [update, patch]";
            let pointer = format!("/spec/versions/{at}/subresources/status");
            findings.push(Checked::new(&RBAC_9, message).at(crd, &pointer).hint(hint));
        }
    }
    findings
}

/// The rules of roles that are objects of the bundle, and that its bindings grant to a service account.
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

pub(super) fn leader_election(context: &Context<'_>, csv: &Csv<'_>) -> Vec<Checked> {
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
    for (pointer, container) in csv.containers() {
        let mut words = strings(container, "args").chain(strings(container, "command"));
        let elects = |word: &str| {
            word.trim_start_matches('-').starts_with("leader-elect")
                || word.trim_start_matches('-').starts_with("enable-leader-election")
        };
        if let Some(word) = words.find(|word| elects(word) && !word.ends_with("=false")) {
            let message = format!("the container starts with {word}, but no rule allows it to write leases");
            let pointer = format!("{pointer}/args");
            let hint = "add a rule: apiGroups [coordination.k8s.io], resources [leases], verbs [get, list, watch, create, update, patch]";
            findings.push(Checked::new(&RBAC_4, message).at(csv.object, &pointer).hint(hint));
        }
    }
    findings
}
