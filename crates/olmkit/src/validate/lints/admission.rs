//! CSV-23, POD-5, OBJ-3: objects that the API server rejects. OPM-1: a bundle that no catalog can contain.

use crate::admission::{self, Rejection};
use crate::bundle::Object;
use crate::catalog::render::bundle as render;
use crate::crd::instance::dotted;
use crate::diagnostics::{Origin, Proof, Rule, Severity, Witness, define_rules};
use crate::validate::checked::Checked;
use crate::validate::context::Context;
use crate::validate::object_meta;
use olmkit_go::structs::decode::misfits;

define_rules! {
    CSV_23 = {
        id: "CSV-23",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "A ClusterServiceVersion should fit the schema of OLM's CRD.",
        why: "The API server rejects a ClusterServiceVersion with missing fields, wrong types or values that the schema does not allow. \
              OLM itself writes an empty value for a missing string, number or boolean. Such a finding is an info.",
        bad: "webhookdefinitions:\n- containerPort: 99999",
        good: "webhookdefinitions:\n- containerPort: 9443",
        since: "0.1.0",
        proof: Proof::new(
            Witness::ApiServer,
            "the API server rejects the ClusterServiceVersion",
            "Kubernetes 1.36 with OLM 0.46",
            "crates/cli/tests/cluster/lints/admission.rs: the_api_server_rejects_what_the_lints_report",
        ),
    }
    POD_5 = {
        id: "POD-5",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "A Deployment of a ClusterServiceVersion should be valid.",
        why: "OLM cannot create a Deployment with invalid values or broken references, and the installation fails.",
        bad: "volumeMounts:\n- {name: cert, mountPath: /cert}   # no such volume",
        good: "volumes:\n- name: cert\n  secret: {secretName: cert}",
        since: "0.1.0",
        proof: Proof::new(
            Witness::ApiServer,
            "the API server rejects the Deployment",
            "Kubernetes 1.36",
            "crates/cli/tests/cluster/lints/admission.rs: the_api_server_rejects_what_the_lints_report",
        ),
    }
    OBJ_3 = {
        id: "OBJ-3",
        severity: Severity::Warning,
        origin: Origin::Lint,
        summary: "An object of a built-in kind should be valid, and the metadata of any object.",
        why: "OLM cannot create an object that the API server rejects, and the InstallPlan fails.",
        bad: "kind: ConfigMap\ndata: {replicas: 1}",
        good: "kind: ConfigMap\ndata: {replicas: \"1\"}",
        since: "0.1.0",
        proof: Proof::new(
            Witness::ApiServer,
            "the API server rejects the object",
            "Kubernetes 1.36",
            "crates/cli/tests/cluster/lints/admission.rs: the_api_server_rejects_what_the_lints_report",
        ),
    }
    OPM_1 = {
        id: "OPM-1",
        severity: Severity::Error,
        origin: Origin::Lint,
        summary: "Every bundle must be readable by `catalog render`.",
        why: "`opm render` and `olmkit catalog render` fail, so no catalog can contain the bundle.",
        bad: "metadata:\n  annotations: {certified: true}",
        good: "metadata:\n  annotations: {certified: \"true\"}",
        since: "0.1.0",
        proof: Proof::new(
            Witness::Tools,
            "opm render fails",
            "opm 1.73",
            "crates/cli/tests/cluster/lints/tools.rs: opm_cannot_render_what_the_lint_reports",
        ),
    }
}

pub fn check(context: &Context<'_>) -> Vec<Checked> {
    let mut findings = Vec::new();
    if let Some(csv) = context.bundle.csv() {
        let rejections = admission::check_csv(&csv.value);
        // Empty values are readable.
        if rejections.iter().any(|rejection| !rejection.filled) {
            findings.extend(unreadable(context, csv));
        }
        findings.extend(rejections.iter().filter_map(|rejection| of_csv(csv, rejection)));
    }
    findings.extend(context.bundle.objects.iter().flat_map(of_object));
    findings
}

/// Returns true if SIZE-2 reports it.
fn is_size_of_annotations(rejection: &Rejection) -> bool {
    rejection.pointer == "/metadata/annotations" && rejection.message.starts_with("must not exceed")
}

fn of_csv(object: &Object, rejection: &Rejection) -> Option<Checked> {
    // POD-2 reports it.
    if rejection.message == admission::UNSELECTED || is_size_of_annotations(rejection) {
        return None;
    }
    let place = dotted(&rejection.pointer);
    if rejection.filled {
        let message = format!(
            "OLM's schema requires {place}: OLM writes an empty value, and the API server rejects the \
             ClusterServiceVersion from other clients such as kubectl"
        );
        return Some(finding(&CSV_23, message, object, rejection).severity(Severity::Info));
    }
    let (rule, message) = if rejection.later {
        let of_deployment = rejection.pointer.splitn(7, '/').nth(6).unwrap_or_default();
        let place = dotted(&format!("/{of_deployment}"));
        (
            &POD_5,
            format!("the API server rejects the Deployment: {place}: {}", rejection.message),
        )
    } else {
        (
            &CSV_23,
            format!("the API server rejects {place}: {}", rejection.message),
        )
    };
    Some(finding(rule, message, object, rejection))
}

fn of_object(object: &Object) -> Vec<Checked> {
    let rejections = admission::check_object(&object.value);
    if rejections.is_empty() {
        return Vec::new();
    }
    // OBJ-2 reports these.
    let known = object_meta::check(&object.value);
    let is_new = |rejection: &&Rejection| {
        !is_size_of_annotations(rejection) && !known.iter().any(|fault| rejection.pointer.starts_with(fault.pointer))
    };
    let shown = rejections.iter().filter(is_new).map(|rejection| {
        let place = dotted(&rejection.pointer);
        let separator = if place.is_empty() { "" } else { ": " };
        let message = format!(
            "the API server rejects the {}: {place}{separator}{}",
            object.kind(),
            rejection.message
        );
        finding(&OBJ_3, message, object, rejection)
    });
    shown.collect()
}

fn finding(rule: &'static Rule, message: String, object: &Object, rejection: &Rejection) -> Checked {
    let checked = Checked::new(rule, message).at(object, &rejection.pointer);
    if rejection.message.starts_with("must be a string, is a ") {
        return checked.hint("put the value in quotes");
    }
    checked
}

/// The error of `catalog render`, which decodes more strictly than operator-sdk. A ClusterServiceVersion that fits its schema is
/// readable, so this costs nothing for most bundles.
fn unreadable(context: &Context<'_>, object: &Object) -> Option<Checked> {
    let root = &context.options.directory;
    if root.as_os_str().is_empty() {
        return None;
    }
    let error = render::directory(root, "bundle").err()?.to_string();
    // opm adds the whole document, and a mark in it. The finding has a place instead.
    let error = error.lines().next().unwrap_or_default();
    let error = error.split(" at offset ").next().unwrap_or_default();
    let message = format!("`catalog render` cannot read the bundle: {error}");
    let hint = "fix the type of the value: a string that looks like a number or a boolean needs quotes";
    let misfit = misfits(&object.value, "ClusterServiceVersion", false)
        .into_iter()
        .next();
    let pointer = misfit.map_or_else(String::new, |misfit| misfit.pointer);
    Some(Checked::new(&OPM_1, message).at(object, &pointer).hint(hint))
}
