//! YAML as the Go tools of the Operator Framework read and write it.
//!
//! This module reads every manifest. The reader keeps positions and applies the YAML 1.1 rules of go-yaml v2,
//! the library under `sigs.k8s.io/yaml`: `on` and `y` are booleans, `0644` is octal, `1_000` is a number. The writer
//! gives the very bytes of `sigs.k8s.io/yaml`'s `Marshal`. Both facts matter for the same reason: what we accept, OLM
//! must accept, and what we write, every Go program must read back as the same value.
//!
//! ```
//! let node = olmkit_yaml::parse(b"spec:\n  replicas: 3\n  paused: off\n")?;
//! let paused = node.pointer("/spec/paused").ok_or("absent")?;
//! assert_eq!(paused.as_bool(), Some(false));
//! assert_eq!((paused.start.line, paused.start.column), (3, 11));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod block;
mod compose;
mod decode;
mod documents;
mod emitter;
mod error;
mod events;
mod input;
mod json;
mod json_text;
mod key_order;
mod mapping;
mod node;
mod number;
pub mod resolve;
mod scalar_style;
mod tags;
mod timestamp;
mod writer;

pub use compose::{Document, parse, parse_document};
pub use decode::{decode, from_slice};
pub use documents::{Documents, documents, documents_with_lookahead};
pub use error::Error;
pub use events::{Event, EventKind, events};
pub use mapping::Duplicate;
pub use node::{Node, Position, Style, Value};
pub use writer::{json_to_yaml, to_string, value_to_string};

/// Deepest nesting of sequences and mappings that the reader and the writer accept. Go's limit is 10000. Nothing real
/// comes near 100, and this one lets every walk over a tree be recursive without a care for the stack.
pub const MAX_DEPTH: usize = 500;

/// Largest single document in bytes. OLM cannot even store a manifest over about 1 MiB.
pub const MAX_DOCUMENT_BYTES: usize = 32 << 20;

/// Most nodes one document may have once its aliases are expanded.
pub const MAX_NODES: usize = 1_000_000;

#[cfg(test)]
mod corpus_tests;

#[cfg(test)]
mod tests;
