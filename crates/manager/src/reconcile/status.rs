//! The status that follows from a reconcile.
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Map, Value, json};

use super::{Error, ErrorKind, Outcome};
use crate::{apply::StatusFields, conditions, health::Ready};

/// Names of the conditions.
pub const AVAILABLE: &str = "Available";
pub const PROGRESSING: &str = "Progressing";
pub const DEGRADED: &str = "Degraded";

/// The result of a reconcile.
pub struct Found<'a> {
    pub result: &'a Result<Outcome, Error>,
    /// The first conflict, for users.
    pub conflict: Option<&'a str>,
    /// The fields of the status that this operator has written.
    pub own: Map<String, Value>,
    pub generation: Option<i64>,
}

/// The conditions of a status.
pub fn read(status: Option<&Value>) -> Vec<Condition> {
    let list = status
        .and_then(|status| status.get("conditions"))
        .cloned()
        .unwrap_or_default();
    serde_json::from_value(list).unwrap_or_default()
}

/// The status to write. `current` is that of the object now.
pub fn target(current: Option<&Value>, found: Found<'_>, fields: &StatusFields) -> Result<Map<String, Value>, Error> {
    let Found {
        result,
        conflict,
        own,
        generation,
    } = found;
    let given = result.as_ref().ok().and_then(|outcome| outcome.status.clone());
    let mut status = match given {
        Some(Ok(Value::Object(status))) => status,
        Some(Ok(_)) => return Err(Error::bug("the status given to Outcome::status is no object")),
        Some(Err(error)) => return Err(Error::bug(format!("the status cannot be serialized: {error}"))),
        None => own,
    };
    status.retain(|name, value| !value.is_null() && name != "conditions" && name != "observedGeneration");
    if fields.has("observedGeneration")
        && let Some(generation) = generation
    {
        status.insert("observedGeneration".to_owned(), generation.into());
    }
    if fields.has("conditions") {
        let before = read(current);
        let mut all = before.clone();
        set(&mut all, result, conflict);
        let extra = result
            .as_ref()
            .map(|outcome| outcome.conditions.as_slice())
            .unwrap_or_default();
        let is_own = |condition: &Condition| {
            let kind = condition.type_.as_str();
            [AVAILABLE, PROGRESSING, DEGRADED].contains(&kind) || extra.iter().any(|(name, ..)| *name == kind)
        };
        let failed = result.is_err();
        // Conditions of other clients are repeated only in a list that is one value. After an error the operator's own
        // further conditions stay.
        all.retain(|condition| is_own(condition) || failed || !fields.keyed_conditions);
        for condition in all.iter_mut().filter(|condition| is_own(condition)) {
            condition.observed_generation = generation;
        }
        status.insert("conditions".to_owned(), json!(all));
    }
    Ok(status)
}

fn set(all: &mut Vec<Condition>, result: &Result<Outcome, Error>, conflict: Option<&str>) {
    match result {
        Ok(outcome) => {
            match (&outcome.available, &outcome.ready) {
                (Some((holds, message)), _) => {
                    conditions::set(
                        all,
                        AVAILABLE,
                        *holds,
                        if *holds { "Available" } else { "Unavailable" },
                        message,
                    );
                }
                // A paused object does what it did.
                (None, _) if outcome.paused && conditions::get(all, AVAILABLE).is_some() => {}
                (None, Ready::Yes) => conditions::set(all, AVAILABLE, true, "Ready", "everything is ready"),
                (None, Ready::Waiting { reason, message } | Ready::Failed { reason, message }) => {
                    conditions::set(all, AVAILABLE, false, reason, message);
                }
            }
            match &outcome.ready {
                Ready::Yes => conditions::set(all, PROGRESSING, false, "Settled", "everything is as desired"),
                Ready::Waiting { reason, message } => {
                    conditions::set(all, PROGRESSING, !outcome.paused, reason, message);
                }
                Ready::Failed { reason, message } => conditions::set(all, PROGRESSING, false, reason, message),
            }
            match (conflict, &outcome.ready) {
                (Some(conflict), _) => conditions::set(all, DEGRADED, true, "Conflict", conflict),
                (None, Ready::Failed { reason, message }) => conditions::set(all, DEGRADED, true, reason, message),
                (None, _) => conditions::set(all, DEGRADED, false, "AsExpected", "nothing failed"),
            }
            for (kind, holds, reason, message) in &outcome.conditions {
                conditions::set(all, kind, *holds, reason, message);
            }
        }
        Err(error) => {
            let (reason, message) = (error.reason(), error.to_string());
            if conditions::get(all, AVAILABLE).is_none() {
                conditions::set(all, AVAILABLE, false, reason, &message);
            }
            let waits = error.kind() == ErrorKind::Waiting;
            conditions::set(all, PROGRESSING, waits, reason, &message);
            match waits {
                true => conditions::set(all, DEGRADED, false, "AsExpected", "nothing failed"),
                false => conditions::set(all, DEGRADED, true, reason, &message),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields() -> StatusFields {
        StatusFields {
            exists: true,
            names: None,
            keyed_conditions: true,
        }
    }

    fn target_of(current: Option<&Value>, result: &Result<Outcome, Error>, conflict: Option<&str>) -> Value {
        let own = current.and_then(Value::as_object).cloned().unwrap_or_default();
        let found = Found {
            result,
            conflict,
            own,
            generation: Some(3),
        };
        Value::Object(target(current, found, &fields()).unwrap())
    }

    fn condition<'c>(status: &'c Value, kind: &str) -> (&'c str, &'c str) {
        let all = status["conditions"].as_array().unwrap();
        let found = all.iter().find(|condition| condition["type"] == kind).unwrap();
        (found["status"].as_str().unwrap(), found["reason"].as_str().unwrap())
    }

    #[test]
    fn the_same_result_gives_the_same_status() {
        let result =
            Ok(Outcome::waiting("Scaling", "1 of 3 pods are ready").status(json!({ "nodes": ["a"], "none": null })));
        let first = target_of(None, &result, None);
        assert_eq!(first["observedGeneration"], 3);
        assert_eq!((first["nodes"].clone(), first.get("none")), (json!(["a"]), None));
        assert_eq!(condition(&first, "Progressing"), ("True", "Scaling"));
        assert_eq!(target_of(Some(&first), &result, None), first, "times stay");
    }

    #[test]
    fn an_error_keeps_the_status_and_is_reported() {
        let ready = target_of(None, &Ok(Outcome::ready().status(json!({ "nodes": ["a"] }))), None);
        let failed = target_of(Some(&ready), &Err(Error::new("SecretMissing", "no Secret login")), None);
        assert_eq!(failed["nodes"], json!(["a"]));
        assert_eq!(condition(&failed, "Available"), ("True", "Ready"), "it goes on working");
        assert_eq!(condition(&failed, "Degraded"), ("True", "SecretMissing"));
        let waits = target_of(Some(&ready), &Err(Error::waiting("DeletionPending", "")), None);
        assert_eq!(condition(&waits, "Progressing"), ("True", "DeletionPending"));
        assert_eq!(condition(&waits, "Degraded"), ("False", "AsExpected"));
        let conflict = target_of(Some(&ready), &Ok(Outcome::ready()), Some("a field"));
        assert_eq!(condition(&conflict, "Degraded"), ("True", "Conflict"));
    }

    #[test]
    fn conditions_of_others_are_not_claimed() {
        let current = json!({ "conditions": [
            { "type": "Other", "status": "True", "reason": "A", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" },
        ] });
        let status = target_of(Some(&current), &Ok(Outcome::ready()), None);
        assert!(!status.to_string().contains("Other"));
    }
}
