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
        .owns::<Secret>("holds the generated password")
        .owns::<Service>("gives the servers their addresses")
        .owns::<StatefulSet>("runs the servers")
        .owns::<PodDisruptionBudget>("keeps all but one of several servers running")
        .owns::<NetworkPolicy>("lets clients reach the server's port only")
        .owns::<CronJob>("saves the data")
        .secrets("reads the password", |valkey: &Valkey| vec![password_secret(valkey)])
        .needs(Grant::of::<PersistentVolumeClaim>(
            Scope::Watched,
            ["deletecollection"],
            "deletes volumes with their Valkey",
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
        let password = password(valkey, context).await?;
        let config = config(valkey);
        // The pods restart when one of these changes.
        let content = fingerprint(&json!([
            config,
            password.metadata.uid,
            password.metadata.resource_version
        ]));
        context.apply::<ConfigMap>(object(config)?).await?;
        context.apply::<Service>(object(service(valkey, true))?).await?;
        context.apply::<Service>(object(service(valkey, false))?).await?;
        context.apply::<NetworkPolicy>(object(policy(valkey))?).await?;
        let set = object(stateful_set(valkey, &image, &content))?;
        let set = context
            .apply_keeping::<StatefulSet>(set, &[".spec.volumeClaimTemplates"])
            .await?;
        if spec.replicas > 1 {
            context.apply::<PodDisruptionBudget>(object(budget(valkey))?).await?;
        }
        if let Some(schedule) = &spec.backup_schedule {
            context
                .apply::<CronJob>(object(backup(valkey, &image, schedule))?)
                .await?;
        }
        let ready = set
            .status
            .as_ref()
            .and_then(|status| status.ready_replicas)
            .unwrap_or(0);
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
        let labels = labels(valkey);
        let parts = labels.as_object().into_iter().flatten();
        let parts: Vec<String> = parts
            .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()))
            .collect();
        let claims = context.api::<PersistentVolumeClaim>()?;
        claims
            .delete_collection(
                &DeleteParams::default(),
                &ListParams::default().labels(&parts.join(",")),
            )
            .await?;
        Ok(Outcome::ready())
    }
}

/// The user's Secret, or one with a generated password.
async fn password(valkey: &Valkey, context: &Context<Valkey>) -> Result<Secret, Error> {
    let name = password_secret(valkey);
    if valkey.spec.password_secret.is_some() {
        let missing = || Error::new("PasswordMissing", format!("create Secret {name} with the key password"));
        let secret = context.secret(&name).await?.ok_or_else(missing)?;
        return match secret.data.as_ref().is_some_and(|data| data.contains_key("password")) {
            true => Ok(secret.as_ref().clone()),
            false => Err(missing()),
        };
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

fn config(valkey: &Valkey) -> Value {
    let lines: String = valkey
        .spec
        .parameters
        .iter()
        .map(|(key, value)| format!("{key} {value}\n"))
        .collect();
    json!({
        "metadata": { "name": format!("{}-config", valkey.name_any()) },
        "data": { "valkey.conf": format!("{lines}port {PORT}\ndir /data\n") },
    })
}

fn service(valkey: &Valkey, headless: bool) -> Value {
    let name = valkey.name_any();
    json!({
        "metadata": { "name": if headless { format!("{name}-headless") } else { name } },
        "spec": {
            "clusterIP": headless.then_some("None"),
            "publishNotReadyAddresses": headless.then_some(true),
            "selector": labels(valkey),
            "ports": [{ "name": "valkey", "port": PORT, "targetPort": "valkey" }],
        },
    })
}

fn policy(valkey: &Valkey) -> Value {
    json!({
        "metadata": { "name": valkey.name_any() },
        "spec": {
            "podSelector": { "matchLabels": labels(valkey) },
            "ingress": [{ "ports": [{ "port": PORT, "protocol": "TCP" }] }],
            "policyTypes": ["Ingress"],
        },
    })
}

fn budget(valkey: &Valkey) -> Value {
    json!({
        "metadata": { "name": valkey.name_any() },
        "spec": { "maxUnavailable": 1, "selector": { "matchLabels": labels(valkey) } },
    })
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

fn stateful_set(valkey: &Valkey, image: &str, content: &str) -> Value {
    let (name, spec) = (valkey.name_any(), &valkey.spec);
    let mut container = container(
        valkey,
        image,
        "exec valkey-server /etc/valkey/valkey.conf --requirepass \"$PASSWORD\"",
    );
    container["ports"] = json!([{ "name": "valkey", "containerPort": PORT }]);
    container["resources"] = json!(spec.resources);
    container["readinessProbe"] = json!({ "tcpSocket": { "port": "valkey" } });
    container["volumeMounts"] =
        json!([{ "name": "data", "mountPath": "/data" }, { "name": "config", "mountPath": "/etc/valkey" }]);
    json!({
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
    })
}

fn backup(valkey: &Valkey, image: &str, schedule: &str) -> Value {
    let name = valkey.name_any();
    let save = format!("valkey-cli -h {name} -a \"$PASSWORD\" --rdb /tmp/dump.rdb");
    json!({
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
    })
}
