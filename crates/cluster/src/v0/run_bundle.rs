//! `run bundle`: from a bundle to a Succeeded ClusterServiceVersion.

use std::time::Duration;

use super::flow::Flow;
use super::progress::WaitTarget;
use super::release::release;
use super::rerun::{EarlierRun, earlier};
use super::{cleanup, intent, wait};
use crate::base::cause::Cause;
use crate::base::error::Error;
use crate::base::names;
use crate::base::object_ref::ObjectRef;
use crate::base::outcome::{Conclusion, Outcome};
use crate::base::reporter::ProgressReporter;
use crate::bundle::facts::BundleFacts;
use crate::kube::client::Cluster;
use crate::kube::removal;
use crate::observe::observation::Observation;
use crate::rights::Command;
use olmkit::diagnostics::Severity;

pub use super::flow::Options;

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
    let mut flow = Flow::begin(Command::RunBundle, cluster, bundle, options, reporter).await?;
    if flow.is_refused() {
        return Ok(flow.outcome(Conclusion::Rejected));
    }
    flow.check_bundle(options.install_mode.clone());
    flow.check_names(&names::subscription(bundle.csv_name())).await?;
    flow.check_crds(None).await?;
    let before = earlier(bundle, &flow.seen);
    if let EarlierRun::InTheWay(cause) = &before {
        flow.causes.push((**cause).clone());
    }
    flow.check_rights().await?;
    if flow.is_refused() {
        return Ok(flow.outcome(Conclusion::Rejected));
    }
    flow.progress.done(checked(&flow.seen));
    if options.check_only {
        return Ok(flow.outcome(Conclusion::Checked));
    }
    let before_is_only_csv = before == EarlierRun::OnlyCsv;
    match before {
        EarlierRun::Installed => {
            // A run that was killed at its end leaves a catalog without a server.
            release(cluster, bundle, &mut flow.progress).await?;
            return Ok(flow.outcome(Conclusion::AlreadyInstalled));
        }
        EarlierRun::StartOver { remove, why } => flow.start_over(&remove, &why).await?,
        _ => {}
    }
    let ended = if before_is_only_csv {
        let awaited = WaitTarget {
            csv: bundle.csv_name(),
            ..WaitTarget::default()
        };
        flow.wait(&awaited).await?
    } else {
        flow.install().await?
    };
    Ok(match ended {
        Ok(()) => flow.outcome(Conclusion::Succeeded),
        Err(found) => {
            flow.causes.extend(found);
            if options.rollback {
                flow.roll_back(reporter).await?;
            }
            flow.outcome(Conclusion::Failed)
        }
    })
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

/// The steps of an installation only.
impl Flow<'_> {
    async fn start_over(&mut self, remove: &[ObjectRef], why: &str) -> Result<(), Error> {
        self.progress.done(format!("{why}: starting over"));
        for object in remove {
            if self.cluster.delete(object).await? {
                removal::gone(self.cluster, object).await?;
                self.progress.done(format!("{object}: removed"));
            }
        }
        Ok(())
    }

    async fn install(&mut self) -> Result<Result<(), Vec<Cause>>, Error> {
        let bundle = self.bundle;
        let serving = match self.serve(&bundle.catalog(names::CHANNEL, None)).await? {
            Ok(serving) => serving,
            Err(causes) => return Ok(Err(causes)),
        };
        self.create_catalog_source(&serving).await?;
        self.remove_old_jobs().await?;
        if let Some(group) = intent::operator_group(bundle, self.options.install_mode.as_ref(), &self.seen) {
            self.create(&group).await?;
        }
        let (subscription, catalog) = (
            names::subscription(bundle.csv_name()),
            names::catalog_source(&bundle.package),
        );
        wait::for_connection(self.cluster, &catalog, &mut self.progress).await?;
        let namespace = self.seen.namespace.clone();
        let manifest = intent::subscription(bundle, &subscription, &namespace);
        self.create(&manifest).await?;
        let awaited = WaitTarget {
            subscription: &subscription,
            catalog: (&namespace, &catalog),
            csv: bundle.csv_name(),
            manifest: Some(&manifest),
            ..WaitTarget::default()
        };
        let ended = self.wait(&awaited).await?;
        self.end(serving, ended.is_ok()).await?;
        Ok(ended)
    }

    /// Removes the objects that the run created. CRDs that existed before are kept.
    async fn roll_back(&mut self, reporter: &dyn ProgressReporter) -> Result<(), Error> {
        self.progress.done("rolling back");
        let options = cleanup::Options {
            package: self.bundle.package.clone(),
            crds: true,
            operator_groups: true,
            dry_run: false,
            timeout: Duration::from_secs(60),
            // `crds` was read before anything was created and is not refreshed.
            keep_crds: self.seen.crds.keys().cloned().collect(),
            named_crds: Vec::new(),
            operands: false,
            release_finalizers: Vec::new(),
        };
        let report = cleanup::cleanup(self.cluster, &options, reporter).await?;
        self.progress
            .done(format!("rolled back: {} objects removed", report.removed.len()));
        for cause in report.causes.iter().filter(|cause| cause.severity == Severity::Error) {
            self.progress.done(cause.to_string());
        }
        Ok(())
    }
}
