//! Permissions of the commands for OLM v1.

use super::groups::{APPS, CORE, CRDS, OLM_V1};
use crate::rights::right::Command::{
    CleanupV1, Diagnose, ExtensionInstall, ExtensionStatus, ExtensionUninstall, RunBundleV1,
};
use crate::rights::right::Place::{Cluster, Namespace};
use crate::rights::right::When::{Always, Better, Removed, Repair};
use crate::rights::right::{Command, Right};

/// The commands for OLM v1.
const V1: &[Command] = &[
    RunBundleV1,
    CleanupV1,
    ExtensionInstall,
    ExtensionStatus,
    ExtensionUninstall,
];
/// The commands that install.
const V1_INSTALLING: &[Command] = &[RunBundleV1, ExtensionInstall];
/// The commands that remove.
const V1_REMOVING: &[Command] = &[CleanupV1, ExtensionUninstall];

/// Every right.
pub const RIGHTS: &[Right] = rights! {
    V1, Namespace, CORE, ["namespaces"], ["get"], Always;
    V1, Cluster, CRDS, ["customresourcedefinitions"], ["list"], Always;
    V1, Namespace, APPS, ["deployments"], ["list"], Always;
    V1, Namespace, CORE, ["pods", "events"], ["list"], Always;
    V1, Cluster, OLM_V1, ["clusterextensions"], ["get"], Always;
    V1, Cluster, OLM_V1, ["clustercatalogs"], ["list"], Always;
    &[ExtensionStatus], Cluster, OLM_V1, ["clusterextensions"], ["list"], Better("the ClusterExtension must be named");
    &[Diagnose], Cluster, OLM_V1, ["clusterextensions", "clustercatalogs"], ["list"],
        Better("operators of OLM v1 are not included");
    &[RunBundleV1, ExtensionInstall, ExtensionStatus], Namespace, CORE, ["pods", "pods/log"], ["get"],
        Better("causes lack the last lines of a pod's log");
    V1_INSTALLING, Cluster, CRDS, ["customresourcedefinitions"], ["get"], Always;
    V1_INSTALLING, Cluster, OLM_V1, ["clusterextensions"], ["create", "patch"], Always;
    &[RunBundleV1], Cluster, OLM_V1, ["clustercatalogs"], ["get", "create", "patch"], Always;
    &[RunBundleV1], Cluster, OLM_V1, ["clusterextensions", "clustercatalogs"], ["delete"], Repair;
    V1_REMOVING, Cluster, CRDS, ["customresourcedefinitions"], ["get"], Removed;
    V1_REMOVING, Cluster, CRDS, ["customresourcedefinitions"], ["delete"], Repair;
    V1_REMOVING, Namespace, APPS, ["deployments"], ["get"], Removed;
    V1_REMOVING, Cluster, OLM_V1, ["clusterextensions"], ["delete"], Removed;
    &[CleanupV1], Cluster, OLM_V1, ["clustercatalogs"], ["get", "delete"], Removed;
};
