//! The API server's checks of a CustomResourceDefinition at its creation, as pure functions.
//!
//! operator-sdk runs these checks over the CRDs of a bundle and keeps those findings whose field contains neither
//! `openAPIV3Schema` nor `status` ([`CrdFinding::kept_by_operator_sdk`]). This module reports the others.

mod conversion;
mod finding;
mod go_text;
mod internal;
pub(super) mod metadata;
mod schema;
mod selectable_fields;
mod spec;

pub use finding::{CrdFinding, FindingKind};

use std::collections::HashSet;

use serde_json::Value;

use self::finding::{BadValue, Findings};
use self::internal::{Crd, Names, texts};
use crate::crd::instance::Work;
use crate::yaml::{Error, Node};
use olmkit_go::structs::decode;

/// The annotation that a CRD in one of Kubernetes' own groups needs.
const APPROVAL: &str = "api-approved.kubernetes.io";

/// Version of the `apiextensions.k8s.io` API that a CRD is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ApiVersion {
    /// `apiextensions.k8s.io/v1`
    V1,
    /// `apiextensions.k8s.io/v1beta1`, which clusters have not served since Kubernetes 1.22.
    V1Beta1,
}

impl ApiVersion {
    /// The name of the CRD type in the tables of [`olmkit_go::structs`].
    pub fn type_name(self) -> &'static str {
        match self {
            Self::V1 => "v1.CustomResourceDefinition",
            Self::V1Beta1 => "v1beta1.CustomResourceDefinition",
        }
    }
}

/// Checks a CRD as the API server does when it is created: defaults are applied, the object is converted to the internal
/// version, then every rule runs. Field paths are those of the internal version, as operator-sdk prints them.
///
/// # Errors
///
/// The decoding error ([`Error::Unmarshal`], [`Error::Convert`]) when the CRD does not have the types of its API.
pub fn validate(crd: &Node, version: ApiVersion) -> Result<Vec<CrdFinding>, Error> {
    let value = crd.to_json().map_err(|error| Error::Convert(Box::new(error)))?;
    let decoded = decode::decode(&value, version.type_name(), true).map_err(|error| {
        let position = crd.pointer(&error.pointer).map(|node| node.start);
        let inner = Error::Decode {
            problem: error.message,
            path: error.pointer,
            position,
        };
        Error::Unmarshal(Box::new(inner))
    })?;
    let mut findings = validate_decoded(&decoded, version);
    findings.extend(validate_schemas(&decoded, version));
    Ok(findings)
}

/// As [`validate`], for a decoded CRD (exact field names, no nulls, see [`olmkit_go::structs::decode`]), and without checks
/// of the schemas, see [`validate_schemas`].
pub fn validate_decoded(crd: &Value, version: ApiVersion) -> Vec<CrdFinding> {
    let crd = Crd::new(crd, version);
    let mut findings = Findings::default();
    let required_name = format!("{}.{}", crd.spec.names.plural, crd.spec.group);
    metadata::check(crd.metadata, &required_name, &mut findings);
    spec::check(&crd, &mut findings);
    check_status(&crd, &mut findings);
    check_approval(&crd, &mut findings);
    if crd.spec.preserve_unknown_fields == Some(true) {
        let problem =
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        findings.invalid(
            "spec.preserveUnknownFields",
            BadValue::word(true).behind_pointer(),
            problem,
        );
    }
    findings.0
}

/// The API server's findings for the schemas of a decoded CRD: structural form, defaults, list types, and CEL rules
/// with their cost. operator-sdk reports none of them.
pub fn validate_schemas(crd: &Value, version: ApiVersion) -> Vec<CrdFinding> {
    validate_schemas_within(crd, version, &mut Work::default())
}

/// As [`validate_schemas`], for one of many CRDs, whose defaults share the budget `work`. When it is exhausted, defaults
/// count as valid for patterns and rules.
pub(crate) fn validate_schemas_within(crd: &Value, version: ApiVersion, work: &mut Work) -> Vec<CrdFinding> {
    let mut findings = Findings::default();
    schema::check(&Crd::new(crd, version), work, &mut findings);
    findings.0
}

fn check_status(crd: &Crd, findings: &mut Findings) {
    spec::names(
        &Names::from_raw(crd.status.get("acceptedNames")),
        "status.acceptedNames",
        findings,
    );
    let mut stored = texts(crd.status, "storedVersions");
    if stored.is_empty() {
        stored.extend(
            crd.spec
                .versions
                .iter()
                .find(|version| version.storage)
                .map(|version| version.name.clone()),
        );
    }
    let field = "status.storedVersions";
    if stored.is_empty() {
        let value = BadValue {
            plain: "[]".to_owned(),
            shown: "[]string(nil)".to_owned(),
        };
        findings.invalid(field, value, "must have at least one stored version");
        return;
    }
    let known: HashSet<&str> = stored.iter().map(String::as_str).collect();
    let there: HashSet<&str> = crd.spec.versions.iter().map(|version| version.name.as_str()).collect();
    let shown = BadValue::texts(&stored);
    for version in crd
        .spec
        .versions
        .iter()
        .filter(|version| version.storage && !known.contains(version.name.as_str()))
    {
        findings.invalid(
            field,
            shown.clone(),
            format!("must have the storage version {}", version.name),
        );
    }
    for (at, name) in stored.iter().enumerate() {
        if !there.contains(name.as_str()) {
            let problem = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions \
                 until a storage migration ensures no data remains persisted in {name} and removes {name} from \
                 status.storedVersions"
            );
            findings.invalid(&format!("{field}[{at}]"), BadValue::text(name), problem);
        }
    }
}

/// CRDs in `k8s.io` and `kubernetes.io` need a pointer to the review that approved them.
fn check_approval(crd: &Crd, findings: &mut Findings) {
    let group = &crd.spec.group;
    let protected = ["k8s.io", "kubernetes.io"].iter().any(|domain| {
        group
            .strip_suffix(domain)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    });
    if !protected {
        return;
    }
    let annotation = crd
        .metadata
        .get("annotations")
        .and_then(|all| all.get(APPROVAL))
        .and_then(Value::as_str);
    let field = format!("metadata.annotations[{APPROVAL}]");
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    let is_url =
        |text: &str| olmkit_go::url::parse(text).is_ok_and(|url| !url.host.is_empty() && !url.scheme.is_empty());
    match annotation.unwrap_or_default() {
        "" => findings.required(
            &field,
            format!("protected groups must have approval annotation \"{APPROVAL}\", {see}"),
        ),
        text if text.starts_with("unapproved") || is_url(text) => {}
        text => {
            let problem = format!(
                "protected groups must have approval annotation \"{APPROVAL}\" with either a URL or a reason starting \
                 with \"unapproved\", {see}"
            );
            findings.invalid(&field, BadValue::text(text), problem);
        }
    }
}

#[cfg(test)]
mod corpus_tests;
