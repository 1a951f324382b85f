//! Findings: what is wrong, where, why it matters, and what to do. Every check of olmkit ends in a [`Finding`], and
//! every output format is a rendering of a [`Report`].

mod finding;
mod report;
mod text;

pub use finding::{Finding, Severity};
pub use report::Report;
pub use text::{TextOptions, write_text};
