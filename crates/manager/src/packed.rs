//! Values that take little memory until they are read.
//!
//! The objects that an operator manages resemble each other: names, UIDs and a few fields differ. A [`Packed`] value is its
//! JSON, compressed against a [sample](Sample::SAMPLE) of its kind, so that mostly the differences are kept. Each read parses the value
//! again, which takes little time compared to a request to the API server.
//!
//! ```
//! use kube_manager::{ObjectKey, cache::Cache, packed::{Packed, Sample}};
//!
//! #[derive(serde::Serialize, serde::Deserialize)]
//! struct Ports {
//!     ports: Vec<u16>,
//! }
//! impl Sample for Ports {
//!     const SAMPLE: &'static str = r#"{"ports":[8080,8081]}"#;
//! }
//! let cache: Cache<Packed<Ports>> = Cache::default();
//! assert!(cache.unpack(&ObjectKey::new("shop", "web")).is_none());
//! assert_eq!(Packed::new(&Ports { ports: vec![80] }).unpack().unwrap().ports, [80]);
//! ```
use std::{fmt, marker::PhantomData};

use lz4_flex::block;
use serde::{Serialize, de::DeserializeOwned};

use crate::{ObjectKey, cache::Cache};

/// A value that can be [`Packed`]: it reads from JSON what it writes.
pub trait Sample: Serialize + DeserializeOwned {
    /// JSON that most values contain, at most 64 KiB of it. The better it matches, the smaller are the packed values.
    /// Nothing else depends on it.
    const SAMPLE: &'static str;
}

/// A `T` that takes little memory: see the [module](self).
pub struct Packed<T> {
    bytes: Box<[u8]>,
    value: PhantomData<fn() -> T>,
}

impl<T: Sample> Packed<T> {
    /// Packs `value`.
    pub fn new(value: &T) -> Self {
        let text = serde_json::to_vec(value).unwrap_or_default();
        let room = block::compress_prepend_size_with_dict(&text, T::SAMPLE.as_bytes());
        Self {
            // A copy: what is kept in a part of the room would leave a hole behind it for as long as the value lives.
            bytes: Box::from(room.as_slice()),
            value: PhantomData,
        }
    }

    /// The value. `None` if `T` does not read what it writes.
    pub fn unpack(&self) -> Option<T> {
        let text = block::decompress_size_prepended_with_dict(&self.bytes, T::SAMPLE.as_bytes()).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Its size in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }
}

impl<T> Clone for Packed<T> {
    fn clone(&self) -> Self {
        Self {
            bytes: self.bytes.clone(),
            value: PhantomData,
        }
    }
}

/// Equal values are packed alike.
impl<T> PartialEq for Packed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl<T: Sample + fmt::Debug> fmt::Debug for Packed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Packed").field(&self.unpack()).finish()
    }
}

impl<T: Sample> Cache<Packed<T>> {
    /// The object `key`, if the cache has it.
    pub fn unpack(&self, key: &ObjectKey) -> Option<T> {
        self.get(key)?.unpack()
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::*;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Object(Value);

    const OBJECT: &str = r#"{"metadata":{"labels":{"app":"shop"},"name":"shop","namespace":"default"},"spec":{"replicas":3,"template":{"spec":{"containers":[{"image":"registry.example.com/shop/server:1","name":"server"}]}}}}"#;

    impl Sample for Object {
        const SAMPLE: &'static str = OBJECT;
    }

    fn object(name: &str) -> Object {
        let mut value: Value = serde_json::from_str(OBJECT).unwrap();
        value["metadata"]["name"] = json!(name);
        Object(value)
    }

    #[test]
    fn packed_values_are_unpacked() {
        for object in [object("other"), Object(json!({})), Object(json!("x".repeat(100_000)))] {
            assert_eq!(Packed::new(&object).unpack(), Some(object));
        }
    }

    #[test]
    fn values_of_the_dictionary_use_no_space() {
        let (one, other) = (Packed::new(&object("one")), Packed::new(&object("another")));
        assert!(one.size() < 40, "{} of {} bytes", one.size(), OBJECT.len());
        assert_ne!(one, other);
        assert_eq!(one, Packed::new(&object("one")));
    }

    /// An object whose reading fails counts as one that is not there.
    #[test]
    fn a_value_that_does_not_read_what_it_writes_is_none() {
        #[derive(Debug, Serialize, Deserialize)]
        struct Lopsided {
            #[serde(rename(serialize = "written"))]
            read: u8,
        }
        impl Sample for Lopsided {
            const SAMPLE: &'static str = "";
        }
        let packed = Packed::new(&Lopsided { read: 1 });
        assert!(packed.unpack().is_none());
        assert_eq!(format!("{packed:?}"), "Packed(None)");
    }
}
