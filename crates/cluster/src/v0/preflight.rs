//! The checks before anything is created: reports all problems together, each with a fix.

use std::collections::{BTreeMap, BTreeSet};

use semver::Version;
use serde_json::Value;

use super::limits;
use crate::base::cause::{Cause, Code, MOST_LISTED, sorted};
use crate::base::install_mode::{self, InstallMode};
use crate::base::object_ref::ObjectRef;
use crate::base::{kinds, names};
use crate::bundle::facts::BundleFacts;
use crate::observe::health;
use crate::observe::observation::Observation;
use olmkit::bundle::kinds::{self as bundle_kinds, Program, Release};
use olmkit::types::{CatalogSource, DeployedCsv, OperatorGroup};

/// Options of the checks.
#[derive(Clone, Debug, Default)]
pub struct PreflightOptions {
    /// `--install-mode`.
    pub install_mode: Option<InstallMode>,
    /// True if the catalog contains the manifests inline instead of referring to a bundle image.
    pub inline: bool,
}

/// Checks a bundle against a cluster.
pub fn check(bundle: &BundleFacts, options: &PreflightOptions, seen: &Observation) -> Vec<Cause> {
    let mut causes = place(seen);
    if !causes
        .iter()
        .any(|cause| matches!(cause.code, Code::OlmNotInstalled | Code::NamespaceMissing))
    {
        causes.extend(groups(&bundle.csv, options, seen));
        causes.extend(catalogs_beside(seen, &names::catalog_source(&bundle.package)));
        causes.extend(subscriptions_beside(seen, &bundle.package));
        causes.extend(owners(bundle, seen));
        causes.extend(orphan(bundle, seen));
    }
    causes.extend(apis(bundle, seen));
    causes.extend(limits::check(bundle, options.inline));
    sorted(causes)
}

/// OLM and the namespace.
pub fn place(seen: &Observation) -> Vec<Cause> {
    let mut causes = health::olm(&seen.olm);
    let namespace = || ObjectRef::cluster(kinds::namespace(), &seen.namespace);
    match seen.namespace_phase.as_deref() {
        None => causes.push(
            Cause::lasting(
                Code::NamespaceMissing,
                "does not exist",
                format!("kubectl create namespace {}", names::word(&seen.namespace)),
            )
            .on(namespace()),
        ),
        Some("Terminating") => causes.push(
            Cause::lasting(
                Code::NamespaceTerminating,
                "is being deleted; nothing can be created in it",
                "wait until it is deleted and create it again, or choose another namespace with -n",
            )
            .on(namespace()),
        ),
        Some(_) => {}
    }
    causes.extend(seen.dead_api_services.iter().map(|name| {
        Cause::warning(
            Code::ApiServiceUnavailable,
            "no server answers for this aggregated API; until one does, namespace deletions do not finish",
            format!(
                "restore its server, or remove it: kubectl delete apiservices.apiregistration.k8s.io {}",
                names::word(name)
            ),
        )
        .on(ObjectRef::cluster(kinds::api_service(), name))
    }));
    causes
}

/// Install modes and OperatorGroups.
fn groups(csv: &DeployedCsv, options: &PreflightOptions, seen: &Observation) -> Vec<Cause> {
    let supported = install_mode::supported(&csv.spec.install_modes);
    let mut causes = Vec::new();
    if let Some(mode) = &options.install_mode {
        let targets = mode.targets(&seen.namespace);
        if matches!(mode, InstallMode::SingleNamespace(name) if *name == seen.namespace) {
            causes.push(Cause::lasting(
                Code::InstallModeUnsupported,
                format!("SingleNamespace={} is the operator's own namespace", seen.namespace),
                "pass --install-mode OwnNamespace",
            ));
        } else if !install_mode::unsupported(&csv.spec.install_modes, &targets, &seen.namespace).is_empty() {
            causes.push(mode_unsupported(csv, &mode.to_string(), &supported));
        }
    }
    match seen.operator_groups.as_slice() {
        [] if options.install_mode.is_none() => causes.extend(undecided(csv, &supported)),
        [] => {}
        [group] => causes.extend(group_fits(group, csv, options, seen, &supported)),
        several => causes.push(several_groups(several, &seen.namespace)),
    }
    causes
}

/// The cause for a namespace with more than one OperatorGroup.
pub(crate) fn several_groups(groups: &[OperatorGroup], namespace: &str) -> Cause {
    let found: Vec<&str> = groups
        .iter()
        .filter_map(|group| group.metadata.name.as_deref())
        .collect();
    Cause::lasting(
        Code::MultipleOperatorGroups,
        format!(
            "has {} OperatorGroups ({}); OLM resolves no Subscription in such a namespace and reports no error",
            found.len(),
            found.join(", ")
        ),
        format!(
            "keep one of them: kubectl -n {namespace} delete operatorgroups.{} {}",
            kinds::OLM_GROUP,
            found.last().copied().unwrap_or_default()
        ),
    )
    .on(ObjectRef::cluster(kinds::namespace(), namespace))
    .likely("a group was created by hand in addition to one that a tool had created")
}

fn mode_unsupported(csv: &DeployedCsv, wanted: &str, supported: &[&str]) -> Cause {
    let remedy = match supported.first() {
        None => "set at least one of spec.installModes in the CSV to supported: true".to_owned(),
        Some(first) => format!(
            "pass --install-mode {}; supported are: {}",
            example(first),
            supported.join(", ")
        ),
    };
    Cause::lasting(
        Code::InstallModeUnsupported,
        format!("{} does not support install mode {wanted}", csv.name()),
        remedy,
    )
}

fn example(mode: &str) -> String {
    match mode {
        "SingleNamespace" => "SingleNamespace=NAMESPACE".into(),
        "MultiNamespace" => "MultiNamespace=NAMESPACE,NAMESPACE".into(),
        other => other.to_owned(),
    }
}

fn undecided(csv: &DeployedCsv, supported: &[&str]) -> Option<Cause> {
    match supported.first() {
        None => Some(mode_unsupported(csv, "of any kind", supported)),
        Some(first @ (&"SingleNamespace" | &"MultiNamespace")) => Some(Cause::lasting(
            Code::InstallModeUndecided,
            format!(
                "{} can only watch namespaces other than its own, and none is specified",
                csv.name()
            ),
            format!("pass --install-mode {}", example(first)),
        )),
        Some(_) => None,
    }
}

fn group_fits(
    group: &OperatorGroup,
    csv: &DeployedCsv,
    options: &PreflightOptions,
    seen: &Observation,
    supported: &[&str],
) -> Option<Cause> {
    let name = group.metadata.name.as_deref().unwrap_or_default();
    let object = ObjectRef::namespaced(kinds::operator_group(), &seen.namespace, name);
    let targets = install_mode::group_targets(group)?;
    let shown = if targets.is_empty() {
        "all namespaces".to_owned()
    } else {
        targets.iter().cloned().collect::<Vec<_>>().join(", ")
    };
    if let Some(mode) = &options.install_mode
        && mode.targets(&seen.namespace) != targets
    {
        return Some(
                Cause::lasting(
                    Code::OperatorGroupMismatch,
                    format!("targets {shown}, --install-mode {mode} requires other targets; a namespace has one OperatorGroup for all its operators"),
                    format!("omit --install-mode to use the existing group, choose another namespace with -n, or delete the group: kubectl -n {} delete operatorgroups.{} {name}", seen.namespace, kinds::OLM_GROUP),
                )
                .on(object),
            );
    }
    let missing = install_mode::unsupported(&csv.spec.install_modes, &targets, &seen.namespace);
    (!missing.is_empty()).then(|| {
        Cause::lasting(
            Code::OperatorGroupMismatch,
            format!("targets {shown}, which is install mode {}; {} supports {}", missing.join(" and "), csv.name(), if supported.is_empty() { "none".into() } else { supported.join(", ") }),
            format!("choose another namespace with -n, or delete the group and run again: kubectl -n {} delete operatorgroups.{} {name}", seen.namespace, kinds::OLM_GROUP),
        )
        .on(object)
    })
}

/// Reachable catalogs that break every resolution in the namespace.
pub(crate) fn catalogs_beside(seen: &Observation, own: &str) -> Vec<Cause> {
    let excluded = seen.operator_groups.iter().any(|group| {
        let annotations = group.metadata.annotations.as_ref();
        annotations
            .and_then(|found| found.get("olm.operatorframework.io/exclude-global-namespace-resolution"))
            .is_some_and(|value| value == "true")
    });
    let in_reach = |catalog: &&CatalogSource| {
        let namespace = catalog.metadata.namespace.as_deref().unwrap_or_default();
        let global = seen.olm.global_namespace.as_deref() == Some(namespace);
        namespace == seen.namespace || (global && !excluded)
    };
    let broken: Vec<&CatalogSource> = seen
        .catalogs
        .iter()
        .filter(in_reach)
        .filter(|catalog| {
            !(catalog.metadata.name.as_deref() == Some(own)
                && catalog.metadata.namespace.as_deref() == Some(&seen.namespace))
        })
        .filter(|catalog| {
            matches!(catalog.connection(), "TRANSIENT_FAILURE" | "CONNECTING" | "SHUTDOWN")
                || !catalog.status.reason.is_empty()
        })
        .collect();
    let mut causes: Vec<Cause> = broken
        .iter()
        .take(MOST_LISTED)
        .map(|catalog| {
            let (namespace, name) = (catalog.metadata.namespace.clone().unwrap_or_default(), catalog.metadata.name.clone().unwrap_or_default());
            let state = if catalog.connection().is_empty() { &catalog.status.reason } else { catalog.connection() };
            let mut remedy = format!("fix it (olmkit diagnose -n {namespace}) or delete it: kubectl -n {namespace} delete catalogsources.{} {name}", kinds::OLM_GROUP);
            if namespace != seen.namespace {
                remedy.push_str("; or keep global catalogs out of this namespace: annotate its OperatorGroup with olm.operatorframework.io/exclude-global-namespace-resolution=true");
            }
            let cause = Cause::lasting(
                Code::OtherCatalogBroken,
                format!("is not usable ({state}); while a reachable catalog fails, OLM installs nothing in this namespace"),
                remedy,
            )
            .on(ObjectRef::namespaced(kinds::catalog_source(), &namespace, &name));
            // A connection attempt may be about to succeed, and a new pod takes a while.
            if catalog.connection() == "CONNECTING" || catalog.connection() == "TRANSIENT_FAILURE" && is_new(catalog) { Cause { severity: olmkit::diagnostics::Severity::Warning, lasting: false, ..cause } } else { cause }
        })
        .collect();
    if let (Some(last), more @ 1..) = (causes.last_mut(), broken.len().saturating_sub(MOST_LISTED)) {
        last.message = format!("{}; {more} more catalogs are not usable", last.message);
    }
    causes
}

/// Returns true if a catalog was created so recently that its pod may still be starting.
fn is_new(catalog: &CatalogSource) -> bool {
    const STARTING: jiff::SignedDuration = jiff::SignedDuration::from_secs(60);
    let created = catalog.metadata.creation_timestamp.as_ref();
    !catalog.spec.image.is_empty()
        && created.is_some_and(|created| jiff::Timestamp::now().duration_since(created.0) < STARTING)
}

/// Subscriptions of other packages whose catalog was deleted: OLM resolves all Subscriptions of a namespace or none.
pub(crate) fn subscriptions_beside(seen: &Observation, package: &str) -> Vec<Cause> {
    seen.subscriptions
        .iter()
        .filter(|found| {
            found.spec.name != package && seen.catalog(&found.spec.source_namespace, &found.spec.source).is_none()
        })
        .map(|found| {
            subscription_beside(
                found.metadata.name.as_deref().unwrap_or_default(),
                &seen.namespace,
                &format!(
                    "its CatalogSource {}/{} does not exist",
                    found.spec.source_namespace, found.spec.source
                ),
            )
        })
        .collect()
}

/// The cause for one such Subscription.
pub(crate) fn subscription_beside(name: &str, namespace: &str, why: &str) -> Cause {
    Cause::lasting(
        Code::OtherSubscriptionBroken,
        format!("cannot be resolved: {why}; OLM resolves all Subscriptions of a namespace together, so nothing is installed or upgraded there"),
        format!("restore its catalog, or delete it (the installed operator keeps running): kubectl -n {namespace} delete subscriptions.{} {}", kinds::OLM_GROUP, names::word(name)),
    )
    .on(ObjectRef::namespaced(kinds::subscription(), namespace, name))
}

/// CRDs of the bundle that another operator owns.
fn owners(bundle: &BundleFacts, seen: &Observation) -> Vec<Cause> {
    let owned: BTreeSet<&str> = bundle
        .csv
        .spec
        .customresourcedefinitions
        .owned
        .iter()
        .map(|crd| crd.name.as_str())
        .collect();
    let mut causes = Vec::new();
    for other in &seen.all_csvs {
        let same_package = other.namespace() == seen.namespace
            && (other.name() == bundle.csv_name()
                || other.name() == bundle.csv.spec.replaces
                || other.package().is_some_and(|package| package == bundle.package)
                || other.metadata.labels.as_ref().is_some_and(|labels| {
                    labels.contains_key(&names::component_label(&bundle.package, &seen.namespace))
                })
                || seen
                    .subscriptions_for(&bundle.package)
                    .any(|found| found.status.installed_csv == other.name()));
        if same_package || other.status.phase == "Deleting" {
            continue;
        }
        for crd in other
            .spec
            .customresourcedefinitions
            .owned
            .iter()
            .filter(|crd| owned.contains(crd.name.as_str()))
        {
            let (namespace, name) = (other.namespace(), other.name());
            let object = ObjectRef::cluster(kinds::custom_resource_definition(), &crd.name);
            let remedy = format!(
                "uninstall the other operator first (olmkit cleanup {} -n {namespace}), or install the bundle in a namespace with other targets",
                names::word(&other.package().unwrap_or_else(|| name.to_owned()))
            );
            let message = format!("is owned by ClusterServiceVersion {namespace}/{name}");
            causes.push(if namespace == seen.namespace {
                Cause::lasting(Code::CrdOwnedByOther, message, remedy).on(object)
            } else {
                Cause::warning(Code::CrdOwnedByOther, format!("{message}; if their OperatorGroups overlap, both reconcile the same custom resources, and either can change the CRD"), remedy).on(object)
            });
        }
    }
    causes
}

/// A CSV of the package without a Subscription: OLM then does not install another version.
fn orphan(bundle: &BundleFacts, seen: &Observation) -> Vec<Cause> {
    if seen.subscriptions_for(&bundle.package).next().is_some() {
        return Vec::new();
    }
    seen.csvs
        .iter()
        .filter(|csv| !csv.is_copied() && csv.released().is_none())
        .filter(|csv| csv.name() == bundle.csv_name() || csv.package().is_some_and(|package| package == bundle.package))
        .map(|csv| {
            Cause::lasting(
                Code::OrphanedCsv,
                format!(
                    "belongs to package {} but no Subscription refers to it; OLM does not install another version next to it",
                    bundle.package
                ),
                format!(
                    "olmkit cleanup {} -n {} removes it with its objects",
                    bundle.package, seen.namespace
                ),
            )
            .on(ObjectRef::namespaced(
                kinds::cluster_service_version(),
                &seen.namespace,
                csv.name(),
            ))
            .likely("its Subscription was deleted without it")
        })
        .collect()
}

/// APIs that the operator requires in the cluster.
fn apis(bundle: &BundleFacts, seen: &Observation) -> Vec<Cause> {
    let mut causes = Vec::new();
    let brought: BTreeMap<&str, &Value> = bundle.crds().collect();
    for required in &bundle.csv.spec.customresourcedefinitions.required {
        let served = seen
            .crds
            .get(&required.name)
            .is_some_and(|crd| crd.served.contains(&required.version));
        if served || brought.contains_key(required.name.as_str()) {
            continue;
        }
        causes.push(
            Cause::warning(
                Code::RequirementApiMissing,
                format!("{} requires {} {} and the cluster does not have it; OLM searches the reachable catalogs for an operator that provides it", bundle.csv_name(), required.kind, required.version),
                format!("install a provider of {} first if no reachable catalog has one", required.name),
            )
            .on(ObjectRef::cluster(kinds::custom_resource_definition(), &required.name)),
        );
    }
    let release = olm_release(seen.olm.version.as_deref());
    for (api_version, kind) in bundle.kinds() {
        if !bundle_kinds::is_accepted(&kind, Program::OlmV0, release) {
            causes.push(Cause::lasting(
                Code::BundleKindUnsupported,
                format!(
                    "the bundle contains a {kind} ({api_version}); OLM does not install that kind and fails the plan"
                ),
                "remove it from manifests/; the operator can create it at run time",
            ));
        } else if kinds::known(&api_version, &kind).is_none()
            && !seen.served.contains(&(api_version.clone(), kind.clone()))
        {
            causes.push(Cause::lasting(
                Code::ApiMissing,
                format!("the bundle contains a {kind} ({api_version}) and the cluster does not serve that API"),
                format!("install the provider of {api_version}, or remove the {kind} from the bundle"),
            ));
        }
    }
    causes.extend(kubernetes_version(&bundle.csv, &seen.server_version));
    causes
}

/// The release of the cluster's OLM. Versions that distributions number differently (OpenShift: 0.0.0 and a suffix) count as the newest.
fn olm_release(version: Option<&str>) -> Release {
    let version = version.and_then(|version| Version::parse(version.trim_start_matches('v')).ok());
    match version {
        Some(version) if (version.major, version.minor, version.patch) != (0, 0, 0) => {
            (version.major, version.minor, version.patch)
        }
        _ => bundle_kinds::NEWEST_OLM_V0,
    }
}

fn kubernetes_version(csv: &DeployedCsv, server: &str) -> Option<Cause> {
    let parse = |text: &str| {
        Version::parse(text.trim_start_matches('v'))
            .ok()
            .map(|version| (version.major, version.minor, version.patch))
    };
    let (least, have) = (parse(&csv.spec.min_kube_version)?, parse(server)?);
    (have < least).then(|| {
        Cause::lasting(
            Code::KubernetesTooOld,
            format!(
                "{} requires Kubernetes {} or later, the cluster runs {server}",
                csv.name(),
                csv.spec.min_kube_version
            ),
            "use a newer cluster, or lower spec.minKubeVersion if the operator really runs there",
        )
    })
}
