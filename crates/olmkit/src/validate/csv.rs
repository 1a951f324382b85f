//! CSV: the ClusterServiceVersion.

use serde_json::Value;

use super::checked::{Checked, Subject};
use super::context::{Context, Csv, field, items};
use super::examples;
use crate::diagnostics::{Origin, Rule, Severity, define_rules, json_path};
use crate::object::{Version, dns1123_subdomain_problems, label_value_problems, pointer_part};
use olmkit_go::strconv::quote;

define_rules! {
    CSV_1 = {
        id: "CSV-1",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("ClusterServiceVersion"),
        summary: "The name must be a DNS subdomain with at most 63 characters.",
        why: "The API server rejects other names, and OLM uses the name as a label value, which has at most 63 characters.",
        bad: "name: Demo_v1",
        good: "name: demo.v1.0.0",
        since: "0.1.0",
    }
    CSV_2 = {
        id: "CSV-2",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("ClusterServiceVersion"),
        summary: "`spec.replaces` must be a valid ClusterServiceVersion name.",
        why: "It refers to another ClusterServiceVersion by its name.",
        bad: "replaces: Demo_v0",
        good: "replaces: demo.v0.9.0",
        since: "0.1.0",
    }
    CSV_12 = {
        id: "CSV-12",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("ClusterServiceVersion"),
        summary: "The install modes must be listed.",
        why: "OLM does not install an operator into an OperatorGroup whose mode it does not support.",
        bad: "installModes: []",
        good: "installModes:\n- type: AllNamespaces\n  supported: true",
        since: "0.1.0",
    }
    CSV_14 = {
        id: "CSV-14",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("ClusterServiceVersion"),
        summary: "An operator with a conversion webhook must support AllNamespaces only.",
        why: "A CRD is converted for the whole cluster, so its webhook must serve all namespaces.",
        bad: "- type: OwnNamespace\n  supported: true",
        good: "- type: OwnNamespace\n  supported: false",
        since: "0.1.0",
    }
    CSV_15 = {
        id: "CSV-15",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("ClusterServiceVersion"),
        summary: "At least one install mode must be supported.",
        why: "No OperatorGroup can select namespaces for such an operator.",
        bad: "- type: AllNamespaces\n  supported: false",
        good: "- type: AllNamespaces\n  supported: true",
        since: "0.1.0",
    }
    CSV_16 = {
        id: "CSV-16",
        severity: Severity::Warning,
        origin: Origin::OperatorSdk("ClusterServiceVersion"),
        summary: "`minKubeVersion` should be set.",
        why: "OLM can then refuse to install on a cluster that is too old, before the operator fails there at run time.",
        bad: "spec: {}",
        good: "spec:\n  minKubeVersion: 1.25.0",
        since: "0.1.0",
    }
    CSV_17 = {
        id: "CSV-17",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("ClusterServiceVersion"),
        summary: "`minKubeVersion` must be a version with three numbers.",
        why: "OLM parses it as a semantic version and fails the ClusterServiceVersion otherwise.",
        bad: "minKubeVersion: v1.25",
        good: "minKubeVersion: 1.25.0",
        since: "0.1.0",
    }
    CSV_18 = {
        id: "CSV-18",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("ClusterServiceVersion"),
        summary: "The required fields must be present: metadata, spec, install with strategy and deployments, displayName.",
        why: "OLM cannot install, and consoles cannot show, an operator without them.",
        bad: "spec:\n  version: 1.0.0",
        good: "spec:\n  displayName: Demo\n  version: 1.0.0",
        since: "0.1.0",
    }
    CSV_19 = {
        id: "CSV-19",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("ClusterServiceVersion"),
        summary: "OLM's annotations must have the right capitalization.",
        why: "OLM reads the annotations by their exact names and ignores all other names.",
        bad: "olm.skiprange: <1.0.0",
        good: "olm.skipRange: <1.0.0",
        since: "0.1.0",
    }
    CSV_20 = {
        id: "CSV-20",
        severity: Severity::Warning,
        origin: Origin::OperatorSdk("ClusterServiceVersion"),
        summary: "Properties should be in metadata/properties.yaml.",
        why: "OLM v1 writes this annotation itself, from metadata/properties.yaml.",
        bad: "olm.properties: '[…]'",
        good: "metadata/properties.yaml",
        since: "0.1.0",
    }
    CSV_21 = {
        id: "CSV-21",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("ClusterServiceVersion"),
        summary: "`apiVersion` must be present.",
        why: "The API server rejects an object without it.",
        bad: "kind: ClusterServiceVersion",
        good: "apiVersion: operators.coreos.com/v1alpha1",
        since: "0.1.0",
    }
    CSV_22 = {
        id: "CSV-22",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("ClusterServiceVersion"),
        summary: "`kind` must be present.",
        why: "The API server rejects an object without it.",
        bad: "apiVersion: operators.coreos.com/v1alpha1",
        good: "kind: ClusterServiceVersion",
        since: "0.1.0",
    }
}

/// operator-sdk's message if `minKubeVersion` is missing.
const MIN_KUBE_VERSION_MISSING: &str = "csv.Spec.minKubeVersion is not informed. It is recommended you provide this information. \
     Otherwise, it would mean that your operator project can be distributed and installed in any cluster version available, \
     which is not necessarily the case for all projects.";

/// Annotations whose case matters.
const CASE_SENSITIVE: [&str; 5] = [
    "olm.operatorGroup",
    "olm.operatorNamespace",
    "olm.targetNamespaces",
    "olm.providedAPIs",
    "olm.skipRange",
];

/// Checks the ClusterServiceVersion.
pub fn check(context: &Context<'_>) -> Vec<Checked> {
    let Some(csv) = context.csv() else { return Vec::new() };
    let mut findings = names_of(&csv);
    findings.extend(examples::check(&csv));
    findings.extend(install_modes(&csv));
    findings.extend(min_kube_version(&csv));
    findings.extend(required_fields(&csv));
    findings.extend(annotation_names(&csv));
    findings.extend(version_and_kind(&csv));
    findings
}

fn names_of(csv: &Csv<'_>) -> Vec<Checked> {
    let mut findings = Vec::new();
    let mut check = |rule, pointer: &str, field: &str, name: &str| {
        // The name becomes a label value as well.
        let mut reasons = dns1123_subdomain_problems(name);
        reasons.extend(label_value_problems(name));
        if !reasons.is_empty() {
            let detail = format!("{field} {} is invalid: {}", quote(name), reasons.join(","));
            let hint = "use at most 63 lower-case letters, digits, `-` and `.`, as in `my-operator.v1.2.3`";
            let mut checked = csv.error(rule, pointer, detail).hint(hint);
            checked.finding.message = match name {
                "" => format!("{field} is missing"),
                _ => format!("{field} {name:?} is not a DNS subdomain of at most 63 characters"),
            };
            findings.push(checked);
        }
    };
    check(&CSV_1, "/metadata/name", "metadata.name", csv.name());
    let replaces = csv.text("/spec/replaces");
    if !replaces.is_empty() {
        check(&CSV_2, "/spec/replaces", "spec.replaces", replaces);
    }
    findings
}

fn install_modes(csv: &Csv<'_>) -> Vec<Checked> {
    let pointer = "/spec/installModes";
    let modes = csv.list(pointer);
    if modes.is_empty() {
        let hint = "list the four install modes OwnNamespace, SingleNamespace, MultiNamespace and AllNamespaces, each with `supported`";
        return vec![csv.error(&CSV_12, pointer, "install modes not found").hint(hint)];
    }
    let supported = |mode: &Value| mode.get("supported").and_then(Value::as_bool).unwrap_or(false);
    let only_all = modes
        .iter()
        .all(|mode| supported(mode) == (field(mode, "type") == "AllNamespaces"));
    let mut findings = Vec::new();
    for (at, webhook) in csv.list("/spec/webhookdefinitions").iter().enumerate() {
        if !items(webhook, "conversionCRDs").is_empty() && !only_all {
            let pointer = format!("/spec/webhookdefinitions/{at}/conversionCRDs");
            let detail = "only AllNamespaces InstallModeType is supported when conversionCRDs is present";
            let hint = "a conversion webhook serves the whole cluster: support AllNamespaces only";
            findings.push(csv.error(&CSV_14, &pointer, detail).hint(hint));
        }
    }
    if !modes.iter().any(supported) {
        let hint = "set `supported: true` on at least one install mode";
        findings.push(
            csv.error(&CSV_15, pointer, "none of InstallModeTypes are supported")
                .hint(hint),
        );
    }
    findings
}

/// Reports that `minKubeVersion` is missing.
pub fn without_minimum(csv: &Csv<'_>, rule: &'static Rule) -> Checked {
    let mut checked = csv.warning(rule, "/spec/minKubeVersion", MIN_KUBE_VERSION_MISSING);
    checked.finding.message =
        "spec.minKubeVersion is missing, so OLM installs the operator on clusters of any version".to_string();
    checked.hint("add for example `minKubeVersion: 1.25.0`")
}

fn min_kube_version(csv: &Csv<'_>) -> Option<Checked> {
    let pointer = "/spec/minKubeVersion";
    let version = csv.text(pointer);
    if version.trim().is_empty() {
        return Some(without_minimum(csv, &CSV_16));
    }
    if Version::parse(version).is_ok() {
        return None;
    }
    let detail = format!("csv.Spec.MinKubeVersion has an invalid value: {version}");
    Some(
        csv.error(&CSV_17, pointer, detail)
            .hint("write three numbers, without a `v`: `minKubeVersion: 1.25.0`"),
    )
}

/// One required field: operator-sdk's name of the path, the pointer, and its name for the kind of the field.
const REQUIRED: [(&str, &str, &str); 3] = [
    ("ObjectMeta", "/metadata", "struct"),
    ("Spec", "/spec", "struct"),
    ("Spec.InstallStrategy", "/spec/install", "struct"),
];

fn required_fields(csv: &Csv<'_>) -> Vec<Checked> {
    let mut missing: Vec<(&str, &str, &str)> = Vec::new();
    if csv.text("/kind").is_empty() && csv.text("/apiVersion").is_empty() {
        missing.push(("TypeMeta", "/kind", "struct"));
    }
    let spec_is_there = !is_zero(csv.get("/spec"), "ClusterServiceVersionSpec");
    let types = ["ObjectMeta", "ClusterServiceVersionSpec", "NamedInstallStrategy"];
    for ((path, pointer, kind), type_name) in REQUIRED.into_iter().zip(types) {
        let parent_is_there = !pointer.starts_with("/spec/") || spec_is_there;
        if parent_is_there && is_zero(csv.get(pointer), type_name) {
            missing.push((path, pointer, kind));
        }
    }
    if spec_is_there {
        let install = csv.get("/spec/install");
        if !is_zero(install, "NamedInstallStrategy") {
            if field(install, "strategy").is_empty() {
                missing.push(("Spec.InstallStrategy.StrategyName", "/spec/install/strategy", "field"));
            }
            let strategy = install.get("spec").unwrap_or(&Value::Null);
            if !is_zero(strategy, "StrategyDetailsDeployment") && strategy.get("deployments").is_none() {
                missing.push((
                    "Spec.InstallStrategy.StrategySpec.DeploymentSpecs",
                    "/spec/install/spec/deployments",
                    "field",
                ));
            }
        }
        if csv.text("/spec/displayName").is_empty() {
            missing.push(("Spec.DisplayName", "/spec/displayName", "field"));
        }
    }
    let finding = |(path, pointer, kind): (&str, &str, &str)| {
        let subject = Subject::FieldValue(path.to_string(), kind.to_string());
        let mut checked =
            Checked::shared(&CSV_18, Severity::Error, &subject, "required field missing").at(csv.object, pointer);
        checked.finding.message = format!("required field {} is missing", json_path(pointer));
        let name = pointer.rsplit('/').next().unwrap_or_default();
        checked.hint(match name {
            "displayName" => "add `displayName: …`, the operator's name for people, under `spec`".to_string(),
            "strategy" => "add `strategy: deployment` under `spec.install`".to_string(),
            _ => format!("add `{name}`; `olmkit generate bundle` fills it in from the operator's manifests"),
        })
    };
    missing.into_iter().map(finding).collect()
}

/// True when a decoded value is what Go has before anything is decoded.
fn is_zero(value: &Value, type_name: &str) -> bool {
    olmkit_go::structs::zero::is_zero(value, type_name)
}

fn annotation_names(csv: &Csv<'_>) -> Vec<Checked> {
    let mut findings = Vec::new();
    for (key, _) in csv.annotations() {
        let pointer = format!("/metadata/annotations/{}", pointer_part(key));
        if let Some(right) = CASE_SENSITIVE
            .iter()
            .find(|known| known.to_lowercase() == key.to_lowercase())
            && *right != key
        {
            let detail = format!("provided annotation {key} uses wrong case and should be {right} instead");
            let subject = Subject::Value(csv.name().to_string());
            let checked = Checked::shared(&CSV_19, Severity::Error, &subject, detail).at(csv.object, &pointer);
            findings.push(checked.hint(format!("write `{right}`: OLM does not see the annotation otherwise")));
        }
        if key == "olm.properties" {
            let detail =
                "found olm.properties annotation, please define these properties in metadata/properties.yaml instead";
            let subject = Subject::Value(String::new());
            findings.push(Checked::shared(&CSV_20, Severity::Warning, &subject, detail).at(csv.object, &pointer));
        }
    }
    findings
}

fn version_and_kind(csv: &Csv<'_>) -> Vec<Checked> {
    let mut findings = Vec::new();
    let api_version = csv.text("/apiVersion");
    let version = match api_version.matches('/').count() {
        0 => api_version,
        1 => api_version.split_once('/').map_or("", |(_, version)| version),
        _ => "",
    };
    if version.is_empty() {
        let hint = "write `apiVersion: operators.coreos.com/v1alpha1`";
        findings.push(csv.error(&CSV_21, "/apiVersion", "'apiVersion' is missing").hint(hint));
    }
    if csv.text("/kind").is_empty() {
        findings.push(
            csv.error(&CSV_22, "/kind", "'kind' is missing")
                .hint("write `kind: ClusterServiceVersion`"),
        );
    }
    findings
}
