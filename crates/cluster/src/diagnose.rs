//! `diagnose`: why is an operator not installed, not upgrading, not deleted? Looks once and reports the causes.

use crate::base::error::Error;
use crate::base::finding::Finding;
use crate::kube::client::Cluster;
use crate::kube::logs;
use crate::observe::observation::Observation;
use crate::v0::causes::find::{self, Target};
use crate::v0::preflight;
use crate::v0::progress::{WaitTarget, milestones};
use crate::v1;
use olmkit::diagnostics::Severity;

/// Diagnoses one package, or all packages that have a Subscription or CSV in the namespace.
///
/// # Errors
/// [`Error::Request`], [`Error::Unreadable`].
pub async fn diagnose(cluster: &Cluster, package: Option<&str>) -> Result<Vec<Finding>, Error> {
    let seen = Observation::full(cluster, &Default::default()).await?;
    let mut findings = v1::findings(cluster, package).await?;
    // Whatever OLM v1 has is not looked for in OLM v0, unless that has it too.
    let of_v1 = !findings.is_empty() || is_v1_alone(&seen);
    let packages = match package {
        Some(package) if of_v1 && !packages(&seen).iter().any(|found| found == package) => Vec::new(),
        Some(package) => vec![package.to_owned()],
        None => packages(&seen),
    };
    for package in packages {
        let causes = find::find(
            &Target {
                package: package.clone(),
                csv: None,
            },
            &seen,
        );
        let causes = logs::with_logs(cluster, causes).await;
        findings.push(Finding {
            reached: reached(&package, &seen),
            namespace: seen.namespace.clone(),
            healthy: !causes.iter().any(|cause| cause.severity == Severity::Error),
            causes,
            package,
        });
    }
    if findings.is_empty() && !is_v1_alone(&seen) {
        // Nothing is installed here, but what would block an installation is worth reporting.
        let mut causes = preflight::place(&seen);
        causes.extend(preflight::catalogs_beside(&seen, ""));
        if !causes.is_empty() {
            let healthy = !causes.iter().any(|cause| cause.severity == Severity::Error);
            findings.push(Finding {
                package: String::new(),
                namespace: seen.namespace.clone(),
                healthy,
                reached: Vec::new(),
                causes,
            });
        }
    }
    Ok(findings)
}

/// Returns true if the cluster has OLM v1 and no OLM v0.
fn is_v1_alone(seen: &Observation) -> bool {
    seen.olm.crds.is_empty() && seen.crds.contains_key("clusterextensions.olm.operatorframework.io")
}

/// The packages of a namespace: from Subscriptions, then from CSVs that no Subscription names.
fn packages(seen: &Observation) -> Vec<String> {
    let mut found: Vec<String> = seen
        .subscriptions
        .iter()
        .map(|subscription| subscription.spec.name.clone())
        .collect();
    found.extend(
        seen.csvs
            .iter()
            .filter(|csv| !csv.is_copied())
            .filter_map(olmkit::types::DeployedCsv::package),
    );
    found.sort();
    found.dedup();
    found
}

fn reached(package: &str, seen: &Observation) -> Vec<String> {
    let Some(subscription) = seen.subscriptions_for(package).next() else {
        return Vec::new();
    };
    let csv = [&subscription.status.current_csv, &subscription.status.installed_csv]
        .into_iter()
        .find(|name| !name.is_empty())
        .cloned()
        .unwrap_or_default();
    let awaited = WaitTarget {
        subscription: subscription.metadata.name.as_deref().unwrap_or_default(),
        catalog: (&subscription.spec.source_namespace, &subscription.spec.source),
        csv: &csv,
        ..WaitTarget::default()
    };
    milestones(&awaited, seen)
        .into_iter()
        .map(|milestone| milestone.text)
        .collect()
}
