//! Images without a daemon: references, layers, building, OCI layouts, registries.
//!
//! An image is built from a [`build::Recipe`] into a [`Layout`] (an OCI layout directory), from where a
//! [`registry::Client`] pushes it. Pulled images land in a layout too. Whatever is read is checked against its digest
//! and bounded in size.
//!
//! ```
//! use olmkit_oci::build::Recipe;
//! use olmkit_oci::layer::{Content, LayerBuilder};
//! use olmkit_oci::spec::Platform;
//! use olmkit_oci::Layout;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let directory = directory.path();
//! let platform: Platform = "linux/amd64".parse()?;
//! let mut layer = LayerBuilder::new();
//! layer.file("/etc/greeting", Content::Bytes(b"hello".to_vec()), false)?;
//! let mut recipe = Recipe::new(platform.clone(), 0);
//! recipe.layers.push(("add a greeting".to_owned(), layer));
//!
//! let layout = Layout::create(&directory.join("layout"))?;
//! let image = recipe.build(&layout)?;
//! layout.set("example.com/greeting:v1", &image)?;
//! assert_eq!(layout.find(Some("example.com/greeting:v1"))?.digest, image.digest);
//! assert_eq!(layout.image(&image, &platform)?.manifest.layers.len(), 1);
//! # Ok(())
//! # }
//! ```

pub mod archive;
pub mod build;
mod compression;
pub mod diff;
mod digest;
mod error;
mod json;
pub mod layer;
pub mod layout;
pub mod limits;
mod read;
pub mod registry;
pub mod sbom;
pub mod source;
mod space;
pub mod spec;
pub mod store;
mod tarball;
pub mod unpack;

pub use digest::{Digest, sha256};
pub use error::Error;
pub use layout::Layout;
pub use olmkit::object::{InvalidReference, Reference};
pub use source::{Fetched, Location, deliver, fetch};
pub use unpack::unpack;
