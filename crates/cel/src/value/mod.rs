//! Values that expressions work on.

pub(crate) mod compare;
pub mod net;
pub mod time;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;

use serde_json::Value as Json;

use crate::budget::Failure;
use crate::lexer::RESERVED;
use net::Cidr;
use olmkit_go::quantity::Quantity;
use olmkit_go::url::Url;
use time::Timestamp;

/// A value.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Rc<str>),
    Bytes(Rc<[u8]>),
    List(Rc<List>),
    Map(Rc<Map>),
    Timestamp(Timestamp),
    /// Nanoseconds.
    Duration(i64),
    /// A type, by its name.
    Type(Rc<str>),
    Optional(Option<Rc<Value>>),
    Url(Rc<ParsedUrl>),
    Ip(IpAddr),
    Cidr(Cidr),
    Quantity(Quantity),
    Semver(Rc<semver::Version>),
    /// A named format of the format library.
    Format(&'static str),
    /// Data without a schema, which supports only equality.
    Preserved(Rc<Json>),
    /// A value that fails when it is read.
    Broken(Rc<Failure>),
}

/// A URL and its string form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedUrl {
    /// As it was written.
    pub text: String,
    /// Its parts.
    pub url: Url,
}

/// Items in order.
#[derive(Debug, Clone, Default)]
pub struct List {
    /// The items.
    pub items: Vec<Value>,
    /// How lists are compared and joined.
    pub kind: ListKind,
}

/// `x-kubernetes-list-type`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ListKind {
    /// Order matters.
    #[default]
    Atomic,
    /// Equal whatever the order. Joined without duplicates.
    Set,
    /// These fields identify an item.
    Map(Vec<String>),
}

/// Keys with values, or an object's fields.
#[derive(Debug, Clone, Default)]
pub struct Map {
    /// Keys in order. Fields of objects are escaped.
    pub entries: BTreeMap<Key, Value>,
    /// True if this is an object with declared fields.
    pub is_object: bool,
    /// Fields without a schema, of which only equality matters.
    pub others: BTreeMap<String, Json>,
}

/// A key of a map.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Key {
    Bool(bool),
    Int(i64),
    Uint(u64),
    String(Rc<str>),
}

impl Value {
    /// A string.
    pub fn string(text: impl AsRef<str>) -> Self {
        Self::String(Rc::from(text.as_ref()))
    }

    /// A list whose order matters.
    pub fn list(items: Vec<Value>) -> Self {
        Self::List(Rc::new(List {
            items,
            kind: ListKind::Atomic,
        }))
    }

    /// A map.
    pub fn map(entries: BTreeMap<Key, Value>) -> Self {
        Self::Map(Rc::new(Map {
            entries,
            ..Map::default()
        }))
    }

    /// An optional with a value.
    pub fn some(value: Value) -> Self {
        Self::Optional(Some(Rc::new(value)))
    }

    /// A value that fails when it is looked at.
    pub fn broken(failure: Failure) -> Self {
        Self::Broken(Rc::new(failure))
    }

    /// The value, or the failure of reading it.
    pub(crate) fn sound(self) -> Result<Self, Failure> {
        match self {
            Self::Broken(failure) => Err((*failure).clone()),
            sound => Ok(sound),
        }
    }

    /// JSON data of any form, as CEL takes it without a schema.
    pub fn from_json(json: &Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(value), _) => Self::Int(value),
                (None, Some(value)) => Self::Double(value),
                (None, None) => Self::broken(Failure::undecided("a number out of range")),
            },
            Json::String(text) => Self::string(text),
            Json::Array(items) => Self::list(items.iter().map(Self::from_json).collect()),
            Json::Object(fields) => {
                let entries = fields
                    .iter()
                    .map(|(name, value)| (Key::String(Rc::from(name.as_str())), Self::from_json(value)));
                Self::map(entries.collect())
            }
        }
    }

    /// The value as a key of a map. Whole numbers of any type are the same key.
    pub(crate) fn key(&self) -> Option<Key> {
        Some(match self {
            Self::Bool(value) => Key::Bool(*value),
            Self::Int(value) => Key::Int(*value),
            Self::Uint(value) => match i64::try_from(*value) {
                Ok(value) => Key::Int(value),
                Err(_) => Key::Uint(*value),
            },
            Self::String(text) => Key::String(text.clone()),
            _ => return None,
        })
    }

    /// The name of the value's type.
    pub fn type_name(&self) -> &str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::String(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::Type(_) => "type",
            Self::Optional(_) => "optional_type",
            Self::Url(_) => "kubernetes.URL",
            Self::Ip(_) => "net.IP",
            Self::Cidr(_) => "net.CIDR",
            Self::Quantity(_) => "kubernetes.Quantity",
            Self::Semver(_) => "kubernetes.Semver",
            Self::Format(_) => "kubernetes.NamedFormat",
            Self::Preserved(_) | Self::Broken(_) => "unknown",
        }
    }
}

impl Map {
    /// The value of a key.
    pub(crate) fn find(&self, key: &Value) -> Option<&Value> {
        let key = match key {
            // 1.0 is the key 1, but 1.5 is none.
            Value::Double(value) if value.fract() == 0.0 && value.abs() < 9.0e15 => {
                #[allow(clippy::cast_possible_truncation)]
                let whole = *value as i64;
                Key::Int(whole)
            }
            other => other.key()?,
        };
        self.entries.get(&key)
    }

    /// The value of a field. Fields whose name is a keyword are stored under their escaped names.
    pub(crate) fn field(&self, name: &str) -> Option<&Value> {
        let found = |name: &str| self.entries.get(&Key::String(Rc::from(name)));
        let escaped = || {
            let is_keyword = self.is_object && RESERVED.contains(&name);
            is_keyword.then(|| found(&format!("__{name}__"))).flatten()
        };
        found(name).or_else(escaped)
    }
}

impl Key {
    /// The key as a value.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Bool(value) => Value::Bool(*value),
            Self::Int(value) => Value::Int(*value),
            Self::Uint(value) => Value::Uint(*value),
            Self::String(text) => Value::String(text.clone()),
        }
    }
}
