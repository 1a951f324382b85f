//! `run bundle`: from a bundle to a Succeeded ClusterServiceVersion.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::cause::{Cause, Severity, has_errors};
use super::cleanup;
use super::client::{Cluster, ObjectRef};
use super::explain::unfinished;
use super::facts::BundleFacts;
use super::install_mode::InstallMode;
use super::narrator::{Narrator, Step, Story};
use super::observe::Observation;
use super::preflight::{self, Wishes};
use super::progress::Awaited;
use super::rerun::{Earlier, earlier};
use super::serving::{Place, Serving};
use super::{Error, cluster_objects, intent, names, wait};

/// What the flow is told besides the bundle.
#[derive(Clone, Debug)]
pub struct Options {
    /// `--install-mode`.
    pub install_mode: Option<InstallMode>,
    /// Where the catalog with the bundle is served.
    pub place: Place,
    /// Secret with registry credentials for OLM's pods.
    pub pull_secret: Option<String>,
    /// How long to wait altogether.
    pub timeout: Duration,
    /// Remove what this run made when it fails.
    pub rollback: bool,
    /// Only check.
    pub check_only: bool,
}

/// How a flow ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// The CSV has Succeeded.
    Succeeded,
    /// It had before; nothing was done.
    AlreadyInstalled,
    /// Only checks were asked for, and nothing is wrong.
    Checked,
    /// Nothing was done because something is wrong.
    Refused,
    /// Something went wrong on the way.
    Failed,
}

/// What a flow did.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// How it ended.
    pub result: Ending,
    /// The package.
    pub package: String,
    /// The CSV.
    #[serde(rename = "clusterServiceVersion")]
    pub csv: String,
    /// The namespace.
    pub namespace: String,
    /// What is or was wrong; warnings too.
    pub causes: Vec<Cause>,
    /// When what was done.
    pub steps: Vec<Step>,
    /// Seconds altogether.
    pub seconds: f64,
}

impl Outcome {
    /// Whether the flow reached its end.
    pub fn is_fine(&self) -> bool {
        !matches!(self.result, Ending::Refused | Ending::Failed)
    }
}

/// Installs a bundle.
///
/// # Errors
/// [`Error::Request`] and the like. What is wrong in the cluster is no error but a cause in the outcome.
pub async fn run(
    cluster: &Cluster,
    bundle: &BundleFacts,
    options: &Options,
    narrator: &dyn Narrator,
) -> Result<Outcome, Error> {
    let mut story = Story::begin(narrator);
    let mut seen = Observation::full(cluster, &bundle.kinds()).await?;
    let wishes = Wishes {
        install_mode: options.install_mode.clone(),
        inline: bundle.image.is_none(),
        upgrade: false,
    };
    let mut causes = preflight::check(bundle, &wishes, &seen);
    let before = earlier(bundle, &seen);
    if let Earlier::InTheWay(cause) = &before {
        causes.push((**cause).clone());
    }
    if has_errors(&causes) {
        return Ok(outcome(Ending::Refused, bundle, &seen, causes, story));
    }
    story.done(checked(&seen));
    if options.check_only {
        return Ok(outcome(Ending::Checked, bundle, &seen, causes, story));
    }
    let before_is_only_csv = before == Earlier::OnlyCsv;
    match before {
        Earlier::Installed => return Ok(outcome(Ending::AlreadyInstalled, bundle, &seen, causes, story)),
        Earlier::StartOver { remove, why } => start_over(cluster, &remove, &why, &mut story).await?,
        _ => {}
    }
    let ended = if before_is_only_csv {
        let awaited = Awaited {
            csv: bundle.csv_name(),
            ..Awaited::default()
        };
        wait::for_success(
            cluster,
            &awaited,
            &bundle.package,
            options.timeout,
            &mut seen,
            &mut story,
        )
        .await?
    } else {
        install(cluster, bundle, options, &mut seen, &mut story).await?
    };
    Ok(match ended {
        Ok(()) => outcome(Ending::Succeeded, bundle, &seen, causes, story),
        Err(found) => {
            causes.extend(found);
            if options.rollback {
                roll_back(cluster, bundle, &seen, narrator, &mut story).await?;
            }
            outcome(Ending::Failed, bundle, &seen, causes, story)
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

async fn start_over(cluster: &Cluster, remove: &[ObjectRef], why: &str, story: &mut Story<'_>) -> Result<(), Error> {
    story.done(format!("{why}: starting over"));
    for object in remove {
        if cluster.delete(object).await? {
            wait_gone(cluster, object).await?;
            story.done(format!("{object}: removed"));
        }
    }
    Ok(())
}

/// Waits until an object is gone.
pub(super) async fn wait_gone(cluster: &Cluster, object: &ObjectRef) -> Result<(), Error> {
    const LIMIT: u64 = 60;
    let began = std::time::Instant::now();
    while cluster.get(object).await?.is_some() {
        if began.elapsed().as_secs() >= LIMIT {
            return Err(Error::NotGone {
                object: object.clone(),
                seconds: LIMIT,
            });
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Ok(())
}

async fn install(
    cluster: &Cluster,
    bundle: &BundleFacts,
    options: &Options,
    seen: &mut Observation,
    story: &mut Story<'_>,
) -> Result<Result<(), Vec<Cause>>, Error> {
    let blobs = intent::catalog(bundle, names::CHANNEL, None);
    let place = options.place.decide(&seen.olm, options.pull_secret.as_deref());
    let serving = match Serving::begin(cluster, bundle, &blobs, &place, options.timeout, story).await? {
        Ok(serving) => serving,
        Err(causes) => return Ok(Err(causes)),
    };
    let source = intent::catalog_source(
        &bundle.package,
        &seen.namespace,
        serving.served(),
        options.pull_secret.as_deref(),
    );
    create(cluster, &source, story).await?;
    unpack_anew(cluster, bundle, seen, story).await?;
    if let Some(group) = intent::operator_group(bundle, options.install_mode.as_ref(), seen) {
        create(cluster, &group, story).await?;
    }
    let (subscription, catalog) = (
        names::subscription(bundle.csv_name()),
        names::catalog_source(&bundle.package),
    );
    create(
        cluster,
        &intent::subscription(bundle, &subscription, &seen.namespace),
        story,
    )
    .await?;
    let namespace = seen.namespace.clone();
    let awaited = Awaited {
        subscription: &subscription,
        catalog: (&namespace, &catalog),
        csv: bundle.csv_name(),
        ..Awaited::default()
    };
    let ended = wait::for_success(cluster, &awaited, &bundle.package, options.timeout, seen, story).await?;
    if ended.is_ok() {
        cluster_objects::complete(cluster, bundle.csv_name(), seen).await?;
    }
    cluster_objects::label(cluster, &bundle.package, bundle.csv_name(), seen).await?;
    serving.end(cluster, bundle, story).await?;
    Ok(ended)
}

/// Removes what is left of earlier attempts to unpack the bundle image, so that OLM begins anew.
pub(super) async fn unpack_anew(
    cluster: &Cluster,
    bundle: &BundleFacts,
    seen: &Observation,
    story: &mut Story<'_>,
) -> Result<(), Error> {
    for job in bundle.image.iter().flat_map(|image| unfinished(image, seen)) {
        if cluster.delete(&job).await? {
            story.done(format!("{job}: removed, an earlier attempt to unpack the bundle image"));
        }
    }
    Ok(())
}

/// Applies a manifest and tells it.
pub(super) async fn create(cluster: &Cluster, manifest: &Value, story: &mut Story<'_>) -> Result<ObjectRef, Error> {
    let object = cluster.reference(manifest).await?;
    cluster.apply(manifest).await?;
    story.done(format!("{object}: created"));
    Ok(object)
}

/// Removes what the run made. CRDs that were there before stay.
async fn roll_back(
    cluster: &Cluster,
    bundle: &BundleFacts,
    seen: &Observation,
    narrator: &dyn Narrator,
    story: &mut Story<'_>,
) -> Result<(), Error> {
    story.done("rolling back");
    let options = cleanup::Options {
        package: bundle.package.clone(),
        crds: true,
        operator_groups: true,
        dry_run: false,
        timeout: Duration::from_secs(60),
        // `crds` was read before anything was created and is not refreshed.
        keep_crds: seen.crds.keys().cloned().collect::<BTreeSet<_>>().into_iter().collect(),
    };
    let report = cleanup::cleanup(cluster, &options, narrator).await?;
    story.done(format!("rolled back: {} objects removed", report.removed.len()));
    for cause in report.causes.iter().filter(|cause| cause.severity == Severity::Error) {
        story.done(cause.to_string());
    }
    Ok(())
}

pub(super) fn outcome(
    result: Ending,
    bundle: &BundleFacts,
    seen: &Observation,
    causes: Vec<Cause>,
    story: Story<'_>,
) -> Outcome {
    Outcome {
        result,
        package: bundle.package.clone(),
        csv: bundle.csv_name().to_owned(),
        namespace: seen.namespace.clone(),
        causes: super::cause::sorted(causes),
        seconds: (story.elapsed().as_secs_f64() * 10.0).round() / 10.0,
        steps: story.steps,
    }
}
