//! Admission and conversion webhooks as `webhookdefinitions`. OLM creates the configurations, the Service and the
//! certificate itself from these entries.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::collect::{Collection, Webhook};
use super::typed::Typed;
use super::{Notice, Origin, Weight};
use crate::ports::target_ports;
use olmkit_base::limits;

const DEFAULT_PORT: i64 = 443;

/// The definitions for all webhooks of the input, sorted by name.
pub(super) fn definitions(found: &Collection, notices: &mut Vec<Notice>) -> Vec<Value> {
    let mut definitions = Vec::new();
    for hook in &found.validating {
        definitions.push(admission(found, hook, "ValidatingAdmissionWebhook", notices));
    }
    for hook in &found.mutating {
        definitions.push(admission(found, hook, "MutatingAdmissionWebhook", notices));
    }
    for service in &found.services {
        definitions.extend(conversions(found, service, notices));
    }
    definitions.sort_by(|one: &Value, other: &Value| name_of(one).cmp(name_of(other)));
    lost_conversions(found, notices);
    definitions
}

fn name_of(definition: &Value) -> &str {
    definition
        .get("generateName")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn admission(found: &Collection, hook: &Webhook, kind: &str, notices: &mut Vec<Notice>) -> Value {
    let text = |pointer: &str| hook.value.pointer(pointer).and_then(Value::as_str);
    let name = text("/name").unwrap_or_default();
    let mut definition = Map::new();
    definition.insert("type".into(), kind.into());
    definition.insert("generateName".into(), name.into());
    let mut copied = vec![
        "rules",
        "failurePolicy",
        "matchPolicy",
        "objectSelector",
        "timeoutSeconds",
    ];
    if kind == "MutatingAdmissionWebhook" {
        copied.push("reinvocationPolicy");
    }
    for field in copied {
        if let Some(value) = hook.value.get(field) {
            definition.insert(field.into(), value.clone());
        }
    }
    let versions = hook
        .value
        .get("admissionReviewVersions")
        .filter(|list| list.as_array().is_some_and(|l| !l.is_empty()));
    definition.insert(
        "admissionReviewVersions".into(),
        versions.cloned().unwrap_or_else(|| json!(["v1beta1"])),
    );
    definition.insert("sideEffects".into(), text("/sideEffects").unwrap_or("None").into());

    let mut notice = |weight: Weight, message: String, hint: &str| {
        notices.push(Notice {
            weight,
            origin: hook.configuration.document.origin.clone(),
            object: hook.configuration.document.object(),
            // It may name each of thousands of Deployments.
            message: limits::message(format!("webhook {name:?} {message}")),
            hint: hint.to_owned(),
        });
    };
    if let Some(reference) = hook.value.pointer("/clientConfig/service") {
        let service_name = reference.get("name").and_then(Value::as_str).unwrap_or_default();
        let service = service_of(found, reference);
        let port = reference.get("port").and_then(Value::as_i64).unwrap_or(DEFAULT_PORT);
        match service.map(|service| set_ports(&mut definition, service, port)) {
            Some(true) => {}
            Some(false) => notice(
                Weight::Warning,
                format!(
                    "calls port {port} of Service {service_name}, which has no such port: OLM does not know the container's port"
                ),
                "Add the port to the Service, or set clientConfig.service.port to one that it has.",
            ),
            None => notice(
                Weight::Warning,
                format!(
                    "calls Service {service_name}, which is not in the input: OLM does not know the container's port"
                ),
                "Add the Service to the input.",
            ),
        }
        let backend = service
            .filter(|service| selects(service))
            .map(|service| backend(found, service, port))
            .unwrap_or_default();
        if let Some((message, hint)) = backend.trouble(service_name) {
            notice(
                Weight::Warning,
                format!("calls Service {service_name}, {message}"),
                hint,
            );
        }
        definition.insert("deploymentName".into(), backend.name(service_name).into());
        if let Some(path) = reference.get("path") {
            definition.insert("webhookPath".into(), path.clone());
        }
    } else {
        notice(
            Weight::Loss,
            "calls a URL; OLM can only serve webhooks from a Deployment of the bundle".into(),
            "Serve it from one of the operator's Deployments, or install the configuration apart from the bundle.",
        );
    }
    if hook
        .value
        .get("namespaceSelector")
        .is_some_and(|selector| selector.as_object().is_some_and(|map| !map.is_empty()))
    {
        notice(
            Weight::Loss,
            "has a namespaceSelector; OLM sets its own, for the namespaces of the OperatorGroup".into(),
            "Select objects with objectSelector, or check the namespace in the webhook.",
        );
    }
    if hook
        .value
        .get("matchConditions")
        .is_some_and(|list| list.as_array().is_some_and(|list| !list.is_empty()))
    {
        notice(
            Weight::Loss,
            "has matchConditions; a ClusterServiceVersion has no place for them".into(),
            "Test the condition in the webhook.",
        );
    }
    Value::Object(definition)
}

/// The Service of a reference. If several namespaces have one of its name, the namespace decides.
fn service_of<'a>(found: &'a Collection, reference: &Value) -> Option<&'a Typed> {
    let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default();
    let mut named = found.services.iter().filter(|service| service.name() == text("name"));
    let exact = named.clone().find(|service| service.namespace() == text("namespace"));
    exact.or_else(|| named.next())
}

/// `containerPort` is the Service's port and `targetPort` that of the container; OLM creates a Service with both.
fn set_ports(definition: &mut Map<String, Value>, service: &Typed, wanted: i64) -> bool {
    for port in service.list("/spec/ports") {
        if port.get("port").and_then(Value::as_i64).unwrap_or(0) == wanted {
            definition.insert("containerPort".into(), wanted.into());
            definition.insert(
                "targetPort".into(),
                port.get("targetPort").cloned().unwrap_or_else(|| 0.into()),
            );
            return true;
        }
    }
    false
}

/// A Service that can select pods: one with a selector, not an alias of a DNS name.
fn selects(service: &Typed) -> bool {
    service.value.pointer("/spec/type").and_then(Value::as_str) != Some("ExternalName")
        && service
            .value
            .pointer("/spec/selector")
            .and_then(Value::as_object)
            .is_some_and(|map| !map.is_empty())
}

/// The Deployments that serve a port of a Service.
#[derive(Debug, Default)]
struct Backend {
    /// Names of the Deployments that have the target port, or of all that the Service selects if none has it.
    names: Vec<String>,
    /// The target port, if it is one that must be in the Deployment and is not.
    missing: Option<String>,
}

impl Backend {
    /// The name of the Deployment that serves the webhook. operator-sdk takes the first one without regard to its ports.
    fn name(&self, service: &str) -> String {
        self.names.first().cloned().unwrap_or_else(|| guessed(service))
    }

    /// The reason why the webhook may not be served, and the fix.
    fn trouble(&self, service: &str) -> Option<(String, &'static str)> {
        let name = self.name(service);
        if self.names.is_empty() {
            return Some((
                format!("which selects no Deployment of the input: the name {name:?} is guessed"),
                "OLM needs the Deployment that answers; give its pods the labels that the Service selects.",
            ));
        }
        if let Some(port) = &self.missing {
            return Some((
                format!("whose target port {port:?} no container of Deployment {name} has"),
                "Give the container that serves the webhook a port with this name.",
            ));
        }
        (self.names.len() > 1).then(|| {
            (
                format!(
                    "which selects several Deployments ({}): the first one is used",
                    self.names.join(", ")
                ),
                "Give the pods that serve the webhook a unique label, and select it.",
            )
        })
    }
}

/// The Deployments whose pods have all the labels that the Service selects, and of these the ones with the target port. A port
/// with a name must be in a container, a number need not be.
fn backend(found: &Collection, service: &Typed, port: i64) -> Backend {
    let empty = Map::new();
    let selector = service
        .value
        .pointer("/spec/selector")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    let selected: Vec<&Typed> = found
        .deployments
        .iter()
        .filter(|deployment| {
            let labels = deployment
                .value
                .pointer("/spec/template/metadata/labels")
                .and_then(Value::as_object);
            labels.is_some_and(|labels| {
                !labels.is_empty() && selector.iter().all(|(key, value)| labels.get(key) == Some(value))
            })
        })
        .filter(|deployment| !deployment.name().is_empty())
        .collect();
    let names = |list: &[&Typed]| list.iter().map(|deployment| deployment.name().to_owned()).collect();
    let Some(target) = target_port(service, port) else {
        return Backend {
            names: names(&selected),
            missing: None,
        };
    };
    let with_port: Vec<&Typed> = selected
        .iter()
        .copied()
        .filter(|deployment| has_port(&deployment.value, &target))
        .collect();
    if with_port.is_empty() {
        return Backend {
            names: names(&selected),
            missing: target.as_str().map(str::to_owned),
        };
    }
    Backend {
        names: names(&with_port),
        missing: None,
    }
}

/// The target of a Service's port: a container port's name or number.
fn target_port(service: &Typed, port: i64) -> Option<Value> {
    let mut ports = service.list("/spec/ports").iter();
    let found = ports.find(|found| found.get("port").and_then(Value::as_i64) == Some(port))?;
    let target = found.get("targetPort").filter(|target| target.as_i64() != Some(0));
    Some(target.cloned().unwrap_or_else(|| port.into()))
}

fn has_port(deployment: &Value, target: &Value) -> bool {
    let pod = deployment.pointer("/spec/template/spec").unwrap_or(&Value::Null);
    target_ports(pod).any(|port| port.get("name") == Some(target) || port.get("containerPort") == Some(target))
}

fn guessed(service: &str) -> String {
    service.strip_suffix("-service").unwrap_or(service).to_owned()
}

/// A definition's conversion through a webhook: the reference to the Service, and the review versions.
fn conversion(definition: &Typed) -> Option<(&Value, Value)> {
    let conversion = definition.value.pointer("/spec/conversion")?;
    let beta = definition.document.group_version().1 == "v1beta1";
    let (reference, versions) = if beta {
        (
            conversion.pointer("/webhookClientConfig/service")?,
            conversion.get("conversionReviewVersions"),
        )
    } else {
        let webhook = conversion.get("webhook")?;
        (
            webhook.pointer("/clientConfig/service")?,
            webhook.get("conversionReviewVersions"),
        )
    };
    Some((reference, versions.cloned().unwrap_or(Value::Null)))
}

/// One definition for each port and path of a Service that definitions convert through. Definitions that name a port
/// are kept apart, as in operator-sdk, which compares the ports by address.
fn conversions(found: &Collection, service: &Typed, notices: &mut Vec<Notice>) -> Vec<Value> {
    type Key = (Option<(usize, i64)>, String);
    let mut groups: BTreeMap<Key, Vec<(&Typed, Value)>> = BTreeMap::new();
    if service.name().is_empty() {
        return Vec::new();
    }
    for (at, definition) in found.definitions.iter().enumerate() {
        let Some((reference, versions)) = conversion(definition) else {
            continue;
        };
        let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default();
        if text("name") != service.name()
            || !service_of(found, reference).is_some_and(|found| std::ptr::eq(found, service))
        {
            continue;
        }
        let beta = definition.document.group_version().1 == "v1beta1";
        let port = reference.get("port").and_then(Value::as_i64).filter(|_| !beta);
        let key = (port.map(|port| (at, port)), text("path").to_owned());
        groups.entry(key).or_default().push((definition, versions));
    }
    groups
        .into_iter()
        .map(|((port, path), mut definitions)| {
            definitions.sort_by_key(|(definition, _)| definition.name());
            let names: Vec<&str> = definitions.iter().map(|(definition, _)| definition.name()).collect();
            let versions = definitions
                .first()
                .map(|(_, versions)| versions.clone())
                .unwrap_or(Value::Null);
            let first_parts: String = names.iter().filter_map(|name| name.split('.').next()).collect();
            let port = port.map_or(DEFAULT_PORT, |(_, port)| port);
            let mut entry = Map::new();
            entry.insert("type".into(), "ConversionWebhook".into());
            entry.insert("conversionCRDs".into(), json!(names));
            entry.insert("admissionReviewVersions".into(), versions);
            entry.insert("webhookPath".into(), path.into());
            entry.insert("generateName".into(), format!("c{first_parts}.kb.io").into());
            entry.insert("sideEffects".into(), "None".into());
            let known_port = set_ports(&mut entry, service, port);
            let backend = backend(found, service, port);
            for (definition, _) in definitions.iter().filter(|(definition, _)| is_converted(definition)) {
                if !known_port {
                    notices.push(definition.notice(
                        Weight::Loss,
                        format!(
                            "converts through port {port} of Service {}, which has no such port: OLM does not know the \
                             container's port and will not serve the conversion",
                            service.name()
                        ),
                        "Add the port to the Service, or set spec.conversion.webhook.clientConfig.service.port to one that it has.",
                    ));
                } else if let Some((message, hint)) = backend.trouble(service.name()) {
                    notices.push(definition.notice(
                        Weight::Warning,
                        format!("converts through Service {}, {message}", service.name()),
                        hint,
                    ));
                }
            }
            entry.insert("deploymentName".into(), backend.name(service.name()).into());
            Value::Object(entry)
        })
        .collect()
}

/// Returns true if the API server ever calls the webhook: objects of one version need no conversion.
fn is_converted(definition: &Typed) -> bool {
    let strategy = definition.value.pointer("/spec/conversion/strategy");
    strategy.and_then(Value::as_str) == Some("Webhook") && definition.list("/spec/versions").len() > 1
}

/// Conversions whose Service is not in the input have no definition at all.
fn lost_conversions(found: &Collection, notices: &mut Vec<Notice>) {
    for definition in &found.definitions {
        if !is_converted(definition) {
            continue;
        }
        let service = conversion(definition)
            .and_then(|(reference, _)| reference.get("name"))
            .and_then(Value::as_str);
        match service {
            Some(name) if found.services.iter().any(|service| service.name() == name) => {}
            Some(name) => notices.push(definition.notice(
                Weight::Loss,
                format!(
                    "converts through Service {name}, which is not in the input: OLM will not serve the conversion"
                ),
                "Add the Service to the input.",
            )),
            None => notices.push(definition.notice(
                Weight::Loss,
                "converts through a URL; OLM can only serve conversions from a Deployment of the bundle",
                "Refer to a Service in front of one of the operator's Deployments.",
            )),
        }
    }
}

/// Positions of webhooks, for the removal of their certificates.
pub(super) fn origins(found: &Collection) -> Vec<Origin> {
    found
        .validating
        .iter()
        .chain(&found.mutating)
        .map(|hook| hook.configuration.document.origin.clone())
        .collect()
}
