//! Waits for an installation: approves its InstallPlan, reports milestones, and stops early when waiting cannot help.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::json;

use super::adopt;
use super::causes::find::{self, Target};
use super::progress::{InstallState, WaitTarget, install_state, is_lost, milestones};
use crate::base::cause::{Cause, Code};
use crate::base::error::Error;
use crate::base::kinds;
use crate::base::object_ref::ObjectRef;
use crate::base::reporter::ProgressLog;
use crate::kube::client::Cluster;
use crate::kube::{logs, removal};
use crate::observe::observation::Observation;
use olmkit::diagnostics::Severity;
use olmkit::types::CatalogSource;

/// A lasting cause must be observed this long before it ends the wait: OLM's conditions go stale, and phases such as Failed
/// can be transient.
const CERTAINTY: Duration = Duration::from_secs(6);

/// The same for resolution failures: OLM may resolve again only after it has read a catalog again.
const RESOLUTION_CERTAINTY: Duration = Duration::from_secs(20);

/// At the timeout, a cause counts if it was observed this recently: OLM retries, and during each attempt everything looks
/// fine for a moment.
const RECENT: Duration = Duration::from_secs(30);

/// Time for OLM to connect to a catalog before its Subscription is created anyway.
const CONNECTION_LIMIT: Duration = Duration::from_secs(20);

/// The polling interval.
const INTERVAL: Duration = Duration::from_millis(400);

/// A CSV with webhooks leaves Succeeded shortly after it has reached it, when its certificate is rotated in an upgrade.
const SETTLE: Duration = Duration::from_secs(3);

/// Waits until the CSV has Succeeded. `Err` in the inner result carries the causes.
///
/// # Errors
/// [`Error::Request`], [`Error::Unreadable`].
pub async fn for_success(
    cluster: &Cluster,
    awaited: &WaitTarget<'_>,
    package: &str,
    timeout: Duration,
    seen: &mut Observation,
    progress: &mut ProgressLog<'_>,
) -> Result<Result<(), Vec<Cause>>, Error> {
    let target = Target {
        package: package.to_owned(),
        csv: Some(awaited.csv.to_owned()),
    };
    let began = Instant::now();
    let mut reported = BTreeSet::new();
    let mut certain: BTreeMap<(Code, Option<ObjectRef>), Instant> = BTreeMap::new();
    let mut succeeded_since: Option<Instant> = None;
    let mut lost_since: Option<Instant> = None;
    let mut latest: Option<(Instant, Vec<Cause>)> = None;
    loop {
        seen.refresh(cluster).await?;
        keep_adopted(cluster, awaited, seen).await?;
        for milestone in milestones(awaited, seen) {
            if reported.insert(milestone.key) {
                progress.done(milestone.text);
            }
        }
        match install_state(awaited, seen) {
            InstallState::Succeeded => {
                let since = *succeeded_since.get_or_insert_with(Instant::now);
                let settles = seen
                    .csv(awaited.csv)
                    .is_some_and(|csv| !csv.spec.webhookdefinitions.is_empty());
                if !settles || since.elapsed() >= SETTLE {
                    return Ok(Ok(()));
                }
                progress.waiting(format!("ClusterServiceVersion {} to settle", awaited.csv));
            }
            InstallState::ApprovalNeeded(plan, csvs) => {
                succeeded_since = None;
                if let Some(cause) = foreign(&plan, &csvs, package, seen) {
                    return Ok(Err(vec![cause]));
                }
                let object = ObjectRef::namespaced(kinds::install_plan(), &seen.namespace, &plan);
                cluster.merge(&object, &json!({"spec": {"approved": true}})).await?;
            }
            InstallState::Waiting(text) => {
                succeeded_since = None;
                progress.waiting(text);
            }
        }
        renew_lost(cluster, awaited, seen, &mut lost_since, progress).await?;
        let causes = standing(find::find(&target, seen));
        if succeeded_since.is_none() {
            let lasting = certainly_lasting(&causes, &mut certain);
            if !lasting.is_empty() {
                return Ok(Err(logs::with_logs(cluster, lasting).await));
            }
        }
        if !causes.is_empty() {
            latest = Some((Instant::now(), causes.clone()));
        }
        if began.elapsed() > timeout {
            let recent = latest.filter(|(since, _)| since.elapsed() < RECENT);
            let causes = recent.map_or(causes, |(_, causes)| causes);
            return Ok(Err(logs::with_logs(
                cluster,
                at_timeout(causes, awaited, seen, timeout),
            )
            .await));
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Waits until OLM is connected to the current catalog, for a limited time: the reason for a failure is found later.
///
/// OLM caches a catalog's content under the catalog's name, even after the catalog is deleted and created again, until
/// it is connected to the new one. It resolves an earlier Subscription from the old content.
///
/// # Errors
/// [`Error::Request`].
pub async fn for_connection(cluster: &Cluster, catalog: &str, progress: &mut ProgressLog<'_>) -> Result<(), Error> {
    let object = ObjectRef::namespaced(kinds::catalog_source(), &cluster.namespace, catalog);
    let began = Instant::now();
    progress.waiting(format!("OLM to connect to CatalogSource {catalog}"));
    while began.elapsed() < CONNECTION_LIMIT {
        let found: Option<CatalogSource> = cluster.get_as(&object).await?;
        if found.is_some_and(|found| is_connected(&found)) {
            break;
        }
        tokio::time::sleep(INTERVAL / 2).await;
    }
    Ok(())
}

/// Returns true if OLM is connected to the address that a catalog has now.
fn is_connected(catalog: &CatalogSource) -> bool {
    let address = &catalog.spec.address;
    let state = catalog.status.connection_state.as_ref();
    !address.is_empty() && catalog.is_ready() && state.is_some_and(|state| state.address == *address)
}

/// Records the installed CSV again if OLM has overwritten it with a status that it had computed before.
async fn keep_adopted(cluster: &Cluster, awaited: &WaitTarget<'_>, seen: &Observation) -> Result<(), Error> {
    let forgotten = seen.subscriptions.iter().any(|found| {
        found.metadata.name.as_deref() == Some(awaited.subscription) && found.status.installed_csv.is_empty()
    });
    if !awaited.adopted.is_empty() && forgotten && seen.csv(awaited.adopted).is_some() {
        let object = ObjectRef::namespaced(kinds::subscription(), &seen.namespace, awaited.subscription);
        adopt::record_installed_csv(cluster, &object, awaited.adopted).await?;
    }
    Ok(())
}

/// Re-creates a Subscription for which OLM has chosen the version from outdated state: a deleted CSV or plan. OLM
/// considers such a Subscription done and does not reconcile it again.
async fn renew_lost(
    cluster: &Cluster,
    awaited: &WaitTarget<'_>,
    seen: &Observation,
    since: &mut Option<Instant>,
    progress: &mut ProgressLog<'_>,
) -> Result<(), Error> {
    let Some(manifest) = awaited.manifest.filter(|_| is_lost(awaited, seen)) else {
        *since = None;
        return Ok(());
    };
    if since.get_or_insert_with(Instant::now).elapsed() < CERTAINTY {
        return Ok(());
    }
    *since = None;
    let object = ObjectRef::namespaced(kinds::subscription(), &seen.namespace, awaited.subscription);
    cluster.delete(&object).await?;
    removal::gone(cluster, &object).await?;
    cluster.apply(manifest).await?;
    progress.done(format!("{object}: re-created, because OLM considered it installed"));
    Ok(())
}

/// How long a cause must be observed before it counts as permanent, `None` for a transient one.
fn certainty(cause: &Cause) -> Option<Duration> {
    let resolution = matches!(
        cause.code,
        Code::PackageNotFound
            | Code::OrphanedCsv
            | Code::ResolutionUnsatisfiable
            | Code::OtherCatalogBroken
            | Code::OtherSubscriptionBroken
    ) || cause.code == Code::RequirementApiMissing
        && cause
            .object
            .as_ref()
            .is_some_and(|object| object.kind == kinds::subscription());
    match (resolution, cause.lasting) {
        (true, _) => Some(RESOLUTION_CERTAINTY),
        (false, true) => Some(CERTAINTY),
        (false, false) => None,
    }
}

/// The errors, except for a missing approval, which the wait itself grants.
fn standing(causes: Vec<Cause>) -> Vec<Cause> {
    causes
        .into_iter()
        .filter(|cause| cause.severity == Severity::Error && cause.code != Code::InstallPlanUnapproved)
        .collect()
}

/// The lasting causes that were observed long enough without interruption.
fn certainly_lasting(causes: &[Cause], certain: &mut BTreeMap<(Code, Option<ObjectRef>), Instant>) -> Vec<Cause> {
    let key = |cause: &Cause| (cause.code, cause.object.clone());
    let now: BTreeSet<_> = causes
        .iter()
        .filter(|cause| certainty(cause).is_some())
        .map(key)
        .collect();
    certain.retain(|seen, _| now.contains(seen));
    for cause in now {
        certain.entry(cause).or_insert_with(Instant::now);
    }
    let proven = |cause: &&Cause| {
        certain
            .get(&key(cause))
            .zip(certainty(cause))
            .is_some_and(|(since, least)| since.elapsed() >= least)
    };
    causes.iter().filter(proven).cloned().collect()
}

/// At the timeout: the causes found, else the current state.
fn at_timeout(causes: Vec<Cause>, awaited: &WaitTarget<'_>, seen: &Observation, timeout: Duration) -> Vec<Cause> {
    if !causes.is_empty() {
        return causes;
    }
    let at = match install_state(awaited, seen) {
        InstallState::Waiting(text) => format!("still waiting for {text}"),
        other => format!("{other:?}"),
    };
    vec![Cause::passing(
        Code::Timeout,
        format!("timed out after {} s without a known cause; {at}", timeout.as_secs()),
        "run the same command again to continue; use a longer --timeout on slow nodes",
    )]
}

/// An InstallPlan must not change operators that were not requested.
fn foreign(plan: &str, csvs: &[String], package: &str, seen: &Observation) -> Option<Cause> {
    let others: Vec<&str> = seen
        .subscriptions
        .iter()
        .filter(|found| {
            found.spec.name != package
                && !found.status.installed_csv.is_empty()
                && found.status.installed_csv != found.status.current_csv
        })
        .map(|found| found.status.current_csv.as_str())
        .filter(|name| csvs.iter().any(|csv| csv == name))
        .collect();
    (!others.is_empty()).then(|| {
        Cause::lasting(
            Code::InstallPlanChangesOthers,
            format!("would also upgrade {}, which was not requested; OLM makes one plan for all Subscriptions of a namespace", others.join(", ")),
            format!("to upgrade it too, approve the plan: kubectl -n {} patch installplans.{} {plan} --type=merge -p '{{\"spec\":{{\"approved\":true}}}}'; or install in another namespace", seen.namespace, kinds::OLM_GROUP),
        )
        .on(ObjectRef::namespaced(kinds::install_plan(), &seen.namespace, plan))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_to_an_earlier_catalog_of_that_name_does_not_count() {
        let read = |found: serde_json::Value| serde_json::from_value::<CatalogSource>(found).unwrap();
        let catalog = |state: &str, address: &str| {
            read(
                json!({"spec": {"address": "127.0.0.1:2"}, "status": {"connectionState": {"address": address, "lastObservedState": state}}}),
            )
        };
        assert!(is_connected(&catalog("READY", "127.0.0.1:2")));
        assert!(!is_connected(&catalog("CONNECTING", "127.0.0.1:2")));
        assert!(!is_connected(&catalog("READY", "127.0.0.1:1")));
        assert!(!is_connected(&read(json!({"spec": {"address": "127.0.0.1:2"}}))));
        assert!(!is_connected(&read(json!({}))));
    }
}
