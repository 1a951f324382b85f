//! Permissions that amount to the whole cluster.

use std::collections::{BTreeMap, BTreeSet};

use super::grants::rules;
use crate::diagnostics::{Origin, Proof, Severity, Witness, define_rules};
use crate::validate::checked::Checked;
use crate::validate::context::{Csv, items, strings};

define_rules! {
    RBAC_6 = {
        id: "RBAC-6",
        severity: Severity::Info,
        origin: Origin::Lint,
        summary: "Rules should not grant all verbs on all resources.",
        why: "An attacker in the operator's pod controls the cluster.",
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
        summary: "Rules should not grant escalate, bind or impersonate.",
        why: "With these verbs an operator can make itself cluster-admin.",
        bad: "resources: [clusterroles]\nverbs: [escalate]",
        good: "verbs: [get]",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Convention,
            "Kubernetes lists these verbs as privilege escalation risks",
            "any",
            "https://kubernetes.io/docs/concepts/security/rbac-good-practices/",
        ),
    }
}

pub(super) fn check(csv: &Csv<'_>) -> Vec<Checked> {
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
        // Permission to bind named roles or impersonate named accounts grants only their permissions, not everything.
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
