//! The `olmkit` command as users type it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // a test fails by panicking

mod bundle_validate;
mod catalog;
mod documentation;
mod drop_in;
mod generate;
mod help;
mod hostile;
mod image;
mod interrupted;
mod olm_versions;
mod output;
mod repo;
mod repo_publish;
mod repo_suites;
mod scaffold;
mod scorecard;
mod signals;
mod traps;
mod unwritable;
mod workflows;
