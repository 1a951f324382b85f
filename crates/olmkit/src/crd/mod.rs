//! CustomResourceDefinitions: their structural schemas, the API server's checks, and the compatibility of versions.
//!
//! [`normalise`] and its neighbours are those of [`olmkit_project::schema`], which a Rust operator uses without the rest of this
//! crate.

pub mod compatibility;
pub mod instance;
pub mod upgrade;
pub mod validation;

pub(crate) mod cel;

pub use olmkit_project::schema::*;
