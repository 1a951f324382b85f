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
pub use finding::{Finding, Severity, counted, json_path};
pub use fold::{fold_repeated, folded};
pub use grouped::Grouped;
pub use json::write_json;
pub use junit::write_junit;
pub use report::{Report, Suppressed, Suppression, Verdict};
pub use rule::{Family, Origin, Proof, Rule, Witness};
pub use sarif::write_sarif;
pub use text::{TextOptions, write_text};

#[cfg(test)]
mod tests;
