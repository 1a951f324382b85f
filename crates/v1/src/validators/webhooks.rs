//! The checks of webhooks.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Bundle, DEPLOYMENTS, OWNED, Place, list, text, texts};
use olmkit_base::object::dns1123_subdomain_problems;

const WEBHOOKS: &str = "/spec/webhookdefinitions";
const CONVERSION: &str = "ConversionWebhook";

/// The webhooks with their places in the list.
fn webhooks(bundle: &Bundle) -> impl Iterator<Item = (usize, &Value)> {
    list(bundle, WEBHOOKS).iter().enumerate()
}

fn conversions(bundle: &Bundle) -> impl Iterator<Item = (usize, &Value)> {
    webhooks(bundle).filter(|(_, webhook)| text(webhook, "type") == CONVERSION)
}

fn place(bundle: &Bundle, at: usize, field: &str) -> Place {
    bundle.csv.place(&format!("{WEBHOOKS}/{at}/{field}"))
}

pub(super) fn conversion_modes(bundle: &Bundle, _: u64) -> Vec<(String, Place)> {
    let modes = bundle.install_modes();
    if modes.is_all_namespaces_alone() {
        return Vec::new();
    }
    let said = |(at, webhook)| {
        let name = olmkit_go::strconv::quote(text(webhook, "generateName"));
        let message = format!(
            "bundle contains conversion webhook {name} and supports install modes {modes} - conversion webhooks are only \
             supported for bundles that only support AllNamespaces install mode"
        );
        (message, place(bundle, at, "type"))
    };
    conversions(bundle).map(said).collect()
}

pub(super) fn deployments_exist(bundle: &Bundle, _: u64) -> Vec<(String, Place)> {
    let there: BTreeSet<&str> = list(bundle, DEPLOYMENTS)
        .iter()
        .map(|entry| text(entry, "name"))
        .collect();
    let mut missing: Vec<_> = webhooks(bundle)
        .map(|(at, webhook)| {
            let [deployment, kind, name] = ["deploymentName", "type", "generateName"].map(|field| text(webhook, field));
            (deployment, kind, name, at)
        })
        .filter(|(deployment, ..)| !there.contains(deployment))
        .collect();
    missing.sort_unstable();
    let said = |(deployment, kind, name, at)| {
        (
            format!("webhook of type '{kind}' with name '{name}' references non-existent deployment '{deployment}'"),
            place(bundle, at, "deploymentName"),
        )
    };
    missing.into_iter().map(said).collect()
}

pub(super) fn are_unique(bundle: &Bundle, _: u64) -> Vec<(String, Place)> {
    let mut seen = BTreeSet::new();
    let mut twice = BTreeMap::new();
    for (at, webhook) in webhooks(bundle) {
        let key = (text(webhook, "type"), text(webhook, "generateName"));
        if !seen.insert(key) {
            twice.insert(key, at);
        }
    }
    let said = |((kind, name), at): ((&str, &str), usize)| {
        (
            format!("duplicate webhook '{name}' of type '{kind}'"),
            place(bundle, at, "generateName"),
        )
    };
    twice.into_iter().map(said).collect()
}

pub(super) fn names(bundle: &Bundle, _: u64) -> Vec<(String, Place)> {
    let mut wrong = BTreeMap::new();
    for (at, webhook) in webhooks(bundle) {
        let name = text(webhook, "generateName");
        let mut problems = dns1123_subdomain_problems(name);
        if !problems.is_empty() {
            problems.sort();
            wrong.insert((text(webhook, "type"), name), (at, problems.join(",")));
        }
    }
    let said = |((kind, name), (at, problems)): ((&str, &str), (usize, String))| {
        (
            format!("webhook of type '{kind}' has invalid name '{name}': {problems}"),
            place(bundle, at, "generateName"),
        )
    };
    wrong.into_iter().map(said).collect()
}

pub(super) fn conversions_are_unique(bundle: &Bundle, _: u64) -> Vec<(String, Place)> {
    let mut by_definition: BTreeMap<&str, (usize, Vec<&str>)> = BTreeMap::new();
    for (at, webhook) in conversions(bundle) {
        for definition in texts(webhook, "conversionCRDs") {
            let (last, names) = by_definition.entry(definition).or_default();
            *last = at;
            names.push(text(webhook, "generateName"));
        }
    }
    let several = by_definition.into_iter().filter(|(_, (_, names))| names.len() > 1);
    several
        .map(|(definition, (at, mut names))| {
            names.sort_unstable();
            let names = names.join(",");
            (
                format!("conversion webhooks [{names}] reference same custom resource definition '{definition}'"),
                place(bundle, at, "conversionCRDs"),
            )
        })
        .collect()
}

pub(super) fn conversions_are_owned(bundle: &Bundle, _: u64) -> Vec<(String, Place)> {
    let owned: BTreeSet<&str> = list(bundle, OWNED).iter().map(|owned| text(owned, "name")).collect();
    let mut webhooks: Vec<(usize, &Value)> = conversions(bundle).collect();
    webhooks.sort_by_key(|(_, webhook)| text(webhook, "generateName"));
    let mut said = Vec::new();
    for (at, webhook) in webhooks {
        let name = text(webhook, "generateName");
        let mut definitions: Vec<&str> = texts(webhook, "conversionCRDs").collect();
        definitions.sort_unstable();
        for definition in definitions.into_iter().filter(|definition| !owned.contains(definition)) {
            said.push((
                format!(
                    "conversion webhook '{name}' references custom resource definition '{definition}' not owned bundle"
                ),
                place(bundle, at, "conversionCRDs"),
            ));
        }
    }
    said
}

/// Resources of `admissionregistration.k8s.io` that webhooks may not intercept.
const FORBIDDEN: [&str; 5] = [
    "*",
    "mutatingwebhookconfiguration",
    "mutatingwebhookconfigurations",
    "validatingwebhookconfiguration",
    "validatingwebhookconfigurations",
];

pub(super) fn rules(bundle: &Bundle, _: u64) -> Vec<(String, Place)> {
    let mut said = Vec::new();
    for (at, webhook) in webhooks(bundle).filter(|(_, webhook)| text(webhook, "type") != CONVERSION) {
        let quote = olmkit_go::strconv::quote;
        let name = quote(text(webhook, "generateName"));
        let rules = webhook.get("rules").and_then(Value::as_array);
        for (number, rule) in rules.into_iter().flatten().enumerate() {
            for group in texts(rule, "apiGroups") {
                let mut refuse = |what: String, field: &str| {
                    said.push((
                        format!(
                            "webhook {name} contains forbidden rule: admission webhook rules cannot reference {what}"
                        ),
                        place(bundle, at, &format!("rules/{number}/{field}")),
                    ));
                };
                if ["olm.operatorframework.io", "*"].contains(&group) {
                    refuse(format!("API group {}", quote(group)), "apiGroups");
                }
                if group != "admissionregistration.k8s.io" {
                    continue;
                }
                for resource in texts(rule, "resources") {
                    if FORBIDDEN.contains(&resource.to_lowercase().as_str()) {
                        refuse(
                            format!("resource {} for API group {}", quote(resource), quote(group)),
                            "resources",
                        );
                    }
                }
            }
        }
    }
    said
}
