//! `olmkit edit`

use std::path::PathBuf;
use std::process::ExitCode;

use olmkit_scaffold::{Edit, StorageVersion, edit_settings, set_storage_version};

use crate::create::{scaffolded, show};

/// Change the settings of a project
///
/// Does not move the files of existing kinds.
#[derive(clap::Args)]
#[command(after_help = examples![
    "olmkit edit --multigroup",
    "olmkit edit --storage-version v1 --group cache --kind Memcached"
])]
pub struct Args {
    /// Use one directory per API group for new kinds
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    #[arg(required_unless_present_any = ["namespaced", "storage_version"])]
    multigroup: Option<bool>,
    /// Watch only the namespace that the operator runs in
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    namespaced: Option<bool>,
    /// Make this version the storage version of the kind
    #[arg(long, value_name = "VERSION", requires = "kind", conflicts_with_all = ["multigroup", "namespaced"])]
    storage_version: Option<String>,
    /// API group, without the project's domain
    #[arg(long, value_name = "GROUP", default_value = "", requires = "storage_version")]
    group: String,
    /// Kind, in CamelCase
    #[arg(long, value_name = "KIND", requires = "storage_version")]
    kind: Option<String>,
    /// Project directory
    #[arg(long, value_name = "DIRECTORY", default_value = ".")]
    directory: PathBuf,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    scaffolded(|| {
        if let (Some(version), Some(kind)) = (&args.storage_version, &args.kind) {
            let wanted = StorageVersion {
                group: args.group.clone(),
                version: version.clone(),
                kind: kind.clone(),
            };
            show(&set_storage_version(&args.directory, &wanted)?);
            return Ok(());
        }
        let changes = Edit {
            multigroup: args.multigroup,
            namespaced: args.namespaced,
        };
        show(&edit_settings(&args.directory, changes)?);
        Ok(())
    })
}
