//! Causes in a ClusterServiceVersion and its Deployments.

use serde_json::Value;

use super::webhooks::{FIND_WEBHOOKS, is_of_webhook};
use crate::base::cause::{Cause, Code};
use crate::base::json::text;
use crate::base::object_ref::ObjectRef;
use crate::base::{install_mode, kinds};
use crate::observe::observation::Observation;
use crate::observe::pods::of_deployment;
use olmkit::types::{DeployedCsv, RequirementStatus};

/// Causes that keep a CSV from phase `Succeeded`.
pub fn of_csv(csv: &DeployedCsv, seen: &Observation) -> Vec<Cause> {
    let object = || object_of(csv);
    if csv.metadata.deletion_timestamp.is_some() {
        let finalizers = csv.metadata.finalizers.clone().unwrap_or_default().join(", ");
        return vec![
            Cause::passing(
                Code::DeletionBlocked,
                format!("is being deleted; finalizers: {finalizers}"),
                "olm-operator removes the finalizer: check that it runs (olmkit olm status)",
            )
            .on(object()),
        ];
    }
    if let Some(held) = held(csv, seen) {
        return vec![held];
    }
    match (csv.status.phase.as_str(), csv.status.reason.as_str()) {
        ("Succeeded" | "Replacing" | "Deleting", _) => Vec::new(),
        (_, reason) if group_reason(reason) => vec![of_group(csv, seen).on(object())],
        (_, "OwnerConflict") | (_, "ComponentFailedNoRetry") if csv.status.message.contains("owner") => {
            vec![conflict(csv).on(object())]
        }
        (_, "OwnerConflict") => vec![conflict(csv).on(object())],
        ("Pending", _) => of_requirements(csv, seen),
        ("", _) => Vec::new(),
        _ => of_install(csv, seen),
    }
}

fn object_of(csv: &DeployedCsv) -> ObjectRef {
    ObjectRef::namespaced(kinds::cluster_service_version(), csv.namespace(), csv.name())
}

/// An upgrade that an operator blocks through its OperatorCondition.
fn held(csv: &DeployedCsv, seen: &Observation) -> Option<Cause> {
    let waiting = csv.status.reason == "OperatorConditionNotUpgradeable";
    waiting.then(|| {
        let old = csv.spec.replaces.clone();
        let conditions = seen.operator_conditions.iter().find(|condition| text(condition, "/metadata/name") == old);
        let message = conditions
            .and_then(|found| found.pointer("/status/conditions")?.as_array()?.iter().find(|condition| text(condition, "/type") == "Upgradeable"))
            .map(|condition| text(condition, "/message").to_owned())
            .unwrap_or_default();
        Cause::passing(
            Code::UpgradeBlocked,
            format!("{old} reports that it is not upgradeable: {message}"),
            format!("wait until it is, or override the condition: set Upgradeable to True in spec.overrides of OperatorCondition {old}"),
        )
        .on(object_of(csv))
    })
}

fn group_reason(reason: &str) -> bool {
    matches!(
        reason,
        "NoOperatorGroup"
            | "TooManyOperatorGroups"
            | "UnsupportedOperatorGroup"
            | "InterOperatorGroupOwnerConflict"
            | "NoTargetNamespaces"
            | "CannotModifyStaticOperatorGroupProvidedAPIs"
    )
}

fn of_group(csv: &DeployedCsv, seen: &Observation) -> Cause {
    let message = csv.status.message.as_str();
    match csv.status.reason.as_str() {
        "NoOperatorGroup" => Cause::lasting(
            Code::OperatorGroupMissing,
            message,
            "create an OperatorGroup in the namespace",
        ),
        "TooManyOperatorGroups" => Cause::lasting(
            Code::MultipleOperatorGroups,
            message,
            format!("keep one OperatorGroup in namespace {}", seen.namespace),
        ),
        "InterOperatorGroupOwnerConflict" => Cause::lasting(
            Code::ApiConflict,
            message,
            "give the two OperatorGroups disjoint namespaces, or remove one of the operators",
        )
        .likely("the same operator is installed in another namespace whose OperatorGroup reaches the same namespaces"),
        "NoTargetNamespaces" => Cause::passing(
            Code::OperatorGroupNotReady,
            message,
            "give the OperatorGroup namespaces that exist",
        ),
        _ => Cause::lasting(
            Code::OperatorGroupMismatch,
            message,
            format!(
                "use an OperatorGroup for one of the install modes {}",
                install_mode::supported(&csv.spec.install_modes).join(", ")
            ),
        ),
    }
}

fn conflict(csv: &DeployedCsv) -> Cause {
    Cause::lasting(
        Code::CrdOwnedByOther,
        csv.status.message.clone(),
        "remove the other owner of the API, or install in a namespace without it",
    )
}

fn of_requirements(csv: &DeployedCsv, seen: &Observation) -> Vec<Cause> {
    let mut causes: Vec<Cause> = csv
        .status
        .requirement_status
        .iter()
        .filter(|requirement| !requirement.is_met())
        .map(|requirement| unmet(csv, requirement, seen))
        .collect();
    if causes.is_empty()
        && !matches!(
            csv.status.reason.as_str(),
            "RequirementsUnknown" | "" | "NeedsReinstall" | "RequirementsNotMet"
        )
    {
        causes.push(
            Cause::passing(
                Code::RequirementUnmet,
                format!("{}: {}", csv.status.reason, csv.status.message),
                "the message names what is missing",
            )
            .on(object_of(csv)),
        );
    }
    if csv.status.reason == "NeedsReinstall" {
        causes.extend(of_install(csv, seen));
    }
    causes
}

fn unmet(csv: &DeployedCsv, requirement: &RequirementStatus, seen: &Observation) -> Cause {
    let is_required = csv
        .spec
        .customresourcedefinitions
        .required
        .iter()
        .any(|crd| crd.name == requirement.name);
    match requirement.kind.as_str() {
        "CustomResourceDefinition" | "APIService" if is_required || requirement.kind == "APIService" => Cause::passing(
            Code::RequirementApiMissing,
            format!("{} requires it: {}", csv.name(), requirement.message),
            format!("install the operator that provides {}", requirement.name),
        )
        .on(ObjectRef::cluster(
            kinds::custom_resource_definition(),
            &requirement.name,
        )),
        "ServiceAccount" => {
            let rules: Vec<String> = requirement
                .dependents
                .iter()
                .filter(|dependent| !matches!(text(dependent, "/status"), "Satisfied" | "Present"))
                .map(|dependent: &Value| text(dependent, "/message").to_owned())
                .collect();
            Cause::passing(
                Code::RequirementUnmet,
                format!("{}: {}", requirement.status, requirement.message),
                "OLM creates the service account and roles from the plan; if they were deleted, install again",
            )
            .on(ObjectRef::namespaced(
                kinds::service_account(),
                &seen.namespace,
                &requirement.name,
            ))
            .evidence(rules)
        }
        kind => Cause::passing(
            Code::RequirementUnmet,
            format!(
                "requirement {kind} {} is {}: {}",
                requirement.name, requirement.status, requirement.message
            ),
            "the message names what is missing",
        )
        .on(object_of(csv)),
    }
}

/// `Installing`, `Failed`: the Deployments show the cause.
fn of_install(csv: &DeployedCsv, seen: &Observation) -> Vec<Cause> {
    let names = csv.deployment_names();
    let mut causes: Vec<Cause> = seen
        .deployments
        .iter()
        .filter(|deployment| {
            deployment
                .metadata
                .name
                .as_deref()
                .is_some_and(|name| names.contains(&name))
        })
        .flat_map(|deployment| of_deployment(deployment, seen))
        .collect();
    if causes.is_empty() {
        causes.extend(of_attempt(csv).map(|cause| cause.on(object_of(csv))));
    }
    causes
}

/// OLM's message about its attempt to install, or between two attempts about the previous one.
fn of_attempt(csv: &DeployedCsv) -> Option<Cause> {
    let failed = csv.status.phase == "Failed";
    if !failed && csv.status.reason != "InstallComponentFailed" {
        return webhook(&last_failure(csv)?);
    }
    let message = format!("{}: {}", csv.status.reason, csv.status.message);
    Some(if let Some(cause) = webhook(&message) {
        cause
    } else if message.contains("forbidden") {
        Cause::lasting(
            Code::Forbidden,
            message,
            "grant the OperatorGroup's service account the permissions that the operator needs",
        )
    } else if failed {
        Cause::lasting(
            Code::CsvFailed,
            message,
            "correct the bundle and run it again; the message names the component",
        )
    } else {
        Cause::passing(Code::CsvFailed, message, "the message names the component")
    })
}

/// The failure of the last attempt, unless a later one got further.
fn last_failure(csv: &DeployedCsv) -> Option<String> {
    let phases = csv.status.conditions.iter().rev();
    phases
        .take_while(|passed| !matches!(passed.phase.as_str(), "Installing" | "Succeeded"))
        .find(|passed| passed.reason == "InstallComponentFailed")
        .map(|failed| format!("{}: {}", failed.reason, failed.message))
}

/// A webhook that was called for one of the objects and did not answer. Without its Service it never will.
fn webhook(message: &str) -> Option<Cause> {
    let remedy = format!("restore the webhook's server, or remove its configuration; find it with: {FIND_WEBHOOKS}");
    let without_service = message.contains(": service \"") && message.contains("\" not found");
    is_of_webhook(message).then(|| match without_service {
        true => Cause::lasting(Code::WebhookUnavailable, message, remedy),
        false => Cause::passing(Code::WebhookUnavailable, message, remedy),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_webhook_without_service_is_told_in_each_phase_that_olm_flaps_through() {
        let message = "install strategy failed: Internal error occurred: failed calling webhook \"w.example.com\": failed to call webhook: Post \"https://nobody.shop.svc:443/?timeout=10s\": service \"nobody\" not found";
        let failed = json!({"phase": "Failed", "reason": "InstallComponentFailed", "message": message});
        let ready =
            json!({"phase": "InstallReady", "reason": "AllRequirementsMet", "message": "all requirements found"});
        let reinstall = json!({"phase": "Pending", "reason": "NeedsReinstall", "message": "deployment missing"});
        let causes = |now: &Value, before: &[&Value]| {
            let mut status = now.clone();
            status["conditions"] = before.iter().copied().chain([now]).cloned().collect();
            let csv = json!({"metadata": {"name": "a.v1", "namespace": "shop"}, "status": status});
            of_csv(&serde_json::from_value(csv).unwrap(), &Observation::default())
        };
        let found = [
            causes(&failed, &[]),
            causes(&ready, &[&failed]),
            causes(&reinstall, &[&ready, &failed]),
        ];
        for causes in found {
            assert_eq!(causes.len(), 1);
            assert_eq!((causes[0].code, causes[0].lasting), (Code::WebhookUnavailable, true));
        }
        let installing = json!({"phase": "Installing", "reason": "InstallSucceeded"});
        assert!(
            causes(&ready, &[&failed, &installing]).is_empty(),
            "from an earlier attempt"
        );
        assert!(causes(&ready, &[]).is_empty());
    }
    #[test]
    fn a_deployment_that_fails_is_told_between_attempts_too() {
        let deployment = json!({
            "metadata": {"name": "manager", "namespace": "shop"},
            "status": {"conditions": [
                {"type": "Available", "status": "False"},
                {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "violates PodSecurity"},
            ]},
        });
        let seen = Observation {
            deployments: vec![serde_json::from_value(deployment).unwrap()],
            ..Observation::default()
        };
        for (phase, reason) in [
            ("Pending", "NeedsReinstall"),
            ("InstallReady", "AllRequirementsMet"),
            ("Failed", "InstallCheckFailed"),
        ] {
            let csv = json!({
                "metadata": {"name": "a.v1", "namespace": "shop"},
                "spec": {"install": {"spec": {"deployments": [{"name": "manager"}]}}},
                "status": {"phase": phase, "reason": reason},
            });
            let codes: Vec<Code> = of_csv(&serde_json::from_value(csv).unwrap(), &seen)
                .iter()
                .map(|cause| cause.code)
                .collect();
            assert_eq!(codes, [Code::PodRejected], "{phase}");
        }
    }
}
