//! Causes in OLM's resolution, read from the Subscription's `ResolutionFailed` condition.

use crate::base::cause::{Cause, Code};
use crate::base::object_ref::ObjectRef;
use crate::base::{kinds, names};
use crate::observe::observation::Observation;
use crate::v0::preflight;
use olmkit::types::Subscription;

/// Causes that keep a Subscription from being resolved.
pub fn of_subscription(subscription: &Subscription, seen: &Observation) -> Vec<Cause> {
    let Some(condition) = subscription.condition("ResolutionFailed") else {
        return Vec::new();
    };
    let message = condition.message.as_str();
    if is_outdated(message, seen) {
        return Vec::new();
    }
    let object = seen.reference(subscription);
    let namespace = &seen.namespace;
    let cause = if message.contains("requires an operator providing an API") {
        api_missing(message, namespace)
    } else if message.contains("is not referenced by a subscription") {
        let csv = orphans(message).find(|csv| is_orphan(csv, seen)).unwrap_or_default();
        Cause::lasting(
            Code::OrphanedCsv,
            message,
            format!("delete the ClusterServiceVersion that no Subscription refers to: kubectl -n {namespace} delete clusterserviceversions.{} {}", kinds::OLM_GROUP, names::word(csv)),
        )
        .likely("a Subscription was deleted and its ClusterServiceVersion was not")
    } else if let Some(catalog) = quoted_after(message, "error using catalogsource ") {
        broken_catalog(&catalog, message, subscription)
    } else if let Some(other) = quoted_after(message, "referenced by subscription ")
        .filter(|other| Some(other) != subscription.metadata.name.as_ref())
    {
        preflight::subscription_beside(&other, namespace, message)
    } else if message.contains("no operators found") {
        Cause::passing(
            Code::PackageNotFound,
            message,
            format!("list the catalog: olmkit catalog list, or kubectl -n {namespace} get packagemanifests; then correct name, channel or startingCSV of the Subscription"),
        )
        .likely("the Subscription names a package, channel or version that the catalog does not contain")
    } else if condition.reason == "ConstraintsNotSatisfiable" {
        Cause::passing(
            Code::ResolutionUnsatisfiable,
            message,
            "the message names the conflicting constraints: remove one side of the conflict, or add a catalog that has the dependency",
        )
    } else {
        Cause::passing(
            Code::ResolutionNotStarted,
            format!("{}: {message}", condition.reason),
            "OLM retries by itself; if the error persists, remove the named object",
        )
    };
    vec![if cause.object.is_none() {
        cause.on(object)
    } else {
        cause
    }]
}

/// OLM keeps the condition until its next resolution, which may be minutes away. A condition about an object that has
/// changed in the meantime explains nothing, and a command for it would fail with NotFound.
fn is_outdated(message: &str, seen: &Observation) -> bool {
    if orphans(message).next().is_some() {
        return !orphans(message).any(|csv| is_orphan(csv, seen));
    }
    let catalog = quoted_after(message, "error using catalogsource ");
    let catalog = catalog.as_deref().and_then(|catalog| catalog.split_once('/'));
    catalog.is_some_and(|(namespace, name)| {
        let is_seen = namespace == seen.namespace || Some(namespace) == seen.olm.global_namespace.as_deref();
        is_seen && seen.catalog(namespace, name).is_none()
    })
}

/// The CSVs to which no Subscription refers, according to a message.
fn orphans(message: &str) -> impl Iterator<Item = &str> {
    message
        .match_indices(" exists and is not referenced by a subscription")
        .filter_map(|(at, _)| {
            message
                .get(..at)?
                .rsplit_once("clusterserviceversion ")
                .map(|(_, csv)| csv)
        })
        .filter(|csv| !csv.contains(' '))
}

/// Returns true if a CSV exists, and no Subscription refers to it.
fn is_orphan(csv: &str, seen: &Observation) -> bool {
    let refers = |subscription: &Subscription| {
        subscription.status.installed_csv == csv || subscription.status.current_csv == csv
    };
    seen.csv(csv).is_some() && !seen.subscriptions.iter().any(refers)
}

fn api_missing(message: &str, namespace: &str) -> Cause {
    Cause::passing(
        Code::RequirementApiMissing,
        message,
        format!(
            "install the operator that provides the API into namespace {namespace} first, or add a catalog that has it"
        ),
    )
    .likely("the operator requires an API of another operator, and no reachable catalog contains a provider")
}

/// `error using catalogsource NS/NAME: …`.
fn broken_catalog(catalog: &str, message: &str, subscription: &Subscription) -> Cause {
    let (namespace, name) = catalog.split_once('/').unwrap_or(("", catalog));
    let object = ObjectRef::namespaced(kinds::catalog_source(), namespace, name);
    if name == subscription.spec.source && namespace == subscription.spec.source_namespace {
        Cause::passing(
            Code::CatalogUnreachable,
            message,
            "see why the catalog does not answer: its pod, its address",
        )
        .on(object)
    } else {
        Cause::passing(
            Code::OtherCatalogBroken,
            message,
            format!(
                "fix that catalog or delete it: kubectl -n {} delete catalogsources.{} {}",
                names::word(namespace),
                kinds::OLM_GROUP,
                names::word(name)
            ),
        )
        .on(object)
        .likely("OLM stops if any reachable catalog fails, even if this Subscription does not use it")
    }
}

/// The word after a phrase, up to a space or a colon followed by a space.
fn quoted_after(message: &str, phrase: &str) -> Option<String> {
    let rest = message.split_once(phrase)?.1;
    let word = rest.split([' ', ',']).next()?.trim_end_matches(':');
    (!word.is_empty()).then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_cut_out_of_olms_sentences() {
        let message = "error using catalogsource olm/broken: failed to list bundles: rpc error: code = Unavailable";
        assert_eq!(
            quoted_after(message, "error using catalogsource ").as_deref(),
            Some("olm/broken")
        );
        let message = "constraints not satisfiable: clusterserviceversion a.v1.0.0 exists and is not referenced by a subscription, subscription s exists, clusterserviceversion b.v1 exists and is not referenced by a subscription";
        assert_eq!(orphans(message).collect::<Vec<_>>(), ["a.v1.0.0", "b.v1"]);
        assert_eq!(orphans("clusterserviceversion a.v1 exists").count(), 0);
    }

    fn subscription(reason: &str, message: &str) -> Subscription {
        serde_json::from_value(serde_json::json!({
            "metadata": {"name": "s", "namespace": "shop"},
            "spec": {"name": "cache", "source": "own", "sourceNamespace": "shop"},
            "status": {
                "installedCSV": "cache.v2",
                "currentCSV": "cache.v2",
                "conditions": [{"type": "ResolutionFailed", "status": "True", "reason": reason, "message": message}],
            },
        }))
        .unwrap()
    }

    #[test]
    fn a_condition_about_something_that_no_longer_exists_is_ignored() {
        let subscription = |message| subscription("ConstraintsNotSatisfiable", message);
        let orphan = subscription(
            "constraints not satisfiable: subscription s exists, clusterserviceversion cache.v1 exists and is not referenced by a subscription",
        );
        let broken = subscription("error using catalogsource shop/own: failed to list bundles");
        let seen = |csvs: &[&str], catalogs: &[&str]| Observation {
            namespace: "shop".to_owned(),
            csvs: csvs
                .iter()
                .map(|name| serde_json::json!({"metadata": {"name": name, "namespace": "shop"}}))
                .map(|csv| serde_json::from_value(csv).unwrap())
                .collect(),
            catalogs: catalogs
                .iter()
                .map(|name| serde_json::json!({"metadata": {"name": name, "namespace": "shop"}, "spec": {}}))
                .map(|catalog| serde_json::from_value(catalog).unwrap())
                .collect(),
            subscriptions: vec![orphan.clone()],
            ..Observation::default()
        };
        // The upgrade has replaced cache.v1.
        assert_eq!(of_subscription(&orphan, &seen(&["cache.v2"], &[])), []);
        let found = of_subscription(&orphan, &seen(&["cache.v1", "cache.v2"], &[]));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].code, Code::OrphanedCsv);
        assert!(
            found[0]
                .remedy
                .ends_with("delete clusterserviceversions.operators.coreos.com cache.v1")
        );
        // A Subscription refers to it by now.
        let adopted = subscription(
            "constraints not satisfiable: clusterserviceversion cache.v2 exists and is not referenced by a subscription",
        );
        assert_eq!(of_subscription(&adopted, &seen(&["cache.v2"], &[])), []);
        assert_eq!(of_subscription(&broken, &seen(&[], &[])), []);
        assert_eq!(of_subscription(&broken, &seen(&[], &["own"])).len(), 1);
    }

    /// A catalog's author writes the failure messages of constraints, which OLM repeats.
    #[test]
    fn a_message_inserts_no_command() {
        for phrase in ["error using catalogsource ", "referenced by subscription "] {
            for name in ["$(id)", "elsewhere/$(id)", "$(id)/x;id", "x`id`"] {
                let message = format!("constraints not satisfiable: {phrase}{name}: no");
                let seen = Observation {
                    namespace: "shop".to_owned(),
                    ..Observation::default()
                };
                let found = of_subscription(&subscription("ConstraintsNotSatisfiable", &message), &seen);
                let (_, command) = found[0].remedy.split_once("kubectl ").unwrap();
                // Outside of quotes.
                let plain: String = command.split('\'').step_by(2).collect();
                assert!(command.contains("id"), "{command}");
                assert!(!plain.contains(['$', '`', ';']), "{command}");
            }
        }
    }

    #[test]
    fn each_of_olms_sentences_has_its_cause() {
        let condition = |reason: &str, message: &str| {
            let csv = serde_json::json!({"metadata": {"name": "a.v1", "namespace": "shop"}});
            let seen = Observation {
                csvs: vec![serde_json::from_value(csv).unwrap()],
                ..Observation::default()
            };
            let found = of_subscription(&subscription(reason, message), &seen);
            found.iter().map(|cause| cause.code).collect::<Vec<_>>()
        };
        let unsatisfiable = |message| condition("ConstraintsNotSatisfiable", message);
        assert_eq!(
            unsatisfiable(
                "constraints not satisfiable: bundle cache.v1 requires an operator providing an API with group: a.b, version: v1, kind: C"
            ),
            [Code::RequirementApiMissing]
        );
        assert_eq!(
            unsatisfiable(
                "constraints not satisfiable: no operators found in package cache in the catalog referenced by subscription s"
            ),
            [Code::PackageNotFound]
        );
        assert_eq!(
            unsatisfiable(
                "constraints not satisfiable: clusterserviceversion a.v1 exists and is not referenced by a subscription"
            ),
            [Code::OrphanedCsv]
        );
        assert_eq!(
            condition(
                "ErrorPreventedResolution",
                "error using catalogsource shop/own: failed to list bundles"
            ),
            [Code::CatalogUnreachable]
        );
        assert_eq!(
            condition(
                "ErrorPreventedResolution",
                "error using catalogsource olm/other: failed to list bundles"
            ),
            [Code::OtherCatalogBroken]
        );
    }
}
