//! Explains why a ClusterExtension is not installed, not upgraded or not running, and how to fix it: a pure function of
//! the observation.
//!
//! operator-controller reports almost everything with one reason, `Retrying`, and a message. The messages here are
//! those of release 1.11.

use serde_json::Value;

use super::conditions::{Condition, condition};
use super::pulls;
use super::seen::ExtensionState;
use crate::base::cause::{Cause, Code, has_errors, sorted};
use crate::base::json::text;
use crate::base::object_ref::ObjectRef;
use crate::base::{kinds, names};
use crate::kube::conditions::Conditions as _;
use crate::kube::conditions::all;
use crate::observe::pods::of_deployment;

/// Everything that is wrong with a ClusterExtension that exists.
pub(super) fn causes(seen: &ExtensionState) -> Vec<Cause> {
    let Some(extension) = &seen.extension else {
        return Vec::new();
    };
    let mut causes = Vec::new();
    if extension.pointer("/metadata/deletionTimestamp").is_some() {
        causes.push(deleting(extension, seen));
        return causes;
    }
    let catalogs = of_selection(extension, seen);
    // For a catalog that is not served, OLM v1 also reports that it cannot be queried, or has no matching package.
    let is_said =
        |cause: &Cause| has_errors(&catalogs) && matches!(cause.code, Code::CatalogUnreachable | Code::PackageNotFound);
    causes.extend(of_progress(extension, seen).filter(|cause| !is_said(cause)));
    causes.extend(catalogs);
    causes.extend(deprecations(extension, seen));
    let deployments = &seen.place.deployments;
    causes.extend(deployments.iter().flat_map(|found| of_deployment(found, &seen.place)));
    sorted(causes)
}

fn deleting(extension: &Value, seen: &ExtensionState) -> Cause {
    let finalizers = extension.pointer("/metadata/finalizers").and_then(Value::as_array);
    let finalizers: Vec<&str> = finalizers.into_iter().flatten().filter_map(Value::as_str).collect();
    Cause::passing(
        Code::DeletionBlocked,
        format!("is being deleted; finalizers: {}", finalizers.join(", ")),
        "operator-controller removes its finalizers: check that it runs (kubectl get deployments -A -l app.kubernetes.io/name=operator-controller)",
    )
    .on(seen.object())
}

fn of_progress(extension: &Value, seen: &ExtensionState) -> Option<Cause> {
    let Some(progressing) = condition(extension, "Progressing") else {
        return Some(idle("operator-controller").on(seen.object()));
    };
    if !progressing.is_current {
        return Some(idle("operator-controller").on(seen.object()));
    }
    let cause = match (progressing.status, progressing.reason) {
        ("True", "Succeeded") => return None,
        ("True", "RollingOut") => rolling_out(&progressing, seen),
        ("False", "InvalidConfiguration") => configuration(&progressing, seen),
        ("False", "ProgressDeadlineExceeded") => Cause::lasting(
            Code::RolloutUnfinished,
            said(&progressing),
            format!(
                "inspect the objects that are not ready: kubectl describe clusterobjectsets.olm.operatorframework.io -l olm.operatorframework.io/owner-name={}",
                seen.name
            ),
        ),
        ("False", _) => Cause::lasting(
            Code::ExtensionRetrying,
            said(&progressing),
            "operator-controller does not retry until the ClusterExtension is changed",
        ),
        _ => retrying(&progressing, seen),
    };
    Some(cause.on(seen.object()))
}

/// An object that a controller has not reconciled yet.
fn idle(controller: &str) -> Cause {
    Cause::passing(
        Code::OlmIdle,
        format!("{controller} has not reconciled it yet"),
        format!("check that {controller} runs: kubectl get pods -A -l app.kubernetes.io/name={controller}"),
    )
}

fn said(condition: &Condition<'_>) -> String {
    match condition.message {
        "" => format!("{} without a message", condition.reason),
        message => message.to_owned(),
    }
}

/// The experimental manifests wait until each object of a phase is ready.
fn rolling_out(progressing: &Condition<'_>, seen: &ExtensionState) -> Cause {
    Cause::passing(
        Code::RolloutUnfinished,
        said(progressing),
        format!(
            "see which objects are not ready: kubectl get clusterobjectsets.olm.operatorframework.io -l olm.operatorframework.io/owner-name={} -o yaml",
            seen.name
        ),
    )
    .likely("a Deployment, a CRD, or a Certificate of cert-manager is not ready; without cert-manager's controller it never will be")
}

fn configuration(progressing: &Condition<'_>, seen: &ExtensionState) -> Cause {
    let message = progressing.message;
    let namespace = &seen.place.namespace;
    let remedy = if message.contains("required field \"watchNamespace\" is missing") {
        "the operator watches one namespace: set spec.config.inline.watchNamespace (olmkit: --install-mode OwnNamespace or SingleNamespace=NAMESPACE)".to_owned()
    } else if message.contains("must be different from") {
        format!("the operator watches another namespace than its own, {namespace}: set watchNamespace to that one")
    } else if message.contains("must be") && message.contains("watchNamespace") {
        format!("the operator watches its own namespace: set spec.config.inline.watchNamespace to {namespace}")
    } else if message.contains("unknown field") {
        "remove the field from spec.config.inline; OLM v1 supports watchNamespace and deploymentConfig".to_owned()
    } else {
        "correct spec.config.inline of the ClusterExtension; docs/guides/olm-v1.md describes its fields".to_owned()
    };
    Cause::lasting(Code::ConfigurationInvalid, said(progressing), remedy)
}

/// A failure for which operator-controller only reports that it retries.
fn retrying(progressing: &Condition<'_>, seen: &ExtensionState) -> Cause {
    let message = progressing.message;
    let has = |text: &str| message.contains(text);
    let name = names::word(&seen.name);
    let known = |code, likely: &str, remedy: String| Cause::lasting(code, said(progressing), remedy).likely(likely);
    if has("in multiple catalogs with the same priority") {
        return known(
            Code::CatalogAmbiguous,
            "OLM v1 chooses between catalogs only by their priority",
            "name the catalog in spec.source.catalog.selector, or give one ClusterCatalog a higher spec.priority"
                .into(),
        );
    }
    if has("no bundles found for package") {
        return not_found(progressing, seen);
    }
    if has("which is currently not supported") && has("declared via property") {
        return known(
            Code::DependencyUnsupported,
            "OLM v1 does not resolve dependencies, and does not install a bundle that has any",
            "remove the dependency from the bundle (rule V1-2), or install it with OLM v0".into(),
        );
    }
    if has("install mode") && has("unsupported bundle") {
        return known(
            Code::InstallModeUnsupported,
            "with its standard manifests, OLM v1 installs only operators that watch all namespaces",
            "install it through OLM v0, or use the experimental manifests of OLM v1 with spec.config.inline.watchNamespace; OLM v1 does not install operators for several namespaces".into(),
        );
    }
    if has("unsupported bundle") || has("duplicate object found in phases") {
        return known(
            Code::BundleRejected,
            "",
            "fix the bundle: olmkit bundle validate BUNDLE --profile olmv1 shows the position; or install it with OLM v0".into(),
        );
    }
    if has("validating upgrade for CRD") {
        return known(
            Code::CrdUnsafe,
            "existing custom resources may not fit the new CRD",
            format!(
                "revert the changes or add an API version (olmkit extension diff {name} shows each change with its line); if you are sure that all custom resources stay valid, pass --crd-upgrade-safety none"
            ),
        );
    }
    if has("Only one reference can have Controller set to true") {
        let terminating = seen
            .crds
            .iter()
            .find(|crd| crd.pointer("/metadata/deletionTimestamp").is_some());
        let crd = terminating.map_or("NAME", |crd| text(crd, "/metadata/name"));
        return Cause::passing(
            Code::CrdTerminating,
            said(progressing),
            format!("delete the remaining custom resources (kubectl get {} -A); if a finalizer blocks one, restart its operator or remove the finalizer", names::word(crd)),
        )
        .likely("an earlier installation was deleted while custom resources had finalizers, which block the deletion of their CRD");
    }
    if has("cannot be managed by operator-controller") || has("revision object collisions") {
        return known(
            Code::CrdOwnedByOther,
            "another ClusterExtension, OLM v0, Helm or kubectl made the object; OLM v1 does not adopt existing objects",
            format!(
                "find its owner (kubectl get crd NAME -o yaml --show-managed-fields); remove it there, or uninstall this one: olmkit extension uninstall {name}"
            ),
        );
    }
    if let Some(kind) = between(message, "no matches for kind \"", "\"") {
        let of_certificates = matches!(kind, "Certificate" | "Issuer");
        let remedy = if of_certificates {
            "install cert-manager, which OLM v1 uses for webhook certificates".to_owned()
        } else {
            format!("install the provider of {kind}, or a version of the operator that does not need it")
        };
        return known(
            Code::RequirementApiMissing,
            "the cluster does not serve an API that the bundle uses",
            remedy,
        );
    }
    if let Some(missing) = between(message, "namespaces \"", "\" not found") {
        return known(
            Code::NamespaceMissing,
            "",
            format!("kubectl create namespace {}", names::word(missing)),
        );
    }
    if pulls::is_about(message) {
        let (likely, remedy) = pulls::explain(message);
        return known(Code::BundleImagePull, likely, remedy);
    }
    if has("is not being served") || has("from catalog") || has("error walking catalogs") {
        return Cause::passing(
            Code::CatalogUnreachable,
            said(progressing),
            "check the ClusterCatalogs: olmkit diagnose",
        );
    }
    if has("failed calling webhook") {
        return known(
            Code::WebhookUnavailable,
            "",
            "find the webhook's configuration and restore its server: kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations".into(),
        );
    }
    if has(" is invalid: ") || has("denied the request") || has("is forbidden") {
        return known(
            Code::ObjectRejected,
            "",
            "the API server rejects an object of the bundle: olmkit bundle validate BUNDLE --profile olmv1 may show the position (V1-15)".into(),
        );
    }
    Cause::passing(
        Code::ExtensionRetrying,
        said(progressing),
        format!("operator-controller retries; see its log. olmkit extension status {name} shows its progress"),
    )
}

fn between<'m>(message: &'m str, before: &str, after: &str) -> Option<&'m str> {
    let (_, rest) = message.split_once(before)?;
    rest.split_once(after).map(|(found, _)| found)
}

/// No bundle to choose: no catalog, no such package or version, or no upgrade edge.
fn not_found(progressing: &Condition<'_>, seen: &ExtensionState) -> Cause {
    let package = seen.package();
    if progressing
        .message
        .contains("error upgrading from currently installed version")
    {
        return Cause::lasting(
            Code::UpgradeNotOffered,
            said(progressing),
            format!(
                "add an upgrade edge (replaces, skips or skipRange) to the catalog; for a downgrade, or an upgrade without an edge: --policy SelfCertified. olmkit extension diff {} shows the candidates",
                names::word(&seen.name)
            ),
        )
        .likely("no catalog has the requested version, or no upgrade edge leads to it from the installed version");
    }
    let serving: Vec<&str> = seen
        .selected()
        .filter(|catalog| catalog.is_true("Serving"))
        .map(|catalog| text(catalog, "/metadata/name"))
        .collect();
    let likely = match (seen.selected().count(), serving.as_slice()) {
        (0, _) => "no ClusterCatalog has the labels in spec.source.catalog.selector".to_owned(),
        (_, []) => "none of the selected ClusterCatalogs is served yet".to_owned(),
        (_, names) => format!("looked for in {}", names.join(", ")),
    };
    Cause::lasting(
        Code::PackageNotFound,
        said(progressing),
        format!(
            "check package, version and channels against the catalog: olmkit catalog resolve --olmv1 {} IMAGE-OF-THE-CATALOG",
            names::word(package)
        ),
    )
    .likely(likely)
}

/// The catalogs that the extension selects, and their health.
fn of_selection(extension: &Value, seen: &ExtensionState) -> Vec<Cause> {
    let mut causes = Vec::new();
    let has_selector = extension
        .pointer("/spec/source/catalog/selector")
        .and_then(Value::as_object)
        .is_some_and(|selector| !selector.is_empty());
    let selected: Vec<&Value> = seen.selected().collect();
    if !has_selector && seen.catalogs.len() > 1 {
        causes.push(
            Cause::warning(
                Code::SelectorMissing,
                "uses any catalog of the cluster: if its catalog is deleted, OLM v1 searches the package in the others, fails, and repairs nothing",
                "name the catalog: spec.source.catalog.selector.matchLabels, olm.operatorframework.io/metadata.name: CATALOG",
            )
            .on(seen.object()),
        );
    }
    if selected.is_empty() && seen.installed().is_some() {
        causes.push(
            Cause::warning(
                Code::CatalogMissing,
                "no ClusterCatalog has the labels of its selector: the installed version is kept and not upgraded",
                "create the ClusterCatalog again, or change the selector",
            )
            .on(seen.object()),
        );
    }
    causes.extend(selected.into_iter().flat_map(of_catalog));
    causes
}

/// Causes of a ClusterCatalog.
pub(super) fn of_catalog(catalog: &Value) -> Vec<Cause> {
    let name = text(catalog, "/metadata/name");
    let object = ObjectRef::cluster(kinds::cluster_catalog(), name);
    if text(catalog, "/spec/availabilityMode") == "Unavailable" {
        let remedy = format!(
            "kubectl patch clustercatalogs.olm.operatorframework.io {name} --type=merge -p '{{\"spec\":{{\"availabilityMode\":\"Available\"}}}}'"
        );
        let said = "is switched off (availabilityMode Unavailable)";
        return vec![Cause::warning(Code::CatalogUnreachable, said, remedy).on(object)];
    }
    let mut causes = Vec::new();
    let label = catalog
        .pointer("/metadata/labels")
        .and_then(|labels| labels.get(super::objects::METADATA_NAME));
    if label.and_then(Value::as_str) != Some(name) {
        let remedy = format!(
            "kubectl label clustercatalogs.olm.operatorframework.io {name} {}={name}",
            super::objects::METADATA_NAME
        );
        let said = "lacks the label with its name, which catalogd's webhook sets: no selector by name finds it";
        causes.push(Cause::warning(Code::CatalogInvalid, said, remedy).on(object.clone()));
    }
    let Some(progressing) = condition(catalog, "Progressing").filter(|found| found.is_current) else {
        causes.push(idle("catalogd").on(object));
        return causes;
    };
    if progressing.says("True", "Succeeded") {
        return causes;
    }
    let message = progressing.message;
    let is_content = ["missing the required label", "error storing fbc", "error parsing"]
        .iter()
        .any(|text| message.contains(text));
    let cause = if is_content {
        Cause::lasting(
            Code::CatalogInvalid,
            said(&progressing),
            "the image must contain a file-based catalog, and a label with its directory: olmkit image build catalog builds one, olmkit catalog validate checks it",
        )
    } else {
        let (likely, remedy) = pulls::explain(message);
        Cause::lasting(Code::CatalogImagePull, said(&progressing), remedy).likely(likely)
    };
    causes.push(cause.on(object));
    causes
}

fn deprecations(extension: &Value, seen: &ExtensionState) -> Vec<Cause> {
    all(extension)
        .iter()
        .filter(|found| text(found, "/status") == "True")
        .filter(|found| {
            matches!(
                text(found, "/type"),
                "PackageDeprecated" | "ChannelDeprecated" | "BundleDeprecated"
            )
        })
        .map(|found| {
            let message = format!("{}: {}", text(found, "/type"), text(found, "/message"));
            let remedy = "switch to a version, a channel or a package that is not deprecated";
            Cause::warning(Code::Deprecated, message, remedy).on(seen.object())
        })
        .collect()
}

#[cfg(test)]
#[path = "explain_tests.rs"]
mod tests;
