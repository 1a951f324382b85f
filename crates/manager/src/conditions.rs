//! Conditions in the status of custom resources.
use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::Timestamp,
};
use serde_json::{Value, json};

/// The object matches its spec. kstatus, Flux and Argo CD wait for it.
pub const READY: &str = "Ready";
/// The object does its work. It may do so while it is not ready, as during a rollout.
pub const AVAILABLE: &str = "Available";
/// The operator or Kubernetes changes the object to the state in its spec.
pub const PROGRESSING: &str = "Progressing";
/// Something is wrong that does not heal by itself.
pub const DEGRADED: &str = "Degraded";

/// The status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The condition is true.
    True,
    /// The condition is false.
    False,
    /// The operator cannot determine the status.
    Unknown,
}

impl State {
    /// The value in the condition's field `status`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for State {
    fn from(holds: bool) -> Self {
        match holds {
            true => Self::True,
            false => Self::False,
        }
    }
}

/// Sets the condition `kind`. Its transition time stays while its status does.
///
/// ```
/// use kube_manager::conditions;
///
/// let mut all = Vec::new();
/// conditions::set(&mut all, "Available", true, "Ready", "3 of 3 pods are ready");
/// let since = all[0].last_transition_time.clone();
/// conditions::set(&mut all, "Available", true, "Ready", "4 of 4 pods are ready");
/// assert_eq!(all[0].last_transition_time, since);
/// ```
pub fn set(conditions: &mut Vec<Condition>, kind: &str, state: impl Into<State>, reason: &str, message: &str) {
    let status = state.into().as_str();
    let known = conditions.iter_mut().find(|known| known.type_ == kind);
    let since = known
        .as_ref()
        .filter(|known| known.status == status)
        .map(|known| known.last_transition_time.clone());
    let condition = Condition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: valid_reason(reason),
        message: shorten(message),
        observed_generation: known.as_ref().and_then(|known| known.observed_generation),
        last_transition_time: since.unwrap_or_else(now),
    };
    match known {
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
}

/// The condition `kind`.
pub fn get<'c>(conditions: &'c [Condition], kind: &str) -> Option<&'c Condition> {
    conditions.iter().find(|condition| condition.type_ == kind)
}

/// Returns true if the condition `kind` is true.
pub fn is_true(conditions: &[Condition], kind: &str) -> bool {
    get(conditions, kind).is_some_and(|condition| condition.status == "True")
}

/// The OpenAPI schema of a list of conditions, with the bounds that Kubernetes' own kinds have: one entry for each type.
///
/// ```
/// use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
/// use schemars::{Schema, SchemaGenerator};
///
/// #[derive(schemars::JsonSchema)]
/// struct Status {
///     #[schemars(schema_with = "conditions")]
///     conditions: Vec<Condition>,
/// }
///
/// fn conditions(_: &mut SchemaGenerator) -> Schema {
///     kube_manager::conditions::schema().try_into().unwrap_or_default()
/// }
/// ```
pub fn schema() -> Value {
    json!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "description": "Condition contains details for one aspect of the current state of this resource.",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "lastTransitionTime": {
                    "description": "Last time the condition transitioned from one status to another.",
                    "type": "string",
                    "format": "date-time",
                },
                "message": {
                    "description": "Human-readable message with details about the last transition.",
                    "type": "string",
                    "maxLength": 32768,
                },
                "observedGeneration": {
                    "description": "The .metadata.generation that the condition was set based upon. If it is lower than the current .metadata.generation, the condition is out of date.",
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                },
                "reason": {
                    "description": "Machine-readable reason for the last transition, in CamelCase.",
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                },
                "status": {
                    "description": "Status of the condition: True, False or Unknown.",
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                },
                "type": {
                    "description": "Type of the condition, in CamelCase or foo.example.com/CamelCase.",
                    "type": "string",
                    "maxLength": 316,
                    "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
                },
            },
        },
    })
}

/// The API server stores seconds.
fn now() -> Time {
    let seconds = Timestamp::now().as_second();
    Time(Timestamp::from_second(seconds).unwrap_or_default())
}

/// The API server accepts only names in CamelCase.
fn valid_reason(reason: &str) -> String {
    let allowed: String = reason
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || *c == '_')
        .take(1024)
        .collect();
    match allowed.starts_with(|c: char| c.is_ascii_alphabetic()) {
        true => allowed,
        false => "Failed".to_owned(),
    }
}

/// The API server's limit is 32,768 bytes, more than a reader needs.
pub(crate) fn shorten(message: &str) -> String {
    message.chars().take(2048).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transition_time_changes_with_the_status_only() {
        let old = Time(Timestamp::from_second(1).unwrap());
        let mut all = Vec::new();
        set(&mut all, "Degraded", false, "AsExpected", "");
        all[0].last_transition_time = old.clone();
        set(&mut all, "Degraded", false, "Other", "text");
        assert_eq!((&all[0].last_transition_time, all[0].reason.as_str()), (&old, "Other"));
        set(&mut all, "Degraded", true, "Failed", "text");
        assert_ne!(all[0].last_transition_time, old);
        assert!(is_true(&all, "Degraded") && !is_true(&all, "Available"));
        assert_eq!(all.len(), 1);
    }

    #[test]
    fn reasons_are_made_valid() {
        let mut all = Vec::new();
        set(&mut all, "Degraded", true, "3 of 4: no!", "");
        assert_eq!(all[0].reason, "Failed");
        set(&mut all, "Degraded", true, "Not Found", "");
        assert_eq!(all[0].reason, "NotFound");
    }
}
