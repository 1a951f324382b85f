//! Path of a schema. Nearly all schemas are valid, so a path is formatted only for a finding.

use std::fmt;

/// The path of a schema in a CRD: `spec.versions[0].schema.openAPIV3Schema.properties[spec]`.
#[derive(Debug, Clone, Copy)]
pub(super) enum Path<'p> {
    /// The schema of a version.
    Root(&'p str),
    /// The schema in a keyword.
    Keyword(&'p Path<'p>, &'static str),
    /// One of the schemas that a keyword lists.
    Alternative(&'p Path<'p>, &'static str, usize),
    /// The schema of a field.
    Property(&'p Path<'p>, &'p str),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root(path) => f.write_str(path),
            Self::Keyword(above, name) => write!(f, "{above}.{name}"),
            Self::Alternative(above, name, at) => write!(f, "{above}.{name}[{at}]"),
            Self::Property(above, name) => write!(f, "{above}.properties[{name}]"),
        }
    }
}
