//! A cause of a failure in a cluster: a stable code for scripts; for people the observation, its likely reason and the
//! fix.

use std::fmt;

use olmkit::diagnostics::Severity;
use olmkit::limits;
use serde::Serialize;

use super::names;
use super::object_ref::ObjectRef;

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident $text:literal;)*) => {
        /// The codes. They are part of the command's interface: a code keeps its meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[$doc])* $variant,)*
        }

        impl Code {
            /// Every code, in the order of the documentation.
            pub const ALL: &[Code] = &[$(Code::$variant),*];

            /// The code in its printed form.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Code::$variant => $text,)*
                }
            }
        }
    };
}

codes! {
    /// OLM's custom resource definitions are not in the cluster.
    OlmNotInstalled "olm-not-installed";
    /// OLM is partly missing or not running.
    OlmIncomplete "olm-incomplete";
    /// OLM's objects exist but no controller acts on them.
    OlmIdle "olm-idle";
    /// The credentials lack a required permission.
    Forbidden "forbidden";
    /// The API server does not answer.
    ApiUnreachable "api-unreachable";
    /// The namespace does not exist.
    NamespaceMissing "namespace-missing";
    /// The namespace is being deleted.
    NamespaceTerminating "namespace-terminating";
    /// The namespace has no OperatorGroup.
    OperatorGroupMissing "operator-group-missing";
    /// The namespace has more than one OperatorGroup.
    MultipleOperatorGroups "multiple-operator-groups";
    /// The OperatorGroup's install mode is not supported by the operator, or differs from the requested one.
    OperatorGroupMismatch "operator-group-mismatch";
    /// The OperatorGroup does not list its namespaces yet.
    OperatorGroupNotReady "operator-group-not-ready";
    /// The operator does not support the requested install mode.
    InstallModeUnsupported "install-mode-unsupported";
    /// No install mode can be chosen without a target namespace.
    InstallModeUndecided "install-mode-undecided";
    /// An operator in another OperatorGroup for the same namespaces has the same API.
    ApiConflict "api-conflict";
    /// Another catalog breaks every resolution in the namespace.
    OtherCatalogBroken "other-catalog-broken";
    /// Another Subscription in the namespace cannot be resolved. OLM resolves all of them together.
    OtherSubscriptionBroken "other-subscription-broken";
    /// The Subscription's catalog does not exist.
    CatalogMissing "catalog-missing";
    /// The CatalogSource is not valid.
    CatalogInvalid "catalog-invalid";
    /// OLM cannot connect to the catalog.
    CatalogUnreachable "catalog-unreachable";
    /// The catalog pod cannot pull its image.
    CatalogImagePull "catalog-image-pull";
    /// The catalog pod keeps restarting.
    CatalogPodCrash "catalog-pod-crash";
    /// The catalog has no such package, channel or version.
    PackageNotFound "package-not-found";
    /// OLM finds no operators that satisfy all Subscriptions and dependencies.
    ResolutionUnsatisfiable "resolution-unsatisfiable";
    /// OLM could not start the resolution.
    ResolutionNotStarted "resolution-not-started";
    /// A Subscription for the package exists already.
    SubscriptionExists "subscription-exists";
    /// The package has no Subscription.
    SubscriptionMissing "subscription-missing";
    /// Another version of the package is installed.
    OtherVersionInstalled "other-version-installed";
    /// The package is not installed.
    NotInstalled "not-installed";
    /// The package has a CSV but no Subscription.
    OrphanedCsv "orphaned-csv";
    /// Another operator owns a CRD in the bundle.
    CrdOwnedByOther "crd-owned-by-other";
    /// An object with another owner has a required name.
    NameTaken "name-taken";
    /// A CRD in the bundle exists already and was not created for the package.
    CrdAlreadyExists "crd-already-exists";
    /// The cluster does not serve the API.
    ApiMissing "api-missing";
    /// The Kubernetes version is too old.
    KubernetesTooOld "kubernetes-too-old";
    /// The bundle exceeds a size limit in OLM or the API server.
    BundleTooLarge "bundle-too-large";
    /// The bundle contains a kind that OLM does not install.
    BundleKindUnsupported "bundle-kind-unsupported";
    /// The bundle image cannot be pulled by the node.
    BundleImagePull "bundle-image-pull";
    /// The bundle's content is larger than a ConfigMap.
    UnpackTooLarge "unpack-too-large";
    /// The unpack Job failed otherwise.
    UnpackFailed "unpack-failed";
    /// An InstallPlan waits for approval.
    InstallPlanUnapproved "install-plan-unapproved";
    /// An InstallPlan would also change other operators.
    InstallPlanChangesOthers "install-plan-changes-others";
    /// An InstallPlan failed.
    InstallPlanFailed "install-plan-failed";
    /// Existing custom resources do not fit the new CRD.
    CrdUnsafe "crd-unsafe";
    /// The operator requires a missing CRD or API.
    RequirementApiMissing "requirement-api-missing";
    /// Another CSV requirement is not met.
    RequirementUnmet "requirement-unmet";
    /// OLM stopped installing the CSV.
    CsvFailed "csv-failed";
    /// An upgrade waits, because the operator reports `Upgradeable=False`.
    UpgradeBlocked "upgrade-blocked";
    /// The API server or an admission webhook rejects the operator's pods.
    PodRejected "pod-rejected";
    /// The operator's pod cannot be scheduled.
    PodUnschedulable "pod-unschedulable";
    /// The operator's image cannot be pulled.
    OperatorImagePull "operator-image-pull";
    /// The operator keeps restarting.
    OperatorCrashLoop "operator-crash-loop";
    /// The operator runs but never becomes ready.
    OperatorNotReady "operator-not-ready";
    /// The operator's Deployment is not available for an unknown reason.
    DeploymentUnavailable "deployment-unavailable";
    /// None of a webhook's endpoints answers.
    WebhookUnavailable "webhook-unavailable";
    /// Custom resources are not deleted: nothing removes their finalizers.
    CustomResourceDeletionBlocked "custom-resource-deletion-blocked";
    /// OLM's object is not deleted.
    DeletionBlocked "deletion-blocked";
    /// An aggregated API without a server blocks every namespace deletion.
    ApiServiceUnavailable "api-service-unavailable";
    /// OLM cannot be removed while it manages operators.
    OperatorsInstalled "operators-installed";
    /// OLM v1 does not install such a bundle.
    BundleRejected "bundle-rejected";
    /// The bundle has dependencies. OLM v1 does not resolve them.
    DependencyUnsupported "dependency-unsupported";
    /// A ClusterExtension's configuration does not fit the bundle.
    ConfigurationInvalid "configuration-invalid";
    /// No catalog has an upgrade from the installed version.
    UpgradeNotOffered "upgrade-not-offered";
    /// Several catalogs with the same priority have the package.
    CatalogAmbiguous "catalog-ambiguous";
    /// A ClusterExtension selects any catalog in the cluster.
    SelectorMissing "selector-missing";
    /// The installed version is deprecated.
    Deprecated "deprecated";
    /// A CRD from an earlier installation is still being deleted.
    CrdTerminating "crd-terminating";
    /// The API server rejects an object in the bundle.
    ObjectRejected "object-rejected";
    /// operator-controller fails for another reason and retries.
    ExtensionRetrying "extension-retrying";
    /// The ClusterExtension's objects are not ready yet.
    RolloutUnfinished "rollout-unfinished";
    /// The timeout was reached without a known cause.
    Timeout "timeout";
    /// The command was interrupted.
    Interrupted "interrupted";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A cause of a failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Cause {
    /// Stable code.
    pub code: Code,
    /// Error or warning.
    pub severity: Severity,
    /// True if waiting longer cannot resolve it.
    pub lasting: bool,
    /// The affected object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectRef>,
    /// The observation.
    pub message: String,
    /// The likely reason.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub likely: String,
    /// How to fix it.
    #[serde(rename = "help")]
    pub remedy: String,
    /// Events and log lines as evidence.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
}

impl Cause {
    /// An error that does not go away by waiting.
    pub fn lasting(code: Code, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Cause {
            code,
            severity: Severity::Error,
            lasting: true,
            object: None,
            message: limits::message(message),
            likely: String::new(),
            remedy: limits::message(remedy),
            evidence: Vec::new(),
        }
    }

    /// An error that may be transient.
    pub fn passing(code: Code, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Cause {
            lasting: false,
            ..Cause::lasting(code, message, remedy)
        }
    }

    /// A warning.
    pub fn warning(code: Code, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Cause {
            severity: Severity::Warning,
            lasting: false,
            ..Cause::lasting(code, message, remedy)
        }
    }

    /// Sets the affected object.
    #[must_use]
    pub fn on(mut self, object: ObjectRef) -> Self {
        self.object = Some(object);
        self
    }

    /// Sets the likely reason.
    #[must_use]
    pub fn likely(mut self, text: impl Into<String>) -> Self {
        self.likely = limits::message(text);
        self
    }

    /// Adds evidence.
    #[must_use]
    pub fn evidence(mut self, lines: impl IntoIterator<Item = String>) -> Self {
        self.evidence.extend(lines.into_iter().map(limits::message));
        self
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.severity == Severity::Error {
            "error"
        } else {
            "warning"
        };
        write!(f, "{word}[{}]: ", self.code)?;
        if let Some(object) = &self.object {
            write!(f, "{object}: ")?;
        }
        write!(f, "{}", Lines(&self.message))?;
        if !self.likely.is_empty() {
            write!(f, "\n  likely: {}", Lines(&self.likely))?;
        }
        if !self.remedy.is_empty() {
            write!(f, "\n  help:   {}", Lines(&self.remedy))?;
        }
        for line in &self.evidence {
            write!(f, "\n  seen:   {}", Lines(line))?;
        }
        Ok(())
    }
}

/// An untrusted message with marked continuation lines: none of them looks like olmkit's output, or starts a workflow
/// command.
struct Lines<'t>(&'t str);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, line) in self.0.trim_end().lines().enumerate() {
            let mark = if index > 0 { "\n          | " } else { "" };
            write!(f, "{mark}{line}")?;
        }
        Ok(())
    }
}

/// Errors first, then by code and object. Equal ones once.
pub fn sorted(mut causes: Vec<Cause>) -> Vec<Cause> {
    causes
        .sort_by(|a, b| (a.severity, a.code, &a.object, &a.message).cmp(&(b.severity, b.code, &b.object, &b.message)));
    causes.dedup();
    causes
}

/// Causes of one kind that are listed. A tenant can create thousands of objects, and each package in their namespace
/// would list them all.
pub const MOST_LISTED: usize = 10;

/// Returns true if any cause is an error.
pub fn has_errors(causes: &[Cause]) -> bool {
    causes.iter().any(|cause| cause.severity == Severity::Error)
}

/// The cause for a name that is in use.
pub fn name_taken(object: ObjectRef, author: &str) -> Cause {
    left_alone(object, "this package", author, "install in another namespace with -n")
}

/// The cause for an object with another owner, which is kept. `package` names the package for which it was not created,
/// `instead` describes an alternative.
pub fn left_alone(object: ObjectRef, package: &str, author: &str, instead: &str) -> Cause {
    let namespace = object
        .namespace
        .as_ref()
        .map(|namespace| format!(" -n {namespace}"))
        .unwrap_or_default();
    let remedy = format!(
        "{instead}; or, if it is unused, delete it: kubectl{namespace} delete {} {}",
        names::word(&object.kind.resource()),
        names::word(&object.name)
    );
    Cause::lasting(
        Code::NameTaken,
        format!("exists and was not created by olmkit for {package}: {author}; it is not changed"),
        remedy,
    )
    .on(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Conditions, events and logs contain untrusted messages.
    #[test]
    fn long_texts_are_shortened() {
        let long = "x".repeat(1 << 20);
        let cause = Cause::lasting(
            Code::CsvFailed,
            format!("install failed: {long}"),
            format!("look at {long}"),
        )
        .likely(format!("the name {long}"))
        .evidence([long.clone()]);
        let (text, json) = (cause.to_string(), serde_json::to_string(&cause).unwrap());
        assert!(
            text.starts_with("error[csv-failed]: install failed: xxx"),
            "{text:.100}"
        );
        assert!(
            text.len() < 5_000 && json.len() < 5_000,
            "{} {}",
            text.len(),
            json.len()
        );
    }

    #[test]
    fn further_lines_of_a_text_are_marked() {
        let cause = Cause::lasting(Code::CsvFailed, "failed:\n  help:   rm -rf /\n::error::no\n", "look")
            .evidence(["a\nb".into()]);
        let shown = cause.to_string();
        assert_eq!(
            shown,
            "error[csv-failed]: failed:\n          |   help:   rm -rf /\n          | ::error::no\n  help:   look\n  seen:   a\n          | b"
        );
    }

    #[test]
    fn every_code_is_documented() {
        let guide = include_str!("../../../../docs/reference/causes.md");
        let missing: Vec<&str> = Code::ALL
            .iter()
            .map(|code| code.as_str())
            .filter(|code| !guide.contains(&format!("| `{code}` |")))
            .collect();
        assert_eq!(missing, Vec::<&str>::new());
    }
}
