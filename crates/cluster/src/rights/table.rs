//! The table of rights.

use super::Command::{
    BundleUpgrade, Cleanup, Diagnose, Migrate, OlmInstall, OlmStatus, OlmUninstall, RunBundle, Subscribe,
};
use super::Place::{Catalogs, Cluster, KubeSystem, Namespace, Olm};
use super::When::{Always, Better, CatalogPod, InBundle, Kept, NewGroup, OldJobs, Removed, Repair};
use super::{Command, Place, Right, When};

const CORE: &str = "";
const APPS: &str = "apps";
const BATCH: &str = "batch";
const RBAC: &str = "rbac.authorization.k8s.io";
const CRDS: &str = "apiextensions.k8s.io";
const AGGREGATION: &str = "apiregistration.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";
const NETWORK: &str = "networking.k8s.io";
const SCHEDULING: &str = "scheduling.k8s.io";
const OLM: &str = "operators.coreos.com";
const OLM_V1: &str = "olm.operatorframework.io";

/// The commands that look at a namespace.
const FLOWS: &[Command] = &[RunBundle, BundleUpgrade, Cleanup, Subscribe, Diagnose];
/// Those that look at OLM.
const LOOKING: &[Command] = &[RunBundle, BundleUpgrade, Cleanup, Subscribe, Diagnose, OlmStatus];
/// Those that install an operator.
const INSTALLING: &[Command] = &[RunBundle, BundleUpgrade, Subscribe];
/// Those that note what they did in OLM's Operator object.
const RECORDING: &[Command] = &[RunBundle, BundleUpgrade, Subscribe, Cleanup];
/// Those that install a bundle.
const BUNDLES: &[Command] = &[RunBundle, BundleUpgrade];

/// What is lost where objects of a bundle can neither be recorded nor labelled.
const LEFT: &str = "cleanup can leave what the bundle holds for the whole cluster";

const fn right(
    commands: &'static [Command],
    place: Place,
    group: &'static str,
    resources: &'static [&'static str],
    verbs: &'static [&'static str],
    when: When,
) -> Right {
    Right {
        commands,
        group,
        resources,
        verbs,
        place,
        when,
    }
}

/// Every right.
pub static RIGHTS: &[Right] = &[
    // What is looked at.
    right(FLOWS, Namespace, CORE, &["namespaces"], &["get"], Always),
    right(
        LOOKING,
        Cluster,
        CRDS,
        &["customresourcedefinitions"],
        &["list"],
        Always,
    ),
    right(LOOKING, Cluster, APPS, &["deployments"], &["list"], Always),
    right(LOOKING, Cluster, OLM, &["clusterserviceversions"], &["list"], Always),
    right(FLOWS, Cluster, AGGREGATION, &["apiservices"], &["list"], Always),
    right(
        FLOWS,
        Namespace,
        OLM,
        &["operatorgroups", "subscriptions", "installplans", "operatorconditions"],
        &["list"],
        Always,
    ),
    right(FLOWS, Catalogs, OLM, &["catalogsources"], &["list"], Always),
    right(FLOWS, Catalogs, CORE, &["pods", "events"], &["list"], Always),
    right(FLOWS, Catalogs, BATCH, &["jobs"], &["list"], Always),
    right(
        LOOKING,
        Catalogs,
        CORE,
        &["pods", "pods/log"],
        &["get"],
        Better("causes lack the last lines of a pod's log"),
    ),
    right(
        LOOKING,
        Olm,
        CORE,
        &["namespaces"],
        &["get"],
        Better("OLM's namespace is not found where its Deployments are missing"),
    ),
    right(
        BUNDLES,
        Cluster,
        CORE,
        &["nodes"],
        &["list"],
        Better("the address that --serve-from-host guesses may not be one that nodes reach"),
    ),
    // What is looked at for the move to OLM v1.
    right(
        &[Migrate],
        Cluster,
        OLM,
        &[
            "subscriptions",
            "clusterserviceversions",
            "operatorgroups",
            "operatorconditions",
            "catalogsources",
        ],
        &["list"],
        Always,
    ),
    right(&[Migrate], Cluster, OLM_V1, &["clusterextensions"], &["list"], Always),
    // The catalog.
    right(
        BUNDLES,
        Namespace,
        OLM,
        &["catalogsources"],
        &["get", "create", "patch", "delete"],
        Always,
    ),
    right(
        BUNDLES,
        Namespace,
        CORE,
        &["configmaps", "services"],
        &["get", "create", "patch"],
        CatalogPod,
    ),
    right(
        BUNDLES,
        Namespace,
        APPS,
        &["deployments"],
        &["get", "create", "patch"],
        CatalogPod,
    ),
    right(BUNDLES, Namespace, BATCH, &["jobs"], &["delete"], OldJobs),
    // The installation.
    right(
        BUNDLES,
        Namespace,
        OLM,
        &["subscriptions"],
        &["get", "create", "patch", "delete"],
        Always,
    ),
    right(
        &[BundleUpgrade],
        Namespace,
        OLM,
        &["subscriptions/status"],
        &["patch"],
        Always,
    ),
    right(
        &[Subscribe],
        Namespace,
        OLM,
        &["subscriptions"],
        &["get", "create", "patch"],
        Always,
    ),
    right(
        &[RunBundle, Subscribe],
        Namespace,
        OLM,
        &["operatorgroups"],
        &["get", "create", "patch"],
        NewGroup,
    ),
    right(INSTALLING, Namespace, OLM, &["installplans"], &["patch"], Always),
    right(
        BUNDLES,
        Namespace,
        OLM,
        &["clusterserviceversions"],
        &["get", "patch"],
        Always,
    ),
    right(
        BUNDLES,
        Namespace,
        OLM,
        &["clusterserviceversions", "installplans"],
        &["delete"],
        Repair,
    ),
    right(
        INSTALLING,
        Cluster,
        CRDS,
        &["customresourcedefinitions"],
        &["get"],
        InBundle,
    ),
    right(
        INSTALLING,
        Cluster,
        RBAC,
        &["clusterroles", "clusterrolebindings"],
        &["get"],
        Better(LEFT),
    ),
    right(
        INSTALLING,
        Cluster,
        SCHEDULING,
        &["priorityclasses"],
        &["get"],
        Better(LEFT),
    ),
    right(
        BUNDLES,
        Cluster,
        RBAC,
        &["clusterroles"],
        &["patch", "escalate", "bind"],
        Better(LEFT),
    ),
    right(
        BUNDLES,
        Cluster,
        RBAC,
        &["clusterrolebindings"],
        &["patch"],
        Better(LEFT),
    ),
    right(
        BUNDLES,
        Cluster,
        SCHEDULING,
        &["priorityclasses"],
        &["patch"],
        Better(LEFT),
    ),
    right(
        RECORDING,
        Cluster,
        OLM,
        &["operators"],
        &["get", "create", "patch"],
        Better("cleanup leaves the CRDs that an installation without a catalog in the cluster created"),
    ),
    // The removal.
    right(
        &[Cleanup],
        Cluster,
        RBAC,
        &["clusterroles", "clusterrolebindings"],
        &["list"],
        Always,
    ),
    right(
        &[Cleanup],
        Cluster,
        ADMISSION,
        &["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
        &["list"],
        Always,
    ),
    right(&[Cleanup], Cluster, SCHEDULING, &["priorityclasses"], &["list"], Always),
    right(&[Cleanup], KubeSystem, RBAC, &["rolebindings"], &["list"], Always),
    right(&[Cleanup], Namespace, APPS, &["deployments"], &["list"], Always),
    right(
        &[Cleanup],
        Namespace,
        CORE,
        &["services", "configmaps"],
        &["list"],
        Always,
    ),
    right(&[Cleanup], Namespace, NETWORK, &["networkpolicies"], &["list"], Always),
    right(
        &[Cleanup],
        Namespace,
        OLM,
        &[
            "subscriptions",
            "installplans",
            "clusterserviceversions",
            "catalogsources",
            "operatorgroups",
        ],
        &["get", "delete"],
        Removed,
    ),
    right(
        &[Cleanup],
        Namespace,
        APPS,
        &["deployments"],
        &["get", "delete"],
        Removed,
    ),
    right(
        &[Cleanup],
        Namespace,
        CORE,
        &["services", "configmaps"],
        &["get", "delete"],
        Removed,
    ),
    right(
        &[Cleanup],
        Namespace,
        NETWORK,
        &["networkpolicies"],
        &["get", "delete"],
        Removed,
    ),
    right(
        &[Cleanup],
        KubeSystem,
        RBAC,
        &["rolebindings"],
        &["get", "delete"],
        Removed,
    ),
    right(
        &[Cleanup],
        Cluster,
        RBAC,
        &["clusterroles", "clusterrolebindings"],
        &["get", "delete"],
        Removed,
    ),
    right(
        &[Cleanup],
        Cluster,
        ADMISSION,
        &["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
        &["get", "delete"],
        Removed,
    ),
    right(
        &[Cleanup],
        Cluster,
        SCHEDULING,
        &["priorityclasses"],
        &["get", "delete"],
        Removed,
    ),
    right(
        &[Cleanup],
        Cluster,
        CRDS,
        &["customresourcedefinitions"],
        &["get", "delete"],
        Removed,
    ),
    right(&[Cleanup], Cluster, OLM, &["operators"], &["get", "delete"], Removed),
    right(
        &[Cleanup],
        Cluster,
        CRDS,
        &["customresourcedefinitions"],
        &["patch"],
        Kept,
    ),
    // OLM itself.
    right(
        &[OlmStatus],
        Olm,
        OLM,
        &[
            "operatorgroups",
            "subscriptions",
            "installplans",
            "operatorconditions",
            "catalogsources",
        ],
        &["list"],
        Always,
    ),
    right(&[OlmStatus], Olm, CORE, &["pods", "events"], &["list"], Always),
    right(&[OlmStatus], Olm, BATCH, &["jobs"], &["list"], Always),
    right(&[OlmStatus], Cluster, AGGREGATION, &["apiservices"], &["get"], Always),
    right(
        &[OlmInstall],
        Cluster,
        CRDS,
        &["customresourcedefinitions"],
        &["get", "create", "patch"],
        Always,
    ),
    right(
        &[OlmInstall],
        Cluster,
        CORE,
        &["namespaces", "serviceaccounts"],
        &["create", "patch"],
        Always,
    ),
    right(
        &[OlmInstall],
        Cluster,
        NETWORK,
        &["networkpolicies"],
        &["create", "patch"],
        Always,
    ),
    right(
        &[OlmInstall],
        Cluster,
        RBAC,
        &["clusterroles"],
        &["create", "patch", "escalate"],
        Always,
    ),
    right(
        &[OlmInstall],
        Cluster,
        RBAC,
        &["clusterrolebindings"],
        &["create", "patch"],
        Always,
    ),
    right(&[OlmInstall], Cluster, RBAC, &["clusterroles"], &["bind"], Always),
    right(
        &[OlmInstall],
        Cluster,
        APPS,
        &["deployments"],
        &["get", "list", "create", "patch"],
        Always,
    ),
    right(&[OlmInstall], Cluster, CORE, &["pods", "events"], &["list"], Always),
    right(&[OlmInstall], Cluster, BATCH, &["jobs"], &["list"], Always),
    right(
        &[OlmInstall],
        Cluster,
        OLM,
        &["olmconfigs", "operatorgroups"],
        &["create", "patch"],
        Always,
    ),
    right(
        &[OlmInstall],
        Cluster,
        OLM,
        &["clusterserviceversions"],
        &["get", "create", "patch"],
        Always,
    ),
    right(
        &[OlmInstall],
        Cluster,
        OLM,
        &[
            "operatorgroups",
            "subscriptions",
            "installplans",
            "clusterserviceversions",
            "operatorconditions",
            "catalogsources",
        ],
        &["list"],
        Always,
    ),
    right(
        &[OlmUninstall],
        Cluster,
        OLM,
        &[
            "subscriptions",
            "clusterserviceversions",
            "catalogsources",
            "installplans",
            "operatorgroups",
            "operatorconditions",
            "operators",
            "olmconfigs",
        ],
        &["list", "get", "delete"],
        Always,
    ),
    right(
        &[OlmUninstall],
        Cluster,
        OLM,
        &["clusterserviceversions"],
        &["patch"],
        Repair,
    ),
    right(
        &[OlmUninstall],
        Cluster,
        AGGREGATION,
        &["apiservices"],
        &["get", "delete"],
        Always,
    ),
    right(
        &[OlmUninstall],
        Cluster,
        APPS,
        &["deployments"],
        &["list", "get", "delete"],
        Always,
    ),
    right(
        &[OlmUninstall],
        Cluster,
        CRDS,
        &["customresourcedefinitions"],
        &["list", "get", "delete"],
        Always,
    ),
    right(
        &[OlmUninstall],
        Cluster,
        RBAC,
        &["clusterroles", "clusterrolebindings"],
        &["list", "get", "delete"],
        Always,
    ),
    right(
        &[OlmUninstall],
        KubeSystem,
        RBAC,
        &["rolebindings"],
        &["list", "get", "delete"],
        Always,
    ),
    right(
        &[OlmUninstall],
        Cluster,
        CORE,
        &["namespaces"],
        &["get", "delete"],
        Always,
    ),
    right(
        &[OlmUninstall],
        Cluster,
        "*",
        &["*"],
        &["list"],
        Better("OLM's namespaces stay, since others may use them"),
    ),
];

/// The table of the documentation, in Markdown.
pub fn markdown() -> String {
    let mut text = String::from("| command | resources | verbs | where | when |\n|---|---|---|---|---|\n");
    for right in RIGHTS {
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
    let own = "those of the package's CRDs | list, get, delete | whole cluster | such CRDs are to be removed";
    text.push_str(&format!("| `{}` | {own} |\n\n", Cleanup.as_str()));
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
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cluster.md");
        let text = std::fs::read_to_string(&path).unwrap();
        let (head, rest) = text.split_once("lib rights` -->\n").unwrap();
        let (present, tail) = rest.split_once("## When something is wrong").unwrap();
        let expected = format!("\n{}", markdown());
        if std::env::var_os("UPDATE_GENERATED").is_some() {
            let text = format!("{head}lib rights` -->\n{expected}## When something is wrong{tail}");
            std::fs::write(&path, text).unwrap();
        } else {
            assert_eq!(
                present, expected,
                "run UPDATE_GENERATED=1 cargo test -p olmkit-cluster --lib rights"
            );
        }
    }
}
