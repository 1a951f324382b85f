//! Features that operator-controller supports, by its feature gates.

use super::modes::InstallMode;
use super::read::{Bundle, Place};
use super::validators::{Complaint, complaints_of};

/// The feature gates of operator-controller that decide about bundles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gates {
    /// Bundles with webhooks. Both gates of certificate providers are on in standard manifests since 1.6.
    pub webhooks: bool,
    /// `SingleOwnNamespaceInstallSupport`: bundles that do not support all namespaces, and `watchNamespace`.
    pub single_own_namespace: bool,
    /// Bundles that own API services.
    pub api_services: bool,
    /// `DeploymentConfig`.
    pub deployment_config: bool,
    /// The minor version of the release, which decides about checks and kinds.
    pub minor: u64,
}

impl Gates {
    /// Those of the experimental manifests.
    #[must_use]
    pub fn experimental() -> Self {
        Self {
            single_own_namespace: true,
            deployment_config: true,
            ..Self::default()
        }
    }
}

impl Default for Gates {
    /// Those of the standard manifests of the newest release.
    fn default() -> Self {
        Self {
            webhooks: true,
            single_own_namespace: false,
            api_services: false,
            deployment_config: false,
            minor: 11,
        }
    }
}

/// Something of a bundle that OLM v1 does not support.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unsupported bundle: {what}")]
#[non_exhaustive]
pub struct Unsupported {
    /// The feature, in OLM v1's terms.
    pub what: &'static str,
    /// Its position.
    pub place: Place,
}

/// The first thing of a bundle that operator-controller does not support.
///
/// # Errors
/// There is one.
pub fn support(bundle: &Bundle, gates: Gates) -> Result<(), Unsupported> {
    let refuse = |what, pointer: &str| {
        Err(Unsupported {
            what,
            place: bundle.csv.place(pointer),
        })
    };
    let there = |pointer: &str| {
        let list = bundle.csv.value.pointer(pointer).and_then(serde_json::Value::as_array);
        list.is_some_and(|list| !list.is_empty())
    };
    let owned = "/spec/apiservicedefinitions/owned";
    if there(owned) && !gates.api_services {
        return refuse("apiServiceDefintions are not supported", owned);
    }
    let webhooks = "/spec/webhookdefinitions";
    if there(webhooks) && !gates.webhooks {
        return refuse("webhookDefinitions are not supported", webhooks);
    }
    let modes = bundle.install_modes();
    if !gates.single_own_namespace && !modes.has(InstallMode::AllNamespaces) {
        return refuse(
            "bundle does not support AllNamespaces install mode",
            "/spec/installModes",
        );
    }
    if !modes.has(InstallMode::AllNamespaces) && !modes.is_watch_configurable() {
        let what = "bundle must support at least one of [AllNamespaces SingleNamespace OwnNamespace] install modes";
        return refuse(what, "/spec/installModes");
    }
    Ok(())
}

/// A release's complaints about a bundle.
#[must_use]
pub fn complaints(bundle: &Bundle, gates: Gates) -> Vec<Complaint> {
    complaints_of(bundle, gates.minor)
}
