//! Waits for an installation: approves its plan, tells milestones, and stops early when waiting cannot help.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::json;

use super::cause::{Cause, Code, Severity};
use super::client::{Cluster, ObjectRef};
use super::explain::{Target, explain};
use super::narrator::Story;
use super::observe::Observation;
use super::progress::{Awaited, Stand, milestones, stand};
use super::{Error, adopt, kinds};

/// A cause that waiting will not heal must be seen this long before it ends the wait: OLM's conditions go stale, and phases
/// such as Failed can be passed through.
const CERTAINTY: Duration = Duration::from_secs(6);

/// The same for what OLM says of a resolution: the next one may come only after a catalog has been read again.
const RESOLUTION_CERTAINTY: Duration = Duration::from_secs(20);

/// At the end of the time a cause counts that was there so recently: OLM tries again and again, and each time all looks well
/// for a moment.
const RECENT: Duration = Duration::from_secs(30);

/// How often to look.
const INTERVAL: Duration = Duration::from_millis(400);

/// A CSV with webhooks leaves Succeeded shortly after it got there, when its certificate is rotated on an upgrade.
const SETTLE: Duration = Duration::from_secs(3);

/// Waits until the CSV has Succeeded. `Err` in the inner result carries the causes.
///
/// # Errors
/// [`Error::Request`], [`Error::Unreadable`].
pub async fn for_success(
    cluster: &Cluster,
    awaited: &Awaited<'_>,
    package: &str,
    timeout: Duration,
    seen: &mut Observation,
    story: &mut Story<'_>,
) -> Result<Result<(), Vec<Cause>>, Error> {
    let target = Target {
        package: package.to_owned(),
        csv: Some(awaited.csv.to_owned()),
    };
    let began = Instant::now();
    let mut told = BTreeSet::new();
    let mut certain: BTreeMap<(Code, Option<ObjectRef>), Instant> = BTreeMap::new();
    let mut succeeded_since: Option<Instant> = None;
    let mut latest: Option<(Instant, Vec<Cause>)> = None;
    loop {
        seen.refresh(cluster).await?;
        keep_adopted(cluster, awaited, seen).await?;
        for milestone in milestones(awaited, seen) {
            if told.insert(milestone.key) {
                story.done(milestone.text);
            }
        }
        match stand(awaited, seen) {
            Stand::Succeeded => {
                let since = *succeeded_since.get_or_insert_with(Instant::now);
                let settles = seen
                    .csv(awaited.csv)
                    .is_some_and(|csv| !csv.spec.webhookdefinitions.is_empty());
                if !settles || since.elapsed() >= SETTLE {
                    return Ok(Ok(()));
                }
                story.waiting(format!("ClusterServiceVersion {} to settle", awaited.csv));
            }
            Stand::ApprovalNeeded(plan, csvs) => {
                succeeded_since = None;
                if let Some(cause) = foreign(&plan, &csvs, package, seen) {
                    return Ok(Err(vec![cause]));
                }
                let object = ObjectRef::namespaced(kinds::install_plan(), &seen.namespace, &plan);
                cluster.merge(&object, &json!({"spec": {"approved": true}})).await?;
            }
            Stand::Waiting(text) => {
                succeeded_since = None;
                story.waiting(text);
            }
        }
        let causes = standing(explain(&target, seen));
        if succeeded_since.is_none() {
            let lasting = certainly_lasting(&causes, &mut certain);
            if !lasting.is_empty() {
                return Ok(Err(with_logs(cluster, lasting).await));
            }
        }
        if !causes.is_empty() {
            latest = Some((Instant::now(), causes.clone()));
        }
        if began.elapsed() > timeout {
            let recent = latest.filter(|(since, _)| since.elapsed() < RECENT);
            let causes = recent.map_or(causes, |(_, causes)| causes);
            return Ok(Err(with_logs(cluster, at_timeout(causes, awaited, seen, timeout)).await));
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Tells OLM again what it was told of the installed CSV, if it wrote a status that it had begun before.
async fn keep_adopted(cluster: &Cluster, awaited: &Awaited<'_>, seen: &Observation) -> Result<(), Error> {
    let forgotten = seen.subscriptions.iter().any(|found| {
        found.metadata.name.as_deref() == Some(awaited.subscription) && found.status.installed_csv.is_empty()
    });
    if !awaited.adopted.is_empty() && forgotten && seen.csv(awaited.adopted).is_some() {
        let object = ObjectRef::namespaced(kinds::subscription(), &seen.namespace, awaited.subscription);
        adopt::tell_installed(cluster, &object, awaited.adopted).await?;
    }
    Ok(())
}

/// How long a cause must be seen before it is believed, `None` for one that may pass.
fn certainty(cause: &Cause) -> Option<Duration> {
    let resolution = matches!(
        cause.code,
        Code::PackageNotFound
            | Code::CsvOrphan
            | Code::ResolutionUnsatisfiable
            | Code::CatalogBesideBroken
            | Code::SubscriptionBesideBroken
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

/// The errors, without the plan's approval, which the wait itself gives.
fn standing(causes: Vec<Cause>) -> Vec<Cause> {
    causes
        .into_iter()
        .filter(|cause| cause.severity == Severity::Error && cause.code != Code::InstallPlanUnapproved)
        .collect()
}

/// Those lasting causes that were seen long enough without a break.
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

/// When the time is over: what was found wrong, else where it stands.
fn at_timeout(causes: Vec<Cause>, awaited: &Awaited<'_>, seen: &Observation, timeout: Duration) -> Vec<Cause> {
    if !causes.is_empty() {
        return causes;
    }
    let at = match stand(awaited, seen) {
        Stand::Waiting(text) => format!("still waiting for {text}"),
        other => format!("{other:?}"),
    };
    vec![Cause::passing(
        Code::Timeout,
        format!("{} s are over and nothing wrong was found; {at}", timeout.as_secs()),
        "run the same command again, it continues where this one stopped; a longer --timeout helps on slow nodes",
    )]
}

/// A plan must not change operators that nobody asked about.
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
            Code::InstallPlanForeign,
            format!("would also upgrade {}, which nobody asked for here; OLM makes one plan for all Subscriptions of a namespace", others.join(", ")),
            format!("approve it yourself if that is wanted: kubectl -n {} patch installplans.{} {plan} --type=merge -p '{{\"spec\":{{\"approved\":true}}}}'; or install in another namespace", seen.namespace, kinds::OLM_GROUP),
        )
        .on(ObjectRef::namespaced(kinds::install_plan(), &seen.namespace, plan))
    })
}

/// Adds the last log lines of the pods that the causes name. A log that cannot be had is no reason to fail.
pub async fn with_logs(cluster: &Cluster, causes: Vec<Cause>) -> Vec<Cause> {
    let mut told = Vec::with_capacity(causes.len());
    for mut cause in causes {
        let pod = cause.object.clone().filter(|object| object.kind == kinds::pod());
        let wanted = matches!(
            cause.code,
            Code::OperatorCrashLoop | Code::CatalogPodCrash | Code::UnpackFailed | Code::OperatorNotReady
        );
        if let (Some(pod), true) = (pod, wanted) {
            cause.evidence.extend(log_lines(cluster, &pod).await);
            if cause.evidence.iter().any(|line| {
                line.contains("is larger than") || line.contains("exceeds the limit") || line.contains("max allowed")
            }) && cause.code == Code::UnpackFailed
            {
                cause.code = Code::UnpackTooLarge;
                cause.remedy = "make the bundle smaller: compressed, its manifests must fit into 1 MiB; shorten descriptions in CRD schemas".into();
            }
        }
        told.push(cause);
    }
    told
}

/// The last lines of a pod's containers: of the previous life if there was one.
async fn log_lines(cluster: &Cluster, pod: &ObjectRef) -> Vec<String> {
    let namespace = pod.namespace.as_deref().unwrap_or_default();
    let Ok(Some(value)) = cluster.get(pod).await else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    for list in ["/status/initContainerStatuses", "/status/containerStatuses"] {
        for status in value
            .pointer(list)
            .and_then(serde_json::Value::as_array)
            .into_iter()
            .flatten()
        {
            let name = super::facts::text(status, "/name");
            let restarted = status
                .get("restartCount")
                .and_then(serde_json::Value::as_i64)
                .unwrap_or(0)
                > 0;
            let failed = status
                .pointer("/state/terminated/exitCode")
                .and_then(serde_json::Value::as_i64)
                .is_some_and(|code| code != 0);
            if status.get("ready") == Some(&serde_json::Value::Bool(true))
                || !(restarted || failed || status.pointer("/state/running").is_some())
            {
                continue;
            }
            let mut tail = cluster.log_tail(namespace, &pod.name, name, restarted, 10).await;
            if tail.is_err() && restarted {
                tail = cluster.log_tail(namespace, &pod.name, name, false, 10).await;
            }
            lines.extend(
                tail.unwrap_or_default()
                    .into_iter()
                    .map(|line| format!("log of {name}: {line}")),
            );
        }
    }
    lines
}
