//! From a derived schema to the structural schema a CustomResourceDefinition holds; checks of such schemas.
//!
//! `kube`'s derive prints what `schemars` says about a Rust type. Some of it the API server refuses or warns about, some
//! of it is legal but behaves unlike what users of Kubernetes know (`nullable` on every optional field keeps explicit
//! nulls). [`normalise`] gives the result the form that `controller-gen` writes for Go types.
//!
//! What a form for humans needs beside the schema (display names, input widgets) is said on the same fields with the
//! schema extension [`DESCRIPTOR_EXTENSION`], read by [`descriptors`] and absent from the normalised CRD.

pub mod compatibility;
pub mod instance;
pub mod upgrade;
pub mod validation;

pub(crate) mod cel;
mod combine;
mod defaults;
mod descriptor;
mod keywords;
mod normalise;
mod scalar;
mod schema;
mod variants;

pub(crate) use descriptor::descriptors_of;
pub use descriptor::{DESCRIPTOR_EXTENSION, Descriptor, Descriptors, descriptors, display_name};
pub(crate) use normalise::normalise_with;
pub use normalise::{merge_versions, normalise};
pub use schema::{Options, normalise_schema};

/// Why a schema cannot be given the form the API server demands. Every variant names the place by the dotted path below
/// the schema's root.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A reference that leads nowhere, or back to itself.
    #[error("{path}: cannot inline {reference}: {reason}")]
    Reference {
        /// Where the reference is.
        path: String,
        /// The reference as written.
        reference: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Two alternatives of an enum give the same property different types; the API server needs one type for a property.
    #[error(
        "{path}: property {property:?} has type {first} in one variant and {second} in another; rename one of them, or \
         set the type of the field to a JSON value"
    )]
    PropertyClash {
        /// The object whose variants clash.
        path: String,
        /// The property.
        property: String,
        /// Type in an earlier variant.
        first: String,
        /// Type in a later variant.
        second: String,
    },
    /// Alternatives that have no type in common, for example an untagged enum of a string and an object.
    #[error(
        "{path}: the alternatives have the types {types}; the API server needs one type for each field. Use one of them, \
         or a field of type serde_json::Value"
    )]
    MixedTypes {
        /// Where the alternatives are.
        path: String,
        /// The types found.
        types: String,
    },
    /// Something that is not a schema where a schema is needed.
    #[error("{path}: {what} is not a schema object")]
    NotASchema {
        /// The place.
        path: String,
        /// The keyword that held it.
        what: String,
    },
    /// A schema nested deeper than any type a person writes.
    #[error("{path}: more than {limit} levels deep")]
    TooDeep {
        /// The place.
        path: String,
        /// The limit.
        limit: usize,
    },
    /// The CustomResourceDefinition itself lacks something.
    #[error("CustomResourceDefinition {name}: {reason}")]
    Definition {
        /// metadata.name
        name: String,
        /// What is missing or wrong.
        reason: String,
    },
    /// A value that does not serialise; cannot happen for the types of k8s-openapi.
    #[error("cannot serialise the CustomResourceDefinition: {0}")]
    Serialise(#[from] serde_json::Error),
}
