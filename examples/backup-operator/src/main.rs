//! The operator itself: it notes in each Backup when it was looked after, and reviews and converts Backups.
use std::{error::Error, sync::Arc};

use backup_operator::{
    api::{Backup, BackupClass, BackupStatus},
    conversion::convert,
};
use clap::Parser as _;
use kube::{
    Api, Client, ResourceExt as _,
    api::{Patch, PatchParams},
};
use kube_manager::{
    Manager, ObjectKey, log,
    options::Options,
    webhooks::{self, Denied, Review, Webhooks},
    worker::Done,
};
use serde_json::json;

#[derive(clap::Parser)]
struct Flags {
    #[command(flatten)]
    manager: Options,
    #[command(flatten)]
    webhooks: webhooks::Options,
}

async fn reconcile(backup: Arc<Backup>, client: Client) -> Result<Done, kube::Error> {
    if backup.status.is_some() {
        return Ok(Done::nothing("known"));
    }
    let backups: Api<Backup> = Api::namespaced(client, &backup.namespace().unwrap_or_default());
    let status = BackupStatus { last_backup: None };
    let patch = Patch::Merge(json!({ "status": status }));
    backups
        .patch_status(&backup.name_any(), &PatchParams::default(), &patch)
        .await?;
    Ok(Done::wrote(1, "noted"))
}

/// A schedule has five fields.
async fn validate(review: Review<Backup>) -> Result<(), Denied> {
    match review.object {
        Some(backup) if backup.spec.schedule.split_whitespace().count() != 5 => Err(Denied::field(
            "spec.schedule",
            "must have five fields, as in \"0 3 * * *\"",
        )),
        _ => Ok(()),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let flags = Flags::parse();
    let level = log::init(&flags.manager)?;
    let builder = Manager::builder("backup-operator")
        .options(flags.manager)
        .log_level(level);
    let manager = builder.start().await?;
    let webhooks = Webhooks::new(manager.metrics())
        .validating("/validate", validate)
        .converting("/convert", convert);
    manager.serve_webhooks(webhooks, &flags.webhooks).await?;
    let client = manager.client();
    let backups = manager.controller::<Backup>("backup");
    let known = backups.cache();
    backups
        // A class concerns every Backup.
        .watches::<BackupClass>(Default::default(), move |_| {
            let mut keys: Vec<ObjectKey> = Vec::new();
            known.for_each(|key, _| keys.push(key.clone()));
            keys
        })
        .run(move |backup| reconcile(backup, client.clone()));
    Ok(manager.run().await?)
}
