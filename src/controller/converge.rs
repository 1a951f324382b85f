//! Brings the managed objects of a Memcached to the desired state.
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Pod, Service},
    policy::v1::PodDisruptionBudget,
};
use kube::{Api, ResourceExt, api::ListParams};
use kube_manager::explain;

use super::{
    Context, Error,
    contests::TRUCE,
    ensure::{Ensured, ensure, refresh, remove, resize},
    observed::{DeploymentState, is_paused},
    pass::{OnDrop, Pass},
    report::{self, Hold, Problem},
    rollout::Step,
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
            let (context, key) = (self.context, self.key.clone());
            let refused = OnDrop::new(|| context.leave_line(&key));
            let added = self.add_finalizer(FINALIZER).await;
            if let Err(error) = added {
                drop(refused);
                if let Some(problem) = self.problem_of(&error) {
                    let deployment = self.observed_deployment();
                    self.report(deployment, Some(problem), None).await?;
                }
                return Err(error);
            }
            refused.defuse();
        }
        let Some(image) = self.image() else {
            self.context.leave_line(&self.key);
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
        let problem = match errors.iter().find_map(|error| self.problem_of(error)) {
            Some(problem) => Some(problem),
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

    /// What the status says of `error`; `None` of one that is only tried again.
    fn problem_of(&self, error: &Error) -> Option<Problem> {
        let reason = error.reason()?;
        Some(Problem {
            reason: reason.to_owned(),
            message: self.known_message(reason, error.to_string()),
            fatal: false,
        })
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
        let (context, key) = (self.context, self.key.clone());
        let caches = &context.caches.deployments;
        if context.slots.is_in_doubt(&key) {
            refresh::<Deployment>(&context.client, caches, &key).await?;
            self.note_begun(image, None);
        }
        let observed = caches.unpack(&key);
        let (step, hold) = self.in_turn(image, observed.as_ref());
        let (mut desired, begins) = match step {
            Step::Apply { desired, begins } => (desired, begins),
            Step::Resize => {
                if let Some(state) = observed {
                    self.resize(&state).await?;
                }
                return Ok((hold, None));
            }
            Step::Keep => return Ok((hold, None)),
        };
        let owner = self.memcached.metadata.uid.clone().unwrap_or_default();
        // A pass that takes too long is cancelled.
        let unanswered = begins.then(|| OnDrop::new(|| context.slots.doubt(&key)));
        let ensured = ensure::<Deployment>(context, caches, &key, &mut desired, &owner, &mut self.writes).await;
        if let Some(unanswered) = unanswered {
            unanswered.defuse();
            self.note_begun(image, ensured.as_ref().err());
        }
        let ensured = ensured?;
        let size = self.memcached.spec.size;
        let before = observed.as_ref().map(DeploymentState::wanted);
        let resized = before.filter(|replicas| *replicas != size);
        match ensured {
            Ensured::Settled => {}
            Ensured::Created => self.record(
                "Created",
                "Create",
                format!("Created Deployment {} with {size} replicas", self.key.name),
            ),
            Ensured::Updated => match resized {
                Some(from) => self.record_resized(from),
                None if observed.is_some_and(|before| before.child.differs_in_annotations_only(desired)) => {}
                None => self.record("Updated", "Update", format!("Updated Deployment {}", self.key.name)),
            },
            Ensured::Restored(path) => self.record_drift_reverted("Deployment", &path),
            Ensured::Contested(path) => return Ok((hold, Some(path))),
        }
        Ok((hold, None))
    }

    /// Changes nothing of the Deployment but its size.
    async fn resize(&mut self, state: &DeploymentState) -> Result<(), Error> {
        let Context { client, caches, .. } = self.context;
        let size = self.memcached.spec.size;
        resize(client, &caches.deployments, &self.key, &state.child.uid, size).await?;
        self.writes += 1;
        self.record_resized(state.wanted());
        Ok(())
    }

    fn record_resized(&self, from: i32) {
        let size = self.memcached.spec.size;
        self.record("Resized", "Resize", format!("Resized from {from} to {size}"));
    }

    async fn service(&mut self) -> Result<Option<String>, Error> {
        let mut desired = serde_json::to_value(operand::service(&self.memcached)).unwrap_or_default();
        let caches = &self.context.caches.services;
        let owner = self.memcached.metadata.uid.clone().unwrap_or_default();
        let ensured =
            ensure::<Service>(self.context, caches, &self.key, &mut desired, &owner, &mut self.writes).await?;
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
        let mut desired = serde_json::to_value(desired).unwrap_or_default();
        let writes = &mut self.writes;
        let ensured =
            ensure::<PodDisruptionBudget>(self.context, caches, &self.key, &mut desired, &owner, writes).await?;
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
