//! The kinds: `Backup` in two versions, and `BackupClass`, which has no namespace.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A backup schedule.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "backup.example.com",
    version = "v1",
    kind = "Backup",
    namespaced,
    status = "BackupStatus"
)]
#[kube(doc = "A volume that is saved at set times.")]
pub struct BackupSpec {
    /// The claim to save.
    #[schemars(extend("x-olm-descriptor" = true))]
    pub volume: String,
    /// When, as a cron line.
    #[schemars(extend("x-olm-descriptor" = {"displayName": "Cron line"}))]
    pub schedule: String,
    /// Destination of the backups.
    pub target: Option<Target>,
}

/// Destination of backups: an enum with data becomes `oneOf`, with its fields declared as the API server requires.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Target {
    /// A bucket.
    Bucket {
        /// Its address.
        url: String,
    },
    /// Another volume.
    Volume {
        /// The claim.
        claim: String,
    },
}

/// Observed backups.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupStatus {
    /// The time of the last backup.
    #[schemars(extend("x-olm-descriptor" = true))]
    pub last_backup: Option<String>,
}

/// The first version. It had no schedule.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "backup.example.com",
    version = "v1alpha1",
    kind = "Backup",
    root = "OldBackup",
    namespaced,
    status = "BackupStatus"
)]
#[kube(doc = "A volume that is saved every night.")]
pub struct OldBackupSpec {
    /// The claim to save.
    pub volume: String,
}

/// Retention of backups.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "backup.example.com",
    version = "v1",
    kind = "BackupClass",
    plural = "backupclasses"
)]
#[kube(doc = "Where backups go and how long they stay.")]
pub struct BackupClassSpec {
    /// Address of a bucket.
    pub bucket: String,
    /// Number of backups to keep.
    pub keep: u32,
}
