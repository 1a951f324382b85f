//! `run bundle --olm v1` and `run bundle-upgrade --olm v1`: installs a local bundle by a ClusterExtension from a
//! temporary catalog.

use std::time::Duration;

use olmkit_oci::registry::Client;
use serde_json::Value;

use super::objects::{self, catalog_name};
use super::preflight::{self, Served};
use super::publish::{Loaded, Repositories, publish};
use super::remove::{self, RemoveOptions};
use super::seen::Seen;
use super::wait::{Awaited, until_installed};
use crate::base::cause::{Cause, Code, has_errors, sorted};
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
    go(cluster, loaded, options, client, reporter, false).await
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
    go(cluster, loaded, options, client, reporter, true).await
}

async fn go(
    cluster: &Cluster,
    loaded: &mut Loaded,
    options: &RunOptions,
    client: &Client,
    reporter: &dyn ProgressReporter,
    is_upgrade: bool,
) -> Result<Outcome, Error> {
    let mut progress = ProgressLog::start(reporter);
    let missing = rights::missing_always(cluster, Command::RunBundleV1).await?;
    if !missing.is_empty() {
        return Ok(outcome(Conclusion::Refused, &loaded.facts, cluster, missing, progress));
    }
    let name = loaded.facts.package.clone();
    let served = Served::read(cluster).await?;
    if let Some(missing) = served.missing() {
        return Ok(outcome(
            Conclusion::Refused,
            &loaded.facts,
            cluster,
            vec![missing],
            progress,
        ));
    }
    let seen = Seen::read(cluster, &name).await?;
    let (mut causes, config) = check(cluster, loaded, options, served, &seen, is_upgrade).await?;
    if has_errors(&causes) {
        return Ok(outcome(Conclusion::Refused, &loaded.facts, cluster, causes, progress));
    }
    progress.done(format!("checked: OLM v1, namespace {}", seen.place.namespace));
    if options.check_only {
        return Ok(outcome(Conclusion::Checked, &loaded.facts, cluster, causes, progress));
    }
    if is_installed(&loaded.facts, &seen) {
        return Ok(outcome(
            Conclusion::AlreadyInstalled,
            &loaded.facts,
            cluster,
            causes,
            progress,
        ));
    }
    let Some(repositories) = &options.repositories else {
        return Err(Error::Usage(
            "OLM v1 installs from images: pass --push-to REGISTRY/NAME, below which the catalog (and the bundle, if it is a directory) are pushed".into(),
        ));
    };
    let replaces = seen.installed().map(|(name, _)| name.to_owned());
    let replaces = replaces.filter(|installed| installed != loaded.facts.csv_name());
    let catalog = publish(loaded, replaces.as_deref(), repositories, client, &mut progress).await?;
    let ended = install(
        cluster,
        &loaded.facts,
        &seen.place.namespace,
        &catalog,
        config,
        options,
        &mut progress,
    )
    .await?;
    let result = match ended {
        Ok(_) => Conclusion::Succeeded,
        Err(found) => {
            causes.extend(found);
            if options.rollback && seen.extension.is_none() {
                roll_back(cluster, &name, reporter, &mut progress).await?;
            }
            Conclusion::Failed
        }
    };
    Ok(outcome(result, &loaded.facts, cluster, causes, progress))
}

/// All that can be known beforehand, and `spec.config.inline`.
async fn check(
    cluster: &Cluster,
    loaded: &Loaded,
    options: &RunOptions,
    served: Served,
    seen: &Seen,
    is_upgrade: bool,
) -> Result<(Vec<Cause>, Value), Error> {
    let facts = &loaded.facts;
    let mut causes: Vec<Cause> = preflight::namespace(seen).into_iter().collect();
    causes.extend(preflight::taken(seen, &facts.package));
    causes.extend(earlier(facts, cluster, seen, is_upgrade));
    let before = seen
        .extension
        .as_ref()
        .and_then(|found| found.pointer("/spec/config/inline"));
    let config = match (&options.install_mode, before) {
        // An upgrade keeps the current configuration.
        (None, Some(before)) => before.clone(),
        (mode, _) => match preflight::config(mode.as_ref(), &seen.place.namespace, served) {
            Ok(config) => config,
            Err(cause) => {
                causes.push(cause);
                return Ok((sorted(causes), Value::Null));
            }
        },
    };
    causes.extend(preflight::bundle(loaded, &seen.place.namespace, &config, served));
    causes.extend(preflight::definitions(cluster, loaded, &facts.package).await?);
    Ok((sorted(causes), config))
}

/// Leftovers of an earlier run that prevent this one.
fn earlier(facts: &BundleFacts, cluster: &Cluster, seen: &Seen, is_upgrade: bool) -> Option<Cause> {
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
    let at = seen.text("/spec/namespace");
    if at != cluster.namespace {
        return Some(
            Cause::lasting(
                Code::OtherVersionInstalled,
                format!("installs into namespace {at}, which cannot be changed"),
                format!(
                    "pass -n {}, or remove it first: olmkit cleanup {package} --olm v1",
                    names::word(at)
                ),
            )
            .on(seen.object()),
        );
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
fn is_installed(facts: &BundleFacts, seen: &Seen) -> bool {
    let annotations = seen
        .extension
        .as_ref()
        .and_then(|found| found.pointer("/metadata/annotations"));
    let digest = annotations.and_then(|found| found.get(names::DIGEST_ANNOTATION)?.as_str());
    digest == Some(&facts.digest)
        && seen.installed().is_some_and(|(name, _)| name == facts.csv_name())
        && !has_errors(&super::explain::causes(seen))
}

async fn install(
    cluster: &Cluster,
    facts: &BundleFacts,
    namespace: &str,
    catalog: &str,
    config: Value,
    options: &RunOptions,
    progress: &mut ProgressLog<'_>,
) -> Result<Result<Seen, Vec<Cause>>, Error> {
    let manifests = [
        objects::cluster_catalog(&facts.package, catalog),
        objects::for_bundle(facts, namespace, config),
    ];
    for manifest in &manifests {
        let object = ownership::apply(cluster, manifest).await?;
        progress.done(format!("{object}: applied"));
    }
    let (name, version) = (catalog_name(&facts.package), objects::version(facts));
    let awaited = Awaited {
        catalog: Some((&name, catalog)),
        version: Some(&version),
        image: facts.image.as_deref(),
    };
    until_installed(cluster, &facts.package, &awaited, options.timeout, progress).await
}

/// Removes the objects that the run created.
async fn roll_back(
    cluster: &Cluster,
    package: &str,
    reporter: &dyn ProgressReporter,
    progress: &mut ProgressLog<'_>,
) -> Result<(), Error> {
    progress.done("rolling back");
    let options = RemoveOptions {
        name: package.to_owned(),
        with_catalog: true,
        only_ours: true,
        dry_run: false,
        timeout: Duration::from_secs(60),
    };
    let report = remove::remove(cluster, &options, reporter).await?;
    progress.done(format!("rolled back: {} objects removed", report.removed.len()));
    for cause in report.causes.iter().filter(|cause| cause.severity == Severity::Error) {
        progress.done(cause.to_string());
    }
    Ok(())
}

fn outcome(
    result: Conclusion,
    facts: &BundleFacts,
    cluster: &Cluster,
    causes: Vec<Cause>,
    progress: ProgressLog<'_>,
) -> Outcome {
    Outcome::new(
        result,
        &facts.package,
        facts.csv_name(),
        &cluster.namespace,
        causes,
        progress,
    )
}
