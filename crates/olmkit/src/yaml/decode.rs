//! From the tree to typed values.

use serde::de::DeserializeOwned;

use super::{Error, Node, parse};

/// Reads a document into a typed value, as `sigs.k8s.io/yaml`'s `Unmarshal`.
///
/// # Errors
///
/// [`Error::Convert`] when the document cannot be read, [`Error::Unmarshal`] when it does not fit the type.
pub fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    let node = parse(bytes).map_err(|error| Error::Convert(Box::new(error)))?;
    decode(&node)
}

/// Decodes a tree into a typed value.
///
/// # Errors
///
/// [`Error::Convert`] for values that JSON does not have, [`Error::Unmarshal`] when the tree does not fit the type.
pub fn decode<T: DeserializeOwned>(node: &Node) -> Result<T, Error> {
    let value = node.to_json().map_err(|error| Error::Convert(Box::new(error)))?;
    serde_json::from_value(value).map_err(|error| {
        let problem = format!("json: {error}");
        let inner = Error::Decode {
            problem,
            path: String::new(),
            position: Some(node.start),
        };
        Error::Unmarshal(Box::new(inner))
    })
}
