//! From bytes to value trees: the documents of a YAML or JSON stream, quickly.
//!
//! [`block`] takes what the quick reader of [`crate::yaml`] finds; whatever that one does not know is read by the full
//! reader.

pub mod block;
mod json;
pub mod stream;
pub mod value;

pub use olmkit_go::json::Html;
pub use stream::{Document, documents};
pub use value::{Numbers, Value};
