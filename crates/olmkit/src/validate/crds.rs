//! CRD: the CustomResourceDefinitions, as the API server checks them when they are created. operator-sdk does not check schemas
//! and status. The lint CRD-30 does.

use super::checked::{Checked, Subject};
use super::context::Context;
use crate::bundle::Object;
use crate::crd::validation::{ApiVersion, CrdFinding, validate_decoded};
use crate::diagnostics::{Origin, Rule, Severity, define_rules};
use crate::object::pointer_part;

define_rules! {
    CRD_1 = {
        id: "CRD-1",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("CustomResourceDefinition"),
        summary: "A CRD must be named `<plural>.<group>`.",
        why: "The API server rejects another name.",
        bad: "name: widget.example.com   # plural: widgets",
        good: "name: widgets.example.com",
        since: "0.1.0",
    }
    CRD_2 = {
        id: "CRD-2",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("CustomResourceDefinition"),
        summary: "The metadata must be valid: no namespace, well-formed labels and annotations.",
        why: "The API server rejects the definition.",
        bad: "namespace: default",
        good: "name: widgets.example.com",
        since: "0.1.0",
    }
    CRD_3 = {
        id: "CRD-3",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("CustomResourceDefinition"),
        summary: "The group must be a domain with a dot.",
        why: "The API server rejects a group that is not a domain.",
        bad: "group: demo",
        good: "group: demo.example.com",
        since: "0.1.0",
    }
    CRD_4 = {
        id: "CRD-4",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("CustomResourceDefinition"),
        summary: "The scope must be Cluster or Namespaced.",
        why: "The API server rejects any other value.",
        bad: "scope: namespaced",
        good: "scope: Namespaced",
        since: "0.1.0",
    }
    CRD_5 = {
        id: "CRD-5",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("CustomResourceDefinition"),
        summary: "Version names must be DNS labels.",
        why: "The version is part of the API's URL.",
        bad: "name: V1",
        good: "name: v1",
        since: "0.1.0",
    }
    CRD_7 = {
        id: "CRD-7",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("CustomResourceDefinition"),
        summary: "Version names must differ, and exactly one version must have `storage: true`.",
        why: "The API server stores objects in exactly one version.",
        bad: "storage: false",
        good: "storage: true",
        since: "0.1.0",
    }
    CRD_9 = {
        id: "CRD-9",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("CustomResourceDefinition"),
        summary: "Names must be DNS labels. Kind and plural must be present, and the list kind must differ from the kind.",
        why: "The names appear in URLs and in discovery, where they must be unambiguous.",
        bad: "plural: Widgets",
        good: "plural: widgets",
        since: "0.1.0",
    }
    CRD_10 = {
        id: "CRD-10",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("CustomResourceDefinition"),
        summary: "Printer columns must have a name, a known type and a JSON path.",
        why: "The API server rejects a column that it cannot print.",
        bad: "type: int",
        good: "type: integer",
        since: "0.1.0",
    }
    CRD_11 = {
        id: "CRD-11",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("CustomResourceDefinition"),
        summary: "Paths in the scale subresource must be under `.spec` and `.status`.",
        why: "The API server reads and writes replicas by these paths and rejects all other paths.",
        bad: "specReplicasPath: spec.size",
        good: "specReplicasPath: .spec.size",
        since: "0.1.0",
    }
    CRD_12 = {
        id: "CRD-12",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("CustomResourceDefinition"),
        summary: "The conversion strategy must be None, or Webhook with either a URL or a service, and known review versions.",
        why: "The API server cannot convert objects otherwise.",
        bad: "strategy: Webhook",
        good: "strategy: None",
        since: "0.1.0",
    }
    CRD_14 = {
        id: "CRD-14",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("CustomResourceDefinition"),
        summary: "`preserveUnknownFields` must be false. In v1beta1 it must be set, because it defaults to true there.",
        why: "apiextensions.k8s.io/v1 accepts only false: fields that the schema does not know are dropped.",
        bad: "preserveUnknownFields: true",
        good: "preserveUnknownFields: false",
        since: "0.1.0",
    }
    CRD_18 = {
        id: "CRD-18",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("CustomResourceDefinition"),
        summary: "A CRD in a Kubernetes API group must have the annotation `api-approved.kubernetes.io`.",
        why: "These groups belong to the Kubernetes project, whose reviewers approve each API in them.",
        bad: "group: demo.k8s.io",
        good: "group: demo.example.com",
        since: "0.1.0",
    }
    CRD_19 = {
        id: "CRD-19",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("CustomResourceDefinition"),
        summary: "Selectable fields must be string, boolean or integer fields in the schema.",
        why: "The API server offers them as field selectors, and rejects other types.",
        bad: "jsonPath: .metadata.name",
        good: "jsonPath: .spec.size",
        since: "0.1.0",
    }
    CRD_20 = {
        id: "CRD-20",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("CustomResourceDefinition"),
        summary: "Only deprecated versions may have a deprecation warning. It must have at most 256 printable bytes.",
        why: "The API server sends the warning in an HTTP header, and only for deprecated versions.",
        bad: "deprecationWarning: old",
        good: "deprecated: true\ndeprecationWarning: old",
        since: "0.1.0",
    }
    CRD_21 = {
        id: "CRD-21",
        severity: Severity::Error,
        origin: Origin::OperatorSdk("CustomResourceDefinition"),
        summary: "The API server must accept the CRD in every other respect.",
        why: "The installation or upgrade stops when the API server rejects a definition.",
        bad: "a definition that the API server rejects for a reason that no other CRD rule covers",
        good: "a definition changed as the finding describes",
        since: "0.1.0",
    }
}

/// Checks all CustomResourceDefinitions, one group of findings for each: those of v1beta1 first.
pub fn check(context: &Context<'_>) -> Vec<Vec<Checked>> {
    each(context)
        .map(|(object, findings)| {
            findings
                .iter()
                .filter(|finding| finding.kept_by_operator_sdk())
                .map(|finding| shared(object, finding))
                .collect()
        })
        .collect()
}

/// Each CRD with everything that the API server would report.
fn each<'a>(context: &Context<'a>) -> impl Iterator<Item = (&'a Object, Vec<CrdFinding>)> + use<'a> {
    let versions = [(ApiVersion::V1Beta1, "v1beta1"), (ApiVersion::V1, "v1")];
    let bundle = context.bundle;
    versions.into_iter().flat_map(move |(api, name)| {
        let crds = bundle.crds().filter(move |crd| crd.version() == name);
        crds.filter_map(move |crd| Some((crd, validate_decoded(crd.typed.as_ref()?, api))))
    })
}

fn shared(object: &Object, finding: &CrdFinding) -> Checked {
    let subject = Subject::FieldValue(finding.field.clone(), finding.value.clone());
    let mut checked = Checked::shared(rule(&finding.field), Severity::Error, &subject, &finding.message)
        .at(object, &pointer(object, &finding.field));
    checked.finding.path = Some(finding.field.clone());
    if let Some(hint) = hint(&finding.field) {
        checked = checked.hint(hint);
    }
    checked
}

/// The rule that checks a field.
fn rule(field: &str) -> &'static Rule {
    let is = |part: &str| field.contains(part);
    if field == "metadata.name" {
        &CRD_1
    } else if is("metadata.annotations[api-approved") {
        &CRD_18
    } else if is("metadata.") {
        &CRD_2
    } else if is("spec.group") {
        &CRD_3
    } else if is("spec.scope") {
        &CRD_4
    } else if is("spec.names") {
        &CRD_9
    } else if is("additionalPrinterColumns") {
        &CRD_10
    } else if is("subresources") {
        &CRD_11
    } else if is("spec.conversion") {
        &CRD_12
    } else if is("preserveUnknownFields") {
        &CRD_14
    } else if is("electableFields") {
        &CRD_19
    } else if is("deprecationWarning") {
        &CRD_20
    } else if field == "spec.versions" {
        &CRD_7
    } else if is("spec.version") {
        &CRD_5
    } else {
        &CRD_21
    }
}

fn hint(field: &str) -> Option<&'static str> {
    let hints = [
        (&CRD_1, "name the CRD `<plural>.<group>`"),
        (
            &CRD_2,
            "a CRD has no namespace and no owner; labels and annotations are `prefix/name: value`",
        ),
        (&CRD_3, "use a group of your own domain, such as `cache.example.com`"),
        (&CRD_4, "write `Namespaced` or `Cluster`"),
        (&CRD_7, "exactly one version has `storage: true`"),
        (
            &CRD_14,
            "write the CRD as apiextensions.k8s.io/v1 with a schema for each version",
        ),
        (
            &CRD_18,
            "use a group of your own domain; those of Kubernetes need a review",
        ),
    ];
    let of_field = rule(field);
    hints
        .into_iter()
        .find(|(rule, _)| rule.id == of_field.id)
        .map(|(_, hint)| hint)
}

/// The position of a field in the file. Field names are those of the API server's internal form, where parts that all
/// versions share appear once.
fn pointer(object: &Object, field: &str) -> String {
    let mut pointer = String::new();
    for part in field.split(['.', '[', ']']).filter(|part| !part.is_empty()) {
        pointer.push('/');
        pointer.push_str(&pointer_part(part));
    }
    if let Some(rest) = pointer.strip_prefix("/spec/conversion/webhookClientConfig") {
        return format!("/spec/conversion/webhook/clientConfig{rest}");
    }
    if object.version() == "v1" {
        for hoisted in [
            "/spec/additionalPrinterColumns",
            "/spec/subresources",
            "/spec/selectableFields",
        ] {
            if let Some(rest) = pointer.strip_prefix(hoisted) {
                let name = hoisted.trim_start_matches("/spec/");
                return format!("/spec/versions/0/{name}{}", rest.replace("/JSONPath", "/jsonPath"));
            }
        }
    }
    pointer
}
