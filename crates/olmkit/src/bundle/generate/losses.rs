//! Fields of objects that a bundle does not support.

use std::collections::BTreeSet;

use serde_json::Value;

use super::accounts::{self, Split};
use super::collect::Collection;
use super::typed::Typed;
use super::{Document, Notice, Options, Weight};
use crate::bundle::kinds::{self, Scope};

/// Annotations in which tools record data about an object. They do not affect the running system.
const BOOKKEEPING: [&str; 5] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "deployment.kubernetes.io/",
    "config.kubernetes.io/",
    "internal.config.kubernetes.io/",
    "config.k8s.io/",
];

/// Labels that describe an object for people and dashboards.
const DESCRIPTIVE: [&str; 2] = ["app.kubernetes.io/", "helm.sh/"];

/// Reports the fields.
pub(super) fn report(found: &Collection, split: &Split, options: &Options, notices: &mut Vec<Notice>) {
    let losses = Losses { options };
    for deployment in &found.deployments {
        let lost = keys(deployment, "/metadata/annotations", &BOOKKEEPING);
        notices.extend(losses.of(
            &deployment.document,
            "annotations",
            &lost,
            "OLM makes the Deployment without them",
        ));
    }
    let accounts = accounts::accounts(found, options);
    for account in found
        .service_accounts
        .iter()
        .filter(|account| accounts.contains(account.name()))
    {
        service_account(account, &losses, notices);
    }
    for role in &split.absorbed {
        cluster_role(role, split, options, notices);
    }
    namespaces(found, split, &losses, notices);
}

struct Losses<'a> {
    options: &'a Options,
}

impl Losses<'_> {
    /// The notice about a lost field, unless nothing in it is lost.
    fn of(&self, object: &Document, field: &str, lost: &[String], reason: &str) -> Option<Notice> {
        if lost.is_empty() {
            return None;
        }
        let message = format!("loses {field} {}: {reason}", lost.join(", "));
        Some(self.notice(object, field, message, String::new()))
    }

    /// A loss, unless `--allow-dropped` accepts it.
    fn notice(&self, object: &Document, field: &str, message: String, fix: String) -> Notice {
        let accepted = format!("{}.{field}", object.kind());
        let is_allowed = self
            .options
            .allow_dropped
            .iter()
            .any(|allowed| allowed.eq_ignore_ascii_case(&accepted));
        Notice {
            weight: if is_allowed { Weight::Note } else { Weight::Loss },
            origin: object.origin.clone(),
            object: object.object(),
            message,
            hint: format!("{fix}If the operator works without it, accept it with --allow-dropped {accepted}."),
        }
    }
}

/// The keys of a map, except those with one of some prefixes.
fn keys(object: &Typed, pointer: &str, except: &[&str]) -> Vec<String> {
    let map = object.value.pointer(pointer).and_then(Value::as_object);
    map.into_iter()
        .flat_map(|map| map.keys())
        .filter(|key| !except.iter().any(|prefix| key.starts_with(prefix)))
        .cloned()
        .collect()
}

/// OLM creates the service accounts of the ClusterServiceVersion from their names. The bundle format forbids objects
/// for them.
fn service_account(account: &Typed, losses: &Losses<'_>, notices: &mut Vec<Notice>) {
    let document = &account.document;
    let reason = "OLM makes the account without them";
    for field in ["annotations", "labels"] {
        let except: &[&str] = if field == "labels" { &DESCRIPTIVE } else { &BOOKKEEPING };
        let lost = keys(account, &format!("/metadata/{field}"), except);
        notices.extend(losses.of(document, field, &lost, reason));
    }
    let descriptive = keys(account, "/metadata/labels", &[]);
    if keys(account, "/metadata/labels", &DESCRIPTIVE).is_empty() && !descriptive.is_empty() {
        notices.push(account.notice(
            Weight::Note,
            format!("loses labels {}: {reason}", descriptive.join(", ")),
            "",
        ));
    }
    for field in ["imagePullSecrets", "secrets"] {
        let lost: Vec<String> = account
            .list(&format!("/{field}"))
            .iter()
            .map(|secret| {
                secret
                    .get("name")
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            })
            .collect();
        notices.extend(losses.of(document, field, &lost, reason));
    }
    if account.value.get("automountServiceAccountToken") == Some(&Value::Bool(false)) {
        let field = "automountServiceAccountToken";
        let message = format!("loses {field}: OLM makes the account without it");
        let fix = "Set it in the pod template of the Deployment. ".to_owned();
        notices.push(losses.notice(document, field, message, fix));
    }
}

/// A ClusterRole whose rules are in the ClusterServiceVersion.
fn cluster_role(role: &Typed, split: &Split, options: &Options, notices: &mut Vec<Notice>) {
    let selectors = role.list("/aggregationRule/clusterRoleSelectors");
    if !selectors.is_empty() {
        notices.push(role.notice(
            Weight::Loss,
            "has an aggregationRule: the API server would fill in its rules, and OLM grants only those in the file",
            "Write the rules into the ClusterRole.",
        ));
    }
    if split.shared.contains(role.name()) {
        let message = if options.strict {
            "stays an object as well: the operator may bind it to other accounts, or it extends other roles"
        } else {
            "is left out and only its rules are kept: the operator cannot bind it to other accounts, and it no longer \
             extends other roles"
        };
        let hint = if options.strict {
            ""
        } else {
            "Use --strict to keep the object as well."
        };
        notices.push(role.notice(Weight::Note, message, hint));
    }
}

/// Objects that a bundle moves into the namespace of the operator.
fn namespaces(found: &Collection, split: &Split, losses: &Losses<'_>, notices: &mut Vec<Notice>) {
    let homes: BTreeSet<&str> = found.deployments.iter().map(Typed::namespace).collect();
    let Some(first) = found.deployments.first().map(Typed::namespace) else {
        return;
    };
    let moved = |document: &Document, namespace: &str| {
        let message = format!(
            "moves from namespace {namespace} to the namespace of the operator: OLM installs all objects of a bundle there"
        );
        let fix = "Let the operator create it where it belongs. ".to_owned();
        losses.notice(document, "namespace", message, fix)
    };
    for deployment in found
        .deployments
        .iter()
        .filter(|deployment| deployment.namespace() != first)
    {
        notices.push(moved(&deployment.document, deployment.namespace()));
    }
    let is_namespaced = |document: &Document| {
        kinds::find(document.kind()).is_some_and(|kind| kind.scope == Scope::Namespaced)
            && super::files::supported(document.kind())
    };
    let objects = found.services.iter().chain(&split.files).map(|object| &object.document);
    for document in objects
        .chain(found.others.iter())
        .filter(|document| is_namespaced(document))
    {
        let namespace = document.value.pointer("/metadata/namespace").and_then(Value::as_str);
        if let Some(namespace) = namespace.filter(|namespace| !namespace.is_empty() && !homes.contains(namespace)) {
            notices.push(moved(document, namespace));
        }
    }
}
