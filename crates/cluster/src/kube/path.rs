//! The path of a request for an object.
//!
//! Names come from bundles, catalogs, flags and cluster objects. A name with a slash or dots would change the target of
//! a request, so every segment of a path is checked before the request is built.

use std::fmt;

use kube::core::request::Request;

use crate::base::error::Error;
use crate::base::kinds::Kind;
use crate::base::object_ref::ObjectRef;

impl ObjectRef {
    /// The request for its collection, once all parts of its path are known to be single segments.
    ///
    /// # Errors
    /// [`Error::BuildRequest`] for an invalid segment.
    pub(crate) fn request(&self) -> Result<Request, Error> {
        checked("reach", self, &self.name)?;
        collection(&self.kind, self.namespace.as_deref())
    }
}

/// The request for the objects of a kind, in one namespace or in all.
///
/// # Errors
/// [`Error::BuildRequest`] for a part of the path that is not a single segment.
pub(crate) fn collection(kind: &Kind, namespace: Option<&str>) -> Result<Request, Error> {
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

/// Returns true if an object can have this name: it is one segment of a path. Kubernetes accepts any name without a slash,
/// a percent sign or a character that ends a path, other than `.` and `..`. A name in a cluster object's field is not
/// checked by the API server.
pub(crate) fn is_segment(name: &str) -> bool {
    !matches!(name, "" | "." | "..")
        && name
            .chars()
            .all(|c| c.is_ascii_graphic() && !matches!(c, '/' | '\\' | '%' | '?' | '#'))
}

/// Accepts one segment of a path.
///
/// # Errors
/// [`Error::BuildRequest`].
pub(crate) fn checked(verb: &'static str, object: &impl fmt::Display, segment: &str) -> Result<(), Error> {
    if is_segment(segment) {
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
    use super::*;
    use crate::base::kinds;

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
