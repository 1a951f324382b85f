//! Small bundles for the cluster tests, written to a directory.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// A bundle whose parts a test can change before it is written.
#[derive(Clone)]
pub struct Bundle {
    pub package: String,
    /// Base name of its files and objects.
    pub file: String,
    pub version: String,
    pub image: String,
    pub modes: Vec<&'static str>,
    pub group: String,
    pub kind: String,
    pub required: Vec<Value>,
    pub extra: Vec<Value>,
    pub cluster_rules: Vec<Value>,
    pub rules: Vec<Value>,
    /// Service accounts that no deployment uses.
    pub other_accounts: Vec<&'static str>,
    /// Instead of the plain CRD.
    pub definition: Option<Value>,
    /// Changes of the ClusterServiceVersion: pointers below existing objects, and the new values.
    pub changes: Vec<(&'static str, Value)>,
}

impl Bundle {
    /// Package `name`, which owns CRD `things.<name>.example.com`.
    pub fn new(name: &str, version: &str) -> Self {
        Bundle {
            package: name.into(),
            file: name.into(),
            version: version.into(),
            image: format!("registry.example.com/{name}:{version}"),
            modes: vec!["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"],
            group: format!("{name}.example.com"),
            kind: "Thing".into(),
            required: Vec::new(),
            extra: Vec::new(),
            cluster_rules: vec![json!({"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]})],
            rules: vec![json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]})],
            other_accounts: Vec::new(),
            definition: None,
            changes: Vec::new(),
        }
    }

    pub fn csv_name(&self) -> String {
        format!("{}.v{}", self.file, self.version)
    }

    pub fn crd_name(&self) -> String {
        format!("things.{}", self.group)
    }

    pub fn crd(&self) -> Value {
        if let Some(definition) = &self.definition {
            return definition.clone();
        }
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": self.crd_name()},
            "spec": {
                "group": self.group,
                "names": {"kind": self.kind, "listKind": format!("{}List", self.kind), "plural": "things", "singular": "thing"},
                "scope": "Namespaced",
                "versions": [{
                    "name": "v1",
                    "served": true,
                    "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                }],
            },
        })
    }

    pub fn csv(&self) -> Value {
        let mut csv = self.plain_csv();
        for (pointer, value) in &self.changes {
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            csv.pointer_mut(parent).unwrap()[key] = value.clone();
        }
        csv
    }

    /// The operator's Deployment, without a namespace, for the default service account.
    pub fn deployment(&self) -> Value {
        let deployment = &self.csv()["spec"]["install"]["spec"]["deployments"][0];
        let mut spec = deployment["spec"].clone();
        spec["template"]["spec"]["serviceAccountName"] = json!("default");
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": deployment["name"]}, "spec": spec})
    }

    fn plain_csv(&self) -> Value {
        let modes: Vec<Value> = ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"]
            .iter()
            .map(|mode| json!({"type": mode, "supported": self.modes.contains(mode)}))
            .collect();
        let labels = json!({"app": self.file});
        let account = format!("{}-account", self.file);
        let accounts = std::iter::once(account.as_str()).chain(self.other_accounts.iter().copied());
        let permissions: Vec<Value> = accounts
            .map(|account| json!({"serviceAccountName": account, "rules": self.rules}))
            .collect();
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1",
            "kind": "ClusterServiceVersion",
            "metadata": {"name": self.csv_name(), "namespace": "placeholder", "annotations": {"capabilities": "Basic Install"}},
            "spec": {
                "displayName": self.file,
                "version": self.version,
                "description": "An operator for tests.",
                "provider": {"name": "tests"},
                "installModes": modes,
                "customresourcedefinitions": {
                    "owned": [{"name": self.crd_name(), "version": "v1", "kind": self.kind, "displayName": "Thing", "description": "A thing."}],
                    "required": self.required,
                },
                "install": {"strategy": "deployment", "spec": {
                    "clusterPermissions": [{"serviceAccountName": account, "rules": self.cluster_rules}],
                    "permissions": permissions,
                    "deployments": [{"name": format!("{}-manager", self.file), "spec": {
                        "replicas": 1,
                        "selector": {"matchLabels": labels},
                        "template": {
                            "metadata": {"labels": labels},
                            "spec": {
                                "serviceAccountName": account,
                                "containers": [{"name": "manager", "image": self.image}],
                            },
                        },
                    }}],
                }},
            },
        })
    }

    /// Writes the bundle to `directory/<csv>`.
    pub fn write(&self, directory: &Path) -> PathBuf {
        let root = directory.join(self.csv_name());
        fs::create_dir_all(root.join("manifests")).unwrap();
        fs::create_dir_all(root.join("metadata")).unwrap();
        let write = |name: String, value: &Value| {
            fs::write(root.join("manifests").join(name), serde_yaml::to_string(value).unwrap()).unwrap()
        };
        write(format!("{}.clusterserviceversion.yaml", self.file), &self.csv());
        write(format!("{}.crd.yaml", self.crd_name()), &self.crd());
        for (index, object) in self.extra.iter().enumerate() {
            write(format!("extra-{index}.yaml"), object);
        }
        let annotations = json!({"annotations": {
            "operators.operatorframework.io.bundle.mediatype.v1": "registry+v1",
            "operators.operatorframework.io.bundle.manifests.v1": "manifests/",
            "operators.operatorframework.io.bundle.metadata.v1": "metadata/",
            "operators.operatorframework.io.bundle.package.v1": self.package,
            "operators.operatorframework.io.bundle.channels.v1": "alpha",
            "operators.operatorframework.io.bundle.channel.default.v1": "alpha",
        }});
        fs::write(
            root.join("metadata/annotations.yaml"),
            serde_yaml::to_string(&annotations).unwrap(),
        )
        .unwrap();
        root
    }
}
