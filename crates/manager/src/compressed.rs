//! JSON that is compressed against other JSON of its kind, which it resembles.
use std::sync::{Arc, OnceLock};

use lz4_flex::block;
use serde::de::DeserializeOwned;
use serde_json::Deserializer;

/// The compression finds no more than this.
const MAX_DICTIONARY: usize = 64 << 10;

/// The text of the first value of a kind.
#[derive(Default)]
pub struct Dictionary(OnceLock<Arc<[u8]>>);

impl Dictionary {
    /// Compresses the JSON of a value, or of several. The first JSON becomes the dictionary.
    pub fn compress(&self, text: &[u8]) -> Compressed {
        let first = || text.iter().copied().take(MAX_DICTIONARY).collect();
        let dictionary = Arc::clone(self.0.get_or_init(first));
        let room = block::compress_prepend_size_with_dict(text, &dictionary);
        Compressed {
            // A copy: what is kept in a part of the room would leave a hole behind it for as long as the value lives.
            bytes: Box::from(room.as_slice()),
            dictionary,
        }
    }
}

/// A compressed value.
#[derive(Clone)]
pub struct Compressed {
    bytes: Box<[u8]>,
    dictionary: Arc<[u8]>,
}

impl Compressed {
    /// The first value. `None` if it is none of the type `T`.
    pub fn read<T: DeserializeOwned>(&self) -> Option<T> {
        T::deserialize(&mut Deserializer::from_slice(&self.text()?)).ok()
    }

    /// The first value and the second.
    pub fn read_both<T: DeserializeOwned, U: DeserializeOwned>(&self) -> Option<(T, U)> {
        let text = self.text()?;
        let mut values = Deserializer::from_slice(&text);
        Some((T::deserialize(&mut values).ok()?, U::deserialize(&mut values).ok()?))
    }

    fn text(&self) -> Option<Vec<u8>> {
        block::decompress_size_prepended_with_dict(&self.bytes, &self.dictionary).ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_of_one_kind_take_little() {
        let dictionary = Dictionary::default();
        let value =
            |name: &str| json!({ "metadata": { "name": name }, "spec": { "text": "of some length ".repeat(9) } });
        for name in ["a", "b"] {
            let text = value(name).to_string();
            let compressed = dictionary.compress(text.as_bytes());
            assert_eq!(compressed.read(), Some(value(name)));
            assert!(compressed.bytes.len() * 4 < text.len(), "{}", compressed.bytes.len());
        }
    }
}
