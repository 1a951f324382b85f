//! What a rule is.

use super::Severity;

/// Where a rule comes from, and so whose verdict it decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// `operator-sdk bundle validate` always checks it, in this part. It decides the verdict.
    OperatorSdk(&'static str),
    /// An optional validator of operator-sdk checks it. It decides the verdict if the validator is selected.
    OptionalValidator(&'static str),
    /// `opm validate` checks it. It decides the verdict.
    Opm,
    /// A lint: only olmkit has it, and it never changes the verdict.
    Lint,
}

/// One rule. It is a constant beside the check that yields its findings; `rules` collects all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// The id in findings. It never changes and is never used again.
    pub id: &'static str,
    /// The worst severity of its findings.
    pub severity: Severity,
    /// Where it comes from.
    pub origin: Origin,
    /// What it asks for, one sentence.
    pub summary: &'static str,
    /// What goes wrong otherwise.
    pub why: &'static str,
    /// An input that breaks it.
    pub bad: &'static str,
    /// The input put right.
    pub good: &'static str,
    /// The version of olmkit that brought it.
    pub since: &'static str,
}

/// Defines the rules of one file of checks: a static [`Rule`] for each, and `RULES` with all of them for the registry, so
/// that none can be forgotten there.
macro_rules! define_rules {
    ($($name:ident = { $($field:ident: $value:expr),* $(,)? })*) => {
        $(pub(crate) static $name: $crate::diagnostics::Rule = $crate::diagnostics::Rule { $($field: $value),* };)*

        /// The rules of this file.
        pub(crate) static RULES: &[&$crate::diagnostics::Rule] = &[$(&$name),*];
    };
}

pub(crate) use define_rules;
