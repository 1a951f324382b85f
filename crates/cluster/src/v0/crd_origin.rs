//! Distinguishes CRDs that a package created from those that existed before.
//!
//! OLM labels every CRD that a CSV owns, even if it existed before, so labels are no evidence. Its InstallPlan is: a
//! step is `Created` or `Present`. But plans are deleted with their Subscription, and OLM keeps only the last few. So
//! the commands record the objects that a plan created (see [`super::record`]): names with UIDs, because another CRD
//! may use the name later.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::cause::{Cause, Code};
use crate::base::json::text;
use crate::base::kinds;
use crate::base::object_ref::ObjectRef;
use crate::bundle::facts::BundleFacts;
use crate::kube::crd::CrdState;
use crate::kube::origin::Record;
use crate::observe::observation::Observation;
use olmkit::types::{DeployedCsv, InstallPlan};

/// The CRDs that exist because of the package: those that were recorded, and those that its plans created.
pub fn created(recorded: &Record, seen: &Observation, is_ours: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let mut found: BTreeSet<String> = by_plans(&seen.install_plans, &seen.crds, is_ours).into_keys().collect();
    let is_same = |(name, uid): &(&String, &String)| seen.crds.get(*name).is_some_and(|crd| crd.origin.uid == **uid);
    found.extend(recorded.iter().filter(is_same).map(|(name, _)| name.clone()));
    found
}

/// The CRDs that plans created for CSVs.
pub fn by_plans<'a>(
    plans: impl IntoIterator<Item = &'a InstallPlan>,
    crds: &BTreeMap<String, CrdState>,
    is_ours: impl Fn(&str) -> bool,
) -> Record {
    let mut found = Record::new();
    for plan in plans {
        for step in &plan.status.plan {
            if step.resource.kind != "CustomResourceDefinition" || !is_ours(&step.resolving) {
                continue;
            }
            if let Some(crd) = crds.get(&step.resource.name)
                && crd.origin.is_created_by(&step.status, plan)
            {
                found.insert(step.resource.name.clone(), crd.origin.uid.clone());
            }
        }
    }
    found
}

/// The CRDs of a bundle that exist already and were not created for the package: OLM replaces their definitions. Those that
/// `installed`, the version to be upgraded, owns are its own business, and those in `known` have been reported.
pub fn taken_over(
    bundle: &BundleFacts,
    installed: Option<&DeployedCsv>,
    created: &BTreeSet<String>,
    seen: &Observation,
    known: &[Cause],
) -> Vec<Cause> {
    let object = |name: &str| ObjectRef::cluster(kinds::custom_resource_definition(), name);
    let is_known = |name: &str| known.iter().any(|cause| cause.object.as_ref() == Some(&object(name)));
    let is_installed = |name: &str| {
        let owned = installed
            .into_iter()
            .flat_map(|csv| &csv.spec.customresourcedefinitions.owned);
        owned.into_iter().any(|crd| crd.name == name)
    };
    let mut causes = Vec::new();
    for (name, manifest) in bundle.crds() {
        if text(manifest, "/spec/group") == kinds::OLM_GROUP {
            causes.push(
                Cause::lasting(
                    Code::CrdOwnedByOther,
                    "belongs to OLM itself; a bundle that replaces it breaks OLM",
                    "take it out of the bundle",
                )
                .on(object(name)),
            );
        } else if seen.crds.contains_key(name) && !created.contains(name) && !is_installed(name) && !is_known(name) {
            causes.push(
                Cause::warning(
                    Code::CrdAlreadyExists,
                    format!(
                        "exists already and was not created for package {}: OLM replaces its definition with the bundle's, in all namespaces",
                        bundle.package
                    ),
                    "check that existing custom resources fit the bundle's CRD; olmkit cleanup keeps this CRD and its custom resources",
                )
                .on(object(name)),
            );
        }
    }
    causes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kube::origin::Origin;

    fn plan(status: &str) -> InstallPlan {
        serde_json::from_value(json!({
            "metadata": {"creationTimestamp": "2026-01-01T00:00:10Z"},
            "status": {"conditions": [{"type": "Installed", "status": "True", "lastTransitionTime": "2026-01-01T00:00:20Z"}], "plan": [{"resolving": "cache.v1", "status": status, "resource": {
                "group": "apiextensions.k8s.io", "version": "v1", "kind": "CustomResourceDefinition", "name": "caches.example.com",
            }}]},
        }))
        .unwrap()
    }

    fn crd(author: &str, created: &str) -> BTreeMap<String, CrdState> {
        let found = json!({"metadata": {
            "uid": "u1",
            "creationTimestamp": created,
            "managedFields": [
                {"manager": author, "fieldsV1": {"f:spec": {"f:group": {}, "f:versions": {}}}},
                {"manager": "kube-apiserver", "subresource": "status", "fieldsV1": {"f:status": {}}},
                {"manager": "catalog", "fieldsV1": {"f:spec": {"f:versions": {}}}},
            ],
        }});
        BTreeMap::from([("caches.example.com".to_owned(), CrdState::from_crd(&found))])
    }

    #[test]
    fn only_what_a_plan_created_was_brought_by_the_package() {
        let (before, after) = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:11Z");
        let ours = |status: &str, author: &str, created: &str| {
            !by_plans([&plan(status)], &crd(author, created), |csv| csv == "cache.v1").is_empty()
        };
        assert!(ours("Created", "catalog", after));
        assert!(ours("WaitingForApi", "catalog", after));
        assert!(!ours("Unknown", "catalog", after));
        // The condition's time is from before the execution.
        assert!(ours("Created", "catalog", "2026-01-01T00:00:22Z"));
        // Deleted, and created again by another client, or for another package.
        assert!(!ours("Created", "kubectl-create", "2026-01-01T00:00:15Z"));
        assert!(!ours("Created", "catalog", "2026-01-01T00:05:00Z"));
        assert!(!ours("Present", "kubectl-create", before));
        // Created by another client between the plan's creation and its execution.
        assert!(!ours("Present", "kubectl-create", after));
        // Another package installed it through OLM, earlier.
        assert!(!ours("Present", "catalog", before));
        // OLM executed the plan twice.
        assert!(ours("Present", "catalog", after));
        assert!(by_plans([&plan("Created")], &crd("catalog", after), |csv| csv == "other.v1").is_empty());
    }

    #[test]
    fn a_record_holds_for_that_very_definition_only() {
        let seen = |uid: &str| Observation {
            crds: BTreeMap::from([(
                "caches.example.com".to_owned(),
                CrdState {
                    origin: Origin {
                        uid: uid.into(),
                        ..Origin::default()
                    },
                    ..CrdState::default()
                },
            )]),
            ..Observation::default()
        };
        let recorded = Record::from([("caches.example.com".to_owned(), "u1".to_owned())]);
        assert_eq!(created(&recorded, &seen("u1"), |_| true).len(), 1);
        assert_eq!(created(&recorded, &seen("u2"), |_| true).len(), 0);
    }
}
