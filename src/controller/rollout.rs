//! Whose change of the servers it is, and whether its turn has come.
//!
//! What users change is rolled out at once; what the operator changes, by a new version of it or a new default image,
//! when it is the object's turn: see [`slots`](super::slots). Which of the two it is shows from what was applied last. The
//! Deployment itself says that, in an annotation: the status has what was seen, which a pass that fails reports too.
use std::sync::LazyLock;

use kube_manager::{ObjectKey, drift};
use serde_json::{Value, json};

use super::{
    Context, Error,
    applied::{Applied, SERVERS},
    observed::{DeploymentState, is_paused},
    pass::Pass,
    report::{self, Hold},
};
use crate::{
    api::v1alpha1::{Memcached, MemcachedSpec, PROGRESSING},
    operand,
};

/// The Deployment of a Memcached whose servers run a certain image.
struct Rendered {
    /// As JSON.
    deployment: Value,
    applied: Applied,
}

impl Rendered {
    fn new(memcached: &Memcached, image: &str) -> Self {
        let deployment = serde_json::to_value(operand::deployment(memcached, image)).unwrap_or_default();
        let template = deployment.pointer("/spec/template").map(drift::fingerprint);
        Self {
            applied: Applied {
                in_turn: false,
                template: template.unwrap_or_default(),
                spec: digest(&memcached.spec),
                image: image.to_owned(),
            },
            deployment,
        }
    }

    /// Returns true if other pods than those of the template that was applied last are asked for. What another client made of that
    /// template does not matter: it is reverted at once.
    fn replaces(&self, state: &DeploymentState, before: Option<&Applied>) -> bool {
        match before {
            Some(before) => before.template != self.applied.template,
            // Applied by a version that did not keep it.
            None => {
                let reverts = state.child.fingerprint() == Some(&drift::fingerprint(&self.deployment));
                !reverts && state.child.replaces_pods(&self.deployment)
            }
        }
    }

    /// The Deployment to apply.
    fn apply(self, in_turn: bool) -> Step {
        let applied = Applied {
            in_turn,
            ..self.applied
        };
        let mut desired = self.deployment;
        if let Some(metadata) = desired.get_mut("metadata").and_then(Value::as_object_mut) {
            let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
            if let Some(annotations) = annotations.as_object_mut() {
                annotations.insert(SERVERS.to_owned(), Value::from(applied.to_string()));
            }
        }
        Step::Apply { desired, begins: false }
    }

    /// Returns true if the Deployment is as [`apply`](Self::apply) in turn would leave it.
    fn is_settled(&self, state: &DeploymentState) -> bool {
        state.child.differs(&self.deployment).is_none()
            && state
                .applied()
                .is_some_and(|before| before.in_turn && before.spec == self.applied.spec)
    }
}

/// A digest of what `spec` says about each server. What is at its default counts as not said: so a field that a later version
/// of the operator adds does not look like a change of the user's.
fn digest(spec: &MemcachedSpec) -> String {
    static DEFAULT: LazyLock<Value> =
        LazyLock::new(|| serde_json::to_value(MemcachedSpec::default()).unwrap_or_default());
    let mut said = serde_json::to_value(spec).unwrap_or_default();
    if let Some(said) = said.as_object_mut() {
        said.retain(|name, value| name != "size" && DEFAULT.get(name) != Some(value));
    }
    drift::fingerprint(&said)
}

/// What to do with a Deployment now.
pub(super) enum Step {
    /// Apply it; that may begin a rollout in turn.
    Apply {
        /// Its JSON.
        desired: Value,
        /// It may.
        begins: bool,
    },
    /// Only change the number of servers: an earlier version of the operator made the template that runs.
    Resize,
    /// Nothing.
    Keep,
}

impl Step {
    fn beginning(self) -> Self {
        match self {
            Self::Apply { desired, .. } => Self::Apply { desired, begins: true },
            other => other,
        }
    }
}

impl Pass<'_> {
    /// Notes whether the rollout to `image` has begun, going by the cache and `error`.
    pub(super) fn note_begun(&self, image: &str, error: Option<&Error>) {
        let wanted = Rendered::new(&self.memcached, image).applied.template;
        let state = self.context.caches.deployments.unpack(&self.key);
        let before = state.and_then(|state| state.applied());
        if before.is_some_and(|before| before.template == wanted) {
            self.context.slots.hold(&self.key);
        } else if error.is_none_or(Error::is_refusal) {
            // Nothing rolls: whatever refuses the change here must not keep the others waiting.
            self.context.lose_turn(&self.key);
        } else {
            self.context.slots.doubt(&self.key);
        }
    }

    /// What to do with the Deployment now, to run `image`; and why that is not all.
    pub(super) fn in_turn(&self, image: &str, observed: Option<&DeploymentState>) -> (Step, Option<Hold>) {
        let slots = &self.context.slots;
        let desired = Rendered::new(&self.memcached, image);
        let Some(state) = observed.filter(|state| self.owns(state)) else {
            self.context.leave_line(&self.key);
            return (desired.apply(false), None);
        };
        let before = state.applied();
        let in_turn = match &before {
            Some(before) => before.in_turn,
            None => slots.holds(&self.key),
        };
        if in_turn && state.is_underway() && slots.may_have_begun(&self.key) {
            slots.hold(&self.key);
        }
        let replaces = desired.replaces(state, before.as_ref());
        if !replaces {
            let rolls = in_turn && slots.holds(&self.key) && !state.is_complete();
            if !rolls {
                self.context.leave_line(&self.key);
            }
            // Whose rollout it was is not worth a write of its own when it is over.
            let in_turn = rolls || (in_turn && desired.is_settled(state));
            return (desired.apply(in_turn), None);
        }
        let running = before.as_ref().map(|before| &before.image).or(state.image.as_ref());
        let as_it_runs = running
            .map(|image| Rendered::new(&self.memcached, image))
            .filter(|running| !running.replaces(state, before.as_ref()));
        let by_user = match &before {
            Some(before) => before.spec != desired.applied.spec,
            None if as_it_runs.is_some() => self.memcached.spec.image.is_some(),
            None => {
                let status = self.memcached.status.as_ref();
                status.and_then(|status| status.observed_generation) != self.memcached.metadata.generation
            }
        };
        // Nothing is lost where nothing runs.
        if by_user || (state.ready == 0 && !slots.holds(&self.key)) {
            self.context.leave_line(&self.key);
            return (desired.apply(false), None);
        }
        if slots.take(&self.key, &self.memcached) {
            return (desired.apply(true).beginning(), None);
        }
        // No name: objects that wait are not looked at again whenever another one begins.
        let hold = Some(Hold::Waiting("another Memcached".to_owned()));
        match as_it_runs {
            Some(running) => (running.apply(in_turn), hold),
            None if state.wanted() != self.memcached.spec.size => (Step::Resize, hold),
            None => (Step::Keep, hold),
        }
    }
}

impl Context {
    /// Marks the rollouts that an earlier leader began.
    pub fn resume(&self) {
        self.caches.memcacheds.for_each(|key, subject| {
            let Some(memcached) = subject.memcached().filter(|memcached| !is_paused(memcached)) else {
                return;
            };
            let reported = report::find(&memcached, PROGRESSING)
                .is_some_and(|known| known.status == "True" && known.reason == report::ROLLING_OUT);
            // The status may be older than the rollout, or say that it is stuck.
            let underway = || {
                let state = self.caches.deployments.unpack(key);
                state.is_some_and(|state| {
                    state.child.controller == memcached.metadata.uid
                        && state.is_underway()
                        && state
                            .applied()
                            .is_some_and(|applied| applied.in_turn && Some(applied.image) == state.image)
                })
            };
            if reported || underway() {
                self.slots.hold(key);
            }
        });
    }

    /// Lets others begin in the place of those that may or may not have begun a while ago.
    pub fn end_doubts(&self) {
        for next in self.slots.end_doubts() {
            self.queue.add(next);
        }
    }

    /// `key` had a slot, and its rollout has not begun: others may try.
    fn lose_turn(&self, key: &ObjectKey) {
        for next in self.slots.fail(key) {
            self.queue.add(next);
        }
    }
}
