//! Conditions in the status of objects.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use serde_json::Value;

use crate::base::json::text;

/// The conditions of an object, unfiltered.
pub fn all(object: &Value) -> &[Value] {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    conditions.map(Vec::as_slice).unwrap_or_default()
}

/// An object with conditions in its status.
pub trait Conditions {
    /// Returns true if a condition of this type has the status `True`.
    fn is_true(&self, kind: &str) -> bool;
}

impl Conditions for Value {
    fn is_true(&self, kind: &str) -> bool {
        let is_true = |condition: &Value| text(condition, "/type") == kind && text(condition, "/status") == "True";
        all(self).iter().any(is_true)
    }
}

impl Conditions for Deployment {
    fn is_true(&self, kind: &str) -> bool {
        let conditions = self.status.as_ref().and_then(|status| status.conditions.as_ref());
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|condition| condition.type_ == kind && condition.status == "True")
    }
}

impl Conditions for Job {
    fn is_true(&self, kind: &str) -> bool {
        let conditions = self.status.as_ref().and_then(|status| status.conditions.as_ref());
        let mut conditions = conditions.into_iter().flatten();
        conditions.any(|condition| condition.type_ == kind && condition.status == "True")
    }
}
