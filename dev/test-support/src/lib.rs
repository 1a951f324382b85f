//! Shared code of several crates' tests: the recordings of the Go tools, a demo bundle, a registry, child processes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // a test fails by panicking

mod corpus;
pub mod demo_bundle;
pub mod files;
pub mod hostile;
pub mod hostile_repository;
pub mod killed;
pub mod process;
pub mod registry;
pub mod steps;

use std::path::PathBuf;

pub use corpus::corpus;

/// A path inside the repository.
pub fn repository(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path)
}
