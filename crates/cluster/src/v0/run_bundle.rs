//! `run bundle`: from a bundle to a Succeeded ClusterServiceVersion.

use std::time::Duration;

use super::causes::unpack::unfinished;
use super::preflight::{self, PreflightOptions};
use super::progress::WaitTarget;
use super::release::release;
use super::rerun::{EarlierRun, earlier};
use super::serve::place::ServeFrom;
use super::serve::serving::Serving;
use super::{cleanup, cluster_objects, crd_origin, intent, record, taken, wait};
use crate::base::cause::{Cause, has_errors};
use crate::base::error::Error;
use crate::base::install_mode::InstallMode;
use crate::base::names;
use crate::base::object_ref::ObjectRef;
use crate::base::outcome::{Conclusion, Outcome};
use crate::base::reporter::{ProgressLog, ProgressReporter};
use crate::bundle::facts::BundleFacts;
use crate::kube::client::Cluster;
use crate::kube::{ownership, removal};
use crate::observe::observation::Observation;
use crate::rights::{self, Command, When};
use olmkit::diagnostics::Severity;

/// Options of `run bundle`.
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

/// Installs a bundle.
///
/// # Errors
/// [`Error::Request`] and the like. Faults in the cluster are not errors but causes in the outcome.
pub async fn run(
    cluster: &Cluster,
    bundle: &BundleFacts,
    options: &Options,
    reporter: &dyn ProgressReporter,
) -> Result<Outcome, Error> {
    let mut progress = ProgressLog::start(reporter);
    let missing = rights::missing_always(cluster, Command::RunBundle).await?;
    if !missing.is_empty() {
        let seen = Observation::none(cluster);
        return Ok(outcome(Conclusion::Refused, bundle, &seen, missing, progress));
    }
    let mut seen = Observation::full(cluster, &bundle.kinds()).await?;
    let checks = PreflightOptions {
        install_mode: options.install_mode.clone(),
        inline: bundle.image.is_none(),
    };
    let mut causes = preflight::check(bundle, &checks, &seen);
    let place = options.place.decide(&seen.olm, options.pull_secret.as_deref());
    causes.extend(
        taken::taken(
            cluster,
            &bundle.package,
            &names::subscription(bundle.csv_name()),
            &place,
        )
        .await?,
    );
    let recorded = record::read(cluster, &bundle.package).await?;
    let created = crd_origin::created(&recorded, &seen, |csv| csv == bundle.csv_name());
    let taken_over = crd_origin::taken_over(bundle, None, &created, &seen, &causes);
    causes.extend(taken_over);
    let before = earlier(bundle, &seen);
    if let EarlierRun::InTheWay(cause) = &before {
        causes.push((**cause).clone());
    }
    causes.extend(missing_rights(cluster, Command::RunBundle, bundle, &place, &seen).await?);
    if has_errors(&causes) {
        return Ok(outcome(Conclusion::Refused, bundle, &seen, causes, progress));
    }
    progress.done(checked(&seen));
    if options.check_only {
        return Ok(outcome(Conclusion::Checked, bundle, &seen, causes, progress));
    }
    let before_is_only_csv = before == EarlierRun::OnlyCsv;
    match before {
        EarlierRun::Installed => {
            // A run that was killed at its end leaves a catalog without a server.
            release(cluster, bundle, &mut progress).await?;
            return Ok(outcome(Conclusion::AlreadyInstalled, bundle, &seen, causes, progress));
        }
        EarlierRun::StartOver { remove, why } => start_over(cluster, &remove, &why, &mut progress).await?,
        _ => {}
    }
    let ended = if before_is_only_csv {
        let awaited = WaitTarget {
            csv: bundle.csv_name(),
            ..WaitTarget::default()
        };
        wait::for_success(
            cluster,
            &awaited,
            &bundle.package,
            options.timeout,
            &mut seen,
            &mut progress,
        )
        .await?
    } else {
        install(cluster, bundle, options, &place, &mut seen, &mut progress).await?
    };
    Ok(match ended {
        Ok(()) => outcome(Conclusion::Succeeded, bundle, &seen, causes, progress),
        Err(found) => {
            causes.extend(found);
            if options.rollback {
                roll_back(cluster, bundle, &seen, reporter, &mut progress).await?;
            }
            outcome(Conclusion::Failed, bundle, &seen, causes, progress)
        }
    })
}

/// Permissions that this bundle and this cluster require and the credentials lack.
pub(crate) async fn missing_rights(
    cluster: &Cluster,
    command: Command,
    bundle: &BundleFacts,
    place: &ServeFrom,
    seen: &Observation,
) -> Result<Vec<Cause>, Error> {
    let kinds = bundle.kinds();
    let has_old_jobs = bundle.image.iter().any(|image| !unfinished(image, seen).is_empty());
    rights::missing(cluster, command, |right| match right.when {
        When::CatalogPod => matches!(place, ServeFrom::Pod(_)),
        When::NewGroup => seen.operator_groups.is_empty(),
        When::OldJobs => has_old_jobs,
        _ => rights::in_bundle(right, &kinds),
    })
    .await
}

fn checked(seen: &Observation) -> String {
    let olm = seen
        .olm
        .version
        .as_ref()
        .map_or_else(|| "OLM".to_owned(), |version| format!("OLM {version}"));
    format!(
        "checked: Kubernetes {}, {olm}, namespace {}",
        seen.server_version, seen.namespace
    )
}

async fn start_over(
    cluster: &Cluster,
    remove: &[ObjectRef],
    why: &str,
    progress: &mut ProgressLog<'_>,
) -> Result<(), Error> {
    progress.done(format!("{why}: starting over"));
    for object in remove {
        if cluster.delete(object).await? {
            removal::gone(cluster, object).await?;
            progress.done(format!("{object}: removed"));
        }
    }
    Ok(())
}

async fn install(
    cluster: &Cluster,
    bundle: &BundleFacts,
    options: &Options,
    place: &ServeFrom,
    seen: &mut Observation,
    progress: &mut ProgressLog<'_>,
) -> Result<Result<(), Vec<Cause>>, Error> {
    let blobs = bundle.catalog(names::CHANNEL, None);
    let serving = match Serving::begin(cluster, bundle, &blobs, place, options.timeout, progress).await? {
        Ok(serving) => serving,
        Err(causes) => return Ok(Err(causes)),
    };
    let source = intent::catalog_source(
        &bundle.package,
        &seen.namespace,
        serving.served(),
        options.pull_secret.as_deref(),
    );
    ownership::create(cluster, &source, progress).await?;
    unpack_anew(cluster, bundle, seen, progress).await?;
    if let Some(group) = intent::operator_group(bundle, options.install_mode.as_ref(), seen) {
        ownership::create(cluster, &group, progress).await?;
    }
    let (subscription, catalog) = (
        names::subscription(bundle.csv_name()),
        names::catalog_source(&bundle.package),
    );
    wait::for_connection(cluster, &catalog, progress).await?;
    let manifest = intent::subscription(bundle, &subscription, &seen.namespace);
    ownership::create(cluster, &manifest, progress).await?;
    let namespace = seen.namespace.clone();
    let awaited = WaitTarget {
        subscription: &subscription,
        catalog: (&namespace, &catalog),
        csv: bundle.csv_name(),
        manifest: Some(&manifest),
        ..WaitTarget::default()
    };
    let ended = wait::for_success(cluster, &awaited, &bundle.package, options.timeout, seen, progress).await?;
    if ended.is_ok() {
        let is_ours = |csv: &str| csv == bundle.csv_name();
        cluster_objects::complete(cluster, is_ours, cluster_objects::PLAN_LIMIT, seen, progress).await?;
    }
    cluster_objects::label(cluster, &bundle.package, bundle.csv_name(), seen, progress).await?;
    record::write(cluster, &bundle.package, bundle.csv_name(), &seen.install_plans).await?;
    serving.end(cluster, bundle, progress).await?;
    Ok(ended)
}

/// Removes the leftovers of earlier attempts to unpack the bundle image, so that OLM retries.
pub(crate) async fn unpack_anew(
    cluster: &Cluster,
    bundle: &BundleFacts,
    seen: &Observation,
    progress: &mut ProgressLog<'_>,
) -> Result<(), Error> {
    for job in bundle.image.iter().flat_map(|image| unfinished(image, seen)) {
        if cluster.delete(&job).await? {
            progress.done(format!("{job}: removed, an earlier attempt to unpack the bundle image"));
        }
    }
    Ok(())
}

/// Removes the objects that the run created. CRDs that existed before are kept.
async fn roll_back(
    cluster: &Cluster,
    bundle: &BundleFacts,
    seen: &Observation,
    reporter: &dyn ProgressReporter,
    progress: &mut ProgressLog<'_>,
) -> Result<(), Error> {
    progress.done("rolling back");
    let options = cleanup::Options {
        package: bundle.package.clone(),
        crds: true,
        operator_groups: true,
        dry_run: false,
        timeout: Duration::from_secs(60),
        // `crds` was read before anything was created and is not refreshed.
        keep_crds: seen.crds.keys().cloned().collect(),
        named_crds: Vec::new(),
    };
    let report = cleanup::cleanup(cluster, &options, reporter).await?;
    progress.done(format!("rolled back: {} objects removed", report.removed.len()));
    for cause in report.causes.iter().filter(|cause| cause.severity == Severity::Error) {
        progress.done(cause.to_string());
    }
    Ok(())
}

pub(super) fn outcome(
    result: Conclusion,
    bundle: &BundleFacts,
    seen: &Observation,
    causes: Vec<Cause>,
    progress: ProgressLog<'_>,
) -> Outcome {
    Outcome::new(
        result,
        &bundle.package,
        bundle.csv_name(),
        &seen.namespace,
        causes,
        progress,
    )
}
