//! The status that follows from a reconcile.
use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Map, Value, json};

use super::{Error, ErrorKind, Outcome};
use crate::{
    apply::StatusFields,
    conditions::{self, AVAILABLE, DEGRADED, PROGRESSING, READY},
    health::Ready,
};

/// The result of a reconcile.
pub struct Reconciled<'a> {
    /// Without an error there is an outcome. With one, its readiness does not count.
    pub outcome: Option<&'a Outcome>,
    pub error: Option<&'a Error>,
    /// A rollout waits for its turn.
    pub queued: bool,
    /// The first conflict, for users.
    pub conflict: Option<&'a str>,
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

/// The status to write. `current` is that of the object now, and `own` reads the fields that this operator wrote.
pub fn target(
    current: Option<&Value>,
    own: impl FnOnce() -> Map<String, Value>,
    found: Reconciled<'_>,
    fields: &StatusFields,
) -> Result<Map<String, Value>, Error> {
    let mut status = match found.outcome.and_then(|outcome| outcome.status.clone()) {
        Some(Ok(Value::Object(status))) => status,
        Some(Ok(_)) => return Err(Error::bug("the status given to Outcome::status is no object")),
        Some(Err(error)) => return Err(Error::bug(format!("the status cannot be serialized: {error}"))),
        None => own(),
    };
    status.retain(|name, value| {
        !value.is_null() && name != "conditions" && name != "observedGeneration" && is_served(name, fields)
    });
    if fields.has("observedGeneration")
        && let Some(generation) = found.generation
    {
        status.insert("observedGeneration".to_owned(), generation.into());
    }
    if fields.has("conditions") {
        let mut all = read(current);
        set(&mut all, &found);
        let extra = found
            .outcome
            .map(|outcome| outcome.conditions.as_slice())
            .unwrap_or_default();
        let is_own = |condition: &Condition| {
            let kind = condition.type_.as_str();
            [READY, AVAILABLE, PROGRESSING, DEGRADED].contains(&kind) || extra.iter().any(|(name, ..)| *name == kind)
        };
        let failed = found.error.is_some();
        // Conditions of other clients are repeated only in a list that is one value. After an error the operator's own
        // further conditions stay.
        all.retain(|condition| is_own(condition) || failed || !fields.keyed_conditions);
        for condition in all.iter_mut().filter(|condition| is_own(condition)) {
            condition.observed_generation = found.generation;
        }
        status.insert("conditions".to_owned(), json!(all));
    }
    Ok(status)
}

/// Returns false for a field that the API server's definition lacks, as during an upgrade or after a rollback. The API server would
/// reject the whole status.
fn is_served(name: &str, fields: &StatusFields) -> bool {
    /// The fields in the log so far.
    static MISSING: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let is_served = fields.has(name);
    if !is_served
        && MISSING
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(name.to_owned())
    {
        tracing::warn!(
            field = name,
            "the CustomResourceDefinition has no such status field: it is not written"
        );
    }
    is_served
}

fn set(all: &mut Vec<Condition>, found: &Reconciled<'_>) {
    let available = found.outcome.and_then(|outcome| outcome.available.as_ref());
    if let Some((holds, message)) = available {
        let reason = if *holds { "Available" } else { "Unavailable" };
        conditions::set(all, AVAILABLE, *holds, reason, message);
    }
    match (found.error, found.outcome) {
        (Some(error), _) => set_error(all, error, available.is_some()),
        (None, Some(outcome)) => set_outcome(all, outcome, found),
        (None, None) => {}
    }
    for (kind, state, reason, message) in found.outcome.iter().flat_map(|outcome| &outcome.conditions) {
        conditions::set(all, kind, *state, reason, message);
    }
}

fn set_outcome(all: &mut Vec<Condition>, outcome: &Outcome, found: &Reconciled<'_>) {
    let known = |kind: &str, all: &[Condition]| conditions::get(all, kind).cloned();
    let (reason, message) = match &outcome.ready {
        Ready::Yes => ("Ready", "everything is ready"),
        Ready::Waiting { reason, message } | Ready::Failed { reason, message } => (reason.as_str(), message.as_str()),
    };
    match (&outcome.available, &outcome.ready, found.conflict) {
        // A paused object keeps its conditions, unless its spec has changed.
        _ if outcome.paused && known(READY, all).is_some_and(|ready| ready.observed_generation == found.generation) => {
        }
        (Some((_, text)), Ready::Yes, None) => conditions::set(all, READY, true, reason, text),
        (_, ready, None) => conditions::set(all, READY, *ready == Ready::Yes, reason, message),
        (_, _, Some(conflict)) => conditions::set(all, READY, false, "Conflict", conflict),
    }
    let is_unset = !outcome.paused || known(AVAILABLE, all).is_none();
    if outcome.available.is_none() && is_unset {
        conditions::set(all, AVAILABLE, outcome.is_ready(), reason, message);
    }
    match &outcome.ready {
        _ if found.queued => {
            let message = "other objects of this operator change their pods first";
            conditions::set(all, PROGRESSING, false, "RolloutQueued", message);
        }
        Ready::Yes => conditions::set(all, PROGRESSING, false, "Settled", "everything is as desired"),
        Ready::Waiting { .. } => conditions::set(all, PROGRESSING, !outcome.paused, reason, message),
        Ready::Failed { .. } => conditions::set(all, PROGRESSING, false, reason, message),
    }
    match (found.conflict, &outcome.ready) {
        (Some(conflict), _) => conditions::set(all, DEGRADED, true, "Conflict", conflict),
        (None, Ready::Failed { .. }) => conditions::set(all, DEGRADED, true, reason, message),
        (None, _) => conditions::set(all, DEGRADED, false, "AsExpected", "nothing failed"),
    }
}

fn set_error(all: &mut Vec<Condition>, error: &Error, has_available: bool) {
    let (reason, message) = (error.reason(), error.to_string());
    conditions::set(all, READY, false, reason, &message);
    if !has_available && conditions::get(all, AVAILABLE).is_none() {
        conditions::set(all, AVAILABLE, false, reason, &message);
    }
    let waits = error.kind() == ErrorKind::Waiting;
    conditions::set(all, PROGRESSING, waits, reason, &message);
    match waits {
        true => conditions::set(all, DEGRADED, false, "AsExpected", "nothing failed"),
        false => conditions::set(all, DEGRADED, true, reason, &message),
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
        let found = Reconciled {
            outcome: result.as_ref().ok(),
            error: result.as_ref().err(),
            queued: false,
            conflict,
            generation: Some(3),
        };
        Value::Object(target(current, || own, found, &fields()).unwrap())
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
    fn fields_that_the_definition_lacks_are_left_out() {
        let older = StatusFields {
            names: Some(["nodes", "conditions"].map(str::to_owned).into()),
            ..fields()
        };
        let outcome = Outcome::ready().status(json!({ "nodes": ["a"], "settledNodes": 1 }));
        let found = Reconciled {
            outcome: Some(&outcome),
            error: None,
            queued: false,
            conflict: None,
            generation: Some(1),
        };
        let target = target(None, Map::new, found, &older).unwrap();
        assert_eq!(target.keys().collect::<Vec<_>>(), ["conditions", "nodes"]);
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
