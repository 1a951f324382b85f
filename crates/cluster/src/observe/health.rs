//! Checks that OLM is installed and healthy.

use k8s_openapi::api::apps::v1::Deployment;

use super::observation::{NEEDED_CRDS, OlmState};
use crate::base::cause::{Cause, Code};
use crate::base::kinds;
use crate::base::object_ref::ObjectRef;
use crate::kube::conditions::Conditions as _;

/// The faults of OLM.
pub fn olm(state: &OlmState) -> Vec<Cause> {
    let missing: Vec<&str> = NEEDED_CRDS
        .into_iter()
        .filter(|name| !state.crds.contains(*name))
        .collect();
    if missing.len() == NEEDED_CRDS.len() && state.deployments.is_empty() {
        return vec![Cause::lasting(
            Code::OlmNotInstalled,
            "the Operator Lifecycle Manager is not installed in this cluster",
            "olmkit olm install",
        )];
    }
    let mut causes = Vec::new();
    if !missing.is_empty() {
        causes.push(
            Cause::lasting(
                Code::OlmIncomplete,
                format!(
                    "OLM is only partly installed: the custom resource definitions {} are missing",
                    missing.join(", ")
                ),
                "olmkit olm install completes it; olmkit olm uninstall removes the rest",
            )
            .likely("an installation was interrupted, or an uninstallation did not finish"),
        );
    }
    for name in ["olm-operator", "catalog-operator"] {
        let found = state
            .deployments
            .iter()
            .find(|deployment| deployment.metadata.name.as_deref() == Some(name));
        match found {
            // OLM may run outside the cluster (hosted control planes), so only a missing half of the pair is an error.
            None if state.deployments.is_empty() => {}
            None => causes.push(Cause::lasting(
                Code::OlmIncomplete,
                format!("OLM is only partly installed: Deployment {name} is missing"),
                "olmkit olm install completes it",
            )),
            Some(deployment) if !available(deployment) => causes.push(
                Cause::passing(
                    Code::OlmIncomplete,
                    "is not available; until it is, nothing is installed, upgraded or removed",
                    "find the cause: olmkit olm status",
                )
                .on(ObjectRef::namespaced(
                    kinds::deployment(),
                    deployment.metadata.namespace.as_deref().unwrap_or_default(),
                    name,
                )),
            ),
            Some(_) => {}
        }
    }
    causes
}

/// Returns true if a Deployment reports enough available pods.
pub fn available(deployment: &Deployment) -> bool {
    deployment.is_true("Available")
}
