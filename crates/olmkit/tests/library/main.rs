//! The library against the recorded answers of the Go tools, and each of its rules.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // a test fails by panicking

mod catalogs;
mod conformance;
mod fixes;
mod olmv1;
mod rules;
mod scorecard;
