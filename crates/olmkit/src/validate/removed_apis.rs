//! API: objects and permissions for APIs that a Kubernetes release removed.

use std::collections::BTreeMap;

use serde_json::Value;

use super::checked::{Checked, Subject};
use super::context::{Context, Csv, field, items, strings};
use super::options::Profile;
use crate::bundle::Bundle;
use crate::diagnostics::{Origin, Rule, Severity, define_rules};
use crate::object::Version;
use olmkit_go::strconv::quote_to_ascii;
use olmkit_go::structs::convert::convert;

define_rules! {
    API_1 = {
        id: "API-1",
        severity: Severity::Error,
        origin: Origin::OptionalValidator("alpha-deprecated-apis"),
        summary: "`k8s-version` must be a version.",
        why: "Otherwise operator-sdk cannot decide which removed APIs matter.",
        bad: "k8s-version=new",
        good: "k8s-version=1.30",
        since: "0.1.0",
    }
    API_2 = {
        id: "API-2",
        severity: Severity::Error,
        origin: Origin::OptionalValidator("alpha-deprecated-apis"),
        summary: "`minKubeVersion` must be a version.",
        why: "operator-sdk compares it with the version that removed an API.",
        bad: "minKubeVersion: latest",
        good: "minKubeVersion: 1.25.0",
        since: "0.1.0",
    }
    API_22 = {
        id: "API-22",
        severity: Severity::Error,
        origin: Origin::OptionalValidator("alpha-deprecated-apis"),
        summary: "Objects must not use an API that Kubernetes 1.22 removed.",
        why: "API servers from this version on do not have the API, so the installation fails.",
        bad: "apiVersion: rbac.authorization.k8s.io/v1beta1",
        good: "apiVersion: rbac.authorization.k8s.io/v1",
        since: "0.1.0",
    }
    API_25 = {
        id: "API-25",
        severity: Severity::Error,
        origin: Origin::OptionalValidator("alpha-deprecated-apis"),
        summary: "Objects, and resources of owned or required APIs, must not use an API that Kubernetes 1.25 removed.",
        why: "API servers from this version on do not have the API, so the installation fails.",
        bad: "apiVersion: policy/v1beta1",
        good: "apiVersion: policy/v1",
        since: "0.1.0",
    }
    API_25_RBAC = {
        id: "API-25-RBAC",
        severity: Severity::Warning,
        origin: Origin::OptionalValidator("alpha-deprecated-apis"),
        summary: "Permissions should not be for podsecuritypolicies, which Kubernetes 1.25 removed.",
        why: "The permission has no effect. operator-sdk also warns about six resources that still exist, since RBAC rules name no API version. These findings are infos.",
        bad: "apiGroups: [policy]\nresources: [podsecuritypolicies]",
        good: "leave the rule out",
        since: "0.1.0",
    }
    API_26 = {
        id: "API-26",
        severity: Severity::Error,
        origin: Origin::OptionalValidator("alpha-deprecated-apis"),
        summary: "Objects must not use an API that Kubernetes 1.26 removed.",
        why: "API servers from this version on do not have the API, so the installation fails.",
        bad: "apiVersion: autoscaling/v2beta2",
        good: "apiVersion: autoscaling/v2",
        since: "0.1.0",
    }
}

/// Names of objects by kind, or places of rules by resource.
type RemovedObjects = BTreeMap<String, Vec<String>>;

/// Kinds removed in Kubernetes 1.22, by apiVersion.
const REMOVED_1_22: [(&str, &[&str]); 11] = [
    ("scheduling.k8s.io/v1beta1", &["PriorityClass"]),
    (
        "rbac.authorization.k8s.io/v1beta1",
        &["Role", "ClusterRoleBinding", "RoleBinding", "ClusterRole"],
    ),
    ("apiregistration.k8s.io/v1beta1", &["APIService"]),
    ("authentication.k8s.io/v1beta1", &["TokenReview"]),
    (
        "authorization.k8s.io/v1beta1",
        &[
            "LocalSubjectAccessReview",
            "SelfSubjectAccessReview",
            "SubjectAccessReview",
        ],
    ),
    (
        "admissionregistration.k8s.io/v1beta1",
        &["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"],
    ),
    ("coordination.k8s.io/v1beta1", &["Lease"]),
    ("extensions/v1beta1", &["Ingress"]),
    ("networking.k8s.io/v1beta1", &["Ingress", "IngressClass"]),
    (
        "storage.k8s.io/v1beta1",
        &["CSIDriver", "CSINode", "StorageClass", "VolumeAttachment"],
    ),
    ("certificates.k8s.io/v1beta1", &["CertificateSigningRequest"]),
];

/// Kinds removed in Kubernetes 1.25, by apiVersion.
const REMOVED_1_25: [(&str, &str); 7] = [
    ("batch/v1beta1", "CronJob"),
    ("discovery.k8s.io/v1beta1", "EndpointSlice"),
    ("events.k8s.io/v1beta1", "Event"),
    ("autoscaling/v2beta1", "HorizontalPodAutoscaler"),
    ("policy/v1beta1", "PodDisruptionBudget"),
    ("policy/v1beta1", "PodSecurityPolicy"),
    ("node.k8s.io/v1beta1", "RuntimeClass"),
];

/// Group and resource of the same. Most of these resources still exist in a later version of their API.
const RESOURCES_1_25: [(&str, &str); 7] = [
    ("policy", "podsecuritypolicies"),
    ("batch", "cronjobs"),
    ("discovery.k8s.io", "endpointslices"),
    ("events.k8s.io", "events"),
    ("autoscaling", "horizontalpodautoscalers"),
    ("policy", "poddisruptionbudgets"),
    ("node.k8s.io", "runtimeclasses"),
];

/// The rules of the validator `alpha-deprecated-apis`, which the OperatorHub validators run as well.
pub fn check(context: &Context<'_>) -> Vec<Checked> {
    let Some(csv) = context.csv() else { return Vec::new() };
    let mut findings = Vec::new();
    let wanted = context
        .options
        .values
        .get("k8s-version")
        .map(String::as_str)
        .unwrap_or_default();
    let target = Version::parse_tolerant(wanted).ok();
    if target.is_none() && !wanted.is_empty() {
        let detail = format!("invalid value informed via the k8s key option : {wanted}");
        findings.push(finding(&csv, &API_1, Severity::Error, detail).hint("give a version such as `k8s-version=1.25`"));
    }
    let minimum_text = csv.text("/spec/minKubeVersion");
    let minimum = Version::parse_tolerant(minimum_text).ok();
    if minimum.is_none() && !minimum_text.is_empty() {
        let detail = format!(
            "unable to use csv.Spec.MinKubeVersion to verify the CRD/Webhook apis because it has an invalid value: {minimum_text}"
        );
        findings.push(finding(&csv, &API_2, Severity::Error, detail).at(csv.object, "/spec/minKubeVersion"));
    }
    let reached = |minor: u64| {
        [&target, &minimum]
            .into_iter()
            .flatten()
            .any(|version| *version >= Version::new(1, minor, 0))
    };
    let (objects_1_25, rules_1_25) = removed_in_1_25(context, &csv);
    let groups = [
        (&API_22, 22, removed_in_1_22(context.bundle), true),
        (&API_25, 25, objects_1_25, true),
        (&API_25_RBAC, 25, rules_1_25, false),
        (&API_26, 26, removed_in_1_26(context.bundle), true),
    ];
    for (rule, minor, found, may_fail) in groups {
        if found.is_empty() {
            continue;
        }
        if !may_fail {
            findings.push(rule_finding(&csv, &found));
            continue;
        }
        let severity = if reached(minor) {
            Severity::Error
        } else {
            Severity::Warning
        };
        findings.push(finding(&csv, rule, severity, detail(minor, &found)).hint("move to the API's current version"));
    }
    findings
}

fn detail(minor: u64, found: &RemovedObjects) -> String {
    format!(
        "this bundle is using APIs which were deprecated and removed in v1.{minor}. More info: \
         https://kubernetes.io/docs/reference/using-api/deprecation-guide/#v1-{minor}. Migrate the API(s) for {}",
        list(found)
    )
}

/// operator-sdk's warning about RBAC rules, which is right for PodSecurityPolicies only.
fn rule_finding(csv: &Csv<'_>, found: &RemovedObjects) -> Checked {
    const REMOVED: &str = "podsecuritypolicies";
    let is_removed = found.contains_key(REMOVED);
    let severity = if is_removed { Severity::Warning } else { Severity::Info };
    let mut checked = finding(csv, &API_25_RBAC, Severity::Warning, detail(25, found)).severity(severity);
    let (names, hint) = if is_removed {
        (
            format!("Kubernetes 1.25 removed {REMOVED}, so the permission for them has no effect"),
            "remove podsecuritypolicies from the rule",
        )
    } else {
        let names: Vec<&str> = found.keys().map(String::as_str).collect();
        (
            format!(
                "operator-sdk warns about permissions for {}. Nothing is wrong: Kubernetes 1.25 removed only old versions of these APIs, \
                 and RBAC rules name no version",
                names.join(", ")
            ),
            "keep the permissions that the operator needs",
        )
    };
    checked.finding.message = names;
    let places = found.get(REMOVED).or_else(|| found.values().next());
    let first = places
        .and_then(|places| places.first())
        .map(String::as_str)
        .unwrap_or_default();
    checked.at(csv.object, &rule_pointer(first)).hint(hint)
}

/// The JSON pointer to an RBAC rule that operator-sdk names as `….ClusterPermissions[0].Rules[1]`.
fn rule_pointer(place: &str) -> String {
    let mut pointer = String::from("/spec/install/spec");
    for part in place.rsplit('.').take(2).collect::<Vec<_>>().into_iter().rev() {
        let Some((name, index)) = part.trim_end_matches(']').split_once('[') else {
            return String::new();
        };
        let name = match name {
            "ClusterPermissions" => "clusterPermissions",
            "Permissions" => "permissions",
            _ => "rules",
        };
        pointer.push_str(&format!("/{name}/{index}"));
    }
    pointer
}

fn finding(csv: &Csv<'_>, rule: &'static Rule, severity: Severity, detail: String) -> Checked {
    Checked::shared(rule, severity, &Subject::Value(csv.name().to_string()), detail).at(csv.object, "")
}

/// Kinds with their names. With two or more kinds each entry ends in a comma, the last one too.
pub(super) fn list(found: &RemovedObjects) -> String {
    let end = if found.len() > 1 { "," } else { "" };
    let entry = |(kind, names): (&String, &Vec<String>)| {
        let names: Vec<String> = names.iter().map(|name| quote_to_ascii(name)).collect();
        format!("{kind}: ([{}]){end}", names.join(" "))
    };
    found.iter().map(entry).collect()
}

fn add(found: &mut RemovedObjects, kind: &str, name: &str) {
    found.entry(kind.to_string()).or_default().push(name.to_string());
}

/// CustomResourceDefinitions and objects of APIs removed in 1.22.
pub(super) fn removed_in_1_22(bundle: &Bundle) -> RemovedObjects {
    let mut found = RemovedObjects::new();
    for crd in bundle
        .crds()
        .filter(|crd| crd.api_version() == "apiextensions.k8s.io/v1beta1")
    {
        let name = crd
            .typed
            .as_ref()
            .and_then(|crd| crd.pointer("/metadata/name"))
            .and_then(Value::as_str);
        add(&mut found, "CRD", name.unwrap_or_default());
    }
    for object in &bundle.objects {
        if REMOVED_1_22
            .iter()
            .any(|(version, kinds)| *version == object.api_version() && kinds.contains(&object.kind()))
        {
            add(&mut found, object.kind(), object.name());
        }
    }
    found
}

fn removed_in_1_25(context: &Context<'_>, csv: &Csv<'_>) -> (RemovedObjects, RemovedObjects) {
    let (mut objects, mut rules) = (RemovedObjects::new(), RemovedObjects::new());
    let removed = |version: &str, kind: &str| REMOVED_1_25.contains(&(version, kind));
    for object in &context.bundle.objects {
        if removed(object.api_version(), object.kind()) {
            add(&mut objects, object.kind(), object.name());
        }
    }
    if csv.object.api_version() != "operators.coreos.com/v1alpha1" {
        return (objects, rules);
    }
    let (converted, _) = convert(&csv.object.value, "ClusterServiceVersion");
    let all = |pointer: &str| {
        converted
            .pointer(pointer)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let mut named = Vec::new();
    for (field_name, list) in [("Owned", "owned"), ("Required", "required")] {
        for (at, description) in all(&format!("/spec/customresourcedefinitions/{list}"))
            .iter()
            .enumerate()
        {
            for (index, resource) in items(description, "resources").iter().enumerate() {
                let kind = field(resource, "kind");
                named.push(format!("{}s", kind.to_lowercase()));
                if removed(field(resource, "version"), kind) {
                    let place = format!(
                        "ClusterServiceVersion.Spec.CustomResourceDefinitions.{field_name}[{at}].Resource[{index}]"
                    );
                    add(&mut objects, kind, &place);
                }
            }
        }
    }
    let resources = if context.options.profile == Profile::Api045 {
        RESOURCES_1_25.get(..1)
    } else {
        Some(&RESOURCES_1_25[..])
    };
    for (field_name, list) in [
        ("ClusterPermissions", "clusterPermissions"),
        ("Permissions", "permissions"),
    ] {
        for (at, permission) in all(&format!("/spec/install/spec/{list}")).iter().enumerate() {
            for (index, rule) in items(permission, "rules").iter().enumerate() {
                for group in strings(rule, "apiGroups") {
                    for resource in strings(rule, "resources") {
                        let hit = resources.unwrap_or_default().contains(&(group, resource));
                        if hit && !named.iter().any(|other| other == resource) {
                            let place = format!(
                                "ClusterServiceVersion.Spec.InstallStrategy.StrategySpec.{field_name}[{at}].Rules[{index}]"
                            );
                            add(&mut rules, resource, &place);
                        }
                    }
                }
            }
        }
    }
    (objects, rules)
}

fn removed_in_1_26(bundle: &Bundle) -> RemovedObjects {
    let mut found = RemovedObjects::new();
    for object in &bundle.objects {
        if object.api_version() == "autoscaling/v2beta2" && object.kind() == "HorizontalPodAutoscaler" {
            add(&mut found, object.kind(), object.name());
        }
    }
    found
}
