//! An operator's types and its packaging; `docs/rust-operators.md` walks through it.
//!
//! It has what the memcached operator lacks: two versions of a kind with a conversion webhook, a kind without namespace, and
//! a validating webhook.

pub mod api;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceConversion;
use olmkit::project::{Api, Error, Manager, Package, Project};
use olmkit::rbac::{Grant, Scope};
use serde_json::{Value, json};

use api::{Backup, BackupClass, BackupClassSpec, OldBackup};

const READ: [&str; 3] = ["get", "list", "watch"];

/// Everything that `config/` and the bundle are rendered from.
///
/// # Errors
/// When a schema has no structural form or a setting is wrong.
pub fn project() -> Result<Project, Error> {
    let package = Package::parse(include_str!("../package.yaml"))?;
    let backup = Api::of::<Backup>()?
        .version(Api::of::<OldBackup>()?, "v1")?
        .conversion(conversion())
        .sample(&json!({
            "apiVersion": "backup.example.com/v1",
            "kind": "Backup",
            "metadata": {"name": "nightly"},
            "spec": {"volume": "data", "schedule": "0 3 * * *"},
        }))?;
    let class = Api::of::<BackupClass>()?.sample(&BackupClass::new(
        "standard",
        BackupClassSpec {
            bucket: "s3://backups".into(),
            keep: 7,
        },
    ))?;
    Ok(Project::new(
        "backup-operator",
        "0.1.0",
        "example.com/backup-operator:v0.1.0",
        package,
    )
    .api(backup)
    .api(class)
    .grants([
        Grant::of::<Backup>(Scope::Watched, READ, "what to do"),
        Grant::of::<Backup>(Scope::Watched, ["patch"], "what was done").on("status"),
        Grant::of::<Secret>(Scope::Own, ["get"], "the key of the bucket"),
        Grant::of::<Lease>(Scope::Own, ["get", "create", "update"], "--leader-elect"),
        Grant::of::<BackupClass>(Scope::Cluster, READ, "classes have no namespace"),
    ])
    .manager(
        Manager::default()
            .arg("--leader-elect")
            .env("WATCH_NAMESPACE", "")
            .env("RELATED_IMAGE_RESTIC", "docker.io/restic/restic:0.18.0")
            .port("webhooks", 9443),
    )
    .objects("webhook/manifests.yaml", webhooks()))
}

/// How the API server reaches the conversion. OLM points it at its own Service, with its own certificate.
fn conversion() -> CustomResourceConversion {
    serde_json::from_value(json!({
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": {"service": {"name": SERVICE, "namespace": NAMESPACE, "path": "/convert"}},
            "conversionReviewVersions": ["v1"],
        },
    }))
    .unwrap_or_default()
}

const SERVICE: &str = "backup-operator-webhook-service";
const NAMESPACE: &str = "backup-operator-system";

fn webhooks() -> Vec<Value> {
    vec![
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": SERVICE, "namespace": NAMESPACE},
            "spec": {
                "ports": [{"port": 443, "targetPort": 9443}],
                "selector": {"app.kubernetes.io/name": "backup-operator", "control-plane": "controller-manager"},
            },
        }),
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "backup-operator-validating"},
            "webhooks": [{
                "name": "vbackup.example.com",
                "admissionReviewVersions": ["v1"],
                "clientConfig": {"service": {"name": SERVICE, "namespace": NAMESPACE, "path": "/validate"}},
                "rules": [{
                    "apiGroups": ["backup.example.com"],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": ["backups"],
                }],
                "sideEffects": "None",
            }],
        }),
    ]
}
