//! Findings: what is wrong, where, why it matters, and what to do. Every check of olmkit ends in a [`Finding`], and
//! every output format is a rendering of a [`Report`].

mod annotations;
mod excerpt;
mod finding;
mod json;
mod report;
mod rule;
mod sarif;
mod text;

pub use annotations::write_github;
pub(crate) use finding::json_path;
pub use finding::{Finding, Severity};
pub use json::write_json;
pub use report::Report;
pub(crate) use rule::define_rules;
pub use rule::{Origin, Proof, Rule, Witness};
pub use sarif::write_sarif;
pub use text::{TextOptions, write_text};

#[cfg(test)]
mod tests;
