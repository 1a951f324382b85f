//! Findings: what is wrong, where, why it matters, and what to do. Every check of olmkit ends in a [`Finding`], and
//! every output format is a rendering of a [`Report`].

mod annotations;
mod finding;
mod json;
mod report;
mod sarif;
mod text;

pub use annotations::write_github;
pub use finding::{Finding, Severity};
pub use json::write_json;
pub use report::Report;
pub use sarif::{RuleDescription, write_sarif};
pub use text::{TextOptions, write_text};

#[cfg(test)]
mod tests;
