//! Follows a package from the OperatorGroup to the pods.

use super::{catalog, csv, plan, resolution, unpack};
use crate::base::cause::{Cause, Code, sorted};
use crate::base::object_ref::ObjectRef;
use crate::base::{kinds, names};
use crate::observe::observation::Observation;
use crate::v0::preflight;
use olmkit::types::{DeployedCsv, Subscription};

/// The installation to examine.
#[derive(Clone, Debug, Default)]
pub struct Target {
    /// The package.
    pub package: String,
    /// The CSV that is being waited for, if it is known already.
    pub csv: Option<String>,
}

/// Finds the causes that keep a package from being installed and healthy. Empty if it is healthy or in progress.
pub fn find(target: &Target, seen: &Observation) -> Vec<Cause> {
    let mut causes = preflight::place(seen);
    if causes
        .iter()
        .any(|cause| matches!(cause.code, Code::OlmNotInstalled | Code::NamespaceMissing))
    {
        return sorted(causes);
    }
    causes.extend(of_groups(seen));
    let subscriptions: Vec<&Subscription> = seen.subscriptions_for(&target.package).collect();
    for subscription in &subscriptions {
        causes.extend(of_subscription(subscription, seen));
    }
    let csvs = csvs_of(target, &subscriptions, seen);
    for csv in &csvs {
        causes.extend(csv::of_csv(csv, seen));
    }
    if subscriptions.is_empty() {
        causes.extend(without_subscription(target, &csvs, seen));
    }
    sorted(causes)
}

/// The CSVs of a package in the namespace: those that its Subscriptions name, and those whose annotation names the package.
fn csvs_of<'a>(target: &Target, subscriptions: &[&Subscription], seen: &'a Observation) -> Vec<&'a DeployedCsv> {
    seen.csvs
        .iter()
        .filter(|csv| !csv.is_copied())
        .filter(|csv| {
            target.csv.as_deref() == Some(csv.name())
                || csv.package().is_some_and(|package| package == target.package)
                || subscriptions.iter().any(|found| {
                    [&found.status.current_csv, &found.status.installed_csv]
                        .into_iter()
                        .any(|name| name == csv.name())
                })
        })
        .collect()
}

fn of_groups(seen: &Observation) -> Option<Cause> {
    let namespace = ObjectRef::cluster(kinds::namespace(), &seen.namespace);
    match seen.operator_groups.as_slice() {
        [] => Some(
            Cause::lasting(
                Code::OperatorGroupMissing,
                "has no OperatorGroup; OLM resolves no Subscription in such a namespace and reports no error",
                format!("create one: olmkit run bundle and olmkit subscribe do it, or kubectl -n {} create -f - with kind OperatorGroup, apiVersion operators.coreos.com/v1", seen.namespace),
            )
            .on(namespace),
        ),
        [group] if group.status.namespaces.is_empty() => Some(
            Cause::passing(
                Code::OperatorGroupNotReady,
                "does not list its namespaces yet; InstallPlans of the namespace wait for it",
                "check that olm-operator runs: olmkit olm status; if the group selects namespaces by label, check that one has the label",
            )
            .on(ObjectRef::namespaced(kinds::operator_group(), &seen.namespace, group.metadata.name.as_deref().unwrap_or_default())),
        ),
        [_] => None,
        several => Some(preflight::several_groups(several, &seen.namespace)),
    }
}

fn of_subscription(subscription: &Subscription, seen: &Observation) -> Vec<Cause> {
    let mut causes = Vec::new();
    let pending_plan = subscription
        .status
        .install_plan_ref
        .as_ref()
        .and_then(|reference| seen.install_plan(&reference.name))
        .filter(|plan| plan.status.phase != "Complete");
    let settled = !subscription.status.installed_csv.is_empty();
    // A catalog matters until the installation has settled.
    if !settled {
        causes.extend(catalog::of_subscription(subscription, seen));
    }
    match pending_plan {
        Some(plan) => causes.extend(plan::of_plan(plan, subscription, seen)),
        None => {
            let unpacking = unpack::of_subscription(subscription, seen);
            // While a bundle is being unpacked the last ResolutionFailed is stale.
            if unpacking.is_empty()
                && subscription.condition("BundleUnpacking").is_none()
                && !is_under_way(subscription, seen)
            {
                causes.extend(resolution::of_subscription(subscription, seen));
            }
            causes.extend(unpacking);
        }
    }
    if causes.is_empty()
        && !settled
        && subscription.status.current_csv.is_empty()
        && subscription.status.conditions.is_empty()
    {
        causes.push(
            Cause::passing(
                Code::OlmIdle,
                "has no status: catalog-operator has not processed it",
                "check that catalog-operator runs: olmkit olm status",
            )
            .on(seen.reference(subscription)),
        );
    }
    causes
}

/// Returns true if the chosen version exists and is still being installed. Resolution failures that OLM reports in this
/// phase are not the cause: during an upgrade it reports that no Subscription refers to the replaced version.
fn is_under_way(subscription: &Subscription, seen: &Observation) -> bool {
    let chosen = seen.csv(&subscription.status.current_csv);
    chosen.is_some_and(|csv| csv.status.phase != "Succeeded")
        || seen.csvs.iter().any(|csv| {
            !csv.is_copied()
                && matches!(csv.status.phase.as_str(), "Replacing" | "Deleting")
                && chosen.is_some_and(|chosen| chosen.spec.replaces == csv.name())
        })
}

fn without_subscription(target: &Target, csvs: &[&DeployedCsv], seen: &Observation) -> Vec<Cause> {
    if csvs.is_empty() {
        return vec![Cause::lasting(
            Code::NotInstalled,
            format!(
                "package {} has neither Subscription nor ClusterServiceVersion in namespace {}",
                target.package, seen.namespace
            ),
            "install it: olmkit run bundle, or olmkit subscribe from a catalog; or name its namespace with -n",
        )];
    }
    csvs.iter()
        .filter(|csv| csv.released().is_none())
        .map(|csv| {
            Cause::warning(
                Code::OrphanedCsv,
                format!("no Subscription for package {} refers to it: OLM does not upgrade it, and a new Subscription cannot install it", target.package),
                format!("olmkit cleanup {} -n {} and install it again", names::word(&target.package), seen.namespace),
            )
            .on(ObjectRef::namespaced(kinds::cluster_service_version(), &seen.namespace, csv.name()))
        })
        .collect()
}
