//! placeholder
use olmkit::diagnostics::Rule;
pub(crate) static RULES: &[&Rule] = &[];
