//! The registry gRPC API that the Operator Lifecycle Manager reads catalogs through.
//!
//! A catalog is turned once into an [`index`]: one file (or, for small catalogs served from a library, one piece of
//! memory) that answers are read from by position. `service` answers the calls, [`server`] listens. [`http`] is the API
//! of the Operator Lifecycle Manager's version 1 over the same index.
//!
//! ```
//! use olmkit::catalog::{Catalog, load};
//! use olmkit_serve::{Server, index};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut catalog = Catalog::default();
//! for blob in load::text(
//!     "schema: olm.package\nname: demo\ndefaultChannel: stable\n---\n\
//!      schema: olm.channel\npackage: demo\nname: stable\nentries: [{name: demo.v1.0.0}]\n---\n\
//!      schema: olm.bundle\npackage: demo\nname: demo.v1.0.0\nimage: example.com/demo:v1.0.0\nproperties:\n\
//!      - {type: olm.package, value: {packageName: demo, version: 1.0.0}}\n",
//! )? {
//!     catalog.push(blob);
//! }
//!
//! let server = Server::bind("127.0.0.1:0".parse()?).await?;
//! let index = index::in_memory(&catalog)?;
//! assert!(index.package("demo")?.is_some());
//! server.current().set(index);
//! println!("serving on {}", server.address());
//! server.run(async {}).await?; // until this future completes
//! # Ok(())
//! # }
//! ```

/// Generated from `proto/registry.proto`.
#[doc(hidden)]
#[rustfmt::skip]
#[allow(missing_docs, clippy::all, clippy::indexing_slicing, clippy::unwrap_used)]
pub mod api;
pub mod assemble;
mod blobs;
mod calls;
mod channel;
mod codec;
mod csv_json;
pub mod current;
pub mod fingerprint;
mod health;
pub mod http;
pub mod index;
pub mod limits;
mod lookup;
mod metered;
pub mod metrics;
pub mod probe;
mod providers;
mod record;
pub mod server;
mod service;
pub mod source;
mod trusted;

pub use current::Current;
pub use index::Index;
pub use limits::Limits;
pub use server::Server;

/// The descriptors of the API, for server reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!("registry.bin");
