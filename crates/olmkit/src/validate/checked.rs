//! One finding together with operator-sdk's message for it.

use crate::bundle::Object;
use crate::diagnostics::{Finding, Rule, Severity, json_path};
use crate::limits;

/// A finding, and operator-sdk's output for it if it has the rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// The finding as olmkit shows it.
    pub finding: Finding,
    /// operator-sdk's message. `None` for a lint.
    pub reference: Option<String>,
    /// True if it is shown only on request: nothing proves the rule.
    pub on_request: bool,
}

/// operator-sdk's subject, printed before the detail of a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// Nothing.
    None,
    /// A value.
    Value(String),
    /// A field with its value.
    FieldValue(String, String),
}

impl Subject {
    /// operator-sdk's output for a finding.
    pub fn text(&self, severity: Severity, detail: &str) -> String {
        let level = match severity {
            Severity::Error => "Error",
            Severity::Warning | Severity::Info => "Warning",
        };
        match self {
            Subject::None => format!("{level}: : {detail}"),
            Subject::Value(value) => format!("{level}: Value {value}: {detail}"),
            Subject::FieldValue(field, value) => format!("{level}: Field {field}, Value {value}: {detail}"),
        }
    }
}

impl Checked {
    /// A finding of a rule that operator-sdk has.
    pub fn shared(rule: &'static Rule, severity: Severity, subject: &Subject, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        let reference = Some(limits::message(subject.text(severity, &detail)));
        Self {
            finding: Finding::new(rule, severity, detail),
            reference,
            on_request: false,
        }
    }

    /// A finding of a lint.
    pub fn new(rule: &'static Rule, message: impl Into<String>) -> Self {
        Self {
            finding: Finding::new(rule, rule.severity, message),
            reference: None,
            on_request: !rule.is_default(),
        }
    }

    /// Takes another severity than the rule's worst.
    #[must_use]
    pub fn severity(mut self, severity: Severity) -> Self {
        self.finding.severity = severity;
        self
    }

    /// Sets the object and the value in it.
    #[must_use]
    pub fn at(mut self, object: &Object, pointer: &str) -> Self {
        let name = if object.name().is_empty() {
            "(no name)"
        } else {
            object.name()
        };
        self.finding = self
            .finding
            .object(format!("{}/{name}", object.kind()))
            .file(&object.path);
        if !pointer.is_empty() {
            self.finding = self.finding.path(json_path(pointer));
        }
        match object.nearest(pointer) {
            (node, true) => self.finding = self.finding.at_node(node),
            (node, false) => self.finding.position = Some(node.start),
        }
        self
    }

    /// Sets the file.
    #[must_use]
    pub fn in_file(mut self, file: &str) -> Self {
        self.finding = self.finding.file(file);
        self
    }

    /// Sets the fix.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.finding = self.finding.hint(hint);
        self
    }
}
