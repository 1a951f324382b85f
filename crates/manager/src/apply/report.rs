//! The result of an apply.
use std::{fmt, time::Duration};

use serde_json::Value;

/// An object that was applied, and what that changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The object as the API server has it.
    pub object: Value,
    /// The change.
    pub change: Change,
    /// Another client sets a field again and again, so it is left for a while.
    pub conflict: Option<Conflict>,
    /// Number of write requests that succeeded.
    pub writes: u32,
}

impl Report {
    /// `object` is as desired.
    pub(crate) fn settled(object: Value) -> Self {
        Self {
            object,
            change: Change::Unchanged,
            conflict: None,
            writes: 0,
        }
    }
}

/// The change that an apply made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// Nothing: no write was sent.
    Unchanged,
    /// The object was created.
    Created,
    /// The desired object had changed.
    Updated(Vec<FieldChange>),
    /// Another client had changed the object. The changes were reverted.
    Reverted(Vec<FieldChange>),
}

/// One field of a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldChange {
    /// Where it is, such as `.spec.replicas`.
    pub field: String,
    /// The value before. Empty for a Secret and for a field that was absent.
    pub old: String,
    /// The value after. Empty for a Secret and for a field that was removed.
    pub new: String,
    /// The client that set the old value, if known.
    pub manager: Option<String>,
}

/// A field that another client sets again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Where it is, such as `.spec.replicas`.
    pub field: String,
    /// The other client's field manager.
    pub manager: String,
    /// The conflict was detected now, and should be reported.
    pub new: bool,
    /// The field is set again after this time.
    pub retry_after: Duration,
}

/// The manager in a [`Conflict`] with an admission webhook or policy, which the API server does not name.
pub const ADMISSION: &str = "admission";

impl fmt::Display for FieldChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            field,
            old,
            new,
            manager,
        } = self;
        write!(f, "{field}")?;
        match (old.as_str(), new.as_str()) {
            ("", "") => {}
            ("", new) => write!(f, " set to {new}")?,
            (old, "") => write!(f, " removed, was {old}")?,
            (old, new) => write!(f, " set to {new}, was {old}")?,
        }
        match manager {
            Some(manager) => write!(f, "; changed by {manager}"),
            None => Ok(()),
        }
    }
}
