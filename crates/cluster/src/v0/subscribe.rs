//! `subscribe`: installs a package from a catalog that the cluster has, as OperatorHub does.

use std::time::Duration;

use serde_json::{Value, json};

use super::causes::find::{Target, find};
use super::progress::{WaitTarget, subscription};
use super::{preflight, record, wait};
use crate::base::cause::{Cause, Code, has_errors, sorted};
use crate::base::error::Error;
use crate::base::install_mode::InstallMode;
use crate::base::names;
use crate::base::outcome::{Conclusion, Outcome};
use crate::base::reporter::{ProgressLog, ProgressReporter};
use crate::kube::client::Cluster;
use crate::kube::{logs, ownership};
use crate::observe::observation::Observation;
use crate::rights::{self, Command, When};
use olmkit::diagnostics::Severity;

/// Options of `subscribe`.
#[derive(Clone, Debug)]
pub struct Options {
    /// The package.
    pub package: String,
    /// Channel. The package's default channel when absent.
    pub channel: Option<String>,
    /// CSV to begin with.
    pub starting_csv: Option<String>,
    /// CatalogSource, as `name` or `namespace/name`. The only one in reach when absent.
    pub catalog: Option<String>,
    /// True if upgrades wait for approval.
    pub manual: bool,
    /// For the OperatorGroup, if one must be created.
    pub install_mode: Option<InstallMode>,
    /// Total time to wait.
    pub timeout: Duration,
    /// Only print what would be created.
    pub dry_run: bool,
}

/// Objects to create, in order.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Plan {
    /// Manifests.
    pub manifests: Vec<Value>,
    /// The catalog: namespace and name.
    pub catalog: (String, String),
    /// Causes that prevent the subscription.
    pub causes: Vec<Cause>,
}

/// Decides what to create.
///
/// # Errors
/// [`Error::Usage`] for a package after which no object can be named.
pub fn plan(options: &Options, seen: &Observation) -> Result<Plan, Error> {
    names::check("package", &options.package).map_err(Error::Usage)?;
    let mut causes = preflight::place(seen);
    if seen.subscriptions_for(&options.package).next().is_some() {
        causes.push(Cause::lasting(
            Code::SubscriptionExists,
            format!(
                "package {} already has a Subscription in namespace {}",
                options.package, seen.namespace
            ),
            format!(
                "see its state: olmkit diagnose {} -n {}",
                names::word(&options.package),
                seen.namespace
            ),
        ));
    }
    if seen.operator_groups.len() > 1 {
        causes.push(preflight::several_groups(&seen.operator_groups, &seen.namespace));
    }
    let mut plan = Plan::default();
    match catalog(options, seen) {
        Ok(catalog) => plan.catalog = catalog,
        Err(cause) => causes.push(*cause),
    }
    causes.extend(preflight::catalogs_beside(seen, ""));
    if seen.operator_groups.is_empty() {
        let targets = options
            .install_mode
            .clone()
            .unwrap_or(InstallMode::AllNamespaces)
            .targets(&seen.namespace);
        let spec = if targets.is_empty() {
            json!({})
        } else {
            json!({"targetNamespaces": targets})
        };
        plan.manifests.push(json!({
            "apiVersion": "operators.coreos.com/v1",
            "kind": "OperatorGroup",
            "metadata": {"name": names::OPERATOR_GROUP, "namespace": seen.namespace, "labels": {names::MANAGED_BY.0: names::MANAGED_BY.1}},
            "spec": spec,
        }));
    }
    plan.manifests.push(manifest(options, &plan.catalog, &seen.namespace));
    plan.causes = sorted(causes);
    Ok(plan)
}

fn catalog(options: &Options, seen: &Observation) -> Result<(String, String), Box<Cause>> {
    let all: Vec<(String, String)> = seen
        .catalogs
        .iter()
        .map(|catalog| {
            (
                catalog.metadata.namespace.clone().unwrap_or_default(),
                catalog.metadata.name.clone().unwrap_or_default(),
            )
        })
        .collect();
    let shown = all
        .iter()
        .map(|(namespace, name)| format!("{namespace}/{name}"))
        .collect::<Vec<_>>()
        .join(", ");
    let missing = |message: String| {
        Box::new(Cause::lasting(
            Code::CatalogMissing,
            message,
            format!(
                "pass one with --catalog; reachable are: {}",
                if shown.is_empty() { "none" } else { &shown }
            ),
        ))
    };
    match &options.catalog {
        Some(wanted) => {
            let (namespace, name) = wanted
                .split_once('/')
                .map_or((None, wanted.as_str()), |(namespace, name)| (Some(namespace), name));
            all.iter()
                .find(|(found, called)| called == name && namespace.is_none_or(|namespace| namespace == found))
                .cloned()
                .ok_or_else(|| {
                    missing(format!(
                        "CatalogSource {wanted} is not reachable from namespace {}",
                        seen.namespace
                    ))
                })
        }
        None => match all.as_slice() {
            [only] => Ok(only.clone()),
            [] => Err(missing(format!(
                "no CatalogSource is reachable from namespace {}",
                seen.namespace
            ))),
            _ => Err(missing(format!("{} CatalogSources are reachable", all.len()))),
        },
    }
}

fn manifest(options: &Options, catalog: &(String, String), namespace: &str) -> Value {
    let mut spec = json!({
        "name": options.package,
        "source": catalog.1,
        "sourceNamespace": catalog.0,
        "installPlanApproval": if options.manual { "Manual" } else { "Automatic" },
    });
    if let Some(spec) = spec.as_object_mut() {
        spec.extend(
            options
                .channel
                .iter()
                .map(|channel| ("channel".to_owned(), channel.clone().into())),
        );
        spec.extend(
            options
                .starting_csv
                .iter()
                .map(|csv| ("startingCSV".to_owned(), csv.clone().into())),
        );
    }
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "Subscription",
        "metadata": {"name": options.package, "namespace": namespace, "labels": {names::MANAGED_BY.0: names::MANAGED_BY.1}},
        "spec": spec,
    })
}

/// Carries the plan out and waits for the CSV.
///
/// # Errors
/// [`Error::Request`], [`Error::Unreadable`].
pub async fn run(
    cluster: &Cluster,
    options: &Options,
    plan: &Plan,
    seen: &mut Observation,
    reporter: &dyn ProgressReporter,
) -> Result<Outcome, Error> {
    let mut progress = ProgressLog::start(reporter);
    let mut causes: Vec<Cause> = plan.causes.clone();
    let mut result = Conclusion::Rejected;
    let mut csv = String::new();
    if !has_errors(&causes) {
        causes.extend(missing_rights(cluster, plan).await?);
    }
    if !has_errors(&causes) {
        for manifest in &plan.manifests {
            ownership::create(cluster, manifest, &mut progress).await?;
        }
        let ended = match chosen(cluster, options, seen, &mut progress).await? {
            Ok(found) => {
                csv = found;
                let awaited = WaitTarget {
                    subscription: &options.package,
                    catalog: (&plan.catalog.0, &plan.catalog.1),
                    csv: &csv,
                    ..WaitTarget::default()
                };
                wait::for_success(
                    cluster,
                    &awaited,
                    &options.package,
                    options.timeout,
                    seen,
                    &mut progress,
                )
                .await?
            }
            Err(found) => Err(found),
        };
        record::write(cluster, &options.package, &csv, &seen.install_plans).await?;
        result = if ended.is_ok() {
            Conclusion::Succeeded
        } else {
            Conclusion::Failed
        };
        causes.extend(ended.err().unwrap_or_default());
    }
    Ok(Outcome::new(
        result,
        &options.package,
        &csv,
        &seen.namespace,
        causes,
        progress,
    ))
}

/// The missing permissions for the plan.
async fn missing_rights(cluster: &Cluster, plan: &Plan) -> Result<Vec<Cause>, Error> {
    let makes_group = plan
        .manifests
        .iter()
        .any(|manifest| manifest.get("kind").is_some_and(|kind| kind == "OperatorGroup"));
    rights::missing(cluster, Command::Subscribe, |right| match right.when {
        When::Always => true,
        When::NewGroup => makes_group,
        _ => false,
    })
    .await
}

/// Waits until OLM has chosen a version.
async fn chosen(
    cluster: &Cluster,
    options: &Options,
    seen: &mut Observation,
    progress: &mut ProgressLog<'_>,
) -> Result<Result<String, Vec<Cause>>, Error> {
    let target = Target {
        package: options.package.clone(),
        csv: None,
    };
    let mut lasting_since = None;
    let awaited = WaitTarget {
        subscription: &options.package,
        ..WaitTarget::default()
    };
    progress.waiting("OLM to choose a version");
    loop {
        seen.refresh(cluster).await?;
        if let Some(found) = subscription(&awaited, seen).filter(|found| !found.status.current_csv.is_empty()) {
            return Ok(Ok(found.status.current_csv.clone()));
        }
        let errors: Vec<Cause> = find(&target, seen)
            .into_iter()
            .filter(|cause| cause.severity == Severity::Error)
            .collect();
        // Waiting does not add versions to the catalog.
        let lasting = errors
            .iter()
            .any(|cause| cause.lasting || cause.code == Code::PackageNotFound);
        let since = *lasting_since.get_or_insert_with(std::time::Instant::now);
        if (lasting && since.elapsed() > Duration::from_secs(8)) || progress.elapsed() > options.timeout {
            return Ok(Err(logs::with_logs(cluster, errors).await));
        }
        if !lasting {
            lasting_since = None;
        }
        tokio::time::sleep(Duration::from_millis(400)).await;
    }
}
