//! CRD: the CustomResourceDefinitions, as the API server checks them when they are created. operator-sdk leaves out what concerns
//! schemas and status; that is reported as rules of our own.

use super::checked::{Checked, Subject};
use super::context::Context;
use crate::bundle::Object;
use crate::crd::validation::{ApiVersion, CrdFinding, validate_decoded};
use crate::diagnostics::Severity;

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

/// Each CRD with all that the API server would say.
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

/// The rule that looks at a field.
fn rule(field: &str) -> &'static str {
    let is = |part: &str| field.contains(part);
    if field == "metadata.name" {
        "CRD-1"
    } else if is("metadata.annotations[api-approved") {
        "CRD-18"
    } else if is("metadata.") {
        "CRD-2"
    } else if is("spec.group") {
        "CRD-3"
    } else if is("spec.scope") {
        "CRD-4"
    } else if is("spec.names") {
        "CRD-9"
    } else if is("additionalPrinterColumns") {
        "CRD-10"
    } else if is("subresources") {
        "CRD-11"
    } else if is("spec.conversion") {
        "CRD-12"
    } else if is("preserveUnknownFields") {
        "CRD-14"
    } else if is("electableFields") {
        "CRD-19"
    } else if is("deprecationWarning") {
        "CRD-20"
    } else if field == "spec.versions" {
        "CRD-7"
    } else if is("spec.version") {
        "CRD-5"
    } else {
        "CRD-21"
    }
}

fn hint(field: &str) -> Option<&'static str> {
    Some(match rule(field) {
        "CRD-1" => "name the CRD `<plural>.<group>`",
        "CRD-2" => "remove the field: a CRD belongs to no namespace and to nobody",
        "CRD-3" => "use a group of your own domain, such as `cache.example.com`",
        "CRD-4" => "write `Namespaced` or `Cluster`",
        "CRD-7" => "exactly one version has `storage: true`",
        "CRD-14" => "write the CRD as apiextensions.k8s.io/v1 with a schema for each version",
        "CRD-18" => "use a group of your own domain; those of Kubernetes need a review",
        _ => return None,
    })
}

/// The place of a field in the file. Field names are those of the API server's internal form, where what all versions share
/// stands once.
fn pointer(object: &Object, field: &str) -> String {
    let mut pointer = String::new();
    for part in field.split(['.', '[', ']']).filter(|part| !part.is_empty()) {
        pointer.push('/');
        pointer.push_str(&super::checked::escape(part));
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
