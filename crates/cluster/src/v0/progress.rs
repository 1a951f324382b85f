//! The progress of an installation: milestones derived only from the observation, so that reruns and restarts of the
//! API server have no effect.

use serde_json::Value;

use crate::observe::observation::Observation;
use olmkit::types::{DeployedCsv, InstallPlan, Subscription};

/// A milestone that has been reached. The key identifies it, the text is displayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Milestone {
    /// Unique within an installation.
    pub key: String,
    /// For people.
    pub text: String,
}

/// The installation that is waited for.
#[derive(Clone, Debug, Default)]
pub struct WaitTarget<'a> {
    /// The Subscription's name.
    pub subscription: &'a str,
    /// The catalog's name and namespace.
    pub catalog: (&'a str, &'a str),
    /// The CSV's name.
    pub csv: &'a str,
    /// The installed CSV that belongs to the Subscription although OLM did not install it for that one. Empty for none.
    pub adopted: &'a str,
    /// The Subscription, for re-creating it if OLM has lost track of it.
    pub manifest: Option<&'a Value>,
}

/// The state of an installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstallState {
    /// Waiting. The message names the reason.
    Waiting(String),
    /// An InstallPlan waits for approval: its name and the CSVs that it installs.
    ApprovalNeeded(String, Vec<String>),
    /// The CSV has Succeeded.
    Succeeded,
}

/// The milestones reached, in order.
pub fn milestones(awaited: &WaitTarget<'_>, seen: &Observation) -> Vec<Milestone> {
    let mut reached = Vec::new();
    let mut add = |key: &str, text: String| {
        reached.push(Milestone {
            key: key.to_owned(),
            text,
        })
    };
    let (namespace, name) = awaited.catalog;
    if seen
        .catalog(namespace, name)
        .is_some_and(olmkit::types::CatalogSource::is_ready)
    {
        add("catalog", format!("CatalogSource {name}: OLM is connected"));
    }
    let Some(subscription) = subscription(awaited, seen) else {
        return reached;
    };
    if let Some(plan) = plan(awaited, subscription, seen) {
        let plan_name = plan.metadata.name.as_deref().unwrap_or_default();
        add(
            "plan",
            format!(
                "InstallPlan {plan_name}: installs {}",
                plan.spec.cluster_service_version_names.join(", ")
            ),
        );
        if plan.spec.approved {
            add("approved", format!("InstallPlan {plan_name}: approved"));
        }
        let (done, all) = plan.steps_done();
        if plan.status.phase == "Complete" {
            add(
                "complete",
                format!("InstallPlan {plan_name}: {done} of {all} objects in place"),
            );
        }
    }
    if let Some(csv) = seen.csv(awaited.csv)
        && !csv.status.phase.is_empty()
    {
        add(
            &format!("csv {}", csv.status.phase),
            format!("ClusterServiceVersion {}: {}", awaited.csv, csv.status.phase),
        );
    }
    reached
}

/// The state of the installation.
pub fn install_state(awaited: &WaitTarget<'_>, seen: &Observation) -> InstallState {
    if let Some(csv) = seen.csv(awaited.csv)
        && csv.status.phase == "Succeeded"
    {
        return InstallState::Succeeded;
    }
    let (namespace, name) = awaited.catalog;
    let Some(subscription) = subscription(awaited, seen) else {
        return InstallState::Waiting(match awaited.subscription {
            "" => format!("ClusterServiceVersion {}", awaited.csv),
            name => format!("Subscription {name}"),
        });
    };
    let Some(plan) = plan(awaited, subscription, seen) else {
        if !seen
            .catalog(namespace, name)
            .is_some_and(olmkit::types::CatalogSource::is_ready)
        {
            return InstallState::Waiting(format!("OLM to connect to CatalogSource {name}"));
        }
        if subscription.condition("BundleUnpacking").is_some() {
            return InstallState::Waiting("OLM to unpack the bundle image".into());
        }
        return InstallState::Waiting("OLM to resolve the Subscription".into());
    };
    if !plan.spec.approved {
        // Wait until OLM has filled in the steps: it executes an approved plan without steps as an empty one.
        let ready = plan.status.phase == "RequiresApproval";
        let plan_name = plan.metadata.name.clone().unwrap_or_default();
        return if ready {
            InstallState::ApprovalNeeded(plan_name, plan.spec.cluster_service_version_names.clone())
        } else {
            InstallState::Waiting(format!("InstallPlan {plan_name}"))
        };
    }
    match seen.csv(awaited.csv) {
        None => InstallState::Waiting(format!("ClusterServiceVersion {}", awaited.csv)),
        Some(csv) => InstallState::Waiting(csv_text(csv, seen)),
    }
}

fn csv_text(csv: &DeployedCsv, seen: &Observation) -> String {
    let names = csv.deployment_names();
    let waiting: Vec<&str> = seen
        .deployments
        .iter()
        .filter(|deployment| !crate::observe::health::available(deployment))
        .filter_map(|deployment| deployment.metadata.name.as_deref())
        .filter(|name| names.contains(name))
        .collect();
    match (csv.status.phase.as_str(), waiting.as_slice()) {
        ("Installing", [_, ..]) => format!("Deployment {}", waiting.join(", ")),
        ("", _) => format!("ClusterServiceVersion {}", csv.name()),
        (phase, _) => format!("ClusterServiceVersion {} ({phase}: {})", csv.name(), csv.status.reason),
    }
}

/// Returns true if OLM has chosen the version for the Subscription, but neither the version nor a plan for it exists.
pub fn is_lost(awaited: &WaitTarget<'_>, seen: &Observation) -> bool {
    subscription(awaited, seen).is_some_and(|found| {
        found.status.current_csv == awaited.csv
            && seen.csv(awaited.csv).is_none()
            && plan(awaited, found, seen).is_none()
    })
}

/// The Subscription of the installation.
pub fn subscription<'a>(awaited: &WaitTarget<'_>, seen: &'a Observation) -> Option<&'a Subscription> {
    seen.subscriptions
        .iter()
        .find(|found| found.metadata.name.as_deref() == Some(awaited.subscription))
}

/// The newest InstallPlan that installs the CSV.
fn plan<'a>(awaited: &WaitTarget<'_>, subscription: &Subscription, seen: &'a Observation) -> Option<&'a InstallPlan> {
    let referenced = subscription
        .status
        .install_plan_ref
        .as_ref()
        .and_then(|reference| seen.install_plan(&reference.name));
    let brings = |plan: &&InstallPlan| {
        plan.spec
            .cluster_service_version_names
            .iter()
            .any(|name| name == awaited.csv)
    };
    referenced.filter(brings).or_else(|| {
        seen.install_plans
            .iter()
            .filter(brings)
            .max_by_key(|plan| plan.spec.generation)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_version_that_is_chosen_but_neither_there_nor_planned_is_lost() {
        let awaited = WaitTarget {
            subscription: "s",
            csv: "cache.v1",
            ..WaitTarget::default()
        };
        let seen = |current: &str, plans: Value, csvs: Value| Observation {
            subscriptions: serde_json::from_value(
                json!([{"metadata": {"name": "s"}, "status": {"currentCSV": current}}]),
            )
            .unwrap(),
            install_plans: serde_json::from_value(plans).unwrap(),
            csvs: serde_json::from_value(csvs).unwrap(),
            ..Observation::default()
        };
        let plan = json!([{"metadata": {"name": "p"}, "spec": {"clusterServiceVersionNames": ["cache.v1"]}}]);
        let csv = json!([{"metadata": {"name": "cache.v1"}}]);
        assert!(is_lost(&awaited, &seen("cache.v1", json!([]), json!([]))));
        assert!(!is_lost(&awaited, &seen("cache.v1", plan, json!([]))));
        assert!(!is_lost(&awaited, &seen("cache.v1", json!([]), csv)));
        assert!(!is_lost(&awaited, &seen("", json!([]), json!([]))));
    }
}
