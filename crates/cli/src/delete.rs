//! `olmkit delete`

use std::process::ExitCode;

use clap::Subcommand;
use olmkit_scaffold::{DeleteApi, DeleteWebhook, delete_api, delete_webhook};

use crate::create::{scaffolded, show};
use crate::kind_args::KindArgs;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
#[command(defer = true)]
enum Command {
    /// Remove an API version from a project
    Api(ApiArgs),
    /// Remove webhooks from a project
    Webhook(WebhookArgs),
}

/// Remove an API version from a project
///
/// Deletes the files that `create api` generated for this version and keeps your changes in other files. Use --force to delete
/// files that you have changed.
#[derive(clap::Args)]
#[command(disable_version_flag = true)]
#[command(after_help = examples!["olmkit delete api --group cache --version v1alpha1 --kind Memcached"])]
struct ApiArgs {
    #[command(flatten)]
    kind: KindArgs,
    /// Also delete files that you have changed
    #[arg(long)]
    force: bool,
}

/// Remove webhooks from a project
///
/// Deletes the files that `create webhook` generated for this version and keeps your changes in other files. Use --force to
/// delete files that you have changed.
#[derive(clap::Args)]
#[command(disable_version_flag = true)]
#[command(after_help = examples![
    "olmkit delete webhook --group cache --version v1 --kind Memcached",
    "olmkit delete webhook --group cache --version v1 --kind Memcached --conversion"
])]
struct WebhookArgs {
    #[command(flatten)]
    kind: KindArgs,
    /// Delete the defaulting webhook [default: all webhooks of the version]
    #[arg(long)]
    defaulting: bool,
    /// Delete the validating webhook [default: all webhooks of the version]
    #[arg(long)]
    programmatic_validation: bool,
    /// Delete the conversion, whose hub is this version [default: all webhooks of the version]
    #[arg(long)]
    conversion: bool,
    /// Also delete files that you have changed
    #[arg(long)]
    force: bool,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let args = match &args.command {
        Command::Api(args) => args,
        Command::Webhook(args) => return webhook(args),
    };
    scaffolded(|| {
        let api = DeleteApi {
            group: args.kind.group.clone(),
            version: args.kind.version.clone(),
            kind: args.kind.kind.clone(),
            force: args.force,
        };
        show(&delete_api(&args.kind.directory, &api)?);
        Ok(())
    })
}

fn webhook(args: &WebhookArgs) -> anyhow::Result<ExitCode> {
    scaffolded(|| {
        let webhook = DeleteWebhook {
            group: args.kind.group.clone(),
            version: args.kind.version.clone(),
            kind: args.kind.kind.clone(),
            defaulting: args.defaulting,
            validation: args.programmatic_validation,
            conversion: args.conversion,
            force: args.force,
        };
        show(&delete_webhook(&args.kind.directory, &webhook)?);
        Ok(())
    })
}
