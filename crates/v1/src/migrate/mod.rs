//! Moves operators from OLM v0 to OLM v1: decides which Subscriptions can move, and plans their ClusterExtensions.
//!
//! The conditions are those of the migration that library-olm specifies (C1 to C10). Nothing is changed.

use serde::Serialize;
use serde_json::Value;

use super::later::grants_olm_v0_only;
use super::{list, text};

mod offered;
mod plan;
#[cfg(test)]
mod tests;

pub use offered::{Offer, Offered};
pub use plan::plan;

/// The objects of OLM v0 for a Subscription.
#[derive(Debug, Clone, Copy, Default)]
pub struct Installation<'v> {
    /// The Subscription.
    pub subscription: &'v Value,
    /// The ClusterServiceVersion that it installed.
    pub csv: Option<&'v Value>,
    /// The OperatorGroups of its namespace.
    pub groups: &'v [Value],
    /// The OperatorCondition of the ClusterServiceVersion.
    pub condition: Option<&'v Value>,
    /// The CatalogSource.
    pub catalog: Option<&'v Value>,
    /// The Subscriptions of the cluster, this one among them or not.
    pub subscriptions: &'v [Value],
    /// The ClusterExtensions of the cluster.
    pub extensions: &'v [Value],
    /// The ClusterCatalogs' contents for the package. `None` if they were not queried, which omits C7.
    pub offered: Option<&'v Offered>,
}

/// True if a Subscription can move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Eligibility {
    /// Nothing is in the way.
    Eligible,
    /// The user must accept the changes.
    NeedsConsent,
    /// It cannot move in its current form.
    Ineligible,
    /// A ClusterExtension or another Subscription has the package, or a ClusterExtension has its name.
    Conflict,
}

/// Something in the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Obstacle {
    /// The condition: `C1a`. `conflict` for [`Eligibility::Conflict`].
    pub id: &'static str,
    /// True if consent is enough.
    pub consent: bool,
    /// The obstacle.
    pub message: String,
    /// The fix.
    #[serde(rename = "help")]
    pub hint: &'static str,
}

/// The answer for a Subscription.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Assessment {
    /// Namespace of the Subscription.
    pub namespace: String,
    /// Its name.
    pub subscription: String,
    /// The package.
    pub package: String,
    /// The installed ClusterServiceVersion. Empty if none is.
    pub installed: String,
    /// The result.
    pub eligibility: Eligibility,
    /// The obstacles.
    pub obstacles: Vec<Obstacle>,
}

/// Returns true if a Subscription can move.
#[must_use]
pub fn assess(installation: &Installation<'_>) -> Assessment {
    let Installation { subscription, csv, .. } = *installation;
    let package = text(subscription, "/spec/name");
    let mut obstacles = Vec::new();
    scope(installation, &mut obstacles);
    if let Some(csv) = csv {
        content(csv, &mut obstacles);
    }
    state(installation, &mut obstacles);
    offered::offered(installation, &mut obstacles);
    source(installation, &mut obstacles);
    let conflict = conflict(installation);
    let is_taken = conflict.is_some();
    obstacles.extend(conflict);
    Assessment {
        namespace: text(subscription, "/metadata/namespace").to_owned(),
        subscription: text(subscription, "/metadata/name").to_owned(),
        package: package.to_owned(),
        installed: text(subscription, "/status/installedCSV").to_owned(),
        eligibility: if is_taken {
            Eligibility::Conflict
        } else if obstacles.iter().any(|obstacle| !obstacle.consent) {
            Eligibility::Ineligible
        } else if obstacles.is_empty() {
            Eligibility::Eligible
        } else {
            Eligibility::NeedsConsent
        },
        obstacles,
    }
}

/// Other owners of the package, or of its ClusterExtension's name.
fn conflict(installation: &Installation<'_>) -> Option<Obstacle> {
    let Installation { subscription, .. } = *installation;
    let package = text(subscription, "/spec/name");
    let found = |message: String, hint: &'static str| {
        Some(Obstacle {
            id: "conflict",
            consent: false,
            message,
            hint,
        })
    };
    for extension in installation.extensions {
        let name = text(extension, "/metadata/name");
        if text(extension, "/spec/source/catalog/packageName") == package {
            return found(
                format!("ClusterExtension {name} has package {package} already"),
                "delete the ClusterExtension, or the Subscription if the operator has moved",
            );
        }
        if name == package {
            return found(
                format!("ClusterExtension {name} has a different package than its name"),
                "give that ClusterExtension another name: a ClusterExtension made from a Subscription has the package's name",
            );
        }
    }
    let place = |subscription: &Value| {
        let (namespace, name) = (
            text(subscription, "/metadata/namespace"),
            text(subscription, "/metadata/name"),
        );
        format!("{namespace}/{name}")
    };
    let other = installation
        .subscriptions
        .iter()
        .find(|other| text(other, "/spec/name") == package && place(other) != place(subscription))?;
    found(
        format!("Subscription {} has package {package} too", place(other)),
        "keep one of the Subscriptions: OLM v1 installs a package once, for the whole cluster",
    )
}

/// OperatorGroups of a namespace that are looked at.
const MOST_GROUPS: usize = 10;

/// C1 and C6: where the operator works, and as whom it is installed.
fn scope(installation: &Installation<'_>, obstacles: &mut Vec<Obstacle>) {
    // OLM v0 installs nothing where there are two. Thousands would be named for each of thousands of Subscriptions.
    if let Some(more) = installation
        .groups
        .len()
        .checked_sub(MOST_GROUPS)
        .filter(|more| *more > 0)
    {
        obstacles.push(Obstacle {
            id: "C1",
            consent: false,
            message: format!(
                "its namespace has {more} OperatorGroups beyond {MOST_GROUPS}; OLM v0 installs with exactly one"
            ),
            hint: "delete the OperatorGroups that nothing uses",
        });
    }
    for group in installation.groups.iter().take(MOST_GROUPS) {
        let name = text(group, "/metadata/name");
        let selector = group.pointer("/spec/selector").and_then(Value::as_object);
        if !list(group, "/spec/targetNamespaces").is_empty() || selector.is_some_and(|selector| !selector.is_empty()) {
            obstacles.push(Obstacle {
                id: "C1",
                consent: true,
                message: format!("OperatorGroup {name} limits the namespaces that the operator watches; OLM v1 lets it watch all"),
                hint: "accept the wider scope, or wait for a release whose standard manifests have spec.config.watchNamespace",
            });
        }
        let account = text(group, "/spec/serviceAccountName");
        if !account.is_empty() {
            obstacles.push(Obstacle {
                id: "C6",
                consent: true,
                message: format!(
                    "OperatorGroup {name} installs with the permissions of ServiceAccount {account}; OLM v1 has all permissions"
                ),
                hint: "accept it, or keep the operator with OLM v0",
            });
        }
    }
}

/// C1a, C2, C3 and C5: contents of the bundle.
fn content(csv: &Value, obstacles: &mut Vec<Obstacle>) {
    let name = text(csv, "/metadata/name");
    let everywhere = list(csv, "/spec/installModes")
        .iter()
        .any(|mode| text(mode, "/type") == "AllNamespaces" && mode.get("supported") == Some(&Value::Bool(true)));
    if !everywhere {
        obstacles.push(Obstacle {
            id: "C1a",
            consent: false,
            message: format!("{name} does not support install mode AllNamespaces"),
            hint: "upgrade to a version that supports it",
        });
    }
    let dependencies = dependencies(csv);
    if !dependencies.is_empty() {
        obstacles.push(Obstacle {
            id: "C2",
            consent: false,
            message: format!(
                "{name} depends on other operators ({}); OLM v1 resolves no dependencies",
                dependencies.join(", ")
            ),
            hint: "upgrade to a version without the dependency",
        });
    }
    if !list(csv, "/spec/apiservicedefinitions/owned").is_empty() {
        obstacles.push(Obstacle {
            id: "C3",
            consent: false,
            message: format!(
                "{name} serves an aggregated API (apiservicedefinitions.owned), which OLM v1 up to 1.11 does not support"
            ),
            hint: "upgrade to a version that serves the API by a CustomResourceDefinition",
        });
    }
    if grants_olm_v0_only(csv).is_some() {
        obstacles.push(Obstacle {
            id: "C5",
            consent: true,
            message: format!("{name} may work with OLM v0's API, and not with OLM v1's"),
            hint: "make sure that it works without Subscriptions, InstallPlans, ClusterServiceVersions and CatalogSources",
        });
    }
}

/// Signs that an installed ClusterServiceVersion depends on other operators.
fn dependencies(csv: &Value) -> Vec<&'static str> {
    // OLM v0 copies the properties of a bundle here when it installs it.
    let properties = csv
        .pointer("/metadata/annotations/operatorframework.io~1properties")
        .and_then(Value::as_str)
        .and_then(|text| serde_json::from_str::<Value>(text).ok())
        .unwrap_or_default();
    let is_property = |kind: &str| {
        list(&properties, "/properties")
            .iter()
            .any(|property| text(property, "/type") == kind)
    };
    let required = [
        ("/spec/customresourcedefinitions/required", "required CRDs"),
        ("/spec/apiservicedefinitions/required", "required API services"),
    ];
    let fields = required
        .into_iter()
        .filter(|(pointer, _)| !list(csv, pointer).is_empty())
        .map(|(_, what)| what);
    let properties = super::dependencies::REFUSED
        .into_iter()
        .filter(|kind| is_property(kind));
    fields.chain(properties).collect()
}

/// C4, C8 and C9: the state of the installation in OLM v0.
fn state(installation: &Installation<'_>, obstacles: &mut Vec<Obstacle>) {
    let Installation { subscription, csv, .. } = *installation;
    let conditions = installation
        .condition
        .map(|condition| list(condition, "/status/conditions"));
    if conditions.is_some_and(|conditions| !conditions.is_empty()) {
        obstacles.push(Obstacle {
            id: "C4",
            consent: true,
            message: "the operator reports conditions to OLM v0 (OperatorCondition), which OLM v1 does not read"
                .to_owned(),
            hint: "accept it: upgrades no longer wait for what the operator reports",
        });
    }
    let mut unsteady = |message: String| {
        obstacles.push(Obstacle {
            id: "C8",
            consent: true,
            message,
            hint: "wait until the operator is installed, or find out with `olmkit diagnose` what is wrong",
        });
    };
    match csv.map(|csv| (text(csv, "/metadata/name"), text(csv, "/status/phase"))) {
        None => unsteady("no ClusterServiceVersion is installed, so C1a, C2, C3 and C5 are not known".to_owned()),
        Some((_, "Succeeded")) => {}
        Some((name, phase)) => unsteady(format!("{name} is {}", if phase.is_empty() { "new" } else { phase })),
    }
    let at = text(subscription, "/status/state");
    if !["AtLatestKnown", "UpgradePending"].contains(&at) {
        unsteady(format!("the state of the Subscription is {at:?}"));
    }
    if subscription.pointer("/metadata/annotations/olm.generated-by").is_some() {
        obstacles.push(Obstacle {
            id: "C9",
            consent: false,
            message: "OLM v0 made the Subscription for a dependency of another operator".to_owned(),
            hint: "move the operator that needs it first, or remove the annotation olm.generated-by to keep this one for itself",
        });
    }
}

/// C10: source of the operator.
fn source(installation: &Installation<'_>, obstacles: &mut Vec<Obstacle>) {
    let subscription = installation.subscription;
    let name = format!(
        "{}/{}",
        text(subscription, "/spec/sourceNamespace"),
        text(subscription, "/spec/source")
    );
    let message = match installation.catalog {
        None => format!("CatalogSource {name} does not exist"),
        Some(catalog) if text(catalog, "/spec/sourceType") != "grpc" => {
            format!(
                "CatalogSource {name} is of type {:?}",
                text(catalog, "/spec/sourceType")
            )
        }
        Some(catalog) if text(catalog, "/spec/image").is_empty() => format!("CatalogSource {name} has no image"),
        Some(_) => return,
    };
    obstacles.push(Obstacle {
        id: "C10",
        consent: false,
        message,
        hint: "serve the package from a catalog image: OLM v1 reads no other catalogs",
    });
}
