//! What is wrong in a cluster, told as a cause: a stable code for programs, and for people what was seen, why it is likely
//! so, and the way out.

use std::fmt;

use serde::Serialize;

use super::client::ObjectRef;

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident $text:literal;)*) => {
        /// The codes. They are part of the command's interface: a code keeps its meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $($(#[$doc])* $variant,)*
        }

        impl Code {
            /// Every code, in the order of the documentation.
            pub const ALL: &[Code] = &[$(Code::$variant),*];

            /// The code as it is printed.
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
    OlmAbsent "olm-absent";
    /// Part of OLM is missing or not running.
    OlmIncomplete "olm-incomplete";
    /// OLM's objects are there but nobody acts on them.
    OlmIdle "olm-idle";
    /// The account may not do what the flow needs.
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
    OperatorGroupsSeveral "operator-groups-several";
    /// The OperatorGroup asks for an install mode that the operator lacks, or another than the one wanted.
    OperatorGroupMismatch "operator-group-mismatch";
    /// The OperatorGroup does not list its namespaces yet.
    OperatorGroupNotReady "operator-group-not-ready";
    /// The install mode that was asked for is not supported by the operator.
    InstallModeUnsupported "install-mode-unsupported";
    /// No install mode can be chosen without being told a namespace.
    InstallModeUndecided "install-mode-undecided";
    /// Another OperatorGroup that reaches the same namespaces has an operator with the same API.
    ApiProvidedElsewhere "api-provided-elsewhere";
    /// A catalog that the Subscription does not even use makes every resolution of the namespace fail.
    CatalogBesideBroken "catalog-beside-broken";
    /// Another Subscription of the namespace cannot be resolved, and OLM resolves all of a namespace together.
    SubscriptionBesideBroken "subscription-beside-broken";
    /// The Subscription's catalog does not exist.
    CatalogMissing "catalog-missing";
    /// The CatalogSource is not valid.
    CatalogInvalid "catalog-invalid";
    /// OLM cannot connect to the catalog.
    CatalogUnreachable "catalog-unreachable";
    /// The catalog's pod cannot get its image.
    CatalogImagePull "catalog-image-pull";
    /// The catalog's pod does not stay up.
    CatalogPodCrash "catalog-pod-crash";
    /// The catalog has no such package, channel or version.
    PackageNotFound "package-not-found";
    /// No set of operators satisfies all Subscriptions and dependencies.
    ResolutionUnsatisfiable "resolution-unsatisfiable";
    /// OLM could not even try to resolve.
    ResolutionPrevented "resolution-prevented";
    /// A Subscription for the package exists already.
    SubscriptionExists "subscription-exists";
    /// There is no Subscription for the package.
    SubscriptionMissing "subscription-missing";
    /// Another version of the package is installed.
    OtherVersionInstalled "other-version-installed";
    /// The package is not installed.
    NotInstalled "not-installed";
    /// A CSV of the package exists that no Subscription brought.
    CsvOrphan "csv-orphan";
    /// A CRD of the bundle belongs to another operator.
    CrdOwnedByOther "crd-owned-by-other";
    /// The cluster serves no such API.
    ApiMissing "api-missing";
    /// The Kubernetes version is too old.
    KubernetesTooOld "kubernetes-too-old";
    /// The bundle is larger than what OLM or the API server can carry.
    BundleTooLarge "bundle-too-large";
    /// The bundle holds a kind that OLM does not install.
    BundleKindUnsupported "bundle-kind-unsupported";
    /// The bundle image cannot be pulled by the node.
    BundleImagePull "bundle-image-pull";
    /// The bundle's content is larger than a ConfigMap.
    UnpackTooLarge "unpack-too-large";
    /// The unpack Job failed otherwise.
    UnpackFailed "unpack-failed";
    /// A plan waits for somebody to approve it.
    InstallPlanUnapproved "install-plan-unapproved";
    /// A plan would also change operators that were not asked for.
    InstallPlanForeign "install-plan-foreign";
    /// A plan failed.
    InstallPlanFailed "install-plan-failed";
    /// The new CRD does not fit objects that exist.
    CrdUnsafe "crd-unsafe";
    /// A CRD or API that the operator requires does not exist.
    RequirementApiMissing "requirement-api-missing";
    /// Another requirement of the CSV is not met.
    RequirementUnmet "requirement-unmet";
    /// OLM gave the CSV up.
    CsvFailed "csv-failed";
    /// An upgrade waits: the operator says that it must not be upgraded now.
    UpgradeHeld "upgrade-held";
    /// The API server or an admission webhook refuses the operator's pods.
    PodRefused "pod-refused";
    /// No node takes the operator's pod.
    PodUnschedulable "pod-unschedulable";
    /// The operator's image cannot be pulled.
    OperatorImagePull "operator-image-pull";
    /// The operator does not stay up.
    OperatorCrashLoop "operator-crash-loop";
    /// The operator runs but never becomes ready.
    OperatorNotReady "operator-not-ready";
    /// The operator's Deployment is not available and nothing else explains it.
    DeploymentUnavailable "deployment-unavailable";
    /// A webhook has no endpoint that answers.
    WebhookUnavailable "webhook-unavailable";
    /// Custom resources do not go away: nobody removes their finalizers.
    CustomResourceBlocked "custom-resource-blocked";
    /// An object of OLM does not go away.
    DeletionBlocked "deletion-blocked";
    /// An aggregated API without a server makes every namespace deletion hang.
    ApiServiceDead "api-service-dead";
    /// OLM cannot be removed while it manages operators.
    OperatorsInstalled "operators-installed";
    /// The time was over and nothing wrong was found.
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

/// How much a cause matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The flow cannot reach its end.
    Error,
    /// Worth knowing; the flow goes on.
    Warning,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// Stable code.
    pub code: Code,
    /// Error or warning.
    pub severity: Severity,
    /// Whether waiting longer will not help.
    pub lasting: bool,
    /// The object that shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectRef>,
    /// What was seen.
    pub message: String,
    /// Why it is likely so.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub likely: String,
    /// What to do.
    pub remedy: String,
    /// Events and log lines that show it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
}

impl Cause {
    /// An error that waiting will not heal.
    pub fn lasting(code: Code, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Cause {
            code,
            severity: Severity::Error,
            lasting: true,
            object: None,
            message: message.into(),
            likely: String::new(),
            remedy: remedy.into(),
            evidence: Vec::new(),
        }
    }

    /// An error that may pass.
    pub fn passing(code: Code, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Cause {
            lasting: false,
            ..Cause::lasting(code, message, remedy)
        }
    }

    /// Something worth knowing.
    pub fn warning(code: Code, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Cause {
            severity: Severity::Warning,
            lasting: false,
            ..Cause::lasting(code, message, remedy)
        }
    }

    /// Names the object.
    #[must_use]
    pub fn on(mut self, object: ObjectRef) -> Self {
        self.object = Some(object);
        self
    }

    /// Says why it is likely so.
    #[must_use]
    pub fn likely(mut self, text: impl Into<String>) -> Self {
        self.likely = text.into();
        self
    }

    /// Adds what shows it.
    #[must_use]
    pub fn evidence(mut self, lines: impl IntoIterator<Item = String>) -> Self {
        self.evidence.extend(lines);
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
        write!(f, "{}", self.message)?;
        if !self.likely.is_empty() {
            write!(f, "\n  likely: {}", self.likely)?;
        }
        if !self.remedy.is_empty() {
            write!(f, "\n  do:     {}", self.remedy)?;
        }
        for line in &self.evidence {
            write!(f, "\n  seen:   {line}")?;
        }
        Ok(())
    }
}

/// Errors first, then by code and object; equal ones once.
pub fn sorted(mut causes: Vec<Cause>) -> Vec<Cause> {
    causes
        .sort_by(|a, b| (a.severity, a.code, &a.object, &a.message).cmp(&(b.severity, b.code, &b.object, &b.message)));
    causes.dedup();
    causes
}

/// Whether any cause is an error.
pub fn has_errors(causes: &[Cause]) -> bool {
    causes.iter().any(|cause| cause.severity == Severity::Error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_documented() {
        let guide = include_str!("../../../../docs/cluster.md");
        let missing: Vec<&str> = Code::ALL
            .iter()
            .map(|code| code.as_str())
            .filter(|code| !guide.contains(&format!("| `{code}` |")))
            .collect();
        assert_eq!(missing, Vec::<&str>::new());
    }
}
