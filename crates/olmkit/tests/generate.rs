//! `olmkit generate bundle`: equal to operator-sdk 1.42.3 on recorded cases, and better where that loses something.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // a test fails by panicking

#[path = "generate/base.rs"]
mod base;
#[path = "support/corpus.rs"]
mod corpus;
#[path = "generate/pinned.rs"]
mod pinned;
#[path = "generate/recorded.rs"]
mod recorded;
#[path = "registry/server.rs"]
#[allow(dead_code)] // shared with the registry's own tests
mod server;
#[path = "generate/strict.rs"]
mod strict;
#[path = "generate/support.rs"]
mod support;
#[path = "generate/terminal.rs"]
mod terminal;
#[path = "generate/unpacked.rs"]
mod unpacked;
