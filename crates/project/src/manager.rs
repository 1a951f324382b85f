//! The Deployment that runs the operator.

use olmkit_base::object::SetAt as _;
use serde_json::{Value, json};

use super::{Project, webhooks};

/// An environment variable of the manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Env {
    /// A plain value.
    Value(String),
    /// A field of the pod, `metadata.namespace`.
    Field(String),
}

/// Start options of the operator's process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manager {
    args: Vec<String>,
    env: Vec<(String, Env)>,
    ports: Vec<(String, u16)>,
    probe_port: u16,
    requests: (String, String),
    limits: (String, String),
    replicas: i32,
    termination_grace_period_seconds: i64,
}

impl Default for Manager {
    /// One replica, probes on 8081, little CPU and memory.
    fn default() -> Self {
        Self {
            args: Vec::new(),
            env: Vec::new(),
            ports: Vec::new(),
            probe_port: 8081,
            requests: ("10m".into(), "32Mi".into()),
            limits: ("500m".into(), "128Mi".into()),
            replicas: 1,
            termination_grace_period_seconds: 10,
        }
    }
}

impl Manager {
    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<String>) -> Self {
        self.args.push(argument.into());
        self
    }

    /// Adds an environment variable. Images of operands belong into variables that start with `RELATED_IMAGE_`: they
    /// become `spec.relatedImages`, which mirrors for clusters without internet read.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.push((name.to_owned(), Env::Value(value.into())));
        self
    }

    /// Adds an environment variable with a field of the pod.
    #[must_use]
    pub fn env_from_field(mut self, name: &str, field: &str) -> Self {
        self.env.push((name.to_owned(), Env::Field(field.to_owned())));
        self
    }

    /// Adds a port.
    #[must_use]
    pub fn port(mut self, name: &str, port: u16) -> Self {
        self.ports.push((name.to_owned(), port));
        self
    }

    /// The port that answers `/healthz` and `/readyz`.
    #[must_use]
    pub fn probe_port(mut self, port: u16) -> Self {
        self.probe_port = port;
        self
    }

    /// CPU and memory that are set aside.
    #[must_use]
    pub fn requests(mut self, cpu: &str, memory: &str) -> Self {
        self.requests = (cpu.to_owned(), memory.to_owned());
        self
    }

    /// Maximum CPU and memory.
    #[must_use]
    pub fn limits(mut self, cpu: &str, memory: &str) -> Self {
        self.limits = (cpu.to_owned(), memory.to_owned());
        self
    }

    /// Seconds between the signal to stop and the end by force.
    #[must_use]
    pub fn termination_grace_period_seconds(mut self, seconds: i64) -> Self {
        self.termination_grace_period_seconds = seconds;
        self
    }

    /// The Deployment.
    pub(crate) fn deployment(&self, project: &Project) -> Value {
        let selector = project.selector();
        let mut labels = project.labels();
        labels.insert("control-plane".into(), "controller-manager".into());
        let probe = |path: &str, delay: i32, period: i32| {
            json!({
                "httpGet": {"path": path, "port": self.probe_port},
                "initialDelaySeconds": delay,
                "periodSeconds": period,
            })
        };
        let mut container = json!({
            "name": "manager",
            "image": project.image,
            "livenessProbe": probe("/healthz", 15, 20),
            "readinessProbe": probe("/readyz", 2, 5),
            "resources": {
                "limits": {"cpu": self.limits.0, "memory": self.limits.1},
                "requests": {"cpu": self.requests.0, "memory": self.requests.1},
            },
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "capabilities": {"drop": ["ALL"]},
                "readOnlyRootFilesystem": true,
            },
        });
        if !self.args.is_empty() {
            container.set_at(&["args"], json!(self.args));
        }
        if !self.env.is_empty() {
            container.set_at(&["env"], self.env.iter().map(variable).collect());
        }
        let mut ports: Vec<Value> = std::iter::once(("probes", self.probe_port))
            .chain(self.ports.iter().map(|(name, port)| (name.as_str(), *port)))
            .map(|(name, port)| json!({"containerPort": port, "name": name, "protocol": "TCP"}))
            .collect();
        let webhooks = webhooks::pod_parts(project);
        if let Some((_, mount, port)) = &webhooks {
            ports.push(port.clone());
            container.set_at(&["volumeMounts"], json!([mount]));
        }
        container.set_at(&["ports"], Value::Array(ports));
        let mut deployment = json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {
                "name": format!("{}-controller-manager", project.name),
                "namespace": project.namespace,
                "labels": labels,
            },
            "spec": {
                "replicas": self.replicas,
                "selector": {"matchLabels": selector},
                "template": {
                    "metadata": {
                        "annotations": {"kubectl.kubernetes.io/default-container": "manager"},
                        "labels": selector,
                    },
                    "spec": {
                        "containers": [container],
                        "securityContext": {
                            "runAsNonRoot": true,
                            "seccompProfile": {"type": "RuntimeDefault"},
                        },
                        "serviceAccountName": project.account_name(),
                        "terminationGracePeriodSeconds": self.termination_grace_period_seconds,
                    },
                },
            },
        });
        if let Some((volume, ..)) = webhooks {
            deployment.set_at(&["spec", "template", "spec", "volumes"], json!([volume]));
        }
        deployment
    }
}

fn variable((name, value): &(String, Env)) -> Value {
    match value {
        Env::Value(value) => json!({"name": name, "value": value}),
        Env::Field(field) => json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": field}}}),
    }
}
