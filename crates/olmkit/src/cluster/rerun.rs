//! What an earlier run left, and what a new one does with it.

use super::cause::{Cause, Code};
use super::client::ObjectRef;
use super::facts::BundleFacts;
use super::kinds;
use super::names;
use super::observe::Observation;
use crate::types::{DeployedCsv, Subscription};

/// What stands in the namespace for the package already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Earlier {
    /// Nothing.
    Nothing,
    /// This very bundle, installed.
    Installed,
    /// This very bundle, under way.
    UnderWay,
    /// This very bundle, past the point where a Subscription is needed: only the CSV is waited for.
    OnlyCsv,
    /// Something that cannot be continued: these objects go first.
    StartOver {
        /// In the order of deletion.
        remove: Vec<ObjectRef>,
        /// Why it cannot be continued.
        why: String,
    },
    /// Something that this flow must not touch.
    InTheWay(Box<Cause>),
}

/// Judges what stands there.
pub fn earlier(bundle: &BundleFacts, seen: &Observation) -> Earlier {
    let subscriptions: Vec<&Subscription> = seen.subscriptions_for(&bundle.package).collect();
    let Some(subscription) = subscriptions.first() else {
        return released(bundle, seen);
    };
    let name = subscription.metadata.name.as_deref().unwrap_or_default();
    let object = ObjectRef::namespaced(kinds::subscription(), &seen.namespace, name);
    if subscriptions.len() > 1 || subscription.spec.source != names::catalog_source(&bundle.package) {
        return Earlier::InTheWay(Box::new(
            Cause::lasting(
                Code::SubscriptionExists,
                format!(
                    "package {} is subscribed already, from catalog {}/{}",
                    bundle.package, subscription.spec.source_namespace, subscription.spec.source
                ),
                format!(
                    "olmkit run bundle-upgrade to upgrade it, or olmkit cleanup {} -n {} to remove it first",
                    bundle.package, seen.namespace
                ),
            )
            .on(object),
        ));
    }
    let installed = &subscription.status.installed_csv;
    if !installed.is_empty() && installed != bundle.csv_name() {
        return Earlier::InTheWay(Box::new(other_version(installed, bundle, seen).on(object)));
    }
    same_version(bundle, subscription, object, seen)
}

/// A CSV that was installed from a host, whose Subscription and catalog went afterwards.
pub fn released_csv<'a>(package: &str, seen: &'a Observation) -> Option<&'a DeployedCsv> {
    let label = names::component_label(package, &seen.namespace);
    let ours = |csv: &&DeployedCsv| {
        csv.metadata
            .labels
            .as_ref()
            .is_some_and(|labels| labels.contains_key(&label))
            || csv.package().is_some_and(|found| found == package)
    };
    seen.csvs
        .iter()
        .filter(|csv| !csv.is_copied() && csv.released().is_some())
        .find(ours)
}

fn released(bundle: &BundleFacts, seen: &Observation) -> Earlier {
    let Some(csv) = released_csv(&bundle.package, seen) else {
        return Earlier::Nothing;
    };
    let object = ObjectRef::namespaced(kinds::cluster_service_version(), &seen.namespace, csv.name());
    if csv.name() != bundle.csv_name() {
        return Earlier::InTheWay(Box::new(other_version(csv.name(), bundle, seen).on(object)));
    }
    let unchanged = csv.released() == Some(&names::released_value(&bundle.digest));
    match (unchanged, csv.status.phase.as_str()) {
        (true, "Succeeded") => Earlier::Installed,
        (true, "Failed") => Earlier::StartOver {
            remove: vec![object],
            why: "the earlier attempt failed".into(),
        },
        (true, _) => Earlier::OnlyCsv,
        (false, _) => Earlier::StartOver {
            remove: vec![object],
            why: "the bundle changed since it was installed".into(),
        },
    }
}

fn other_version(installed: &str, bundle: &BundleFacts, seen: &Observation) -> Cause {
    Cause::lasting(
        Code::OtherVersionInstalled,
        format!("{installed} is installed, the bundle is {}", bundle.csv_name()),
        format!(
            "olmkit run bundle-upgrade to go from one to the other, or olmkit cleanup {} -n {} to begin anew",
            bundle.package, seen.namespace
        ),
    )
}

fn same_version(bundle: &BundleFacts, subscription: &Subscription, object: ObjectRef, seen: &Observation) -> Earlier {
    let digest = subscription
        .metadata
        .annotations
        .as_ref()
        .and_then(|found| found.get(names::DIGEST_ANNOTATION));
    let unchanged = digest == Some(&bundle.digest) && subscription.spec.starting_csv == bundle.csv_name();
    let csv = seen.csv(bundle.csv_name());
    let phase = csv.map(|csv| csv.status.phase.as_str()).unwrap_or_default();
    let plan = subscription
        .status
        .install_plan_ref
        .as_ref()
        .and_then(|reference| seen.install_plan(&reference.name));
    let plan_failed = plan.is_some_and(|plan| plan.status.phase == "Failed");
    let lost = plan.is_some_and(|plan| plan.status.phase == "Complete") && csv.is_none();
    let why = match (unchanged, phase) {
        (true, "Succeeded") => return Earlier::Installed,
        (false, _) => "the bundle changed since it was installed",
        (true, "Failed") => "the earlier attempt failed",
        (true, _) if plan_failed => "the plan of the earlier attempt failed",
        (true, _) if lost => "the ClusterServiceVersion of the earlier attempt was deleted",
        (true, _) => return Earlier::UnderWay,
    };
    let mut remove = vec![object];
    remove.extend(csv.map(|csv| ObjectRef::namespaced(kinds::cluster_service_version(), &seen.namespace, csv.name())));
    // With it go the unpacked contents, which OLM would use again for the same image name.
    remove.push(ObjectRef::namespaced(
        kinds::catalog_source(),
        &seen.namespace,
        &names::catalog_source(&bundle.package),
    ));
    Earlier::StartOver {
        remove,
        why: why.to_owned(),
    }
}
