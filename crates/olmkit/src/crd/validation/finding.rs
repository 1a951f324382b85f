//! A finding with the parts of apimachinery's `field.Error`.

use std::fmt;

/// Error type of a field, in apimachinery's terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FindingKind {
    /// The field must be set.
    Required,
    /// The value is already used elsewhere.
    Duplicate,
    /// The value is malformed.
    Invalid,
    /// The value is not one of the supported values.
    NotSupported,
    /// The field must not be set.
    Forbidden,
    /// The value has too many bytes.
    TooLong,
    /// The list has too many items.
    TooMany,
    /// The API server fails on the value.
    Internal,
}

impl FindingKind {
    /// `Required value`, `Invalid value`, …
    pub fn as_str(self) -> &'static str {
        match self {
            FindingKind::Required => "Required value",
            FindingKind::Duplicate => "Duplicate value",
            FindingKind::Invalid => "Invalid value",
            FindingKind::NotSupported => "Unsupported value",
            FindingKind::Forbidden => "Forbidden",
            FindingKind::TooLong => "Too long",
            FindingKind::TooMany => "Too many",
            FindingKind::Internal => "Internal error",
        }
    }
}

/// One fault of a CRD.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CrdFinding {
    /// Error type.
    pub kind: FindingKind,
    /// Path of the field in the internal version: `spec.versions[0].name`.
    pub field: String,
    /// The value as Go's `%v` prints it.
    pub value: String,
    /// apimachinery's complete error message: `spec.group: Invalid value: "x": should be a domain with at least one
    /// dot`.
    pub message: String,
    /// The part of the message after kind and value.
    pub detail: String,
}

impl CrdFinding {
    /// Returns true if operator-sdk shows the finding. It drops all that concern schemas and status.
    pub fn kept_by_operator_sdk(&self) -> bool {
        !self.field.contains("openAPIV3Schema") && !self.field.contains("status")
    }
}

impl fmt::Display for CrdFinding {
    /// As operator-sdk prints it: `Field spec.group, Value x: spec.group: Invalid value: …`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Field {}, Value {}: {}", self.field, self.value, self.message)
    }
}

/// A value with both spellings that apimachinery uses: `%v` for operator-sdk's prefix, `%#v` or `%q` inside the message.
#[derive(Clone)]
pub(super) struct BadValue {
    /// As `%v` prints it.
    pub(super) plain: String,
    /// As the message shows it.
    pub(super) shown: String,
}

impl BadValue {
    /// A string.
    pub(super) fn text(text: &str) -> Self {
        Self {
            plain: text.to_owned(),
            shown: olmkit_go::strconv::quote(text),
        }
    }

    /// A number or a boolean.
    pub(super) fn word(word: impl fmt::Display) -> Self {
        let word = word.to_string();
        Self {
            plain: word.clone(),
            shown: word,
        }
    }

    /// A value that is a pointer: `%v` prints the address, which is different in every run.
    pub(super) fn behind_pointer(self) -> Self {
        Self {
            plain: POINTER.to_owned(),
            ..self
        }
    }

    /// A list of strings.
    pub(super) fn texts(texts: &[String]) -> Self {
        let quoted: Vec<String> = texts.iter().map(|text| olmkit_go::strconv::quote(text)).collect();
        Self {
            plain: format!("[{}]", texts.join(" ")),
            shown: format!("[]string{{{}}}", quoted.join(", ")),
        }
    }
}

/// Replaces pointer addresses in Go's output.
pub(super) const POINTER: &str = "0x0";

/// Maximum bytes of all findings of a CRD: each has its path, whose keys may be of any length.
const MOST_BYTES: usize = 16 << 20;

/// Collects findings. Those after [`MOST_BYTES`] are dropped, except for the first.
#[derive(Debug, Default)]
pub(super) struct Findings(pub(super) Vec<CrdFinding>, usize);

impl Findings {
    /// The value of a field is malformed.
    pub(super) fn invalid(&mut self, field: &str, value: BadValue, detail: impl Into<String>) {
        self.add(FindingKind::Invalid, field, value, detail.into());
    }

    /// The value of a field is not one of the supported values.
    pub(super) fn not_supported(&mut self, field: &str, value: &str, supported: &[&str]) {
        let supported: Vec<String> = supported.iter().map(|text| olmkit_go::strconv::quote(text)).collect();
        let detail = format!("supported values: {}", supported.join(", "));
        self.add(FindingKind::NotSupported, field, BadValue::text(value), detail);
    }

    /// The value of a field is duplicated.
    pub(super) fn duplicate(&mut self, field: &str, value: &str) {
        self.add(FindingKind::Duplicate, field, BadValue::text(value), String::new());
    }

    /// A list has too many items.
    pub(super) fn too_many(&mut self, field: &str, count: usize, limit: usize) {
        self.add(
            FindingKind::TooMany,
            field,
            BadValue::word(count),
            format!("must have at most {limit} items"),
        );
    }

    /// A field must be set.
    pub(super) fn required(&mut self, field: &str, detail: impl Into<String>) {
        self.bare(FindingKind::Required, field, String::new(), detail.into());
    }

    /// A field must not be set.
    pub(super) fn forbidden(&mut self, field: &str, detail: impl Into<String>) {
        self.bare(FindingKind::Forbidden, field, String::new(), detail.into());
    }

    /// The API server fails on a field.
    pub(super) fn internal(&mut self, field: &str, detail: impl Into<String>) {
        self.bare(FindingKind::Internal, field, String::new(), detail.into());
    }

    /// A value has too many bytes.
    pub(super) fn too_long(&mut self, field: &str, limit: usize) {
        let detail = format!("may not be more than {limit} bytes");
        self.bare(FindingKind::TooLong, field, "<value omitted>".to_owned(), detail);
    }

    /// Returns true if a finding at a field is dropped.
    fn is_full(&self, field: &str) -> bool {
        !self.0.is_empty() && self.1.saturating_add(field.len()) > MOST_BYTES
    }

    fn push(&mut self, finding: CrdFinding) {
        let texts = [&finding.field, &finding.value, &finding.message, &finding.detail];
        self.1 = texts.iter().fold(self.1, |sum, text| sum.saturating_add(text.len()));
        self.0.push(finding);
    }

    fn add(&mut self, kind: FindingKind, field: &str, value: BadValue, detail: String) {
        if self.is_full(field) {
            return;
        }
        let message = format!("{field}: {}: {}{}", kind.as_str(), value.shown, after_colon(&detail));
        self.push(CrdFinding {
            kind,
            field: field.to_owned(),
            value: value.plain,
            message,
            detail,
        });
    }

    fn bare(&mut self, kind: FindingKind, field: &str, value: String, detail: String) {
        if self.is_full(field) {
            return;
        }
        let message = format!("{field}: {}{}", kind.as_str(), after_colon(&detail));
        self.push(CrdFinding {
            kind,
            field: field.to_owned(),
            value,
            message,
            detail,
        });
    }
}

fn after_colon(detail: &str) -> String {
    if detail.is_empty() {
        String::new()
    } else {
        format!(": {detail}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_bounded_and_the_first_stays() {
        let field = "x".repeat(1 << 20);
        let mut findings = Findings::default();
        for _ in 0..10_000 {
            findings.required(&field, "must be set");
            findings.duplicate(&field, "a");
        }
        assert!((1..20).contains(&findings.0.len()), "{}", findings.0.len());
        let mut findings = Findings::default();
        findings.required(&"x".repeat(MOST_BYTES), "must be set");
        assert_eq!(findings.0.len(), 1);
    }
}
