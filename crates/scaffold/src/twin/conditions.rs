//! Conditions: what the operator reports about an object.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;
use schemars::{Schema, SchemaGenerator, json_schema};

/// The operator has done what the object asks for.
pub const AVAILABLE: &str = "Available";
/// Something keeps the operator from its work.
pub const DEGRADED: &str = "Degraded";

/// A condition for an object of this generation. It keeps the time of `known` while the status stays the same.
pub fn condition(
    known: &[Condition],
    type_: &str,
    holds: bool,
    reason: &str,
    message: &str,
    generation: Option<i64>,
    now: Timestamp,
) -> Condition {
    let status = if holds { "True" } else { "False" };
    let since = known
        .iter()
        .find(|condition| condition.type_ == type_ && condition.status == status)
        .map_or(Time(now), |condition| condition.last_transition_time.clone());
    Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        observed_generation: generation,
        last_transition_time: since,
    }
}

/// The schema of a list of conditions: one entry for each type, with the bounds that Kubernetes' own kinds have.
pub fn schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "description": "One aspect of the object's state.",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "lastTransitionTime": {
                    "description": "When the status last changed.",
                    "type": "string",
                    "format": "date-time",
                },
                "message": {
                    "description": "What happened, for people.",
                    "type": "string",
                    "maxLength": 32768,
                },
                "observedGeneration": {
                    "description": "The metadata.generation that the condition is about.",
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                },
                "reason": {
                    "description": "What happened, for programs: one word in CamelCase.",
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                },
                "status": {
                    "description": "Whether the condition holds.",
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                },
                "type": {
                    "description": "Name of the condition in CamelCase.",
                    "type": "string",
                    "maxLength": 316,
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_keeps_its_time_until_its_status_changes() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let first = condition(&[], AVAILABLE, true, "Ready", "", Some(1), at(1));
        let known = [first.clone()];
        let same = condition(&known, AVAILABLE, true, "Other", "", Some(2), at(2));
        assert_eq!(same.last_transition_time, first.last_transition_time);
        let changed = condition(&known, AVAILABLE, false, "Failed", "", Some(2), at(2));
        assert_eq!(changed.last_transition_time, Time(at(2)));
    }
}
