//! The state of reconciling one Memcached.
use std::{sync::Arc, time::Duration};

use kube::Api;
use kube_manager::ObjectKey;

use super::{Context, Error, observed::DeploymentState};
use crate::api::v1alpha1::Memcached;

/// State of reconciling one Memcached.
pub struct Pass<'a> {
    pub(super) context: &'a Context,
    pub(super) memcached: Arc<Memcached>,
    pub(super) writes: u32,
    pub(super) key: ObjectKey,
    pub(super) requeue_after: Option<Duration>,
}

/// Calls a function when it is dropped. A pass may be cancelled wherever it waits.
pub(super) struct OnDrop<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> OnDrop<F> {
    /// Calls `run` when dropped.
    pub(super) fn new(run: F) -> Self {
        Self(Some(run))
    }

    /// Calls nothing.
    pub(super) fn defuse(mut self) {
        self.0 = None;
    }
}

impl<F: FnOnce()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        if let Some(run) = self.0.take() {
            run();
        }
    }
}

impl Pass<'_> {
    pub(super) fn api(&self) -> Api<Memcached> {
        Api::namespaced(self.context.client.clone(), &self.key.namespace)
    }

    pub(super) fn uid(&self) -> &str {
        self.memcached.metadata.uid.as_deref().unwrap_or_default()
    }

    /// Returns true if the Memcached is gone, or another has its name.
    pub(super) fn is_gone(&self) -> bool {
        let now = self.context.caches.memcacheds.get(&self.key);
        now.is_none_or(|now| now.uid() != self.memcached.metadata.uid)
    }

    /// Returns true if the Memcached owns the Deployment.
    pub(super) fn owns(&self, state: &DeploymentState) -> bool {
        state.child.controller.as_deref() == Some(self.uid())
    }

    /// Looks at the Memcached again after `time` at the latest.
    pub(super) fn recheck_after(&mut self, time: Option<Duration>) {
        self.requeue_after = match (self.requeue_after, time) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }

    pub(super) fn error(&self, action: &'static str, source: kube::Error) -> Error {
        Error::Request {
            action,
            kind: "Memcached".to_owned(),
            name: self.key.name.clone(),
            source: Box::new(source),
        }
    }
}
