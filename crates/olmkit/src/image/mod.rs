//! Images without a daemon: references, layers, building, OCI layouts, registries.
//!
//! An image is built from a [`build::Recipe`] into a [`Layout`] (an OCI layout directory), from where a
//! [`registry::Client`] pushes it; pulled images land in a layout too. Whatever is read is checked against its digest
//! and bounded in size.

pub mod archive;
pub mod build;
pub mod diff;
pub mod digest;
mod error;
pub mod layer;
pub mod layout;
mod reference;
pub mod registry;
pub mod sbom;
pub mod source;
pub mod spec;
pub mod store;
pub mod unpack;

pub use digest::Digest;
pub use error::Error;
pub use layout::Layout;
pub use reference::{InvalidReference, Reference};
pub use source::{Fetched, Location, deliver, fetch};
pub use unpack::unpack;
