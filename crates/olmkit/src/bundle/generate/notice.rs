//! What is worth knowing about objects that did not go into the bundle as they were.

use std::fmt;

use super::Origin;

/// How much a notice matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
pub struct Notice {
    /// How much it matters.
    pub weight: Weight,
    /// Where the object stands; the default when it stands nowhere in particular.
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
        write!(out, "{}: {}", self.object, self.message)?;
        if !self.hint.is_empty() {
            write!(out, "\n  {}", self.hint)?;
        }
        Ok(())
    }
}
