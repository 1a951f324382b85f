//! `olmkit bundle validate`: its rules over one small bundle, and what the command prints.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // a test fails by panicking

mod against;
mod changes;
mod command;
mod multiarch;
mod optional_rules;
mod outputs;
mod own_rules;
mod reference_rules;
#[path = "../registry/server.rs"]
#[allow(dead_code)] // the tests of registries need more of it
mod registry_server;
mod repair;
mod schema_rules;
mod sizes;
mod whole;
