//! Webhooks without OLM: a Service for each Deployment that answers, the configurations, and cert-manager's objects for the
//! certificate that OLM would make.

use crate::object::SetAt as _;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::Target;

/// Where OLM mounts the certificate, and where operators look for it.
const CERTIFICATES: &str = "/tmp/k8s-webhook-server/serving-certs";
const VOLUME: &str = "webhook-cert";

fn definitions(csv: &Value) -> impl Iterator<Item = &Value> {
    csv.pointer("/spec/webhookdefinitions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Names of the Deployments that answer webhooks.
pub(super) fn served_by(csv: &Value) -> BTreeSet<&str> {
    definitions(csv)
        .map(|definition| text(definition, "deploymentName"))
        .filter(|name| !name.is_empty())
        .collect()
}

/// OLM's name for the Service in front of a Deployment.
fn service_name(deployment: &str) -> String {
    format!("{}-service", deployment.replace('.', "-"))
}

fn secret_name(deployment: &str) -> String {
    format!("{}-cert", service_name(deployment))
}

fn port(definition: &Value) -> i64 {
    definition
        .get("containerPort")
        .and_then(Value::as_i64)
        .filter(|port| *port > 0)
        .unwrap_or(443)
}

/// Services, certificates and configurations.
pub(super) fn objects(csv: &Value, target: &Target) -> Vec<Value> {
    let deployments = served_by(csv);
    if deployments.is_empty() {
        return Vec::new();
    }
    let namespace = &target.namespace;
    let issuer = "selfsigned-issuer";
    let mut objects = vec![json!({
        "apiVersion": "cert-manager.io/v1",
        "kind": "Issuer",
        "metadata": {"name": issuer, "namespace": namespace},
        "spec": {"selfSigned": {}},
    })];
    for deployment in deployments {
        let service = service_name(deployment);
        objects.push(json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": service, "namespace": namespace},
            "spec": {"ports": ports(csv, deployment), "selector": selector(csv, deployment)},
        }));
        objects.push(json!({
            "apiVersion": "cert-manager.io/v1",
            "kind": "Certificate",
            "metadata": {"name": service, "namespace": namespace},
            "spec": {
                "dnsNames": [
                    format!("{service}.{namespace}.svc"),
                    format!("{service}.{namespace}.svc.cluster.local"),
                ],
                "issuerRef": {"kind": "Issuer", "name": issuer},
                "secretName": secret_name(deployment),
            },
        }));
    }
    for (kind, configuration) in [
        ("ValidatingAdmissionWebhook", "ValidatingWebhookConfiguration"),
        ("MutatingAdmissionWebhook", "MutatingWebhookConfiguration"),
    ] {
        for definition in definitions(csv).filter(|definition| text(definition, "type") == kind) {
            objects.push(admission(definition, configuration, target));
        }
    }
    objects
}

fn admission(definition: &Value, configuration: &str, target: &Target) -> Value {
    let mut webhook = Map::new();
    for field in [
        "admissionReviewVersions",
        "failurePolicy",
        "matchPolicy",
        "objectSelector",
        "reinvocationPolicy",
        "rules",
        "sideEffects",
        "timeoutSeconds",
    ] {
        if let Some(value) = definition.get(field) {
            webhook.insert(field.into(), value.clone());
        }
    }
    let name = text(definition, "generateName");
    let service = service_name(text(definition, "deploymentName"));
    webhook.insert("name".into(), name.into());
    webhook.insert("clientConfig".into(), client(definition, &service, target));
    // The namespaces that OLM would select by the OperatorGroup.
    if !target.watched.is_empty() {
        let expression = json!({"key": "kubernetes.io/metadata.name", "operator": "In", "values": target.watched});
        webhook.insert("namespaceSelector".into(), json!({"matchExpressions": [expression]}));
    }
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": configuration,
        "metadata": {
            "name": name,
            "annotations": {"cert-manager.io/inject-ca-from": format!("{}/{service}", target.namespace)},
        },
        "webhooks": [webhook],
    })
}

fn client(definition: &Value, service: &str, target: &Target) -> Value {
    let mut reference = json!({"name": service, "namespace": target.namespace, "port": port(definition)});
    if let Some(path) = definition.get("webhookPath") {
        reference.set_at(&["path"], path.clone());
    }
    json!({ "service": reference })
}

fn ports(csv: &Value, deployment: &str) -> Vec<Value> {
    let mut ports: BTreeMap<i64, Value> = BTreeMap::new();
    for definition in definitions(csv).filter(|definition| text(definition, "deploymentName") == deployment) {
        let port = port(definition);
        let to = definition
            .get("targetPort")
            .filter(|to| **to != json!(0))
            .cloned()
            .unwrap_or_else(|| port.into());
        ports.insert(
            port,
            json!({"name": port.to_string(), "port": port, "protocol": "TCP", "targetPort": to}),
        );
    }
    ports.into_values().collect()
}

fn selector(csv: &Value, deployment: &str) -> Value {
    csv.pointer("/spec/install/spec/deployments")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .find(|entry| text(entry, "name") == deployment)
        .and_then(|entry| entry.pointer("/spec/selector/matchLabels"))
        .cloned()
        .unwrap_or_else(|| json!({}))
}

/// Points the conversion of a definition at the Service, when the CSV says that the operator converts it.
pub(super) fn convert(definition: &mut Value, csv: &Value, target: &Target) {
    let name = definition
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let Some(webhook) = definitions(csv).find(|webhook| {
        text(webhook, "type") == "ConversionWebhook"
            && webhook
                .get("conversionCRDs")
                .and_then(Value::as_array)
                .is_some_and(|crds| crds.contains(&json!(name)))
    }) else {
        return;
    };
    let service = service_name(text(webhook, "deploymentName"));
    definition.set_at(&["spec", "conversion"], json!({
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": client(webhook, &service, target),
            "conversionReviewVersions": webhook.get("admissionReviewVersions").cloned().unwrap_or_else(|| json!(["v1"])),
        },
    }));
    let certificate = format!("{}/{service}", target.namespace);
    definition.set_at(
        &["metadata", "annotations", "cert-manager.io/inject-ca-from"],
        certificate.into(),
    );
}

/// Mounts the certificate into every container, as OLM does; a mount that is there already gives way.
pub(super) fn mount(template: &mut Value, deployment: &str) {
    let pod = &mut template["spec"];
    let volume = json!({"name": VOLUME, "secret": {"defaultMode": 420, "secretName": secret_name(deployment)}});
    push(&mut pod["volumes"], volume, |own| text(own, "name") == VOLUME);
    for field in ["containers", "initContainers"] {
        for container in pod.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten() {
            let mount = json!({"mountPath": CERTIFICATES, "name": VOLUME});
            push(&mut container["volumeMounts"], mount, |own| {
                text(own, "name") == VOLUME || text(own, "mountPath").trim_end_matches('/') == CERTIFICATES
            });
        }
    }
}

fn push(list: &mut Value, item: Value, replaced: impl Fn(&Value) -> bool) {
    match list {
        Value::Array(items) => {
            items.retain(|own| !replaced(own));
            items.push(item);
        }
        _ => *list = Value::Array(vec![item]),
    }
}
