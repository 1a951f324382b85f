//! `olmkit delete`

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use olmkit_scaffold::{DeleteApi, delete_api};

use crate::create::{scaffolded, show};

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
#[command(defer = true)]
enum Command {
    /// Take a version of a kind out of a project again
    Api(ApiArgs),
}

/// Take a version of a kind out of a project again
///
/// Deletes what create api wrote for a version of a kind. Your own changes elsewhere stay; files that you have changed are
/// only deleted with --force.
#[derive(clap::Args)]
#[command(disable_version_flag = true)]
#[command(after_help = examples!["olmkit delete api --group cache --version v1alpha1 --kind Memcached"])]
struct ApiArgs {
    /// API group, without the project's domain
    #[arg(long, default_value = "")]
    group: String,
    /// Version, such as v1alpha1
    #[arg(long)]
    version: String,
    /// Kind, in CamelCase
    #[arg(long)]
    kind: String,
    /// Delete files that have changed since they were created
    #[arg(long)]
    force: bool,
    /// Folder of the project
    #[arg(long, value_name = "DIRECTORY", default_value = ".")]
    directory: PathBuf,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let Command::Api(args) = &args.command;
    scaffolded(|| {
        let api = DeleteApi {
            group: args.group.clone(),
            version: args.version.clone(),
            kind: args.kind.clone(),
            force: args.force,
        };
        show(&delete_api(&args.directory, &api)?);
        Ok(())
    })
}
