//! What olmkit makes, against a real API server. Needs `make tools`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // a test fails by panicking

mod definitions;
mod rows;
mod server;
mod types;
mod unpacked;
