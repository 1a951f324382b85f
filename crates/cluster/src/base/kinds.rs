//! The kinds that the commands read and write, with the data for a request's path.

/// A kind of object: enough to build the path of a request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind {
    /// API group, empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind, as manifests spell it.
    pub kind: String,
    /// Resource name in paths.
    pub plural: String,
    /// True if objects live in namespaces.
    pub namespaced: bool,
}

impl Kind {
    /// `group/version`, or only the version for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The path of the collection, in a namespace if one is given and the kind is namespaced.
    pub fn path(&self, namespace: Option<&str>) -> String {
        let root = if self.group.is_empty() { "/api" } else { "/apis" };
        match namespace {
            Some(namespace) if self.namespaced => {
                format!("{root}/{}/namespaces/{namespace}/{}", self.api_version(), self.plural)
            }
            _ => format!("{root}/{}/{}", self.api_version(), self.plural),
        }
    }

    /// The name that `kubectl` understands without doubt: `plural` or `plural.group`.
    pub fn resource(&self) -> String {
        if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $function:ident = $group:literal $version:literal $kind:literal $plural:literal $namespaced:literal;)*) => {
        $($(#[$doc])*
        pub fn $function() -> Kind {
            Kind { group: $group.into(), version: $version.into(), kind: $kind.into(), plural: $plural.into(), namespaced: $namespaced }
        })*

        /// The kind that a manifest's `apiVersion` and `kind` name, if it is one of these.
        pub fn known(api_version: &str, kind: &str) -> Option<Kind> {
            [$($function()),*].into_iter().find(|known| known.kind == kind && known.api_version() == api_version)
        }
    };
}

/// The API group of OLM.
pub const OLM_GROUP: &str = "operators.coreos.com";

kinds! {
    /// OLM: a catalog.
    catalog_source = "operators.coreos.com" "v1alpha1" "CatalogSource" "catalogsources" true;
    /// OLM: an installed operator version.
    cluster_service_version = "operators.coreos.com" "v1alpha1" "ClusterServiceVersion" "clusterserviceversions" true;
    /// OLM: result of a resolution.
    install_plan = "operators.coreos.com" "v1alpha1" "InstallPlan" "installplans" true;
    /// OLM: the wish to have a package.
    subscription = "operators.coreos.com" "v1alpha1" "Subscription" "subscriptions" true;
    /// OLM: which namespaces are served.
    operator_group = "operators.coreos.com" "v1" "OperatorGroup" "operatorgroups" true;
    /// OLM: components of a package in a namespace.
    operator = "operators.coreos.com" "v1" "Operator" "operators" false;
    /// OLM: cluster-wide settings.
    olm_config = "operators.coreos.com" "v1" "OLMConfig" "olmconfigs" false;
    /// OLM: conditions that an operator reports to OLM.
    operator_condition = "operators.coreos.com" "v2" "OperatorCondition" "operatorconditions" true;
    /// OLM v1: an installed operator.
    cluster_extension = "olm.operatorframework.io" "v1" "ClusterExtension" "clusterextensions" false;
    /// OLM v1: a catalog.
    cluster_catalog = "olm.operatorframework.io" "v1" "ClusterCatalog" "clustercatalogs" false;
    /// A namespace.
    namespace = "" "v1" "Namespace" "namespaces" false;
    /// A node.
    node = "" "v1" "Node" "nodes" false;
    /// A pod.
    pod = "" "v1" "Pod" "pods" true;
    /// A service.
    service = "" "v1" "Service" "services" true;
    /// The addresses of a service.
    endpoint_slice = "discovery.k8s.io" "v1" "EndpointSlice" "endpointslices" true;
    /// An event.
    event = "" "v1" "Event" "events" true;
    /// Plain data.
    config_map = "" "v1" "ConfigMap" "configmaps" true;
    /// Secret data.
    secret = "" "v1" "Secret" "secrets" true;
    /// A service account.
    service_account = "" "v1" "ServiceAccount" "serviceaccounts" true;
    /// A Deployment.
    deployment = "apps" "v1" "Deployment" "deployments" true;
    /// A Job.
    job = "batch" "v1" "Job" "jobs" true;
    /// Grants in a namespace.
    role = "rbac.authorization.k8s.io" "v1" "Role" "roles" true;
    /// RBAC binding in a namespace.
    role_binding = "rbac.authorization.k8s.io" "v1" "RoleBinding" "rolebindings" true;
    /// Grants in the cluster.
    cluster_role = "rbac.authorization.k8s.io" "v1" "ClusterRole" "clusterroles" false;
    /// RBAC binding in the cluster.
    cluster_role_binding = "rbac.authorization.k8s.io" "v1" "ClusterRoleBinding" "clusterrolebindings" false;
    /// Priority of pods.
    priority_class = "scheduling.k8s.io" "v1" "PriorityClass" "priorityclasses" false;
    /// A custom resource definition.
    custom_resource_definition = "apiextensions.k8s.io" "v1" "CustomResourceDefinition" "customresourcedefinitions" false;
    /// An aggregated API.
    api_service = "apiregistration.k8s.io" "v1" "APIService" "apiservices" false;
    /// Network rules.
    network_policy = "networking.k8s.io" "v1" "NetworkPolicy" "networkpolicies" true;
    /// Admission, changing.
    mutating_webhook_configuration = "admissionregistration.k8s.io" "v1" "MutatingWebhookConfiguration" "mutatingwebhookconfigurations" false;
    /// Validating admission.
    validating_webhook_configuration = "admissionregistration.k8s.io" "v1" "ValidatingWebhookConfiguration" "validatingwebhookconfigurations" false;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_follow_the_api() {
        assert_eq!(
            subscription().path(Some("a")),
            "/apis/operators.coreos.com/v1alpha1/namespaces/a/subscriptions"
        );
        assert_eq!(
            subscription().path(None),
            "/apis/operators.coreos.com/v1alpha1/subscriptions"
        );
        assert_eq!(pod().path(Some("a")), "/api/v1/namespaces/a/pods");
        assert_eq!(operator().path(Some("a")), "/apis/operators.coreos.com/v1/operators");
        assert_eq!(known("apps/v1", "Deployment"), Some(deployment()));
        assert_eq!(known("apps/v1", "Pod"), None);
    }
}
