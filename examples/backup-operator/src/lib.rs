//! An operator's types and its packaging. `docs/guides/rust-operators.md` walks through it.
//!
//! It covers features that the memcached operator lacks: two versions of a kind with a conversion webhook, a
//! cluster-scoped kind, and a validating webhook.

pub mod api;
pub mod conversion;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Secret;
use olmkit_project::rbac::{Grant, Scope};
use olmkit_project::{Api, Error, Manager, Package, Project, WEBHOOK_PORT, Webhook};
use serde_json::json;

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
        .converted_at("/convert")
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
    .webhook(Webhook::validating::<Backup>("/validate"))
    .grants([
        Grant::of::<Backup>(Scope::Watched, READ, "the requested backups"),
        Grant::of::<Backup>(Scope::Watched, ["patch"], "the result").on("status"),
        Grant::of::<Secret>(Scope::Own, ["get"], "the key of the bucket"),
        Grant::of::<Lease>(Scope::Own, ["get", "create", "update"], "--leader-elect"),
        Grant::of::<BackupClass>(Scope::Cluster, READ, "classes have no namespace"),
    ])
    .manager(
        Manager::default()
            .arg("--leader-elect")
            .arg(format!("--webhook-bind-address=:{WEBHOOK_PORT}"))
            .env("WATCH_NAMESPACE", "")
            .env("RELATED_IMAGE_RESTIC", "docker.io/restic/restic:0.18.0"),
    ))
}
