//! The registry gRPC API that the Operator Lifecycle Manager reads catalogs through.
//!
//! A catalog is turned once into an [`index`]: one file (or, for small catalogs served from a library, one piece of
//! memory) that answers are read from by position. [`service`] answers the calls, [`server`] listens; [`http`] is the API
//! of the Operator Lifecycle Manager's version 1 over the same index.

#[rustfmt::skip]
#[allow(missing_docs, clippy::all, clippy::indexing_slicing, clippy::unwrap_used)]
pub mod api;
pub mod assemble;
pub mod blobs;
pub mod calls;
pub mod csv_json;
pub mod fingerprint;
pub mod health;
pub mod http;
pub mod index;
pub mod metrics;
pub mod probe;
mod providers;
pub mod record;
pub mod server;
pub mod service;
pub mod source;

pub use index::Index;
pub use server::Server;

/// The descriptors of the API, for server reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!("registry.bin");
