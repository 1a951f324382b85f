//! References to an object of a cluster, and the path of a request for it.
//!
//! Names come from bundles, catalogs, flags and cluster objects. A name with a slash or dots would change the target of
//! a request, so every segment of a path is checked before the request is built.

use std::fmt;

use kube::core::request::Request;
use serde::Serialize;
use serde_json::Value;

use super::Error;
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
    pub fn of(kind: &Kind, object: &Value) -> Self {
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

impl ObjectRef {
    /// The request for its collection, once all parts of its path are known to be single segments.
    ///
    /// # Errors
    /// [`Error::BuildRequest`] for an invalid segment.
    pub(super) fn request(&self) -> Result<Request, Error> {
        checked("reach", self, &self.name)?;
        collection(&self.kind, self.namespace.as_deref())
    }
}

/// The request for the objects of a kind, in one namespace or in all.
///
/// # Errors
/// [`Error::BuildRequest`] for a part of the path that is not a single segment.
pub(super) fn collection(kind: &Kind, namespace: Option<&str>) -> Result<Request, Error> {
    for segment in [&kind.version, &kind.plural] {
        checked("reach", &kind.kind, segment)?;
    }
    if !kind.group.is_empty() {
        checked("reach", &kind.kind, &kind.group)?;
    }
    if let Some(namespace) = namespace {
        checked("reach", &kind.kind, namespace)?;
    }
    Ok(Request::new(kind.path(namespace)))
}

/// Accepts one segment of a path as Kubernetes does: any name without a slash, a percent sign or a character that ends
/// a path, other than `.` and `..`.
///
/// # Errors
/// [`Error::BuildRequest`].
pub(super) fn checked(verb: &'static str, object: &impl fmt::Display, segment: &str) -> Result<(), Error> {
    let is_fine = !matches!(segment, "" | "." | "..")
        && segment
            .chars()
            .all(|c| c.is_ascii_graphic() && !matches!(c, '/' | '\\' | '%' | '?' | '#'));
    if is_fine {
        return Ok(());
    }
    Err(Error::BuildRequest {
        verb,
        object: object.to_string().escape_debug().to_string(),
        message: format!("{segment:?} cannot be the name of an object"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::kinds;
    use super::*;

    #[test]
    fn a_name_cannot_lead_to_another_object() {
        let refused = |object: ObjectRef| matches!(object.request(), Err(Error::BuildRequest { .. }));
        for name in [
            "", ".", "..", "../../x", "a/b", "a%2fb", "a?x=1", "a#b", "a b", "a\nb", "ä",
        ] {
            assert!(refused(ObjectRef::namespaced(kinds::pod(), "shop", name)), "{name:?}");
            assert!(refused(ObjectRef::namespaced(kinds::pod(), name, "one")), "{name:?}");
            assert!(
                refused(ObjectRef::cluster(
                    Kind {
                        plural: name.into(),
                        ..kinds::node()
                    },
                    "one"
                )),
                "{name:?}"
            );
        }
        for name in [
            "system:controller:operator-lifecycle-manager",
            "cache.v1.0.0",
            "things.example.com",
        ] {
            assert!(!refused(ObjectRef::cluster(kinds::cluster_role(), name)), "{name}");
        }
    }
}
