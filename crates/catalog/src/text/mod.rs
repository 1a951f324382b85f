//! From bytes to value trees: the documents of a YAML or JSON stream, quickly.
//!
//! [`block`] uses the quick reader of [`olmkit_yaml`]. The full reader reads everything that it does not support.

pub mod block;
mod json;
pub mod stream;
pub mod value;

pub use olmkit_go::json::Html;
pub use stream::{Document, documents};
pub use value::{Numbers, Value};
