//! FILE-3: unknown fields.

use std::collections::BTreeSet;

use crate::bundle::Object;
use crate::diagnostics::{Origin, Proof, Severity, Witness, define_rules};
use crate::types::unknown::{Case, unknown_fields};
use crate::validate::checked::Checked;
use crate::validate::context::Context;

define_rules! {
    FILE_3 = {
        id: "FILE-3",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "The ClusterServiceVersion and CRDs should not have unknown fields. The API server silently drops them.",
        why: "A misspelled field has no effect.",
        bad: "containers:\n- name: manager\n  imagePullPolice: Always",
        good: "containers:\n- name: manager\n  imagePullPolicy: Always",
        since: "0.1.0",
        proof: Proof::new(
            Witness::ApiServer,
            "the API server drops the field",
            "Kubernetes 1.36, since 1.16",
            "crates/cli/tests/cluster/lints/server.rs: the_api_server_does_what_rules_say",
        ),
    }
}

/// At most this many different fields are shown of one object. One wrong indentation may cause dozens.
const SHOWN: usize = 10;

pub fn check(context: &Context<'_>) -> Vec<Checked> {
    context.bundle.objects.iter().flat_map(object).collect()
}

fn object(object: &Object) -> Vec<Checked> {
    let (key, case) = match (object.kind(), object.version()) {
        ("ClusterServiceVersion", _) => ("ClusterServiceVersion", Case::Ignored),
        ("CustomResourceDefinition", "v1") => ("v1.CustomResourceDefinition", Case::Exact),
        ("CustomResourceDefinition", "v1beta1") => ("v1beta1.CustomResourceDefinition", Case::Exact),
        _ => return Vec::new(),
    };
    let mut unknown = unknown_fields(&object.value, key, case);
    // Schema extensions are for other programs.
    unknown.retain(|field| !field.name.starts_with("x-"));
    let mut names = BTreeSet::new();
    let mut rest = Vec::new();
    let mut findings = Vec::new();
    for field in &unknown {
        let kind = field.of.rsplit('.').next().unwrap_or(field.of);
        let name = (kind, field.name.as_str());
        if !names.contains(&name) && names.len() >= SHOWN {
            rest.push((name, field));
            continue;
        }
        names.insert(name);
        let message = format!("{kind} has no field {:?}; it is silently dropped", field.name);
        let hint = match field.meant {
            Some(meant) => format!("did you mean {meant:?}? Otherwise check the indentation or remove it"),
            None => "check the indentation or remove it".to_string(),
        };
        findings.push(Checked::new(&FILE_3, message).at(object, &field.pointer).hint(hint));
    }
    if let Some(((kind, name), first)) = rest.first() {
        let message = match rest.len() {
            1 => format!("{kind} has no field {name:?}; it is silently dropped"),
            all => format!("{all} more unknown fields are silently dropped; the first is {name:?} of {kind}"),
        };
        findings.push(Checked::new(&FILE_3, message).at(object, &first.pointer));
    }
    findings
}
