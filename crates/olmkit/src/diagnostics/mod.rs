//! Findings: the error, its position, the reason and the fix. Every check of olmkit returns a [`Finding`], and every
//! output format renders a [`Report`].

mod annotations;
mod concise;
mod excerpt;
mod finding;
mod fold;
mod grouped;
mod json;
mod junit;
mod report;
mod rule;
mod sarif;
mod text;

pub use annotations::write_github;
pub use concise::write_concise;
pub(crate) use finding::json_path;
pub use finding::{Finding, Severity, counted};
pub use fold::fold_repeated;
pub(crate) use fold::folded;
pub use grouped::Grouped;
pub use json::write_json;
pub use junit::write_junit;
pub use report::{Report, Suppressed, Suppression, Verdict};
pub(crate) use rule::define_rules;
pub use rule::{Family, Origin, Proof, Rule, Witness};
pub use sarif::write_sarif;
pub use text::{TextOptions, write_text};

#[cfg(test)]
mod tests;
