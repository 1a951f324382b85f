//! Webhooks: a Service for each Deployment that answers them, the configurations of admission, and the conversion of definitions.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use olmkit_base::object::SetAt as _;

use super::{Plan, Style, certificates, text};

/// Why the bundle's webhooks cannot convert a CRD.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConversionError {
    /// Two webhooks claim to convert it.
    #[error("custom resource definition '{0}' is referenced by multiple conversion webhook definitions")]
    Twice(String),
    /// It keeps unknown fields, so the API server would not call the webhook.
    #[error(
        "custom resource definition '{0}' must have .spec.preserveUnknownFields set to false to let API Server call webhook to \
         do the conversion"
    )]
    KeepsUnknownFields(String),
}

/// Kinds of admission webhooks: their type in a ClusterServiceVersion, and the kind of the configuration.
const VALIDATING: (&str, &str) = ("ValidatingAdmissionWebhook", "ValidatingWebhookConfiguration");
const MUTATING: (&str, &str) = ("MutatingAdmissionWebhook", "MutatingWebhookConfiguration");

/// Fields that a configuration copies unchanged from the ClusterServiceVersion.
const COPIED: [&str; 7] = [
    "admissionReviewVersions",
    "failurePolicy",
    "matchPolicy",
    "objectSelector",
    "rules",
    "sideEffects",
    "timeoutSeconds",
];

/// The port of a webhook that names none.
const DEFAULT_PORT: i64 = 443;

fn port(definition: &Value) -> i64 {
    definition
        .get("containerPort")
        .and_then(Value::as_i64)
        .unwrap_or_default()
}

impl<'a> Plan<'a> {
    /// Names of the Deployments that answer webhooks.
    #[must_use]
    pub fn webhook_deployments(&self) -> BTreeSet<&'a str> {
        let definitions = self.webhook_definitions().iter();
        definitions
            .map(|definition| text(definition, "deploymentName"))
            .collect()
    }

    fn client(&self, definition: &Value, path: Option<Value>) -> Value {
        let port = match port(definition) {
            port if port > 0 || self.style == Style::OlmV1 => port,
            _ => DEFAULT_PORT,
        };
        let service = certificates::names(text(definition, "deploymentName")).service;
        let mut reference = json!({"name": service, "namespace": self.namespace, "port": port});
        if let Some(path) = path {
            reference.set_at(&["path"], path);
        }
        json!({ "service": reference })
    }

    /// The definitions. Those that webhooks of the bundle convert point at them.
    ///
    /// # Errors
    /// A definition that no webhook can convert.
    pub fn definitions<'v>(
        &self,
        definitions: impl IntoIterator<Item = &'v Value>,
    ) -> Result<Vec<Value>, ConversionError> {
        let mut webhooks: BTreeMap<&str, &Value> = BTreeMap::new();
        let conversions = self.webhook_definitions().iter();
        for webhook in conversions.filter(|webhook| text(webhook, "type") == "ConversionWebhook") {
            let names = webhook.get("conversionCRDs").and_then(Value::as_array);
            for name in names.into_iter().flatten().filter_map(Value::as_str) {
                if webhooks.insert(name, webhook).is_some() {
                    return Err(ConversionError::Twice(name.to_owned()));
                }
            }
        }
        let definitions = definitions.into_iter();
        definitions
            .map(|definition| match webhooks.get(name(definition)) {
                Some(webhook) => self.converted(definition, webhook),
                None => Ok(definition.clone()),
            })
            .collect()
    }

    fn converted(&self, definition: &Value, webhook: &Value) -> Result<Value, ConversionError> {
        if definition.pointer("/spec/preserveUnknownFields") == Some(&Value::Bool(true)) {
            return Err(ConversionError::KeepsUnknownFields(name(definition).to_owned()));
        }
        let mut definition = definition.clone();
        let path = webhook.get("webhookPath").cloned().unwrap_or_else(|| "/".into());
        let conversion = json!({
            "strategy": "Webhook",
            "webhook": {
                "clientConfig": self.client(webhook, Some(path)),
                "conversionReviewVersions": webhook.get("admissionReviewVersions").cloned().unwrap_or_else(|| json!([])),
            },
        });
        definition.set_at(&["spec", "conversion"], conversion);
        self.inject_authority(&mut definition, text(webhook, "deploymentName"));
        Ok(definition)
    }

    /// The configurations of validating webhooks.
    #[must_use]
    pub fn validating_webhooks(&self) -> Vec<Value> {
        self.admission_webhooks(VALIDATING)
    }

    /// The configurations of mutating webhooks.
    #[must_use]
    pub fn mutating_webhooks(&self) -> Vec<Value> {
        self.admission_webhooks(MUTATING)
    }

    fn admission_webhooks(&self, (kind, configuration): (&str, &str)) -> Vec<Value> {
        let definitions = self.webhook_definitions().iter();
        let of_kind = definitions.filter(|definition| text(definition, "type") == kind);
        of_kind
            .map(|definition| {
                let name = text(definition, "generateName");
                let name = name.strip_suffix('-').unwrap_or(name);
                let mut webhook = Map::new();
                let reinvocation = (kind == MUTATING.0).then_some("reinvocationPolicy");
                for field in COPIED.into_iter().chain(reinvocation) {
                    if let Some(value) = definition.get(field) {
                        webhook.insert(field.into(), value.clone());
                    }
                }
                webhook.insert("name".into(), name.into());
                let path = definition.get("webhookPath").cloned();
                webhook.insert("clientConfig".into(), self.client(definition, path));
                if !self.watched.is_empty() {
                    let expression =
                        json!({"key": "kubernetes.io/metadata.name", "operator": "In", "values": self.watched});
                    webhook.insert("namespaceSelector".into(), json!({"matchExpressions": [expression]}));
                }
                let mut object = json!({
                    "apiVersion": "admissionregistration.k8s.io/v1",
                    "kind": configuration,
                    "metadata": {"name": name},
                    "webhooks": [webhook],
                });
                self.inject_authority(&mut object, text(definition, "deploymentName"));
                object
            })
            .collect()
    }

    /// A Service for each Deployment that answers webhooks.
    #[must_use]
    pub fn webhook_services(&self) -> Vec<Value> {
        let mut answering: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
        for definition in self.webhook_definitions() {
            let deployment = text(definition, "deploymentName");
            answering.entry(deployment).or_default().push(definition);
        }
        let mut services = Vec::new();
        for entry in self.deployment_specs() {
            let deployment = text(entry, "name");
            // If two Deployments have the same name, the first one counts: they have one Service.
            let Some(definitions) = answering.remove(deployment) else {
                continue;
            };
            let mut spec = json!({"ports": ports(&definitions)});
            if let Some(selector) = entry.pointer("/spec/selector/matchLabels") {
                spec.set_at(&["selector"], selector.clone());
            }
            let mut service = json!({
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": certificates::names(deployment).service, "namespace": self.namespace},
                "spec": spec,
            });
            self.request_certificate(&mut service, deployment);
            services.push(service);
        }
        services
    }
}

/// The ports of a Service, each once.
fn ports(definitions: &[&Value]) -> Vec<Value> {
    let mut ports: BTreeMap<(i64, i64), Vec<Value>> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for definition in definitions {
        let port = match port(definition) {
            port if port > 0 => port,
            _ => DEFAULT_PORT,
        };
        let target = definition.get("targetPort").cloned().unwrap_or_else(|| port.into());
        if !seen.insert((port, target.to_string())) {
            continue;
        }
        // The rules of Go's IntOrString for a name.
        let number = target
            .as_i64()
            .or_else(|| target.as_str()?.parse().ok())
            .unwrap_or_default();
        let entry = json!({"name": port.to_string(), "port": port, "targetPort": target});
        ports.entry((port, number)).or_default().push(entry);
    }
    ports.into_values().flatten().collect()
}

fn name(object: &Value) -> &str {
    object.get("metadata").map_or("", |metadata| text(metadata, "name"))
}
