//! The kinds of objects that a bundle may contain, and the programs that accept them.
//!
//! This table is the only list of these kinds. `generate` and `validate` use its column for operator-registry, whose
//! list defines the bundle format. The checks before an installation use the one for the Operator Lifecycle Manager
//! (OLM). The lists differ: operator-registry and OLM v1, which uses its list, support `PodMonitor`; OLM v0 fails an
//! InstallPlan with one.
//!
//! ```
//! use olmkit_bundle::kinds::{self, Program};
//!
//! let pod_monitor = kinds::find("PodMonitor").ok_or("unknown kind")?;
//! assert!(pod_monitor.is_accepted(Program::OperatorRegistry, (1, 60, 0)));
//! assert!(!pod_monitor.is_accepted(Program::OlmV0, kinds::NEWEST_OLM_V0));
//! assert!(kinds::find("Ingress").is_none());
//! # Ok::<(), &str>(())
//! ```

/// Major, minor and patch number of a release.
pub type Release = (u64, u64, u64);

/// The operator-registry that operator-sdk 1.42 uses.
pub const OPERATOR_SDK_1_42: Release = (1, 59, 0);
/// The operator-registry of the same time as operator-framework/api 0.45.
pub const API_0_45: Release = (1, 73, 0);
/// The newest OLM v0 that the table was tried on.
pub const NEWEST_OLM_V0: Release = (0, 46, 0);

/// A program that has a list of kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Program {
    /// operator-registry: the bundle format itself, as opm and operator-sdk check it.
    OperatorRegistry,
    /// OLM v0, which runs the steps of an InstallPlan.
    OlmV0,
    /// OLM v1, operator-controller.
    OlmV1,
}

/// Scope of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// In a namespace.
    Namespaced,
    /// In the cluster.
    Cluster,
}

/// A kind of object that at least one [`Program`] accepts in a bundle. All of them check only the kind, not its group
/// and version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BundleKind {
    /// The kind as manifests spell it.
    pub kind: &'static str,
    /// The API group that has the kind. Empty for the core group.
    pub group: &'static str,
    /// Its scope in that API. operator-registry, and OLM v1 with it, takes `VerticalPodAutoscaler` for cluster-scoped.
    pub scope: Scope,
    /// The first operator-registry that accepts it.
    pub operator_registry: Option<Release>,
    /// The first OLM v0 that installs it.
    pub olm_v0: Option<Release>,
    /// The first OLM v1 that installs it.
    pub olm_v1: Option<Release>,
}

impl BundleKind {
    /// The first release of a program that accepts the kind. None if no release does.
    #[must_use]
    pub fn since(&self, program: Program) -> Option<Release> {
        match program {
            Program::OperatorRegistry => self.operator_registry,
            Program::OlmV0 => self.olm_v0,
            Program::OlmV1 => self.olm_v1,
        }
    }

    /// Returns true if a release of a program accepts the kind.
    #[must_use]
    pub fn is_accepted(&self, program: Program, release: Release) -> bool {
        self.since(program).is_some_and(|since| since <= release)
    }
}

/// The row of a kind.
#[must_use]
pub fn find(kind: &str) -> Option<&'static BundleKind> {
    ALL.iter().find(|known| known.kind == kind)
}

/// Returns true if a release of a program accepts objects of a kind in a bundle.
#[must_use]
pub fn is_accepted(kind: &str, program: Program, release: Release) -> bool {
    find(kind).is_some_and(|found| found.is_accepted(program, release))
}

/// All kinds, sorted.
///
/// The releases are those whose source first has the kind: operator-registry's `pkg/lib/bundle/supported_resources.go`,
/// OLM's `pkg/controller/operators/catalog`, and for OLM v1 the operator-registry in operator-controller's `go.mod`.
#[rustfmt::skip]
pub const ALL: &[BundleKind] = {
    use Scope::{Cluster, Namespaced};
    // The first release of each program with a list, and the first stable OLM v1.
    const REGISTRY: Option<Release> = Some((1, 5, 7));
    const OLM_V0: Option<Release> = Some((0, 0, 0));
    const OLM_V1: Option<Release> = Some((1, 0, 0));
    const RBAC: &str = "rbac.authorization.k8s.io";
    const MONITORING: &str = "monitoring.coreos.com";
    const CONSOLE: &str = "console.openshift.io";
    &[
        row("ClusterRole", RBAC, Cluster, REGISTRY, OLM_V0, OLM_V1),
        row("ClusterRoleBinding", RBAC, Cluster, REGISTRY, OLM_V0, OLM_V1),
        row("ClusterServiceVersion", "operators.coreos.com", Namespaced, REGISTRY, OLM_V0, OLM_V1),
        row("ConfigMap", "", Namespaced, Some((1, 9, 0)), Some((0, 15, 0)), OLM_V1),
        row("ConsoleCLIDownload", CONSOLE, Cluster, Some((1, 18, 1)), Some((0, 19, 0)), OLM_V1),
        row("ConsoleLink", CONSOLE, Cluster, Some((1, 18, 1)), Some((0, 19, 0)), OLM_V1),
        row("ConsolePlugin", CONSOLE, Cluster, Some((1, 52, 0)), Some((0, 32, 0)), Some((1, 3, 0))),
        row("ConsoleQuickStart", CONSOLE, Cluster, Some((1, 18, 1)), Some((0, 19, 0)), OLM_V1),
        row("ConsoleYAMLSample", CONSOLE, Cluster, Some((1, 18, 1)), Some((0, 18, 0)), OLM_V1),
        row("CustomResourceDefinition", "apiextensions.k8s.io", Cluster, REGISTRY, OLM_V0, OLM_V1),
        row("NetworkPolicy", "networking.k8s.io", Namespaced, Some((1, 55, 0)), Some((0, 32, 0)), Some((1, 3, 0))),
        row("PodDisruptionBudget", "policy", Namespaced, Some((1, 12, 7)), Some((0, 16, 0)), OLM_V1),
        row("PodMonitor", MONITORING, Namespaced, Some((1, 60, 0)), None, Some((1, 6, 0))),
        row("PriorityClass", "scheduling.k8s.io", Cluster, Some((1, 12, 7)), Some((0, 16, 0)), OLM_V1),
        row("PrometheusRule", MONITORING, Namespaced, REGISTRY, Some((0, 14, 1)), OLM_V1),
        row("Role", RBAC, Namespaced, REGISTRY, OLM_V0, OLM_V1),
        row("RoleBinding", RBAC, Namespaced, REGISTRY, OLM_V0, OLM_V1),
        row("Secret", "", Namespaced, Some((1, 9, 0)), OLM_V0, OLM_V1),
        row("Service", "", Namespaced, REGISTRY, OLM_V0, OLM_V1),
        row("ServiceAccount", "", Namespaced, REGISTRY, OLM_V0, OLM_V1),
        row("ServiceMonitor", MONITORING, Namespaced, REGISTRY, Some((0, 14, 1)), OLM_V1),
        row("VerticalPodAutoscaler", "autoscaling.k8s.io", Namespaced, Some((1, 12, 7)), Some((0, 16, 0)), OLM_V1),
    ]
};

const fn row(
    kind: &'static str,
    group: &'static str,
    scope: Scope,
    operator_registry: Option<Release>,
    olm_v0: Option<Release>,
    olm_v1: Option<Release>,
) -> BundleKind {
    BundleKind {
        kind,
        group,
        scope,
        operator_registry,
        olm_v0,
        olm_v1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_sorted_and_unique() {
        assert!(ALL.is_sorted_by(|left, right| left.kind < right.kind));
    }

    #[test]
    fn the_lists_differ_in_pod_monitors_alone() {
        let lacking = |program, release| -> Vec<&str> {
            let lacks = |known: &&BundleKind| !known.is_accepted(program, release);
            ALL.iter().filter(lacks).map(|known| known.kind).collect()
        };
        assert_eq!(lacking(Program::OperatorRegistry, OPERATOR_SDK_1_42), ["PodMonitor"]);
        assert!(lacking(Program::OperatorRegistry, API_0_45).is_empty());
        assert_eq!(lacking(Program::OlmV0, NEWEST_OLM_V0), ["PodMonitor"]);
        assert!(lacking(Program::OlmV1, (1, 11, 0)).is_empty());
    }

    #[test]
    fn older_releases_accept_less() {
        assert!(!is_accepted("NetworkPolicy", Program::OlmV0, (0, 31, 0)));
        assert!(is_accepted("NetworkPolicy", Program::OlmV0, (0, 32, 0)));
        assert!(!is_accepted("NetworkPolicy", Program::OlmV1, (1, 2, 0)));
    }
}
