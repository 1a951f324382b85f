//! Images and registries: hostile archives and layers, a real registry with faults in front of it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // a test fails by panicking

mod credentials;
mod exhaust;
mod fake;
mod hostile;
mod killed;
mod proxy;
mod quirks;
mod registry;
mod token;
mod unusual;
