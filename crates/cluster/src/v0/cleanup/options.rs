//! Options and result of a cleanup.

use std::time::Duration;

/// Objects to remove in addition to Subscription, CSV and catalog.
#[derive(Clone, Debug)]
pub struct Options {
    /// The package.
    pub package: String,
    /// The CRDs that the package owns, with their objects.
    pub crds: bool,
    /// The OperatorGroup, if olmkit or operator-sdk created it and nothing else needs it.
    pub operator_groups: bool,
    /// Only report what would be removed.
    pub dry_run: bool,
    /// Total time to wait.
    pub timeout: Duration,
    /// CRDs to keep although the package owns them, with their unchanged custom resources.
    pub keep_crds: Vec<String>,
    /// Delete the custom resources of the package's CRDs in all namespaces that the operator serves, also of CRDs that
    /// are kept.
    pub operands: bool,
    /// Further finalizers to release from custom resources that outlive the operator.
    pub release_finalizers: Vec<String>,
    /// CRDs to delete with all their custom resources, even if they were not created for the package or have custom
    /// resources in other namespaces.
    pub named_crds: Vec<String>,
}
