//! A permission, the commands that need it, and its condition.

use std::collections::BTreeSet;

use crate::base::kinds;

/// A command that uses a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Command {
    /// `run bundle`
    RunBundle,
    /// `run bundle-upgrade`
    BundleUpgrade,
    /// `cleanup`
    Cleanup,
    /// `subscribe`
    Subscribe,
    /// `diagnose`
    Diagnose,
    /// `migrate check` and `migrate plan`
    Migrate,
    /// `scorecard --cluster`
    Scorecard,
    /// `run bundle` and `run bundle-upgrade` with `--olm v1`
    RunBundleV1,
    /// `cleanup --olm v1`
    CleanupV1,
    /// `extension install`
    ExtensionInstall,
    /// `extension status` and `extension diff`
    ExtensionStatus,
    /// `extension uninstall`
    ExtensionUninstall,
    /// `olm status`
    OlmStatus,
    /// `olm install`
    OlmInstall,
    /// `olm uninstall`
    OlmUninstall,
}

impl Command {
    /// Every command, in the order of the documentation.
    pub const ALL: [Command; 15] = [
        Command::RunBundle,
        Command::BundleUpgrade,
        Command::Cleanup,
        Command::Subscribe,
        Command::Diagnose,
        Command::Migrate,
        Command::Scorecard,
        Command::RunBundleV1,
        Command::CleanupV1,
        Command::ExtensionInstall,
        Command::ExtensionStatus,
        Command::ExtensionUninstall,
        Command::OlmStatus,
        Command::OlmInstall,
        Command::OlmUninstall,
    ];

    /// The command as typed.
    pub fn as_str(self) -> &'static str {
        match self {
            Command::RunBundle => "run bundle",
            Command::BundleUpgrade => "run bundle-upgrade",
            Command::Cleanup => "cleanup",
            Command::Subscribe => "subscribe",
            Command::Diagnose => "diagnose",
            Command::Migrate => "migrate",
            Command::Scorecard => "scorecard --cluster",
            Command::RunBundleV1 => "run bundle --olm v1",
            Command::CleanupV1 => "cleanup --olm v1",
            Command::ExtensionInstall => "extension install",
            Command::ExtensionStatus => "extension status",
            Command::ExtensionUninstall => "extension uninstall",
            Command::OlmStatus => "olm status",
            Command::OlmInstall => "olm install",
            Command::OlmUninstall => "olm uninstall",
        }
    }
}

/// Scope of a permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In the whole cluster.
    Cluster,
    /// In the operator's namespace.
    Namespace,
    /// In the operator's namespace and in those of the catalogs.
    Catalogs,
    /// In OLM's namespace.
    Olm,
    /// In the namespace of catalogd.
    Catalogd,
    /// In `kube-system`.
    KubeSystem,
}

impl Place {
    pub(super) fn text(self) -> &'static str {
        match self {
            Place::Cluster => "whole cluster",
            Place::Namespace => "operator's namespace",
            Place::Catalogs => "operator's and catalogs' namespaces",
            Place::Olm => "OLM's namespace",
            Place::Catalogd => "catalogd's namespace",
            Place::KubeSystem => "kube-system",
        }
    }
}

/// When a right is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum When {
    /// Always.
    Always,
    /// When the catalog is served by a pod.
    CatalogPod,
    /// When the namespace has no OperatorGroup.
    NewGroup,
    /// When an earlier attempt to unpack the bundle image remains.
    OldJobs,
    /// If the bundle contains such objects.
    InBundle,
    /// When such objects will be removed.
    Removed,
    /// If a CRD of the package is kept.
    Kept,
    /// If custom resources outlive their operator.
    Operands,
    /// If OLM lost track of its objects, and if a run fails.
    Repair,
    /// Never, but without it something is missing from the result.
    Better(&'static str),
}

impl When {
    pub(super) fn text(self) -> String {
        match self {
            When::Always => String::new(),
            When::CatalogPod => "the catalog is served by a pod".into(),
            When::NewGroup => "the namespace has no OperatorGroup".into(),
            When::OldJobs => "an earlier attempt to unpack the bundle image remains".into(),
            When::InBundle => "the bundle contains such objects".into(),
            When::Removed => "such objects will be removed".into(),
            When::Kept => "a CRD of the package stays".into(),
            When::Operands => "custom resources outlive their operator".into(),
            When::Repair => "rolling back, or OLM no longer tracks its objects".into(),
            When::Better(without) => format!("optional: without it {without}"),
        }
    }
}

/// Verbs on resources that commands need.
#[derive(Debug, Clone, Copy)]
pub struct Right {
    /// The commands.
    pub commands: &'static [Command],
    /// API group. Empty for the core group.
    pub group: &'static str,
    /// Plural names; with a slash and a subresource, if one is meant.
    pub resources: &'static [&'static str],
    /// The verbs.
    pub verbs: &'static [&'static str],
    /// Scope.
    pub place: Place,
    /// When.
    pub when: When,
}

/// Returns true if a permission is for a kind that a bundle contains.
pub fn in_bundle(right: &Right, bundle_kinds: &BTreeSet<(String, String)>) -> bool {
    right.when == When::InBundle
        && bundle_kinds
            .iter()
            .filter_map(|(api_version, kind)| kinds::known(api_version, kind))
            .any(|kind| kind.group == right.group && right.resources.contains(&kind.plural.as_str()))
}
