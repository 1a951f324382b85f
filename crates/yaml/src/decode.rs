//! From the tree to typed values, by the rules of Go's `sigs.k8s.io/yaml`: field names match in any case (the exact one
//! first), numbers and booleans become strings if the type requires a string, null counts as absent, bytes are base64.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::{BorrowedStrDeserializer, CowStrDeserializer, MapAccessDeserializer};
use serde::de::{self, DeserializeOwned, DeserializeSeed, IntoDeserializer, Visitor};

use super::{Error, Node, Value, number, parse};

/// Reads a document into a typed value, as `sigs.k8s.io/yaml`'s `Unmarshal`.
///
/// # Errors
///
/// [`Error::Convert`] when the document cannot be read, [`Error::Unmarshal`] when it does not fit the type.
///
/// ```
/// #[derive(serde::Deserialize)]
/// #[serde(rename_all = "camelCase")]
/// struct Annotation { packageName: String }
///
/// // The name matches in any case, and a number becomes text.
/// let annotation: Annotation = olmkit_yaml::from_slice(b"PACKAGENAME: 1.20\n")?;
/// assert_eq!(annotation.packageName, "1.2");
/// # Ok::<(), olmkit_yaml::Error>(())
/// ```
pub fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    let node = parse(bytes).map_err(|error| Error::Convert(Box::new(error)))?;
    decode(&node)
}

/// Decodes a tree into a typed value.
///
/// # Errors
///
/// [`Error::Convert`] for values that JSON does not support, [`Error::Unmarshal`] with path and position of a value
/// that does not fit.
pub fn decode<T: DeserializeOwned>(node: &Node) -> Result<T, Error> {
    node.check_keys().map_err(|error| Error::Convert(Box::new(error)))?;
    T::deserialize(Decoder {
        node,
        path: &Path::Root,
    })
    .map_err(|Failure(error)| match error {
        Error::NotJson { .. } => Error::Convert(Box::new(error)),
        _ => Error::Unmarshal(Box::new(located(error, node, &Path::Root))),
    })
}

/// The way from the root to a value.
enum Path<'p> {
    Root,
    Field {
        parent: &'p Path<'p>,
        structure: &'static str,
        name: Cow<'p, str>,
    },
    Index {
        parent: &'p Path<'p>,
        index: usize,
    },
    Key {
        parent: &'p Path<'p>,
        key: Cow<'p, str>,
    },
}

impl Path<'_> {
    /// The path in Go's errors: the innermost struct and the names of all fields on the way.
    fn go_place(&self) -> String {
        let (mut names, mut innermost, mut at) = (Vec::new(), None, self);
        loop {
            at = match at {
                Path::Root => break,
                Path::Field {
                    parent,
                    structure,
                    name,
                } => {
                    innermost.get_or_insert(*structure);
                    names.push(name.as_ref());
                    parent
                }
                Path::Index { parent, .. } | Path::Key { parent, .. } => parent,
            };
        }
        names.reverse();
        match innermost {
            Some(structure) => format!("struct field {structure}.{}", names.join(".")),
            None => "value".to_owned(),
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dot = |parent: &Path<'_>| if matches!(parent, Path::Root) { "" } else { "." };
        match self {
            Path::Root => Ok(()),
            Path::Field { parent, name, .. } => write!(f, "{parent}{}{name}", dot(parent)),
            Path::Key { parent, key } => write!(f, "{parent}{}{key}", dot(parent)),
            Path::Index { parent, index } => write!(f, "{parent}[{index}]"),
        }
    }
}

/// An error on its way up.
#[derive(Debug)]
struct Failure(Error);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Failure {}

impl de::Error for Failure {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(Error::Decode {
            problem: message.to_string(),
            path: String::new(),
            position: None,
        })
    }

    fn unknown_field(field: &str, _expected: &'static [&'static str]) -> Self {
        Self::custom(format_args!("json: unknown field {field:?}"))
    }
}

/// Adds the position to an error without one.
fn located(error: Error, node: &Node, at: &Path<'_>) -> Error {
    match error {
        Error::Decode {
            problem,
            position: None,
            ..
        } => Error::Decode {
            problem,
            path: at.to_string(),
            position: Some(node.start),
        },
        other => other,
    }
}

#[derive(Clone, Copy)]
struct Decoder<'n, 'p> {
    node: &'n Node,
    path: &'p Path<'p>,
}

impl<'n> Decoder<'n, '_> {
    /// Infinities and NaN can only become strings. Anything else fails when it is converted to JSON, before the target
    /// type matters.
    fn check_finite(&self) -> Result<(), Failure> {
        if matches!(self.node.value, Value::Float(_)) {
            self.node.check_json().map_err(Failure)
        } else {
            Ok(())
        }
    }

    fn mismatch(&self, found: &str, wanted: &str) -> Failure {
        if let Err(failure) = self.check_finite() {
            return failure;
        }
        let problem = olmkit_go::json::mismatch(found, &self.path.go_place(), wanted);
        Failure(located(
            Error::Decode {
                problem,
                path: String::new(),
                position: None,
            },
            self.node,
            self.path,
        ))
    }

    /// Adds this position to an error of a visitor.
    fn place<T>(&self, result: Result<T, Failure>) -> Result<T, Failure> {
        result.map_err(|Failure(error)| Failure(located(error, self.node, self.path)))
    }

    /// A whole number of a Go type.
    fn integer(&self, wanted: &str) -> Result<i128, Failure> {
        match self.node.value {
            Value::Null => Ok(0),
            Value::Integer(value) => Ok(i128::from(value)),
            Value::Unsigned(value) => Ok(i128::from(value)),
            Value::Float(value) => match number::as_integer(value) {
                Some(whole) => Ok(i128::from(whole)),
                None => Err(self.mismatch(&format!("number {}", olmkit_go::json::float(value)), wanted)),
            },
            _ => Err(self.mismatch(self.node.json_kind(), wanted)),
        }
    }

    fn fitting<T: TryFrom<i128>>(&self, wanted: &str) -> Result<T, Failure> {
        let value = self.integer(wanted)?;
        T::try_from(value).map_err(|_| self.mismatch(&format!("number {value}"), wanted))
    }

    /// A string, or a scalar as the string that the YAML reader converts it to.
    fn text(&self) -> Result<Cow<'n, str>, Failure> {
        Ok(match &self.node.value {
            Value::String(text) => Cow::Borrowed(text),
            Value::Null => Cow::Borrowed(""),
            Value::Bool(value) => Cow::Borrowed(if *value { "true" } else { "false" }),
            Value::Integer(value) => Cow::Owned(value.to_string()),
            Value::Unsigned(value) => Cow::Owned(value.to_string()),
            Value::Float(value) => Cow::Owned(olmkit_go::strconv::format_g32(*value)),
            Value::Sequence(_) | Value::Mapping(_) => return Err(self.mismatch(self.node.json_kind(), "string")),
        })
    }

    fn bytes(&self) -> Result<Vec<u8>, Failure> {
        match &self.node.value {
            Value::Null => Ok(Vec::new()),
            Value::String(text) => olmkit_go::base64::decode(text).map_err(|problem| {
                Failure(located(
                    Error::Decode {
                        problem,
                        path: String::new(),
                        position: None,
                    },
                    self.node,
                    self.path,
                ))
            }),
            _ => Err(self.mismatch(self.node.json_kind(), "[]uint8")),
        }
    }

    fn items(&self) -> Result<&'n [Node], Failure> {
        match &self.node.value {
            Value::Sequence(items) => Ok(items),
            Value::Null => Ok(&[]),
            _ => Err(self.mismatch(self.node.json_kind(), "[]interface {}")),
        }
    }

    fn entries(&self, wanted: &str) -> Result<&'n [(Node, Node)], Failure> {
        match &self.node.value {
            Value::Mapping(entries) => Ok(entries),
            Value::Null => Ok(&[]),
            _ => Err(self.mismatch(self.node.json_kind(), wanted)),
        }
    }
}

macro_rules! integers {
    ($($method:ident $visit:ident $go:literal),*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
            self.place(visitor.$visit(self.fitting($go)?))
        }
    )*};
}

impl<'de> de::Deserializer<'de> for Decoder<'de, '_> {
    type Error = Failure;

    integers!(
        deserialize_i8 visit_i8 "int8", deserialize_i16 visit_i16 "int16", deserialize_i32 visit_i32 "int32",
        deserialize_i64 visit_i64 "int64", deserialize_u8 visit_u8 "uint8", deserialize_u16 visit_u16 "uint16",
        deserialize_u32 visit_u32 "uint32", deserialize_u64 visit_u64 "uint64"
    );

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.check_finite()?;
        match &self.node.value {
            Value::Null => self.place(visitor.visit_unit()),
            Value::Bool(value) => self.place(visitor.visit_bool(*value)),
            Value::Integer(value) => self.place(visitor.visit_i64(*value)),
            Value::Unsigned(value) => self.place(visitor.visit_u64(*value)),
            Value::Float(value) => self.place(match number::as_integer(*value) {
                Some(whole) => visitor.visit_i64(whole),
                None => visitor.visit_f64(*value),
            }),
            Value::String(text) => self.place(visitor.visit_borrowed_str(text)),
            Value::Sequence(_) => self.deserialize_seq(visitor),
            Value::Mapping(_) => self.deserialize_map(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match self.node.value {
            Value::Bool(value) => self.place(visitor.visit_bool(value)),
            Value::Null => self.place(visitor.visit_bool(false)),
            _ => Err(self.mismatch(self.node.json_kind(), "bool")),
        }
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.check_finite()?;
        #[expect(clippy::cast_precision_loss, reason = "as Go converts a number for a float field")]
        let value = match self.node.value {
            Value::Null => 0.0,
            Value::Float(value) => value,
            Value::Integer(value) => value as f64,
            Value::Unsigned(value) => value as f64,
            _ => return Err(self.mismatch(self.node.json_kind(), "float64")),
        };
        self.place(visitor.visit_f64(value))
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        let text = self.text()?;
        self.place(match text {
            Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
            Cow::Owned(text) => visitor.visit_string(text),
        })
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.deserialize_str(visitor)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.place(visitor.visit_byte_buf(self.bytes()?))
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        if self.node.is_null() {
            self.place(visitor.visit_none())
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.place(visitor.visit_unit())
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Failure> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Failure> {
        self.place(visitor.visit_newtype_struct(self))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.place(visitor.visit_seq(Items {
            items: self.items()?.iter().enumerate(),
            path: self.path,
        }))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Failure> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Failure> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        let entries = self.entries("map[string]interface {}")?;
        let named = entries
            .iter()
            .filter_map(|(key, value)| Some((key, key.key()?, value)))
            .collect::<Vec<_>>();
        self.place(visitor.visit_map(Entries {
            entries: named.into_iter(),
            value: None,
            structure: None,
            path: self.path,
        }))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        structure: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        let entries = by_field(self.entries(structure)?, fields);
        let entries = Entries {
            entries: entries.into_iter(),
            value: None,
            structure: Some(structure),
            path: self.path,
        };
        self.place(visitor.visit_map(entries))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        if let Value::Mapping(entries) = &self.node.value {
            let named: Vec<_> = entries
                .iter()
                .filter_map(|(key, value)| Some((key, key.key()?, value)))
                .collect();
            let entries = Entries {
                entries: named.into_iter(),
                value: None,
                structure: None,
                path: self.path,
            };
            return self.place(visitor.visit_enum(MapAccessDeserializer::new(entries)));
        }
        let text = self.text()?;
        self.place(visitor.visit_enum(text.into_deserializer()))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.node.check_json().map_err(Failure)?;
        visitor.visit_unit()
    }
}

/// Assigns entries to fields: the exact name first, then any case. Nulls count as absent and are dropped. If several
/// entries match one field, the one whose name sorts last wins, because Go reads it last.
fn by_field<'n>(
    entries: &'n [(Node, Node)],
    fields: &'static [&'static str],
) -> Vec<(&'n Node, Cow<'n, str>, &'n Node)> {
    let mut chosen: Vec<(&Node, Cow<'_, str>, &Node)> = Vec::with_capacity(entries.len());
    let mut spelled: Vec<Cow<'_, str>> = Vec::with_capacity(entries.len());
    for (key, value) in entries.iter().filter(|(_, value)| !value.is_null()) {
        let Some(own) = key.key() else { continue };
        let exact = fields.iter().find(|field| **field == own);
        let field = exact.or_else(|| fields.iter().find(|field| olmkit_go::json::names_field(&own, field)));
        let name = field.map_or_else(|| own.clone(), |field| Cow::Borrowed(*field));
        match chosen.iter().position(|(_, known, _)| *known == name) {
            None => {
                chosen.push((key, name, value));
                spelled.push(own);
            }
            Some(at) => {
                if let (Some(entry), Some(known)) = (chosen.get_mut(at), spelled.get_mut(at))
                    && own > *known
                {
                    *entry = (key, name, value);
                    *known = own;
                }
            }
        }
    }
    chosen
}

struct Items<'n, 'p> {
    items: std::iter::Enumerate<std::slice::Iter<'n, Node>>,
    path: &'p Path<'p>,
}

impl<'de> de::SeqAccess<'de> for Items<'de, '_> {
    type Error = Failure;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Failure> {
        let Some((index, node)) = self.items.next() else {
            return Ok(None);
        };
        let path = Path::Index {
            parent: self.path,
            index,
        };
        seed.deserialize(Decoder { node, path: &path }).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

struct Entries<'n, 'p> {
    entries: std::vec::IntoIter<(&'n Node, Cow<'n, str>, &'n Node)>,
    /// Name and node of the next value.
    value: Option<(Cow<'n, str>, &'n Node)>,
    structure: Option<&'static str>,
    path: &'p Path<'p>,
}

impl<'n> Entries<'n, '_> {
    fn child<'c>(&'c self, name: Cow<'c, str>) -> Path<'c> {
        match self.structure {
            Some(structure) => Path::Field {
                parent: self.path,
                structure,
                name,
            },
            None => Path::Key {
                parent: self.path,
                key: name,
            },
        }
    }
}

impl<'de> de::MapAccess<'de> for Entries<'de, '_> {
    type Error = Failure;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Failure> {
        let Some((key, name, value)) = self.entries.next() else {
            return Ok(None);
        };
        let result = match &name {
            Cow::Borrowed(name) => seed.deserialize(BorrowedStrDeserializer::new(name)),
            Cow::Owned(name) => seed.deserialize(CowStrDeserializer::new(Cow::Borrowed(name.as_str()))),
        };
        let result = result.map_err(|Failure(error)| Failure(located(error, key, &self.child(name.clone()))));
        self.value = Some((name, value));
        result.map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Failure> {
        let Some((name, node)) = self.value.take() else {
            return Err(de::Error::custom("a value was asked for before its key"));
        };
        let path = self.child(name);
        seed.deserialize(Decoder { node, path: &path })
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.entries.len())
    }
}
