//! Packages Kubernetes operators for the Operator Lifecycle Manager (OLM): bundles and catalogs, their rules, and the
//! sources that package a Rust operator. Pure: no network, no cluster, no asynchronous runtime.
//!
//! Images are in `olmkit-oci`, the catalog server in `olmkit-serve`, the cluster commands in `olmkit-cluster`, the
//! command line in `olmkit-cli`. `docs/architecture.md` lists the allowed dependencies between modules.
//!
//! Load a bundle, validate it and print its findings. [`bundle::load::Tree::from_dir`] reads a directory instead:
//!
//! ```
//! use olmkit::bundle::load::{Tree, read};
//! use olmkit::validate::{Options, validate};
//!
//! let annotations = "\
//! annotations:
//!   operators.operatorframework.io.bundle.mediatype.v1: registry+v1
//!   operators.operatorframework.io.bundle.manifests.v1: manifests/
//!   operators.operatorframework.io.bundle.metadata.v1: metadata/
//!   operators.operatorframework.io.bundle.package.v1: memcached-operator
//!   operators.operatorframework.io.bundle.channels.v1: alpha
//! ";
//! let csv = "\
//! apiVersion: operators.coreos.com/v1alpha1
//! kind: ClusterServiceVersion
//! metadata:
//!   name: memcached-operator.v0.0.1
//! spec:
//!   version: 0.0.1
//! ";
//! let tree = Tree::from_files([
//!     ("metadata/annotations.yaml", annotations.into()),
//!     ("manifests/memcached-operator.clusterserviceversion.yaml", csv.into()),
//! ]);
//! let outcome = validate(&read(tree, "bundle"), &Options::default());
//! assert!(!outcome.passed());
//! for finding in outcome.findings() {
//!     println!("{}[{}]: {}", finding.severity, finding.rule, finding.message);
//! }
//! // error[CSV-12]: install modes not found
//! assert!(outcome.findings().any(|finding| finding.rule == "CSV-12"));
//! ```
//!
//! Read a catalog and inspect a channel. [`catalog::load::directory`] reads a directory instead:
//!
//! ```
//! use olmkit::catalog::{Catalog, load};
//!
//! let text = "\
//! schema: olm.package
//! name: memcached-operator
//! defaultChannel: alpha
//! ---
//! schema: olm.channel
//! package: memcached-operator
//! name: alpha
//! entries:
//!   - name: memcached-operator.v0.0.1
//!   - name: memcached-operator.v0.0.2
//!     replaces: memcached-operator.v0.0.1
//! ";
//! let catalog: Catalog = load::text(text)?.into_iter().collect();
//! let alpha = catalog.channels.iter().find(|channel| channel.name == "alpha").ok_or("no channel alpha")?;
//! let head = alpha.entries().last().ok_or("channel alpha is empty")?;
//! assert_eq!((head.name.as_str(), head.replaces.as_str()), ("memcached-operator.v0.0.2", "memcached-operator.v0.0.1"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`bundle`] shows how a bundle is generated, [`project`] how `config/` is rendered from the types of a Rust operator.

pub mod admission;
pub mod crd;
pub mod fix;
pub mod policy;
pub mod rules;
pub mod scorecard;
pub mod types;
pub mod validate;

pub use olmkit_base::{files, git, limits, object, process, temporary};
pub use olmkit_bundle as bundle;
pub use olmkit_catalog as catalog;
pub use olmkit_diagnostics as diagnostics;
pub use olmkit_go as go;
pub use olmkit_project as project;
pub use olmkit_project::rbac;
pub use olmkit_v1 as olmv1;
pub use olmkit_yaml as yaml;
