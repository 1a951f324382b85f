//! Objects grouped by their purpose in the bundle, each in the form of its Go type.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::typed::{Typed, served};
use super::{Document, Error, Input, Notice, Weight};
use olmkit_go::structs::encode;

/// A webhook of an admission configuration.
#[derive(Debug, Clone)]
pub(super) struct Webhook {
    /// Shared by all webhooks in it, of which there may be thousands.
    pub configuration: Arc<Typed>,
    pub value: Value,
}

/// The input by kind.
#[derive(Debug, Default)]
pub(super) struct Collection {
    pub csvs: Vec<Typed>,
    pub roles: Vec<Typed>,
    pub cluster_roles: Vec<Typed>,
    pub role_bindings: Vec<Typed>,
    pub cluster_role_bindings: Vec<Typed>,
    pub deployments: Vec<Typed>,
    pub service_accounts: Vec<Typed>,
    pub services: Vec<Typed>,
    /// v1 first, then v1beta1, each in input order.
    pub definitions: Vec<Typed>,
    pub validating: Vec<Webhook>,
    pub mutating: Vec<Webhook>,
    pub custom_resources: Vec<Document>,
    pub scorecard: Option<Typed>,
    pub others: Vec<Document>,
}

impl Collection {
    /// The admission configurations that have webhooks, each once.
    pub(super) fn configurations(&self) -> impl Iterator<Item = &Typed> {
        let mut before: Option<&Arc<Typed>> = None;
        let hooks = self.validating.iter().chain(&self.mutating);
        hooks.filter_map(move |hook| {
            let is_same = before.is_some_and(|before| Arc::ptr_eq(before, &hook.configuration));
            before = Some(&hook.configuration);
            (!is_same).then_some(&*hook.configuration)
        })
    }
}

pub(super) const RBAC: &str = "rbac.authorization.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";

/// Sorts the input. Duplicates go as operator-sdk removes them.
pub(super) fn collect(input: Input, notices: &mut Vec<Notice>) -> Result<Collection, Error> {
    let mut found = Collection::default();
    let (mut v1, mut beta) = (Vec::new(), Vec::new());
    let crds_dir = input.crds_dir;
    for document in input.documents {
        let (group, version) = document.group_version();
        let (group, version) = (group.to_owned(), version.to_owned());
        if document.from_crds_dir && document.kind() != "CustomResourceDefinition" {
            continue;
        }
        match (group.as_str(), document.kind()) {
            ("operators.coreos.com", "ClusterServiceVersion") => {
                found.csvs.push(typed(document, "ClusterServiceVersion")?);
            }
            (RBAC, "Role") => found.roles.push(typed(document, "Role")?),
            (RBAC, "ClusterRole") => found.cluster_roles.push(typed(document, "ClusterRole")?),
            (RBAC, "RoleBinding") => found.role_bindings.push(typed(document, "RoleBinding")?),
            (RBAC, "ClusterRoleBinding") => found.cluster_role_bindings.push(typed(document, "ClusterRoleBinding")?),
            ("", "ServiceAccount") => found.service_accounts.push(typed(document, "ServiceAccount")?),
            ("", "Service") => found.services.push(typed(document, "Service")?),
            ("apps", "Deployment") => found.deployments.push(typed(document, "Deployment")?),
            (ADMISSION, "ValidatingWebhookConfiguration") => {
                webhooks(document, "ValidatingWebhookConfiguration", &mut found.validating)?;
            }
            (ADMISSION, "MutatingWebhookConfiguration") => {
                webhooks(document, "MutatingWebhookConfiguration", &mut found.mutating)?;
            }
            ("scorecard.operatorframework.io", "Configuration") => scorecard(document, &mut found.scorecard)?,
            (group, "CustomResourceDefinition") if group == "apiextensions.k8s.io" || document.from_crds_dir => {
                if crds_dir && !document.from_crds_dir {
                    notices.push(Notice {
                        weight: Weight::Loss,
                        origin: document.origin.clone(),
                        object: document.object(),
                        message: "is left out: with --crds-dir only the definitions in that directory count".into(),
                        hint: "Move it there, or use --input-dir for both.".into(),
                    });
                    continue;
                }
                match version.as_str() {
                    "v1" => v1.push(typed(document, "v1.CustomResourceDefinition")?),
                    "v1beta1" => beta.push(typed(document, "v1beta1.CustomResourceDefinition")?),
                    other => {
                        return Err(Error::Object {
                            origin: document.origin.clone(),
                            object: document.object(),
                            reason: format!(
                                "version {other:?} of CustomResourceDefinition is not known; write apiextensions.k8s.io/v1"
                            ),
                        });
                    }
                }
            }
            _ => found.others.push(document),
        }
    }
    if crds_dir {
        same_kind_twice(v1.iter().chain(&beta))?;
    }
    let mut seen = BTreeSet::new();
    let mut rules_seen = BTreeSet::new();
    // Roles and ClusterRoles are compared without their kind, in the same set: a ClusterRole that otherwise equals a
    // Role is dropped. operator-sdk does the same, because it compares bytes without the kind.
    unique(&mut found.roles, &mut rules_seen, "Role", notices);
    unique(&mut found.cluster_roles, &mut rules_seen, "Role", notices);
    unique(&mut found.deployments, &mut seen, "Deployment", notices);
    unique(&mut v1, &mut seen, "v1", notices);
    unique(&mut beta, &mut seen, "v1beta1", notices);
    let mut hooks_seen = BTreeSet::new();
    found
        .validating
        .retain(|hook| hooks_seen.insert(hook.value.to_string()));
    found.mutating.retain(|hook| hooks_seen.insert(hook.value.to_string()));
    v1.append(&mut beta);
    found.definitions = v1;
    custom_resources(&mut found);
    Ok(found)
}

/// Decodes a document as the Go struct `key`.
pub(super) fn typed(document: Document, key: &str) -> Result<Typed, Error> {
    let value = encode::decode(&document.untyped, key).map_err(|(at, message)| Error::Decode {
        origin: document.origin.clone(),
        object: document.object(),
        at: if at.is_empty() {
            String::new()
        } else {
            format!(", at {at}")
        },
        message,
    })?;
    Ok(Typed { document, value })
}

fn webhooks(document: Document, key: &str, into: &mut Vec<Webhook>) -> Result<(), Error> {
    let configuration = Arc::new(typed(document, key)?);
    for value in configuration.list("/webhooks") {
        into.push(Webhook {
            configuration: Arc::clone(&configuration),
            value: value.clone(),
        });
    }
    Ok(())
}

fn scorecard(document: Document, into: &mut Option<Typed>) -> Result<(), Error> {
    let configuration = typed(document, "Configuration")?;
    // A configuration without a name counts as none.
    if let Some(first) = into.as_ref().filter(|first| !first.name().is_empty()) {
        return Err(Error::Object {
            origin: configuration.document.origin.clone(),
            object: configuration.document.object(),
            reason: format!(
                "is a second scorecard configuration, after the one at {}; a bundle has only one. Join their tests in one of \
                 them",
                first.document.origin
            ),
        });
    }
    *into = Some(configuration);
    Ok(())
}

/// Objects equal in everything but kind and version go, as operator-sdk compares them.
fn unique(list: &mut Vec<Typed>, seen: &mut BTreeSet<(String, String)>, class: &str, notices: &mut Vec<Notice>) {
    list.retain(|object| {
        let mut value = object.value.clone();
        if let Some(map) = value.as_object_mut() {
            map.remove("kind");
            map.remove("apiVersion");
        }
        let first = seen.insert((class.to_owned(), value.to_string()));
        if !first {
            notices.push(object.notice(Weight::Note, "occurs twice; the second one is skipped", ""));
        }
        first
    });
}

fn same_kind_twice<'a>(definitions: impl Iterator<Item = &'a Typed>) -> Result<(), Error> {
    let mut seen = BTreeSet::new();
    for definition in definitions {
        for key in served(definition) {
            if !seen.insert((key.group.clone(), key.version.clone(), key.kind.clone())) {
                return Err(Error::Object {
                    origin: definition.document.origin.clone(),
                    object: definition.document.object(),
                    reason: format!("{}/{} {} is defined a second time", key.group, key.version, key.kind),
                });
            }
        }
    }
    Ok(())
}

/// Objects whose group, version and kind a CRD serves are examples. They also remain among the other objects: a custom
/// resource of a kind that bundles support is both.
fn custom_resources(found: &mut Collection) {
    let served: BTreeSet<(String, String, String)> = found
        .definitions
        .iter()
        .flat_map(served)
        .map(|key| (key.group, key.version, key.kind))
        .collect();
    let mut seen = BTreeSet::new();
    for other in &found.others {
        let (group, version) = other.group_version();
        if served.contains(&(group.to_owned(), version.to_owned(), other.kind().to_owned()))
            && seen.insert(other.value.to_string())
        {
            found.custom_resources.push(other.clone());
        }
    }
}
