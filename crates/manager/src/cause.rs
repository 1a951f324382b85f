//! Why an object is reconciled, in words for the log.
use std::borrow::Cow;

use crate::ObjectKey;

/// Why a key is in a queue: `object changed: generation 3→4`, `Deployment shop/web changed`, `retry 2`. The first of several
/// causes counts, and one of a higher rank before it.
pub type Cause = Cow<'static, str>;

/// The operator's own code added the key.
pub(crate) const ADDED: Cause = Cow::Borrowed("added");
pub(crate) const LISTED: Cause = Cow::Borrowed("listed");
pub(crate) const PUT_OFF: Cause = Cow::Borrowed("put off");
pub(crate) const REQUEUE: Cause = Cow::Borrowed("requeue");
/// Objects that wait for their rollout.
pub(crate) const SLOT: Cause = Cow::Borrowed("a rollout may begin");
pub(crate) const UNREADABLE: Cause = Cow::Borrowed("object cannot be read");

/// After this number of failures.
pub(crate) fn retry(failures: u32) -> Cause {
    Cow::Owned(format!("retry {failures}"))
}

/// The parts of an object that show its change.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) generation: i64,
    pub(crate) is_deleting: bool,
}

impl Seen {
    pub(crate) fn of(meta: &kube::api::ObjectMeta) -> Self {
        Self {
            generation: meta.generation.unwrap_or(0),
            is_deleting: meta.deletion_timestamp.is_some(),
        }
    }
}

/// The object itself has changed.
pub(crate) fn object(before: Option<Seen>, after: Option<Seen>, listed: bool) -> Cause {
    match (before, after) {
        (None, _) if listed => LISTED,
        (None, _) => Cow::Borrowed("object created"),
        (_, None) => Cow::Borrowed("object deleted"),
        (Some(before), Some(after)) if after.is_deleting && !before.is_deleting => {
            Cow::Borrowed("object changed: deletion requested")
        }
        (Some(before), Some(after)) if before.generation != after.generation => Cow::Owned(format!(
            "object changed: generation {}→{}",
            before.generation, after.generation
        )),
        _ => Cow::Borrowed("object changed: metadata or status"),
    }
}

/// Another object, on which this one depends, has changed.
pub(crate) fn other(kind: &str, key: &ObjectKey, is_new: bool, is_gone: bool) -> Cause {
    let how = match (is_new, is_gone) {
        (true, _) => "created",
        (_, true) => "deleted",
        _ => "changed",
    };
    Cow::Owned(format!("{kind} {key} {how}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_names_the_change() {
        let seen = |generation, is_deleting| {
            Some(Seen {
                generation,
                is_deleting,
            })
        };
        assert_eq!(object(None, seen(1, false), true), "listed");
        assert_eq!(object(None, seen(1, false), false), "object created");
        assert_eq!(object(seen(1, false), None, false), "object deleted");
        assert_eq!(
            object(seen(3, false), seen(4, false), false),
            "object changed: generation 3→4"
        );
        assert_eq!(
            object(seen(3, false), seen(4, true), false),
            "object changed: deletion requested"
        );
        assert_eq!(
            object(seen(3, true), seen(3, true), false),
            "object changed: metadata or status"
        );
        let key = ObjectKey::new("shop", "web");
        assert_eq!(other("Deployment", &key, false, false), "Deployment shop/web changed");
        assert_eq!(other("Deployment", &key, true, false), "Deployment shop/web created");
        assert_eq!(other("Deployment", &key, false, true), "Deployment shop/web deleted");
    }
}
