//! Subjects of permissions: service accounts and bindings.

use std::collections::BTreeSet;

use serde_json::Value;

use super::grants::{CLUSTER, NAMESPACED};
use crate::diagnostics::{Origin, Proof, Severity, Witness, define_rules};
use crate::validate::checked::Checked;
use crate::validate::context::{Context, Csv, field, items};

define_rules! {
    RBAC_1 = {
        id: "RBAC-1",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "Each deployment's service account should have permissions.",
        why: "OLM creates the service accounts that have permissions. A deployment with another one cannot create its pods, or they run without permissions.",
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
        summary: "If a deployment's service account lacks permissions, the bundle should not grant permissions to an unused account.",
        why: "The permissions were probably meant for the deployment, whose requests are forbidden without them.",
        bad: "permissions:\n- serviceAccountName: old-manager",
        good: "permissions:\n- serviceAccountName: manager",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Olm,
            "OLM creates the other account, and the Deployment's account has no permissions",
            "OLM 0.46",
            "crates/cli/tests/cluster/lints/olm.rs: olm_does_what_rules_say",
        ),
    }
    RBAC_8 = {
        id: "RBAC-8",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "Bindings should not name a namespace, because users choose it at installation.",
        why: "The service account does not exist when the operator is installed in another namespace.",
        bad: "subjects:\n- kind: ServiceAccount\n  namespace: demo-system",
        good: "put the permissions into the ClusterServiceVersion",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Olm,
            "the API server forbids the binding's permissions, except in the named namespace",
            "OLM 0.46",
            "crates/cli/tests/cluster/lints/olm.rs: olm_does_what_rules_say",
        ),
    }
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

/// The service account of a deployment's pods. The API server still reads the field's old name, `serviceAccount`.
fn account_of(deployment: &Value) -> &str {
    let names = ["serviceAccountName", "serviceAccount"].into_iter();
    let mut names = names.filter_map(|key| deployment.pointer("/spec/template/spec")?.get(key)?.as_str());
    names.find(|name| !name.is_empty()).unwrap_or("default")
}

pub(super) fn service_accounts(context: &Context<'_>, csv: &Csv<'_>) -> Vec<Checked> {
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
        // A Deployment in addition to the operator without a service account, such as a console plugin, needs no
        // permissions.
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
    // OLM also creates service accounts for workloads that the operator starts. An unused one is a mistake if another
    // account lacks permissions.
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

/// Service accounts of the operator: OLM creates those with permissions, its Deployments use some, and others are in
/// the bundle.
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

pub(super) fn bindings(context: &Context<'_>) -> Vec<Checked> {
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
            // Service accounts of the platform and of other operators are in other namespaces.
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
