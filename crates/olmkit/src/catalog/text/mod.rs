//! From bytes to value trees: the documents of a YAML or JSON stream, quickly.
//!
//! [`block`] reads the block style that tools write, [`scalar`] its scalars; whatever they do not know is read by
//! [`crate::yaml`], which knows all of YAML, so that the quick way may be narrow without being wrong.

pub mod block;
pub mod plain;
pub mod scalar;
pub mod stream;
pub mod value;

pub use stream::{Document, documents};
pub use value::{Html, Numbers, Value};
