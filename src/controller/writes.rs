//! What a pass writes about its Memcached: status, finalizers and events.
use std::sync::Arc;

use k8s_openapi::{apimachinery::pkg::apis::meta::v1::ObjectMeta, jiff::Timestamp};
use kube::{
    Resource, ResourceExt,
    api::{Patch, PatchParams},
    core::PartialObjectMetaExt,
};
use kube_manager::events::{Event, Severity};
use serde_json::{Value, json};

use super::{
    Error, FIELD_MANAGER,
    observed::{DeploymentState, Subject},
    pass::Pass,
    report::{self, Facts, Hold, Problem},
};
use crate::{
    api::v1alpha1::{DEGRADED, Memcached, MemcachedStatus, Phase},
    operand,
};

/// The patch that removes `finalizer`. It needs no resource version: the API server lets finalizers of an object that is
/// being deleted only go, and so rejects it if another has gone meanwhile.
pub(super) fn without_finalizer(finalizer: &str, finalizers: &[String], uid: Option<&str>) -> Value {
    let rest: Vec<&String> = finalizers.iter().filter(|known| *known != finalizer).collect();
    json!({ "metadata": { "uid": uid, "finalizers": rest } })
}

impl Pass<'_> {
    /// Writes the status if it changed, or leaves that for later, and an event for a new problem. Returns the phase.
    pub(super) async fn report(
        &mut self,
        deployment: Option<DeploymentState>,
        problem: Option<Problem>,
        hold: Option<Hold>,
    ) -> Result<Phase, Error> {
        let memcached = Arc::clone(&self.memcached);
        let is_behind = self.is_behind(deployment.as_ref(), hold.as_ref());
        let facts = Facts {
            memcached: &memcached,
            deployment: deployment.as_ref(),
            nodes: self.context.caches.servers.of(&self.key),
            hold,
            is_behind,
            by_operator: self.context.slots.holds(&self.key),
            problem,
            now: Timestamp::now(),
        };
        let status = report::status(&facts);
        let phase = status.phase.unwrap_or(Phase::Pending);
        self.context
            .rollouts
            .note(&self.key, report::is_rolling(&facts, &status));
        self.recheck_after(report::recheck(&facts));
        if memcached
            .status
            .as_ref()
            .is_some_and(|before| report::same(before, &status))
        {
            return Ok(phase);
        }
        if facts.problem.is_none() && facts.hold.is_none() && self.can_report_later() {
            self.context.queue.add_last(self.key.clone());
            return Ok(phase);
        }
        let before = report::find(&memcached, DEGRADED);
        self.write_status(status).await?;
        let now = report::find(&self.memcached, DEGRADED).filter(|now| now.status == "True");
        if let Some(now) = now
            && before.is_none_or(|before| (&before.reason, &before.message) != (&now.reason, &now.message))
        {
            self.publish(Severity::Warning, "Failed", "Reconcile", now.message.clone());
        }
        Ok(phase)
    }

    /// Returns true if the status can wait: what it would tell is under way, and the API server is asked for other Memcacheds, whose
    /// changes go before reports.
    fn can_report_later(&self) -> bool {
        self.writes > 0 && self.context.queue.has_others(&self.key)
    }

    /// Returns true if a change of the spec has yet to be applied, because of `hold`. New defaults of the operator that wait for their
    /// turn are no such change.
    fn is_behind(&self, deployment: Option<&DeploymentState>, hold: Option<&Hold>) -> bool {
        let (Some(hold), true) = (hold, report::may_be_behind(&self.memcached)) else {
            return false;
        };
        match (hold, deployment) {
            (Hold::Failed | Hold::Paused, None) | (Hold::Failed, Some(_)) => true,
            (Hold::Paused | Hold::Waiting(_), Some(state)) => {
                let image = self.memcached.spec.image.as_ref().or(state.image.as_ref());
                let desired = operand::deployment(&self.memcached, image.map_or("", String::as_str));
                let desired = serde_json::to_value(desired).unwrap_or_default();
                state.child.differs(&desired).is_some()
            }
            (Hold::Waiting(_), None) | (Hold::Deletion(_), _) => false,
        }
    }

    /// Writes `status` and keeps the returned object.
    pub(super) async fn write_status(&mut self, status: MemcachedStatus) -> Result<(), Error> {
        self.context.caches.own_statuses.note(&self.key, &status);
        let configuration = json!({
            "apiVersion": Memcached::api_version(&()),
            "kind": Memcached::kind(&()),
            "metadata": { "name": self.key.name, "uid": self.uid() },
            "status": status,
        });
        let parameters = PatchParams::apply(FIELD_MANAGER).force();
        let written = self
            .api()
            .patch_status(&self.key.name, &parameters, &Patch::Apply(configuration))
            .await;
        let written = written.map_err(|error| self.error("write the status of", error))?;
        self.keep(written);
        Ok(())
    }

    /// Adds `finalizer`; fails if the object has changed.
    pub(super) async fn add_finalizer(&mut self, finalizer: &str) -> Result<(), Error> {
        let mut finalizers = self.memcached.finalizers().to_vec();
        finalizers.push(finalizer.to_owned());
        // With the resource version the patch is rejected if the object has changed since it was read.
        let patch = json!({ "metadata": {
            "finalizers": finalizers,
            "resourceVersion": self.memcached.resource_version(),
        } });
        self.patch_finalizers(patch).await
    }

    /// Removes `finalizer`.
    pub(super) async fn remove_finalizer(&mut self, finalizer: &str) -> Result<(), Error> {
        let meta = &self.memcached.metadata;
        let patch = without_finalizer(finalizer, self.memcached.finalizers(), meta.uid.as_deref());
        self.patch_finalizers(patch).await
    }

    pub(super) async fn patch_finalizers(&mut self, patch: Value) -> Result<(), Error> {
        let written = self
            .api()
            .patch(&self.key.name, &PatchParams::default(), &Patch::Merge(patch))
            .await;
        let written = written.map_err(|error| self.error("set the finalizers of", error))?;
        if written.metadata.deletion_timestamp.is_none() || !written.finalizers().is_empty() {
            self.keep(written);
        } else {
            // That was the last one: the object is gone.
            self.context.caches.memcacheds.deleted(&self.key, self.uid());
            self.context.caches.own_statuses.forget(&self.key);
            self.writes += 1;
        }
        Ok(())
    }

    /// Goes on with what the API server answered to a write.
    pub(super) fn keep(&mut self, written: Memcached) {
        self.writes += 1;
        let (uid, version) = (written.uid(), written.resource_version());
        let metadata = ObjectMeta {
            uid,
            resource_version: version,
            name: Some(self.key.name.clone()),
            namespace: Some(self.key.namespace.clone()),
            ..ObjectMeta::default()
        };
        let answer = metadata.into_response_partial::<Memcached>();
        let subject = Subject::readable(written);
        if let Some(memcached) = subject.memcached() {
            self.memcached = Arc::new(memcached);
        }
        self.context.caches.memcacheds.written(&answer, subject);
    }

    pub(super) fn record(&self, reason: &'static str, action: &'static str, note: String) {
        self.publish(Severity::Normal, reason, action, note);
    }

    pub(super) fn record_drift_reverted(&self, kind: &str, path: &str) {
        let note = format!(
            "Reverted a change of {path} in {kind} {} by another client",
            self.key.name
        );
        self.record("Restored", "Restore", note);
    }

    pub(super) fn publish(&self, severity: Severity, reason: &'static str, action: &'static str, note: String) {
        self.context.events.queue(
            self.memcached.as_ref(),
            Event {
                severity,
                reason,
                action,
                note,
            },
        );
    }
}
