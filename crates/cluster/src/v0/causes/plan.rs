//! Causes in an InstallPlan.

use super::webhooks::{FIND_WEBHOOKS, is_of_webhook};
use crate::base::cause::{Cause, Code};
use crate::base::kinds;
use crate::base::object_ref::ObjectRef;
use crate::observe::observation::Observation;
use olmkit::types::{InstallPlan, Subscription};

/// The cause that keeps an InstallPlan from completing.
pub fn of_plan(plan: &InstallPlan, subscription: &Subscription, seen: &Observation) -> Option<Cause> {
    let name = plan.metadata.name.as_deref().unwrap_or_default();
    let object = ObjectRef::namespaced(kinds::install_plan(), &seen.namespace, name);
    let reason = plan.reason();
    let csvs = plan.spec.cluster_service_version_names.join(", ");
    match plan.status.phase.as_str() {
        "RequiresApproval" if !plan.spec.approved => {
            let why = if subscription.is_manual() {
                "its Subscription requires manual approval"
            } else {
                "another Subscription in the namespace requires manual approval, which applies to all plans in it"
            };
            Some(
                Cause::passing(
                    Code::InstallPlanUnapproved,
                    format!("is waiting for approval; it installs {csvs}"),
                    format!("kubectl -n {} patch installplans.{} {name} --type=merge -p '{{\"spec\":{{\"approved\":true}}}}'", seen.namespace, kinds::OLM_GROUP),
                )
                .on(object)
                .likely(why),
            )
        }
        "Failed" => Some(failed(&reason, true).on(object)),
        _ if plan.is_retried() => Some(failed(&reason, false).on(object)),
        _ if reason.contains("no operator group found") || reason.contains("attenuated service account") => Some(
            Cause::passing(
                Code::OperatorGroupNotReady,
                reason,
                "check that olm-operator runs and that the OperatorGroup's service account exists",
            )
            .on(object),
        ),
        _ => None,
    }
}

fn failed(reason: &str, lasting: bool) -> Cause {
    let new = |code, remedy: &str| {
        if lasting {
            Cause::lasting(code, reason, remedy)
        } else {
            Cause::passing(code, reason, remedy)
        }
    };
    if reason.contains("too restrictive") || reason.contains("risk of data loss") {
        new(
            Code::CrdUnsafe,
            "change the new CRD so that existing objects stay valid (no new required fields or narrower rules in a served version, no stored version dropped), or change the objects first",
        )
    } else if reason.contains("forbidden") {
        // OLM retries with back-off until the permissions are granted.
        Cause::lasting(
            Code::Forbidden,
            reason,
            "give the OperatorGroup's service account the permissions to install the objects of the bundle (docs/guides/cluster.md lists them) and run the same command again, or use an OperatorGroup without one",
        )
    } else if reason.contains("no matches for kind") || reason.contains("could not find the requested resource") {
        new(
            Code::ApiMissing,
            "install the provider of that API first, or remove the object from the bundle",
        )
    } else if is_of_webhook(reason) {
        let remedy = format!(
            "restore the webhook's server, or remove its configuration, and approve a new plan; find the configuration with: {FIND_WEBHOOKS}"
        );
        new(Code::WebhookUnavailable, &remedy)
    } else {
        new(
            Code::InstallPlanFailed,
            "correct what the message names and install again; OLM does not retry a failed plan",
        )
    }
}
