//! Compares the hosted pipeline's results for recorded repositories with this crate's.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // a test fails by panicking

mod answers;
mod change;
mod real;
mod synthetic;
