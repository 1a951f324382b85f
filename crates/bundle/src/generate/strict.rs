//! Differences between the default mode, which follows operator-sdk, and strict mode; and the notices about them.

use olmkit_base::object::SetAt as _;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::collect::Collection;
use super::files::supported;
use super::typed::Typed;
use super::{Document, Notice, Options, Origin, Weight, accounts, losses, webhooks};
use crate::olm_certificates;

/// Values of the base that are overwritten.
#[derive(Debug, Default)]
pub(super) struct BaseValues {
    related_images: Vec<Value>,
    icon_is_empty: bool,
}

impl BaseValues {
    pub fn from_base(base: &Value) -> Self {
        let related_images = base
            .pointer("/spec/relatedImages")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let icon_is_empty = base.pointer("/spec/icon").is_some_and(|icons| icons == &json!([{}]));
        Self {
            related_images,
            icon_is_empty,
        }
    }
}

/// Upgrade edges from flags. They apply in both modes.
pub(super) fn upgrade_edges(csv: &mut Value, options: &Options) {
    let full = |version: &String| {
        if version.starts_with(|first: char| first.is_ascii_digit()) {
            format!("{}.v{version}", options.package)
        } else {
            version.clone()
        }
    };
    if let Some(replaces) = &options.replaces {
        csv.set_at(&["spec", "replaces"], full(replaces).into());
    }
    if !options.skips.is_empty() {
        csv.set_at(&["spec", "skips"], options.skips.iter().map(full).collect());
    }
    if let Some(range) = &options.skip_range {
        csv.set_at(&["metadata", "annotations", "olm.skipRange"], range.clone().into());
    }
}

/// Reports values that the default mode overwrites.
pub(super) fn compare(kept: &BaseValues, csv: &Value, notices: &mut Vec<Notice>) {
    let now = csv
        .pointer("/spec/relatedImages")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    for image in kept.related_images.iter().filter(|image| !now.contains(image)) {
        let text = |field: &str| image.get(field).and_then(Value::as_str).unwrap_or_default();
        notices.push(Notice {
            weight: Weight::Warning,
            origin: Origin::default(),
            object: format!("related image {} {}", text("name"), text("image")),
            message: "is set in the base CSV and is overwritten".into(),
            hint: "Use --strict to keep it, or set it in a RELATED_IMAGE_ variable of a Deployment.".into(),
        });
    }
}

/// Keeps, merges and prunes.
pub(super) fn improve(found: &Collection, kept: &BaseValues, csv: &mut Value) {
    let mut related = csv
        .pointer("/spec/relatedImages")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    for image in &kept.related_images {
        let name = image.get("name");
        if !related
            .iter()
            .any(|known| known.get("name") == name && known.get("image") == image.get("image"))
        {
            related.push(image.clone());
        }
    }
    related.sort_by_key(|image| (text(image, "name").to_owned(), text(image, "image").to_owned()));
    csv.set_at(&["spec", "relatedImages"], Value::Array(related));
    // The OperatorHub rules reject an entry without data. A missing icon is only omitted.
    if kept.icon_is_empty
        && let Some(Value::Object(spec)) = csv.get_mut("spec")
    {
        spec.remove("icon");
    }
    if !webhooks::origins(found).is_empty() || has_conversion(csv) {
        remove_certificates(found, csv);
    }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn has_conversion(csv: &Value) -> bool {
    csv.pointer("/spec/webhookdefinitions")
        .and_then(Value::as_array)
        .is_some_and(|list| !list.is_empty())
}

/// Secrets that cert-manager's Certificates of the input would fill: nothing does so under OLM.
fn certificate_secrets(found: &Collection) -> BTreeMap<String, Origin> {
    found
        .others
        .iter()
        .filter(|other| other.group_version().0 == "cert-manager.io" && other.kind() == "Certificate")
        .filter_map(|other| {
            let secret = other.value.pointer("/spec/secretName")?.as_str()?;
            Some((secret.to_owned(), other.origin.clone()))
        })
        .collect()
}

/// Names of a pod's volumes with certificates that OLM replaces or that nothing creates.
fn certificate_volumes(pod: &Value, secrets: &BTreeMap<String, Origin>) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = pod
        .get("volumes")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter(|volume| {
            volume
                .pointer("/secret/secretName")
                .and_then(Value::as_str)
                .is_some_and(|name| secrets.contains_key(name))
        })
        .map(|volume| text(volume, "name").to_owned())
        .collect();
    for container in pod_containers(pod) {
        for mount in container
            .get("volumeMounts")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            if is_of_olm(text(mount, "mountPath").trim_end_matches('/')) {
                names.insert(text(mount, "name").to_owned());
            }
        }
    }
    names
}

/// Returns true if OLM mounts its certificate at a path.
fn is_of_olm(path: &str) -> bool {
    olm_certificates::MOUNTS.iter().any(|(_, mount)| *mount == path)
}

fn pod_containers(pod: &Value) -> impl Iterator<Item = &Value> {
    ["containers", "initContainers"]
        .into_iter()
        .flat_map(move |field| pod.get(field).and_then(Value::as_array).into_iter().flatten())
}

/// Removes volumes, their mounts, and the arguments that point into them: all three, by name. An argument that points
/// to OLM's own path is kept.
fn remove_certificates(found: &Collection, csv: &mut Value) {
    let secrets = certificate_secrets(found);
    let deployments = csv
        .pointer_mut("/spec/install/spec/deployments")
        .and_then(Value::as_array_mut);
    for deployment in deployments.into_iter().flatten() {
        let Some(pod) = deployment.pointer_mut("/spec/template/spec") else {
            continue;
        };
        let names = certificate_volumes(pod, &secrets);
        let mut paths: Vec<String> = Vec::new();
        for field in ["containers", "initContainers"] {
            for container in pod.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten() {
                if let Some(Value::Array(mounts)) = container.get_mut("volumeMounts") {
                    mounts.retain(|mount| {
                        let gone = names.contains(text(mount, "name"));
                        if gone {
                            paths.push(text(mount, "mountPath").trim_end_matches('/').to_owned());
                        }
                        !gone
                    });
                }
            }
        }
        paths.retain(|path| !path.is_empty() && !is_of_olm(path));
        for container in pod
            .get_mut("containers")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            if let Some(Value::Array(args)) = container.get_mut("args") {
                args.retain(|argument| !argument.as_str().is_some_and(|argument| points_into(argument, &paths)));
            }
        }
        if let Some(Value::Array(volumes)) = pod.get_mut("volumes") {
            volumes.retain(|volume| !names.contains(text(volume, "name")));
        }
    }
}

fn points_into(argument: &str, paths: &[String]) -> bool {
    let value = argument.split_once('=').map_or(argument, |(_, value)| value);
    paths
        .iter()
        .any(|path| value == path || value.strip_prefix(path).is_some_and(|rest| rest.starts_with('/')))
}

/// A file name that two objects claim.
pub(super) fn doubled(object: &Typed, name: &str) -> Notice {
    object.notice(
        Weight::Loss,
        format!("has the kind and name of an object before it; it is written to {name}"),
        "OLM applies both under one name, the later one wins. Keep one.",
    )
}

/// Removes documents that repeat an earlier one without any difference. operator-sdk writes both.
pub(super) fn without_repetitions(documents: &mut Vec<Document>, notices: &mut Vec<Notice>) {
    let mut seen: BTreeMap<String, Origin> = BTreeMap::new();
    documents.retain(|document| {
        let content = format!("{} {}", document.from_crds_dir, document.value);
        let Some(first) = seen.get(&content) else {
            seen.insert(content, document.origin.clone());
            return true;
        };
        notices.push(Notice {
            weight: Weight::Note,
            origin: document.origin.clone(),
            object: document.object(),
            message: format!("repeats the object at {first} and is left out"),
            hint: String::new(),
        });
        false
    });
}

/// Reports objects that cannot be in a bundle, and changed permissions.
pub(super) fn report(
    found: &Collection,
    split: &accounts::Split,
    csv: &Value,
    options: &Options,
    notices: &mut Vec<Notice>,
) {
    let nothing = |message: &str, hint: &str| Notice {
        weight: Weight::Loss,
        origin: Origin::default(),
        object: "the input".into(),
        message: message.into(),
        hint: hint.into(),
    };
    if found.deployments.is_empty() {
        notices.push(nothing(
            "contains no Deployment: OLM has nothing to run",
            "Add the operator's Deployment (apps/v1).",
        ));
    }
    let unserved = unmanaged_resources(found, notices);
    others(found, &unserved, csv, options, notices);
    let by_olm = accounts::bound_by_olm(found, split, csv);
    permissions(found, split, csv, &by_olm, options, notices);
    losses::report(found, split, csv, &by_olm, options, notices);
    losses::namespace_labels(found, csv, notices);
    if !options.strict {
        certificates(found, csv, notices);
    }
    for (class, list) in [
        ("Role", &found.roles),
        ("ClusterRole", &found.cluster_roles),
        ("RoleBinding", &found.role_bindings),
        ("ClusterRoleBinding", &found.cluster_role_bindings),
        ("Deployment", &found.deployments),
    ] {
        let mut seen = BTreeSet::new();
        for object in list
            .iter()
            .rev()
            .filter(|object| !seen.insert(object.name().to_owned()))
        {
            notices.push(object.notice(
                Weight::Loss,
                format!(
                    "conflicts with another {class} of the same name (in another namespace): a bundle installs into one namespace"
                ),
                "Give them different names.",
            ));
        }
    }
}

/// Objects of kinds that bundles do not support. kustomize's own files are not cluster objects and are not reported.
fn others(found: &Collection, reported: &BTreeSet<&Origin>, csv: &Value, options: &Options, notices: &mut Vec<Notice>) {
    let samples: BTreeSet<&Origin> = found.custom_resources.iter().map(|sample| &sample.origin).collect();
    for other in &found.others {
        if supported(other.kind()) || samples.contains(&other.origin) || reported.contains(&other.origin) {
            continue;
        }
        if other.group_version().0 == "kustomize.config.k8s.io" {
            continue;
        }
        let (weight, message, hint) = if is_described(other, csv) {
            let message = "is left out: OLM registers the API from apiservicedefinitions";
            (Weight::Note, message, "")
        } else {
            fate(other.kind(), other.group_version().0)
        };
        let allowed = options.allows_dropped(other.kind());
        notices.push(Notice {
            weight: if allowed { Weight::Note } else { weight },
            origin: other.origin.clone(),
            object: other.object(),
            message: message.to_owned(),
            hint: hint.to_owned(),
        });
    }
}

/// Returns true for an APIService that OLM makes from the ClusterServiceVersion.
fn is_described(object: &Document, csv: &Value) -> bool {
    let part = |pointer: &str| {
        object
            .value
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let (group, version) = (part("/spec/group"), part("/spec/version"));
    let owned = csv
        .pointer("/spec/apiservicedefinitions/owned")
        .and_then(Value::as_array);
    object.kind() == "APIService"
        && object.group_version().0 == "apiregistration.k8s.io"
        && owned
            .into_iter()
            .flatten()
            .any(|each| text(each, "group") == group && text(each, "version") == version)
}

/// Why a bundle cannot contain a kind, and the alternative.
fn fate(kind: &str, group: &str) -> (Weight, &'static str, &'static str) {
    match (group, kind) {
        ("", "Namespace") => (
            Weight::Note,
            "is left out: OLM installs into a namespace that the user chooses",
            "",
        ),
        ("cert-manager.io", _) => (
            Weight::Note,
            "is left out: OLM makes the certificates of webhooks itself",
            "",
        ),
        (_, "List") => (
            Weight::Loss,
            "is left out with everything in it: a List is not an object itself",
            "Write its items as separate documents.",
        ),
        ("apps", "StatefulSet" | "DaemonSet" | "ReplicaSet") | ("batch", _) | ("", "Pod" | "ReplicationController") => {
            (
                Weight::Loss,
                "is left out: OLM runs Deployments only",
                "Make it a Deployment, or let the operator create it.",
            )
        }
        ("apiregistration.k8s.io", "APIService") => (
            Weight::Loss,
            "is left out: OLM registers APIs from apiservicedefinitions",
            "Describe it under spec.apiservicedefinitions of the base CSV.",
        ),
        ("networking.k8s.io", "Ingress")
        | ("route.openshift.io", _)
        | ("autoscaling", _)
        | ("gateway.networking.k8s.io", _) => (
            Weight::Loss,
            "is left out: a bundle has no place for the kind",
            "Let the operator create it, or document how users do; to drop this kind, pass --allow-dropped.",
        ),
        _ => (
            Weight::Loss,
            "is left out: a bundle has no place for the kind, and no definition in the input serves it as a custom resource",
            "If it is a sample, add its CustomResourceDefinition. Else let the operator create it; to drop this kind, pass --allow-dropped.",
        ),
    }
}

/// Custom resources that the operator's own definitions do not serve in that version: reports them, returns where they
/// are.
fn unmanaged_resources<'a>(found: &'a Collection, notices: &mut Vec<Notice>) -> BTreeSet<&'a Origin> {
    let mut unserved = BTreeSet::new();
    let defined: BTreeMap<(String, String), Vec<String>> =
        found
            .definitions
            .iter()
            .fold(BTreeMap::new(), |mut defined, definition| {
                for served in super::typed::served(definition) {
                    defined
                        .entry((served.group, served.kind))
                        .or_insert_with(Vec::new)
                        .push(served.version);
                }
                defined
            });
    for other in &found.others {
        let (group, version) = other.group_version();
        let Some(versions) = defined.get(&(group.to_owned(), other.kind().to_owned())) else {
            continue;
        };
        if !versions.iter().any(|served| served == version) {
            unserved.insert(&other.origin);
            notices.push(Notice {
                weight: Weight::Loss,
                origin: other.origin.clone(),
                object: other.object(),
                message: format!(
                    "cannot be an example: version {version} is not served, only {}",
                    versions.join(", ")
                ),
                hint: "Write it in a version that the CustomResourceDefinition serves.".into(),
            });
        }
    }
    unserved
}

fn permissions(
    found: &Collection,
    split: &accounts::Split,
    csv: &Value,
    by_olm: &BTreeSet<Origin>,
    options: &Options,
    notices: &mut Vec<Notice>,
) {
    for binding in &split.dangling {
        let role = binding
            .value
            .pointer("/roleRef/name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if by_olm.contains(&binding.document.origin) {
            let message =
                format!("is not needed: OLM binds {role} to the accounts of Deployments with webhooks or APIs");
            notices.push(binding.notice(Weight::Note, message, ""));
            continue;
        }
        // The binding is an object of the bundle. It names a namespace.
        if binding.document.kind() == "ClusterRoleBinding"
            && let Some(namespace) = losses::suggested_namespace(csv)
            && accounts::namespaces(binding).all(|own| own == namespace)
        {
            notices.push(binding.notice(
                Weight::Warning,
                format!(
                    "binds {role} in namespace {namespace} only, which the ClusterServiceVersion suggests to users"
                ),
                "Add the role to the input, so that its rules can go into the ClusterServiceVersion.",
            ));
            continue;
        }
        notices.push(binding.notice(
            Weight::Loss,
            format!("binds {role}, which is not in the input: the operator does not get its rules through OLM"),
            "Add the role to the input, so that its rules can go into the ClusterServiceVersion.",
        ));
    }
    for binding in &split.without_subject {
        notices.push(binding.notice(
            Weight::Loss,
            "has no subject and is left out",
            "Add the subjects that it is for.",
        ));
    }
    let ours = accounts::accounts(found, options);
    let homes: BTreeSet<&str> = found.deployments.iter().map(Typed::namespace).collect();
    let dangling: BTreeSet<&Origin> = split.dangling.iter().map(|binding| &binding.document.origin).collect();
    for binding in found
        .role_bindings
        .iter()
        .filter(|binding| !dangling.contains(&binding.document.origin))
    {
        let elsewhere = !binding.namespace().is_empty() && !homes.is_empty() && !homes.contains(binding.namespace());
        if elsewhere && accounts::subjects(binding).any(|subject| ours.contains(subject)) {
            notices.push(binding.notice(
                Weight::Loss,
                format!(
                    "gives rules in namespace {}; in a bundle they hold in the operator's own (and watched) namespaces",
                    binding.namespace()
                ),
                "Bind a ClusterRole with a ClusterRoleBinding, or create the binding where the namespace is made.",
            ));
        }
    }
    for account in &options.extra_service_accounts {
        let bound = found
            .role_bindings
            .iter()
            .chain(&found.cluster_role_bindings)
            .any(|binding| accounts::subjects(binding).any(|subject| subject == account));
        if !bound {
            notices.push(Notice {
                weight: Weight::Warning,
                origin: Origin::default(),
                object: format!("service account {account}"),
                message: "is named by --extra-service-accounts, but no binding of the input is for it".into(),
                hint: String::new(),
            });
        }
    }
}

/// Certificate volumes that the default mode keeps and that containers still mount under OLM.
fn certificates(found: &Collection, csv: &Value, notices: &mut Vec<Notice>) {
    let secrets = certificate_secrets(found);
    if secrets.is_empty() {
        return;
    }
    let served: BTreeSet<&str> = ["/spec/webhookdefinitions", "/spec/apiservicedefinitions/owned"]
        .into_iter()
        .filter_map(|list| csv.pointer(list)?.as_array())
        .flatten()
        .map(|served| text(served, "deploymentName"))
        .collect();
    for deployment in &found.deployments {
        let Some(pod) = deployment.value.pointer("/spec/template/spec") else {
            continue;
        };
        let mounted = olm_certificates::mounted(pod, served.contains(deployment.name()));
        for volume in pod.get("volumes").and_then(Value::as_array).into_iter().flatten() {
            let secret = volume
                .pointer("/secret/secretName")
                .and_then(Value::as_str)
                .unwrap_or_default();
            if let Some(origin) = secrets.get(secret)
                && mounted.contains(text(volume, "name"))
            {
                notices.push(deployment.notice(
                    Weight::Warning,
                    format!(
                        "mounts Secret {secret} as volume {}, which only the Certificate at {origin} would fill; OLM does not \
                         run cert-manager's objects",
                        text(volume, "name")
                    ),
                    "Use --strict, which removes volume, mounts and arguments together.",
                ));
            }
        }
    }
}
