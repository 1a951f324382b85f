//! V1-4 to V1-15: OLM v1's errors for a bundle, rule by rule (`--profile olmv1`).

use super::checked::Checked;
use super::context::Context;
use super::lints::olm_v1::{V1_1, V1_2, V1_3};
use crate::crd::upgrade::{Problem, Side, TooMuchToCompare};
use crate::diagnostics::{Finding, Origin, Proof, Rule, Severity, Witness, define_rules, json_path};
use crate::olmv1::{self, Bundle, Place, Release, RenderError};

define_rules! {
    V1_4 = {
        id: "V1-4",
        severity: Severity::Error,
        origin: Origin::Lint,
        summary: "The bundle must be readable by OLM v1.",
        why: "operator-controller first reads every file of manifests/ as objects.",
        bad: "manifests/notes.txt",
        good: "docs/notes.txt",
        since: "0.1.0",
        proof: Proof::new(
            Witness::OlmV1,
            "OLM v1 reads no further",
            "OLM v1 1.11",
            "crates/olmkit/tests/library/olmv1/refusals.rs: refusals_of_made_up_bundles_are_those_of_olm_v1",
        ),
    }
    V1_5 = {
        id: "V1-5",
        severity: Severity::Error,
        origin: Origin::Lint,
        summary: "Deployments must have unique names that are DNS subdomains.",
        why: "OLM v1 rejects bundles whose Deployments it could not create.",
        bad: "deployments:\n- name: Manager",
        good: "deployments:\n- name: manager",
        since: "0.1.0",
        proof: Proof::new(
            Witness::OlmV1,
            "OLM v1 rejects the bundle",
            "OLM v1 1.11",
            "crates/olmkit/tests/library/olmv1/refusals.rs: refusals_of_made_up_bundles_are_those_of_olm_v1",
        ),
    }
    V1_6 = {
        id: "V1-6",
        severity: Severity::Error,
        origin: Origin::Lint,
        summary: "Each owned CRD must be in the bundle, and only once.",
        why: "OLM v1 rejects bundles that promise an API they do not bring.",
        bad: "customresourcedefinitions: {owned: [{name: widgets.example.com, …}]}   # not in manifests/",
        good: "manifests/widgets.yaml",
        since: "0.1.0",
        proof: Proof::new(
            Witness::OlmV1,
            "OLM v1 rejects the bundle",
            "OLM v1 1.11",
            "crates/olmkit/tests/library/olmv1/refusals.rs: refusals_of_made_up_bundles_are_those_of_olm_v1",
        ),
    }
    V1_7 = {
        id: "V1-7",
        severity: Severity::Error,
        origin: Origin::Lint,
        summary: "The annotations must name the package.",
        why: "OLM v1 rejects a bundle that belongs to no package.",
        bad: "annotations: {}",
        good: "annotations:\n  operators.operatorframework.io.bundle.package.v1: demo",
        since: "0.1.0",
        proof: Proof::new(
            Witness::OlmV1,
            "OLM v1 rejects the bundle",
            "OLM v1 1.11",
            "crates/olmkit/tests/library/olmv1/refusals.rs: refusals_of_made_up_bundles_are_those_of_olm_v1",
        ),
    }
    V1_8 = {
        id: "V1-8",
        severity: Severity::Error,
        origin: Origin::Lint,
        summary: "Conversion webhooks must convert owned CRDs, each by one of them, in an operator that supports only AllNamespaces.",
        why: "A definition has one conversion for the whole cluster, so OLM v1 rejects anything else.",
        bad: "type: ConversionWebhook   # with SingleNamespace supported",
        good: "- {type: SingleNamespace, supported: false}",
        since: "0.1.0",
        proof: Proof::new(
            Witness::OlmV1,
            "OLM v1 rejects the bundle",
            "OLM v1 1.11",
            "crates/olmkit/tests/library/olmv1/refusals.rs: refusals_of_made_up_bundles_are_those_of_olm_v1",
        ),
    }
    V1_9 = {
        id: "V1-9",
        severity: Severity::Error,
        origin: Origin::Lint,
        summary: "Webhooks must have unique names that are DNS subdomains, and Deployments of the bundle.",
        why: "OLM v1 rejects webhooks that it could not set up.",
        bad: "generateName: vwidget.example.com-",
        good: "generateName: vwidget.example.com",
        since: "0.1.0",
        proof: Proof::new(
            Witness::OlmV1,
            "OLM v1 rejects the bundle",
            "OLM v1 1.11",
            "crates/olmkit/tests/library/olmv1/refusals.rs: refusals_of_made_up_bundles_are_those_of_olm_v1",
        ),
    }
    V1_10 = {
        id: "V1-10",
        severity: Severity::Error,
        origin: Origin::Lint,
        summary: "Webhooks must not intercept all API groups, OLM v1 or webhook configurations.",
        why: "Such a webhook could keep a user from repairing or removing the operator.",
        bad: "apiGroups: ['*']",
        good: "apiGroups: [example.com]",
        since: "0.1.0",
        proof: Proof::new(
            Witness::OlmV1,
            "OLM v1 rejects the bundle",
            "OLM v1 1.11",
            "crates/olmkit/tests/library/olmv1/refusals.rs: refusals_of_made_up_bundles_are_those_of_olm_v1",
        ),
    }
    V1_11 = {
        id: "V1-11",
        severity: Severity::Error,
        origin: Origin::Lint,
        summary: "All objects must be of kinds that OLM v1 installs.",
        why: "OLM v1 rejects bundles with any other kind.",
        bad: "kind: Ingress",
        good: "kind: Service",
        since: "0.1.0",
        proof: Proof::new(
            Witness::OlmV1,
            "OLM v1 rejects the bundle",
            "OLM v1 1.11",
            "crates/olmkit/tests/library/olmv1/refusals.rs: refusals_of_made_up_bundles_are_those_of_olm_v1",
        ),
    }
    V1_12 = {
        id: "V1-12",
        severity: Severity::Error,
        origin: Origin::Lint,
        summary: "OLM v1 must be able to create the bundle's objects.",
        why: "Webhooks are refused by releases up to 1.5, and a definition that keeps unknown fields cannot be converted.",
        bad: "spec: {preserveUnknownFields: true}",
        good: "spec: {preserveUnknownFields: false}",
        since: "0.1.0",
        proof: Proof::new(
            Witness::OlmV1,
            "OLM v1 rejects the bundle",
            "OLM v1 1.11",
            "crates/olmkit/tests/library/olmv1/refusals.rs: refusals_of_made_up_bundles_are_those_of_olm_v1",
        ),
    }
    V1_13 = {
        id: "V1-13",
        severity: Severity::Error,
        origin: Origin::Lint,
        summary: "OLM v1 must allow each CRD to replace the earlier one (`crd diff`, `bundle diff`, `--against`, `catalog validate --crd-safety`).",
        why: "The upgrade stops on every cluster until the CRD is changed back, or its preflight is switched off.",
        bad: "default: 5   # was 3",
        good: "default: 3",
        since: "0.1.0",
        proof: Proof::new(
            Witness::OlmV1,
            "OLM v1 blocks the upgrade",
            "OLM v1 1.11",
            "crates/olmkit/tests/library/olmv1/definitions.rs: made_up_upgrades_are_blocked_as_in_olm_v1",
        ),
    }
    V1_14 = {
        id: "V1-14",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "Lease permissions should not be only in `permissions` if the operator can watch one other namespace.",
        why: "OLM v1 makes these Roles in the watched namespace only: the operator cannot take its lease and never becomes leader.",
        bad: "permissions: [{rules: [{resources: [leases], …}]}]",
        good: "a Role and RoleBinding for leases as objects of the bundle, which OLM v1 puts into the operator's namespace",
        since: "0.1.0",
        proof: Proof::new(
            Witness::OlmV1,
            "no Role is made in the operator's namespace",
            "OLM v1 1.11",
            "crates/olmkit/tests/library/olmv1/render.rs: made_up_bundles_render_as_in_olm_v1",
        ),
    }
    V1_15 = {
        id: "V1-15",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "The API server and both appliers of OLM v1 should accept all objects that OLM v1 creates.",
        why: "OLM v1 accepts the bundle, and its installation fails again and again.",
        bad: "webhookdefinitions:\n- generateName: vwidget.example.com   # no containerPort",
        good: "webhookdefinitions:\n- generateName: vwidget.example.com\n  containerPort: 443",
        since: "0.1.0",
        proof: Proof::new(
            Witness::OlmV1,
            "OLM v1 makes an object that the API server rejects later",
            "OLM v1 1.11",
            "crates/olmkit/tests/library/olmv1/render.rs: made_up_bundles_render_as_in_olm_v1",
        ),
    }
    V1_16 = {
        id: "V1-16",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "An operator that uses OLM v0's API should also work with OLM v1.",
        why: "The migration from OLM v0 to v1 omits operators that would lose a feature that they use.",
        bad: "- apiGroups: [operators.coreos.com]\n  resources: [subscriptions]",
        good: "- apiGroups: [olm.operatorframework.io]\n  resources: [clusterextensions]   # in addition to the rule for OLM v0",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Convention,
            "the migration reports such an operator as not eligible (C5)",
            "library-olm, August 2026",
            "https://github.com/operator-framework/library-olm",
        ),
    }
}

/// The fix for a CRD that blocks an upgrade.
pub(super) fn hint_to_change_back(earlier: &str) -> String {
    format!("change it back to what {earlier} has, or make the change in a new version with a conversion webhook")
}

/// The rule that a check of OLM v1 belongs to, and what to do.
fn of_validator(name: &str) -> (&'static Rule, &'static str) {
    match name {
        "CheckDeploymentSpecUniqueness" | "CheckDeploymentNameIsDNS1123SubDomain" => (
            &V1_5,
            "give each Deployment a unique name: lowercase letters, digits, `-` and `.`",
        ),
        "CheckCRDResourceUniqueness" => (&V1_6, "remove one of the two definitions"),
        "CheckOwnedCRDExistence" => (
            &V1_6,
            "add the definition to manifests/, or remove the entry of `owned`",
        ),
        "CheckPackageNameNotEmpty" => (
            &V1_7,
            "add `operators.operatorframework.io.bundle.package.v1` to metadata/annotations.yaml",
        ),
        "CheckConversionWebhookSupport" => (&V1_8, "support AllNamespaces alone, or convert without a webhook"),
        "CheckConversionWebhookCRDReferenceUniqueness" => (&V1_8, "let one webhook convert the definition"),
        "CheckConversionWebhooksReferenceOwnedCRDs" => (&V1_8, "list the definition in `owned`"),
        "CheckWebhookDeploymentReferentialIntegrity" => (
            &V1_9,
            "name a Deployment of `install.spec.deployments` in `deploymentName`",
        ),
        "CheckWebhookNameUniqueness" => (&V1_9, "give each webhook of a type a unique name"),
        "CheckWebhookNameIsDNS1123SubDomain" => (
            &V1_9,
            "use lower case letters, digits, `-` and `.`, and no hyphen at the end",
        ),
        "CheckWebhookRules" => (&V1_10, "name the API groups and resources that the operator is about"),
        _ => (&V1_11, "remove the object, or let the operator create it"),
    }
}

fn finding(rule: &'static Rule, message: &str, place: &Place, hint: &str) -> Checked {
    let mut finding = Finding::new(rule, rule.severity, message).file(&place.file).hint(hint);
    if !place.pointer.is_empty() {
        finding = finding.path(json_path(&place.pointer));
    }
    finding.position = place.position;
    Checked {
        finding,
        reference: Some(message.to_owned()),
        on_request: false,
    }
}

/// Everything in a bundle that a release of OLM v1 with its standard features rejects, and later failures.
pub(super) fn check(context: &Context<'_>, release: Release) -> Vec<Checked> {
    let tree = &context.bundle.tree;
    let bundle = match Bundle::from_loaded(context.bundle) {
        Ok(bundle) => bundle,
        Err(error) => {
            let hint = "every file of manifests/ must hold Kubernetes objects that fit their types";
            return vec![finding(&V1_4, &error.message, &error.place, hint)];
        }
    };
    let gates = release.gates();
    let mut checked = Vec::new();
    if let Err(unsupported) = olmv1::support(&bundle, gates) {
        let (rule, hint) = match unsupported.place.pointer.as_str() {
            "/spec/apiservicedefinitions/owned" => (
                &V1_1,
                "serve the API by a CustomResourceDefinition, or require a release of OLM v1 after 1.11",
            ),
            "/spec/installModes" => (
                &V1_3,
                "support AllNamespaces: the standard manifests of OLM v1 know nothing else",
            ),
            _ => (&V1_12, "OLM v1 sets up webhooks since release 1.6"),
        };
        checked.push(finding(rule, &unsupported.to_string(), &unsupported.place, hint).severity(Severity::Error));
    }
    for complaint in olmv1::complaints(&bundle, gates) {
        let (rule, hint) = of_validator(complaint.validator);
        checked.push(finding(rule, &complaint.message, &complaint.place, hint));
    }
    for dependency in olmv1::dependencies(&bundle, tree) {
        let message = dependency.message(bundle.csv.name());
        let hint = "OLM v1 resolves no dependencies: document what must be installed first, or include it";
        checked.push(finding(&V1_2, &message, &dependency.place, hint).severity(Severity::Error));
    }
    if checked.is_empty() && converts(&bundle) {
        let mut how = olmv1::Options::new("operator");
        how.gates = gates;
        if let Err(RenderError::Conversion(error)) = olmv1::render(&bundle, &how) {
            let place = bundle.csv.place("/spec/webhookdefinitions");
            let hint = "set `preserveUnknownFields: false` in the definition";
            checked.push(finding(&V1_12, &error.to_string(), &place, hint));
        }
    }
    checked.extend(later(&bundle));
    checked.extend(against(&bundle, context));
    checked
}

/// Returns true if a webhook converts objects: nothing else can fail when OLM v1 creates the objects of an accepted
/// bundle.
fn converts(bundle: &Bundle) -> bool {
    let webhooks = bundle.csv.value.pointer("/spec/webhookdefinitions");
    let webhooks = webhooks.and_then(serde_json::Value::as_array);
    let is_conversion =
        |webhook: &serde_json::Value| webhook.get("type").is_some_and(|kind| kind == "ConversionWebhook");
    webhooks.into_iter().flatten().any(is_conversion)
}

/// Returns true if a lint applies to OLM v1. It replaces the volumes of CERT-1. The other rules are reported above.
pub(super) fn concerns(checked: &Checked) -> bool {
    ![
        "V1-1", "V1-2", "V1-3", "CERT-1", "CSV-23", "CRD-32", "CRD-34", "CRD-35", "CRD-36", "V1-13",
    ]
    .contains(&checked.finding.rule)
}

/// Problems that OLM v1 accepts and a cluster rejects.
fn later(bundle: &Bundle) -> Vec<Checked> {
    let warn = |rule, trouble: olmv1::Trouble| {
        let mut checked = finding(rule, &trouble.message, &trouble.place, trouble.hint);
        checked.reference = None;
        checked
    };
    let mut checked: Vec<Checked> = olmv1::leases(bundle)
        .into_iter()
        .map(|trouble| warn(&V1_14, trouble))
        .collect();
    checked.extend(
        olmv1::refused_later(bundle)
            .into_iter()
            .map(|trouble| warn(&V1_15, trouble)),
    );
    checked.extend(
        olmv1::works_with_olm_v0(bundle)
            .into_iter()
            .map(|trouble| warn(&V1_16, trouble)),
    );
    checked
}

/// Problems that block the upgrade from earlier bundles.
fn against(bundle: &Bundle, context: &Context<'_>) -> Vec<Checked> {
    let Some(against) = &context.options.against else {
        return Vec::new();
    };
    let mut checked = Vec::new();
    for (name, definitions) in against.definitions(&bundle.package, context.csv().as_ref()) {
        for old in definitions.iter() {
            let Some(new) = bundle
                .definitions
                .iter()
                .find(|new| old.pointer("/metadata/name").and_then(serde_json::Value::as_str) == Some(new.name()))
            else {
                continue;
            };
            for finding in upgrade_findings(old, None, new, &name) {
                checked.push(Checked {
                    reference: Some(finding.message.clone()),
                    finding,
                    on_request: false,
                });
            }
        }
    }
    checked
}

/// A change of a CRD that blocks the upgrade.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BlockedChange {
    /// The name of the CRD.
    pub definition: String,
    /// The name of crdify's validation, such as `enum`.
    pub validation: &'static str,
    /// The finding, with its position.
    pub finding: Finding,
}

/// Problems that block the upgrade from one CRD to another, with the position: in the later one, or in the earlier one
/// for removed parts.
#[must_use]
pub fn upgrade_findings(
    old: &serde_json::Value,
    old_object: Option<&olmv1::Object>,
    new: &olmv1::Object,
    earlier: &str,
) -> Vec<Finding> {
    let blocked = blocked_changes(old, old_object, new, earlier)
        .unwrap_or_else(|error| changes(vec![error.problem()], old_object, new, new.name(), earlier));
    blocked.into_iter().map(|change| change.finding).collect()
}

/// As [`upgrade_findings`], with the validation that finds each.
///
/// # Errors
/// See [`TooMuchToCompare`].
pub fn blocked_changes(
    old: &serde_json::Value,
    old_object: Option<&olmv1::Object>,
    new: &olmv1::Object,
    earlier: &str,
) -> Result<Vec<BlockedChange>, TooMuchToCompare> {
    use crate::crd::upgrade::{check, check_values, stored_versions};
    check_values(old, &new.value)?;
    let restored = olmkit_go::structs::restore::restore(old, "v1.CustomResourceDefinition").ok();
    let old = restored.as_ref().unwrap_or(old);
    let problems = check(old, &new.value, &stored_versions(old))?;
    drop(restored);
    Ok(changes(problems, old_object, new, new.name(), earlier))
}

/// Like [`blocked_changes`], for two CRDs from files. A CRD can have megabytes, so each value is dropped before the comparison.
///
/// # Errors
/// See [`TooMuchToCompare`].
pub fn blocked_changes_between(
    mut old: olmv1::Object,
    mut new: olmv1::Object,
    earlier: &str,
) -> Result<Vec<BlockedChange>, TooMuchToCompare> {
    use crate::crd::upgrade::{check_printed, printed, stored_versions};
    let name = new.name().to_owned();
    let stored = stored_versions(&old.value);
    let replaced = |object: &mut olmv1::Object| {
        let printed = printed(&object.value);
        object.value = std::sync::Arc::default();
        printed
    };
    let (old_printed, new_printed) = (replaced(&mut old), replaced(&mut new));
    let problems = check_printed(&old_printed, &new_printed, &stored)?;
    drop((old_printed, new_printed));
    Ok(changes(problems, Some(&old), &new, &name, earlier))
}

/// The findings of problems, each at its place.
fn changes(
    problems: Vec<Problem>,
    old: Option<&olmv1::Object>,
    new: &olmv1::Object,
    name: &str,
    earlier: &str,
) -> Vec<BlockedChange> {
    let mut places = new.places();
    let mut old_places = old.map(olmv1::Object::places);
    problems
        .into_iter()
        .map(|problem| {
            // Removed parts exist only in the earlier CRD.
            let (places, pointer) = match (problem.side, &mut old_places) {
                (Side::New, _) => (&mut places, problem.pointer.as_str()),
                (Side::Old, Some(old)) => (old, problem.pointer.as_str()),
                (Side::Old, None) => (&mut places, "/spec/versions"),
            };
            let place = places.find(pointer);
            let mut finding = Finding::new(&V1_13, V1_13.severity, problem.to_string())
                .object(format!("CustomResourceDefinition/{name}"))
                .file(&place.file)
                .path(json_path(pointer))
                .hint(hint_to_change_back(earlier));
            finding.position = place.position;
            BlockedChange {
                definition: name.to_owned(),
                validation: problem.validation,
                finding,
            }
        })
        .collect()
}
