//! Objects that OLM v0 creates outside the namespace of an operator.
//!
//! Owner references cannot cross namespaces, so OLM writes the owner into labels. `cleanup` finds the objects of one
//! package by these labels, `olm uninstall` those of all packages.

use crate::base::kinds::{self, Kind};

/// Label with the name of the owner.
pub const OWNER: &str = "olm.owner";

/// Label with the kind of the owner.
pub const OWNER_KIND: &str = "olm.owner.kind";

/// Label with the namespace of the owner.
pub const OWNER_NAMESPACE: &str = "olm.owner.namespace";

/// Label on the objects that OLM creates, with the value `true`.
pub const MANAGED: &str = "olm.managed";

/// Prefixes of the labels that OLM writes.
pub const LABEL_PREFIXES: &[&str] = &["olm.", "operators.coreos.com/", "operatorframework.io/"];

/// A place in which OLM creates objects for ClusterServiceVersions and OperatorGroups.
#[derive(Debug)]
pub struct Place {
    /// The kind of the objects.
    pub kind: Kind,
    /// Their namespace, if the kind has one.
    pub namespace: Option<&'static str>,
    /// True if OLM labels all of them with their owner.
    pub names_owner: bool,
}

/// Every place.
pub fn places() -> [Place; 5] {
    let place = |kind| Place {
        kind,
        namespace: None,
        names_owner: true,
    };
    [
        place(kinds::cluster_role()),
        place(kinds::cluster_role_binding()),
        place(kinds::mutating_webhook_configuration()),
        place(kinds::validating_webhook_configuration()),
        Place {
            kind: kinds::role_binding(),
            namespace: Some("kube-system"),
            names_owner: false,
        },
    ]
}
