//! The table of supported bundle kinds, compared with the real Operator Lifecycle Manager: one bundle with every
//! supported kind, and one for each unsupported kind.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use kube_testbed::Options;
use olmkit::bundle::kinds::{self, Program};
use serde_json::{Value, json};

use crate::bundle::Bundle;
use crate::harness::{Cluster, within};
use crate::lints::broken;
use crate::offered;

/// A group that is none of OLM's.
const OTHER: &str = "other.example.com/v1";

const OLM: &str = "operators.coreos.com/v1alpha1";

/// An object to put into a bundle.
struct Sample {
    api_version: &'static str,
    kind: &'static str,
    plural: &'static str,
    /// Everything but apiVersion, kind and metadata.
    body: Value,
}

impl Sample {
    fn new(api_version: &'static str, kind: &'static str, plural: &'static str, body: Value) -> Self {
        Sample {
            api_version,
            kind,
            plural,
            body,
        }
    }

    fn name(&self) -> String {
        format!("with-{}", self.kind.to_lowercase())
    }

    fn object(&self) -> Value {
        let mut object = self.body.clone();
        object["apiVersion"] = self.api_version.into();
        object["kind"] = self.kind.into();
        object["metadata"] = json!({"name": self.name()});
        object
    }

    fn is_namespaced(&self) -> bool {
        kinds::find(self.kind).is_none_or(|known| known.scope == kinds::Scope::Namespaced)
    }

    /// Returns true if OLM installs the kind according to the table.
    fn is_accepted(&self) -> bool {
        kinds::is_accepted(self.kind, Program::OlmV0, kinds::NEWEST_OLM_V0)
    }

    /// A definition of the kind for clusters that do not have it.
    fn definition(&self) -> Value {
        let (group, version) = self.api_version.split_once('/').unwrap();
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": format!("{}.{group}", self.plural),
                // Groups below k8s.io are protected.
                "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
            },
            "spec": {
                "group": group,
                "names": {"kind": self.kind, "plural": self.plural, "singular": self.kind.to_lowercase()},
                "scope": if self.is_namespaced() { "Namespaced" } else { "Cluster" },
                "versions": [{
                    "name": version,
                    "served": true,
                    "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                }],
            },
        })
    }
}

/// Kinds whose API a plain Kubernetes does not serve.
fn foreign() -> Vec<Sample> {
    let (console, monitoring) = ("console.openshift.io/v1", "monitoring.coreos.com/v1");
    let spec = || json!({"spec": {}});
    vec![
        Sample::new(console, "ConsoleCLIDownload", "consoleclidownloads", spec()),
        Sample::new(console, "ConsoleLink", "consolelinks", spec()),
        Sample::new(console, "ConsolePlugin", "consoleplugins", spec()),
        Sample::new(console, "ConsoleQuickStart", "consolequickstarts", spec()),
        Sample::new(console, "ConsoleYAMLSample", "consoleyamlsamples", spec()),
        Sample::new(monitoring, "PodMonitor", "podmonitors", spec()),
        Sample::new(monitoring, "PrometheusRule", "prometheusrules", spec()),
        Sample::new(monitoring, "ServiceMonitor", "servicemonitors", spec()),
        Sample::new(
            "autoscaling.k8s.io/v1",
            "VerticalPodAutoscaler",
            "verticalpodautoscalers",
            spec(),
        ),
    ]
}

/// Kinds that every Kubernetes serves. The last ones are not in the table.
fn native() -> Vec<Sample> {
    let rbac = "rbac.authorization.k8s.io/v1";
    let labels = json!({"app": "none"});
    let binding = |kind: &str| {
        json!({
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "view"},
            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}],
        })
    };
    let rules = json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]});
    let pods = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "one", "image": "r.example.com/one:1"}]}});
    vec![
        Sample::new(rbac, "ClusterRole", "clusterroles", rules.clone()),
        Sample::new(
            rbac,
            "ClusterRoleBinding",
            "clusterrolebindings",
            binding("ClusterRole"),
        ),
        Sample::new("v1", "ConfigMap", "configmaps", json!({"data": {"a": "b"}})),
        Sample::new(
            "networking.k8s.io/v1",
            "NetworkPolicy",
            "networkpolicies",
            json!({"spec": {"podSelector": {}}}),
        ),
        Sample::new(
            "policy/v1",
            "PodDisruptionBudget",
            "poddisruptionbudgets",
            json!({"spec": {"minAvailable": 1, "selector": {"matchLabels": labels}}}),
        ),
        Sample::new(
            "scheduling.k8s.io/v1",
            "PriorityClass",
            "priorityclasses",
            json!({"value": 1}),
        ),
        Sample::new(rbac, "Role", "roles", rules),
        Sample::new(rbac, "RoleBinding", "rolebindings", binding("ClusterRole")),
        Sample::new("v1", "Secret", "secrets", json!({"stringData": {"a": "b"}})),
        Sample::new(
            "v1",
            "Service",
            "services",
            json!({"spec": {"selector": labels, "ports": [{"port": 80}]}}),
        ),
        Sample::new("v1", "ServiceAccount", "serviceaccounts", json!({})),
        Sample::new(
            "apps/v1",
            "Deployment",
            "deployments",
            json!({"spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": pods}}),
        ),
        Sample::new(
            "networking.k8s.io/v1",
            "Ingress",
            "ingresses",
            json!({"spec": {"defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}}}),
        ),
        Sample::new("v1", "LimitRange", "limitranges", json!({"spec": {"limits": []}})),
    ]
}

#[tokio::test]
async fn install_plans_complete_for_the_kinds_of_the_table_only() {
    let cluster = Cluster::start(Options::default().with_olm()).await;
    let foreign = foreign();
    for sample in &foreign {
        cluster.apply("customresourcedefinitions", sample.definition()).await;
    }
    let samples: Vec<Sample> = foreign.into_iter().chain(native()).collect();
    for known in kinds::ALL {
        // Every bundle contains these two.
        let is_part_of_all = matches!(known.kind, "ClusterServiceVersion" | "CustomResourceDefinition");
        assert!(
            is_part_of_all || samples.iter().any(|sample| sample.kind == known.kind),
            "{} is not tried",
            known.kind
        );
    }
    let start = Instant::now();
    let (accepted, refused): (Vec<Sample>, Vec<Sample>) = samples.into_iter().partition(Sample::is_accepted);
    // OLM retries rejected objects for a minute before the plan fails, so those start first.
    let mut trials: Vec<Trial> = refused.into_iter().map(Trial::of_one).collect();
    trials.push(Trial {
        package: "accepted".to_owned(),
        samples: accepted,
    });
    let others: Vec<Trial> = of_another_group().into_iter().map(Trial::of_another_group).collect();
    for sample in others.iter().flat_map(|trial| &trial.samples) {
        cluster.apply("customresourcedefinitions", sample.definition()).await;
        cluster.serves(OTHER, sample.plural).await;
    }
    let served = serve(&cluster, trials.iter().chain(&others)).await;
    for trial in trials.iter().chain(&others) {
        subscribe(&cluster, &trial.package, &served).await;
    }

    let (mut table, mut wrong) = (String::new(), Vec::new());
    for trial in &trials {
        let phase = ended(&cluster, &trial.package).await;
        for sample in &trial.samples {
            let namespace = sample.is_namespaced().then_some(trial.package.as_str());
            let name = sample.name();
            let found = cluster
                .get(sample.api_version, sample.kind, sample.plural, namespace, &name)
                .await;
            let installed = found.is_some();
            let said = if sample.is_accepted() { "accepted" } else { "refused" };
            let found = if installed { "installed" } else { "absent" };
            writeln!(
                table,
                "{:<24}{:<32}{said:<10}{phase:<10}{found}",
                sample.kind, sample.api_version
            )
            .unwrap();
            if (phase == "Complete") != sample.is_accepted() || installed != sample.is_accepted() {
                wrong.push(sample.kind);
            }
        }
    }
    println!(
        "{:<24}{:<32}{:<10}{:<10}object\n{table}{} InstallPlans in {:?}",
        "KIND",
        "API",
        "table",
        "plan",
        trials.len(),
        start.elapsed()
    );
    assert!(wrong.is_empty(), "OLM disagrees with the table about {wrong:?}");
    own_kinds_are_looked_at_by_name(&cluster, &others).await;

    // The checks before an installation read the same table.
    cluster.namespace("monitored").await;
    let directory = cluster.folder.path().join("with-podmonitor.v1.0.0");
    let refused = cluster.run_bundle(&directory, "monitored", &[]).await;
    assert_eq!(refused.json["result"], "rejected");
    assert!(
        refused.errors().contains(&"bundle-kind-unsupported"),
        "{:?}",
        refused.errors()
    );
}

/// Kinds that have the name of one of OLM's, in another group that the cluster serves.
fn of_another_group() -> Vec<Sample> {
    vec![
        Sample::new(OTHER, "Service", "services", json!({"spec": {}})),
        Sample::new(OTHER, "ConfigMap", "configmaps", json!({"data": {"a": "b"}})),
        Sample::new(OTHER, "Role", "roles", json!({"spec": {}})),
        Sample::new(OTHER, "PriorityClass", "priorityclasses", json!({"value": 1})),
    ]
}

/// Rule KUBE-3: OLM decodes kinds by name only. A third-party API with the name of an OLM kind fails or creates another
/// object. The others are created unchanged.
async fn own_kinds_are_looked_at_by_name(cluster: &Cluster, trials: &[Trial]) {
    for trial in trials {
        let phase = ended(cluster, &trial.package).await;
        let [sample] = trial.samples.as_slice() else {
            panic!("one sample each")
        };
        let namespace = sample.is_namespaced().then_some(trial.package.as_str());
        let name = sample.name();
        let meant = cluster.get(OTHER, sample.kind, sample.plural, namespace, &name).await;
        let core = if sample.kind == "Role" {
            "rbac.authorization.k8s.io/v1"
        } else {
            "v1"
        };
        let taken_for = cluster.get(core, sample.kind, sample.plural, namespace, &name).await;
        let found = (phase.as_str(), meant.is_some(), taken_for.is_some());
        let expected = match sample.kind {
            "Service" => ("Failed", false, false),
            "PriorityClass" => ("Complete", true, false),
            _ => ("Complete", false, true),
        };
        assert_eq!(found, expected, "{}", sample.kind);
        let directory = cluster.folder.path().join(format!("{}.v1.0.0", trial.package));
        let is_found = broken(&directory).contains(&"KUBE-3");
        assert_eq!(is_found, sample.kind != "PriorityClass", "{}", sample.kind);
    }
}

/// Result of OLM's installation of a bundle with an object, without a check by olmkit.
pub async fn installed_with(cluster: &Cluster, api_version: &'static str, kind: &'static str, body: Value) -> String {
    let trial = Trial::of_one(Sample::new(api_version, kind, "", body));
    let served = serve(cluster, std::iter::once(&trial)).await;
    subscribe(cluster, &trial.package, &served).await;
    ended(cluster, &trial.package).await
}

/// Result of a namespace's InstallPlan.
async fn ended(cluster: &Cluster, namespace: &str) -> String {
    let mut phase = String::new();
    let limit = Duration::from_secs(180);
    within(limit, "the InstallPlan is complete or failed", async || {
        phase = end_of_plan(cluster, namespace).await.unwrap_or_default();
        !phase.is_empty()
    })
    .await;
    phase
}

/// A package with one bundle that contains some samples.
struct Trial {
    package: String,
    samples: Vec<Sample>,
}

impl Trial {
    fn of_one(sample: Sample) -> Self {
        Trial {
            package: sample.name(),
            samples: vec![sample],
        }
    }

    fn of_another_group(sample: Sample) -> Self {
        Trial {
            package: format!("other-{}", sample.kind.to_lowercase()),
            samples: vec![sample],
        }
    }
}

/// Serves one catalog with the packages until the test ends.
async fn serve(cluster: &Cluster, trials: impl Iterator<Item = &Trial>) -> String {
    let bundle = |trial: &Trial| {
        let mut bundle = Bundle::new(&trial.package, "1.0.0");
        bundle.extra = trial.samples.iter().map(Sample::object).collect();
        bundle
    };
    let bundles: Vec<Bundle> = trials.map(bundle).collect();
    let (address, _) = offered::bundles(cluster, &bundles.iter().collect::<Vec<_>>()).await;
    address
}

/// Namespace, OperatorGroup, CatalogSource and Subscription for a package.
async fn subscribe(cluster: &Cluster, name: &str, catalog: &str) {
    cluster.namespace(name).await;
    cluster.operator_group(name, "group", &[name]).await;
    cluster
        .apply(
            "catalogsources",
            json!({"apiVersion": OLM, "kind": "CatalogSource", "metadata": {"name": "kinds", "namespace": name},
                "spec": {"sourceType": "grpc", "address": catalog, "displayName": "kinds", "publisher": "tests"}}),
        )
        .await;
    cluster
        .apply(
            "subscriptions",
            json!({"apiVersion": OLM, "kind": "Subscription", "metadata": {"name": name, "namespace": name},
                "spec": {"name": name, "channel": "alpha", "source": "kinds", "sourceNamespace": name}}),
        )
        .await;
}

/// The phase of the namespace's InstallPlan once it is a last one.
async fn end_of_plan(cluster: &Cluster, namespace: &str) -> Option<String> {
    let plans = cluster
        .api(OLM, "InstallPlan", "installplans", Some(namespace))
        .list(&kube::api::ListParams::default())
        .await
        .unwrap();
    let phases = plans
        .items
        .iter()
        .filter_map(|plan| plan.data.pointer("/status/phase")?.as_str());
    phases
        .filter(|phase| matches!(*phase, "Complete" | "Failed"))
        .map(str::to_owned)
        .next()
}
