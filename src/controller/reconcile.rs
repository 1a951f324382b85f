//! Reconciles one Memcached.
use std::{sync::Arc, time::Duration};

use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{ObjectReference, Pod},
        policy::v1::PodDisruptionBudget,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, Resource, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use kube_manager::{
    ObjectKey, drift,
    events::{Event, Severity},
    explain,
    worker::Done,
};

use super::{
    Context, Error,
    contests::TRUCE,
    ensure::{Ensured, ensure, remove},
    finalize::finalize,
    observed::{DeploymentState, Subject, is_paused},
    report::{self, Hold, Problem},
    trouble::trouble,
    writes::without_finalizer,
};
use crate::{
    api::v1alpha1::{DEGRADED, FINALIZER, Memcached},
    operand, settings,
};

/// An object in a namespace that is not synced is looked at again after this time.
const UNSYNCED: Duration = Duration::from_secs(10);

/// Brings the managed objects of the Memcached `key` to the desired state and updates its status.
///
/// Reads from the caches and writes only differences: reconciling a settled object sends no request.
///
/// # Errors
/// The first error; the caller retries later. Errors that users can fix are reported in the status.
pub async fn reconcile(context: Arc<Context>, key: ObjectKey) -> Result<Done, Error> {
    if !context.readiness.is_synced_in(&key.namespace) {
        return Ok(done(0, "namespace not synced", Some(UNSYNCED)));
    }
    let subject = context.caches.memcacheds.get(&key);
    let memcached = match subject.as_deref() {
        Some(Subject::Readable(memcached)) => Arc::clone(memcached),
        other => {
            context.forget(&key);
            return match other {
                Some(Subject::Unreadable { metadata, error }) => unreadable(&context, &key, metadata, error).await,
                _ => Ok(done(0, "gone", None)),
            };
        }
    };
    let mut pass = Pass {
        context: &context,
        memcached,
        key,
        writes: 0,
        requeue_after: None,
    };
    let result = if pass.memcached.metadata.deletion_timestamp.is_some() {
        context.forget(&pass.key);
        finalize(&mut pass).await
    } else {
        pass.converge().await
    };
    match result {
        // The Memcached was deleted meanwhile: nothing is left to do.
        Err(error) if error.is_not_found() && pass.is_gone() => Ok(done(pass.writes, "gone", None)),
        result => result.map(|outcome| done(pass.writes, &outcome, pass.requeue_after)),
    }
}

fn done(writes: u32, outcome: &str, requeue_after: Option<Duration>) -> Done {
    Done {
        writes,
        outcome: outcome.to_owned(),
        requeue_after,
    }
}

/// A Memcached that cannot be deserialized is reported and left alone, but does not have to stay for ever.
async fn unreadable(context: &Context, key: &ObjectKey, metadata: &ObjectMeta, why: &str) -> Result<Done, Error> {
    let finalizers = metadata.finalizers.clone().unwrap_or_default();
    if metadata.deletion_timestamp.is_some() && finalizers.iter().any(|known| known == FINALIZER) {
        let api: Api<Memcached> = Api::namespaced(context.client.clone(), &key.namespace);
        let patch = without_finalizer(FINALIZER, &finalizers, metadata.uid.as_deref());
        let removed = api
            .patch_metadata(&key.name, &PatchParams::default(), &Patch::Merge(patch))
            .await;
        removed.map_err(|source| Error::Request {
            action: "remove the finalizer of",
            kind: "Memcached".to_owned(),
            name: key.name.clone(),
            source: Box::new(source),
        })?;
        return Ok(done(1, "finalized without reading it", None));
    }
    let regarding = ObjectReference {
        api_version: Some(Memcached::api_version(&()).into_owned()),
        kind: Some(Memcached::kind(&()).into_owned()),
        namespace: Some(key.namespace.clone()),
        name: Some(key.name.clone()),
        uid: metadata.uid.clone(),
        ..ObjectReference::default()
    };
    tracing::error!(object = %key, error = why, "cannot deserialize object, leaving it alone");
    let note = format!(
        "This version of the operator cannot read the object and leaves it alone: {why}. Upgrade the operator, or correct \
         the field"
    );
    let event = Event {
        severity: Severity::Warning,
        reason: "Unreadable",
        action: "Reconcile",
        note,
    };
    context.events.queue_about(regarding, event);
    Ok(done(0, "unreadable", None))
}

impl Context {
    /// Drops what is remembered of `key`, which is gone or going.
    fn forget(&self, key: &ObjectKey) {
        self.rollouts.note(key, false);
        self.contests.forget(key);
        self.caches.own_statuses.forget(key);
        self.leave_line(key);
    }

    /// `key` needs no slot: lets the next begin.
    fn leave_line(&self, key: &ObjectKey) {
        for next in self.slots.leave(key) {
            self.queue.add(next);
        }
    }
}

/// State of reconciling one Memcached.
pub struct Pass<'a> {
    pub(super) context: &'a Context,
    pub(super) memcached: Arc<Memcached>,
    pub(super) writes: u32,
    pub(super) key: ObjectKey,
    pub(super) requeue_after: Option<Duration>,
}

impl Pass<'_> {
    async fn converge(&mut self) -> Result<String, Error> {
        if is_paused(&self.memcached) {
            self.context.leave_line(&self.key);
            let deployment = self.observed_deployment();
            self.report(deployment, None, Some(Hold::Paused)).await?;
            return Ok("paused".to_owned());
        }
        if !self
            .memcached
            .finalizers()
            .iter()
            .any(|finalizer| finalizer == FINALIZER)
        {
            self.add_finalizer(FINALIZER).await?;
        }
        let Some(image) = self.image() else {
            let deployment = self.observed_deployment();
            self.report(deployment, Some(image_not_set()), None).await?;
            return Ok("no image".to_owned());
        };
        let mut errors = Vec::new();
        let mut hold = None;
        let mut contested = Vec::new();
        match self.deployment(&image).await {
            Ok((waiting, path)) => {
                hold = waiting;
                contested.extend(path.map(|path| ("Deployment", path)));
            }
            Err(error) => errors.push(error),
        }
        for (kind, result) in [
            ("Service", self.service().await),
            ("PodDisruptionBudget", self.budget().await),
        ] {
            match result {
                Ok(path) => contested.extend(path.map(|path| (kind, path))),
                Err(error) => errors.push(error),
            }
        }
        let deployment = self.observed_deployment();
        let problem = match errors
            .iter()
            .find_map(|error| Some((error.reason()?, error.to_string())))
        {
            Some((reason, message)) => Some(Problem {
                reason: reason.to_owned(),
                message: self.known_message(reason, message),
                fatal: false,
            }),
            None => match contested.first() {
                Some((kind, path)) => {
                    self.recheck_after(Some(TRUCE));
                    Some(self.overridden(kind, path))
                }
                None => self.stuck(deployment.as_ref()).await,
            },
        };
        let phase = self.report(deployment, problem, hold).await?;
        match errors.into_iter().next() {
            Some(error) => Err(error),
            None => Ok(format!("{phase:?}").to_lowercase()),
        }
    }

    /// `message`, or what the status says already if only numbers differ: the text of a failed connection has another
    /// port each time.
    fn known_message(&self, reason: &str, message: String) -> String {
        match report::find(&self.memcached, DEGRADED) {
            Some(known)
                if known.status == "True" && known.reason == reason && report::similar(&known.message, &message) =>
            {
                known.message.clone()
            }
            _ => message,
        }
    }

    fn overridden(&self, kind: &str, path: &str) -> Problem {
        Problem {
            reason: "FieldOverridden".to_owned(),
            message: format!(
                "{path} of {kind} {} does not stay as applied: an admission webhook or another client sets it. Exempt the \
                 object there; the operator tries again every ten minutes",
                self.key.name
            ),
            fatal: false,
        }
    }

    pub(super) fn recheck_after(&mut self, time: Option<Duration>) {
        self.requeue_after = match (self.requeue_after, time) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }

    /// The image of the servers.
    fn image(&self) -> Option<String> {
        self.memcached
            .spec
            .image
            .clone()
            .or_else(|| self.context.settings.image.clone())
    }

    pub(super) fn uid(&self) -> &str {
        self.memcached.metadata.uid.as_deref().unwrap_or_default()
    }

    /// The cached Deployment, if this Memcached owns it.
    fn observed_deployment(&self) -> Option<DeploymentState> {
        let state = self.context.caches.deployments.get(&self.key)?;
        self.owns(&state).then(|| (*state).clone())
    }

    pub(super) fn owns(&self, state: &DeploymentState) -> bool {
        let owner = state.child.controller.as_ref();
        owner.is_some_and(|owner| owner.uid == self.uid())
    }

    /// Returns why the Deployment does not get its new template yet, and the path of a contested field.
    async fn deployment(&mut self, image: &str) -> Result<(Option<Hold>, Option<String>), Error> {
        let observed = self.context.caches.deployments.get(&self.key);
        let desired = operand::deployment(&self.memcached, image);
        let (desired, hold) = match self.in_turn(desired, observed.as_deref()) {
            (Some(desired), hold) => (desired, hold),
            (None, hold) => return Ok((hold, None)),
        };
        let caches = &self.context.caches.deployments;
        let owner = self.memcached.metadata.uid.clone().unwrap_or_default();
        let begins = self.context.slots.holds(&self.key)
            && observed.as_deref().is_some_and(|state| {
                let desired = serde_json::to_value(&desired).unwrap_or_default();
                state.child.replaces_pods(&desired)
            });
        let ensured = ensure(self.context, caches, &desired, &owner, &mut self.writes).await;
        if ensured.is_err() && begins {
            // Nothing rolls: whatever refuses the change here must not keep the others waiting.
            self.context.leave_line(&self.key);
        }
        let ensured = ensured?;
        let size = self.memcached.spec.size;
        let replicas = observed
            .as_deref()
            .and_then(|state| state.child.field("/spec/replicas"))
            .and_then(|value| value.as_i64());
        let resized = replicas.filter(|replicas| *replicas != i64::from(size));
        match ensured {
            Ensured::Settled => {}
            Ensured::Created => self.record(
                "Created",
                "Create",
                format!("Created Deployment {} with {size} replicas", self.key.name),
            ),
            Ensured::Updated => match resized {
                Some(from) => self.record("Resized", "Resize", format!("Resized from {from} to {size}")),
                None => self.record("Updated", "Update", format!("Updated Deployment {}", self.key.name)),
            },
            Ensured::Restored(path) => self.record_drift_reverted("Deployment", &path),
            Ensured::Contested(path) => return Ok((hold, Some(path))),
        }
        Ok((hold, None))
    }

    /// The Deployment to apply now: `desired`, or what the servers run with while others are rolled out first. `None` if
    /// the Deployment has to stay as it is.
    fn in_turn(&self, desired: Deployment, observed: Option<&DeploymentState>) -> (Option<Deployment>, Option<Hold>) {
        let Some(state) = observed.filter(|state| self.owns(state)) else {
            self.context.leave_line(&self.key);
            return (Some(desired), None);
        };
        let replaces = |deployment: &Deployment| {
            let desired = serde_json::to_value(deployment).unwrap_or_default();
            // What another client changed is reverted at once.
            let reverts = state.child.fingerprint() == Some(drift::fingerprint(&desired));
            !reverts && state.child.replaces_pods(&desired)
        };
        if !replaces(&desired) {
            if state.is_complete(self.memcached.spec.size) || !self.context.slots.holds(&self.key) {
                self.context.leave_line(&self.key);
            }
            return (Some(desired), None);
        }
        // With the image that runs: if nothing else differs, only the default image has changed.
        let now = state.image.as_deref();
        let as_it_runs = now.map(|image| operand::deployment(&self.memcached, image));
        let as_it_runs = as_it_runs.filter(|deployment| !replaces(deployment));
        let status = self.memcached.status.as_ref();
        let new_spec = status.and_then(|status| status.observed_generation) != self.memcached.metadata.generation;
        let by_user = if as_it_runs.is_some() {
            self.memcached.spec.image.is_some()
        } else {
            new_spec
        };
        // Nothing is lost where nothing runs.
        if by_user || (state.ready == 0 && !self.context.slots.holds(&self.key)) {
            self.context.leave_line(&self.key);
            return (Some(desired), None);
        }
        if self.context.slots.take(&self.key, &self.memcached) {
            return (Some(desired), None);
        }
        let holders: Vec<String> = self.context.slots.holders().iter().map(ToString::to_string).collect();
        let others = if holders.is_empty() {
            "an older one".to_owned()
        } else {
            holders.join(", ")
        };
        (as_it_runs, Some(Hold::Waiting(others)))
    }

    async fn service(&mut self) -> Result<Option<String>, Error> {
        let desired = operand::service(&self.memcached);
        let caches = &self.context.caches.services;
        let owner = self.memcached.metadata.uid.clone().unwrap_or_default();
        let ensured = ensure(self.context, caches, &desired, &owner, &mut self.writes).await?;
        Ok(self.note("Service", ensured))
    }

    async fn budget(&mut self) -> Result<Option<String>, Error> {
        let caches = &self.context.caches.budgets;
        let owner = self.memcached.metadata.uid.clone().unwrap_or_default();
        let Some(desired) = operand::budget(&self.memcached) else {
            let client = &self.context.client;
            self.writes += remove::<PodDisruptionBudget>(client, caches, &self.key, &owner).await?;
            return Ok(None);
        };
        let ensured = ensure(self.context, caches, &desired, &owner, &mut self.writes).await?;
        Ok(self.note("PodDisruptionBudget", ensured))
    }

    /// Publishes what was done to an object of `kind`; returns the path of a contested field.
    fn note(&self, kind: &str, ensured: Ensured) -> Option<String> {
        match ensured {
            Ensured::Restored(path) => {
                self.record_drift_reverted(kind, &path);
                None
            }
            Ensured::Contested(path) => Some(path),
            _ => None,
        }
    }

    /// For a failed Deployment: its reason and the problem of its pods.
    async fn stuck(&self, deployment: Option<&DeploymentState>) -> Option<Problem> {
        let state = deployment?;
        let (reason, message) = state.failure.clone()?;
        if state.ready >= self.memcached.spec.size {
            return None;
        }
        let pods: Api<Pod> = Api::namespaced(self.context.client.clone(), &self.key.namespace);
        let selector = ListParams::default()
            .labels(&operand::selector_text(&self.memcached))
            .limit(100);
        let found = match pods.list(&selector).await {
            Ok(pods) => trouble(&pods.items),
            Err(error) => {
                tracing::warn!(error = %explain::request(&error), object = %self.key, "cannot list the pods of a stuck Deployment");
                None
            }
        };
        let message = found.map_or(message.clone(), |found| format!("{message} {found}"));
        Some(Problem {
            reason,
            message,
            fatal: false,
        })
    }
}

fn image_not_set() -> Problem {
    Problem {
        reason: "ImageNotSet".to_owned(),
        message: format!(
            "Unable to find {} environment variable with the image, nor {}: set spec.image, or one of the variables on \
             the operator",
            settings::IMAGE,
            settings::RELATED_IMAGE
        ),
        fatal: true,
    }
}

#[cfg(test)]
#[path = "reconcile_tests.rs"]
mod tests;
