//! The result of an apply.
use std::ops::Deref;

use serde_json::Value;

use super::{Change, Conflict, Error, Object, object::typed};
use crate::{
    apply::Report,
    health::{Health, Ready},
};

/// A child that was applied. It dereferences to the object as the API server has it, without `managedFields`.
#[derive(Clone, Debug)]
pub struct Applied<C> {
    object: C,
    change: Change,
    conflict: Option<Conflict>,
}

impl<C> Applied<C> {
    /// The object.
    pub fn into_inner(self) -> C {
        self.object
    }

    /// The change that the apply made.
    pub fn change(&self) -> &Change {
        &self.change
    }

    /// The field that another client sets again and again, if there is one. It is reported as event and condition.
    pub fn conflict(&self) -> Option<&Conflict> {
        self.conflict.as_ref()
    }
}

impl<C> Deref for Applied<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.object
    }
}

impl<C: Health> Health for Applied<C> {
    fn ready(&self) -> Ready {
        self.object.ready()
    }
}

/// An object of the API server as a type.
pub(super) fn from_api_server<C: Object>(object: &Value) -> Result<C, Error> {
    typed(object).map_err(|error| Error::bug(format!("the API server's {} cannot be read: {error}", C::kind(&()))))
}

impl<C: Object> Applied<C> {
    /// An object that is as desired.
    pub(super) fn settled(object: C) -> Self {
        Self {
            object,
            change: Change::Unchanged,
            conflict: None,
        }
    }

    /// The typed object and the result of a report.
    pub(super) fn new(mut report: Report) -> Result<Self, Error> {
        let metadata = report.object.get_mut("metadata").and_then(Value::as_object_mut);
        metadata.map(|metadata| metadata.remove("managedFields"));
        Ok(Self {
            object: from_api_server(&report.object)?,
            change: report.change,
            conflict: report.conflict,
        })
    }
}
