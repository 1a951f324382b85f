//! `run bundle --olm v1` and `run bundle-upgrade --olm v1`: installs a local bundle by a ClusterExtension from a
//! temporary catalog.

use std::time::Duration;

use olmkit_oci::registry::Client;
use serde_json::Value;

use super::objects::{self, catalog_name};
use super::preflight::{self, Served};
use super::publish::{Loaded, Repositories, publish};
use super::remove::{self, RemoveOptions};
use super::seen::ExtensionState;
use super::wait::{Awaited, until_installed};
use crate::base::cause::{Cause, Code, has_errors};
use crate::base::error::Error;
use crate::base::install_mode::InstallMode;
use crate::base::names;
use crate::base::outcome::{Conclusion, Outcome};
use crate::base::reporter::{ProgressLog, ProgressReporter};
use crate::bundle::facts::BundleFacts;
use crate::kube::client::Cluster;
use crate::kube::ownership;
use crate::rights::{self, Command};
use olmkit::diagnostics::Severity;

/// Options of `run bundle --olm v1`.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// `--install-mode`
    pub install_mode: Option<InstallMode>,
    /// Repositories to push to. Checks work with `None`.
    pub repositories: Option<Repositories>,
    /// Total time to wait.
    pub timeout: Duration,
    /// Remove the objects that this run created if it fails.
    pub rollback: bool,
    /// Only run the checks.
    pub check_only: bool,
}

/// Installs a bundle.
///
/// # Errors
/// [`Error::Request`], [`Error::Publish`], [`Error::Usage`]. Faults in the cluster are causes in the outcome.
pub async fn run(
    cluster: &Cluster,
    loaded: &mut Loaded,
    options: &RunOptions,
    client: &Client,
    reporter: &dyn ProgressReporter,
) -> Result<Outcome, Error> {
    Flow::new(cluster, loaded, options, reporter, false)
        .run(client, reporter)
        .await
}

/// Upgrades what [`run`] has installed to another bundle.
///
/// # Errors
/// As [`run`].
pub async fn upgrade(
    cluster: &Cluster,
    loaded: &mut Loaded,
    options: &RunOptions,
    client: &Client,
    reporter: &dyn ProgressReporter,
) -> Result<Outcome, Error> {
    Flow::new(cluster, loaded, options, reporter, true)
        .run(client, reporter)
        .await
}

/// The installation or upgrade of a bundle. Its methods are the steps.
struct Flow<'a> {
    cluster: &'a Cluster,
    loaded: &'a mut Loaded,
    options: &'a RunOptions,
    is_upgrade: bool,
    seen: ExtensionState,
    /// The causes found so far.
    causes: Vec<Cause>,
    progress: ProgressLog<'a>,
}

impl<'a> Flow<'a> {
    fn new(
        cluster: &'a Cluster,
        loaded: &'a mut Loaded,
        options: &'a RunOptions,
        reporter: &'a dyn ProgressReporter,
        is_upgrade: bool,
    ) -> Self {
        Flow {
            cluster,
            loaded,
            options,
            is_upgrade,
            seen: ExtensionState::default(),
            causes: Vec::new(),
            progress: ProgressLog::start(reporter),
        }
    }

    async fn run(mut self, client: &Client, reporter: &dyn ProgressReporter) -> Result<Outcome, Error> {
        self.causes = rights::missing_always(self.cluster, Command::RunBundleV1).await?;
        if has_errors(&self.causes) {
            return Ok(self.outcome(Conclusion::Rejected));
        }
        let served = Served::read(self.cluster).await?;
        self.causes.extend(served.missing());
        if has_errors(&self.causes) {
            return Ok(self.outcome(Conclusion::Rejected));
        }
        self.seen = ExtensionState::read(self.cluster, &self.loaded.facts.package).await?;
        let config = self.check(served).await?;
        if has_errors(&self.causes) {
            return Ok(self.outcome(Conclusion::Rejected));
        }
        self.progress
            .done(format!("checked: OLM v1, namespace {}", self.seen.place.namespace));
        if self.options.check_only {
            return Ok(self.outcome(Conclusion::Checked));
        }
        if is_installed(&self.loaded.facts, &self.seen) {
            return Ok(self.outcome(Conclusion::AlreadyInstalled));
        }
        let Some(repositories) = &self.options.repositories else {
            return Err(Error::Usage(
                "OLM v1 installs from images: pass --push-to REGISTRY/NAME, below which the catalog (and the bundle, if it is a directory) are pushed".into(),
            ));
        };
        let replaces = self.seen.installed().map(|(name, _)| name.to_owned());
        let replaces = replaces.filter(|installed| installed != self.loaded.facts.csv_name());
        let progress = &mut self.progress;
        let catalog = publish(self.loaded, replaces.as_deref(), repositories, client, progress).await?;
        let result = match self.install(&catalog, config).await? {
            Ok(_) => Conclusion::Succeeded,
            Err(found) => {
                self.causes.extend(found);
                if self.options.rollback && self.seen.extension.is_none() {
                    self.roll_back(reporter).await?;
                }
                Conclusion::Failed
            }
        };
        Ok(self.outcome(result))
    }

    /// Checks all that can be known beforehand. Returns `spec.config.inline`.
    async fn check(&mut self, served: Served) -> Result<Value, Error> {
        let (facts, seen) = (&self.loaded.facts, &self.seen);
        let causes = &mut self.causes;
        causes.extend(preflight::namespace(seen));
        causes.extend(preflight::taken(seen, &facts.package));
        causes.extend(earlier(facts, self.cluster, seen, self.is_upgrade));
        let before = seen
            .extension
            .as_ref()
            .and_then(|found| found.pointer("/spec/config/inline"));
        let config = match (&self.options.install_mode, before) {
            // An upgrade keeps the current configuration.
            (None, Some(before)) => before.clone(),
            (mode, _) => match preflight::config(mode.as_ref(), &seen.place.namespace, served) {
                Ok(config) => config,
                Err(cause) => {
                    causes.push(cause);
                    return Ok(Value::Null);
                }
            },
        };
        causes.extend(preflight::bundle(self.loaded, &seen.place.namespace, &config, served));
        causes.extend(preflight::definitions(self.cluster, self.loaded, &facts.package).await?);
        Ok(config)
    }

    async fn install(&mut self, catalog: &str, config: Value) -> Result<Result<ExtensionState, Vec<Cause>>, Error> {
        let facts = &self.loaded.facts;
        let manifests = [
            objects::cluster_catalog(&facts.package, catalog),
            objects::for_bundle(facts, &self.seen.place.namespace, config),
        ];
        for manifest in &manifests {
            let object = ownership::apply(self.cluster, manifest).await?;
            self.progress.done(format!("{object}: applied"));
        }
        let (name, version) = (catalog_name(&facts.package), objects::version(facts));
        let awaited = Awaited {
            catalog: Some((&name, catalog)),
            version: Some(&version),
            image: facts.image.as_deref(),
        };
        let (timeout, progress) = (self.options.timeout, &mut self.progress);
        until_installed(self.cluster, &facts.package, &awaited, timeout, progress).await
    }

    /// Removes the objects that the run created.
    async fn roll_back(&mut self, reporter: &dyn ProgressReporter) -> Result<(), Error> {
        self.progress.done("rolling back");
        let options = RemoveOptions {
            name: self.loaded.facts.package.clone(),
            with_catalog: true,
            only_ours: true,
            dry_run: false,
            timeout: Duration::from_secs(60),
            release_finalizers: Vec::new(),
        };
        let report = remove::remove(self.cluster, &options, reporter).await?;
        self.progress
            .done(format!("rolled back: {} objects removed", report.removed.len()));
        for cause in report.causes.iter().filter(|cause| cause.severity == Severity::Error) {
            self.progress.done(cause.to_string());
        }
        Ok(())
    }

    fn outcome(self, result: Conclusion) -> Outcome {
        let facts = &self.loaded.facts;
        let (package, csv) = (&facts.package, facts.csv_name());
        Outcome::new(
            result,
            package,
            csv,
            &self.cluster.namespace,
            self.causes,
            self.progress,
        )
    }
}

/// Leftovers of an earlier run that prevent this one.
fn earlier(facts: &BundleFacts, cluster: &Cluster, seen: &ExtensionState, is_upgrade: bool) -> Option<Cause> {
    let package = names::word(&facts.package);
    let namespace = names::word(&cluster.namespace);
    let Some(extension) = &seen.extension else {
        return is_upgrade.then(|| {
            Cause::lasting(
                Code::NotInstalled,
                format!("there is no ClusterExtension {} to upgrade", facts.package),
                "olmkit run bundle --olm v1 installs the bundle",
            )
        });
    };
    if extension.pointer("/metadata/deletionTimestamp").is_some() {
        return Some(
            Cause::passing(
                Code::DeletionBlocked,
                "is being deleted",
                format!("wait until it is deleted, or see what blocks it: olmkit extension status {package}"),
            )
            .on(seen.object()),
        );
    }
    let way_out = format!("remove it first: olmkit cleanup {package} --olm v1");
    if let Some(cause) = preflight::other_namespace(seen, &cluster.namespace, &way_out) {
        return Some(cause);
    }
    let (installed, _) = seen.installed()?;
    (!is_upgrade && installed != facts.csv_name()).then(|| {
        Cause::lasting(
            Code::OtherVersionInstalled,
            format!("{installed} is installed, the bundle is {}", facts.csv_name()),
            format!("olmkit run bundle-upgrade --olm v1 to change the version, or olmkit cleanup {package} --olm v1 -n {namespace} to start over"),
        )
        .on(seen.object())
    })
}

/// Returns true if this very bundle is installed and runs.
fn is_installed(facts: &BundleFacts, seen: &ExtensionState) -> bool {
    let annotations = seen
        .extension
        .as_ref()
        .and_then(|found| found.pointer("/metadata/annotations"));
    let digest = annotations.and_then(|found| found.get(names::DIGEST_ANNOTATION)?.as_str());
    digest == Some(&facts.digest)
        && seen.installed().is_some_and(|(name, _)| name == facts.csv_name())
        && !has_errors(&super::explain::causes(seen))
}
