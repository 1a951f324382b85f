//! The steps that `run bundle` and `run bundle-upgrade` share.

use std::time::Duration;

use serde_json::Value;

use super::causes::unpack::unfinished;
use super::preflight::{self, PreflightOptions};
use super::progress::WaitTarget;
use super::serve::place::ServeFrom;
use super::serve::serving::Serving;
use super::{cluster_objects, crd_origin, intent, record, taken, wait};
use crate::base::cause::{Cause, has_errors};
use crate::base::error::Error;
use crate::base::install_mode::InstallMode;
use crate::base::object_ref::ObjectRef;
use crate::base::outcome::{Conclusion, Outcome};
use crate::base::reporter::{ProgressLog, ProgressReporter};
use crate::bundle::facts::BundleFacts;
use crate::kube::client::Cluster;
use crate::kube::ownership;
use crate::observe::observation::Observation;
use crate::rights::{self, Command, When};

/// Options of `run bundle` and `run bundle-upgrade`.
#[derive(Clone, Debug)]
pub struct Options {
    /// `--install-mode`.
    pub install_mode: Option<InstallMode>,
    /// Location of the catalog server.
    pub place: ServeFrom,
    /// Secret with registry credentials for OLM's pods.
    pub pull_secret: Option<String>,
    /// Total time to wait.
    pub timeout: Duration,
    /// Remove the objects that this run created if it fails.
    pub rollback: bool,
    /// Only run the checks.
    pub check_only: bool,
}

/// The installation or upgrade of a bundle. Its methods are the steps.
pub struct Flow<'a> {
    pub cluster: &'a Cluster,
    pub bundle: &'a BundleFacts,
    pub options: &'a Options,
    /// The place of the catalog server, decided.
    pub place: ServeFrom,
    pub seen: Observation,
    /// The causes found so far.
    pub causes: Vec<Cause>,
    pub progress: ProgressLog<'a>,
    command: Command,
}

impl<'a> Flow<'a> {
    /// Checks the permissions that the command always needs, and observes the cluster if none is missing.
    ///
    /// # Errors
    /// [`Error::Request`], [`Error::Unreadable`].
    pub async fn begin(
        command: Command,
        cluster: &'a Cluster,
        bundle: &'a BundleFacts,
        options: &'a Options,
        reporter: &'a dyn ProgressReporter,
    ) -> Result<Self, Error> {
        let progress = ProgressLog::start(reporter);
        let mut flow = Flow {
            cluster,
            bundle,
            options,
            place: options.place.clone(),
            seen: Observation::none(cluster),
            causes: rights::missing_always(cluster, command).await?,
            progress,
            command,
        };
        if !flow.is_refused() {
            flow.seen = Observation::full(cluster, &bundle.kinds()).await?;
            flow.place = options.place.decide(&flow.seen.olm, options.pull_secret.as_deref());
        }
        Ok(flow)
    }

    /// Returns true if a cause rules out success.
    pub fn is_refused(&self) -> bool {
        has_errors(&self.causes)
    }

    /// Checks the bundle against the namespace.
    pub fn check_bundle(&mut self, install_mode: Option<InstallMode>) {
        let checks = PreflightOptions {
            install_mode,
            inline: self.bundle.image.is_none(),
        };
        self.causes.extend(preflight::check(self.bundle, &checks, &self.seen));
    }

    /// Checks that no object of another owner has the name of the catalog or of the Subscription.
    ///
    /// # Errors
    /// [`Error::Request`].
    pub async fn check_names(&mut self, subscription: &str) -> Result<(), Error> {
        let taken = taken::taken(self.cluster, &self.bundle.package, subscription, &self.place).await?;
        self.causes.extend(taken);
        Ok(())
    }

    /// Checks that the bundle's CRDs do not exist or were created for the package. `installed` is the CSV to upgrade.
    ///
    /// # Errors
    /// [`Error::Request`].
    pub async fn check_crds(&mut self, installed: Option<&str>) -> Result<(), Error> {
        let (bundle, seen) = (self.bundle, &self.seen);
        let recorded = record::read(self.cluster, &bundle.package).await?;
        let is_ours = |csv: &str| csv == bundle.csv_name() || Some(csv) == installed;
        let created = crd_origin::created(&recorded, seen, is_ours);
        let installed = installed.and_then(|name| seen.csv(name));
        let taken_over = crd_origin::taken_over(bundle, installed, &created, seen, &self.causes);
        self.causes.extend(taken_over);
        Ok(())
    }

    /// Checks the permissions that this bundle and this cluster require.
    ///
    /// # Errors
    /// [`Error::Request`].
    pub async fn check_rights(&mut self) -> Result<(), Error> {
        let kinds = self.bundle.kinds();
        let has_old_jobs = self.old_jobs().next().is_some();
        let missing = rights::missing(self.cluster, self.command, |right| match right.when {
            When::CatalogPod => matches!(self.place, ServeFrom::Pod(_)),
            When::NewGroup => self.seen.operator_groups.is_empty(),
            When::OldJobs => has_old_jobs,
            _ => rights::in_bundle(right, &kinds),
        })
        .await?;
        self.causes.extend(missing);
        Ok(())
    }

    /// Serves the bundle in a catalog. The inner error contains the causes why its pod is not ready.
    ///
    /// # Errors
    /// [`Error::Serve`], [`Error::Request`].
    pub async fn serve(&mut self, blobs: &[Value]) -> Result<Result<Serving, Vec<Cause>>, Error> {
        let (cluster, timeout) = (self.cluster, self.options.timeout);
        Serving::begin(cluster, self.bundle, blobs, &self.place, timeout, &mut self.progress).await
    }

    /// Creates the CatalogSource of the catalog.
    ///
    /// # Errors
    /// [`Error::NameTaken`], [`Error::Request`].
    pub async fn create_catalog_source(&mut self, serving: &Serving) -> Result<(), Error> {
        let (package, namespace) = (&self.bundle.package, &self.seen.namespace);
        let secret = self.options.pull_secret.as_deref();
        let manifest = intent::catalog_source(package, namespace, serving.served(), secret);
        self.create(&manifest).await?;
        Ok(())
    }

    /// Applies a manifest, unless its name belongs to an object with another owner, and reports it.
    ///
    /// # Errors
    /// [`Error::NameTaken`], [`Error::Manifest`], [`Error::Request`].
    pub async fn create(&mut self, manifest: &Value) -> Result<ObjectRef, Error> {
        ownership::create(self.cluster, manifest, &mut self.progress).await
    }

    /// Removes the leftovers of earlier attempts to unpack the bundle image, so that OLM retries.
    ///
    /// # Errors
    /// [`Error::Request`].
    pub async fn remove_old_jobs(&mut self) -> Result<(), Error> {
        let jobs: Vec<ObjectRef> = self.old_jobs().collect();
        for job in jobs {
            if self.cluster.delete(&job).await? {
                self.progress
                    .done(format!("{job}: removed, an earlier attempt to unpack the bundle image"));
            }
        }
        Ok(())
    }

    fn old_jobs(&self) -> impl Iterator<Item = ObjectRef> {
        let image = self.bundle.image.iter();
        image.flat_map(|image| unfinished(image, &self.seen))
    }

    /// Waits until the CSV has Succeeded. The inner error contains the causes why it does not.
    ///
    /// # Errors
    /// [`Error::Request`], [`Error::Unreadable`].
    pub async fn wait(&mut self, awaited: &WaitTarget<'_>) -> Result<Result<(), Vec<Cause>>, Error> {
        let (cluster, timeout) = (self.cluster, self.options.timeout);
        let (seen, progress) = (&mut self.seen, &mut self.progress);
        wait::for_success(cluster, awaited, &self.bundle.package, timeout, seen, progress).await
    }

    /// Labels and records the objects that OLM created, and stops serving the catalog. After a success, first waits for
    /// the last objects of the bundle.
    ///
    /// # Errors
    /// [`Error::Request`], [`Error::Unreadable`].
    pub async fn end(&mut self, serving: Serving, is_installed: bool) -> Result<(), Error> {
        let (cluster, package, csv) = (self.cluster, &self.bundle.package, self.bundle.csv_name());
        let (seen, progress) = (&mut self.seen, &mut self.progress);
        if is_installed {
            cluster_objects::complete(cluster, |name| name == csv, cluster_objects::PLAN_LIMIT, seen, progress).await?;
        }
        cluster_objects::label(cluster, package, csv, seen, progress).await?;
        record::write(cluster, package, csv, &seen.install_plans).await?;
        serving.end(cluster, self.bundle, progress).await
    }

    /// The result with the causes found so far.
    pub fn outcome(self, result: Conclusion) -> Outcome {
        let (package, csv) = (&self.bundle.package, self.bundle.csv_name());
        Outcome::new(result, package, csv, &self.seen.namespace, self.causes, self.progress)
    }
}
