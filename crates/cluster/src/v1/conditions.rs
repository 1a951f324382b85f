//! Conditions of ClusterExtensions and ClusterCatalogs.

use serde_json::Value;

use crate::base::json::text;
use crate::kube::conditions;

/// One condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Condition<'v> {
    /// `True`, `False` or `Unknown`.
    pub status: &'v str,
    /// Machine-readable reason.
    pub reason: &'v str,
    /// For people.
    pub message: &'v str,
    /// True if it is about the current generation of the object.
    pub is_current: bool,
}

impl Condition<'_> {
    /// Returns true if it has this status and reason, for the current generation of the object.
    pub fn says(&self, status: &str, reason: &str) -> bool {
        self.is_current && self.status == status && self.reason == reason
    }
}

/// The condition of a type.
pub(super) fn condition<'v>(object: &'v Value, kind: &str) -> Option<Condition<'v>> {
    let generation = object.pointer("/metadata/generation").and_then(Value::as_i64);
    conditions::all(object)
        .iter()
        .find(|found| text(found, "/type") == kind)
        .map(|found| Condition {
            status: text(found, "/status"),
            reason: text(found, "/reason"),
            message: text(found, "/message"),
            is_current: found.get("observedGeneration").and_then(Value::as_i64) >= generation,
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_condition_of_an_earlier_specification_says_nothing() {
        let object = |observed: i64| {
            json!({"metadata": {"generation": 2}, "status": {"conditions": [
            {"type": "Progressing", "status": "True", "reason": "Succeeded", "observedGeneration": observed}]}})
        };
        assert!(condition(&object(2), "Progressing").unwrap().says("True", "Succeeded"));
        assert!(!condition(&object(1), "Progressing").unwrap().says("True", "Succeeded"));
        assert!(!condition(&object(2), "Progressing").unwrap().says("True", "Retrying"));
        assert_eq!(condition(&object(2), "Installed"), None);
    }
}
