//! Brings the managed objects of a Memcached to the desired state.
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod, policy::v1::PodDisruptionBudget};
use kube::{Api, ResourceExt, api::ListParams};
use kube_manager::{drift, explain};
use serde_json::Value;

use super::{
    Error,
    contests::TRUCE,
    ensure::{Ensured, ensure, remove},
    observed::{DeploymentState, is_paused},
    pass::Pass,
    report::{self, Hold, Problem},
    trouble::trouble,
};
use crate::{
    api::v1alpha1::{DEGRADED, FINALIZER},
    operand, settings,
};

impl Pass<'_> {
    /// Brings the managed objects and the status up to date. Returns a description for the log.
    pub(super) async fn converge(&mut self) -> Result<String, Error> {
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
        // What is only waited for comes last: other errors are retried less and less often.
        errors.sort_by_key(Error::awaits_deletion);
        let hold = Hold::after(hold, &errors);
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

    /// The image of the servers.
    fn image(&self) -> Option<String> {
        self.memcached
            .spec
            .image
            .clone()
            .or_else(|| self.context.settings.image.clone())
    }

    /// The cached Deployment, if this Memcached owns it.
    fn observed_deployment(&self) -> Option<DeploymentState> {
        let state = self.context.caches.deployments.unpack(&self.key)?;
        self.owns(&state).then_some(state)
    }

    /// Returns why the Deployment does not get its new template yet, and the path of a contested field.
    async fn deployment(&mut self, image: &str) -> Result<(Option<Hold>, Option<String>), Error> {
        let observed = self.context.caches.deployments.unpack(&self.key);
        let desired = operand::deployment(&self.memcached, image);
        let (desired, hold) = match self.in_turn(desired, observed.as_ref()) {
            (Some(desired), hold) => (desired, hold),
            (None, hold) => return Ok((hold, None)),
        };
        let caches = &self.context.caches.deployments;
        let owner = self.memcached.metadata.uid.clone().unwrap_or_default();
        let begins = self.context.slots.holds(&self.key)
            && observed.as_ref().is_some_and(|state| {
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
            .as_ref()
            .and_then(|state| state.child.field("/spec/replicas"))
            .and_then(Value::as_i64);
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
            let reverts = state.child.fingerprint() == Some(&drift::fingerprint(&desired));
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
