//! Results of reconciles.
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::{
    conditions::State,
    health::{Health, Ready},
};

/// The result of a successful reconcile. It becomes the conditions `Ready`, `Available`, `Progressing` and `Degraded`.
///
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use kube_manager::reconcile::Outcome;
///
/// let deployment = Deployment::default();
/// let outcome = Outcome::from(&deployment).requeue_after(std::time::Duration::from_secs(60));
/// assert!(!outcome.is_ready());
/// ```
#[derive(Clone, Debug)]
pub struct Outcome {
    pub(crate) ready: Ready,
    pub(crate) available: Option<(bool, String)>,
    pub(crate) requeue_after: Option<Duration>,
    pub(crate) status: Option<Result<Value, String>>,
    pub(crate) conditions: Vec<(&'static str, State, String, String)>,
    pub(crate) paused: bool,
}

impl Outcome {
    /// Everything is as the object asks for.
    pub fn ready() -> Self {
        Self::new(Ready::Yes)
    }

    /// Something has to happen first. `reason` is in CamelCase.
    pub fn waiting(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Ready::waiting(reason, message))
    }

    /// The user has paused the object: nothing was applied, and nothing is deleted.
    pub fn paused(message: impl Into<String>) -> Self {
        Self {
            paused: true,
            ..Self::new(Ready::waiting("Paused", message))
        }
    }

    /// Something failed that does not heal by itself. `reason` is in CamelCase.
    pub fn failed(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Ready::failed(reason, message))
    }

    fn new(ready: Ready) -> Self {
        Self {
            ready,
            available: None,
            requeue_after: None,
            status: None,
            conditions: Vec::new(),
            paused: false,
        }
    }

    /// Returns true if everything is as the object asks for.
    pub fn is_ready(&self) -> bool {
        self.ready == Ready::Yes
    }

    /// Returns true if something failed that does not heal by itself.
    pub fn is_failed(&self) -> bool {
        matches!(self.ready, Ready::Failed { .. })
    }

    /// The state that [`available`](Self::available) set.
    pub fn is_available(&self) -> Option<bool> {
        self.available.as_ref().map(|(yes, _)| *yes)
    }

    /// The message of an outcome that is not ready.
    pub fn message(&self) -> Option<&str> {
        match &self.ready {
            Ready::Yes => None,
            Ready::Waiting { message, .. } | Ready::Failed { message, .. } => Some(message),
        }
    }

    /// This, if it is not ready, and otherwise `other`.
    #[must_use]
    pub fn and(self, other: impl Into<Self>) -> Self {
        let other = other.into();
        if self.is_ready() {
            Self {
                ready: other.ready,
                ..self
            }
        } else {
            self
        }
    }

    /// Sets the condition `Available`: `yes` if the object does its work. It may do so although it is not ready, as during a
    /// rollout.
    #[must_use]
    pub fn available(self, yes: bool, message: impl Into<String>) -> Self {
        Self {
            available: Some((yes, message.into())),
            ..self
        }
    }

    /// The fields that [`status`](Self::status) set, for unit tests.
    pub fn fields(&self) -> Option<&Value> {
        self.status.as_ref()?.as_ref().ok()
    }

    /// Reconciles again after `delay` at the latest.
    #[must_use]
    pub fn requeue_after(self, delay: Duration) -> Self {
        Self {
            requeue_after: Some(delay),
            ..self
        }
    }

    /// Sets the status fields other than conditions and `observedGeneration`, which the library sets. Without this call,
    /// the fields do not change.
    #[must_use]
    pub fn status(self, status: impl Serialize) -> Self {
        let status = serde_json::to_value(status).map_err(|error| error.to_string());
        Self {
            status: Some(status),
            ..self
        }
    }

    /// A further condition, or another one in the place of `Ready`, `Available`, `Progressing` or `Degraded`.
    #[must_use]
    pub fn condition(
        mut self,
        kind: &'static str,
        state: impl Into<State>,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        self.conditions
            .push((kind, state.into(), reason.into(), message.into()));
        self
    }
}

impl<C: Health> From<&C> for Outcome {
    fn from(object: &C) -> Self {
        Self::new(object.ready())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_is_not_ready_counts() {
        let outcome = Outcome::ready()
            .and(Outcome::waiting("One", "one"))
            .and(Outcome::waiting("Two", "two"));
        assert_eq!(outcome.message(), Some("one"));
        assert!(Outcome::ready().and(Outcome::ready()).is_ready());
    }
}
