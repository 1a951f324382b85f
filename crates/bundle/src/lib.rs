//! Bundles: load from a directory or an image, generate from manifests, write.
//!
//! Generate a bundle from an operator's manifests, and load the result:
//!
//! ```
//! use olmkit_bundle::Object;
//! use olmkit_bundle::generate::{Input, Options, generate};
//!
//! let manifests = "\
//! apiVersion: apps/v1
//! kind: Deployment
//! metadata:
//!   name: memcached-operator
//! spec:
//!   selector:
//!     matchLabels: {app: memcached-operator}
//!   template:
//!     metadata:
//!       labels: {app: memcached-operator}
//!     spec:
//!       containers:
//!         - name: manager
//!           image: example.com/memcached-operator:v0.0.1
//! ";
//! let input = Input::from_reader(manifests.as_bytes())?;
//! let options = Options {
//!     package: "memcached-operator".into(),
//!     version: Some("0.0.1".into()),
//!     ..Options::default()
//! };
//! let generated = generate(input, &options).map_err(|(error, _)| error)?;
//!
//! let reading = generated.reading("memcached-operator")?;
//! assert_eq!(reading.fatal, None);
//! let csv = reading.bundle.csv().map(Object::name);
//! assert_eq!(csv, Some("memcached-operator.v0.0.1"));
//! # Ok::<(), olmkit_bundle::generate::Error>(())
//! ```
//!
//! [`Generated::files`](generate::Generated::files) contains the manifests, [`write::replace`] writes them to a
//! directory.

pub mod generate;
pub mod install;
pub mod kinds;
pub mod load;
pub mod olm_certificates;
pub mod ports;
pub mod unpack;
pub mod write;

pub use load::{Bundle, LoadError, MediaType, Metadata, Object, load};

/// The rules of each file of checks.
#[doc(hidden)]
pub static RULES: &[&[&olmkit_diagnostics::Rule]] = &[
    load::metadata::RULES,
    load::RULES,
    load::media_type::RULES,
    load::manifests::RULES,
    load::manifest::RULES,
];
