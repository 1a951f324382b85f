//! SC: findings of scorecard's built-in tests, with positions and names, which scorecard's own results lack.

use olmkit_scorecard::TestResult;
use serde_json::Value;

use crate::diagnostics::{Finding, Origin, Severity, define_rules};
use crate::validate::Checked;

define_rules! {
    SC_1 = {
        id: "SC-1",
        severity: Severity::Error,
        origin: Origin::Scorecard("every test"),
        summary: "A bundle must load, wherever its files are.",
        why: "The tests read every directory in the bundle and end without a result.",
        bad: "tests/other.clusterserviceversion.yaml",
        good: "manifests/demo.clusterserviceversion.yaml",
        since: "0.1.0",
    }
    SC_2 = {
        id: "SC-2",
        severity: Severity::Error,
        origin: Origin::Scorecard("every test but olm-crds-have-resources"),
        summary: "The annotation alm-examples must be a JSON list. The spec and status of each object must be maps.",
        why: "The tests take their custom resources from it.",
        bad: "alm-examples: '{}'",
        good: "alm-examples: '[{\"apiVersion\": \"example.com/v1\", \"kind\": \"Widget\", …}]'",
        since: "0.1.0",
    }
    SC_3 = {
        id: "SC-3",
        severity: Severity::Error,
        origin: Origin::Scorecard("basic-check-spec, olm-spec-descriptors"),
        summary: "Each example must have a spec.",
        why: "Users write the desired state of a custom resource in it.",
        bad: "{\"kind\": \"Widget\", \"metadata\": {\"name\": \"w\"}}",
        good: "{\"kind\": \"Widget\", \"metadata\": {\"name\": \"w\"}, \"spec\": {\"size\": 1}}",
        since: "0.1.0",
    }
    SC_4 = {
        id: "SC-4",
        severity: Severity::Error,
        origin: Origin::Scorecard("olm-crds-have-validation"),
        summary: "A CRD's schema must have each field in an example's spec and status.",
        why: "The API server drops fields that the schema does not have.",
        bad: "properties: {spec: {type: object}}",
        good: "properties: {spec: {type: object, properties: {size: {type: integer}}}}",
        since: "0.1.0",
    }
    SC_5 = {
        id: "SC-5",
        severity: Severity::Error,
        origin: Origin::Scorecard("olm-crds-have-resources"),
        summary: "Each owned API must list its resource kinds.",
        why: "Consoles show them below the custom resource.",
        bad: "- name: widgets.example.com\n  kind: Widget",
        good: "- name: widgets.example.com\n  kind: Widget\n  resources:\n  - {kind: Deployment, name: \"\", version: v1}",
        since: "0.1.0",
    }
    SC_6 = {
        id: "SC-6",
        severity: Severity::Error,
        origin: Origin::Scorecard("olm-spec-descriptors, olm-status-descriptors"),
        summary: "An owned API must have the same kind and version as each example.",
        why: "It has descriptors only as such.",
        bad: "{\"apiVersion\": \"v1\", \"kind\": \"Secret\"}",
        good: "{\"apiVersion\": \"example.com/v1\", \"kind\": \"Widget\"}",
        since: "0.1.0",
    }
    SC_7 = {
        id: "SC-7",
        severity: Severity::Error,
        origin: Origin::Scorecard("olm-spec-descriptors"),
        summary: "Each field in an example's spec must have a descriptor whose path is its name.",
        why: "Consoles generate form fields from descriptors.",
        bad: "specDescriptors: []",
        good: "specDescriptors:\n- path: size\n  displayName: Size",
        since: "0.1.0",
    }
    SC_8 = {
        id: "SC-8",
        severity: Severity::Error,
        origin: Origin::Scorecard("olm-status-descriptors"),
        summary: "An API whose example has a status must have descriptors for it.",
        why: "Consoles show the fields that descriptors name.",
        bad: "statusDescriptors: []",
        good: "statusDescriptors:\n- path: ready\n  displayName: Ready",
        since: "0.1.0",
    }
    SC_9 = {
        id: "SC-9",
        severity: Severity::Info,
        origin: Origin::Scorecard("olm-status-descriptors"),
        summary: "An example should have a status.",
        why: "Kubernetes conventions require a status if an object's state can differ from its spec.",
        bad: "{\"kind\": \"Widget\", \"spec\": {}}",
        good: "{\"kind\": \"Widget\", \"spec\": {}, \"status\": {\"ready\": true}}",
        since: "0.1.0",
    }
}

/// The annotation with the examples.
pub(super) const EXAMPLES: &str = "/metadata/annotations/alm-examples";

/// Result of a built-in test.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    /// scorecard's result.
    pub result: TestResult,
    /// The same with places and names.
    pub findings: Vec<Finding>,
}

impl Answer {
    /// Adds a finding.
    pub(super) fn add(&mut self, checked: Checked) {
        self.findings.push(checked.finding);
    }
}

/// JSON pointer to the entry of an owned API.
pub(super) fn owned_pointer(all: &[Value], entry: &Value) -> String {
    let at = all.iter().position(|other| std::ptr::eq(other, entry));
    format!("/spec/customresourcedefinitions/owned/{}", at.unwrap_or_default())
}
