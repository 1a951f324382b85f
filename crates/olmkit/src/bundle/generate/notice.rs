//! What is worth knowing about objects that did not go into the bundle as they were.

use std::fmt;

use super::Origin;
use crate::object::UntrustedText;

/// How much a notice matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Weight {
    /// Something is lost: the operator behaves differently when it is installed through OLM. An error in strict mode.
    Loss,
    /// The default mode keeps something that strict mode repairs.
    Warning,
    /// OLM takes care of what the object did.
    Note,
}

/// One thing worth knowing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Notice {
    /// How much it matters.
    pub weight: Weight,
    /// Where the object is; the default when it has no particular place.
    pub origin: Origin,
    /// Kind and name.
    pub object: String,
    /// What happened.
    pub message: String,
    /// What to do; empty when there is nothing to do.
    pub hint: String,
}

impl fmt::Display for Notice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let weight = match self.weight {
            Weight::Loss => "lost",
            Weight::Warning => "warning",
            Weight::Note => "note",
        };
        write!(out, "{weight}: ")?;
        if self.origin != Origin::default() {
            write!(out, "{}: ", self.origin)?;
        }
        let (object, message) = (UntrustedText::new(&self.object), UntrustedText::new(&self.message));
        write!(out, "{object}: {message}")?;
        if !self.hint.is_empty() {
            write!(out, "\n  {}", self.hint)?;
        }
        Ok(())
    }
}
