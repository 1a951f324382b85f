//! How far an installation came: milestones read from what was observed, so that a rerun and a restarted API server change
//! nothing.

use super::observe::Observation;
use crate::types::{DeployedCsv, InstallPlan, Subscription};

/// One thing that has been reached. The key tells milestones apart, the text is for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Milestone {
    /// Unique within an installation.
    pub key: String,
    /// For people.
    pub text: String,
}

/// What is being waited for.
#[derive(Clone, Debug, Default)]
pub struct Awaited<'a> {
    /// The Subscription's name.
    pub subscription: &'a str,
    /// The catalog's name and namespace.
    pub catalog: (&'a str, &'a str),
    /// The CSV's name.
    pub csv: &'a str,
    /// The installed CSV that belongs to the Subscription although OLM did not install it for that one; empty for none.
    pub adopted: &'a str,
}

/// Where an installation stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stand {
    /// Waits for something; the text says for what.
    Waiting(String),
    /// A plan waits for approval: its name and the CSVs that it brings.
    ApprovalNeeded(String, Vec<String>),
    /// The CSV has Succeeded.
    Succeeded,
}

/// The milestones reached, in order.
pub fn milestones(awaited: &Awaited<'_>, seen: &Observation) -> Vec<Milestone> {
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
        .is_some_and(crate::types::CatalogSource::is_ready)
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
                "InstallPlan {plan_name}: brings {}",
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

/// Where the installation stands.
pub fn stand(awaited: &Awaited<'_>, seen: &Observation) -> Stand {
    if let Some(csv) = seen.csv(awaited.csv)
        && csv.status.phase == "Succeeded"
    {
        return Stand::Succeeded;
    }
    let (namespace, name) = awaited.catalog;
    let Some(subscription) = subscription(awaited, seen) else {
        return Stand::Waiting(match awaited.subscription {
            "" => format!("ClusterServiceVersion {}", awaited.csv),
            name => format!("Subscription {name}"),
        });
    };
    let Some(plan) = plan(awaited, subscription, seen) else {
        if !seen
            .catalog(namespace, name)
            .is_some_and(crate::types::CatalogSource::is_ready)
        {
            return Stand::Waiting(format!("OLM to connect to CatalogSource {name}"));
        }
        if subscription.condition("BundleUnpacking").is_some() {
            return Stand::Waiting("OLM to unpack the bundle image".into());
        }
        return Stand::Waiting("OLM to resolve the Subscription".into());
    };
    if !plan.spec.approved {
        // Filled before it is approved: an approved plan without steps is carried out as an empty one.
        let ready = plan.status.phase == "RequiresApproval";
        let plan_name = plan.metadata.name.clone().unwrap_or_default();
        return if ready {
            Stand::ApprovalNeeded(plan_name, plan.spec.cluster_service_version_names.clone())
        } else {
            Stand::Waiting(format!("InstallPlan {plan_name}"))
        };
    }
    match seen.csv(awaited.csv) {
        None => Stand::Waiting(format!("ClusterServiceVersion {}", awaited.csv)),
        Some(csv) => Stand::Waiting(csv_text(csv, seen)),
    }
}

fn csv_text(csv: &DeployedCsv, seen: &Observation) -> String {
    let names: Vec<&str> = csv
        .spec
        .install
        .spec
        .deployments
        .iter()
        .map(|deployment| deployment.name.as_str())
        .collect();
    let waiting: Vec<&str> = seen
        .deployments
        .iter()
        .filter(|deployment| !super::health::available(deployment))
        .filter_map(|deployment| deployment.metadata.name.as_deref())
        .filter(|name| names.contains(name))
        .collect();
    match (csv.status.phase.as_str(), waiting.as_slice()) {
        ("Installing", [_, ..]) => format!("Deployment {}", waiting.join(", ")),
        ("", _) => format!("ClusterServiceVersion {}", csv.name()),
        (phase, _) => format!("ClusterServiceVersion {} ({phase}: {})", csv.name(), csv.status.reason),
    }
}

/// The Subscription that is meant.
pub fn subscription<'a>(awaited: &Awaited<'_>, seen: &'a Observation) -> Option<&'a Subscription> {
    seen.subscriptions
        .iter()
        .find(|found| found.metadata.name.as_deref() == Some(awaited.subscription))
}

/// The newest plan that brings the CSV.
fn plan<'a>(awaited: &Awaited<'_>, subscription: &Subscription, seen: &'a Observation) -> Option<&'a InstallPlan> {
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
