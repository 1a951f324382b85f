//! The table of permissions.

use std::sync::LazyLock;

use super::right::Command::{
    BundleUpgrade, Cleanup, CleanupV1, Diagnose, ExtensionUninstall, Migrate, OlmInstall, OlmStatus, OlmUninstall,
    RunBundle, Scorecard, Subscribe,
};
use super::right::Place::{Catalogd, Catalogs, Cluster, KubeSystem, Namespace, Olm};
use super::right::When::{Always, Better, CatalogPod, InBundle, Kept, NewGroup, OldJobs, Operands, Removed, Repair};
use super::right::{Command, Right};
use groups::{ADMISSION, AGGREGATION, APPS, BATCH, CORE, CRDS, NETWORK, OLM, OLM_V1, RBAC, SCHEDULING};

/// Rows of the table: commands, scope, group, resources, verbs, and the condition of the permission.
macro_rules! rights {
    ($($commands:expr, $place:expr, $group:expr, $resources:expr, $verbs:expr, $when:expr;)+) => {
        &[$(Right {
            commands: $commands,
            place: $place,
            group: $group,
            resources: &$resources,
            verbs: &$verbs,
            when: $when,
        }),+]
    };
}

mod groups;
mod olm_v1;

/// The commands that observe a namespace.
const FLOWS: &[Command] = &[RunBundle, BundleUpgrade, Cleanup, Subscribe, Diagnose];
/// The commands that observe OLM.
const LOOKING: &[Command] = &[RunBundle, BundleUpgrade, Cleanup, Subscribe, Diagnose, OlmStatus];
/// Those that install an operator.
const INSTALLING: &[Command] = &[RunBundle, BundleUpgrade, Subscribe];
/// The commands that record objects in OLM's Operator object.
const RECORDING: &[Command] = &[RunBundle, BundleUpgrade, Subscribe, Cleanup];
/// Those that install a bundle.
const BUNDLES: &[Command] = &[RunBundle, BundleUpgrade];

/// Consequence if objects of a bundle can neither be recorded nor labeled.
const LEFT: &str = "cleanup can leave cluster-scoped objects of the bundle";

/// Consequence if the label of objects that are kept cannot be removed.
const LABELLED: &str = "OLM's Operator object stays while an object that is kept has the package's label";

/// Consequence if catalogs cannot be read.
const UNASKED: &str = "C7 (a ClusterCatalog has the package) is unknown";

/// Every right.
pub static RIGHTS: LazyLock<Vec<Right>> = LazyLock::new(|| [OLM_V0, olm_v1::RIGHTS].concat());

/// Commands for OLM v0, and scorecard.
const OLM_V0: &[Right] = rights! {
    // Observation.
    FLOWS, Namespace, CORE, ["namespaces"], ["get"], Always;
    LOOKING, Cluster, CRDS, ["customresourcedefinitions"], ["list"], Always;
    LOOKING, Cluster, APPS, ["deployments"], ["list"], Always;
    LOOKING, Cluster, OLM, ["clusterserviceversions"], ["list"], Always;
    FLOWS, Cluster, AGGREGATION, ["apiservices"], ["list"], Always;
    FLOWS, Namespace, OLM, ["operatorgroups", "subscriptions", "installplans", "operatorconditions"], ["list"], Always;
    FLOWS, Catalogs, OLM, ["catalogsources"], ["list"], Always;
    FLOWS, Catalogs, CORE, ["pods", "events"], ["list"], Always;
    FLOWS, Catalogs, BATCH, ["jobs"], ["list"], Always;
    LOOKING, Catalogs, CORE, ["pods", "pods/log"], ["get"], Better("causes lack the last lines of a pod's log");
    LOOKING, Olm, CORE, ["namespaces"], ["get"],
        Better("OLM's namespace is not found if its Deployments are missing");
    BUNDLES, Cluster, CORE, ["nodes"], ["list"],
        Better("the address that --serve-from-host guesses may not be reachable from nodes");
    // Observation for the move to OLM v1.
    &[Migrate], Cluster, OLM,
        ["subscriptions", "clusterserviceversions", "operatorgroups", "operatorconditions", "catalogsources"], ["list"],
        Always;
    &[Migrate], Cluster, OLM_V1, ["clusterextensions"], ["list"], Always;
    &[Migrate], Cluster, OLM_V1, ["clustercatalogs"], ["list"], Better(UNASKED);
    &[Migrate], Catalogd, CORE, ["services/proxy"], ["get"], Better(UNASKED);
    // Scorecard's pods.
    &[Scorecard], Namespace, CORE, ["configmaps", "pods"], ["create", "patch"], Always;
    &[Scorecard], Namespace, CORE, ["pods", "pods/log"], ["get"], Always;
    &[Scorecard], Namespace, CORE, ["configmaps", "pods"], ["list", "delete"], Removed;
    &[Scorecard], Namespace, CORE, ["events"], ["list"], Better("a test that exceeds its time limit lacks the pod's events");
    &[Scorecard], Namespace, CORE, ["pods/exec"], ["create"], Better("the tests' files are not collected");
    // The catalog.
    BUNDLES, Namespace, OLM, ["catalogsources"], ["get", "create", "patch", "delete"], Always;
    BUNDLES, Namespace, CORE, ["configmaps", "services"], ["get", "create", "patch"], CatalogPod;
    BUNDLES, Namespace, APPS, ["deployments"], ["get", "create", "patch"], CatalogPod;
    BUNDLES, Namespace, BATCH, ["jobs"], ["delete"], OldJobs;
    // The installation.
    BUNDLES, Namespace, OLM, ["subscriptions"], ["get", "create", "patch", "delete"], Always;
    &[BundleUpgrade], Namespace, OLM, ["subscriptions/status"], ["patch"], Always;
    &[Subscribe], Namespace, OLM, ["subscriptions"], ["get", "create", "patch"], Always;
    &[RunBundle, Subscribe], Namespace, OLM, ["operatorgroups"], ["get", "create", "patch"], NewGroup;
    INSTALLING, Namespace, OLM, ["installplans"], ["patch"], Always;
    BUNDLES, Namespace, OLM, ["clusterserviceversions"], ["get", "patch"], Always;
    BUNDLES, Namespace, OLM, ["clusterserviceversions", "installplans"], ["delete"], Repair;
    INSTALLING, Cluster, CRDS, ["customresourcedefinitions"], ["get"], InBundle;
    INSTALLING, Cluster, RBAC, ["clusterroles", "clusterrolebindings"], ["get"], Better(LEFT);
    INSTALLING, Cluster, SCHEDULING, ["priorityclasses"], ["get"], Better(LEFT);
    BUNDLES, Cluster, RBAC, ["clusterroles"], ["patch", "escalate", "bind"], Better(LEFT);
    BUNDLES, Cluster, RBAC, ["clusterrolebindings"], ["patch"], Better(LEFT);
    BUNDLES, Cluster, SCHEDULING, ["priorityclasses"], ["patch"], Better(LEFT);
    RECORDING, Cluster, OLM, ["operators"], ["get", "create", "patch"],
        Better("cleanup keeps the CRDs that an installation without a catalog in the cluster created");
    // The removal.
    &[Cleanup], Cluster, RBAC, ["clusterroles", "clusterrolebindings"], ["list"], Always;
    &[Cleanup], Cluster, ADMISSION, ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"], ["list"],
        Always;
    &[Cleanup], Cluster, SCHEDULING, ["priorityclasses"], ["list"], Always;
    &[Cleanup], KubeSystem, RBAC, ["rolebindings"], ["list"], Always;
    &[Cleanup], Namespace, APPS, ["deployments"], ["list"], Always;
    &[Cleanup], Namespace, CORE, ["services", "configmaps"], ["list"], Always;
    &[Cleanup], Namespace, NETWORK, ["networkpolicies"], ["list"], Always;
    &[Cleanup], Namespace, OLM,
        ["subscriptions", "installplans", "clusterserviceversions", "catalogsources", "operatorgroups"], ["get", "delete"],
        Removed;
    &[Cleanup], Namespace, APPS, ["deployments"], ["get", "delete"], Removed;
    &[Cleanup], Namespace, CORE, ["services", "configmaps"], ["get", "delete"], Removed;
    &[Cleanup], Namespace, NETWORK, ["networkpolicies"], ["get", "delete"], Removed;
    &[Cleanup], KubeSystem, RBAC, ["rolebindings"], ["get", "delete"], Removed;
    &[Cleanup], Cluster, RBAC, ["clusterroles", "clusterrolebindings"], ["get", "delete"], Removed;
    &[Cleanup], Cluster, ADMISSION,
        ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"], ["get", "delete"],
        Removed;
    &[Cleanup], Cluster, SCHEDULING, ["priorityclasses"], ["get", "delete"], Removed;
    &[Cleanup], Cluster, CRDS, ["customresourcedefinitions"], ["get", "delete"], Removed;
    &[Cleanup], Cluster, OLM, ["operators"], ["get", "delete"], Removed;
    &[Cleanup], Cluster, CRDS, ["customresourcedefinitions"], ["patch"], Kept;
    &[Cleanup], Cluster, RBAC, ["clusterroles"], ["patch", "escalate", "bind"], Better(LABELLED);
    &[Cleanup], Cluster, RBAC, ["clusterrolebindings"], ["patch"], Better(LABELLED);
    &[Cleanup], Cluster, SCHEDULING, ["priorityclasses"], ["patch"], Better(LABELLED);
    // OLM itself.
    &[OlmStatus], Olm, OLM,
        ["operatorgroups", "subscriptions", "installplans", "operatorconditions", "catalogsources"], ["list"],
        Always;
    &[OlmStatus], Olm, CORE, ["pods", "events"], ["list"], Always;
    &[OlmStatus], Olm, BATCH, ["jobs"], ["list"], Always;
    &[OlmStatus], Cluster, AGGREGATION, ["apiservices"], ["get"], Always;
    &[OlmInstall], Cluster, CRDS, ["customresourcedefinitions"], ["get", "create", "patch"], Always;
    &[OlmInstall], Cluster, CORE, ["namespaces", "serviceaccounts"], ["create", "patch"], Always;
    &[OlmInstall], Cluster, NETWORK, ["networkpolicies"], ["create", "patch"], Always;
    &[OlmInstall], Cluster, RBAC, ["clusterroles"], ["create", "patch", "escalate"], Always;
    &[OlmInstall], Cluster, RBAC, ["clusterrolebindings"], ["create", "patch"], Always;
    &[OlmInstall], Cluster, RBAC, ["clusterroles"], ["bind"], Always;
    &[OlmInstall], Cluster, APPS, ["deployments"], ["get", "list", "create", "patch"], Always;
    &[OlmInstall], Cluster, CORE, ["pods", "events"], ["list"], Always;
    &[OlmInstall], Cluster, BATCH, ["jobs"], ["list"], Always;
    &[OlmInstall], Cluster, OLM, ["olmconfigs", "operatorgroups"], ["create", "patch"], Always;
    &[OlmInstall], Cluster, OLM, ["clusterserviceversions"], ["get", "create", "patch"], Always;
    &[OlmInstall], Cluster, OLM,
        ["operatorgroups", "subscriptions", "installplans", "clusterserviceversions", "operatorconditions", "catalogsources"], ["list"],
        Always;
    &[OlmUninstall], Cluster, OLM,
        ["subscriptions", "clusterserviceversions", "catalogsources", "installplans", "operatorgroups", "operatorconditions", "operators", "olmconfigs"], ["list", "get", "delete"],
        Always;
    &[OlmUninstall], Cluster, OLM, ["clusterserviceversions"], ["patch"], Repair;
    &[OlmUninstall], Cluster, AGGREGATION, ["apiservices"], ["get", "delete"], Always;
    &[OlmUninstall], Cluster, APPS, ["deployments"], ["list", "get", "delete"], Always;
    &[OlmUninstall], Cluster, CRDS, ["customresourcedefinitions"], ["list", "get", "delete"], Always;
    &[OlmUninstall], Cluster, RBAC, ["clusterroles", "clusterrolebindings"], ["list", "get", "delete"], Always;
    &[OlmUninstall], Cluster, ADMISSION,
        ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"], ["list", "get", "delete"],
        Always;
    &[OlmUninstall], Cluster, CRDS, ["customresourcedefinitions"], ["patch"], Operands;
    &[OlmUninstall], Cluster, CORE, ["pods"], ["list"], Operands;
    &[OlmUninstall], KubeSystem, RBAC, ["rolebindings"], ["list", "get", "delete"], Always;
    &[OlmUninstall], Cluster, CORE, ["namespaces"], ["get", "delete"], Always;
    &[OlmUninstall], Cluster, "*", ["*"], ["list"], Better("OLM's namespaces are kept, because other applications may use them");
};

/// The table of the documentation, in Markdown.
pub fn markdown() -> String {
    let mut text = String::from("| command | resources | verbs | where | when |\n|---|---|---|---|---|\n");
    for right in RIGHTS.iter() {
        let names = right
            .resources
            .iter()
            .map(|name| format!("`{}`", full(name, right.group)));
        let commands = right.commands.iter().map(|command| format!("`{}`", command.as_str()));
        text.push_str(&format!(
            "| {} | {} | {} | {} | {} |\n",
            commands.collect::<Vec<_>>().join(", "),
            names.collect::<Vec<_>>().join(", "),
            right.verbs.join(", "),
            right.place.text(),
            right.when.text()
        ));
    }
    for (commands, own) in [
        (
            &[Cleanup, CleanupV1, ExtensionUninstall][..],
            "those of the package's CRDs | list, get, delete | whole cluster | such CRDs will be removed",
        ),
        (
            &[Cleanup, CleanupV1, ExtensionUninstall, OlmUninstall],
            "those of the package's CRDs | list, get, patch | whole cluster | custom resources outlive their operator",
        ),
        (
            &[OlmUninstall],
            "those of the packages' CRDs | list, get, delete | whole cluster | `--delete-operands`",
        ),
    ] {
        let commands = commands.iter().map(|command| format!("`{}`", command.as_str()));
        text.push_str(&format!("| {} | {own} |\n", commands.collect::<Vec<_>>().join(", ")));
    }
    text.push('\n');
    text
}

/// A resource with its group, as `kubectl` names it.
fn full(resource: &str, group: &str) -> String {
    if group == "*" {
        return group.to_owned();
    }
    let (name, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let group = if group.is_empty() {
        String::new()
    } else {
        format!(".{group}")
    };
    let subresource = if subresource.is_empty() {
        String::new()
    } else {
        format!("/{subresource}")
    };
    format!("{name}{group}{subresource}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_the_documentation_is_current() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/permissions.md");
        let text = std::fs::read_to_string(&path).unwrap();
        let (head, present) = text.split_once("lib rights` -->\n").unwrap();
        let expected = format!("\n{}\n", markdown().trim_end());
        if std::env::var_os("UPDATE_GENERATED").is_some() {
            std::fs::write(&path, format!("{head}lib rights` -->\n{expected}")).unwrap();
        } else {
            assert_eq!(
                present, expected,
                "run UPDATE_GENERATED=1 cargo test -p olmkit-cluster --lib rights"
            );
        }
    }
}
