//! A finding with the parts of apimachinery's `field.Error`.

use std::fmt;

/// What kind of fault a field has, in apimachinery's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FindingKind {
    /// The field must be set.
    Required,
    /// The value is already used elsewhere.
    Duplicate,
    /// The value is malformed.
    Invalid,
    /// The value is none of a list.
    NotSupported,
    /// The field may not be set.
    Forbidden,
    /// The value has too many bytes.
    TooLong,
    /// The list has too many items.
    TooMany,
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
        }
    }
}

/// One fault of a CRD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrdFinding {
    /// What kind of fault.
    pub kind: FindingKind,
    /// Path of the field in the internal version: `spec.versions[0].name`.
    pub field: String,
    /// The value as Go's `%v` prints it.
    pub value: String,
    /// The whole text of apimachinery's error: `spec.group: Invalid value: "x": should be a domain with at least one dot`.
    pub message: String,
    /// The part of the message after kind and value.
    pub detail: String,
}

impl CrdFinding {
    /// Whether operator-sdk shows the finding. It drops all that concern schemas and status.
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
