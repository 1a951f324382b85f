//! `olmkit generate bundle`: equal to operator-sdk 1.42.3 on recorded cases, and better where that loses something.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // a test fails by panicking

#[path = "generate/recorded.rs"]
mod recorded;
#[path = "generate/strict.rs"]
mod strict;
#[path = "generate/support.rs"]
mod support;
#[path = "generate/unpacked.rs"]
mod unpacked;
