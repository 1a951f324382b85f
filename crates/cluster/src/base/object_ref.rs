//! References to an object of a cluster.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::json::text;
use super::kinds::Kind;

/// Points to one object of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectRef {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace, if the kind has one.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

impl ObjectRef {
    /// Points to an object in a namespace.
    pub fn namespaced(kind: Kind, namespace: &str, name: &str) -> Self {
        ObjectRef {
            kind,
            namespace: Some(namespace.to_owned()),
            name: name.to_owned(),
        }
    }

    /// Points to an object of the cluster.
    pub fn cluster(kind: Kind, name: &str) -> Self {
        ObjectRef {
            kind,
            namespace: None,
            name: name.to_owned(),
        }
    }

    /// Points to an object that was read.
    pub fn from_object(kind: &Kind, object: &Value) -> Self {
        ObjectRef {
            kind: kind.clone(),
            namespace: object
                .pointer("/metadata/namespace")
                .and_then(Value::as_str)
                .map(str::to_owned),
            name: text(object, "/metadata/name").to_owned(),
        }
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind.kind, self.name),
            None => write!(f, "{} {}", self.kind.kind, self.name),
        }
    }
}

impl Serialize for ObjectRef {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serde_json::Map::new();
        map.insert("apiVersion".into(), self.kind.api_version().into());
        map.insert("kind".into(), self.kind.kind.clone().into());
        map.insert("name".into(), self.name.clone().into());
        if let Some(namespace) = &self.namespace {
            map.insert("namespace".into(), namespace.clone().into());
        }
        Value::Object(map).serialize(serializer)
    }
}
