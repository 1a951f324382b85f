//! Fields of objects that a bundle does not support.

use std::collections::BTreeSet;

use serde_json::Value;

use super::accounts::{self, Split};
use super::collect::Collection;
use super::typed::Typed;
use super::{Document, Notice, Options, Origin, Weight};
use crate::kinds::{self, Scope};

/// Annotations in which tools record data about an object. They do not affect the running system.
const BOOKKEEPING: [&str; 7] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "deployment.kubernetes.io/",
    "config.kubernetes.io/",
    "internal.config.kubernetes.io/",
    "config.k8s.io/",
    "meta.helm.sh/",
    "argocd.argoproj.io/",
];

/// Annotations of webhook configurations that request a certificate. OLM writes its own certificates.
const CERTIFICATES: [&str; 2] = ["cert-manager.io/inject-", "service.beta.openshift.io/inject-cabundle"];

/// Labels that describe an object for people and dashboards.
const DESCRIPTIVE: [&str; 2] = ["app.kubernetes.io/", "helm.sh/"];

/// Kubebuilder's placeholder for the namespace of the operator. kustomize replaces it in a binding only if the input has the
/// service account.
const PLACEHOLDER: &str = "system";

/// The namespaces of the operator's Deployments, and the placeholder.
fn homes(found: &Collection) -> BTreeSet<&str> {
    let deployments = found.deployments.iter().map(Typed::namespace);
    deployments.chain([PLACEHOLDER]).collect()
}

/// Reports the fields.
pub(super) fn report(
    found: &Collection,
    split: &Split,
    csv: &Value,
    by_olm: &BTreeSet<Origin>,
    options: &Options,
    notices: &mut Vec<Notice>,
) {
    let losses = Losses {
        options,
        common: common_labels(found),
    };
    for deployment in &found.deployments {
        for (field, lost) in [
            ("annotations", keys(deployment, "/metadata/annotations", &BOOKKEEPING)),
            ("finalizers", texts(deployment, "/metadata/finalizers")),
        ] {
            let reason = "OLM makes the Deployment without them";
            notices.extend(losses.of(&deployment.document, field, &lost, reason));
        }
        let limit = deployment.value.pointer("/spec/revisionHistoryLimit");
        if let Some(limit) = limit.filter(|limit| limit.as_i64() != Some(1)) {
            let message = format!("has revisionHistoryLimit {limit}: OLM sets 1");
            notices.push(deployment.notice(Weight::Note, message, ""));
        }
    }
    configurations(found, &losses, notices);
    let accounts = accounts::accounts(found, options);
    unused_accounts(found, split, options, &accounts, notices);
    fixed_namespaces(found, split, csv, options, &accounts, notices);
    for account in found
        .service_accounts
        .iter()
        .filter(|account| accounts.contains(account.name()))
    {
        service_account(account, &losses, notices);
    }
    for (role, binding) in &split.bound_to_others {
        bound_to_others(role, binding, options, notices);
    }
    for role in &split.absorbed {
        cluster_role(role, split, options, notices);
    }
    namespaces(found, split, by_olm, &losses, notices);
}

/// The labels of the Deployments whose keys have no prefix, as kustomize's `commonLabels` writes them. They say which operator an
/// object belongs to. Tools that select objects have a prefix in their keys.
fn common_labels(found: &Collection) -> BTreeSet<(String, String)> {
    let maps = found.deployments.iter().filter_map(|deployment| {
        let labels = deployment.value.pointer("/metadata/labels")?;
        labels.as_object()
    });
    let pairs = maps.flatten().filter(|(key, _)| !key.contains('/'));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    pairs.map(|(key, value)| (key.clone(), text(value))).collect()
}

/// The namespace that consoles create for the operator: an annotation of the ClusterServiceVersion.
pub(super) fn suggested_namespace(csv: &Value) -> Option<String> {
    let annotation = |key: &str| csv.pointer("/metadata/annotations")?.get(key)?.as_str();
    let template = || -> Option<String> {
        let template: Value = serde_json::from_str(annotation(SUGGESTIONS[0])?).ok()?;
        Some(template.pointer("/metadata/name")?.as_str()?.to_owned())
    };
    template().or_else(|| annotation("operatorframework.io/suggested-namespace").map(str::to_owned))
}

struct Losses<'a> {
    options: &'a Options,
    /// Labels that only say which operator an object belongs to.
    common: BTreeSet<(String, String)>,
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

    /// The keys of labels that something may depend on.
    fn labels(&self, object: &Typed) -> Vec<String> {
        let mut lost = keys(object, "/metadata/labels", &DESCRIPTIVE);
        lost.retain(|key| {
            let value = object
                .value
                .pointer("/metadata/labels")
                .and_then(|labels| labels.get(key));
            let value = value.and_then(Value::as_str).unwrap_or_default();
            !self.common.contains(&(key.clone(), value.to_owned()))
        });
        lost
    }

    /// A loss, unless `--allow-dropped` accepts it.
    fn notice(&self, object: &Document, field: &str, message: String, fix: String) -> Notice {
        let accepted = format!("{}.{field}", object.kind());
        let is_allowed = self.options.allows_dropped(&accepted);
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

/// The strings of a list.
fn texts(object: &Typed, pointer: &str) -> Vec<String> {
    let texts = object.list(pointer).iter().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

/// Labels and annotations of webhook configurations, which OLM makes from the ClusterServiceVersion.
fn configurations(found: &Collection, losses: &Losses<'_>, notices: &mut Vec<Notice>) {
    for typed in found.configurations() {
        let annotations: Vec<&str> = BOOKKEEPING.iter().chain(&CERTIFICATES).copied().collect();
        for (field, lost) in [
            ("annotations", keys(typed, "/metadata/annotations", &annotations)),
            ("labels", losses.labels(typed)),
        ] {
            let reason = "OLM makes the configuration without them";
            notices.extend(losses.of(&typed.document, field, &lost, reason));
        }
    }
}

/// Prefixes of namespace labels that change how the cluster treats the operator's pods.
const NAMESPACE_LABELS: [&str; 4] = [
    "pod-security.kubernetes.io/",
    "security.openshift.io/",
    "openshift.io/",
    "istio-injection",
];

/// Annotations of a ClusterServiceVersion from which consoles create the namespace of an operator.
const SUGGESTIONS: [&str; 2] = [
    "operatorframework.io/suggested-namespace-template",
    "operatorframework.io/cluster-monitoring",
];

/// Labels of namespaces, which the users of a bundle create.
pub(super) fn namespace_labels(found: &Collection, csv: &Value, notices: &mut Vec<Notice>) {
    let annotations = csv.pointer("/metadata/annotations");
    if SUGGESTIONS
        .iter()
        .any(|key| annotations.is_some_and(|annotations| annotations.get(key).is_some()))
    {
        return;
    }
    for namespace in found
        .others
        .iter()
        .filter(|other| other.kind() == "Namespace" && other.group_version().0.is_empty())
    {
        let labels = namespace.value.pointer("/metadata/labels").and_then(Value::as_object);
        let lost: Vec<&str> = labels
            .into_iter()
            .flatten()
            .filter(|(key, value)| {
                // The pods of an operator should run under this standard anyway.
                NAMESPACE_LABELS.iter().any(|prefix| key.starts_with(prefix)) && value.as_str() != Some("restricted")
            })
            .map(|(key, _)| key.as_str())
            .filter(|key| !key.starts_with("pod-security") || !key.ends_with("-version"))
            .collect();
        if lost.is_empty() {
            continue;
        }
        notices.push(Notice {
            weight: Weight::Warning,
            origin: namespace.origin.clone(),
            object: namespace.object(),
            message: format!(
                "is left out with its labels {}: users create the namespace",
                lost.join(", ")
            ),
            hint: format!(
                "Write the namespace into the annotation {} of the base ClusterServiceVersion.",
                SUGGESTIONS[0]
            ),
        });
    }
}

/// Service accounts without rules: OLM creates only the accounts that have permissions in the ClusterServiceVersion, and the bundle
/// format forbids objects for those of Deployments.
fn unused_accounts(
    found: &Collection,
    split: &Split,
    options: &Options,
    accounts: &BTreeSet<String>,
    notices: &mut Vec<Notice>,
) {
    let with_rules: BTreeSet<&str> = split
        .permissions
        .iter()
        .chain(&split.cluster_permissions)
        .filter_map(|entry| entry.get("serviceAccountName")?.as_str())
        .collect();
    let is_lost = |name: &str| name != "default" && accounts.contains(name) && !with_rules.contains(name);
    for account in found.service_accounts.iter().filter(|account| is_lost(account.name())) {
        let is_allowed = options.allows_dropped("ServiceAccount");
        notices.push(account.notice(
            if is_allowed { Weight::Note } else { Weight::Warning },
            "is left out: OLM creates only service accounts with rules, and no pod starts without its account",
            "Bind a role to it, or remove serviceAccountName from the Deployment. To accept this, pass --allow-dropped ServiceAccount.",
        ));
    }
}

/// Bindings to service accounts in a namespace: OLM creates the accounts in the namespace of the operator.
fn fixed_namespaces(
    found: &Collection,
    split: &Split,
    csv: &Value,
    options: &Options,
    accounts: &BTreeSet<String>,
    notices: &mut Vec<Notice>,
) {
    let homes = homes(found);
    let Some(home) = found.deployments.first().map(Typed::namespace) else {
        return;
    };
    if homes.contains("") {
        return;
    }
    let text = |subject: &Value, field: &str| {
        subject
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let in_namespace =
        |subject: &&Value| text(subject, "kind") == "ServiceAccount" && !text(subject, "namespace").is_empty();
    for binding in found.role_bindings.iter().chain(&found.cluster_role_bindings) {
        for subject in binding.list("/subjects").iter().filter(in_namespace) {
            let (name, namespace) = (text(subject, "name"), text(subject, "namespace"));
            let is_extra = options.extra_service_accounts.contains(&name);
            if accounts.contains(&name) && !is_extra && !homes.contains(namespace.as_str()) {
                notices.push(binding.notice(
                    Weight::Loss,
                    format!("is for service account {namespace}/{name}: the bundle gives its rules to the operator's {name} instead"),
                    format!("If it is the operator's, change the namespace of the subject to {home}. Otherwise rename one of the accounts."),
                ));
            }
        }
    }
    // Most users install the operator into the namespace that it suggests.
    let suggested = suggested_namespace(csv);
    let is_moved = |name: &str| {
        split
            .files
            .iter()
            .any(|file| file.document.kind() == "ServiceAccount" && file.name() == name)
    };
    for binding in split
        .files
        .iter()
        .filter(|file| file.document.kind() == "ClusterRoleBinding")
    {
        for subject in binding.list("/subjects").iter().filter(in_namespace) {
            let (name, namespace) = (text(subject, "name"), text(subject, "namespace"));
            if is_moved(&name) && homes.contains(namespace.as_str()) {
                let is_suggested = suggested.as_deref() == Some(namespace.as_str());
                notices.push(binding.notice(
                    if is_suggested { Weight::Warning } else { Weight::Loss },
                    format!("grants nothing outside namespace {namespace}: OLM creates service account {name} in the namespace of the operator"),
                    format!("Pass --extra-service-accounts {name}, so that its rules are in the ClusterServiceVersion."),
                ));
            }
        }
    }
}

/// A role whose rules are in the ClusterServiceVersion, and a binding to other subjects that remains.
fn bound_to_others(role: &Typed, binding: &Typed, options: &Options, notices: &mut Vec<Notice>) {
    let binding = binding.document.object();
    if options.strict {
        let message = format!("stays an object as well: {binding} binds it to other subjects");
        notices.push(role.notice(Weight::Note, message, ""));
        return;
    }
    notices.push(role.notice(
        Weight::Loss,
        format!("is left out and only its rules are kept: the other subjects of {binding} get no permissions"),
        "Use --strict to keep the object as well.",
    ));
}

/// OLM creates the service accounts of the ClusterServiceVersion from their names. The bundle format forbids objects
/// for them.
fn service_account(account: &Typed, losses: &Losses<'_>, notices: &mut Vec<Notice>) {
    let document = &account.document;
    let reason = "OLM makes the account without them";
    for (field, lost) in [
        ("annotations", keys(account, "/metadata/annotations", &BOOKKEEPING)),
        ("labels", losses.labels(account)),
    ] {
        notices.extend(losses.of(document, field, &lost, reason));
    }
    let descriptive = keys(account, "/metadata/labels", &[]);
    if losses.labels(account).is_empty() && !descriptive.is_empty() {
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
fn namespaces(
    found: &Collection,
    split: &Split,
    by_olm: &BTreeSet<Origin>,
    losses: &Losses<'_>,
    notices: &mut Vec<Notice>,
) {
    let homes = homes(found);
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
        .filter(|document| is_namespaced(document) && !by_olm.contains(&document.origin))
    {
        let namespace = document.value.pointer("/metadata/namespace").and_then(Value::as_str);
        if let Some(namespace) = namespace.filter(|namespace| !namespace.is_empty() && !homes.contains(namespace)) {
            notices.push(moved(document, namespace));
        }
    }
}
