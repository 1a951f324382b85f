//! Bundles: load from a directory or an image, generate from manifests, write.

pub mod generate;
pub mod load;
pub mod unpack;
pub mod write;

pub use load::{Bundle, LoadError, MediaType, Metadata, Object, load};
