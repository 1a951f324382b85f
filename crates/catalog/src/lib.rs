//! File-based catalogs: read, write, render, check, compose and inspect them.
//!
//! [`model`] represents a catalog, blob by blob. [`load`] reads it, [`write`] and [`order`] write it as `opm render`
//! does. [`render`] makes blobs from bundles.

pub mod accumulate;
#[doc(hidden)]
pub mod blob;
#[doc(hidden)]
pub mod decode;
pub mod difference;
pub mod edit;
pub mod graph;
pub mod head;
pub mod index;
pub mod init;
#[doc(hidden)]
pub mod keys;
pub mod listing;
pub mod load;
pub mod mermaid;
#[doc(hidden)]
pub mod meta;
pub mod mirror;
pub mod model;
pub mod objects;
pub mod order;
pub mod path;
pub mod picture;
pub mod placement;
#[doc(hidden)]
pub mod property;
pub mod render;
pub mod resolver;
pub mod selection;
pub mod source;
pub mod template;
#[doc(hidden)]
pub mod text;
pub mod validate;
#[doc(hidden)]
pub mod walk;
pub mod write;

pub use model::{Blob, Bundle, Catalog, Channel, ChannelEntry, Custom, Deprecation, Package, Property};

/// The rules of each file of checks.
#[doc(hidden)]
pub static RULES: &[&[&olmkit_diagnostics::Rule]] = &[
    validate::RULES,
    validate::model::RULES,
    validate::bundle::RULES,
    validate::deprecation::RULES,
    validate::package::RULES,
    validate::lints::RULES,
    validate::blobs::RULES,
    validate::upgrades::RULES,
];
