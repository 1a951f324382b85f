//! Converts a derived schema to the structural schema of a CustomResourceDefinition, and checks such schemas.
//!
//! `kube`'s derive uses the `schemars` schema of a Rust type. The API server rejects parts of it or warns about them,
//! and other parts behave unlike Kubernetes APIs (`nullable` on every optional field keeps explicit nulls).
//! [`normalise`] converts the result to the form that `controller-gen` writes for Go types.
//!
//! Form metadata (display names, input widgets) is declared on the same fields with the schema extension
//! [`DESCRIPTOR_EXTENSION`], which [`descriptors`] reads and the normalized CRD omits.

mod combine;
mod defaults;
mod descriptor;
mod keywords;
mod normalise;
mod scalar;
mod structural;
mod variants;

pub use descriptor::{DESCRIPTOR_EXTENSION, Descriptor, Descriptors, descriptors, descriptors_of, display_name};
pub use normalise::{merge_versions, normalise, normalise_with};
pub use structural::{Options, normalise_schema};

/// Why a schema cannot be converted to the form that the API server requires. Every variant contains the dotted path
/// below the schema's root.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A reference that leads nowhere, or back to itself.
    #[error("{path}: cannot inline {reference}: {reason}")]
    Reference {
        /// Path of the reference.
        path: String,
        /// The reference as written.
        reference: String,
        /// The error.
        reason: &'static str,
    },
    /// Two alternatives of an enum give the same property different types. The API server needs one type for a property.
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
        /// Path of the alternatives.
        path: String,
        /// The types found.
        types: String,
    },
    /// A value that is not a schema although a schema is required.
    #[error("{path}: {what} is not a schema object")]
    NotASchema {
        /// The path.
        path: String,
        /// The keyword with the value.
        what: String,
    },
    /// A schema nested deeper than any type a person writes.
    #[error("{path}: more than {limit} levels deep")]
    TooDeep {
        /// The path.
        path: String,
        /// The limit.
        limit: usize,
    },
    /// The CustomResourceDefinition itself lacks something.
    #[error("CustomResourceDefinition {name}: {reason}")]
    Definition {
        /// metadata.name
        name: String,
        /// The reason.
        reason: String,
    },
    /// A value that does not serialise. Cannot happen for the types of k8s-openapi.
    #[error("cannot serialise the CustomResourceDefinition: {0}")]
    Serialise(#[from] serde_json::Error),
}
