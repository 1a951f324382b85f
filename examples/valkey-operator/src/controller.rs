//! Reconciles `Valkey` objects.
use k8s_openapi::api::{
    apps::v1::StatefulSet,
    batch::v1::CronJob,
    core::v1::{ConfigMap, PersistentVolumeClaim, Secret, Service},
    networking::v1::NetworkPolicy,
    policy::v1::PodDisruptionBudget,
};
use kube::{
    ResourceExt as _,
    api::{DeleteParams, ListParams},
};
use kube_manager::{
    drift::fingerprint,
    names,
    reconcile::{Context, Controller, Error, Grant, Outcome, Reconciler, Scope, object},
};
use serde_json::{Value, json};

use crate::api::{Valkey, ValkeyStatus};

const PORT: i32 = 6379;

/// The reconciler.
pub struct ValkeyReconciler;

/// Declares the operator.
pub fn controller() -> Controller<ValkeyReconciler> {
    Controller::new("valkey", ValkeyReconciler)
        .owns::<ConfigMap>("holds valkey.conf")
        .owns::<Secret>("contains the generated password")
        .owns::<Service>("gives the servers their addresses")
        .owns::<StatefulSet>("runs the servers")
        .owns::<PodDisruptionBudget>("keeps all but one of several servers running")
        .owns::<NetworkPolicy>("lets clients reach the server's port only")
        .owns::<CronJob>("saves the data")
        .secrets("reads the password", |valkey: &Valkey| vec![password_secret(valkey)])
        .needs(Grant::of::<PersistentVolumeClaim>(
            Scope::Watched,
            ["deletecollection"],
            "deletes volumes",
        ))
        .finalizer("cache.example.com/finalizer")
}

impl Reconciler for ValkeyReconciler {
    type Object = Valkey;

    async fn reconcile(&self, valkey: &Valkey, context: &Context<Valkey>) -> Result<Outcome, Error> {
        let (name, spec) = (valkey.name_any(), &valkey.spec);
        if spec.paused {
            return Ok(Outcome::paused("spec.paused is true"));
        }
        let image = match &spec.image {
            Some(image) => image.clone(),
            None => context.env("RELATED_IMAGE_VALKEY")?,
        };
        let password = password(valkey, context).await?.metadata.resource_version;
        let config = config(valkey)?;
        // The pods restart when one of these changes.
        let content = fingerprint(&json!([config, password]));
        context.apply(config).await?;
        context.apply(service(valkey, true)?).await?;
        context.apply(service(valkey, false)?).await?;
        context.apply(policy(valkey)?).await?;
        let set = stateful_set(valkey, &image, &content)?;
        let set = context.apply_keeping(set, &[".spec.volumeClaimTemplates"]).await?;
        if spec.replicas > 1 {
            context.apply(budget(valkey)?).await?;
        }
        if let Some(schedule) = &spec.backup_schedule {
            context.apply(backup(valkey, &image, schedule)?).await?;
        }
        let ready = set.status.iter().find_map(|status| status.ready_replicas).unwrap_or(0);
        let host = |name: String| format!("{name}.{}.svc:{PORT}", valkey.namespace().unwrap_or_default());
        let pods = (0..spec.replicas).map(|pod| host(format!("{name}-{pod}.{name}-headless")));
        let status = ValkeyStatus {
            endpoints: std::iter::once(host(name.clone())).chain(pods).collect(),
            ready_replicas: ready,
            password_secret: password_secret(valkey),
            ..ValkeyStatus::default()
        };
        let message = format!("{ready} of {} pods are ready", spec.replicas);
        Ok(Outcome::from(&set).available(ready > 0, message).status(status))
    }

    async fn cleanup(&self, valkey: &Valkey, context: &Context<Valkey>) -> Result<Outcome, Error> {
        let instance = names::label(&valkey.name_any());
        let ours = format!("app.kubernetes.io/name=valkey,app.kubernetes.io/instance={instance}");
        let claims = context.api::<PersistentVolumeClaim>()?;
        let ours = ListParams::default().labels(&ours);
        claims.delete_collection(&DeleteParams::default(), &ours).await?;
        Ok(Outcome::ready())
    }
}

/// The user's Secret, or one with a generated password.
async fn password(valkey: &Valkey, context: &Context<Valkey>) -> Result<Secret, Error> {
    let name = password_secret(valkey);
    if valkey.spec.password_secret.is_some() {
        let given = context.secret(&name).await?;
        let given = given.filter(|secret| secret.data.iter().any(|data| data.contains_key("password")));
        let missing = || Error::new("PasswordMissing", format!("create Secret {name} with the key password"));
        return given.as_deref().cloned().ok_or_else(missing);
    }
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| Error::new("NoRandomness", error.to_string()))?;
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let secret: Secret = object(json!({ "immutable": true, "stringData": { "password": text } }))?;
    Ok(context.create_once(&name, || secret).await?.into_inner())
}

fn password_secret(valkey: &Valkey) -> String {
    let generated = || names::child(&valkey.name_any(), "password");
    valkey.spec.password_secret.clone().unwrap_or_else(generated)
}

fn labels(valkey: &Valkey) -> Value {
    json!({ "app.kubernetes.io/name": "valkey", "app.kubernetes.io/instance": names::label(&valkey.name_any()) })
}

fn config(valkey: &Valkey) -> Result<ConfigMap, Error> {
    let lines = valkey.spec.parameters.iter();
    let lines: String = lines.map(|(key, value)| format!("{key} {value}\n")).collect();
    object(json!({
        "metadata": { "name": format!("{}-config", valkey.name_any()) },
        "data": { "valkey.conf": format!("{lines}port {PORT}\ndir /data\n") },
    }))
}

fn service(valkey: &Valkey, headless: bool) -> Result<Service, Error> {
    let name = valkey.name_any();
    object(json!({
        "metadata": { "name": if headless { format!("{name}-headless") } else { name } },
        "spec": {
            "clusterIP": headless.then_some("None"),
            "publishNotReadyAddresses": headless.then_some(true),
            "selector": labels(valkey),
            "ports": [{ "name": "valkey", "port": PORT, "targetPort": "valkey" }],
        },
    }))
}

fn policy(valkey: &Valkey) -> Result<NetworkPolicy, Error> {
    object(json!({
        "metadata": { "name": valkey.name_any() },
        "spec": {
            "podSelector": { "matchLabels": labels(valkey) },
            "ingress": [{ "ports": [{ "port": PORT, "protocol": "TCP" }] }],
            "policyTypes": ["Ingress"],
        },
    }))
}

fn budget(valkey: &Valkey) -> Result<PodDisruptionBudget, Error> {
    object(json!({
        "metadata": { "name": valkey.name_any() },
        "spec": { "maxUnavailable": 1, "selector": { "matchLabels": labels(valkey) } },
    }))
}

fn container(valkey: &Valkey, image: &str, command: &str) -> Value {
    let secret = json!({ "name": password_secret(valkey), "key": "password" });
    json!({
        "name": "valkey",
        "image": image,
        "command": ["sh", "-c", command],
        "env": [{ "name": "PASSWORD", "valueFrom": { "secretKeyRef": secret } }],
        "securityContext": { "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } },
    })
}

fn pod_security() -> Value {
    json!({ "runAsNonRoot": true, "runAsUser": 999, "fsGroup": 999, "seccompProfile": { "type": "RuntimeDefault" } })
}

fn stateful_set(valkey: &Valkey, image: &str, content: &str) -> Result<StatefulSet, Error> {
    let (name, spec) = (valkey.name_any(), &valkey.spec);
    let start = "exec valkey-server /etc/valkey/valkey.conf --requirepass \"$PASSWORD\"";
    let mut container = container(valkey, image, start);
    let mount = |name: &str, path: &str| json!({ "name": name, "mountPath": path });
    let more = json!({
        "ports": [{ "name": "valkey", "containerPort": PORT }],
        "resources": spec.resources,
        "readinessProbe": { "tcpSocket": { "port": "valkey" } },
        "volumeMounts": [mount("data", "/data"), mount("config", "/etc/valkey")],
    });
    if let (Some(fields), Value::Object(more)) = (container.as_object_mut(), more) {
        fields.extend(more);
    }
    object(json!({
        "metadata": { "name": name },
        "spec": {
            "replicas": spec.replicas,
            "serviceName": format!("{name}-headless"),
            "podManagementPolicy": "Parallel",
            "selector": { "matchLabels": labels(valkey) },
            "template": {
                "metadata": { "labels": labels(valkey), "annotations": { "cache.example.com/content": content } },
                "spec": {
                    "securityContext": pod_security(),
                    "containers": [container],
                    "volumes": [{ "name": "config", "configMap": { "name": format!("{name}-config") } }],
                },
            },
            "volumeClaimTemplates": [{
                "metadata": { "name": "data", "labels": labels(valkey) },
                "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": spec.storage } } },
            }],
        },
    }))
}

fn backup(valkey: &Valkey, image: &str, schedule: &str) -> Result<CronJob, Error> {
    let name = valkey.name_any();
    let save = format!("valkey-cli -h {name} -a \"$PASSWORD\" --rdb /tmp/dump.rdb");
    object(json!({
        "metadata": { "name": names::child(&name, "backup") },
        "spec": {
            "schedule": schedule,
            "concurrencyPolicy": "Forbid",
            "jobTemplate": { "spec": { "backoffLimit": 2, "template": { "spec": {
                "restartPolicy": "Never",
                "securityContext": pod_security(),
                "containers": [container(valkey, image, &save)],
            } } } },
        },
    }))
}
