//! Reconciles one Memcached.
use std::sync::Arc;

use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{Pod, Service},
        policy::v1::PodDisruptionBudget,
    },
    jiff::Timestamp,
};
use kube::{
    Api, Resource, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use olmkit_manager::{
    ObjectKey,
    events::{Event, Severity},
    explain,
    worker::Done,
};
use serde_json::json;

use super::{
    Context, Error, FIELD_MANAGER,
    ensure::{Ensured, ensure, remove},
    finalize::finalize,
    observed::DeploymentState,
    report::{self, Facts, Problem},
    trouble::trouble,
};
use crate::{
    api::v1alpha1::{DEGRADED, FINALIZER, Memcached, MemcachedStatus, Phase},
    operand, settings,
};

/// Brings the managed objects of the Memcached `key` to the desired state and updates its status.
///
/// Reads from the caches and writes only differences: reconciling a settled object sends no request.
///
/// # Errors
/// The first error; the caller retries later. Errors that users can fix are reported in the status.
pub async fn reconcile(context: Arc<Context>, key: ObjectKey) -> Result<Done, Error> {
    let Some(memcached) = context.caches.memcacheds.get(&key) else {
        context.rollouts.note(&key, false);
        return Ok(Done {
            writes: 0,
            outcome: "gone".to_owned(),
            requeue_after: None,
        });
    };
    let mut pass = Pass {
        context: &context,
        memcached,
        key,
        writes: 0,
    };
    let result = if pass.memcached.metadata.deletion_timestamp.is_some() {
        context.rollouts.note(&pass.key, false);
        finalize(&mut pass).await
    } else {
        pass.converge().await
    };
    match result {
        // The Memcached was deleted meanwhile: nothing is left to do.
        Err(error) if error.is_not_found() && pass.is_gone() => Ok(Done {
            writes: pass.writes,
            outcome: "gone".to_owned(),
            requeue_after: None,
        }),
        result => result.map(|outcome| Done {
            writes: pass.writes,
            outcome,
            requeue_after: None,
        }),
    }
}

/// State of reconciling one Memcached.
pub struct Pass<'a> {
    pub(super) context: &'a Context,
    pub(super) memcached: Arc<Memcached>,
    pub(super) writes: u32,
    key: ObjectKey,
}

impl Pass<'_> {
    async fn converge(&mut self) -> Result<String, Error> {
        if !self
            .memcached
            .finalizers()
            .iter()
            .any(|finalizer| finalizer == FINALIZER)
        {
            self.set_finalizers(|finalizers| finalizers.push(FINALIZER.to_owned()))
                .await?;
        }
        let Some(image) = self.image() else {
            let deployment = self.observed_deployment();
            self.report(deployment, Some(image_not_set())).await?;
            return Ok("no image".to_owned());
        };
        let mut errors = Vec::new();
        let deployment = match self.deployment(&image).await {
            Ok(state) => Some(state),
            Err(error) => {
                errors.push(error);
                self.observed_deployment()
            }
        };
        errors.extend(self.service().await.err());
        errors.extend(self.budget().await.err());
        let problem = match errors
            .iter()
            .find_map(|error| Some((error.reason()?, error.to_string())))
        {
            Some((reason, message)) => Some(Problem {
                reason: reason.to_owned(),
                message,
                fatal: false,
            }),
            None => self.stuck(deployment.as_ref()).await,
        };
        let phase = self.report(deployment, problem).await?;
        match errors.into_iter().next() {
            Some(error) => Err(error),
            None => Ok(format!("{phase:?}").to_lowercase()),
        }
    }

    /// The image of the servers.
    fn image(&self) -> Option<String> {
        self.memcached
            .spec
            .image
            .clone()
            .or_else(|| self.context.settings.image.clone())
    }

    fn uid(&self) -> &str {
        self.memcached.metadata.uid.as_deref().unwrap_or_default()
    }

    /// The cached Deployment, if this Memcached owns it.
    fn observed_deployment(&self) -> Option<DeploymentState> {
        let state = self.context.caches.deployments.get(&self.key)?;
        let ours = state
            .child
            .controller
            .as_ref()
            .is_some_and(|owner| owner.uid == self.uid());
        ours.then(|| (*state).clone())
    }

    async fn deployment(&mut self, image: &str) -> Result<DeploymentState, Error> {
        let desired = operand::deployment(&self.memcached, image);
        let observed = self.context.caches.deployments.get(&self.key);
        let child = observed.as_deref().map(|state| &state.child);
        let ensured = ensure::<Deployment>(&self.context.client, &desired, child, self.uid()).await?;
        self.writes += ensured.writes();
        let size = self.memcached.spec.size;
        let replicas = child
            .and_then(|child| child.field("/spec/replicas"))
            .and_then(|value| value.as_i64());
        let resized = replicas.filter(|replicas| *replicas != i64::from(size));
        let state = match ensured {
            Ensured::Settled => {
                return observed
                    .as_deref()
                    .cloned()
                    .ok_or_else(|| self.vanished::<Deployment>());
            }
            Ensured::Created(object) => {
                self.record(
                    "Created",
                    "Create",
                    format!("Created Deployment {} with {size} replicas", self.key.name),
                );
                object
            }
            Ensured::Updated(object) => {
                match resized {
                    Some(from) => self.record("Resized", "Resize", format!("Resized from {from} to {size}")),
                    None => self.record("Updated", "Update", format!("Updated Deployment {}", self.key.name)),
                }
                object
            }
            Ensured::Restored(object, path) => {
                self.record_drift_reverted("Deployment", &path);
                object
            }
        };
        Ok(DeploymentState::of(&state))
    }

    async fn service(&mut self) -> Result<(), Error> {
        let desired = operand::service(&self.memcached);
        let observed = self.context.caches.services.get(&self.key);
        let ensured = ensure::<Service>(&self.context.client, &desired, observed.as_deref(), self.uid()).await?;
        self.writes += ensured.writes();
        if let Ensured::Restored(_, path) = ensured {
            self.record_drift_reverted("Service", &path);
        }
        Ok(())
    }

    async fn budget(&mut self) -> Result<(), Error> {
        let observed = self.context.caches.budgets.get(&self.key);
        let Some(desired) = operand::budget(&self.memcached) else {
            let client = &self.context.client;
            self.writes += remove::<PodDisruptionBudget>(client, &self.key, observed.as_deref(), self.uid()).await?;
            return Ok(());
        };
        let ensured = ensure(&self.context.client, &desired, observed.as_deref(), self.uid()).await?;
        self.writes += ensured.writes();
        if let Ensured::Restored(_, path) = ensured {
            self.record_drift_reverted("PodDisruptionBudget", &path);
        }
        Ok(())
    }

    /// For a failed Deployment: its reason and the problem of its pods.
    async fn stuck(&self, deployment: Option<&DeploymentState>) -> Option<Problem> {
        let state = deployment?;
        let (reason, message) = state.failure.clone()?;
        if state.available >= self.memcached.spec.size {
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

    /// Writes the status if it changed, and an event for a new problem. Returns the phase.
    async fn report(&mut self, deployment: Option<DeploymentState>, problem: Option<Problem>) -> Result<Phase, Error> {
        let facts = Facts {
            memcached: &self.memcached,
            deployment: deployment.as_ref(),
            nodes: self.context.caches.servers.of(&self.key),
            problem,
            now: Timestamp::now(),
        };
        let status = report::status(&facts);
        let phase = status.phase.unwrap_or(Phase::Pending);
        self.context.rollouts.note(&self.key, report::is_rolling(&status));
        if self
            .memcached
            .status
            .as_ref()
            .is_some_and(|before| report::same(before, &status))
        {
            return Ok(phase);
        }
        let before = report::find(&self.memcached, DEGRADED).cloned();
        self.write_status(status).await?;
        let now = report::find(&self.memcached, DEGRADED)
            .filter(|now| now.status == "True")
            .cloned();
        if let Some(now) = now
            && before.is_none_or(|before| (before.reason, before.message) != (now.reason, now.message.clone()))
        {
            self.publish(Severity::Warning, "Failed", "Reconcile", now.message);
        }
        Ok(phase)
    }

    /// Writes `status` and keeps the returned object.
    pub(super) async fn write_status(&mut self, status: MemcachedStatus) -> Result<(), Error> {
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
        self.memcached = Arc::new(written.map_err(|error| self.error("write the status of", error))?);
        self.writes += 1;
        Ok(())
    }

    /// Changes the finalizers; fails if the object has changed.
    pub(super) async fn set_finalizers(&mut self, change: impl FnOnce(&mut Vec<String>)) -> Result<(), Error> {
        let mut finalizers = self.memcached.finalizers().to_vec();
        change(&mut finalizers);
        // With the resource version the patch is rejected if the object has changed since it was read.
        let patch = json!({ "metadata": {
            "finalizers": finalizers,
            "resourceVersion": self.memcached.resource_version(),
        } });
        let written = self
            .api()
            .patch(&self.key.name, &PatchParams::default(), &Patch::Merge(patch))
            .await;
        self.memcached = Arc::new(written.map_err(|error| self.error("set the finalizers of", error))?);
        self.writes += 1;
        Ok(())
    }

    fn api(&self) -> Api<Memcached> {
        Api::namespaced(self.context.client.clone(), &self.key.namespace)
    }

    fn is_gone(&self) -> bool {
        let uid = self.memcached.metadata.uid.as_ref();
        self.context
            .caches
            .memcacheds
            .get(&self.key)
            .is_none_or(|now| now.metadata.uid.as_ref() != uid)
    }

    fn error(&self, action: &'static str, source: kube::Error) -> Error {
        Error::Request {
            action,
            kind: "Memcached".to_owned(),
            name: self.key.name.clone(),
            source: Box::new(source),
        }
    }

    fn vanished<K: Resource<DynamicType = ()>>(&self) -> Error {
        Error::StillDeleting {
            kind: K::kind(&()).into_owned(),
            name: self.key.name.clone(),
        }
    }

    fn record(&self, reason: &'static str, action: &'static str, note: String) {
        self.publish(Severity::Normal, reason, action, note);
    }

    fn record_drift_reverted(&self, kind: &str, path: &str) {
        let note = format!(
            "Reverted a change of {path} in {kind} {} by another client",
            self.key.name
        );
        self.record("Restored", "Restore", note);
    }

    fn publish(&self, severity: Severity, reason: &'static str, action: &'static str, note: String) {
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
