//! Objects from an earlier run, and how a new run continues.

use crate::base::cause::{Cause, Code};
use crate::base::object_ref::ObjectRef;
use crate::base::{kinds, names};
use crate::bundle::facts::BundleFacts;
use crate::observe::observation::Observation;
use olmkit::types::{DeployedCsv, Subscription};

/// Existing objects of the package in the namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EarlierRun {
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
        /// The reason why it cannot be continued.
        why: String,
    },
    /// Something that this flow must not touch.
    InTheWay(Box<Cause>),
}

/// Classifies the existing objects.
pub fn earlier(bundle: &BundleFacts, seen: &Observation) -> EarlierRun {
    let subscriptions: Vec<&Subscription> = seen.subscriptions_for(&bundle.package).collect();
    let Some(subscription) = subscriptions.first() else {
        return released(bundle, seen);
    };
    let name = subscription.metadata.name.as_deref().unwrap_or_default();
    let object = ObjectRef::namespaced(kinds::subscription(), &seen.namespace, name);
    if subscriptions.len() > 1 || subscription.spec.source != names::catalog_source(&bundle.package) {
        return EarlierRun::InTheWay(Box::new(
            Cause::lasting(
                Code::SubscriptionExists,
                format!(
                    "package {} already has a Subscription, from catalog {}/{}",
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
        return EarlierRun::InTheWay(Box::new(other_version(installed, bundle, seen).on(object)));
    }
    same_version(bundle, subscription, object, seen)
}

/// A CSV that was installed from a host, whose Subscription and catalog were deleted afterwards. The newest one if an
/// upgrade was interrupted between two.
pub fn released_csv<'a>(package: &str, seen: &'a Observation) -> Option<&'a DeployedCsv> {
    let label = names::component_label(package, &seen.namespace);
    let of_package = |csv: &&DeployedCsv| {
        let labels = csv.metadata.labels.as_ref();
        labels.is_some_and(|labels| labels.contains_key(&label)) || csv.package().is_some_and(|found| found == package)
    };
    let released: Vec<&DeployedCsv> = seen
        .csvs
        .iter()
        .filter(|csv| !csv.is_copied() && csv.released().is_some())
        .filter(of_package)
        .collect();
    let is_replaced = |csv: &DeployedCsv| released.iter().any(|other| other.spec.replaces == csv.name());
    released.iter().copied().find(|csv| !is_replaced(csv))
}

fn released(bundle: &BundleFacts, seen: &Observation) -> EarlierRun {
    let Some(csv) = released_csv(&bundle.package, seen) else {
        return EarlierRun::Nothing;
    };
    let object = ObjectRef::namespaced(kinds::cluster_service_version(), &seen.namespace, csv.name());
    if csv.name() != bundle.csv_name() {
        return EarlierRun::InTheWay(Box::new(other_version(csv.name(), bundle, seen).on(object)));
    }
    let unchanged = csv.released() == Some(names::released_value(&bundle.digest).as_str());
    match (unchanged, csv.status.phase.as_str()) {
        (true, "Succeeded") => EarlierRun::Installed,
        (true, "Failed") => EarlierRun::StartOver {
            remove: vec![object],
            why: "the earlier attempt failed".into(),
        },
        // Its plan may have been deleted with the Subscription, and then nothing creates the missing objects.
        (true, "" | "Pending") => EarlierRun::StartOver {
            remove: vec![object],
            why: "the earlier attempt ended before the whole bundle was installed".into(),
        },
        (true, _) => EarlierRun::OnlyCsv,
        (false, _) => EarlierRun::StartOver {
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
            "olmkit run bundle-upgrade to change the version, or olmkit cleanup {} -n {} to start over",
            bundle.package, seen.namespace
        ),
    )
}

fn same_version(
    bundle: &BundleFacts,
    subscription: &Subscription,
    object: ObjectRef,
    seen: &Observation,
) -> EarlierRun {
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
    let plan_waits = plan.is_some_and(|plan| plan.is_retried());
    let lost = plan.is_some_and(|plan| plan.status.phase == "Complete") && csv.is_none();
    let why = match (unchanged, phase) {
        (true, "Succeeded") => return EarlierRun::Installed,
        (false, _) => "the bundle changed since it was installed",
        (true, "Failed") => "the earlier attempt failed",
        (true, _) if plan_failed => "the plan of the earlier attempt failed",
        (true, _) if plan_waits => "the plan of the earlier attempt could not be executed",
        (true, _) if lost => "the ClusterServiceVersion of the earlier attempt was deleted",
        (true, _) => return EarlierRun::UnderWay,
    };
    let mut remove = vec![object];
    remove.extend(csv.map(|csv| ObjectRef::namespaced(kinds::cluster_service_version(), &seen.namespace, csv.name())));
    // With it go the unpacked contents, which OLM would use again for the same image name.
    remove.push(ObjectRef::namespaced(
        kinds::catalog_source(),
        &seen.namespace,
        &names::catalog_source(&bundle.package),
    ));
    EarlierRun::StartOver {
        remove,
        why: why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn bundle() -> BundleFacts {
        let mut bundle = BundleFacts {
            package: "cache".into(),
            digest: "d".repeat(64),
            ..BundleFacts::default()
        };
        bundle.csv = csv("cache.v2.0.0", "", json!({}), "");
        bundle
    }

    fn csv(name: &str, phase: &str, labels: Value, replaces: &str) -> DeployedCsv {
        serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "shop", "labels": labels},
            "spec": {"replaces": replaces},
            "status": {"phase": phase},
        }))
        .unwrap()
    }

    fn released_labels(digest: &str) -> Value {
        json!({names::component_label("cache", "shop"): "", names::RELEASED_LABEL: names::released_value(digest)})
    }

    fn subscription(digest: &str, source: &str, installed: &str) -> Subscription {
        serde_json::from_value(json!({
            "metadata": {"name": "s", "annotations": {names::DIGEST_ANNOTATION: digest}},
            "spec": {"name": "cache", "source": source, "sourceNamespace": "shop", "startingCSV": "cache.v2.0.0"},
            "status": {"installedCSV": installed, "currentCSV": installed},
        }))
        .unwrap()
    }

    fn seen(subscriptions: Vec<Subscription>, csvs: Vec<DeployedCsv>) -> Observation {
        Observation {
            namespace: "shop".into(),
            subscriptions,
            csvs,
            ..Observation::default()
        }
    }

    fn removed(earlier: EarlierRun) -> Vec<String> {
        match earlier {
            EarlierRun::StartOver { remove, .. } => remove.iter().map(|object| object.kind.kind.clone()).collect(),
            other => panic!("{other:?}"),
        }
    }

    fn code(earlier: EarlierRun) -> Code {
        match earlier {
            EarlierRun::InTheWay(cause) => cause.code,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_run_continues_where_the_last_one_stopped() {
        let (bundle, digest) = (bundle(), "d".repeat(64));
        assert_eq!(earlier(&bundle, &seen(vec![], vec![])), EarlierRun::Nothing);
        let wish = || subscription(&digest, "cache-catalog", "cache.v2.0.0");
        let phase = |phase| vec![csv("cache.v2.0.0", phase, json!({}), "")];
        assert_eq!(
            earlier(&bundle, &seen(vec![wish()], phase("Installing"))),
            EarlierRun::UnderWay
        );
        assert_eq!(
            earlier(&bundle, &seen(vec![wish()], phase("Succeeded"))),
            EarlierRun::Installed
        );
        let all = ["Subscription", "ClusterServiceVersion", "CatalogSource"];
        assert_eq!(removed(earlier(&bundle, &seen(vec![wish()], phase("Failed")))), all);
        let changed = subscription("other", "cache-catalog", "cache.v2.0.0");
        assert_eq!(removed(earlier(&bundle, &seen(vec![changed], phase("Succeeded")))), all);
    }

    #[test]
    fn installations_of_an_earlier_run_are_recognized() {
        let (bundle, digest) = (bundle(), "d".repeat(64));
        let left = |phase, digest: &str| seen(vec![], vec![csv("cache.v2.0.0", phase, released_labels(digest), "")]);
        assert_eq!(earlier(&bundle, &left("Succeeded", &digest)), EarlierRun::Installed);
        assert_eq!(earlier(&bundle, &left("Installing", &digest)), EarlierRun::OnlyCsv);
        assert_eq!(
            removed(earlier(&bundle, &left("Pending", &digest))),
            ["ClusterServiceVersion"]
        );
        assert_eq!(
            removed(earlier(&bundle, &left("Succeeded", "other"))),
            ["ClusterServiceVersion"]
        );
    }

    #[test]
    fn an_upgrade_that_was_interrupted_left_two_versions_and_the_newer_counts() {
        let digest = "d".repeat(64);
        let old = csv("cache.v1.0.0", "Replacing", released_labels("old"), "");
        let new = csv("cache.v2.0.0", "Installing", released_labels(&digest), "cache.v1.0.0");
        let seen = seen(vec![], vec![old, new]);
        assert_eq!(
            released_csv("cache", &seen).map(DeployedCsv::name),
            Some("cache.v2.0.0")
        );
        assert_eq!(earlier(&bundle(), &seen), EarlierRun::OnlyCsv);
    }

    #[test]
    fn objects_of_other_installations_block_a_run() {
        let (bundle, digest) = (bundle(), "d".repeat(64));
        let elsewhere = subscription(&digest, "community", "");
        assert_eq!(
            code(earlier(&bundle, &seen(vec![elsewhere], vec![]))),
            Code::SubscriptionExists
        );
        let older = subscription(&digest, "cache-catalog", "cache.v1.0.0");
        assert_eq!(
            code(earlier(&bundle, &seen(vec![older], vec![]))),
            Code::OtherVersionInstalled
        );
    }
}
