//! OLM's objects, with the user's images and namespaces. OLM ships them as a Helm chart. Its CRDs are plain files and
//! are read from there. The rest, about twenty objects, is written here as values.

use serde_json::{Value, json};

/// Settings for the objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// OLM's version, for the label that other tools read it from.
    pub version: String,
    /// Namespace of OLM.
    pub namespace: String,
    /// Namespace whose catalogs all namespaces see.
    pub catalog_namespace: String,
    /// Namespace for operators that serve the whole cluster.
    pub operators_namespace: String,
    /// Image with `/bin/olm`, `/bin/catalog`, `/bin/package-server`.
    pub olm_image: String,
    /// Image with `/bin/opm`, which unpacks bundles.
    pub opm_image: String,
    /// Image with `/bin/cp` and `/bin/cpb`.
    pub util_image: String,
    /// When nodes pull them.
    pub pull_policy: String,
    /// Copies of packageserver.
    pub packageserver_replicas: u32,
    /// A catalog for everybody, if any.
    pub catalog_image: Option<String>,
}

const ACCOUNT: &str = "olm-operator-serviceaccount";
const CLUSTER_ROLE: &str = "system:controller:operator-lifecycle-manager";
const CATALOG_PORT: u16 = 50051;
const PACKAGESERVER_PORT: u16 = 5443;
const METRICS_PORT: u16 = 8080;

/// Everything but the CRDs, in the order of creation.
pub fn all(settings: &Settings) -> Vec<Value> {
    let mut objects = namespaces(settings);
    objects.extend(network_policies(settings));
    objects.extend(account(settings));
    objects
        .push(json!({"apiVersion": "operators.coreos.com/v1", "kind": "OLMConfig", "metadata": {"name": "cluster"}}));
    objects.push(olm_operator(settings));
    objects.push(catalog_operator(settings));
    objects.extend(aggregated_roles());
    objects.extend(operator_groups(settings));
    objects.push(packageserver(settings));
    objects.extend(settings.catalog_image.as_ref().map(|image| catalog(settings, image)));
    objects
}

fn namespaces(settings: &Settings) -> Vec<Value> {
    let made = |name: &str, level: &str| {
        json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": {
                "pod-security.kubernetes.io/enforce": level,
                "pod-security.kubernetes.io/enforce-version": "latest",
            }},
        })
    };
    let mut all = vec![
        made(&settings.namespace, "restricted"),
        made(&settings.operators_namespace, "baseline"),
    ];
    if settings.catalog_namespace != settings.namespace {
        all.push(made(&settings.catalog_namespace, "restricted"));
    }
    all
}

fn network_policies(settings: &Settings) -> Vec<Value> {
    let policy = |namespace: &str, name: &str, spec: Value| json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": name, "namespace": namespace}, "spec": spec});
    let tcp = |port: Value| json!({"ports": [{"protocol": "TCP", "port": port}]});
    let dns = json!({"ports": [{"protocol": "TCP", "port": 53}, {"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 5353}, {"protocol": "UDP", "port": 5353}]});
    let of_app = |app: &str, ingress: Value, egress: Vec<Value>| json!({"podSelector": {"matchLabels": {"app": app}}, "ingress": [ingress], "egress": egress, "policyTypes": ["Ingress", "Egress"]});
    // An empty egress rule: the API server's address cannot be known here.
    let anywhere = json!({});
    let (own, catalogs) = (settings.namespace.as_str(), settings.catalog_namespace.as_str());
    vec![
        policy(
            own,
            "default-deny-all-traffic",
            json!({"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}),
        ),
        policy(
            own,
            "olm-operator",
            of_app(
                "olm-operator",
                tcp("metrics".into()),
                vec![anywhere.clone(), dns.clone()],
            ),
        ),
        policy(
            own,
            "catalog-operator",
            of_app(
                "catalog-operator",
                tcp("metrics".into()),
                vec![anywhere.clone(), dns.clone(), tcp(CATALOG_PORT.into())],
            ),
        ),
        policy(
            own,
            "packageserver",
            of_app(
                "packageserver",
                tcp(PACKAGESERVER_PORT.into()),
                vec![anywhere.clone(), dns, tcp(CATALOG_PORT.into())],
            ),
        ),
        policy(
            &settings.operators_namespace,
            "default-allow-all",
            json!({"podSelector": {}, "policyTypes": ["Ingress", "Egress"], "ingress": [{}], "egress": [{}]}),
        ),
        policy(
            catalogs,
            "olm-catalog-grpc-ingress",
            json!({
                "podSelector": {"matchExpressions": [{"key": "olm.catalogSource", "operator": "Exists"}]},
                "policyTypes": ["Ingress"],
                "ingress": [tcp(CATALOG_PORT.into())],
            }),
        ),
        policy(
            catalogs,
            "bundle-unpack-egress",
            json!({
                "podSelector": {"matchExpressions": [
                    {"key": "operatorframework.io/bundle-unpack-ref", "operator": "Exists"},
                    {"key": "olm.managed", "operator": "In", "values": ["true"]},
                ]},
                "policyTypes": ["Egress"],
                "egress": [anywhere],
            }),
        ),
    ]
}

fn account(settings: &Settings) -> Vec<Value> {
    let group = "rbac.authorization.k8s.io";
    vec![
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": settings.namespace}}),
        json!({
            "apiVersion": format!("{group}/v1"),
            "kind": "ClusterRole",
            "metadata": {"name": CLUSTER_ROLE},
            "rules": [
                {"apiGroups": ["*"], "resources": ["*"], "verbs": ["watch", "list", "get", "create", "update", "patch", "delete", "deletecollection", "escalate", "bind"]},
                {"nonResourceURLs": ["*"], "verbs": ["*"]},
                {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
                {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
            ],
        }),
        json!({
            "apiVersion": format!("{group}/v1"),
            "kind": "ClusterRoleBinding",
            "metadata": {"name": format!("olm-operator-binding-{}", settings.namespace)},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": CLUSTER_ROLE},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": settings.namespace}],
        }),
    ]
}

fn olm_operator(settings: &Settings) -> Value {
    let environment = json!([
        {"name": "OPERATOR_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
        {"name": "OPERATOR_NAME", "value": "olm-operator"},
    ]);
    deployment(
        settings,
        "olm-operator",
        "/bin/olm",
        json!(["--namespace", "$(OPERATOR_NAMESPACE)"]),
        environment,
        "160Mi",
    )
}

fn catalog_operator(settings: &Settings) -> Value {
    let arguments = json!([
        "--namespace",
        settings.catalog_namespace,
        format!("--opmImage={}", settings.opm_image),
        "--util-image",
        settings.util_image,
        "--set-workload-user-id=true",
    ]);
    deployment(
        settings,
        "catalog-operator",
        "/bin/catalog",
        arguments,
        json!([]),
        "80Mi",
    )
}

fn deployment(
    settings: &Settings,
    name: &str,
    command: &str,
    arguments: Value,
    environment: Value,
    memory: &str,
) -> Value {
    let probe = json!({"httpGet": {"path": "/healthz", "port": METRICS_PORT, "scheme": "HTTP"}});
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": settings.namespace, "labels": {"app": name}},
        "spec": {
            // Neither operator elects a leader: two copies must never run side by side.
            "strategy": {"type": "Recreate"},
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "securityContext": pod_security(),
                    "serviceAccountName": ACCOUNT,
                    "nodeSelector": {"kubernetes.io/os": "linux"},
                    "volumes": [{"name": "tmpfs", "emptyDir": {}}],
                    "containers": [{
                        "name": name,
                        "image": settings.olm_image,
                        "imagePullPolicy": settings.pull_policy,
                        "command": [command],
                        "args": arguments,
                        "env": environment,
                        "ports": [{"containerPort": METRICS_PORT, "name": "metrics"}],
                        "livenessProbe": probe,
                        "readinessProbe": probe,
                        "terminationMessagePolicy": "FallbackToLogsOnError",
                        "resources": {"requests": {"cpu": "10m", "memory": memory}},
                        "securityContext": container_security(),
                        "volumeMounts": [{"name": "tmpfs", "mountPath": "/tmp"}],
                    }],
                },
            },
        },
    })
}

fn pod_security() -> Value {
    json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}})
}

fn container_security() -> Value {
    json!({"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]}})
}

fn aggregated_roles() -> Vec<Value> {
    let role = |name: &str, to: &[&str], rules: Value| {
        let labels: serde_json::Map<String, Value> = to
            .iter()
            .map(|role| {
                (
                    format!("rbac.authorization.k8s.io/aggregate-to-{role}"),
                    Value::from("true"),
                )
            })
            .collect();
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name, "labels": labels}, "rules": rules})
    };
    vec![
        role(
            "aggregate-olm-edit",
            &["admin", "edit"],
            json!([
                {"apiGroups": ["operators.coreos.com"], "resources": ["subscriptions"], "verbs": ["create", "update", "patch", "delete"]},
                {"apiGroups": ["operators.coreos.com"], "resources": ["clusterserviceversions", "catalogsources", "installplans", "subscriptions"], "verbs": ["delete"]},
            ]),
        ),
        role(
            "aggregate-olm-view",
            &["admin", "edit", "view"],
            json!([
                {"apiGroups": ["operators.coreos.com"], "resources": ["clusterserviceversions", "catalogsources", "installplans", "subscriptions", "operatorgroups"], "verbs": ["get", "list", "watch"]},
                {"apiGroups": ["packages.operators.coreos.com"], "resources": ["packagemanifests", "packagemanifests/icon"], "verbs": ["get", "list", "watch"]},
            ]),
        ),
    ]
}

fn operator_groups(settings: &Settings) -> Vec<Value> {
    let group = |namespace: &str, name: &str, spec: Value| json!({"apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup", "metadata": {"name": name, "namespace": namespace}, "spec": spec});
    vec![
        group(&settings.operators_namespace, "global-operators", json!({})),
        group(
            &settings.namespace,
            "olm-operators",
            json!({"targetNamespaces": [settings.namespace]}),
        ),
    ]
}

fn packageserver(settings: &Settings) -> Value {
    let read = json!(["get", "list", "watch"]);
    let rules = json!([
        {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create", "get"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": read},
        {"apiGroups": ["operators.coreos.com"], "resources": ["catalogsources"], "verbs": read},
        {"apiGroups": ["packages.operators.coreos.com"], "resources": ["packagemanifests"], "verbs": ["get", "list"]},
        {"apiGroups": ["config.openshift.io"], "resources": ["apiservers"], "resourceNames": ["cluster"], "verbs": ["get"]},
    ]);
    let modes: Vec<Value> = ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"]
        .iter()
        .map(|mode| json!({"type": mode, "supported": true}))
        .collect();
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {"name": "packageserver", "namespace": settings.namespace, "labels": {"olm.version": settings.version}},
        "spec": {
            "displayName": "Package Server",
            "description": "Lists the packages of all catalogs as PackageManifest objects.",
            "version": settings.version,
            "maturity": "alpha",
            "minKubeVersion": "1.11.0",
            "keywords": ["packagemanifests", "olm", "packages"],
            "provider": {"name": "Operator Framework"},
            "installModes": modes,
            "install": {"strategy": "deployment", "spec": {
                "clusterPermissions": [{"serviceAccountName": ACCOUNT, "rules": rules}],
                "deployments": [{"name": "packageserver", "spec": packageserver_deployment(settings)}],
            }},
            "apiservicedefinitions": {"owned": [{
                "group": "packages.operators.coreos.com",
                "version": "v1",
                "kind": "PackageManifest",
                "name": "packagemanifests",
                "displayName": "PackageManifest",
                "description": "A package as the catalogs of a namespace offer it.",
                "deploymentName": "packageserver",
                "containerPort": PACKAGESERVER_PORT,
            }]},
        },
    })
}

fn packageserver_deployment(settings: &Settings) -> Value {
    let probe = json!({"httpGet": {"scheme": "HTTPS", "path": "/healthz", "port": PACKAGESERVER_PORT}});
    json!({
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}},
        "replicas": settings.packageserver_replicas,
        "selector": {"matchLabels": {"app": "packageserver"}},
        "template": {
            "metadata": {"labels": {"app": "packageserver"}},
            "spec": {
                "securityContext": pod_security(),
                "serviceAccountName": ACCOUNT,
                "nodeSelector": {"kubernetes.io/os": "linux"},
                "volumes": [{"name": "tmpfs", "emptyDir": {}}],
                "containers": [{
                    "name": "packageserver",
                    "image": settings.olm_image,
                    "imagePullPolicy": settings.pull_policy,
                    "command": ["/bin/package-server", "-v=4", "--secure-port", PACKAGESERVER_PORT.to_string(), "--global-namespace", settings.catalog_namespace],
                    "ports": [{"containerPort": PACKAGESERVER_PORT, "protocol": "TCP"}],
                    "livenessProbe": probe,
                    "readinessProbe": probe,
                    "terminationMessagePolicy": "FallbackToLogsOnError",
                    "resources": {"requests": {"cpu": "10m", "memory": "50Mi"}},
                    "securityContext": container_security(),
                    "volumeMounts": [{"name": "tmpfs", "mountPath": "/tmp"}],
                }],
            },
        },
    })
}

fn catalog(settings: &Settings, image: &str) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "CatalogSource",
        "metadata": {"name": "catalog", "namespace": settings.catalog_namespace},
        "spec": {
            "sourceType": "grpc",
            "image": image,
            "displayName": "Catalog",
            "publisher": "olmkit",
            "grpcPodConfig": {"securityContextConfig": "restricted"},
        },
    })
}
