//! Bundles: load from a directory or an image, generate from manifests, write.

pub mod load;

pub use load::{Bundle, LoadError, MediaType, Metadata, Object, load};
