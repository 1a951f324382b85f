//! Notices about objects that were changed or omitted.

use std::fmt;

use super::Origin;
use olmkit_base::object::UntrustedText;

/// Importance of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Weight {
    /// Something is lost: the operator behaves differently when it is installed through OLM. An error in strict mode.
    Loss,
    /// The default mode keeps something that strict mode repairs.
    Warning,
    /// OLM replaces the object's function.
    Note,
}

/// One thing worth knowing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Notice {
    /// Its importance.
    pub weight: Weight,
    /// Position of the object. The default if there is none.
    pub origin: Origin,
    /// Kind and name.
    pub object: String,
    /// The message.
    pub message: String,
    /// The fix. Empty if none is needed.
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
