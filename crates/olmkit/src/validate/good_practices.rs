//! GP: the validator `good-practices`.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::checked::{Checked, Subject};
use super::context::{Context, Csv, field, items, strings};
use crate::diagnostics::{Origin, Rule, Severity, define_rules};
use crate::object::Version;
use olmkit_go::strconv::quote;

define_rules! {
    GP_1 = {
        id: "GP-1",
        severity: Severity::Error,
        origin: Origin::OptionalValidator("good-practices"),
        summary: "The install strategy must have deployments.",
        why: "An operator without a deployment does not run.",
        bad: "spec: {}",
        good: "spec: {deployments: […]}",
        since: "0.1.0",
    }
    GP_2 = {
        id: "GP-2",
        severity: Severity::Warning,
        origin: Origin::OptionalValidator("good-practices"),
        summary: "Each container should request resources.",
        why: "Without requests the scheduler may put the pod on a node that is full, and it is evicted first.",
        bad: "resources: {}",
        good: "resources: {requests: {cpu: 10m, memory: 64Mi}}",
        since: "0.1.0",
    }
    GP_3 = {
        id: "GP-3",
        severity: Severity::Warning,
        origin: Origin::OptionalValidator("good-practices"),
        summary: "Each owned and required API should have a description.",
        why: "Consoles show the description in the list of APIs.",
        bad: "- name: widgets.example.com",
        good: "- name: widgets.example.com\n  description: A widget",
        since: "0.1.0",
    }
    GP_5 = {
        id: "GP-5",
        severity: Severity::Warning,
        origin: Origin::OptionalValidator("good-practices"),
        summary: "An operator should not create CRDs.",
        why: "OLM manages the CRDs in the bundle. It neither upgrades nor checks those that are created at run time.",
        bad: "resources: [customresourcedefinitions]\nverbs: [create]",
        good: "verbs: [get, list]",
        since: "0.1.0",
    }
    GP_6 = {
        id: "GP-6",
        severity: Severity::Warning,
        origin: Origin::OptionalValidator("good-practices"),
        summary: "The name should end in a version.",
        why: "People and tools see the version in the name, in `replaces` and in the catalog.",
        bad: "name: demo",
        good: "name: demo.v1.0.0",
        since: "0.1.0",
    }
    GP_7 = {
        id: "GP-7",
        severity: Severity::Warning,
        origin: Origin::OptionalValidator("good-practices"),
        summary: "The name should be `<operator>.v<version>`.",
        why: "Other versions, users and tools expect such names.",
        bad: "name: demo.1.0.0",
        good: "name: demo.v1.0.0",
        since: "0.1.0",
    }
}

/// Checks the ClusterServiceVersion.
pub fn check(context: &Context<'_>) -> Vec<Checked> {
    let Some(csv) = context.csv() else { return Vec::new() };
    let mut findings = resource_requests(&csv);
    findings.extend(descriptions(&csv));
    findings.extend(creates_crds(&csv));
    findings.extend(name(&csv));
    findings
}

fn warning(csv: &Csv<'_>, rule: &'static Rule, pointer: &str, detail: String) -> Checked {
    Checked::shared(rule, Severity::Warning, &Subject::Value(csv.name().to_string()), detail).at(csv.object, pointer)
}

fn resource_requests(csv: &Csv<'_>) -> Vec<Checked> {
    let pointer = "/spec/install/spec/deployments";
    if csv.get(pointer).is_null() {
        let subject = Subject::Value(csv.name().to_string());
        let detail = "unable to find a deployment to install in the CSV";
        return vec![Checked::shared(&GP_1, Severity::Error, &subject, detail).at(csv.object, pointer)];
    }
    let mut findings = Vec::new();
    for (pointer, container) in csv.containers() {
        if container.pointer("/resources/requests").is_some() {
            continue;
        }
        let name = field(container, "name");
        let detail = format!(
            "unable to find the resource requests for the container: ({name}). It is recommended to ensure the resource request for CPU \
             and Memory. Be aware that for some clusters configurations it is required to specify requests or limits for those values. \
             Otherwise, the system or quota may reject Pod creation. More info: \
             https://master.sdk.operatorframework.io/docs/best-practices/managing-resources/"
        );
        findings.push(warning(csv, &GP_2, &pointer, detail).hint("add `resources.requests` with `cpu` and `memory`"));
    }
    findings
}

fn descriptions(csv: &Csv<'_>) -> Vec<Checked> {
    let mut findings = Vec::new();
    for relation in ["owned", "required"] {
        let list = format!("/spec/customresourcedefinitions/{relation}");
        for (at, crd) in csv.list(&list).iter().enumerate() {
            if field(crd, "description").is_empty() {
                let detail = format!("{relation} CRD {} has an empty description", quote(field(crd, "name")));
                findings.push(
                    warning(csv, &GP_3, &format!("{list}/{at}"), detail)
                        .hint("describe in `description` what the API is for"),
                );
            }
        }
    }
    findings
}

fn creates_crds(csv: &Csv<'_>) -> Option<Checked> {
    let creates = |rule: &Value| {
        strings(rule, "apiGroups").any(|group| group == "apiextensions.k8s.io")
            && strings(rule, "resources").any(|resource| matches!(resource, "customresourcedefinitions" | "*" | "[*]"))
            && strings(rule, "verbs").any(|verb| matches!(verb, "create" | "*" | "[*]" | "patch"))
    };
    for list in [
        "/spec/install/spec/permissions",
        "/spec/install/spec/clusterPermissions",
    ] {
        for (at, permission) in csv.list(list).iter().enumerate() {
            if let Some(index) = items(permission, "rules").iter().position(creates) {
                let detail = "CSV contains permissions to create CRD. An Operator shouldn't deploy or manage other operators (such patterns \
                              are known as meta or super operators or include CRDs in its Operands). It's the Operator Lifecycle Manager's \
                              job to manage the deployment and lifecycle of operators.  Please, review the design of your solution and if \
                              you should not be using Dependency Resolution from OLM instead. More info: \
                              https://sdk.operatorframework.io/docs/best-practices/common-recommendation/";
                let checked = warning(csv, &GP_5, &format!("{list}/{at}/rules/{index}"), detail.to_string());
                return Some(
                    checked.hint(
                        "add the CustomResourceDefinitions to the bundle, or depend on the package that has them",
                    ),
                );
            }
        }
    }
    None
}

static TRAILING_VERSION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"([0-9]+)\.([0-9]+)\.([0-9]+)(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+)?$").ok()
});

fn name(csv: &Csv<'_>) -> Vec<Checked> {
    let mut findings = Vec::new();
    let name = csv.name();
    let pointer = "/metadata/name";
    let hint = "name it `<package>.v<version>`, for example `memcached-operator.v0.0.1`";
    let version = TRAILING_VERSION.as_ref().and_then(|pattern| pattern.find(name));
    if version.is_none_or(|version| Version::parse(version.as_str()).is_err()) {
        let detail = format!(
            "csv.metadata.Name {name} is not following the versioning convention (MAJOR.MINOR.PATCH e.g 0.0.1): https://semver.org/"
        );
        findings.push(warning(csv, &GP_6, pointer, detail).hint(hint));
    }
    if name.split(".v").count() != 2 {
        let detail = format!(
            "csv.metadata.Name {name} is not following the recommended naming convention: <operator-name>.v<semver> e.g. \
             memcached-operator.v0.0.1"
        );
        findings.push(warning(csv, &GP_7, pointer, detail).hint(hint));
    }
    findings
}
